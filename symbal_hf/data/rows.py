"""Which rows and columns of a source are read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData


def find_column(
    role: str, asked: str | None, usual: Sequence[str], columns: Sequence[str], *, required: bool = False
) -> str | None:
    """The column that plays this role: the one asked for, else the first with a usual name, else None.

    Raises:
        BadData: the column that was asked for is not there, or none is that is required.
    """
    if asked is not None:
        if asked not in columns:
            raise BadData(
                f"no column {asked!r} for the {role}; the source has {', '.join(map(repr, columns)) or 'none'}."
            )
        return asked
    found = next((n for n in usual if n in columns), None)
    if found is None:  # URL and TEXT, as in LAION's tables
        found = next((c for n in usual for c in columns if str(c).lower() == n), None)
    if found is None and required:
        raise BadData(
            f"no {role} column ({', '.join(usual)}) among {', '.join(map(repr, columns)) or 'no columns'}; "
            f"name it with --{role}-column."
        )
    return found


def column_of(rows: Any, name: str) -> Sequence[Any]:
    """One column of all rows; of shards and datasets one that reads a value when it is asked for."""
    if hasattr(rows, "column_names"):
        return rows[name]
    return [row.get(name) for row in rows]


def chosen_root(image_root: str | Path | None, own: Path | None) -> Path | None:
    """The folder that image paths must stay inside: the one that is asked for, else the source's own.

    Raises:
        FileNotFoundError: the one that is asked for is no folder.
    """
    if image_root is None:
        return own
    root = Path(image_root).resolve()
    if not root.is_dir():
        raise FileNotFoundError(f"image_root {image_root} is no folder.")
    return root


def limited(rows: Iterable[Any], limit: int | None) -> Iterator[Any]:
    """The first `limit` rows, or all where it is None."""
    if limit is not None and limit < 1:
        raise BadData(f"limit={limit}; it must be at least 1 row.")
    for place, row in enumerate(rows):
        if limit is not None and place >= limit:
            return
        yield row


def sampled(rows: Iterator[tuple[int, Any]], sample: int | None, seed: int) -> Iterable[tuple[int, Any]]:
    """`sample` of the numbered rows, each with the same chance, by one pass over them (Vitter's reservoir, 1985)."""
    if sample is None:
        return rows
    if sample < 1:
        raise BadData(f"sample={sample}; it must be at least 1 row.")
    draw, kept = random.Random(seed), list(itertools.islice(rows, sample))
    for seen, row in enumerate(rows, sample + 1):
        if (place := draw.randrange(seen)) < sample:
            kept[place] = row
    return sorted(kept, key=lambda row: row[0])
