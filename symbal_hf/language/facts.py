"""Captions become facts: one sentence each, with the row it came from (paper section 4.1)."""

from __future__ import annotations

import itertools
import operator
import os
import tempfile
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.language.sentences import sentences

__all__ = ["Facts", "TextsOnDisk", "sentences", "split_facts"]

PART = 65_536  # sentences that go to disk together


@dataclass(frozen=True)
class Facts:
    """The facts table: F sentences of N captions.

    Attributes:
        row: (F,) int64, the caption's position in the audited data, ascending.
        text: F sentences, in memory or, where there are very many, on disk. Where each stands in its caption
            `symbal_hf.language.sentences.split` tells.
        n_rows: N.
    """

    row: NDArray[np.int64]
    text: tuple[str, ...] | TextsOnDisk
    n_rows: int

    def __len__(self) -> int:
        return len(self.text)


class TextsOnDisk(Sequence[str]):
    """Texts in an Arrow file that is mapped into memory and vanishes with the object."""

    def __init__(self, parts: Iterable[Sequence[str]], folder: Path | None = None) -> None:
        """`parts` are written one after the other, into `folder` or the system's for temporary files."""
        import pyarrow as pa

        handle, name = tempfile.mkstemp(suffix=".arrow", prefix="facts-", dir=folder)
        os.close(handle)
        self.path = Path(name)
        weakref.finalize(self, self.path.unlink, missing_ok=True)
        schema = pa.schema([("text", pa.large_string())])
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for part in parts:
                if part:
                    writer.write_batch(pa.record_batch([pa.array(part, pa.large_string())], schema=schema))
        with pa.memory_map(name) as source:
            self._chunks = pa.ipc.open_file(source).read_all().column(0).chunks
        self._starts = [0, *itertools.accumulate(len(chunk) for chunk in self._chunks)]

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = operator.index(place)
        if not -len(self) <= place < len(self):
            raise IndexError(f"text {place} of {len(self)}")
        place %= len(self)
        chunk = bisect_right(self._starts, place) - 1
        return self._chunks[chunk][place - self._starts[chunk]].as_py()

    def __iter__(self) -> Iterator[str]:
        for chunk in self._chunks:
            for start in range(0, len(chunk), 4096):
                yield from chunk[start : start + 4096].to_pylist()


def split_facts(captions: Iterable[str], *, in_memory: int = 2_000_000) -> Facts:
    """The facts of N captions. A caption without a letter or digit contributes none.

    Args:
        captions: N texts.
        in_memory: more sentences than this go to a file, some hundred bytes each that need not be held.
    """
    rows, n, done = array("q"), 0, list[str]()

    def parts() -> Iterator[list[str]]:
        nonlocal n
        part: list[str] = []
        for row, caption in enumerate(captions):
            n = row + 1
            found = sentences(caption)
            rows.extend([row] * len(found))
            part += found
            if len(part) >= PART:
                yield part
                part = []
        yield part

    made = parts()
    for part in made:
        done += part
        if len(done) > in_memory:
            text: tuple[str, ...] | TextsOnDisk = TextsOnDisk(itertools.chain([done], made))
            break
    else:
        text = tuple(done)
    return Facts(np.array(rows, np.int64), text, n)
