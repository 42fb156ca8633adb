"""Encoders of texts and images as parts that can be exchanged, named `KIND:MODEL[@REVISION]`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.devices import check_device, check_dtype
from symbal_hf.models.encoders.base import (
    Batches,
    ImageEncoder,
    JointEncoder,
    Lazy,
    Place,
    ReadsTexts,
    SeesImages,
    Source,
    TextEncoder,
    choose_place,
    find,
    fingerprint,
    loading,
    unit,
)
from symbal_hf.models.encoders.lite import IMAGE_MODEL, TEXT_MODEL, LiteBoth, LiteImage, LiteText

TEXT_EXAMPLES = (
    "lite", "open_clip:ViT-H-14-quickgelu/dfn5b", "transformers:google/medsiglip-448", "st:Qwen/Qwen3-Embedding-8B",
)  # fmt: skip
JOINT_EXAMPLES = TEXT_EXAMPLES[:3]
IMAGE_EXAMPLES = ("lite", "open_clip:ViT-H-14-quickgelu/dfn5b", "transformers:facebook/dinov2-large")


class SentenceEncoder(Lazy):
    """A sentence-transformers model: texts alone. Weights wait until they are needed."""

    def __init__(
        self, source: Source, place: Place, *, batch_size: int | None = None, instruction: str | None = None
    ) -> None:
        self.source, self.place, self.instruction = source, place, instruction
        self.name = self.space = source.name
        self.texts = Batches(batch_size or 64, self.name)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files, the numbers and the instruction."""
        return fingerprint(type(self).__name__, self.source.version, self.place.dtype, self.instruction, "v1")

    @cached_property
    def model(self) -> Any:
        """The `SentenceTransformer`, on its device."""
        from sentence_transformers import SentenceTransformer

        with loading(self.source):
            model = SentenceTransformer(
                self.source.model,
                revision=self.source.revision or None,
                device=self.place.device,
                trust_remote_code=False,
                model_kwargs=self.place.model_options(),
            )
        if _is_qwen(getattr(getattr(model[0], "auto_model", None), "config", None)):
            model.tokenizer.padding_side = "left"
        return model

    @property
    def dim(self) -> int:
        """Length of a vector."""
        model = self.model
        asked = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension  # before 6
        return int(asked())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) float32 unit vectors; what goes beyond the model's context is cut off."""
        return self.texts.run_by_length(texts, self._encode, self.dim)

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        from symbal_hf.models.encoders.hf import instructed

        prompt = instructed(self.instruction) if self.instruction else None
        vectors = self.model.encode(
            list(texts), prompt=prompt, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
        )
        return unit(vectors, self.name)


def _is_qwen(config: Any) -> bool:
    return getattr(config, "model_type", None) == "qwen3"


def _load_sentence(model: str, place: Place, *, batch_size: int | None, instruction: str | None) -> SentenceEncoder:
    source = find("st", model, "modules.json")
    if instruction:
        first = json.loads(source.file.read_text(encoding="utf-8"))[0]["path"]
        where = source.model + (f"@{source.revision}" if source.revision else "")
        config = find("st", where, f"{first}/config.json" if first else "config.json").file
        if json.loads(config.read_text(encoding="utf-8")).get("model_type") != "qwen3":
            raise ValueError(f"{source.name} reads no instruction; only Qwen3-Embedding does, so leave it out.")
    return SentenceEncoder(source, place, batch_size=batch_size, instruction=instruction)


def load_text_encoder(
    spec: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    instruction: str | None = None,
    device_map: str | None = None,
) -> TextEncoder:
    """The text encoder that `spec` names; its weights enter memory when the first text comes.

    Args:
        spec: "lite"; "open_clip:NAME/TAG[@REVISION]", "open_clip:hf-hub:MODEL[@REVISION]",
            "open_clip:local-dir:FOLDER";
            "transformers:MODEL[@REVISION]" (CLIP, SigLIP, Qwen3-Embedding); "st:MODEL[@REVISION]"
            (sentence-transformers). For the last two MODEL is one of the Hub or a folder.
        device: "cpu", "cuda", "cuda:1", "mps"; "auto" takes a GPU where there is one.
        dtype: "float32", "bfloat16", "float16"; "auto" is bfloat16 on a GPU that has it, else float32.
        batch_size: texts tried at once; halved, and kept so, where they do not fit in memory.
        instruction: the task that Qwen3-Embedding is told before each text; no other model reads one.
        device_map: "auto" spreads a model that does not fit on one device ("transformers:" only).

    Raises:
        MissingModel: the model's files are neither on this machine nor reachable.
        ValueError: a spec that names no text encoder, or an option that it does not have.
    """
    encoder: Any = _load(spec, "text", device, dtype, batch_size, instruction, device_map)
    able = isinstance(encoder, ReadsTexts)
    if not able:
        raise ValueError(f"{spec} encodes images alone; for texts take a model such as {_listed(TEXT_EXAMPLES)}.")
    return encoder


