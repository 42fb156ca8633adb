"""Our own processes, started by Lightning Fabric inside a library call, whatever script or notebook it comes from."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData, DeadRank
from symbal_hf.core.files import write_whole
from symbal_hf.models.encoders.decoding import cores
from symbal_hf.models.encoders.fitting import bare, fitted, load
from symbal_hf.models.encoders.jobs import Job, results
from symbal_hf.models.encoders.shards import Shards, finished, write_all
from symbal_hf.models.encoders.world import hush, hushed

LOOK = 0.3  # seconds between two looks at what is finished
# What launchers tell their processes; ours belong to none.
FOREIGN = ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "RANK", "LT_CLI_USED",
           "LT_ACCELERATOR", "LT_STRATEGY", "LT_DEVICES", "LT_NUM_NODES", "LT_PRECISION")  # fmt: skip


@dataclass(frozen=True)
class _Start:
    """How processes are started.

    Attributes:
        method: "fork" or "spawn".
        threads: of each process; None for what Lightning gives it.
    """

    method: str
    threads: int | None


def how_to_start(encoder: Any, devices: int, strategy: str) -> _Start:
    """The way that works here.

    A forked process is ready at once and shares what is loaded, whatever the caller's script looks like. It cannot use
    a GPU that its parent has touched, and one that computes with several threads, as its parent has, never returns.

    Raises:
        BadData: no way works.
    """
    if multiprocessing.current_process().daemon:
        raise BadData(f"devices={devices}: this process is a daemon, which may start no others; give devices=1.")
    gpu = str(getattr(getattr(encoder, "place", None), "device", "cpu")).startswith("cuda")
    notebook = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    forks = sys.platform == "linux"
    if strategy in ("ddp_fork", "ddp_notebook"):
        method = "fork"
    elif strategy == "ddp_spawn":
        method = "spawn"
    elif notebook:
        method = "fork"
    else:
        method = "fork" if forks and not gpu and _threads(devices) == 1 else "spawn"
    if method == "spawn":
        if notebook:
            raise BadData("strategy='ddp_spawn' does not work in a notebook; leave it out, or run a script.")
        return _Start(method, None)
    if not forks:
        raise BadData(f"devices={devices} in a notebook needs Linux, which {sys.platform} is not; run a script.")
    import torch

    if gpu and torch.cuda.is_initialized():
        raise BadData(
            f"devices={devices}: CUDA is in use in this process, and a process forked from it can use no GPU; run a "
            "script without strategy='ddp_fork', or under torchrun, or give devices=1."
        )
    return _Start(method, 1)


def _threads(devices: int) -> int:
    """Threads that Lightning gives to each of several processes."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdigit() else max(1, cores() // devices)


def launch(job: Job, devices: int, strategy: str, folder: Path, watch: Callable[[Iterator[int]], None]) -> None:
    """Have `devices` processes compute a job into shards.

    Args:
        job: the work.
        devices: processes; each but the last on a GPU of its own where the encoder is on one.
        strategy: one of `STRATEGIES`.
        folder: of the shards.
        watch: is given an iterator over the batches as they are finished, in a thread of its own.

    Raises:
        DeadRank: a process was ended from outside.
        BadData: processes cannot be started here.
        Exception: what an encoder raised in one of them.
    """
    from lightning.fabric import Fabric
    from lightning.fabric.plugins.environments.lightning import LightningEnvironment
    from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

    start = how_to_start(job.encoder, devices, strategy)
    if start.method == "fork":
        load(job.encoder, None)  # once, in memory that all processes share
        work: Any = _Sent(job)
    else:
        work = _Sent(replace(job, encoder=bare(job.encoder)))
    run = Shards.name_of_run()
    folder.mkdir(parents=True, exist_ok=True)
    stop, others = threading.Event(), set(multiprocessing.active_children())
    watcher = threading.Thread(target=watch, args=(_as_finished(folder, run, devices, stop),), daemon=True)
    try:
        with _alone(), hushed(), _main_left_out(work, start.method):
            fabric: Any = Fabric(
                accelerator="cpu", devices=devices, strategy=f"ddp_{start.method}", plugins=[LightningEnvironment()]
            )
            watcher.start()
            fabric.launch(_rank, work, devices, folder, run, start.threads)
    except KeyboardInterrupt:  # which this process alone may have been sent
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    except ProcessRaisedException as error:
        rank = error.error_index
        raise _raised_by(folder, run, rank) or DeadRank(
            f"rank {rank} of {devices} failed ({str(error).strip().splitlines()[-1][:200]}); what was finished is "
            "kept, so run the same again."
        ) from error
    except ProcessExitedException as error:
        rank, end = error.error_index, error.signal_name or f"exit code {error.exit_code}"
        started = (folder / f"hello-{run}-{rank}").exists()
        count = sum(finished(folder, run).values())
        hint = "" if started else " before it began (a script that defines its own encoder needs a __main__ guard)"
        raise DeadRank(
            f"rank {rank} of {devices} was ended by {end}{hint}, with {count} of {len(job.batches)} batches finished "
            "and kept; run the same again, with any number of devices, and it goes on from there."
        ) from error
    finally:
        stop.set()
        if watcher.ident is not None:
            watcher.join()
        for path in [*folder.glob(f"hello-{run}-*"), *folder.glob(f"error-{run}-*"), *folder.glob(f"*-{run}-*.part")]:
            path.unlink(missing_ok=True)


