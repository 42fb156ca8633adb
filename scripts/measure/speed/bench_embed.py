"""Time embedding against what it cannot do without: bare forward passes and decoding, one process, other libraries.

Everything runs on one thread for each process. Each round times every way once, in turn, so that a busy neighbour hurts
all of them alike; a ratio is taken within each round, and medians over the rounds are given.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
from bench_json import add_json, write_json

from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images
from symbal_hf.models.encoders.embedding import IMAGES, embed
from symbal_hf.models.encoders.lite import LiteVision, MiniLM

# name, numerator, denominator, what must hold
RATIOS = (
    ("2 processes against 1, images", "embed, 1 process", "embed, 2 processes", ">= 1.5"),
    ("2 processes against 1 with a decoding thread", "embed, 1 process + decoding thread", "embed, 2 processes", ""),
    ("embed over forward + decoding, images", "embed, 1 process", "forward + decoding", "<= 1.10"),
    ("embed over sentence-transformers, texts", "embed, texts", "sentence-transformers", "<= 1.10"),
    ("plain loop over embed, texts", "plain loop, texts", "embed, texts", ""),
)


def main() -> None:
    """Run, print Markdown, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path, help="folder with .jpg files, at any depth")
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    add_json(parser)
    args = parser.parse_args()
    files = sorted(args.photos.rglob("*.jpg"))[: args.images]
    images = Images([str(path) for path in files], range(len(files)), None)
    texts = _texts(args.texts)
    vision, words = LiteVision(), MiniLM()
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(images, texts, vision, words, Path(folder))
        few = _ways(images.select(range(min(40, len(images)))), texts[:1200], vision, words, Path(folder))
        for way in few.values():  # loads models and libraries
            way()
        rounds = [{name: _seconds(way) for name, way in ways.items()} for _ in range(args.rounds)]
    seconds = {name: statistics.median(r[name] for r in rounds) for name in ways}
    ratios = {name: [r[above] / r[below] for r in rounds] for name, above, below, _ in RATIOS}
    print(_markdown(seconds, ratios, {"images": len(images), "texts": len(texts), "rounds": args.rounds}))
    write_json(args.json, {name: statistics.median(each) for name, each in ratios.items()})


def _ways(
    images: Images, texts: Sequence[str], vision: LiteVision, words: MiniLM, folder: Path
) -> dict[str, Callable[[], Any]]:
    import torch

    def fresh() -> Store:
        return Store(folder / f"{time.monotonic_ns()}.sqlite")

    def bare() -> None:
        for start in range(0, len(images), IMAGES):
            part = [vision.pixels(decode(images.encoded(i))) for i in range(start, min(start + IMAGES, len(images)))]
            vision.regions(part)

    def library() -> None:
        words.model.encode(list(texts), batch_size=128, normalize_embeddings=True, show_progress_bar=False)

    def loop() -> None:
        model = words.model
        for start in range(0, len(texts), 128):
            with torch.inference_mode():
                found = model(model.preprocess(list(texts[start : start + 128])))
                torch.nn.functional.normalize(found["sentence_embedding"], dim=-1).numpy()

    return {
        "forward + decoding": bare,
        "embed, 1 process": lambda: embed(images, vision, store=fresh(), workers=0),
        "embed, 2 processes": lambda: embed(images, vision, store=fresh(), workers=0, devices=2),
        "embed, 1 process + decoding thread": lambda: embed(images, vision, store=fresh()),
        "embed, texts": lambda: embed(texts, words, store=fresh()),
        "sentence-transformers": library,
        "plain loop, texts": loop,
    }


def _texts(count: int) -> list[str]:
    """Different sentences of 2 to 40 words, as facts of captions and whole captions are."""
    nouns = ("dog", "bus", "man", "table", "pizza", "giraffe", "window", "street", "beach", "clock")
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 14, count)
    return [
        f"photo {i}: " + ", ".join(f"a {nouns[n]} by a {nouns[m]}" for n, m in rng.integers(0, len(nouns), (k, 2)))
        for i, k in enumerate(lengths)
    ]


def _seconds(way: Callable[[], Any]) -> float:
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def _markdown(seconds: dict[str, float], ratios: dict[str, list[float]], size: dict[str, int]) -> str:
    lines = [", ".join(f"{count:,} {name}" for name, count in size.items()), "", "| way | seconds |", "|---|---|"]
    lines += [f"| {name} | {value:.2f} |" for name, value in seconds.items()]
    lines += ["", "| ratio | median | lowest | highest | must be |", "|---|---|---|---|---|"]
    for name, _, _, must in RATIOS:
        each = ratios[name]
        lines.append(f"| {name} | {statistics.median(each):.2f} | {min(each):.2f} | {max(each):.2f} | {must} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
