"""Results leave a process as safetensors files with content keys, so that a process that ends takes nothing with it."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.files import write_whole
from symbal_hf.core.store import Store
from symbal_hf.models.encoders.jobs import Done, keep, unreadable

log = logging.getLogger(__name__)
MERGED = "embeddings.safetensors"
HALF = 3600  # seconds after which nobody is writing at a part any more
EVERY = 1.0  # seconds of work between two shards of a process: what a killed one loses


class Shards:
    """Writes what one process of a run computes into a folder."""

    def __init__(self, folder: Path, run: str, rank: int, kind: str) -> None:
        self.folder, self.run, self.rank, self.kind = folder, run, rank, kind
        self._waiting: list[Done] = []
        self._count, self._written = 0, time.monotonic()

    @staticmethod
    def name_of_run() -> str:
        """A name that no other run has."""
        return uuid.uuid4().hex[:8]

    def add(self, done: Done) -> None:
        """Take the results of one batch; they are on disk a second later at most, once the next has come."""
        self._waiting.append(done)
        if time.monotonic() - self._written >= EVERY:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            name = f"shard-{self.run}-{self.rank}-{self._count}-{len(self._waiting)}.safetensors"
            write_whole(self.folder / name, _encoded(self._waiting, self.kind))
            self._count += 1
            self._waiting = []
        self._written = time.monotonic()


def _encoded(dones: Sequence[Done], kind: str) -> bytes:
    from safetensors.numpy import save

    keys = [k for done in dones for k in done.values]
    reasons = {k.hex(): reason for done in dones for k, reason in done.reasons.items()}
    tensors = {"keys": np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), 32)}
    if keys:
        tensors["values"] = np.stack([v for done in dones for v in done.values.values()])
    return save(tensors, {"kind": kind, "reasons": json.dumps(reasons)})


def finished(folder: Path, run: str) -> dict[str, int]:
    """File name -> batches, of the shards of a run that are there."""
    return {p.name: int(p.stem.rpartition("-")[2]) for p in folder.glob(f"shard-{run}-*.safetensors")}


def adopt(folder: Path, store: Store, *, remove: bool) -> None:
    """Put what lies in the shards of a folder into the store, whichever run and however many processes left them.

    Args:
        folder: where they are; it need not exist.
        store: where results are kept.
        remove: delete each shard that the store has, and the folder once it is empty.
    """
    if not folder.is_dir():
        return
    from safetensors import SafetensorError

    for path in sorted(folder.glob("shard-*.safetensors")):
        try:
            _adopt_one(path, store)
        except FileNotFoundError:  # another run has put it into the store
            continue
        except (SafetensorError, KeyError, ValueError) as error:
            log.warning(
                "the shard %s cannot be read (%s) and was left out; what it held is computed again.", path, error
            )
        if remove:
            path.unlink(missing_ok=True)
    if remove:
        for path in folder.glob("*.part"):  # halves of shards, of processes that were killed as they wrote
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > HALF:
                    path.unlink()
        with suppress(OSError):  # not empty, or another run was first
            folder.rmdir()


def _adopt_one(path: Path, store: Store) -> None:
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        told, keys = file.metadata(), [row.tobytes() for row in file.get_tensor("keys")]
        reasons = {bytes.fromhex(k): reason for k, reason in json.loads(told["reasons"]).items()}
        missing = set(store.missing([*keys, *map(unreadable, reasons)]))
        if missing:
            values = file.get_tensor("values") if keys else ()
            new = {k: v for k, v in zip(keys, values, strict=True) if k in missing}
            keep(store, Done(new, reasons), told["kind"])


def write_merged(
    path: Path, ids: Sequence[str], values: NDArray[Any], bad: Mapping[int, str], about: Mapping[str, str]
) -> None:
    """Write all N embeddings in the order of the rows as one file.

    Args:
        path: the file: a tensor "values" (N, ...), and in its metadata "ids" and "bad" as JSON.
        ids: N row ids.
        values: N embeddings.
        bad: row -> reason; their embeddings are 0.
        about: more metadata, such as the encoder's name.
    """
    from safetensors.numpy import save

    told = {"ids": json.dumps(list(ids)), "bad": json.dumps({str(k): v for k, v in bad.items()}), **about}
    write_whole(path, save({"values": np.ascontiguousarray(values)}, told))


def read_merged(path: Path) -> tuple[tuple[str, ...], NDArray[Any], dict[int, str]]:
    """Ids, (N, ...) embeddings and row -> reason of what `write_merged` wrote.

    Raises:
        FileNotFoundError: no such file.
    """
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        told = file.metadata()
        bad = {int(k): v for k, v in json.loads(told["bad"]).items()}
        return tuple(json.loads(told["ids"])), file.get_tensor("values"), bad


def write_all(shards: Shards, dones: Iterable[Done]) -> int:
    """Write everything, what was done before an error among it; gives the number of batches."""
    count = 0
    try:
        for done in dones:
            shards.add(done)
            count += 1
    finally:
        shards.flush()
    return count
