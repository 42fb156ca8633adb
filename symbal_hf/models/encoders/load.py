"""Encoders of texts and images as parts that can be exchanged, named `KIND:MODEL[@REVISION]`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from symbal_hf.core.options import Placing, take
from symbal_hf.models.encoders.base import Place, ReadsTexts, SeesImages, check_place, choose_place, find, loading
from symbal_hf.models.encoders.checkpoint import Checkpoint, OfTexts
from symbal_hf.models.encoders.hf import instructed, load_transformers
from symbal_hf.models.encoders.lite import IMAGE_MODEL, TEXT_MODEL, LiteBoth, LiteImage, LiteText
from symbal_hf.models.encoders.open_clip import load_open_clip

Kind = Literal["text", "image", "joint"]
EXAMPLES = ("lite", "open_clip:ViT-H-14-quickgelu/dfn5b", "transformers:google/medsiglip-448")
# What each kind of encoder can do, examples of it, and what another one is told.
KINDS: dict[str, tuple[tuple[Any, ...], tuple[str, ...], str]] = {
    "text": (
        (ReadsTexts,),
        (*EXAMPLES, "st:Qwen/Qwen3-Embedding-8B"),
        "encodes images alone; for texts take a model such as",
    ),
    "image": (
        (SeesImages,),
        (*EXAMPLES[:2], "transformers:facebook/dinov2-large"),
        "encodes texts alone; for images take a model such as",
    ),
    "joint": ((ReadsTexts, SeesImages), EXAMPLES, "does not encode texts and images by one model; take one such as"),
}


class SentenceEncoder(Checkpoint, OfTexts):
    """A sentence-transformers model: texts alone."""

    @cached_property
    def model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        with loading(self.source):
            model = SentenceTransformer(
                self.source.model,
                revision=self.source.revision or None,
                device=self.place.device,
                trust_remote_code=False,
                model_kwargs=self.place.model_options(),
            )
        config = getattr(getattr(model[0], "auto_model", None), "config", None)
        if getattr(config, "model_type", None) == "qwen3":
            model.tokenizer.padding_side = "left"
        return model

    @property
    def dim(self) -> int:  # type: ignore[override]
        model = self.model
        asked = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension  # before 6
        return int(asked())

    def text_features(self, texts: Sequence[str]) -> Any:
        prompt = instructed(self.instruction) if self.instruction else None
        return self.model.encode(
            list(texts), prompt=prompt, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
        )


def _load_sentence(model: str, place: Place, *, batch_size: int | None, instruction: str | None) -> SentenceEncoder:
    source = find("st", model, "modules.json")
    if instruction:
        first = json.loads(source.file.read_text(encoding="utf-8"))[0]["path"]
        where = source.model + (f"@{source.revision}" if source.revision else "")
        config = find("st", where, f"{first}/config.json" if first else "config.json").file
        if json.loads(config.read_text(encoding="utf-8")).get("model_type") != "qwen3":
            raise ValueError(f"{source.name} reads no instruction; only Qwen3-Embedding does, so leave it out.")
    return SentenceEncoder(source, place, batch_size=batch_size, instruction=instruction)


def load_encoder(
    what: Kind, spec: str, *, batch_size: int | None = None, instruction: str | None = None, **place: Any
) -> Any:
    """The encoder of texts, of images or of both in one space that `spec` names.

    Its weights enter memory when the first text or image comes.

    Args:
        what: "joint" is one object, and one copy of the weights, for texts and images: CLIP, SigLIP and their kin.
        spec: "lite"; "open_clip:NAME/TAG[@REVISION]", "open_clip:hf-hub:MODEL[@REVISION]",
            "open_clip:local-dir:FOLDER"; "transformers:MODEL[@REVISION]" (CLIP, SigLIP; of texts Qwen3-Embedding; of
            images DINOv2); of texts "st:MODEL[@REVISION]" (sentence-transformers). For the last two MODEL is one of
            the Hub or a folder.
        batch_size: inputs tried at once; halved, and kept so, where they do not fit in memory.
        instruction: the task that Qwen3-Embedding is told before each text; no other model reads one.
        place: options of `symbal_hf.core.options.Placing`; a `device_map` for "transformers:" only.

    Raises:
        MissingModel: the model's files are neither on this machine nor reachable.
        ValueError: a spec that names no such encoder, or an option that it does not have.
    """
    (placing,) = take(place, Placing, by="an encoder")
    device, dtype, device_map = placing.device, placing.dtype, placing.device_map
    check_place(device, dtype, device_map)
    kind, _, model = spec.partition(":")
    lite = ("lite", f"lite:{TEXT_MODEL if what == 'text' else IMAGE_MODEL}")
    protocols, examples, unable = KINDS[what]
    if spec not in lite and (kind not in ("open_clip", "transformers", "st") or not model):
        raise ValueError(f"{spec!r} names no {what} encoder; write KIND:MODEL[@REVISION], such as {_listed(examples)}.")
    if device_map and kind != "transformers":
        raise ValueError(f"device_map={device_map!r} works with 'transformers:MODEL' alone; leave it out for {spec}.")
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
        encoder: Any = load_open_clip(model, where, batch_size=batch_size)
    elif kind == "transformers":
        encoder = load_transformers(model, where, batch_size=batch_size, instruction=instruction)
    else:
        encoder = _load_sentence(model, where, batch_size=batch_size, instruction=instruction)
    if not all(isinstance(encoder, able) for able in protocols):
        raise ValueError(f"{spec} {unable} {_listed(examples)}.")
    return encoder


def _listed(examples: Sequence[str]) -> str:
    return ", ".join(map(repr, examples[:-1])) + f" or {examples[-1]!r}"
