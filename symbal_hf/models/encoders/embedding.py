"""Embeddings of texts and images through the store, by any number of processes: what was computed is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.arrays import release, zeros
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.models.encoders.fitting import fitted, load
from symbal_hf.models.encoders.jobs import Job, Keys, batches_of, keep, keys_of, results, unreadable
from symbal_hf.models.encoders.launch import launch
from symbal_hf.models.encoders.lite import LiteVision
from symbal_hf.models.encoders.shards import MERGED, Shards, adopt, read_merged, write_all, write_merged
from symbal_hf.models.encoders.world import World, check_devices, given_world, join, own_device, told, wait

if TYPE_CHECKING:
    from symbal_hf.data.table import Images
    from symbal_hf.models.encoders.lite import MiniLM
    from symbal_hf.models.encoders.load import ImageEncoder, TextEncoder

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]
TEXTS, IMAGES = 512, 32  # to a batch


def quiet(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """Progress that shows nothing."""
    return items


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
    strategy: str = "auto",
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

    Which items are computed together depends on the items alone. So the values are the same, to the last bit, for any
    number of processes that run on like devices with the same number of threads, and a run that was stopped leaves
    exactly what it had not finished to the next, whatever number of processes that has.

    Under torchrun, `fabric run` or SLURM every process of the world calls this with the same items; each gets all
    results, and the store is that of rank 0.

    Args:
        items: N texts, or N encoded pictures.
        encoder: of `symbal_hf.models.encoders.load` or `symbal_hf.models.encoders.lite`, or an object that works alike.
        devices: processes on this machine, of one GPU each where the encoder is on one; 1 works in place. No more are
            started than there are batches.
        num_nodes: machines; more than 1 only under a launcher.
        strategy: "auto"; "ddp_fork" or "ddp_spawn", how Fabric starts processes; "in_place" works alone even where a
            launcher has started others, which then need not call this.
        precision: "auto", the encoder's own; "32-true", "bf16-true", "16-true".
        out: a folder for shards (by content key) as they are computed and, at the end, `embeddings.safetensors` with
            all values by id. By default shards lie beside the store until it has them.
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
    world = given_world() if strategy != "in_place" else None
    check_devices(encoder, devices, num_nodes, strategy, world)
    device = own_device(encoder, world.local_rank) if world is not None else None
    encoder = fitted(encoder, precision=precision, device=device, compiled=compiled)
    size = batch if batch is not None else (TEXTS if kind == "text" else IMAGES)
    store = store or Store()
    folder = Path(out) if out is not None else Path(f"{store.path}.shards")
    make = _Work(items, encoder, kind, store, folder, out is not None, names, progress, size, workers, compiled)
    if world is not None:
        return _in_world(make, world)
    adopt(folder, store, remove=out is None)
    keys, job = make.plan()
    processes = min(devices, len(job.batches))
    if processes > 1:
        launch(job, processes, strategy, folder, make.watch(len(job.batches)))
        adopt(folder, store, remove=out is None)
        keys, job = make.plan(keys)  # empty, unless another run took a shard away before the store had it
    make.in_place(job)
    return make.collect(keys)


@dataclass(frozen=True)
class _Work:
    """One call of `embed`."""

    items: Sequence[str] | Images
    encoder: Any
    kind: str
    store: Store
    folder: Path
    lasting: bool
    names: tuple[str, ...]
    progress: Progress
    size: int
    workers: int | None
    compiled: str | None

    @property
    def version(self) -> str:
        """Changes with whatever the values depend on."""
        version = getattr(self.encoder, "fingerprint", self.encoder.name)  # MiniLM has one version, under its name
        return version if self.compiled is None else f"{version}|{self.compiled}"

    def plan(self, keys: Keys | None = None) -> tuple[Keys, Job]:
        """The key of each row, and what is left to do."""
        keys = keys or keys_of(self.items, self.kind, self.version)
        batches = batches_of(self.items, keys, self.kind, self.store, self.size)
        wanted = {row: k for rows in batches for row in rows if (k := keys.of[row]) is not None}
        return keys, Job(self.items, self.encoder, batches, wanted, self.kind, self.workers, self.compiled)

    def in_place(self, job: Job) -> None:
        """Do a job here, straight into the store."""
        if not job.batches:
            return
        if self.compiled is not None:
            load(self.encoder, self.compiled)
        shards = Shards(self.folder, Shards.name_of_run(), 0, self.kind)
        if self.lasting:
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            for done in self.progress(results(job, range(len(job.batches))), f"{self.kind}s", len(job.batches)):
                keep(self.store, done, self.kind)
                if self.lasting:
                    shards.add(done)
        finally:
            shards.flush()

    def watch(self, total: int) -> Callable[[Iterator[int]], None]:
        """Shows batches as they are finished elsewhere."""

        def show(finished: Iterator[int]) -> None:
            for _ in self.progress(finished, f"{self.kind}s", total):
                pass

        return show

    def collect(self, keys: Keys) -> Embedded:
        """All results, from the store; with `out` also as one file."""
        if self.kind == "text":
            values, bad = self._texts(keys), dict[int, str]()
        else:
            values, bad = self._images(keys)
        if self.lasting:
            self.write(self.folder / MERGED, values, bad)
        return Embedded(self.names, values, bad)

    def write(self, path: Path, values: NDArray[Any], bad: dict[int, str]) -> None:
        """All results as one file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_merged(path, self.names, values, bad, {"encoder": str(self.encoder.name), "version": self.version})

    def _texts(self, keys: Keys) -> NDArray[np.float32]:
        place: dict[bytes, int] = {}
        rows = [place.setdefault(k, len(place)) for k in keys.of if k is not None]
        if not rows:
            return np.zeros((0, getattr(self.encoder, "dim", 384)), np.float32)
        known = self.store.get(list(place))
        table = np.stack([np.frombuffer(known[k], np.float32) for k in place])
        return table[rows]

    def _images(self, keys: Keys) -> tuple[NDArray[Any], dict[int, str]]:
        lite = isinstance(self.encoder, LiteVision)
        shape, dtype = ((65, 384), np.float16) if lite else ((self.encoder.dim,), np.float32)
        values, bad = zeros((len(keys.of), *shape), dtype, folder=self.store.path.parent), dict(keys.bad)
        for start in range(0, len(keys.of), 256):
            part = list(enumerate(keys.of[start : start + 256], start))
            found = self.store.get([k for _, k in part if k is not None])
            lost = {k: unreadable(k) for _, k in part if k is not None and k not in found}
            reasons = self.store.get(list(lost.values()))
            for row, k in part:
                if k in found:
                    values[row] = np.frombuffer(found[k], dtype).reshape(shape)
                elif k is not None:
                    bad[row] = reasons[lost[k]].decode("utf-8")
            release(values)
        return values, dict(sorted(bad.items()))


