"""Which rows and columns of a source are read: usual names, what was asked for, and why one cannot be used."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData

IDS = ("id", "image_id", "row_id")
CAPTIONS = ("caption", "generated_caption", "text")
IMAGES = ("image", "image_path", "images", "file_name", "file", "path")
URLS = ("image_url", "url")
TABLES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".tar")
PICTURES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))
TEXTS = (".txt", ".caption", ".cap")  # beside a picture


@dataclass(frozen=True)
class Unusable:
    """In the place of a caption: why this row has none that can be audited."""

    reason: str


def find_column(
    role: str, asked: str | None, usual: Sequence[str], columns: Sequence[str], *, required: bool = False
) -> str | None:
    """The column that plays this role: the one asked for, else the first with a usual name, else None.

    Raises:
        BadData: the column that was asked for is not there, or none is that is required.
    """
    if asked is not None:
        if asked not in columns:
            there = ", ".join(map(repr, columns)) or "none"
            raise BadData(f"no column {asked!r} for the {role}; the source has {there}.")
        return asked
    name = next((n for n in usual if n in columns), None)
    if name is None:  # URL and TEXT, as in LAION's tables
        name = next((c for n in usual for c in columns if str(c).lower() == n), None)
    if name is None and required:
        raise BadData(
            f"no {role} column ({', '.join(usual)}) among {', '.join(map(repr, columns)) or 'no columns'}; "
            f"name it with --{role}-column."
        )
    return name


def chosen_root(image_root: str | Path | None, own: Path | None) -> Path | None:
    """The folder that image paths must stay inside: the one that is asked for, else the source's own."""
    if image_root is None:
        return own
    root = Path(image_root).resolve()
    if not root.is_dir():
        raise FileNotFoundError(f"image_root {image_root} is no folder.")
    return root


def sampled(rows: Iterator[tuple[int, Any]], sample: int | None, seed: int) -> Iterable[tuple[int, Any]]:
    """`sample` of the numbered rows, each with the same chance, by one pass over them (Vitter's reservoir, 1985)."""
    if sample is None:
        return rows
    draw, kept = random.Random(seed), list(itertools.islice(rows, sample))
    for seen, row in enumerate(rows, sample + 1):
        if (index := draw.randrange(seen)) < sample:
            kept[index] = row
    return sorted(kept, key=lambda row: row[0])