class _Sent:
    """A job that can be sent to a new process, which is told to be quiet as it unpacks it."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return _unpack, (pickle.dumps(self.job),)
        except Exception as error:  # whatever an object of the caller's raises
            name = getattr(self.job.encoder, "name", type(self.job.encoder).__name__)
            raise BadData(
                f"{name} or its items cannot be sent to other processes ({error}); give devices=1, or "
                "strategy='ddp_fork' for an encoder on the CPU."
            ) from error

    @property
    def of_main(self) -> bool:
        """Whether the caller's script must be read to unpack it."""
        return b"__main__" in self.__reduce__()[1][0]


def _unpack(data: bytes) -> _Sent:
    hush()
    return _Sent(pickle.loads(data))


def _rank(fabric: Any, work: _Sent, devices: int, folder: Path, run: str, threads: int | None) -> None:
    """What each process does; it gives back nothing but files."""
    import torch

    rank = fabric.global_rank
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        write_whole(folder / f"hello-{run}-{rank}", "")
        encoder = fitted(work.job.encoder, device=_gpu_of(work.job.encoder, rank))
        job = replace(work.job, encoder=encoder, share=devices)
        load(encoder, job.compiled)
        share = range(rank, len(job.batches), devices)
        write_all(Shards(folder, run, rank, job.kind), results(job, share))
    except Exception as error:
        with suppress(Exception):  # an exception that cannot be sent is told in words by its traceback
            write_whole(folder / f"error-{run}-{rank}", pickle.dumps(error))
        raise


def _gpu_of(encoder: Any, rank: int) -> str | None:
    place = getattr(encoder, "place", None)
    return f"cuda:{rank}" if place is not None and place.device.startswith("cuda") else None


def _raised_by(folder: Path, run: str, rank: int) -> BaseException | None:
    """The exception that a process left, where it could."""
    try:
        error = pickle.loads((folder / f"error-{run}-{rank}").read_bytes())
    except Exception:  # none, or one that cannot be made again from its message
        return None
    return error if isinstance(error, BaseException) else None


def _as_finished(folder: Path, run: str, devices: int, stop: threading.Event) -> Iterator[int]:
    """A number for each finished batch, as its shard comes, until `stop`."""
    seen: set[str] = set()
    # Nothing is shown while processes are forked: one of them could inherit the lock of a progress bar, taken.
    while len(list(folder.glob(f"hello-{run}-*"))) < devices and not stop.wait(LOOK):
        pass
    while True:
        ended = stop.is_set()
        for name, batches in finished(folder, run).items():
            if name not in seen:
                seen.add(name)
                yield from range(batches)
        if ended:
            return
        stop.wait(LOOK)


@contextmanager
def _alone() -> Iterator[None]:
    """Without what another launcher has told this process, and leaving nothing to the next."""
    before = {name: os.environ.pop(name) for name in FOREIGN if name in os.environ}
    quiet = "TOKENIZERS_PARALLELISM" not in os.environ
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # forked, they would warn and do the same
    try:
        yield
    finally:
        for name in (*FOREIGN, *(("TOKENIZERS_PARALLELISM",) if quiet else ())):
            os.environ.pop(name, None)
        os.environ.update(before)


@contextmanager
def _main_left_out(work: _Sent, method: str) -> Iterator[None]:
    """New processes do not read the caller's script, which then needs no guard, unless the work needs its classes."""
    main = sys.modules["__main__"]
    if method != "spawn" or work.of_main:
        yield
        return
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    main.__spec__ = None
    if file is not None:
        del main.__file__
    try:
        yield
    finally:
        main.__spec__ = spec
        if file is not None:
            main.__file__ = file
