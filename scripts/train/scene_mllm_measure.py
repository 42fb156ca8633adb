"""Measures the miniature chat model on unseen scenes through plain transformers, with the prompts as they are asked."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from scene_mllm_questions import SYNONYMS, Asker, Question, named
from transformers import AutoModelForImageTextToText, AutoProcessor

from benchmark_builder.scenes.draw import OBJECT_NAMES, Scene, make_scene
from symbal_hf.models.chat.protocol import features, strict_digit

BATCH = 50


@dataclass(frozen=True)
class Row:
    """One line of the table: a task's measure over so many answers, and which share of them had the asked form."""

    task: str
    items: int
    measure: str
    value: float
    formed: float


@dataclass(frozen=True)
class Drawn:
    """Scenes as they come from `make_scene`, in the form in which questions are made."""

    scenes: Sequence[Scene]

    def __len__(self) -> int:
        return len(self.scenes)

    def objects(self, row: int) -> list[str]:
        """Names of the scene's objects, sorted."""
        return sorted(item.name for item in self.scenes[row].objects)

    def place(self, row: int) -> str:
        """Name of the scene's place."""
        return self.scenes[row].background

    def captions(self, row: int, rng: random.Random, n: int) -> list[str]:
        """Some of its captions."""
        return rng.sample(self.scenes[row].captions, n)


class Answerer:
    """A saved model with its processor, asked as any user of transformers would."""

    def __init__(self, folder: Path) -> None:
        self.processor = AutoProcessor.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()

    def answers(self, questions: Sequence[Question], pictures: Sequence[Image.Image]) -> list[str]:
        """The text that the model writes, by greedy decoding."""
        out = [""] * len(questions)
        for places in self._batches(questions):
            talks = []
            for place in places:
                question, content = questions[place], list[dict[str, object]]()
                if question.image is not None:
                    content.append({"type": "image", "image": pictures[question.image]})
                content.append({"type": "text", "text": question.prompt})
                talks.append([{"role": "user", "content": content}])
            inputs = self.processor.apply_chat_template(
                talks,
                add_generation_prompt=True,
                tokenize=True,
                return_dict=True,
                return_tensors="pt",
                processor_kwargs={"padding": True},
            )
            digit = all(questions[place].answer in ("0", "1") for place in places)
            with torch.no_grad():
                ids = self.model.generate(**inputs, max_new_tokens=4 if digit else 64)
            texts = self.processor.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
            for place, text in zip(places, texts, strict=True):
                out[place] = text
        return out

    @staticmethod
    def _batches(questions: Sequence[Question]) -> Iterator[list[int]]:
        """Of the same task, and of much the same length."""
        order = sorted(range(len(questions)), key=lambda i: (questions[i].task, len(questions[i].prompt)))
        start = 0
        while start < len(order):
            task = questions[order[start]].task
            stop = next(
                (i for i in range(start, min(start + BATCH, len(order))) if questions[order[i]].task != task),
                min(start + BATCH, len(order)),
            )
            yield order[start:stop]
            start = stop


