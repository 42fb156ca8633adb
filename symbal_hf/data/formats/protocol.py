"""What a format is: it knows its files, reads them as one table, and copies them with other captions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from symbal_hf.core.errors import BadData

Row = Mapping[str, Any]
HEAD = 20  # rows that tell what a table holds
FLAG, ERRORS = "symbal_flag", "symbal_errors"  # columns that a repair may add


@dataclass(frozen=True)
class Table:
    """The rows of a source.

    Attributes:
        read: the rows from the first on, without the columns that are named (where that saves anything).
        values: one column whose values are read when they are asked for, by its name; None where rows are mappings in
            memory or of a text file, and may lack columns.
        chat: the column of the conversations that the captions come from. Ids of such rows end in #2, #3 and so on
            where they come again, since one image may have several conversations.
    """

    columns: list[str]  # names; of a file that is read row by row those of its first rows (`in_memory` knows all)
    read: Callable[[Collection[str]], Iterable[Row]]
    values: Callable[[str], Sequence[Any]] | None = None
    heavy: frozenset[str] = frozenset()  # columns that hold files, which nobody reads to learn what a table is
    name: str = ""  # what was read, in words; of a table that no source has been named for yet, its format
    root: Path | None = None  # the folder that image paths are relative to, where it is known
    chat: str | None = None

    def __iter__(self) -> Iterator[Row]:
        return iter(self.read(()))

    def column(self, name: str) -> Sequence[Any]:
        """One column of all rows."""
        return self.values(name) if self.values is not None else [row.get(name) for row in self]

    def head(self, rows: int = HEAD) -> list[Row]:
        """The first rows, without the bytes of images."""
        return list(itertools.islice(self.read(self.heavy), rows))

    def in_memory(self) -> Table:
        """The same table with its rows and all their columns held here."""
        return replace(table_of(self), name=self.name, root=self.root, chat=self.chat)


def column_names(rows: Iterable[Row]) -> list[str]:
    """The columns of all rows."""
    return list(dict.fromkeys(itertools.chain.from_iterable(rows)))


def table_of(rows: Iterable[Row], columns: list[str] | None = None, *, name: str = "") -> Table:
    """Rows in memory as a table."""
    held = list(rows)
    return Table(column_names(held) if columns is None else columns, lambda _: held, name=name)


def streamed(read: Callable[[], Iterator[Row]], columns: list[str] | None = None, *, name: str = "") -> Table:
    """Rows that are read from their file one by one, each time anew."""
    if columns is None:
        columns = column_names(itertools.islice(read(), HEAD))
    return Table(columns, lambda _: read(), name=name)


@dataclass(frozen=True)
class Edit:
    """What becomes of one row."""

    keep: bool = True
    texts: tuple[str, ...] | None = None  # of its caption, one for each of the old; None where these stay


class Edits(Protocol):
    """What changes in a table as it is copied; rows are told by their number in the source, from 0."""

    column: str  # of captions or conversations
    chat: bool  # whether it holds conversations

    @property
    def wrong(self) -> Container[int]:
        """The rows that `edit` is asked about, each once."""

    @property
    def flags(self) -> bool:
        """Whether every row gets the columns FLAG and ERRORS."""

    def edit(self, number: int, texts: Sequence[str]) -> Edit:
        """What becomes of a row whose caption stands in these texts."""

    def flag_of(self, number: int) -> dict[str, Any]:
        """The added columns of a row."""

    def passes(self, rows: int) -> None:
        """Count rows that come by."""


class Format(Protocol):
    """One format of files."""

    name: str

    def sniff(self, path: Path) -> bool:
        """Whether this file, which no format before this one has taken, is of it."""

    def rows(self, files: Sequence[Path]) -> Table:
        """The table in these files; several only where they are its shards."""


class CopiedFormat(Format, Protocol):
    """A format that is also written."""

    def copy(self, files: Sequence[Path], folder: Path, edits: Edits) -> Path:
        """Write the table into `folder` with `edits`, and return it: untouched rows keep every byte."""


def check_columns(columns: Sequence[str], edits: Edits) -> None:
    """Raise `BadData` where the columns do not have the captions, or have those that are to be added."""
    if edits.flags and (taken := {FLAG, ERRORS} & set(columns)):
        raise BadData(f"the source has a column {min(taken)!r} already; repair what it was made from.")
    if columns and edits.column not in columns:
        raise BadData(
            f"the source has no column {edits.column!r} but {', '.join(map(str, columns))}; where the joined table has "
            "the captions, audit that table and join the other."
        )
