"""Several processes at one job: started here by Lightning Fabric, or given by torchrun, `fabric run` or SLURM."""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from symbal_hf.core.errors import BadData, DeadRank
from symbal_hf.core.store import Store
from symbal_hf.models.encoders.base import Lazy, device_of, fitted, own_gpu
from symbal_hf.models.encoders.decoding import cores
from symbal_hf.models.encoders.jobs import Job, keep, results

T = TypeVar("T")
LOOK = 0.3  # seconds between two looks at what is finished
SOURCE = re.compile(r"\[/[^\]]*\] ")  # the line of C++ that an error of gloo begins with
STRATEGIES = ("auto", "ddp_fork", "ddp_notebook", "ddp_spawn", "in_place")
LOGGERS = ("lightning.fabric", "lightning.pytorch")  # importing the first imports the second, which speaks for both
# What launchers tell their processes; ours belong to none.
FOREIGN = ("MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "NODE_RANK", "GROUP_RANK", "WORLD_SIZE", "RANK", "LT_CLI_USED",
           "LT_ACCELERATOR", "LT_STRATEGY", "LT_DEVICES", "LT_NUM_NODES", "LT_PRECISION")  # fmt: skip


@dataclass(frozen=True)
class World:
    """`size` processes on so many `nodes` (0: unknown) that a launcher started, as one of them sees it."""

    rank: int
    size: int
    local_rank: int
    nodes: int