def _in_world(make: _Work, world: World) -> Embedded:
    """The same by the processes of a launcher: rank 0 plans and merges, all compute, all get everything."""
    join(world)
    keys: Keys | None = None
    first: Any = None
    if world.rank == 0:
        try:
            adopt(make.folder, make.store, remove=not make.lasting)
            keys, plan = make.plan()
            # Ranks of one run share a name that no other run has.
            first = (plan.batches, plan.keys, make.folder.resolve(), Shards.name_of_run())
        except Exception as error:
            first = error
    batches, wanted, folder, run = told(first, world)
    job = Job(make.items, make.encoder, batches, wanted, make.kind, make.workers, make.compiled)
    job = replace(job, share=max(1, world.size // world.nodes))
    if batches:
        load(make.encoder, make.compiled)
    share = range(world.rank, len(batches), world.size)
    dones: Iterable[Any] = results(job, share)
    if world.rank == 0 and share:
        dones = make.progress(dones, f"{make.kind}s", len(share))
    folder.mkdir(parents=True, exist_ok=True)
    write_all(Shards(folder, run, world.rank, make.kind), dones)
    wait(world)
    result: Embedded | None = None
    last: Any = None
    if world.rank == 0:
        try:
            adopt(folder, make.store, remove=not make.lasting)
            assert keys is not None
            if left := sum(len(rows) for rows in make.plan(keys)[1].batches):
                raise BadData(
                    f"{left} results of other processes are not in {folder}; give out=, a folder that all nodes see."
                )
            result = make.collect(keys)
            last = folder / (MERGED if make.lasting else f"merged-{run}.safetensors")
            if not make.lasting:
                make.write(last, result.values, result.bad)
        except Exception as error:
            last = error
    path = told(last, world)
    if result is None:
        result = Embedded(*read_merged(path))
    wait(world)
    if world.rank == 0 and not make.lasting:
        path.unlink(missing_ok=True)
        adopt(folder, make.store, remove=True)  # which leaves no empty folder
    return result


def _kind(items: Sequence[str] | Images, encoder: Any) -> str:
    if isinstance(items, str):
        raise BadData("items is one text; give a list of texts.")
    kind = "image" if hasattr(items, "encoded") else "text"
    able = hasattr(encoder, "pixels") if kind == "image" else not isinstance(encoder, LiteVision)
    if not able or not (hasattr(encoder, "encode") or hasattr(encoder, "encode_pixels")):
        raise BadData(f"{getattr(encoder, 'name', encoder)} encodes no {kind}s; give an encoder that does.")
    return kind


def _alone(devices: int, num_nodes: int) -> str:
    return "in_place" if devices == num_nodes == 1 else "auto"


def embed_texts(
    texts: Sequence[str],
    encoder: TextEncoder | MiniLM,
    *,
    store: Store,
    progress: Progress = quiet,
    batch: int = TEXTS,
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str | None = None,
    precision: str = "auto",
) -> NDArray[np.float32]:
    """(T, D) float32 unit vectors of `texts`; each different text is encoded once, ever.

    Args:
        texts: T texts.
        encoder: what turns them into vectors.
        store: where vectors are kept.
        progress: wraps the loop.
        batch: texts between two writes to the store.
        devices: and `num_nodes`, `strategy`, `precision`: see `embed`. Left out, they work in place even under a
            launcher, since they may be called by one of its processes alone.
    """
    return embed(
        texts, encoder, store=store, progress=progress, batch=batch, devices=devices, num_nodes=num_nodes,
        strategy=strategy or _alone(devices, num_nodes), precision=precision,
    ).values  # fmt: skip


@overload
def embed_images(
    images: Images, encoder: LiteVision, *, store: Store, progress: Progress = quiet, batch: int = IMAGES,
    devices: int = 1, num_nodes: int = 1, strategy: str | None = None, precision: str = "auto",
    workers: int | None = None,
) -> tuple[NDArray[np.float16], dict[int, str]]: ...  # fmt: skip


@overload
def embed_images(
    images: Images, encoder: ImageEncoder, *, store: Store, progress: Progress = quiet, batch: int = IMAGES,
    devices: int = 1, num_nodes: int = 1, strategy: str | None = None, precision: str = "auto",
    workers: int | None = None,
) -> tuple[NDArray[np.float32], dict[int, str]]: ...  # fmt: skip


def embed_images(
    images: Images, encoder: LiteVision | ImageEncoder, *, store: Store, progress: Progress = quiet,
    batch: int = IMAGES, devices: int = 1, num_nodes: int = 1, strategy: str | None = None, precision: str = "auto",
    workers: int | None = None,
) -> tuple[NDArray[Any], dict[int, str]]:  # fmt: skip
    """Embeddings of N images, and the reason for each row that could not be read (its embeddings are 0).

    Args:
        images: N encoded pictures.
        encoder: (N, D) float32 unit vectors come from an `ImageEncoder`; (N, 65, 384) float16 unit embeddings of
            regions from `LiteVision`.
        store: where embeddings are kept.
        progress: wraps the loop.
        batch: images decoded ahead, and between two writes to the store.
        devices: and `num_nodes`, `strategy`, `precision`, `workers`: see `embed_texts` and `embed`.
    """
    found = embed(
        images, encoder, store=store, progress=progress, batch=batch, devices=devices, num_nodes=num_nodes,
        strategy=strategy or _alone(devices, num_nodes), precision=precision, workers=workers,
    )  # fmt: skip
    return found.values, found.bad
