"""Draws everyday scenes whose contents are known exactly, with captions: an open base for benchmarks and demos."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw
from tqdm import tqdm

from benchmark_builder.scenes.backgrounds import ELSEWHERE, PLACES, Place, paint_place
from benchmark_builder.scenes.compose import compose_captions
from benchmark_builder.scenes.objects import KIND_BY_NAME, KINDS, ObjectKind, paint_object
from symbal_hf.core.files import write_whole

OBJECT_NAMES: tuple[str, ...] = tuple(sorted(kind.name for kind in KINDS))
BACKGROUND_NAMES: tuple[str, ...] = tuple(sorted(place.name for place in PLACES))
MIN_AREA = 0.01  # smallest visible share of the image
DRAWING_VERSION = 1  # raise when pictures or captions change, so that stored folders are not mistaken for new ones

_SCALE = 2  # scenes are drawn this much larger and then halved, which smooths the edges
_COUNTS = ((1, 2, 3, 4, 5), (0.07, 0.23, 0.37, 0.23, 0.10))  # how many kinds of objects, and how often
_COMPANIONS = (  # pairs seen together more often than their places alone explain
    frozenset({"person", "dog"}), frozenset({"person", "umbrella"}), frozenset({"person", "bicycle"}),
    frozenset({"laptop", "cup"}), frozenset({"table", "chair"}), frozenset({"couch", "television"}),
    frozenset({"toilet", "sink"}), frozenset({"bed", "teddy bear"}), frozenset({"pizza", "bottle"}),
)  # fmt: skip
_COLOUR_UNSAID = frozenset({"pizza", "stop sign", "traffic light"})  # "green" would be taken for the light


@dataclass(frozen=True)
class SceneObject:
    """One object; ``box`` is x, y, width, height of its visible pixels, as fractions of the image (0..1).

    ``area_fraction`` is visible pixels over image pixels; ``colour`` is a plain colour word.
    """

    name: str
    box: tuple[float, float, float, float]
    area_fraction: float
    colour: str


@dataclass(frozen=True)
class Scene:
    """What a picture shows: its place, one to five different objects, and five captions."""

    image_id: int
    background: str
    objects: tuple[SceneObject, ...]
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Placed:
    """One painted object: an RGBA picture at twice the size of the scene, put at pixel (x, y) of the scene."""

    name: str
    colour: str
    picture: Image.Image
    mask: np.ndarray  # bool, at the size of the scene: where the object covers at least half of a pixel
    x: int
    y: int
    height: float  # that of its upright box, as a fraction of the image height


@dataclass(frozen=True)
class Layers:
    """A scene before it is flattened; ``placed`` runs from back to front."""

    place: str
    ground: Image.Image
    placed: tuple[Placed, ...]
    light: Image.Image
    grain: float
    grain_shift: tuple[int, int]


def make_scene(index: int, *, seed: int = 0, size: int = 256) -> tuple[Scene, Image.Image]:
    """The scene with this index (>= 0) and its RGB picture of ``size`` x ``size`` pixels; size should be >= 64.

    The result depends on ``seed``, ``index`` and ``size`` alone.
    """
    layers = draw_layers(index, seed=seed, size=size)
    objects, sizes, positions = [], {}, {}
    for item, visible in zip(layers.placed, visible_masks(layers), strict=True):
        box, area = measure(visible)
        objects.append(SceneObject(item.name, box, area, item.colour))
        low, high = KIND_BY_NAME[item.name].heights
        if not low + 0.25 * (high - low) < item.height < low + 0.75 * (high - low):
            sizes[item.name] = "small" if item.height < (low + high) / 2 else "large"
        centre = box[0] + box[2] / 2
        positions[item.name] = "left" if centre < 0.37 else "right" if centre > 0.63 else "middle"
    colours = {item.name: item.colour for item in objects if item.name not in _COLOUR_UNSAID}
    captions = compose_captions(
        [item.name for item in objects],
        rng=random.Random(f"{seed}-{index}-captions"),
        place=layers.place,
        attributes=colours,
        sizes=sizes,
        positions=positions,
    )
    return Scene(index, layers.place, tuple(objects), tuple(captions)), flatten(layers)


def draw_layers(index: int, *, seed: int = 0, size: int = 256) -> Layers:
    """The place and the objects of a scene as separate pictures."""
    rng = random.Random(f"{seed}-{index}")
    place = rng.choice(PLACES)
    horizon = rng.uniform(*place.horizons)
    ground = paint_place(place, horizon, size * _SCALE, rng)
    placed: list[Placed] = []
    names = _choose_kinds(place, rng)
    largest_first = sorted(names, key=lambda name: -(KIND_BY_NAME[name].heights[1] ** 2) * KIND_BY_NAME[name].aspect)
    for name in largest_first:  # the large ones are the hardest to find room for
        item = _put(KIND_BY_NAME[name], place, horizon, placed, size, rng, crowd=len(names))
        if item is not None:
            placed.append(item)
    placed.sort(key=lambda item: item.y + item.picture.height // _SCALE)
    shift = (rng.randrange(size), rng.randrange(size))
    return Layers(place.name, ground, tuple(placed), _random_light(rng), rng.uniform(0.8, 3.5), shift)


def _choose_kinds(place: Place, rng: random.Random) -> list[str]:
    """Different kinds of objects, most of them at home in the place."""
    count, chosen = rng.choices(*_COUNTS)[0], list[str]()
    while len(chosen) < count:
        names = [kind.name for kind in KINDS if kind.name not in chosen]
        weights = [place.usual.get(name, ELSEWHERE) for name in names]
        for i, name in enumerate(names):
            if any(frozenset({name, other}) in _COMPANIONS for other in chosen):
                weights[i] *= 2
        chosen += rng.choices(names, weights)
    return chosen


def _put(
    kind: ObjectKind, place: Place, horizon: float, placed: list[Placed], size: int, rng: random.Random, *, crowd: int
) -> Placed | None:
    """The object painted where it neither hides the others nor is hidden; None if there is no room at all."""
    colour = rng.choice(kind.colours)
    height = rng.uniform(*kind.heights) * (1.0 if crowd < 4 else 0.88)
    for attempt in range(12):
        picture = paint_object(kind, colour, height * size * _SCALE, rng)
        half = np.asarray(picture.getchannel("A").reduce(_SCALE)) >= 128
        rows, columns = half.shape
        if int(half.sum()) < MIN_AREA * 1.1 * size * size:
            height *= 1.12
            continue
        if rows > size or columns > size:
            height *= 0.9
            continue
        # A crowded floor makes the object smaller first; only then may it hang in the air.
        spots = [_spot(kind, place, horizon, rows / size, columns / size, rng, anywhere=attempt > 8) for _ in range(40)]
        corners = [(min(round(x * size), size - columns), min(round(y * size), size - rows)) for x, y in spots]
        for x, y in sorted(corners, key=lambda corner: _box_overlap(corner, half.shape, placed))[:3]:
            mask = np.zeros((size, size), dtype=bool)
            mask[y : y + rows, x : x + columns] = half
            if _leaves_all_visible(mask, placed):
                return Placed(kind.name, colour, picture, mask, x, y, height)
        height *= 0.95
    return None


def _spot(
    kind: ObjectKind, place: Place, horizon: float, height: float, width: float, rng: random.Random, *, anywhere: bool
) -> tuple[float, float]:
    """A left and top edge (fractions) for a box of this height and width, in the zone of the kind if possible."""
    left = rng.uniform(0.01, max(0.01, 0.99 - width))
    lowest = max(0.0, 0.985 - height)
    if anywhere:
        return left, rng.uniform(0.01, max(0.01, lowest))
    if kind.zone in ("sky", "wall"):
        return left, rng.uniform(0.015, max(0.02, horizon - height * 0.95))
    afloat = kind.zone == "water" and place.name == "beach"
    floor = (horizon + 0.02, horizon + 0.2) if afloat else (horizon + 0.03, 0.985)
    return left, max(0.01, min(lowest, rng.uniform(*floor) - height))


def _box_overlap(corner: tuple[int, int], shape: tuple[int, ...], placed: list[Placed]) -> int:
    """Pixels that the box at this corner shares with the boxes of the objects placed so far."""
    total, (x, y), (rows, columns) = 0, corner, shape
    for item in placed:
        wide = min(x + columns, item.x + item.picture.width // _SCALE) - max(x, item.x)
        tall = min(y + rows, item.y + item.picture.height // _SCALE) - max(y, item.y)
        total += max(0, wide) * max(0, tall)
    return total


def _leaves_all_visible(mask: np.ndarray, placed: list[Placed]) -> bool:
    """Whether, whoever stands in front, at most a tenth of each object and never too much of it gets hidden."""
    masks = [*(item.mask for item in placed), mask]
    for i, one in enumerate(masks):
        hidden = sum(int((one & other).sum()) for j, other in enumerate(masks) if j != i)
        pixels = int(one.sum())
        if hidden > 0.1 * pixels or pixels - hidden < MIN_AREA * one.size:
            return False
    return True


def visible_masks(layers: Layers) -> list[np.ndarray]:
    """For each placed object the pixels that show it (bool arrays, rows x columns) once all in front are drawn."""
    masks = []
    for i, item in enumerate(layers.placed):
        visible = item.mask.copy()
        for front in layers.placed[i + 1 :]:
            visible &= ~front.mask
        masks.append(visible)
    return masks


def measure(mask: np.ndarray) -> tuple[tuple[float, float, float, float], float]:
    """The tight box (x, y, width, height) of the true pixels and their share, all as fractions of the image."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = mask.shape
    x0, x1, y0, y1 = int(columns[0]), int(columns[-1]) + 1, int(rows[0]), int(rows[-1]) + 1
    return (x0 / width, y0 / height, (x1 - x0) / width, (y1 - y0) / height), int(mask.sum()) / mask.size


