"""The unit of every test is the image: several captions of one image, or copies of it, count once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Units:
    """Which image each of N rows shows.

    Attributes:
        image: (N,) index of its image, from 0 and without a gap; None where every row has its own.

    >>> units = Units(np.array([0, 0, 1]))
    >>> units.any(np.array([False, True, False])), units.first(np.array([True, True, True]))
    (array([ True, False]), array([ True, False,  True]))
    """

    image: NDArray[np.int64] | None = None

    def count(self, rows: int) -> int:
        """How many images so many rows show."""
        return rows if self.image is None else int(self.image.max(initial=-1)) + 1

    def any(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(M, ...) of each image, whether it holds for any of its rows (N, ...)."""
        return rows if self.image is None else np.logical_or.reduceat(rows[self._order], self._starts)

    def largest(self, values: NDArray[Any]) -> NDArray[Any]:
        """(M, ...) of each image, the largest value of its rows (N, ...)."""
        return values if self.image is None else np.maximum.reduceat(values[self._order], self._starts)

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """(N,) the rows, image by image."""
        assert self.image is not None
        return np.argsort(self.image, kind="stable")

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """(M,) where in that order each image begins."""
        assert self.image is not None
        return np.flatnonzero(np.diff(self.image[self._order], prepend=-1))

    def first(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """(N,) the rows of a mask, of each image the first alone."""
        if self.image is None:
            return rows
        chosen = np.flatnonzero(rows)
        _, index = np.unique(self.image[chosen], return_index=True)
        out = np.zeros(len(rows), bool)
        out[chosen[index]] = True
        return out


def units_of(shown: Sequence[str | None] | None, contents: NDArray[Any] | None = None) -> Units:
    """Rows of one image, by its name or by what it looks like to an encoder.

    Args:
        shown: what names the image of each of N rows, None where nothing does.
        contents: (N, D) what an encoder made of each image: equal only for equal pixels; copies under other names are
            known by it.
    """
    names: list[Any] = [] if shown is None else list(shown)
    if contents is not None:
        names = [row.tobytes() for row in np.ascontiguousarray(contents)]
    index: dict[Any, int] = {}
    image = [index.setdefault(row if name is None else name, len(index)) for row, name in enumerate(names)]
    return Units(np.array(image, np.int64) if len(index) < len(image) else None)
