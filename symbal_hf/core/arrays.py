"""Arrays too large to hold: on disk, mapped into memory, and let go of after use."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

IN_MEMORY = 2**30  # bytes; a larger array goes to disk
ROWS = 1024  # moved at once


def zeros(
    shape: Sequence[int], dtype: DTypeLike, *, folder: Path | None = None, in_memory: int = IN_MEMORY
) -> NDArray[Any]:
    """An array of zeros; one of more than `in_memory` bytes is a file in `folder` that vanishes with it.

    Args:
        shape: of the array.
        dtype: of its numbers.
        folder: on a disk; the system's for temporary files by default, which may itself be memory.
        in_memory: bytes.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size <= in_memory:
        return np.zeros(shape, dtype)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(size)
        return np.memmap(file, dtype, "r+", shape=tuple(shape))


def release(array: NDArray[Any]) -> None:
    """Let the system take back the memory of an array that is mapped from a file; it is read again when it is used."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def without(array: NDArray[Any], rows: Sequence[int]) -> NDArray[Any]:
    """The array without some of its rows; the others move up in place, so that no second one is needed."""
    if not rows:
        return array
    keep = np.delete(np.arange(len(array)), sorted(rows))
    for start in range(0, len(keep), ROWS):
        part = keep[start : start + ROWS]
        array[start : start + len(part)] = array[part]
    return array[: len(keep)]
