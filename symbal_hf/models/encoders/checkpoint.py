"""Encoders with files of their own: as many inputs at once as fit in memory become unit vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from symbal_hf.models.encoders.base import Lazy, Place, Source, fingerprint

T = TypeVar("T")
TEXTS, IMAGES = 64, 32  # tried at once, unless told otherwise


class Batches:
    """Runs work in pieces that fit in memory: a piece that does not is halved, and the size that fits is kept."""

    def __init__(self, size: int, name: str) -> None:
        """`size` is tried first; `name` is whose work it is."""
        if size < 1:
            raise ValueError(f"batch_size={size} leaves nothing to do at once; give at least 1.")
        self.size, self.name = size, name

    def run(
        self, items: Sequence[T], work: Callable[[Sequence[T]], NDArray[np.float32]], dim: int
    ) -> NDArray[np.float32]:
        """(N, `dim`) float32: `work` of N items, in order; raises MemoryError where a single one does not fit."""
        from accelerate.utils.memory import clear_device_cache

        out, start = np.empty((len(items), dim), np.float32), 0
        while start < len(items):
            part = items[start : start + self.size]
            try:
                out[start : start + len(part)] = work(part)
                start += len(part)
                continue
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                if len(part) == 1:
                    raise MemoryError(
                        f"{self.name} does not fit in memory with one input at a time; use a smaller model, "
                        "dtype='bfloat16', another device or (transformers models) device_map='auto'."
                    ) from error
            # Only here is the traceback, which holds on to the tensors of the failed attempt, gone.
            clear_device_cache(garbage_collection=True)
            self.size = len(part) // 2
        return out

    def run_by_length(
        self, texts: Sequence[str], work: Callable[[Sequence[str]], NDArray[np.float32]], dim: int
    ) -> NDArray[np.float32]:
        """`run` on texts of like length together, so that little is padded; rows are in the order of `texts`."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out = np.empty((len(texts), dim), np.float32)
        out[order] = self.run([texts[i] for i in order], work, dim)
        return out


def out_of_memory(error: Exception) -> bool:
    """Whether something failed for want of memory."""
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    told = isinstance(error, (torch.OutOfMemoryError, MemoryError)) or should_reduce_batch_size(error)
    return told or "out of memory" in str(error).lower()


def unit(features: Any, name: str) -> NDArray[np.float32]:
    """(B, D) float32 unit vectors of a model's features: a tensor, or an output that has a `pooler_output`.

    Raises:
        ValueError: features of another shape, or not finite.
    """
    import torch

    vectors = getattr(features, "pooler_output", features)
    if not isinstance(vectors, torch.Tensor) or vectors.ndim != 2:
        raise ValueError(f"{name} gives no single vector for each input and so cannot be used as an encoder.")
    if not torch.isfinite(vectors).all():
        raise ValueError(f"{name} gives infinite or undefined values in {vectors.dtype}; use dtype='float32'.")
    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()


class OfTexts:
    """An encoder of texts that says what its network makes of as many as fit in memory."""

    name: str
    dim: int
    texts: Batches

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) float32 unit vectors; what goes beyond the model's context is cut off."""
        return self.texts.run_by_length(texts, self._encode, self.dim)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            return unit(self.text_features(texts), self.name)

    def text_features(self, texts: Sequence[str]) -> Any:
        """(B, D), or an output with these."""
        raise NotImplementedError


class OfImages:
    """An encoder of images that says what its network makes of as many as fit in memory."""

    name: str
    dim: int
    images: Batches

    def encode_pixels(self, batch: Sequence[Any]) -> NDArray[np.float32]:
        return self.images.run(batch, self._encode_pixels, self.dim)

    def _encode_pixels(self, batch: Sequence[Any]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            return unit(self.image_features(batch), self.name)

    def image_features(self, batch: Sequence[Any]) -> Any:
        """(B, D), or an output with these."""
        raise NotImplementedError


class Checkpoint(Lazy):
    """An encoder with files of its own, whose weights wait until they are needed."""

    def __init__(
        self, source: Source, place: Place, *, batch_size: int | None = None, instruction: str | None = None
    ) -> None:
        self.source, self.place, self.instruction = source, place, instruction
        self.name = self.space = source.name
        self.texts, self.images = Batches(batch_size or TEXTS, self.name), Batches(batch_size or IMAGES, self.name)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files (weights, tokenizer, preprocessing), the numbers and the instruction."""
        return fingerprint(type(self).__name__, self.source.version, self.place.dtype, self.instruction, "v1")
