"""The processes that a launcher gave us (torchrun, `fabric run`, SLURM): who this one is, and what all of them know."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from symbal_hf.core.errors import BadData, DeadRank

T = TypeVar("T")
SOURCE = re.compile(r"\[/[^\]]*\] ")  # the line of C++ that an error of gloo begins with
STRATEGIES = ("auto", "ddp_fork", "ddp_notebook", "ddp_spawn", "in_place")
LOGGERS = ("lightning.fabric", "lightning.pytorch")  # importing the first imports the second, which speaks for both


@dataclass(frozen=True)
class World:
    """The processes that a launcher started, as one of them sees it.

    Attributes:
        rank: which one this is, in [0, size).
        size: how many there are.
        local_rank: which one on this machine.
        nodes: machines.
    """

    rank: int
    size: int
    local_rank: int
    nodes: int


def given_world() -> World | None:
    """The world of torchrun, `fabric run`, SLURM or an open process group; None where this process is alone."""
    env = os.environ
    world = None
    if "TORCHELASTIC_RUN_ID" in env and "RANK" in env:
        size, local = int(env["WORLD_SIZE"]), int(env.get("LOCAL_WORLD_SIZE", env["WORLD_SIZE"]))
        world = World(int(env["RANK"]), size, int(env.get("LOCAL_RANK", 0)), max(1, size // local))
    elif "SLURM_STEP_ID" in env and env.get("SLURM_JOB_NAME") not in ("bash", "interactive"):  # srun, not sbatch alone
        nodes = int(env.get("SLURM_NNODES", env.get("SLURM_JOB_NUM_NODES", 1)))
        world = World(int(env["SLURM_PROCID"]), int(env["SLURM_NTASKS"]), int(env.get("SLURM_LOCALID", 0)), nodes)
    elif "torch" in sys.modules:
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            world = World(dist.get_rank(), dist.get_world_size(), int(env.get("LOCAL_RANK", 0)), 1)
    return world if world is not None and world.size > 1 else None


def join(world: World) -> None:
    """Connect to the other processes of the world, once."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return
    from lightning.fabric import Fabric

    each = world.size // world.nodes
    try:
        with hushed():
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


def told(value: T | None, world: World) -> T:
    """What rank 0 has, on every rank; an exception that it has is raised on every rank.

    Raises:
        DeadRank: rank 0 is gone.
    """
    import torch.distributed as dist

    box: list[Any] = [value]
    with _together(world):
        dist.broadcast_object_list(box, src=0)
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


def wait(world: World) -> None:
    """Until every rank has come this far.

    Raises:
        DeadRank: one is gone.
    """
    import torch.distributed as dist

    with _together(world):
        dist.barrier()


@contextmanager
def _together(world: World) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        said = SOURCE.sub("", str(error)).splitlines()[0][:120]
        raise DeadRank(
            f"another of the {world.size} processes is gone or never came to embed its share, as rank {world.rank} "
            f"found ({said}); what was finished is kept, so run the same again."
        ) from error


def own_device(encoder: Any, local_rank: int) -> str | None:
    """The GPU of one of several processes; None for an encoder that is on none, or on one that the caller chose."""
    device = str(getattr(getattr(encoder, "place", None), "device", "cpu"))
    if device != "cuda":
        return None
    import torch

    return f"cuda:{local_rank % max(1, torch.cuda.device_count())}"


def check_devices(encoder: Any, devices: int, num_nodes: int, strategy: str, world: World | None) -> None:
    """Raises `BadData` for what cannot be started."""
    if strategy not in STRATEGIES:
        raise BadData(
            f"strategy={strategy!r}; give one of {', '.join(map(repr, STRATEGIES))} (others start a script anew for "
            "each process, which a function must not)."
        )
    if devices < 1 or num_nodes < 1:
        raise BadData(f"devices={devices}, num_nodes={num_nodes}; each must be at least 1.")
    if strategy == "in_place" and devices > 1:
        raise BadData(f"devices={devices} with strategy='in_place', which is one process; leave out one of the two.")
    if world is not None:
        if devices * num_nodes not in (1, world.size):
            raise BadData(
                f"devices={devices} on num_nodes={num_nodes} are not the {world.size} processes that the launcher "
                "started; leave both out under a launcher."
            )
        return
    if num_nodes > 1:
        raise BadData(
            f"num_nodes={num_nodes}: processes on other machines cannot be started from here; start this program on "
            "each of them with torchrun, `fabric run` or srun."
        )
    place = getattr(encoder, "place", None)
    if devices == 1 or place is None:
        return
    if place.device_map:
        raise BadData(
            f"device_map={place.device_map!r} spreads one model over all GPUs, which leaves none to devices={devices}; "
            "leave out one of the two."
        )
    if place.device.startswith("cuda"):
        import torch

        if devices > torch.cuda.device_count():
            raise BadData(
                f"devices={devices} and this machine has {torch.cuda.device_count()} GPUs; give at most that."
            )
    elif place.device != "cpu":
        raise BadData(f"devices={devices} works on CPUs and CUDA GPUs, not on {place.device!r}; give devices=1.")


def hush() -> None:
    """Lightning says who its processes are; here that is nobody's concern."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


@contextmanager
def hushed() -> Iterator[None]:
    """`hush` for a while."""
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    hush()
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
