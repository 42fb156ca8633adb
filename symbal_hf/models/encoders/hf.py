"""Encoders of the transformers library: two towers (CLIP, SigLIP), images alone (DINOv2), texts alone (Qwen3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.models.encoders.base import Place, Source, find, loading, network, on_device
from symbal_hf.models.encoders.checkpoint import Checkpoint, OfImages, OfTexts

if TYPE_CHECKING:
    import torch
    from PIL import Image

IMAGE_ALONE = ("dinov2", "dinov2_with_registers", "dinov3_vit")  # their pooler_output is the layer-normed class token
LAST_TOKEN = ("qwen3",)
SIGLIP = ("siglip", "siglip2")
LONGEST = 8192  # tokens of one text; what Qwen3-Embedding's own examples use


def instructed(task: str) -> str:
    """What Qwen3-Embedding reads before a text when it is told its task."""
    return f"Instruct: {task}\nQuery:"


class _Model(Checkpoint):
    """A checkpoint whose configuration is read at once."""

    def __init__(self, source: Source, config: Any, dim: int, place: Place, **options: Any) -> None:
        super().__init__(source, place, **options)
        self.config, self.dim = config, dim

    @cached_property
    def model(self) -> Any:
        from transformers import AutoModel

        return network(
            AutoModel, self.source, self.place, spare=lambda name: "logit_" in name or name.endswith("mask_token")
        )

    @cached_property
    def tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        with loading(self.source):
            return AutoTokenizer.from_pretrained(**self.source.where)


class _Images(_Model, OfImages):
    """A checkpoint that reads images."""

    @cached_property
    def image_processor(self) -> Any:
        """Of the same files as the weights: size, mean and standard deviation are the checkpoint's own."""
        from transformers import AutoImageProcessor

        with loading(self.source):
            return AutoImageProcessor.from_pretrained(**self.source.where)

    def pixels(self, image: Image.Image) -> dict[str, torch.Tensor]:
        return dict(self.image_processor(images=image, return_tensors="pt"))

    def _joined(self, batch: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        import torch

        return on_device({key: torch.cat([one[key] for one in batch]) for key in batch[0]}, self.model)


class TwoTowers(_Images, OfTexts):
    """Texts and images in one space: CLIP, SigLIP and every model with `get_text_features` and `get_image_features`."""

    def text_features(self, texts: Sequence[str]) -> Any:
        return self.model.get_text_features(**self._tokens(texts).to(self.model.device))

    def _tokens(self, texts: Sequence[str]) -> Any:
        from transformers import BatchEncoding

        most = getattr(getattr(self.config, "text_config", None), "max_position_embeddings", None)
        most = min(most or 77, self.tokenizer.model_max_length)
        if self.config.model_type not in SIGLIP:
            return self.tokenizer(list(texts), padding=True, truncation=True, max_length=most, return_tensors="pt")
        # SigLIP was trained on lower-case texts padded to full length, and reads its last position with no mask.
        lower = [text.lower() for text in texts]
        tokens = self.tokenizer(lower, padding="max_length", truncation=True, max_length=most, return_tensors="pt")
        return BatchEncoding({"input_ids": tokens["input_ids"]})

    def image_features(self, batch: Sequence[Mapping[str, torch.Tensor]]) -> Any:
        return self.model.get_image_features(**self._joined(batch))


class ClassToken(_Images):
    """Images alone, by the class token: DINOv2."""

    def image_features(self, batch: Sequence[Mapping[str, torch.Tensor]]) -> Any:
        return self.model(**self._joined(batch))


class LastToken(_Model, OfTexts):
    """Texts alone, by the state at their final token: Qwen3-Embedding."""

    @cached_property
    def tokenizer(self) -> Any:
        """Pads on the left, so that the last position is the final token of every text."""
        from transformers import AutoTokenizer

        with loading(self.source):
            tokenizer = AutoTokenizer.from_pretrained(**self.source.where, padding_side="left")
        # An embedding model's tokenizer ends each text itself; that of a chat model of the same type does not.
        if tokenizer("a")["input_ids"][-1] not in tokenizer.all_special_ids:
            raise ValueError(
                f"{self.name} is no embedding model: its tokenizer puts no final token after a text; use one such as "
                "'transformers:Qwen/Qwen3-Embedding-8B'."
            )
        return tokenizer

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) float32 unit vectors; what goes beyond 8192 tokens is cut off."""
        head = instructed(self.instruction) if self.instruction else ""
        return super().encode([head + text for text in texts])

    def text_features(self, texts: Sequence[str]) -> Any:
        most = min(LONGEST, self.config.max_position_embeddings)
        tokens = self.tokenizer(list(texts), padding=True, truncation=True, max_length=most, return_tensors="pt")
        return self.model(**tokens.to(self.model.device), use_cache=False).last_hidden_state[:, -1]


def load_transformers(
    model: str, place: Place, *, batch_size: int | None = None, instruction: str | None = None
) -> TwoTowers | ClassToken | LastToken:
    """The encoder of a checkpoint ("FOLDER" or "ORGANISATION/NAME[@REVISION]"), by what its configuration names.

    Raises ValueError for an architecture that is no encoder, or an instruction that it would not read.
    """
    from transformers import MODEL_MAPPING, AutoConfig

    source = find("transformers", model, "config.json")
    try:
        with loading(source):
            config = AutoConfig.from_pretrained(**source.where)
    except ValueError as error:
        raise ValueError(f"{source.name} names no architecture that transformers knows.") from error
    kind = config.model_type
    if kind in LAST_TOKEN:
        return LastToken(source, config, config.hidden_size, place, batch_size=batch_size, instruction=instruction)
    if instruction:
        raise ValueError(f"{source.name} reads no instruction; only Qwen3-Embedding does, so leave it out.")
    if kind in IMAGE_ALONE:
        return ClassToken(source, config, config.hidden_size, place, batch_size=batch_size)
    known = MODEL_MAPPING.get(type(config), None)
    towers = hasattr(known, "get_text_features") and hasattr(known, "get_image_features")
    if kind in SIGLIP or (towers and hasattr(config, "projection_dim")):
        dim = config.vision_config.hidden_size if kind in SIGLIP else config.projection_dim
        return TwoTowers(source, config, dim, place, batch_size=batch_size)
    raise ValueError(
        f"{source.name} is a model of type {kind!r}, which gives no vectors of texts or images that are known to be "
        "comparable; use CLIP, SigLIP, DINOv2 or Qwen3-Embedding, or 'st:MODEL' for a sentence-transformers model."
    )