def flatten(layers: Layers, *, without: str | None = None) -> Image.Image:
    """The finished RGB picture; ``without`` leaves one object and its shadow out."""
    canvas = layers.ground.copy()
    items = [item for item in layers.placed if item.name != without]
    for item in items:
        if KIND_BY_NAME[item.name].zone == "ground":
            _cast_shadow(canvas, item)
    for item in items:
        canvas.paste(item.picture, (item.x * _SCALE, item.y * _SCALE), item.picture)
    # A box filter rather than a wider one: pixels then mix only what lies inside them, as the masks assume.
    small = canvas.reduce(_SCALE)
    lit = ImageChops.multiply(small, layers.light.resize(small.size, Image.Resampling.BICUBIC))
    grain = np.roll(_grain(small.width), layers.grain_shift, axis=(0, 1)) * layers.grain
    noisy = np.asarray(lit, dtype=np.float32) + grain[:, :, None]
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def _cast_shadow(canvas: Image.Image, item: Placed) -> None:
    """Darkens a flat ellipse under the object."""
    width, bottom = item.picture.width, item.y * _SCALE + item.picture.height
    depth = max(4, width // 9)
    shadow = Image.new("L", (width, depth))
    ImageDraw.Draw(shadow).ellipse((0, 0, width - 1, depth - 1), fill=74)
    canvas.paste((20, 20, 26), (item.x * _SCALE, bottom - depth // 2 - 1), shadow)


def _random_light(rng: random.Random) -> Image.Image:
    """A 4 x 4 picture of uneven, slightly tinted light, to be stretched over the scene."""
    strength, tint = rng.uniform(0.92, 1.0), [rng.uniform(0.95, 1.0) for _ in range(3)]
    light = Image.new("RGB", (4, 4))
    levels = [rng.uniform(0.9, 1.0) for _ in range(16)]
    light.putdata([tuple(round(255 * strength * channel * level) for channel in tint) for level in levels])
    return light


@lru_cache(maxsize=4)
def _grain(size: int) -> np.ndarray:
    """Fixed noise of unit spread; scenes shift it about, which is far cheaper than drawing it anew."""
    return np.random.default_rng(2024).standard_normal((size, size), dtype=np.float32)


def write_scenes(folder: Path, n: int, *, seed: int = 0, size: int = 256) -> Path:
    """Writes scenes 0 to n - 1 below ``folder`` and returns the path of the metadata, ``folder/scenes.jsonl``.

    Pictures are JPEG files ``images/000000.jpg`` and so on. The metadata is written last, so a folder that has it is
    complete; one made with the same ``n``, ``seed`` and ``size`` is kept as it is.
    """
    metadata, settings_file = folder / "scenes.jsonl", folder / "settings.json"
    settings = {"n": n, "seed": seed, "size": size, "version": DRAWING_VERSION}
    if metadata.exists() and settings_file.exists() and json.loads(settings_file.read_text("utf-8")) == settings:
        return metadata
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    metadata.unlink(missing_ok=True)  # from here on the folder counts as incomplete
    for stale in images.glob("*.jpg"):
        stale.unlink()
    settings_file.write_text(json.dumps(settings), "utf-8")
    lines = []
    for index in tqdm(range(n), desc="scenes", unit="scene", disable=None):
        scene, picture = make_scene(index, seed=seed, size=size)
        name = f"images/{index:06d}.jpg"
        picture.save(folder / name, quality=90)
        lines.append(json.dumps(scene_row(scene, name)) + "\n")
    write_whole(metadata, "".join(lines))
    return metadata


def scene_row(scene: Scene, image: str) -> dict[str, object]:
    """The metadata row of a scene; ``image`` is the path of its picture relative to the metadata."""
    return {
        "image_id": scene.image_id,
        "image": image,
        "background": scene.background,
        "objects": sorted({item.name for item in scene.objects}),
        "boxes": [asdict(item) for item in scene.objects],
        "captions": list(scene.captions),
    }
