"""The kinds of objects a scene can show: what each looks like, its size, and where it may stand."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw

from benchmark_builder.scenes import objects_indoor as indoor
from benchmark_builder.scenes import objects_outdoor as outdoor
from benchmark_builder.scenes import objects_small as small
from benchmark_builder.scenes.objects_pen import COLOURS, Colour, Pen

Recipe = Callable[[Pen, Colour, random.Random], None]


@dataclass(frozen=True)
class ObjectKind:
    """One kind of object; ``heights`` is the range of its height as a fraction of the image height.

    ``aspect`` is width over height. ``zone`` says where it goes: "ground" stands below the horizon, "sky" and
    "wall" lie above it, "water" straddles it. ``tilt`` is the largest turn in degrees.
    """

    name: str
    draw: Recipe
    aspect: float
    heights: tuple[float, float]
    zone: str
    tilt: float
    colours: tuple[str, ...]


def _kind(
    name: str, draw: Recipe, aspect: float, heights: tuple[float, float], zone: str, tilt: float, colours: str
) -> ObjectKind:
    return ObjectKind(name, draw, aspect, heights, zone, tilt, tuple(colours.split()))


_VIVID = "red blue green yellow purple pink"

KINDS: tuple[ObjectKind, ...] = (
    _kind("person", outdoor.person, 0.40, (0.40, 0.66), "ground", 4, "red blue green yellow purple white black grey"),
    _kind("dog", outdoor.dog, 1.25, (0.20, 0.36), "ground", 5, "brown black white grey"),
    _kind("cat", outdoor.cat, 0.80, (0.22, 0.38), "ground", 5, "black grey white brown"),
    _kind("bird", outdoor.bird, 1.30, (0.15, 0.28), "ground", 12, "blue red yellow green white brown grey black"),
    _kind("car", outdoor.car, 2.10, (0.17, 0.27), "ground", 3, "red blue green yellow white black grey"),
    _kind("bus", outdoor.bus, 2.10, (0.20, 0.31), "ground", 3, "red blue green yellow white"),
    _kind("bicycle", outdoor.bicycle, 1.55, (0.25, 0.38), "ground", 5, _VIVID + " black white"),
    _kind("boat", outdoor.boat, 0.95, (0.28, 0.46), "water", 7, "red blue green white brown"),
    _kind("airplane", outdoor.airplane, 2.20, (0.15, 0.26), "sky", 16, "red blue green yellow"),
    _kind("kite", outdoor.kite, 0.70, (0.28, 0.44), "sky", 28, _VIVID),
    _kind("umbrella", outdoor.umbrella, 1.00, (0.26, 0.42), "ground", 20, _VIVID + " black"),
    _kind("bench", outdoor.bench, 1.90, (0.19, 0.29), "ground", 3, "brown green grey red"),
    _kind("traffic light", outdoor.traffic_light, 0.34, (0.36, 0.56), "ground", 3, "black yellow grey"),
    _kind("stop sign", outdoor.stop_sign, 0.55, (0.34, 0.52), "ground", 7, "red"),
    _kind("ball", small.ball, 1.00, (0.14, 0.25), "ground", 180, "white red blue green yellow purple"),
    _kind("suitcase", small.suitcase, 0.68, (0.24, 0.38), "ground", 6, _VIVID + " black grey brown"),
    _kind("chair", indoor.chair, 0.60, (0.30, 0.46), "ground", 4, "brown white black red blue green"),
    _kind("couch", indoor.couch, 1.90, (0.22, 0.32), "ground", 2, "red blue green grey brown purple pink"),
    _kind("table", indoor.table, 1.60, (0.22, 0.33), "ground", 2, "brown white grey black"),
    _kind("bed", indoor.bed, 1.85, (0.25, 0.34), "ground", 2, "red blue green purple pink yellow grey"),
    _kind("lamp", indoor.lamp, 0.58, (0.28, 0.44), "ground", 4, "yellow white red green blue pink"),
    _kind("television", indoor.television, 1.45, (0.22, 0.34), "ground", 3, "black grey white"),
    _kind("clock", indoor.clock, 1.00, (0.17, 0.29), "wall", 8, "red blue green brown black grey"),
    _kind("refrigerator", indoor.refrigerator, 0.48, (0.40, 0.58), "ground", 2, "white grey red blue black green"),
    _kind("oven", indoor.oven, 0.98, (0.26, 0.38), "ground", 2, "white grey black red"),
    _kind("toilet", indoor.toilet, 0.70, (0.27, 0.40), "ground", 3, "white pink grey green"),
    _kind("sink", indoor.sink, 0.95, (0.26, 0.38), "ground", 3, "white grey pink blue"),
    _kind("laptop", small.laptop, 1.35, (0.18, 0.29), "ground", 6, "grey black white blue pink"),
    _kind("book", small.book, 1.15, (0.18, 0.28), "ground", 15, _VIVID + " brown black"),
    _kind("cup", small.cup, 1.00, (0.16, 0.26), "ground", 8, _VIVID + " white black"),
    _kind("bottle", small.bottle, 0.33, (0.30, 0.44), "ground", 8, "green brown blue red purple"),
    _kind("vase", small.vase, 0.60, (0.28, 0.42), "ground", 5, "blue white red green purple brown"),
    _kind("banana", small.banana, 1.25, (0.17, 0.27), "ground", 25, "yellow yellow yellow green"),
    _kind("pizza", small.pizza, 1.20, (0.20, 0.32), "ground", 10, "brown"),
    _kind("cake", small.cake, 0.95, (0.22, 0.34), "ground", 4, "pink white brown purple blue"),
    _kind("teddy bear", small.teddy_bear, 0.80, (0.25, 0.38), "ground", 9, "brown white pink grey"),
)
_READABLE = (outdoor.stop_sign,)  # bears letters, so is never mirrored
KIND_BY_NAME: dict[str, ObjectKind] = {kind.name: kind for kind in KINDS}


def paint_object(kind: ObjectKind, colour: str, height: float, rng: random.Random) -> Image.Image:
    """The object alone as a tight RGBA picture with even sides; ``height`` is that of its upright box in pixels.

    Alpha is 0 or 255. The sides are even so that halving the picture later keeps pixel borders where they were.
    """
    stretch = rng.uniform(0.92, 1.08)
    width = height * kind.aspect * stretch
    tilt = rng.uniform(-kind.tilt, kind.tilt)
    side = math.ceil(math.hypot(width, height) / 2) * 2 + 8
    layer = Image.new("RGBA", (side, side))
    mirror = rng.random() < 0.5 and kind.draw not in _READABLE
    pen = Pen(ImageDraw.Draw(layer), (side - width) / 2, (side - height) / 2, width, height, mirror, tilt)
    base = COLOURS[colour]
    reach = 14 if max(base) - min(base) > 20 else 4  # a stronger tint would turn black, grey and white into colours
    tint, strength = [rng.uniform(-reach, reach) for _ in range(3)], rng.uniform(0.88, 1.08)
    varied = tuple(
        round(min(250, max(18, channel * strength + extra))) for channel, extra in zip(base, tint, strict=True)
    )
    kind.draw(pen, varied, rng)  # type: ignore[arg-type]
    left, top, right, bottom = layer.getbbox() or (0, 0, 2, 2)
    layer = layer.crop((left, top, right + (right - left) % 2, bottom + (bottom - top) % 2))
    return _light(layer, rng.random() < 0.5)


def _light(layer: Image.Image, from_right: bool) -> Image.Image:
    """The picture lit from one upper corner, which takes away the flat look of evenly filled shapes."""
    glow = _glow(from_right).resize(layer.size, Image.Resampling.BILINEAR)
    lit = ImageChops.multiply(layer.convert("RGB"), glow)
    lit.putalpha(layer.getchannel("A"))
    return lit


@lru_cache(maxsize=2)
def _glow(from_right: bool) -> Image.Image:
    """A 16 x 16 picture, brightest in one upper corner."""
    glow = Image.new("L", (16, 16))
    glow.putdata([255 - round(2.4 * ((15 - x if from_right else x) * 0.6 + y)) for y in range(16) for x in range(16)])
    return Image.merge("RGB", (glow, glow, glow))
