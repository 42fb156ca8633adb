"""Scenes for the miniature chat model: drawn once at its size into plain arrays, from which questions are made."""

from __future__ import annotations

import io
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from tqdm import tqdm

from benchmark_builder.scenes.compose import compose_captions
from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES, draw_layers, flatten, measure, visible_masks
from benchmark_builder.scenes.objects import KIND_BY_NAME
from benchmark_builder.scenes.pen import COLOURS

SIDE, PATCH = 96, 16
GRID = SIDE // PATCH
MOST = 5  # objects of a scene
COLOUR_NAMES = tuple(sorted(COLOURS))
_SIZES, _SPOTS = ("", "small", "large"), ("left", "middle", "right")
# Pictures come to the model in other sizes than its own, and as JPEG files: it should have seen both.
_DRAWN_AT, _OFTEN = (96, 128, 192, 256), (0.4, 0.25, 0.15, 0.2)
_UNSAID = frozenset({"pizza", "stop sign", "traffic light"})
_BLOCK = 500


@dataclass(frozen=True)
class Pool:
    """N scenes as arrays.

    Attributes:
        images: (N, SIDE, SIDE, 3) uint8.
        cover: (N, MOST, GRID * GRID) uint8, which share (of 255) of each patch shows each object.
        names, colours, sizes, spots: (N, MOST) int8, indices; -1 in `names` where there are fewer objects.
        places: (N,) int8.
    """

    images: np.ndarray
    cover: np.ndarray
    names: np.ndarray
    colours: np.ndarray
    sizes: np.ndarray
    spots: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places)

    def objects(self, row: int) -> list[str]:
        """Names of the scene's objects, sorted."""
        return sorted(OBJECT_NAMES[i] for i in self.names[row] if i >= 0)

    def place(self, row: int) -> str:
        """Name of the scene's place."""
        return BACKGROUND_NAMES[self.places[row]]

    def captions(self, row: int, rng: random.Random, n: int) -> list[str]:
        """True captions of the scene, made anew at each call."""
        seen = [(OBJECT_NAMES[i], k) for k, i in enumerate(self.names[row]) if i >= 0]
        return compose_captions(
            [name for name, _ in seen],
            rng=rng,
            n=n,
            place=self.place(row),
            attributes={name: COLOUR_NAMES[self.colours[row, k]] for name, k in seen if name not in _UNSAID},
            sizes={name: _SIZES[self.sizes[row, k]] for name, k in seen if self.sizes[row, k]},
            positions={name: _SPOTS[self.spots[row, k]] for name, k in seen},
        )


def _draw(index: int, seed: int) -> tuple[np.ndarray, ...]:
    """One scene as the rows of the pool's arrays."""
    rng = random.Random(f"{seed}-{index}-pool")
    size = rng.choices(_DRAWN_AT, _OFTEN)[0]
    layers = draw_layers(index, seed=seed, size=size)
    cover = np.zeros((MOST, GRID * GRID), np.uint8)
    names, colours, sizes, spots = (np.full(MOST, -1, np.int8) for _ in range(4))
    for k, (item, mask) in enumerate(zip(layers.placed, visible_masks(layers), strict=True)):
        (left, _, width, _), _ = measure(mask)
        shares = np.asarray(Image.fromarray(mask.astype(np.float32)).resize((GRID, GRID), Image.Resampling.BOX))
        cover[k] = np.round(255 * shares.ravel())
        low, high = KIND_BY_NAME[item.name].heights
        middling = low + 0.25 * (high - low) < item.height < low + 0.75 * (high - low)
        names[k], colours[k] = OBJECT_NAMES.index(item.name), COLOUR_NAMES.index(item.colour)
        sizes[k] = 0 if middling else 1 if item.height < (low + high) / 2 else 2
        spots[k] = 0 if left + width / 2 < 0.37 else 2 if left + width / 2 > 0.63 else 1
    picture = flatten(layers)
    if rng.random() < 0.5:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=rng.randint(80, 95))
        picture = Image.open(file)
    if picture.size != (SIDE, SIDE):
        picture = picture.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    place = np.array(BACKGROUND_NAMES.index(layers.place), np.int8)
    return np.asarray(picture.convert("RGB")), cover, names, colours, sizes, spots, place


def _draw_block(block: tuple[int, int, int]) -> tuple[np.ndarray, ...]:
    start, stop, seed = block
    return tuple(np.stack(rows) for rows in zip(*(_draw(i, seed) for i in range(start, stop)), strict=True))


def make_pool(n: int, *, seed: int, folder: Path | None = None, workers: int = 1) -> Pool:
    """Scenes 0 to n - 1 of this seed; kept in `folder` and read from there the next time."""
    parts = tuple(Pool.__dataclass_fields__)
    files = [folder / f"{part}-{n}-{seed}.npy" for part in parts] if folder else []
    if files and files[-1].exists():  # the last one is written last, so all are complete
        return Pool(*(np.load(file, mmap_mode="r") for file in files))
    blocks = [(start, min(n, start + _BLOCK), seed) for start in range(0, n, _BLOCK)]
    with ProcessPoolExecutor(workers) as pool:
        drawn = list(tqdm(pool.map(_draw_block, blocks), total=len(blocks), desc="scenes", disable=None))
    arrays = [np.concatenate(rows) for rows in zip(*drawn, strict=True)]
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for file, array in zip(files, arrays, strict=True):
            np.save(file, array)
    return Pool(*arrays)