def questions_about(drawn: Drawn, seed: int) -> dict[str, list[Question]]:
    """What is asked about these scenes, by line of the table."""
    asker = Asker(drawn, seed)
    rng, n = asker.rng, len(drawn)
    out: dict[str, list[Question]] = {}

    def planted(row: int, true: bool) -> Question:
        has = set(drawn.objects(row))
        name = rng.choice(sorted(has) if true else [name for name in OBJECT_NAMES if name not in has])
        return asker.check("fact_of_image", asker.planted(name), has, row)

    shown = [row for row in range(n) if drawn.objects(row)]
    out["fact_of_image, planted"] = [planted(row, true) for row in shown for true in (True, False)]
    out["fact_of_image, one to three objects"] = [q for row in shown for q in asker.of_image(row, 2)]
    out["fact_of_image, captions"] = [asker.other_caption(row) for row in range(n) for _ in range(2)]
    out["fact_of_text"] = [q for _ in range(n) for q in asker.of_text(2, synonyms=False)]
    out["fact_of_text, synonyms"] = [q for _ in range(n) for q in asker.of_text(2, synonyms=True)]
    out["fact_of_image_and_text"] = [q for row in shown for q in asker.of_image_and_text(row)]
    lists = [q for row in range(n) for q in asker.listing(row, always=True)]
    for task in ("features_of_image", "features_of_image_and_text", "caption_of_image"):
        out[task] = [q for q in lists if q.task == task]
    out["features_of_text"] = [asker.listing_of_text(synonyms=False) for _ in range(n)]
    out["features_of_text, synonyms"] = [asker.listing_of_text(synonyms=True) for _ in range(n)]
    out["same_thing"] = [q for _ in range(n) for q in asker.same_thing(2)]
    out["same_thing, synonyms"] = [
        asker.pair(name, form, rng.choice((name, rng.choice(OBJECT_NAMES)))) for name in SYNONYMS
        for form in SYNONYMS[name] for _ in range(2)
    ]  # fmt: skip
    most = [asker.most_frequent() for _ in range(2 * n)]
    out["most_frequent, one"] = [q for q in most if "," not in q.answer]
    out["most_frequent, two or three"] = [q for q in most if "," in q.answer]
    return out


def _balanced(questions: Sequence[Question], answers: Sequence[str]) -> float:
    kinds = []
    for truth in (0.0, 1.0):
        right = [strict_digit(a) == truth for q, a in zip(questions, answers, strict=True) if float(q.answer) == truth]
        if right:
            kinds.append(sum(right) / len(right))
    return sum(kinds) / len(kinds)


def _f1(wanted: Sequence[set[str]], got: Sequence[set[str]]) -> float:
    both = sum(len(a & b) for a, b in zip(wanted, got, strict=True))
    return 2 * both / max(1, sum(map(len, wanted)) + sum(map(len, got)))


def score(line: str, questions: Sequence[Question], answers: Sequence[str]) -> Row:
    """The measure that fits the task."""
    task = line.split(",")[0]
    n = max(1, len(questions))
    if task.startswith("fact") or task == "same_thing":
        formed = sum(strict_digit(answer) is not None for answer in answers) / n
        return Row(line, len(questions), "balanced accuracy", _balanced(questions, answers), formed)
    if task == "caption_of_image":
        wanted, got = ([named(text) for text in texts] for texts in ([q.answer for q in questions], answers))
        formed = sum(answer.count(".") == 2 and answer.endswith(".") for answer in answers) / n
        return Row(line, len(questions), "F1 of objects", _f1(wanted, got), formed)
    wanted = [features(q.answer) or () for q in questions]
    got = [features(answer) for answer in answers]
    formed = sum(answer is not None for answer in got) / n
    if line == "most_frequent, one":
        right = sum(a == b for a, b in zip(wanted, got, strict=True))
        return Row(line, len(questions), "accuracy", right / n, formed)
    return Row(line, len(questions), "F1", _f1([set(x) for x in wanted], [set(x or ()) for x in got]), formed)


def measure(folder: Path, n: int, seed: int) -> list[Row]:
    """All tasks on n scenes of this seed, drawn at 256 pixels."""
    drawn = [make_scene(i, seed=seed, size=256) for i in range(n)]
    answerer = Answerer(folder)
    pictures = [picture for _, picture in drawn]
    return [
        score(line, questions, answerer.answers(questions, pictures))
        for line, questions in questions_about(Drawn([scene for scene, _ in drawn]), seed).items()
    ]


def table(rows: Sequence[Row]) -> str:
    """The measures as a Markdown table."""
    lines = ["| task | items | measure | value | answers in the asked form |", "| :-- | --: | :-- | --: | --: |"]
    lines += [f"| {r.task} | {r.items:,} | {r.measure} | {r.value:.3f} | {r.formed:.1%} |" for r in rows]
    return "\n".join(lines)
