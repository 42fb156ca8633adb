"""The kinds of objects a scene can show: what each looks like, its size, and where it may stand."""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageChops, ImageDraw

from benchmark_builder.scenes.drawings import FOLDER, draw
from benchmark_builder.scenes.pen import COLOURS, Pen, channels, mixed


@dataclass(frozen=True)
class ObjectKind:
    """One kind of object; ``heights`` is the range of its height as a fraction of the image height.

    ``aspect`` is width over height. ``zone`` says where it goes: "ground" stands below the horizon, "sky" and
    "wall" lie above it, "water" straddles it. ``tilt`` is the largest turn in degrees. What bears letters is never
    ``mirrored``.
    """

    name: str
    aspect: float
    heights: tuple[float, float]
    zone: str
    tilt: float
    mirrored: bool
    colours: tuple[str, ...]


KINDS = tuple(
    ObjectKind(
        name=row["name"],
        aspect=float(row["aspect"]),
        heights=(float(row["shortest"]), float(row["tallest"])),
        zone=row["zone"],
        tilt=float(row["tilt"]),
        mirrored=row["mirrored"] == "yes",
        colours=tuple(row["colours"].split()),
    )
    for row in csv.DictReader((FOLDER / "objects.csv").read_text("utf-8").splitlines())
)
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
    mirror = rng.random() < 0.5 and kind.mirrored
    pen = Pen(ImageDraw.Draw(layer), (side - width) / 2, (side - height) / 2, width, height, mirror, tilt)
    base = channels(COLOURS[colour])
    reach = 14 if max(base) - min(base) > 20 else 4  # a stronger tint would turn black, grey and white into colours
    tint, strength = [rng.uniform(-reach, reach) for _ in range(3)], rng.uniform(0.88, 1.08)
    varied = (round(min(250, max(18, channel * strength + extra))) for channel, extra in zip(base, tint, strict=True))
    draw(f"objects/{kind.name}", pen, rng, c=mixed(*varied))
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
