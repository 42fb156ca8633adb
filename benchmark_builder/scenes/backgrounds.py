"""The places a scene can be set in: how each looks, where its horizon lies, and what is usually found there."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import yaml
from PIL import Image, ImageDraw

from benchmark_builder.scenes.drawings import FOLDER, draw
from benchmark_builder.scenes.pen import Pen

ELSEWHERE = 0.26  # weight of an object in a place where one does not expect it


@dataclass(frozen=True)
class Place:
    """One place. ``horizons`` is the range of the line between wall (or sky) and ground, as a fraction from the top.

    ``usual`` gives the relative frequency of the objects that belong here; all others share ``ELSEWHERE`` each.
    """

    name: str
    horizons: tuple[float, float]
    usual: Mapping[str, float]


PLACES = tuple(
    Place(name, tuple(place["horizons"]), place["usual"])
    for name, place in yaml.safe_load((FOLDER / "places.yaml").read_text("utf-8")).items()
)


def paint_place(place: Place, horizon: float, pixels: int, rng: random.Random) -> Image.Image:
    """A square RGB picture of the empty place, ``pixels`` wide, with the horizon at that fraction from the top."""
    picture = Image.new("RGB", (pixels, pixels))
    pen = Pen(ImageDraw.Draw(picture), 0, 0, pixels, pixels, mirror=rng.random() < 0.5)
    draw(f"places/{place.name}", pen, rng, horizon=horizon)
    return picture