def given_world() -> World | None:
    """The world of torchrun, `fabric run`, SLURM or an open process group; None where this process is alone."""
    env, world = os.environ, None
    if "TORCHELASTIC_RUN_ID" in env and "RANK" in env:
        size, local = int(env["WORLD_SIZE"]), int(env.get("LOCAL_WORLD_SIZE", env["WORLD_SIZE"]))
        world = World(int(env["RANK"]), size, int(env.get("LOCAL_RANK", 0)), -(-size // local))
    elif "SLURM_STEP_ID" in env and env.get("SLURM_JOB_NAME") not in ("bash", "interactive"):  # srun, not sbatch alone
        nodes = int(env.get("SLURM_NNODES", env.get("SLURM_JOB_NUM_NODES", 1)))
        world = World(int(env["SLURM_PROCID"]), int(env["SLURM_NTASKS"]), int(env.get("SLURM_LOCALID", 0)), nodes)
    elif "torch" in sys.modules:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            world = World(dist.get_rank(), dist.get_world_size(), int(env.get("LOCAL_RANK", 0)), 0)
    return world if world is not None and world.size > 1 else None


def join(world: World) -> None:
    """Connect to the other processes of the world, once."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return
    from lightning.fabric import Fabric

    each = world.size // world.nodes
    try:
        with _hushed():
            if os.environ.get("LT_CLI_USED") == "1":
                Fabric()  # it reads what the command was given, and connects at once
            else:
                Fabric(accelerator="cpu", devices=each, num_nodes=world.nodes, strategy="ddp").launch()
    except (RuntimeError, ValueError) as error:
        raise BadData(
            f"the {world.size} processes of the launcher cannot be connected: {str(error).rstrip('. ')}; mend the "
            "launch, or give strategy='in_place'."
        ) from error
    if not dist.is_initialized():
        raise BadData("the launcher started several processes that form no group; choose its strategy 'ddp'.")
    atexit.register(_leave)


def _leave() -> None:
    """Leave the group together at the end of the program: one that goes first makes gloo abort the others."""
    import torch.distributed as dist

    with suppress(Exception):
        if dist.is_initialized():
            dist.monitored_barrier(timeout=timedelta(seconds=20))
            dist.destroy_process_group()


@contextmanager
def _together(world: World) -> Iterator[Any]:
    """`torch.distributed`; where another process is gone, `DeadRank`."""
    import torch.distributed as dist

    try:
        yield dist
    except RuntimeError as error:
        reason = SOURCE.sub("", str(error)).splitlines()[0][:120]
        raise DeadRank(
            f"another of the {world.size} processes is gone or never came to embed its share, as rank {world.rank} "
            f"found ({reason}); what was finished is kept, so run the same again."
        ) from error


def agreed(make: Callable[[], T], world: World) -> T:
    """What `make` gives on rank 0, on every rank, which waits for it; an exception is raised on every rank."""
    box: list[Any] = [None]
    if world.rank == 0:
        try:
            box = [make()]
        except Exception as error:
            box = [error]
    with _together(world) as dist:
        dist.broadcast_object_list(box, src=0)
    if isinstance(box[0], Exception):
        raise box[0]
    return box[0]


def gathered(mine: Sequence[T], world: World) -> list[T]:
    """On rank 0 what all processes have, elsewhere nothing; all must call this, and wait for each other."""
    box: list[Any] | None = [None] * world.size if world.rank == 0 else None
    with _together(world) as dist:
        dist.gather_object(mine, box, dst=0)
    return [item for each in box or () for item in each]


def wait(world: World) -> None:
    """Until every rank has come this far."""
    with _together(world) as dist:
        dist.barrier()


def check_world(encoder: Any, devices: int, num_nodes: int, strategy: str, world: World | None) -> None:
    """Raises `BadData` for what cannot be started."""
    device, spread = device_of(encoder), getattr(getattr(encoder, "place", None), "device_map", None)
    several, size, gpus = devices > 1 and world is None, world.size if world is not None else 0, devices
    if several and device.startswith("cuda"):
        import torch

        gpus = torch.cuda.device_count()
    known, processes = ", ".join(map(repr, STRATEGIES)), f"devices={devices}, num_nodes={num_nodes}"
    for wrong, sentence in (
        (strategy not in STRATEGIES, f"strategy={strategy!r}; give one of {known} (others start a script anew)."),
        (devices < 1 or num_nodes < 1, f"{processes}; each must be at least 1."),
        (strategy == "in_place" and devices > 1, f"{processes} with strategy='in_place', which is one process; leave "
         "out one of the two."),
        (size > 0 and devices * num_nodes not in (1, size), f"{processes} are not the {size} processes that the "
         "launcher started; leave both out under a launcher."),
        (num_nodes > 1 and world is None, f"num_nodes={num_nodes}: processes on other machines cannot be started from "
         "here; start this program on each of them with torchrun, `fabric run` or srun."),
        (several and spread, f"device_map={spread!r} spreads one model over all GPUs, which leaves none to "
         f"devices={devices}; leave out one of the two."),
        (several and devices > gpus, f"devices={devices} and this machine has {gpus} GPUs; give at most that."),
        (several and not device.startswith(("cpu", "cuda")), f"devices={devices} works on CPUs and CUDA GPUs, not on "
         f"{device!r}; give devices=1."),
    ):  # fmt: skip
        if wrong:
            raise BadData(sentence)


def how_to_start(encoder: Any, devices: int, strategy: str) -> tuple[str, int | None]:
    """The way that works here: "fork" or "spawn", and the threads of each process (None for what Lightning gives it).

    A forked process is ready at once and shares what is loaded, whatever the caller's script looks like. It cannot use
    a GPU that its parent has touched, and one that computes with several threads, as its parent has, never returns.

    Raises:
        BadData: no way works.
    """
    if multiprocessing.current_process().daemon:
        raise BadData(f"devices={devices}: this process is a daemon, which may start no others; give devices=1.")
    gpu, linux = device_of(encoder).startswith("cuda"), sys.platform == "linux"
    notebook = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    if strategy == "auto":
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = int(given) if given.isdigit() else max(1, cores() // devices)  # as Lightning has it
        strategy = "ddp_fork" if notebook or (linux and not gpu and threads == 1) else "ddp_spawn"
    if strategy == "ddp_spawn":
        if notebook:
            raise BadData("strategy='ddp_spawn' does not work in a notebook; leave it out, or run a script.")
        return "spawn", None
    if not linux:
        raise BadData(f"devices={devices} in a notebook needs Linux, which {sys.platform} is not; run a script.")
    import torch

    if gpu and torch.cuda.is_initialized():
        raise BadData(
            f"devices={devices}: CUDA is in use in this process, and a process forked from it can use no GPU; run a "
            "script without strategy='ddp_fork', or under torchrun, or give devices=1."
        )
    return "fork", 1


def launch(job: Job, devices: int, strategy: str, store: Path, show: Callable[[Iterator[int]], None]) -> None:
    """Have `devices` processes do a job into the store at a path, which must not be open here.

    `show` is given an iterator over the batches as they are finished, in a thread of its own.

    Raises:
        DeadRank: a process was ended from outside.
        BadData: processes cannot be started here.
        Exception: what an encoder raised in one of them.
    """
    from lightning.fabric import Fabric
    from lightning.fabric.plugins.environments.lightning import LightningEnvironment
    from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

    method, threads = how_to_start(job.encoder, devices, strategy)
    if method == "fork" and isinstance(job.encoder, Lazy):
        job.encoder.load()  # once, in memory that all processes share
    context, sent = multiprocessing.get_context(method), _Sent(job)
    # Of each process: 1 once it has begun, and 1 for each finished batch, without a lock that it could take to its end.
    counts, errors = context.RawArray("l", devices), context.SimpleQueue()
    stop, before = threading.Event(), set(multiprocessing.active_children())
    watcher = threading.Thread(target=show, args=(_as_finished(counts, stop),), daemon=True)
    try:
        with _apart(sent, method), _hushed():
            fabric: Any = Fabric(
                accelerator="cpu", devices=devices, strategy=f"ddp_{method}", plugins=[LightningEnvironment()]
            )
            watcher.start()
            fabric.launch(_rank, sent, devices, store, counts, errors, threads)
    except KeyboardInterrupt:  # which this process alone may have been sent
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    except ProcessRaisedException as error:
        last = str(error).strip().splitlines()[-1][:200]
        raised: Exception = DeadRank(
            f"rank {error.error_index} of {devices} failed ({last}); what was finished is kept, so run the same again."
        )
        with suppress(Exception):  # of an exception that cannot be made again from its message
            raised = raised if errors.empty() else pickle.loads(errors.get())
        raise raised from error
    except ProcessExitedException as error:
        begun, finished = counts[error.error_index] > 0, sum(max(0, count - 1) for count in counts)
        script = "" if begun else " before it began (a script that defines its own encoder needs a __main__ guard)"
        raise DeadRank(
            f"rank {error.error_index} of {devices} was ended by {error.signal_name or f'exit code {error.exit_code}'}"
            f"{script}, with {finished} of {len(job.batches)} batches finished and kept; run the same again, with any "
            "number of devices, and it goes on from there."
        ) from error
    finally:
        stop.set()
        if watcher.ident is not None:
            watcher.join()


class _Sent:
    """A job that can be sent to a new process, which is told to be quiet as it unpacks it."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            return _unpack, (pickle.dumps(self.job),)
        except Exception as error:  # whatever an object of the caller's raises
            raise BadData(
                f"{getattr(self.job.encoder, 'name', self.job.encoder)} or its items cannot be sent to other processes "
                f"({error}); give devices=1, or strategy='ddp_fork' for an encoder on the CPU."
            ) from error


def _unpack(data: bytes) -> _Sent:
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    return _Sent(pickle.loads(data))


def _rank(fabric: Any, sent: _Sent, devices: int, path: Path, counts: Any, errors: Any, threads: int | None) -> None:
    """What each process does; it gives back nothing but what it stores."""
    import torch

    rank, job = fabric.global_rank, sent.job
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        store = Store(path)
        counts[rank] = 1
        job = replace(job, encoder=fitted(job.encoder, device=own_gpu(job.encoder, rank, chosen=True)), share=devices)
        for done in results(job, range(rank, len(job.batches), devices)):
            keep(store, done, job.kind)
            counts[rank] += 1
    except Exception as error:
        with suppress(Exception):  # an exception that cannot be sent is told in words by its traceback
            if len(data := pickle.dumps(error)) < 4096:  # nobody reads before the end
                errors.put(data)
        raise


def _as_finished(counts: Sequence[int], stop: threading.Event) -> Iterator[int]:
    """A number for each finished batch, as it is stored, until `stop`."""
    # Nothing is shown while processes are forked: one of them could inherit the lock of a progress bar, taken.
    while not all(counts) and not stop.wait(LOOK):
        pass
    shown = 0
    while not stop.wait(LOOK) or shown < sum(counts) - len(counts):
        yield from range(shown, shown := sum(counts) - len(counts))


@contextmanager
def _apart(sent: _Sent, method: str) -> Iterator[None]:
    """Without what another launcher has told this process, and leaving nothing to the next.

    New processes do not read the caller's script, which then needs no guard, unless the work needs its classes.
    """
    main: dict[str, Any] = vars(sys.modules["__main__"])
    before = dict(os.environ)
    alone = method == "spawn" and b"__main__" not in sent.__reduce__()[1][0]
    hidden: dict[str, Any] = {name: main.pop(name) for name in ("__spec__", "__file__") if alone and name in main}
    main.setdefault("__spec__", None)
    for name in FOREIGN:
        os.environ.pop(name, None)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # forked, they would warn and do the same
    try:
        yield
    finally:
        main.update(hidden)
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _hushed() -> Iterator[None]:
    """Lightning says who its processes are; here that is nobody's concern."""
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
