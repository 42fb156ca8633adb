"""NanoDet-g: a small detector of COCO's 80 classes that ships with the package and has seen nothing of the lite judge.

Not trained here: `scripts/train/convert_nanodet.py` makes the weights from the published ones; `weights/README.md` is
their card. The network is the CSP backbone, additive neck and per-level heads of RangiLyu/nanodet (Apache-2.0), with
batch norm folded into its convolutions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.files import packaged_lines
from symbal_hf.language.phrases import singular
from symbal_hf.models.encoders.base import Lazy, Place, fingerprint
from symbal_hf.models.encoders.checkpoint import Batches

if TYPE_CHECKING:
    import torch
    from PIL import Image

SIZE, STRIDES, BINS = 416, (8, 16, 32), 11  # pixels; pixels a cell of each level; steps of a box's distances, in cells
MEAN, SPREAD = (103.53, 116.28, 123.675), (57.375, 57.12, 58.395)  # of blue, green, red
WEIGHTS = resources.files("symbal_hf.models.detectors").joinpath("weights")
CLASSES = packaged_lines("symbal_hf.models.detectors", "weights/classes.txt")


def network() -> Any:
    """The untrained network: (B, 3, 416, 416) normalised pixels -> of each level (B, 80 + 4 * 11, cells, cells)."""
    import torch
    from torch import nn
    from torch.nn import functional

    def conv(fan_in: int, fan_out: int, stride: int = 1) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(fan_in, fan_out, 3, stride, 1), nn.LeakyReLU(0.1))

    class Residual(nn.Module):
        """Half the channels by one convolution and half by two, side by side."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.first, self.second = conv(channels, channels // 2), conv(channels // 2, channels // 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.first(x)
            return torch.cat([self.second(x), x], 1)

    class Stage(nn.Module):
        """What goes through the residual blocks, beside what goes past them."""

        def __init__(self, channels: int, blocks: int, stride: int) -> None:
            super().__init__()
            self.enter, self.leave = conv(channels, channels, stride), conv(channels, channels)
            self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.enter(x)
            return torch.cat([self.leave(self.blocks(x)), x], 1)

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(conv(3, 32, 2), nn.MaxPool2d(3, 2, 1))
            self.stages = nn.ModuleList([Stage(32, 1, 1), Stage(64, 2, 2), Stage(128, 2, 2), Stage(256, 3, 2)])
            self.lateral = nn.ModuleList(nn.Conv2d(channels, 128, 1) for channels in (128, 256, 512))
            self.heads = nn.ModuleList(
                nn.Sequential(conv(128, 128), nn.Conv2d(128, len(CLASSES) + 4 * BINS, 1)) for _ in STRIDES
            )

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            x, levels = self.stages[0](self.stem(x)), []
            for stage, lateral in zip(self.stages[1:], self.lateral, strict=True):
                x = stage(x)
                levels.append(lateral(x))
            for fine, coarse in ((1, 2), (0, 1)):  # what is known of the whole goes to the details
                levels[fine] = levels[fine] + _resized(levels[coarse], levels[fine])
            for coarse, fine in ((1, 0), (2, 1)):  # and back
                levels[coarse] = levels[coarse] + _resized(levels[fine], levels[coarse])
            return [head(level) for head, level in zip(self.heads, levels, strict=True)]

    def _resized(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return functional.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=False)

    return Network()