def load_image_encoder(
    spec: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    device_map: str | None = None,
) -> ImageEncoder:
    """The image encoder that `spec` names; its weights enter memory when the first image comes.

    Args:
        spec: as for `load_text_encoder`; "transformers:" also takes DINOv2, and "st:" names none.
        device: see `load_text_encoder`.
        dtype: see `load_text_encoder`.
        batch_size: images tried at once; halved, and kept so, where they do not fit in memory.
        device_map: see `load_text_encoder`.

    Raises:
        MissingModel: the model's files are neither on this machine nor reachable.
        ValueError: a spec that names no image encoder, or an option that it does not have.
    """
    encoder: Any = _load(spec, "image", device, dtype, batch_size, None, device_map)
    able = isinstance(encoder, SeesImages)
    if not able:
        raise ValueError(f"{spec} encodes texts alone; for images take a model such as {_listed(IMAGE_EXAMPLES)}.")
    return encoder


def load_joint_encoder(
    spec: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int | None = None,
    device_map: str | None = None,
) -> JointEncoder:
    """One object, and one copy of the weights, for texts and images: CLIP, SigLIP and their kin.

    Args:
        spec: "lite", "open_clip:..." or "transformers:..." as for `load_text_encoder`.
        device: see `load_text_encoder`.
        dtype: see `load_text_encoder`.
        batch_size: see `load_text_encoder`.
        device_map: see `load_text_encoder`.

    Raises:
        MissingModel: the model's files are neither on this machine nor reachable.
        ValueError: a model that does not hold texts and images in one space.
    """
    encoder: Any = _load(spec, "joint", device, dtype, batch_size, None, device_map)
    able = isinstance(encoder, ReadsTexts) and isinstance(encoder, SeesImages)
    if not able:
        raise ValueError(
            f"{spec} does not encode texts and images by one model; take one such as {_listed(JOINT_EXAMPLES)}."
        )
    return encoder


def _load(
    spec: str,
    what: Literal["text", "image", "joint"],
    device: str,
    dtype: str,
    batch_size: int | None,
    instruction: str | None,
    device_map: str | None,
) -> Any:
    check_device(device)
    check_dtype(dtype)
    kind, _, model = spec.partition(":")
    lite = ("lite", f"lite:{TEXT_MODEL if what == 'text' else IMAGE_MODEL}")
    if spec not in lite and (kind not in ("open_clip", "transformers", "st") or not model):
        examples = _listed({"text": TEXT_EXAMPLES, "image": IMAGE_EXAMPLES, "joint": JOINT_EXAMPLES}[what])
        raise ValueError(f"{spec!r} names no {what} encoder; write KIND:MODEL[@REVISION], such as {examples}.")
    if device_map and kind != "transformers":
        raise ValueError(f"device_map={device_map!r} works with 'transformers:MODEL' alone; leave it out for {spec}.")
    if device_map not in (None, "", "auto", "balanced", "balanced_low_0", "sequential"):
        check_device(device_map)  # transformers takes a device's name too
    if instruction and kind in ("lite", "open_clip"):
        raise ValueError(f"{spec} reads no instruction; only Qwen3-Embedding does, so leave it out.")
    if kind == "lite":
        numbers = ("auto", "float32") if what == "text" else ("auto", "float32", "bfloat16")
        if device not in ("auto", "cpu") or dtype not in numbers:
            raise ValueError(
                f"device={device!r}, dtype={dtype!r}: the lite encoders run on 'cpu', this one in {_listed(numbers)}."
            )
        if what == "text":
            return LiteText()
        return (LiteImage if what == "image" else LiteBoth)(bf16=dtype != "float32", batch_size=batch_size)
    where = choose_place(device, dtype, device_map)
    if kind == "open_clip":
        from symbal_hf.models.encoders.open_clip import load_open_clip

        return load_open_clip(model, where, batch_size=batch_size)
    if kind == "transformers":
        from symbal_hf.models.encoders.hf import load_transformers

        return load_transformers(model, where, batch_size=batch_size, instruction=instruction)
    return _load_sentence(model, where, batch_size=batch_size, instruction=instruction)


def _listed(examples: Sequence[str]) -> str:
    return ", ".join(map(repr, examples[:-1])) + f" or {examples[-1]!r}"
