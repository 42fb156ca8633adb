"""What all formats of text share: lines as they are written, values as JSON, and the errors of other files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.protocol import Row

BOM = b"\xef\xbb\xbf"


def literal(value: Any, *, ascii_only: bool = False, indent: str | None = None) -> str:
    """The value as JSON; what UTF-8 cannot hold (half a surrogate pair) is escaped in any case."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def lines(path: Path, newline: str = "") -> Iterator[str]:
    """The lines with their ends as they are."""
    with path.open(encoding="utf-8-sig", newline=newline) as file:
        yield from file


def checked(path: Path, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a text file; raises `BadData` where it is none."""
    try:
        yield from rows
    except csv.Error as error:
        raise BadData(f"{path} is no table that can be read ({error}); save it as UTF-8 with quoted fields.") from error
    except UnicodeDecodeError as error:
        raise BadData(f"{path} is not UTF-8 ({error.reason} at byte {error.start}).") from error


def copy_text(source: Path, folder: Path, pieces: Iterable[str]) -> Path:
    """Write the pieces to a file of the name of `source`, which has a byte order mark where that has one."""
    with source.open("rb") as file:
        mark = BOM.decode() if file.read(len(BOM)) == BOM else ""
    out = folder / source.name
    with out.open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        file.writelines(pieces)
    return out


def written(value: Any, column: str, output_format: str) -> str:
    """A value as the text of a cell: nothing for None, JSON for what is nested.

    Raises:
        BadData: a value that no text holds.
    """
    try:
        text = cell(literal(value) if isinstance(value, (bytes, dict, list)) else value)
        text.encode("utf-8")
        literal(value)
    except (TypeError, ValueError) as error:  # among them half a surrogate pair, which only JSON can hold
        raise BadData(
            f"the column {column!r} holds what {output_format} cannot hold ({error}); give --output-format parquet "
            "(output_format='parquet'), or jsonl for text."
        ) from error
    return text


def cell(value: Any) -> str:
    """A value as the text of a CSV cell."""
    if value is None or isinstance(value, str):
        return value or ""
    return literal(value) if isinstance(value, (dict, list, bool)) else str(value)
