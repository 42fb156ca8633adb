"""What is left to encode, in batches that stay the same however many processes share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store, key
from symbal_hf.models.encoders.decoding import decoded

if TYPE_CHECKING:
    from symbal_hf.data.table import Images

SHORTEST = 8  # images; what is computed for fewer at once is rounded otherwise, so a shorter batch is filled up


@dataclass(frozen=True)
class Job:
    """Work that any number of processes can share; it can be sent to them.

    Attributes:
        items: all texts or images, those that are known among them.
        encoder: what turns them into vectors.
        batches: rows that are encoded together, whoever does it.
        keys: row -> the content key of each of these rows.
        kind: "text" or "image".
        workers: processes that decode images for one that encodes; see `symbal_hf.models.encoders.decoding.decoded`.
        compiled: backend of `torch.compile`, or None.
        share: processes on this machine.
    """

    items: Sequence[str] | Images
    encoder: Any
    batches: tuple[tuple[int, ...], ...]
    keys: Mapping[int, bytes]
    kind: str
    workers: int | None = None
    compiled: str | None = None
    share: int = 1


@dataclass(frozen=True)
class Done:
    """Results of one batch, by content key.

    Attributes:
        values: the embedding of each item.
        reasons: why an item has none.
    """

    values: dict[bytes, NDArray[Any]] = field(default_factory=dict)
    reasons: dict[bytes, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Keys:
    """The content key of each row, and the rows that have none.

    Attributes:
        of: N keys; None where an image could not even be read.
        bad: row -> reason, for those.
    """

    of: Sequence[bytes | None]
    bad: dict[int, str]


def keys_of(items: Sequence[str] | Images, kind: str, version: str) -> Keys:
    """Keys of everything that the embeddings depend on: `version` of the encoder and each item's content."""
    if kind == "text":
        known = {text: key("text", version, text) for text in dict.fromkeys(cast(Sequence[str], items))}
        return Keys([known[text] for text in cast(Sequence[str], items)], {})
    images, keys, bad = cast("Images", items), list[bytes | None](), dict[int, str]()
    for row in range(len(images)):
        try:
            keys.append(key("image", version, images.encoded(row)))
        except (OSError, ValueError) as error:
            keys.append(None)
            bad[row] = str(error)
    return Keys(keys, bad)


def unreadable(k: bytes) -> bytes:
    """The key of the reason why the item `k` has no embedding; another Pillow, or other limits, will try it again."""
    import PIL
    from PIL import Image, ImageFile

    return key("unreadable", PIL.__version__, repr((Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)), k)


def batches_of(
    items: Sequence[str] | Images, keys: Keys, kind: str, store: Store, size: int
) -> tuple[tuple[int, ...], ...]:
    """Rows whose results the store lacks, each content once, `size` to a batch.

    Texts of like length come together. The order depends on nothing but the items, so that a run that was stopped
    after some batches leaves exactly the others.
    """
    if size < 1:
        raise BadData(f"batch={size} leaves nothing to do at once; give at least 1.")
    first: dict[bytes, int] = {}
    for row, k in enumerate(keys.of):
        if k is not None:
            first.setdefault(k, row)
    left = store.missing(first)
    if kind == "image" and left:
        told = {unreadable(k): k for k in left}
        absent = set(store.missing(told))
        left = [k for mark, k in told.items() if mark in absent]
    rows = [first[k] for k in left]
    if kind == "text":
        texts = cast(Sequence[str], items)
        rows.sort(key=lambda row: (len(texts[row]), texts[row]))
    return tuple(tuple(rows[i : i + size]) for i in range(0, len(rows), size))


def results(job: Job, chosen: Sequence[int]) -> Iterator[Done]:
    """What the batches `chosen` give, in turn."""
    batches = [job.batches[i] for i in chosen]
    if not batches:
        return
    if job.kind == "text":
        texts = cast(Sequence[str], job.items)
        for batch in batches:
            yield _paired(job, batch, job.encoder.encode([texts[row] for row in batch]))
        return
    run = _runner(job.encoder)
    for rows, pixels, bad in decoded(
        cast("Images", job.items), batches, job.encoder, workers=job.workers, share=job.share
    ):
        short = SHORTEST - len(pixels)
        vectors = run([*pixels, *[pixels[-1]] * short] if short > 0 else pixels)[: len(pixels)] if pixels else ()
        done = _paired(job, rows, vectors)
        yield Done(done.values, {job.keys[row]: reason for row, reason in bad.items()})


def _paired(job: Job, rows: Sequence[int], vectors: Any) -> Done:
    if len(vectors) != len(rows):
        name = getattr(job.encoder, "name", type(job.encoder).__name__)
        raise ValueError(f"{name} gave {len(vectors)} vectors for {len(rows)} inputs; it must give one for each.")
    return Done({job.keys[row]: vector for row, vector in zip(rows, vectors, strict=True)})


def _runner(encoder: Any) -> Callable[[Sequence[Any]], NDArray[Any]]:
    from symbal_hf.models.encoders.lite import LiteVision

    if not isinstance(encoder, LiteVision):
        return cast(Callable[[Sequence[Any]], NDArray[Any]], encoder.encode_pixels)
    import torch

    return lambda pixels: encoder.encode(torch.from_numpy(np.stack(pixels)))


def keep(store: Store, done: Done, kind: str) -> None:
    """Put results into the store, the reasons of what has none among them."""
    values = {k: np.ascontiguousarray(vector).tobytes() for k, vector in done.values.items()}
    values |= {unreadable(k): reason.encode("utf-8") for k, reason in done.reasons.items()}
    if values:
        store.put(values, kind=kind)
