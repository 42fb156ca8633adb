"""What all formats of text share: lines as they are written, values as JSON, and the errors of other files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.protocol import Edits, Row, Table, streamed

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


class TextFile:
    """A format of one text file, read record by record; a copy keeps every byte of what no edit changes."""

    columns: list[str] | None = None  # where the format names them
    about = ""  # what was read, in words, where that is not its name

    def rows(self, files: Sequence[Path]) -> Table:
        return streamed(lambda: self._checked(files[0]), self.columns, name=self.about)

    def _checked(self, path: Path) -> Iterator[Row]:
        try:
            yield from self.read(path)
        except csv.Error as error:
            why = f"{path} is no table that can be read ({error})"
            raise BadData(f"{why}; save it as UTF-8 with quoted fields.") from error
        except UnicodeDecodeError as error:
            raise BadData(f"{path} is not UTF-8 ({error.reason} at byte {error.start}).") from error

    def copy(self, files: Sequence[Path], folder: Path, edits: Edits) -> Path:
        source = files[0]
        with source.open("rb") as file:
            mark = BOM.decode() if file.read(len(BOM)) == BOM else ""
        out = folder / source.name
        with out.open("w", encoding="utf-8", newline="") as file:
            file.write(mark)
            file.writelines(self.edited(source, edits))
        return out

    def read(self, path: Path) -> Iterator[Row]:
        raise NotImplementedError

    def edited(self, source: Path, edits: Edits) -> Iterator[str]:
        """The pieces of its copy."""
        raise NotImplementedError


def written(value: Any, column: str, output_format: str) -> str:
    """A value as the text of a cell: nothing for None, JSON for what is nested; else raises `BadData`."""
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