class NanoDet(Lazy):
    """Scores of the 80 classes in an image, and boxes; weights are those of the package."""

    name, dim = "nanodet-g", len(CLASSES)

    def __init__(self, *, device: str = "cpu", batch_size: int = 4) -> None:
        """`batch_size` images are looked at together; halved by itself where they do not fit."""
        import torch

        self.place = Place(device, torch.bfloat16, None)
        self.images = Batches(batch_size, self.name)

    @property
    def _weights(self) -> bytes:
        return WEIGHTS.joinpath("nanodet_g.safetensors").read_bytes()

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the weights as they ship, and of the numbers they compute in: the key of stored scores."""
        return fingerprint(hashlib.sha256(self._weights).hexdigest(), self.place.dtype, "v1")

    @cached_property
    def model(self) -> Any:
        """The network."""
        import torch
        from safetensors.torch import load

        model = network()
        model.load_state_dict({name: tensor.float() for name, tensor in load(self._weights).items()})
        return model.eval().to(self.place.device, memory_format=torch.channels_last)

    def pixels(self, image: Image.Image) -> NDArray[np.uint8]:
        """(416, 416, 3) uint8 RGB: the whole image squeezed to a square."""
        from PIL import Image as PIL

        return np.asarray(image.resize((SIZE, SIZE), PIL.Resampling.BILINEAR))

    def _forward(self, batch: Sequence[NDArray[np.uint8]]) -> list[Any]:
        import torch

        pixels = torch.from_numpy(np.stack(batch)).to(self.place.device).flip(3).float()
        x = (pixels - torch.tensor(MEAN, device=pixels.device)) / torch.tensor(SPREAD, device=pixels.device)
        # Twice as fast on processors that have it; scores differ by .01 at most.
        half = torch.autocast(pixels.device.type, torch.bfloat16, enabled=self.place.dtype == torch.bfloat16)
        with torch.inference_mode(), half:
            return [level.float() for level in self.model(x.permute(0, 3, 1, 2))]

    def encode_pixels(self, batch: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        """(B, 80) float32: of each class the score in [0, 1] of the cell that is surest of it."""
        return self.images.run(batch, self._scores, self.dim)

    def _scores(self, batch: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        import torch

        levels = [level[:, : len(CLASSES)].flatten(2).amax(2) for level in self._forward(batch)]
        return torch.stack(levels).amax(0).sigmoid().cpu().numpy()

    def boxes(self, pixels: NDArray[np.uint8], *, least: float = 0.3) -> list[tuple[int, float, tuple[float, ...]]]:
        """(class index, score, (left, top, right, bottom) as shares of width and height), surest first.

        Args:
            pixels: (416, 416, 3) uint8, of `pixels`.
            least: score in [0, 1] from which on there is a box; of overlapping ones of a class the surest stays.
        """
        import torch
        from torchvision.ops import batched_nms

        found = []
        for level, stride in zip(self._forward([pixels]), STRIDES, strict=True):
            scores, distances = level[0].split([len(CLASSES), 4 * BINS])
            which, y, x = torch.nonzero(scores.sigmoid() >= least, as_tuple=True)
            steps = distances[:, y, x].T.reshape(-1, 4, BINS).softmax(2) @ torch.arange(BINS, dtype=torch.float32)
            left, top, right, bottom = (steps * stride).T
            middle_x, middle_y = (x + 0.5) * stride, (y + 0.5) * stride
            corners = torch.stack([middle_x - left, middle_y - top, middle_x + right, middle_y + bottom], 1)
            found.append((corners.clamp(0, SIZE), scores.sigmoid()[which, y, x], which))
        corners, surest, which = (torch.cat(parts) for parts in zip(*found, strict=True))
        return [
            (int(which[i]), float(surest[i]), tuple((corners[i] / SIZE).tolist()))
            for i in batched_nms(corners, surest, which, 0.6)
        ]


@lru_cache(maxsize=1)
def packaged_detector() -> NanoDet:
    """The detector as it ships, loaded once."""
    return NanoDet()


def _spelling(name: str) -> str:
    return "".join([*name.split()[:-1], *map(singular, name.split()[-1:])])


@cache
def _spelt() -> dict[str, str]:
    return {_spelling(name): name for name in CLASSES}


def class_of(name: str) -> str | None:
    """The class that is called so, spelt apart or not ("surf board"), one or many; None for synonyms and all else."""
    return _spelt().get(_spelling(name))


@lru_cache(maxsize=1)
def _worth() -> dict[str, Any]:
    """What scores are worth, class by class (scripts/measure/second_judge.py)."""
    return json.loads(WEIGHTS.joinpath("nanodet_g.json").read_text())


def log_ratio(name: str, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """(N,) log of how much better "the image shows it" explains the scores (N, 80) of a class than "it does not".

    Raises:
        BadData: none of the 80 classes.
    """
    known = class_of(name)
    if known is None:
        raise BadData(f"{name!r} is none of the {len(CLASSES)} classes of {NanoDet.name}: {', '.join(CLASSES)}.")
    score = np.clip(np.asarray(scores[:, CLASSES.index(known)], np.float64), 1e-4, 1 - 1e-4)
    return _worth()["intercept"][known] + _worth()["slope"] * np.log(score / (1 - score))


def usual_when_absent(name: str) -> float:
    """The lower quartile of `log_ratio` over photos that do not show the class."""
    return float(_worth()["absent"][class_of(name)])
