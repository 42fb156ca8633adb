"""Pictures become what a model sees, in place, or by a thread or processes while the model works on those before."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import DeadRank
from symbal_hf.data.pixels import decode
from symbal_hf.models.encoders.base import device_of

if TYPE_CHECKING:
    from symbal_hf.data.table import Images

MOST_WORKERS = 8
ADDRESS = re.compile(r" <_io\.\w+ object at 0x[0-9a-f]+>")  # in what Pillow says; no two runs would agree on it
Part = tuple[list[int], list[Any], dict[int, str]]


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def decoded(
    images: Images, batches: Sequence[Sequence[int]], encoder: Any, *, workers: int | None = None, share: int = 1
) -> Iterator[Part]:
    """(rows, what the encoder sees of each, row -> reason of those that cannot be read) of each batch, in order.

    Args:
        images: all images.
        batches: rows.
        encoder: what `pixels` is asked of.
        workers: processes that decode; 0 decodes in place. None takes processes for a model on a GPU, else a thread
            where a core is idle.
        share: processes that encode on this machine.
    """
    import torch
    from PIL import Image

    encoder.pixels(Image.new("RGB", (64, 64)))  # what fails here is the model, and no image is to blame
    load, gpu = _Loader(images, encoder, batches), device_of(encoder).startswith("cuda")
    if workers is None and gpu and len(batches) > 2:
        workers = min(MOST_WORKERS, max(1, cores() // share - 1))
    if workers:
        yield from _by_processes(load, min(workers, len(batches)), device_of(encoder))
    elif workers is None and (gpu or torch.get_num_threads() * share < cores()):
        yield from _ahead(load.part, len(batches))
    else:
        yield from map(load.part, range(len(batches)))


@dataclass(frozen=True)
class _Loader:
    """Reads batches of images; a data set as `torch.utils.data` takes it, of which one item is a whole batch."""

    images: Images
    encoder: Any
    batches: Sequence[Sequence[int]]

    def part(self, i: int) -> Part:
        rows, pixels, bad = list[int](), list[Any](), dict[int, str]()
        for row in self.batches[i]:
            try:
                pixels.append(self.encoder.pixels(decode(self.images.encoded(row))))
                rows.append(row)
            except (OSError, SyntaxError, ValueError) as error:
                bad[row] = f"unreadable image: {ADDRESS.sub('', str(error))}"
        return rows, pixels, bad

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, i: int) -> tuple[list[int], bool, Any, dict[int, str]]:
        rows, pixels, bad = self.part(i)
        return rows, *_packed(pixels), bad


def _by_processes(load: _Loader, count: int, device: str) -> Iterator[Part]:
    from lightning.fabric.utilities import move_data_to_device
    from torch.utils.data import DataLoader

    gpu = device.startswith("cuda")
    data: Any = load
    # `tuple` leaves an item as it is, and can be sent to a process.
    loader: Any = DataLoader(data, batch_size=None, num_workers=count, collate_fn=tuple, pin_memory=gpu)
    try:
        for rows, whole, pixels, bad in loader:
            # Copied from pinned memory while the GPU works; arrays stay, since their encoders want them here.
            yield rows, _unpacked(move_data_to_device(pixels, device) if gpu and whole else pixels, whole), bad
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise DeadRank(
            f"one of {count} processes that decode images is gone (often too little memory, or too small a /dev/shm); "
            "what was finished is kept, so run the same again, or with workers=0."
        ) from error


def _packed(pixels: list[Any]) -> tuple[bool, Any]:
    """One tensor, or one table of tensors, of a whole batch, which goes from process to process without a copy."""
    import torch
    from torch.utils.data import default_collate

    if pixels and isinstance(pixels[0], (torch.Tensor, dict)):
        with suppress(RuntimeError, TypeError, KeyError):  # of different shapes
            return True, default_collate(pixels)
    return False, pixels


def _unpacked(pixels: Any, whole: bool) -> list[Any]:
    """What `_packed` was given."""
    if not whole or isinstance(pixels, list):
        return pixels
    if isinstance(pixels, dict):
        return [dict(zip(pixels, each, strict=True)) for each in zip(*pixels.values(), strict=True)]
    return list(pixels)


def _ahead(load: Callable[[int], Part], count: int) -> Iterator[Part]:
    """Results of `load`, each begun while its predecessor is in use."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(load, 0)
        for i in range(1, count):
            ready = pending.result()
            pending = pool.submit(load, i)
            yield ready
        yield pending.result()
