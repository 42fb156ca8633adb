"""Embeddings of texts and images, through the store: what was computed once is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from symbal_hf.encode import LiteVision
from symbal_hf.images import decode
from symbal_hf.store import Store, key

if TYPE_CHECKING:
    from symbal_hf.data import Images
    from symbal_hf.encode import MiniLM
    from symbal_hf.encoders import ImageEncoder, TextEncoder

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]


def quiet(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """Progress that shows nothing."""
    return items


def embed_texts(
    texts: Sequence[str], encoder: TextEncoder | MiniLM, *, store: Store, progress: Progress = quiet, batch: int = 512
) -> NDArray[np.float32]:
    """(T, D) float32 unit vectors of `texts`; each different text is encoded once, ever.

    Args:
        texts: T texts.
        encoder: what turns them into vectors.
        store: where vectors are kept.
        progress: wraps the loop.
        batch: texts between two writes to the store.
    """
    unique = list(dict.fromkeys(texts))
    version = getattr(encoder, "fingerprint", encoder.name)  # MiniLM has one version, under its name
    keys = {text: key("text", version, text) for text in unique}
    known = store.get(list(keys.values()))
    new = sorted((t for t in unique if keys[t] not in known), key=len)
    for start in progress(range(0, len(new), batch), "texts", -(-len(new) // batch)) if new else ():
        part = new[start : start + batch]
        fresh = {keys[t]: v.tobytes() for t, v in zip(part, encoder.encode(part), strict=True)}
        store.put(fresh, kind="text")
        known.update(fresh)
    if not unique:
        return np.zeros((0, getattr(encoder, "dim", 384)), np.float32)
    table = np.stack([np.frombuffer(known[keys[t]], np.float32) for t in unique])
    place = {t: i for i, t in enumerate(unique)}
    return table[[place[t] for t in texts]]


@overload
def embed_images(
    images: Images, encoder: LiteVision, *, store: Store, progress: Progress = quiet, batch: int = 32
) -> tuple[NDArray[np.float16], dict[int, str]]: ...


@overload
def embed_images(
    images: Images, encoder: ImageEncoder, *, store: Store, progress: Progress = quiet, batch: int = 32
) -> tuple[NDArray[np.float32], dict[int, str]]: ...


def embed_images(
    images: Images, encoder: LiteVision | ImageEncoder, *, store: Store, progress: Progress = quiet, batch: int = 32
) -> tuple[NDArray[Any], dict[int, str]]:
    """Embeddings of N images, and the reason for each row that could not be read (its embeddings are 0).

    Images are decoded by a thread while the model works on the batch before.

    Args:
        images: N encoded pictures.
        encoder: (N, D) float32 unit vectors come from an `ImageEncoder`; (N, 65, 384) float16 unit embeddings of
            regions from `LiteVision`.
        store: where embeddings are kept.
        progress: wraps the loop.
        batch: images decoded ahead, and between two writes to the store.
    """
    from PIL import Image

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    run: Callable[[Sequence[Any]], NDArray[Any]]
    if isinstance(encoder, LiteVision):
        shape, dtype, run = (65, 384), np.dtype(np.float16), _regions(encoder)
    else:
        shape, dtype, run = (encoder.dim,), np.dtype(np.float32), encoder.encode_pixels
    bad: dict[int, str] = {}
    fingerprint = encoder.fingerprint
    keys: list[bytes | None] = []
    for row in range(len(images)):
        try:
            keys.append(key("image", fingerprint, images.encoded(row)))
        except (OSError, ValueError) as error:
            keys.append(None)
            bad[row] = str(error)
    new = set(store.missing(k for k in keys if k is not None))
    todo = []
    for row, k in enumerate(keys):
        if k in new:
            new.discard(k)
            todo.append(row)

    def load(part: list[int]) -> tuple[list[int], list[Any]]:
        rows, pixels = [], []
        for row in part:
            try:
                pixels.append(encoder.pixels(decode(images.encoded(row))))
                rows.append(row)
            except (OSError, SyntaxError, ValueError) as error:
                bad[row] = f"unreadable image: {error}"
        return rows, pixels

    if todo:
        encoder.pixels(Image.new("RGB", (64, 64)))  # what fails here is the model, and no image is to blame
    parts = [todo[i : i + batch] for i in range(0, len(todo), batch)]
    for rows, pixels in progress(_ahead(load, parts), "images", len(parts)) if parts else ():
        if rows:
            store.put({keys[row]: value.tobytes() for row, value in zip(rows, run(pixels), strict=True)}, kind="image")
    out = np.zeros((len(images), *shape), dtype)
    for start in range(0, len(keys), 256):
        part_keys = keys[start : start + 256]
        found = store.get([k for k in part_keys if k is not None])
        for offset, k in enumerate(part_keys):
            if k in found:
                out[start + offset] = np.frombuffer(found[k], dtype).reshape(shape)
            else:
                bad.setdefault(start + offset, "unreadable image: same bytes as another unreadable image")
    return out, bad


def _regions(encoder: LiteVision) -> Callable[[Sequence[NDArray[np.uint8]]], NDArray[np.float16]]:
    import torch

    return lambda pixels: encoder.encode(torch.from_numpy(np.stack(pixels)))


def _ahead(load: Callable[[list[int]], Any], parts: list[list[int]]) -> Iterable[Any]:
    """Results of `load` over `parts`, each begun while its predecessor is in use."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(load, parts[0])
        for part in parts[1:]:
            ready = pending.result()
            pending = pool.submit(load, part)
            yield ready
        yield pending.result()
