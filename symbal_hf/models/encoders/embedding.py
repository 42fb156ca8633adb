"""Embeddings of texts and images through the store, by any number of processes: what was computed is read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.arrays import release, zeros
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.core.progress import Progress as Progress  # handed on
from symbal_hf.core.progress import quiet as quiet
from symbal_hf.core.store import Store
from symbal_hf.data.table import Images
from symbal_hf.models.encoders import processes
from symbal_hf.models.encoders.base import ReadsTexts, SeesImages, fitted, own_gpu
from symbal_hf.models.encoders.jobs import Done, Job, Keys, batches_of, keep, keys_of, results, unreadable
from symbal_hf.models.encoders.lite import LiteVision
from symbal_hf.models.encoders.processes import World

TEXTS, IMAGES = 512, 32  # to a batch
Values = tuple[NDArray[Any], dict[int, str]]  # of all rows; row -> why it has none
ROUND = 4  # batches of each process between two times that several machines send theirs to the store
CHUNK = 256  # rows that are read or sent at once


@dataclass(frozen=True)
class Embedded:
    """Embeddings of N items, in the order of the items.

    Attributes:
        ids: N row ids.
        values: (N, D) float32 unit vectors, or (N, 65, 384) float16 of `LiteVision`.
        bad: row -> why it could not be read; its values are 0.
    """

    ids: tuple[str, ...]
    values: NDArray[Any]
    bad: dict[int, str]


def embed(
    items: Sequence[str] | Images,
    encoder: Any,
    *,
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str | None = "auto",
    precision: str = "auto",
    out: str | Path | None = None,
    ids: Sequence[str] | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    batch: int | None = None,
    workers: int | None = None,
    compiled: str | None = None,
) -> Embedded:
    """Embed texts or images; each different one is computed once, ever, by one of the processes.

    Which items are computed together depends on the items alone: values are the same, to the last bit, for any number
    of processes (on like devices, with as many threads), and a run that was stopped leaves the rest to the next.

    Under torchrun, `fabric run` or SLURM every process of the world calls this with the same items; each gets all
    results, and the store is that of rank 0. Several machines need no disk in common.

    Args:
        items: N texts, or N encoded pictures.
        encoder: of `symbal_hf.models.encoders.load` or `symbal_hf.models.encoders.lite`, or an object that works alike.
        devices: processes on this machine, of one GPU each where the encoder is on one; 1 works in place. No more are
            started than there are batches.
        num_nodes: machines; more than 1 only under a launcher.
        strategy: "auto"; "ddp_fork" or "ddp_spawn", how Fabric starts processes; "in_place" works alone even where a
            launcher has started others, which then need not call this; None is "in_place" unless `devices` or
            `num_nodes` say otherwise.
        precision: "auto", the encoder's own; "32-true", "bf16-true", "16-true".
        out: a folder for `embeddings.safetensors`: the tensor "values" (N, ...), and as JSON in its metadata "ids" and
            "bad" (row -> reason).
        ids: N different row ids; the row numbers by default.
        store: where results are kept; by default the user's.
        progress: wraps the loop over batches; several processes have one, here.
        batch: items encoded between two writes; 512 texts or 32 images.
        workers: processes that decode images for each that encodes; see `symbal_hf.models.encoders.decoding.decoded`.
        compiled: backend of `torch.compile` ("inductor"); None does not compile.

    Raises:
        BadData: an option of no sense, or processes that cannot be started here.
        DeadRank: one of several processes is gone; a second call goes on where it stopped.
    """
    kind = _kind(items, encoder)
    names = tuple(map(str, range(len(items)))) if ids is None else tuple(ids)
    if len(names) != len(items) or len(set(names)) != len(names):
        raise BadData(f"{len(names)} ids, {len(set(names))} of them different, for {len(items)} items; give one each.")
    strategy = strategy or ("in_place" if devices == num_nodes == 1 else "auto")
    world = processes.given_world() if strategy != "in_place" else None
    processes.check_world(encoder, devices, num_nodes, strategy, world)
    gpu = own_gpu(encoder, world.local_rank) if world is not None else None
    encoder = fitted(encoder, precision=precision, device=gpu, compiled=compiled)
    job = Job(items, encoder, kind, workers, compiled)
    size = batch if batch is not None else (TEXTS if kind == "text" else IMAGES)
    run = _run if world is None else partial(_run_in, world)
    values, bad = run(job, store or Store(), size, progress, devices, strategy)
    if out is not None and (world is None or world.rank == 0):
        _write(Path(out) / "embeddings.safetensors", Embedded(names, values, bad), job)
    return Embedded(names, values, bad)


def _plan(job: Job, store: Store, size: int) -> tuple[Keys, Job]:
    """The key of each row, and the job with what is left to do."""
    keys = keys_of(job.items, job.kind, job.version)
    batches = batches_of(job, keys, store, size)
    return keys, replace(job, batches=batches, keys={row: k for rows in batches for row in rows if (k := keys.of[row])})


def _run(job: Job, store: Store, size: int, progress: Progress, devices: int, strategy: str) -> Values:
    """All results, after doing what is left; by processes of our own where by several."""
    keys, job = _plan(job, store, size)
    total = len(job.batches)
    show = partial(_show, progress, job.kind, total)
    if min(devices, total) > 1:
        with store.released():
            processes.launch(job, min(devices, total), strategy, store.path, show)
    else:
        show(_kept(results(job, range(total)), store, job))
    return _collected(job, keys, store)


def _run_in(world: World, job: Job, store: Store, size: int, progress: Progress, devices: int, strategy: str) -> Values:
    """All results on each process of a launcher, after doing what is left together."""
    processes.join(world)

    def plan() -> tuple[Any, ...]:
        keys, planned = _plan(job, store, size)
        return keys, planned.batches, planned.keys, store.path.resolve()

    keys, batches, wanted, path = processes.agreed(plan, world)
    job = replace(job, batches=batches, keys=wanted, share=max(1, world.size // max(1, world.nodes)))
    mine = range(world.rank, len(batches), world.size)
    show = partial(_show, progress if world.rank == 0 else quiet, job.kind, len(mine))
    if world.nodes != 1:
        show(_sent(results(job, mine), store, job, world))
        return _received(job, keys, store, world)
    store = store if world.rank == 0 else Store(path)  # which is on this machine
    show(_kept(results(job, mine), store, job))
    processes.wait(world)
    return _collected(job, keys, store)


def _show(progress: Progress, kind: str, total: int, finished: Iterable[Any]) -> None:
    for _ in progress(finished, f"{kind}s", total) if total else finished:
        pass


def _kept(done: Iterable[Done], store: Store, job: Job) -> Iterator[Done]:
    """Results, each when the store has it."""
    for each in done:
        keep(store, each, job.kind)
        yield each


def _sent(done: Iterator[Done], store: Store, job: Job, world: World) -> Iterator[Done]:
    """Results of this process, each when rank 0 has put it, and those of all others, into its store."""
    for _ in range(0, len(job.batches), world.size * ROUND):
        mine = list(islice(done, ROUND))
        for each in processes.gathered(mine, world):
            keep(store, each, job.kind)
        yield from mine


def _received(job: Job, keys: Keys, store: Store, world: World) -> Values:
    """All results, as rank 0 has them in its store."""
    mine: list[NDArray[Any]] = []

    def collect() -> tuple[Any, ...]:
        values, bad = _collected(job, keys, store)
        mine.append(values)
        return values.shape, values.dtype, bad

    shape, dtype, bad = processes.agreed(collect, world)
    values = mine[0] if mine else zeros(shape, dtype, folder=store.path.parent)
    for start in range(0, len(values), CHUNK):
        part = values[start : start + CHUNK]
        part[:] = processes.agreed(part.copy, world)
    processes.wait(world)
    return values, bad


def _collected(job: Job, keys: Keys, store: Store) -> Values:
    """All results, from the store."""
    if job.kind == "text":
        position: dict[bytes, int] = {}
        rows = [position.setdefault(k, len(position)) for k in keys.of if k is not None]
        if not rows:
            return np.zeros((0, getattr(job.encoder, "dim", 384)), np.float32), {}
        vectors = store.get(list(position))
        return np.stack([np.frombuffer(vectors[k], np.float32) for k in position])[rows], {}
    lite = isinstance(job.encoder, LiteVision)
    shape, dtype = ((65, 384), np.float16) if lite else ((job.encoder.dim,), np.float32)
    values, bad = zeros((len(keys.of), *shape), dtype, folder=store.path.parent), dict(keys.bad)
    for start in range(0, len(keys.of), CHUNK):
        part = {row: k for row, k in enumerate(keys.of[start : start + CHUNK], start) if k is not None}
        vectors = store.get(list(part.values()))
        marks = {k: unreadable(k) for k in part.values() if k not in vectors}
        reasons = store.get(list(marks.values()))
        for row, k in part.items():
            if k in vectors:
                values[row] = np.frombuffer(vectors[k], dtype).reshape(shape)
            else:
                bad[row] = reasons[marks[k]].decode()
        release(values)
    return values, dict(sorted(bad.items()))


def _kind(items: Sequence[str] | Images, encoder: Any) -> str:
    if isinstance(items, str):
        raise BadData("items is one text; give a list of texts.")
    kind, able = "text", isinstance(encoder, ReadsTexts)
    if isinstance(items, Images):
        kind, able = "image", isinstance(encoder, (SeesImages, LiteVision))
    if not able:
        raise BadData(f"{getattr(encoder, 'name', encoder)} encodes no {kind}s; give an encoder that does.")
    return kind


def _write(path: Path, result: Embedded, job: Job) -> None:
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    told = {"ids": json.dumps(result.ids), "bad": json.dumps({str(row): why for row, why in result.bad.items()})}
    told |= {"encoder": str(job.encoder.name), "version": job.version}
    write_whole(path, save({"values": np.ascontiguousarray(result.values)}, told))


def embed_texts(
    texts: Sequence[str], encoder: ReadsTexts, *, store: Store, strategy: str | None = None, **options: Any
) -> NDArray[np.float32]:
    """(T, D) float32 unit vectors of `texts`; each different text is encoded once, ever.

    Args:
        texts: T texts.
        encoder: what turns them into vectors.
        store: where vectors are kept.
        strategy: as of `embed`; left out, it works in place even under a launcher, since one of its processes alone
            may call this.
        options: more of `embed`: progress, batch, devices, num_nodes, precision. Its errors are those of `embed`.
    """
    return embed(texts, encoder, store=store, strategy=strategy, **options).values


def embed_images(
    images: Images, encoder: LiteVision | SeesImages, *, store: Store, strategy: str | None = None, **options: Any
) -> Values:
    """Embeddings of N images, and the reason for each row that could not be read (its embeddings are 0).

    Args:
        images: N encoded pictures.
        encoder: (N, D) float32 unit vectors come from an `ImageEncoder`; (N, 65, 384) float16 unit embeddings of
            regions from `LiteVision`.
        store: where embeddings are kept.
        strategy: see `embed_texts`.
        options: more of `embed`: progress, batch, devices, num_nodes, precision, workers.
    """
    result = embed(images, encoder, store=store, strategy=strategy, **options)
    return result.values, result.bad
