"""Packs questions for training: those about one picture or text share their beginning, which is read only once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from scene_mllm_model import ASSISTANT, BOS, EOS, IMAGE, IMAGE_TOKENS, SYSTEM, USER
from scene_mllm_questions import Question
from transformers import PreTrainedTokenizerFast

SO_FAR_WEIGHT, DIGIT_WEIGHT = 0.3, 3.0


@dataclass
class Line:
    """One question as tokens, with what is to be said after some of them."""

    ids: list[int]
    labels: dict[int, tuple[int, float]] = field(default_factory=dict)  # position -> (next token, weight)


@dataclass  # not frozen: Fabric moves and converts what is in it
class Batch:
    """Rows of equal length, each with several groups of questions.

    Attributes:
        ids, positions: (B, L).
        mask: (B, 1, L, L), 0 where a token may look and far below where not.
        labels, weights: (B, L); -100 where nothing is to be said.
        images: row of the pool for each run of picture tokens, in the order of the rows.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor
    weights: torch.Tensor
    images: np.ndarray


class Packer:
    """Turns groups of questions into batches."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, length: int, rows: int) -> None:
        self.length, self.rows = length, rows
        self.fast = tokenizer.backend_tokenizer
        self.bos, self.eos, self.image, self.user, self.assistant, self.system = tokenizer.convert_tokens_to_ids(
            [BOS, EOS, IMAGE, USER, ASSISTANT, SYSTEM]
        )
        self.digits = tokenizer.convert_tokens_to_ids(["0", "1"])

    def line(self, question: Question) -> Line:
        """The question as the chat template writes it."""
        head = [self.bos]
        if question.system:
            head += [self.system, *self.fast.encode(question.system).ids]
        head.append(self.user)
        if question.image is not None:
            head += [self.image] * IMAGE_TOKENS
        prompt, answer = self.fast.encode(question.prompt), self.fast.encode(question.answer).ids
        line = Line([*head, *prompt.ids, self.assistant, *answer, self.eos])
        ends = [next(i for i, (_, stop) in enumerate(prompt.offsets) if stop >= end) for end, _ in question.so_far]
        for (_, truth), start, stop in zip(question.so_far, ends, [*ends, len(prompt.ids)][1:], strict=True):
            for i in range(start, stop):
                line.labels[len(head) + i] = (self.digits[truth], SO_FAR_WEIGHT)
        first = len(head) + len(prompt.ids)
        if question.any_of:
            line.labels[first - 1] = (self.fast.encode(f" {question.any_of}").ids[0], 1.0)
        digit = answer[0] in self.digits
        for i, token in enumerate([*answer, self.eos]):
            line.labels[first + i] = (token, (DIGIT_WEIGHT, 0.1)[i] if digit else 1.0)
        return line

    def batch(self, groups: Sequence[Sequence[Question]]) -> tuple[Batch, list[int]]:
        """A full batch, and which of these groups went in. Give more than fit, so that few gaps are left."""
        shape = (self.rows, self.length)
        ids, positions, group, part = (np.zeros(shape, np.int64) for _ in range(4))
        labels, weights = np.full(shape, -100, np.int64), np.zeros(shape, np.float32)
        used, taken, images = [0] * self.rows, list[int](), list[tuple[int, int, int]]()
        for number, questions in enumerate(groups):
            lines = [self.line(question) for question in questions]
            shared = _shared([line.ids for line in lines])
            shared = min(shared, *(min(line.labels) for line in lines))  # what is to be learned is not shared
            lines = self._fitting(lines, shared)
            need = shared + sum(len(line.ids) - shared for line in lines)
            row = next((row for row in range(self.rows) if used[row] + need <= self.length), None)
            if row is None:
                if min(used) > 0.9 * self.length:
                    break
                continue
            taken.append(number)
            start = used[row]
            used[row] += need
            for k, line in enumerate(lines):
                skip = shared if k else 0
                stop = start + len(line.ids) - skip
                if questions[0].image is not None and skip < IMAGE_TOKENS:
                    images.append((row, start, questions[0].image))
                place = slice(start, stop)
                ids[row, place] = line.ids[skip:]
                positions[row, place] = np.arange(skip, len(line.ids))
                group[row, place] = number + 1
                part[row, place] = np.where(np.arange(skip, len(line.ids)) < shared, 0, k + 1)
                for at, (label, weight) in line.labels.items():
                    labels[row, start + at - skip], weights[row, start + at - skip] = label, weight
                start = stop
        g, p = torch.from_numpy(group), torch.from_numpy(part)
        mask = (g[:, :, None] == g[:, None]) & ((p[:, None] == 0) | (p[:, :, None] == p[:, None]))
        mask &= torch.ones(self.length, self.length, dtype=torch.bool).tril()
        bias = torch.zeros(mask.shape).masked_fill(~mask, -1e4)
        return Batch(
            *map(torch.from_numpy, (ids, positions)), bias[:, None], *map(torch.from_numpy, (labels, weights)),
            np.array([image for *_, image in sorted(images)], int),
        ), taken  # fmt: skip

    def _fitting(self, lines: Sequence[Line], shared: int) -> list[Line]:
        """As many of the lines as a row has room for."""
        out, total = list[Line](), shared
        for line in lines:
            total += len(line.ids) - shared
            if total <= self.length:
                out.append(line)
        return out


def _shared(lists: Sequence[list[int]]) -> int:
    """With how many equal tokens all lists begin; nothing is shared with one alone."""
    return sum(1 for _ in itertools.takewhile(lambda i: len(set(i)) == 1, zip(*lists, strict=False))) * (len(lists) > 1)
