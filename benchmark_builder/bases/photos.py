"""The photo base: real COCO photos with known objects, human captions where there are some, composed ones elsewhere."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from benchmark_builder.bases.base import Base, caption_and_references, sentence
from benchmark_builder.scenes.compose import compose_captions


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def held_out(folder: Path) -> frozenset[int]:
    """Ids of the photos never trained on: those with human captions or with captions by a captioning model."""
    ids = {row["image_id"] for row in _rows(folder / "captions.jsonl") if row["captions"]}
    for path in sorted((folder / "lstm_captions").glob("*.jsonl")):
        ids.update(row["image_id"] for row in _rows(path))
    return frozenset(ids)


def photo_base(folder: Path, *, part: str = "held_out", seed: int = 0) -> Base:
    """Photos with a caption each: two of their human captions, else two composed from some of their objects.

    Args:
        folder: with captions.jsonl, objects.jsonl, images/ and lstm_captions/.
        part: "held_out", "train" or "all" (see `held_out`).
        seed: which captions are drawn.
    """
    apart = held_out(folder)
    human = {row["image_id"]: row["captions"] for row in _rows(folder / "captions.jsonl")}
    ids, captions, objects, images = [], [], [], []
    for row in _rows(folder / "objects.jsonl"):
        name = row["image_id"]
        if part != "all" and (name in apart) != (part == "held_out"):
            continue
        rng = random.Random(f"caption {seed} {name}")
        if human[name]:
            pair = [sentence(text) for text in rng.sample(human[name], 2)]
        else:
            pair = compose_captions(row["chair_objects"], rng=rng, n=2)
        ids.append(str(name))
        captions.append(" ".join(pair))
        objects.append(frozenset(row["chair_objects"]))
        images.append(folder / row["file"])
    return Base(tuple(ids), tuple(captions), tuple(objects), images=tuple(images))


def text_base(path: Path, *, seed: int = 0) -> Base:
    """Five human captions a row: two become the caption, three stay apart as references (paper appendix B)."""
    ids, captions, objects, references = [], [], [], []
    for row in _rows(path):
        caption, others = caption_and_references(row["captions"], seed=seed, row_id=str(row["image_id"]))
        ids.append(str(row["image_id"]))
        captions.append(caption)
        references.append(others)
        objects.append(frozenset(row["chair_objects"]))
    return Base(tuple(ids), tuple(captions), tuple(objects), references=tuple(references))
