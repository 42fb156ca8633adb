"""Pictures become what a model sees, in place, or by a thread or processes while the model works on those before."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symbal_hf.core.errors import DeadRank
from symbal_hf.data.pixels import decode

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
    from PIL import Image

    encoder.pixels(Image.new("RGB", (64, 64)))  # what fails here is the model, and no image is to blame
    device = str(getattr(getattr(encoder, "place", None), "device", "cpu"))
    load = _Loader(images, encoder, batches)
    count = _workers(workers, device, len(batches), share)
    if count > 0:
        yield from _by_processes(load, count, device)
    elif count == 0:
        for part in range(len(batches)):
            yield load.part(part)
    else:
        yield from _ahead(load.part, len(batches))


def _workers(asked: int | None, device: str, batches: int, share: int) -> int:
    """Processes that decode; -1 for a thread."""
    if asked is not None:
        return asked
    if device.startswith("cuda"):
        return min(MOST_WORKERS, max(1, cores() // share - 1), batches) if batches > 2 else -1
    import torch

    return -1 if torch.get_num_threads() * share < cores() else 0


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

    def __getitem__(self, i: int) -> tuple[list[int], str, Any, dict[int, str]]:
        rows, pixels, bad = self.part(i)
        return rows, *_packed(pixels), bad


def _by_processes(load: _Loader, count: int, device: str) -> Iterator[Part]:
    from torch.utils.data import DataLoader

    gpu = device.startswith("cuda")
    loader: Any = DataLoader(
        load,  # type: ignore[arg-type]
        batch_size=None,
        num_workers=min(count, len(load)),
        collate_fn=_as_it_is,
        pin_memory=gpu,
    )
    try:
        for rows, form, packed, bad in loader:
            yield rows, _unpacked(form, _moved(packed, device) if gpu else packed), bad
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise DeadRank(
            f"one of {count} processes that decode images is gone (often too little memory, or too small a /dev/shm); "
            "what was finished is kept, so run the same again, or with workers=0."
        ) from error


def _as_it_is(item: Any) -> Any:
    return item


def _packed(pixels: list[Any]) -> tuple[str, Any]:
    """One tensor of a batch, which goes from process to process without a copy, and its form."""
    import torch

    if not pixels:
        return "list", []
    one = pixels[0]
    if isinstance(one, np.ndarray) and all(p.shape == one.shape for p in pixels):
        return "arrays", torch.from_numpy(np.stack(pixels))
    if isinstance(one, torch.Tensor) and all(p.shape == one.shape for p in pixels):
        return "tensors", torch.stack(pixels)
    if isinstance(one, dict) and all(
        isinstance(v, torch.Tensor) and len(v) == 1 and all(p[k].shape == v.shape for p in pixels)
        for k, v in one.items()
    ):
        return "tables", {k: torch.cat([p[k] for p in pixels]) for k in one}
    return "list", pixels


def _unpacked(form: str, packed: Any) -> list[Any]:
    """What `_packed` was given."""
    if form == "arrays":
        return list(packed.numpy())
    if form == "tables":
        size = len(next(iter(packed.values())))
        return [{k: v[i : i + 1] for k, v in packed.items()} for i in range(size)]
    return list(packed)


def _moved(packed: Any, device: str) -> Any:
    """On the GPU, copied from pinned memory while the GPU works; arrays stay, since their encoders want them here."""
    import torch

    if isinstance(packed, torch.Tensor):
        return packed.to(device, non_blocking=True)
    if isinstance(packed, dict):
        return {k: v.to(device, non_blocking=True) for k, v in packed.items()}
    return packed


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
