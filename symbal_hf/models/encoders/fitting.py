"""The encoder as one process wants it: in the numbers asked for, on its own GPU, compiled, or bare to be sent."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from symbal_hf.core.errors import BadData

PRECISION = {
    "32": "float32", "32-true": "float32", "float32": "float32", "bf16": "bfloat16", "bf16-true": "bfloat16",
    "bfloat16": "bfloat16", "16": "float16", "16-true": "float16", "float16": "float16",
}  # fmt: skip
HEAVY = ("model", "_model", "backbone", "tokenizer", "image_processor", "transform")
_twins: WeakKeyDictionary[Any, dict[tuple[str, ...], Any]] = WeakKeyDictionary()


def bare(encoder: Any) -> Any:
    """The same encoder without what it has loaded, which is loaded again when it is needed."""
    heavy = [name for name in HEAVY if isinstance(getattr(type(encoder), name, None), cached_property)]
    if not heavy and not hasattr(encoder, "vision"):
        return encoder
    twin = copy.copy(encoder)
    for name in heavy:
        twin.__dict__.pop(name, None)
    if hasattr(twin, "vision"):
        twin.vision = bare(twin.vision)
    return twin


def fitted(encoder: Any, *, precision: str = "auto", device: str | None = None, compiled: str | None = None) -> Any:
    """The encoder in other numbers, on another device or to be compiled; itself where nothing changes.

    It is made once for each encoder, so that weights are loaded once.

    Args:
        encoder: of `symbal_hf.models.encoders.load` or `symbal_hf.models.encoders.lite`.
        precision: "auto" (its own), or a key of `PRECISION`.
        device: "cuda:1" and the like; None leaves it where it is.
        compiled: not None gives a twin with weights of its own, which compiling does not change for others.

    Raises:
        BadData: numbers that there are not, or that this encoder cannot be given.
    """
    if precision != "auto" and precision not in PRECISION:
        raise BadData(f"precision={precision!r}; give 'auto', '32-true', 'bf16-true' or '16-true'.")
    want = (PRECISION.get(precision, ""), device or "", compiled or "")
    if not any(want):
        return encoder
    try:
        known = _twins.setdefault(encoder, {})
    except TypeError:  # an object of the caller's that cannot be a key
        known = {}
    if want not in known:
        twin = _changed(encoder, want[0], device)
        if compiled is not None:
            twin = bare(twin)
        if twin is encoder:  # kept, it would keep its own key alive for ever
            return encoder
        known[want] = twin
    return known[want]


def _changed(encoder: Any, dtype: str, device: str | None) -> Any:
    from symbal_hf.models.encoders.lite import LiteVision, MiniLM

    if (place := getattr(encoder, "place", None)) is not None:
        import torch

        where = replace(place, device=device or place.device, dtype=getattr(torch, dtype) if dtype else place.dtype)
        if where == place:
            return encoder
        twin = bare(encoder)
        twin.place = where
        twin.__dict__.pop("fingerprint", None)  # it changes with the numbers
        return twin
    if not dtype:
        return encoder
    name = getattr(encoder, "name", type(encoder).__name__)
    vision = getattr(encoder, "vision", encoder)
    if isinstance(vision, LiteVision) and dtype != "float16":
        if vision.bf16 == (dtype == "bfloat16"):
            return encoder
        seer = copy.copy(vision)
        seer.bf16 = dtype == "bfloat16"
        seer.__dict__.pop("fingerprint", None)
        if vision is encoder:
            return seer
        twin = copy.copy(encoder)
        twin.vision = seer
        twin.__dict__.pop("fingerprint", None)
        return twin
    if isinstance(encoder, MiniLM) and dtype == "float32":
        return encoder
    raise BadData(f"precision={dtype!r} is none that {name} can be given; leave it at 'auto'.")


def load(encoder: Any, compiled: str | None = None) -> None:
    """Bring the weights into memory, and have `torch.compile` at them where asked."""
    for name in HEAVY[:3]:
        if isinstance(getattr(type(encoder), name, None), cached_property):
            network = getattr(encoder, name)
            if compiled is not None:
                _compile(network, compiled)
    if hasattr(encoder, "vision"):
        load(encoder.vision, compiled)


def _compile(network: Any, backend: str) -> None:
    """Compile the towers of a network, since encoders call methods of the whole that know nothing of its being so."""
    import torch

    if not isinstance(network, torch.nn.Module):
        return
    for child in network.children():
        if getattr(child, "_compiled_call_impl", None) is None:
            child.compile(backend=backend, dynamic=None)
