"""What is left to encode, in batches that stay the same however many processes share them, and how results are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store, key
from symbal_hf.models.encoders.base import Lazy
from symbal_hf.models.encoders.decoding import decoded
from symbal_hf.models.encoders.lite import LiteVision

if TYPE_CHECKING:
    from symbal_hf.data.table import Images

SHORTEST = 8  # images; what is computed for fewer at once is rounded otherwise, so a shorter batch is filled up
Done = tuple[dict[bytes, bytes], dict[bytes, str]]  # content key -> embedding; content key -> why there is none


@dataclass(frozen=True)
class Keys:
    """The content key of each of N rows (None where an image could not even be read), and those rows' reasons."""

    of: Sequence[bytes | None]
    bad: dict[int, str]


@dataclass(frozen=True)
class Job:
    """Work that any number of processes can share; it can be sent to them."""

    items: Sequence[str] | Images  # all of them, those that are stored already among them
    encoder: Any
    kind: str  # "text" or "image"
    workers: int | None = None  # processes that decode images for one that encodes; see `decoded`
    compiled: str | None = None  # backend of `torch.compile`
    batches: Sequence[Sequence[int]] = ()  # rows that are encoded together, whoever does it
    keys: Mapping[int, bytes] = field(default_factory=dict)  # of each of these rows
    share: int = 1  # processes that encode on this machine

    @property
    def version(self) -> str:
        """Changes with whatever the values depend on, beside the item."""
        version = getattr(self.encoder, "fingerprint", self.encoder.name)
        return version if self.compiled is None else f"{version}|{self.compiled}"


def keys_of(items: Sequence[str] | Images, kind: str, version: str) -> Keys:
    """Keys of everything that the embeddings depend on: `version` of the encoder and each item's content."""
    if kind == "text":
        texts = cast(Sequence[str], items)
        of_text = {text: key("text", version, text) for text in dict.fromkeys(texts)}
        return Keys([of_text[text] for text in texts], {})
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


def batches_of(job: Job, keys: Keys, store: Store, size: int) -> list[list[int]]:
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
    if job.kind == "image" and left:
        marks = {unreadable(k): k for k in left}
        left = [marks[mark] for mark in store.missing(marks)]
    rows = [first[k] for k in left]
    if job.kind == "text":
        texts = cast(Sequence[str], job.items)
        rows.sort(key=lambda row: (len(texts[row]), texts[row]))
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def results(job: Job, chosen: Sequence[int]) -> Iterator[Done]:
    """What the batches `chosen` give, in turn."""
    batches = [job.batches[i] for i in chosen]
    if not batches:
        return
    if isinstance(job.encoder, Lazy):
        job.encoder.load(job.compiled)
    inputs: Any  # of each batch: rows, what the encoder takes of each, row -> reason
    if job.kind == "text":
        texts = cast(Sequence[str], job.items)
        inputs = ((rows, [texts[row] for row in rows], {}) for rows in batches)
        encode, shortest = job.encoder.encode, 0
    else:
        inputs = decoded(cast("Images", job.items), batches, job.encoder, workers=job.workers, share=job.share)
        encode = job.encoder.regions if isinstance(job.encoder, LiteVision) else job.encoder.encode_pixels
        shortest = SHORTEST
    for rows, given, bad in inputs:
        filled = [*given, *given[-1:] * (shortest - len(given))]
        vectors = encode(filled) if filled else ()
        if (count := len(vectors)) != len(filled):
            raise ValueError(f"{job.encoder.name} gave {count} vectors for {len(filled)} inputs; it must give as many.")
        values = {job.keys[row]: np.ascontiguousarray(v).tobytes() for row, v in zip(rows, vectors, strict=False)}
        yield values, {job.keys[row]: reason for row, reason in bad.items()}


def keep(store: Store, done: Done, kind: str) -> None:
    """Put results into the store, the reasons of what has none among them."""
    values, reasons = done
    if values or reasons:
        store.put(values | {unreadable(k): reason.encode() for k, reason in reasons.items()}, kind=kind)
