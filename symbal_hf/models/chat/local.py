"""Chat models in this process, by transformers: batches of like questions, and no question spoils another."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Placing, take, values_of
from symbal_hf.data.pixels import decode
from symbal_hf.models.chat.loading import load
from symbal_hf.models.chat.protocol import Answer, Messages, images_of
from symbal_hf.models.chat.weights import FROZEN_ELSEWHERE, Loaded, Refused, digest, elsewhere
from symbal_hf.models.chat.wordless import is_wordless
from symbal_hf.models.encoders.base import Source, check_place, choose_place, find, on_device
from symbal_hf.models.encoders.checkpoint import out_of_memory

if TYPE_CHECKING:
    import torch
    from PIL import Image

MARKERS = ("</think>", "<|channel|>final<|message|>")  # what stands between reasoning and answer
OPENINGS = ("<think>", "<|channel|>analysis")
LEAST = 0.01  # of the probability must be on "1" and "0" together for their ratio to mean something

Work = Callable[[Loaded, Any, Sequence[Messages]], list[Answer]]
log = logging.getLogger(__name__)


class LocalModel:
    """A `ChatModel` of the transformers library: a language model, one that also reads images, or a mere captioner.

    Weights are loaded at the first question, from safetensors; code that comes with a model is never run.

    Args:
        model: a folder, or a model of the Hub; `revision` is a branch, tag or commit there.
        batch_size: conversations tried at once; halved for good whenever they do not fit in memory.
        place: options of `symbal_hf.core.options.Placing`; `device_map` as transformers takes it.
        max_pixels: of one image, beyond which it is scaled down. None leaves it to the model, except for Qwen2.5-VL and
            its like, which then see 256 to 1280 tokens of an image.

    Raises:
        BadData: a model that runs on its own code only.
        ValueError: an argument out of its range.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        batch_size: int = 8,
        max_pixels: int | None = None,
        **place: Any,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} leaves nothing to do at once; give at least 1.")
        if max_pixels is not None and max_pixels < 1:
            raise ValueError(f"max_pixels={max_pixels} leaves nothing of an image; give at least 1, or None.")
        (self._placing,) = take(place, Placing, by="LocalModel")
        check_place(**values_of(self._placing))
        if model in FROZEN_ELSEWHERE:
            raise elsewhere(f"hf:{model}")
        self.name, self.max_pixels = f"hf:{model}", max_pixels
        self._model, self._asked_revision, self._size = model, revision, batch_size
        self._pictures: dict[bytes, Image.Image] = {}

    def __repr__(self) -> str:
        return f"LocalModel({self.name!r})"

    @cached_property
    def _source(self) -> Source:
        revision = f"@{self._asked_revision}" if self._asked_revision else ""
        return find("hf", self._model + revision, "config.json")

    @cached_property
    def revision(self) -> str:
        """The commit of the Hub's model, or of a folder a digest that changes when it is trained anew."""
        return self._source.revision or digest(Path(self._source.model))

    @cached_property
    def wordless(self) -> bool:
        """Whether it captions images and hears no words: BLIP and its like."""
        return is_wordless(self._source)

    @property
    def settings(self) -> str:
        """Changes with what answers depend on besides name and revision: the kind of numbers and the size of images."""
        return f"{choose_place(self._placing.device, self._placing.dtype).dtype}|max_pixels={self.max_pixels}"

    @cached_property
    def _loaded(self) -> Loaded:
        return load(self._source, choose_place(**values_of(self._placing)), max_pixels=self.max_pixels)

    def generate(
        self, conversations: Sequence[Messages], *, max_new_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> Iterator[tuple[int, Answer]]:
        """Text for each conversation, a batch at a time: the likeliest at temperature 0, else drawn.

        What is drawn depends on the conversation and `seed` alone: not on what is asked beside it, nor on any global
        random state, which stays as it is. Reasoning that the model's template marks as such is no part of the text.

        Raises:
            MissingModel, BadData: no such model, or none that can chat, when the first answer is asked for.
            ValueError: no tokens to write, or a temperature below 0.
        """
        if max_new_tokens < 1 or temperature < 0:
            told = f"max_new_tokens={max_new_tokens}, temperature={temperature}"
            raise ValueError(f"{told}; at least 1 token and 0 are needed.")

        def work(loaded: Loaded, inputs: Any, batch: Sequence[Messages]) -> list[Answer]:
            from transformers import LogitsProcessorList

            noise = LogitsProcessorList([_noise(temperature, seed, batch)] if temperature else [])
            out = loaded.model.generate(**inputs, max_new_tokens=loaded.room(max_new_tokens), logits_processor=noise)
            begin = loaded.before(inputs)
            return [_written(loaded, row[:begin], row[begin:]) for row in out]

        return self._answers(conversations, work, max_new_tokens)

    def probability_of_yes(self, conversations: Sequence[Messages]) -> Iterator[tuple[int, Answer]]:
        """P("1") / (P("1") + P("0")) of the next token, over all spellings of the two ("1", " 1"), after one pass.

        `text` is the likelier digit. Where both together have less than 0.01 of the probability the model is about to
        write something else ("Yes", a refusal, its reasoning) and the ratio of two accidents says nothing: `yes` is
        then None and `text` the token that it would write. Where the template can switch reasoning off, it is off.
        Raises as `generate` does, and `BadData` where a model only captions.
        """
        return self._answers(conversations, _digits, 1, template={"enable_thinking": False})

    def _answers(
        self, conversations: Sequence[Messages], work: Work, new: int, *, template: dict[str, Any] | None = None
    ) -> Iterator[tuple[int, Answer]]:
        def number(index: int) -> int:
            return len(images_of(conversations[index]))

        waiting = _like_together(conversations)
        if waiting and work is _digits and self.wordless:
            raise BadData(f"{self.name} captions images and answers no question; name a chat model.")
        while waiting:
            # A batch whose conversations have unlike numbers of images is more than some processors can lay out.
            indices = next(list(alike) for _, alike in groupby(waiting[: self._size], key=number))
            waiting = waiting[len(indices) :]
            yield from self._batch(conversations, indices, work, new, template or {})

    def _batch(
        self, conversations: Sequence[Messages], indices: list[int], work: Work, new: int, template: dict[str, Any]
    ) -> Iterator[tuple[int, Answer]]:
        """Answers to one batch, in smaller ones where it fails as a whole."""
        from accelerate.utils.memory import clear_device_cache

        loaded, batch = self._loaded, [conversations[index] for index in indices]
        smaller = 0
        try:
            inputs = self._inputs(loaded, batch, template)
            lengths = loaded.lengths(inputs)
            fits = [i for i, n in zip(indices, lengths, strict=True) if n + loaded.room(new) <= loaded.context]
            if fits == indices:
                answers = work(loaded, on_device(inputs, loaded.model), batch)
        except Exception as error:  # whatever a library thinks up, the other conversations go on
            log.debug("a batch of %d failed", len(indices), exc_info=True)
            if len(indices) == 1:
                yield indices[0], Answer(error=_reason(error))
                return
            smaller = 1
            if out_of_memory(error):
                smaller = self._size = len(indices) // 2
        if smaller:
            # Only here is the traceback gone, which held on to the tensors of the failed attempt.
            clear_device_cache(garbage_collection=True)
            while indices:
                piece = indices[: min(smaller, self._size)]
                indices = indices[len(piece) :]
                yield from self._batch(conversations, piece, work, new, template)
        elif fits == indices:
            yield from zip(indices, answers, strict=True)
        else:
            for index, n in zip(indices, lengths, strict=True):
                if index not in fits:
                    most = f"do not fit in the {loaded.context} of {self.name}"
                    yield index, Answer(error=f"its {n} tokens and {new} to write {most}.")
            if fits:
                yield from self._batch(conversations, fits, work, new, template)

    def _inputs(self, loaded: Loaded, batch: Sequence[Messages], template: dict[str, Any]) -> Any:
        """What the model reads of B conversations, padded on the left to (B, T)."""
        if not all(batch):
            raise Refused("there is no message to answer.")
        pictures = {}
        for image in {image: None for conversation in batch for image in images_of(conversation) if loaded.sees}:
            pictures[image] = self._pictures[image] if image in self._pictures else self._picture(image)
        self._pictures = pictures  # the next batch mostly asks about the same ones
        turns = [[loaded.turn(message, pictures) for message in conversation] for conversation in batch]
        return loaded.encode(turns, **{name: value for name, value in template.items() if name in loaded.template})

    def _picture(self, encoded: bytes) -> Image.Image:
        try:
            picture = decode(encoded)
        except Exception as error:  # Pillow raises more than it documents
            raise Refused("an image cannot be read.") from error
        most = self.max_pixels
        if most is None or self._loaded.has_budget or picture.width * picture.height <= most:
            return picture
        scale = (most / (picture.width * picture.height)) ** 0.5
        return picture.resize((max(1, int(picture.width * scale)), max(1, int(picture.height * scale))))


def _like_together(conversations: Sequence[Messages]) -> list[int]:
    """All indices: by number of images, rough length and image, so that little is padded or read twice."""
    numbers: dict[tuple[bytes, ...], int] = {}
    ranks = []
    for index, conversation in enumerate(conversations):
        images, length = images_of(conversation), sum(len(message.text) for message in conversation)
        number = numbers.setdefault(images, len(numbers))
        ranks.append((len(images), length.bit_length(), number, length, index))
    return [rank[-1] for rank in sorted(ranks)]


def _digits(loaded: Loaded, inputs: Any, batch: Sequence[Messages]) -> list[Answer]:
    # One new token is one forward pass, with positions and masks as each architecture wants them for padded prompts.
    out = loaded.model.generate(**inputs, max_new_tokens=1, return_dict_in_generate=True, output_logits=True)
    chances = out.logits[0].float().softmax(-1)
    if not chances.isfinite().all():
        raise Refused(f"the model gives undefined values in {loaded.model.dtype}; use dtype='float32' or 'bfloat16'.")
    ones, zeros = (chances[:, loaded.digits[digit]].sum(-1).tolist() for digit in "10")
    answers = []
    for one, zero, token in zip(ones, zeros, chances.argmax(-1).tolist(), strict=True):
        if one + zero < LEAST:
            answers.append(Answer(text=loaded.tokenizer.decode([token]).strip()))
        else:
            answers.append(Answer(text="1" if one >= zero else "0", yes=one / (one + zero)))
    return answers


def _written(loaded: Loaded, prompt: torch.Tensor, row: torch.Tensor) -> Answer:
    """The text of what was written, without the reasoning before it."""
    tokenizer = loaded.tokenizer
    raw, before = (tokenizer.decode(ids, skip_special_tokens=False).strip() for ids in (row, prompt[-4:]))
    for marker in (m for m in MARKERS if m in loaded.template):
        _, marked, rest = raw.partition(marker)
        if marked:
            for token in loaded.special:
                rest = rest.replace(token, "")
            return Answer(text=rest.strip())
        if raw.startswith(OPENINGS) or before.endswith(OPENINGS):
            return Answer(error=f"its reasoning did not end within {len(row)} tokens; allow more of them.")
    return Answer(text=tokenizer.decode(row, skip_special_tokens=True).strip())


def _noise(temperature: float, seed: int, batch: Sequence[Messages]) -> Any:
    """A logits processor by which the likeliest token is one drawn at `temperature` (the Gumbel trick).

    `generate` itself draws for a whole batch from the global state, so that a draw would depend on who sits beside it.
    """
    import torch

    seeds = [_seed(seed, conversation) for conversation in batch]
    generators: list[torch.Generator] = []

    def processor(_: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not generators:
            generators.extend(torch.Generator(scores.device).manual_seed(number) for number in seeds)
        draws = [torch.empty_like(row).exponential_(generator=g) for row, g in zip(scores, generators, strict=True)]
        return scores / temperature - torch.stack(draws).clamp_min(1e-30).log()

    return processor


def _seed(seed: int, conversation: Messages) -> int:
    digest = hashlib.sha256(str(seed).encode())
    for message in conversation:
        for part in (message.role.encode(), message.text.encode("utf-8", "surrogatepass"), *message.images):
            digest.update(hashlib.sha256(part).digest())
    return int.from_bytes(digest.digest()[:7], "big")


def _reason(error: Exception) -> str:
    """One sentence on what is wrong with a conversation, without anything that it says."""
    from jinja2 import TemplateError

    if isinstance(error, Refused):
        return str(error)
    if isinstance(error, TemplateError):
        return f"the model's chat template takes no such conversation ({str(error).rstrip('.')})."
    if out_of_memory(error):
        return "it does not fit in memory, even alone; use a smaller model, dtype='bfloat16' or device_map='auto'."
    return f"the model failed on it ({type(error).__name__})."
