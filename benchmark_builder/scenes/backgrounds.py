"""The places a scene can be set in: how each looks, where its horizon lies, and what is usually found there."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PIL import Image, ImageDraw

from benchmark_builder.scenes.objects_pen import GLASS, METAL, WHITE, Colour, Pen, shade

Painter = Callable[[Pen, float, random.Random], None]


@dataclass(frozen=True)
class Place:
    """One place. ``horizons`` is the range of the line between wall (or sky) and ground, as a fraction from the top.

    ``usual`` gives the relative frequency of the objects that belong here; all others share ``ELSEWHERE`` each.
    """

    name: str
    paint: Painter
    horizons: tuple[float, float]
    usual: Mapping[str, float]


_WALLS: tuple[Colour, ...] = (
    (228, 216, 196),
    (206, 216, 206),
    (196, 210, 224),
    (232, 206, 196),
    (214, 206, 222),
    (240, 232, 206),
    (186, 196, 190),
)
_WOODS: tuple[Colour, ...] = ((176, 132, 90), (144, 100, 66), (202, 166, 124), (112, 82, 62))
_SKIES: tuple[Colour, ...] = ((150, 196, 236), (178, 208, 232), (120, 176, 228), (206, 214, 222), (240, 208, 180))


def _vary(colour: Colour, rng: random.Random) -> Colour:
    return tuple(min(255, max(0, channel + rng.randint(-12, 12))) for channel in colour)  # type: ignore[return-value]


def _bands(pen: Pen, top: float, bottom: float, start: Colour, end: Colour, steps: int = 14) -> None:
    """Fills from ``top`` to ``bottom`` with a colour that slides from ``start`` to ``end``."""
    for i in range(steps):
        share = i / (steps - 1)
        colour = tuple(round(a + (b - a) * share) for a, b in zip(start, end, strict=True))
        pen.rect(0, top + (bottom - top) * i / steps, 1, bottom, colour)  # type: ignore[arg-type]


def _planks(pen: Pen, horizon: float, colour: Colour, rng: random.Random) -> None:
    """A wooden floor whose boards run towards the viewer."""
    _bands(pen, horizon, 1, shade(colour, 0.82), colour)
    centre, count = rng.uniform(0.3, 0.7), rng.randint(9, 14)
    for i in range(-count, count + 1):
        pen.line([(centre + i * 0.07, horizon), (centre + i * 0.2, 1)], 0.004, shade(colour, 0.7))


def _tiles(pen: Pen, y0: float, y1: float, size: float, tile: Colour, gap: Colour) -> None:
    """A tiled surface, seen face on."""
    pen.rect(0, y0, 1, y1, tile)
    for i in range(int(1 / size) + 1):
        pen.line([(i * size, y0), (i * size, y1)], 0.005, gap)
    for i in range(int((y1 - y0) / size) + 1):
        pen.line([(0, y1 - i * size), (1, y1 - i * size)], 0.005, gap)


def _floor_tiles(pen: Pen, horizon: float, tile: Colour, rng: random.Random) -> None:
    """A chequered floor in perspective."""
    _bands(pen, horizon, 1, shade(tile, 0.85), tile)
    other, rows, centre, depth = shade(tile, rng.choice([0.78, 1.4])), 5, rng.uniform(0.4, 0.6), 1 - horizon
    edges = [horizon + depth * (i / rows) ** 1.7 for i in range(rows + 1)]
    for row in range(rows):
        near, far = ((edge - horizon) / depth * 0.16 + 0.1 for edge in (edges[row + 1], edges[row]))
        for k in range(-7, 8):
            if (k + row) % 2:
                corners = [(centre + k * far, edges[row]), (centre + (k + 1) * far, edges[row])]
                pen.poly(
                    [*corners, (centre + (k + 1) * near, edges[row + 1]), (centre + k * near, edges[row + 1])], other
                )


def _window(pen: Pen, x0: float, y0: float, x1: float, y1: float, rng: random.Random) -> None:
    pen.rect(x0 - 0.015, y0 - 0.015, x1 + 0.015, y1 + 0.02, WHITE)
    sky = rng.choice(_SKIES)
    pen.rect(x0, y0, x1, y1, sky)
    ridge = [rng.uniform(0.04, 0.1) for _ in range(3)]
    hills = [(x0 + (x1 - x0) * i / 2, y1 - height) for i, height in enumerate(ridge)]
    pen.poly([(x0, y1), *hills, (x1, y1)], _vary((128, 168, 120), rng))
    pen.rect((x0 + x1) / 2 - 0.006, y0, (x0 + x1) / 2 + 0.006, y1, WHITE)
    pen.rect(x0, (y0 + y1) / 2 - 0.006, x1, (y0 + y1) / 2 + 0.006, WHITE)


def _living_room(pen: Pen, horizon: float, rng: random.Random) -> None:
    wall = _vary(rng.choice(_WALLS), rng)
    pen.rect(0, 0, 1, horizon, wall)
    if rng.random() < 0.6:  # wallpaper
        for i in range(10):
            pen.rect(i * 0.1, 0, i * 0.1 + 0.05, horizon, shade(wall, 0.95))
    x = rng.uniform(0.06, 0.6)
    _window(pen, x, 0.1, x + 0.28, 0.36, rng)
    frame = 0.04 if x > 0.4 else 0.68
    pen.rect(frame, 0.14, frame + 0.22, 0.32, rng.choice(_WOODS))
    pen.rect(frame + 0.02, 0.16, frame + 0.2, 0.3, _vary((170, 150, 130), rng))
    _planks(pen, horizon, rng.choice(_WOODS), rng)
    pen.rect(0, horizon - 0.025, 1, horizon, shade(wall, 1.6))
    rug = _vary(rng.choice([(170, 80, 76), (84, 104, 140), (190, 170, 130), (96, 130, 110)]), rng)
    middle = (horizon + 1) / 2 + 0.05
    pen.oval(0.5, middle, 0.42, (1 - horizon) * 0.3, rug)
    pen.oval(0.5, middle, 0.36, (1 - horizon) * 0.24, shade(rug, 1.25))


def _kitchen(pen: Pen, horizon: float, rng: random.Random) -> None:
    wall, front = (
        _vary(rng.choice(_WALLS), rng),
        _vary(rng.choice([*_WOODS, (226, 228, 226), (110, 140, 150), (150, 170, 140)]), rng),
    )
    pen.rect(0, 0, 1, horizon, wall)
    _tiles(pen, 0.26, horizon, 0.07, shade(wall, 1.45), shade(wall, 0.9))
    gap = rng.uniform(0.1, 0.6)
    for i in range(5):  # cupboards on the wall, with a window between them
        pen.rect(i * 0.2 + 0.004, 0, i * 0.2 + 0.196, 0.2, front)
        pen.rect(i * 0.2 + 0.02, 0.02, i * 0.2 + 0.18, 0.18, shade(front, 1.12))
        pen.disc(i * 0.2 + 0.17, 0.16, 0.008, METAL)
    _window(pen, gap, 0.03, gap + 0.26, 0.32, rng)
    _floor_tiles(pen, horizon, _vary(rng.choice([(216, 206, 190), (176, 180, 184), (200, 160, 130)]), rng), rng)
    top = horizon - 0.13
    pen.rect(0, top, 1, horizon + 0.02, shade(front, 0.9))
    for i in range(6):
        pen.rect(i / 6 + 0.006, top + 0.03, i / 6 + 0.16, horizon + 0.005, shade(front, 1.08))
    pen.rect(0, top - 0.02, 1, top + 0.02, rng.choice([(96, 92, 90), (220, 216, 208), (150, 112, 80)]))


def _bedroom(pen: Pen, horizon: float, rng: random.Random) -> None:
    wall = _vary(rng.choice([(212, 198, 226), (196, 214, 232), (240, 214, 214), (206, 226, 210), (238, 226, 200)]), rng)
    pen.rect(0, 0, 1, horizon, wall)
    for _ in range(14):
        pen.disc(rng.random(), rng.uniform(0.03, horizon - 0.05), 0.013, shade(wall, 0.93))
    x = rng.uniform(0.16, 0.5)
    _window(pen, x, 0.1, x + 0.32, 0.4, rng)
    curtain = _vary(rng.choice([(150, 90, 120), (90, 110, 160), (220, 190, 140), (120, 150, 130)]), rng)
    pen.line([(x - 0.12, 0.07), (x + 0.44, 0.07)], 0.014, (110, 84, 60))
    for left in (x - 0.1, x + 0.3):
        pen.poly([(left, 0.07), (left + 0.12, 0.07), (left + 0.1, 0.47), (left + 0.02, 0.47)], curtain)
        for fold in (0.03, 0.06, 0.09):
            pen.line([(left + fold, 0.08), (left + fold, 0.46)], 0.006, shade(curtain, 0.8))
    carpet = _vary(rng.choice([(186, 170, 160), (150, 150, 170), (200, 184, 150), (160, 134, 140)]), rng)
    _bands(pen, horizon, 1, shade(carpet, 0.86), carpet)
    pen.rect(0, horizon - 0.022, 1, horizon, shade(wall, 1.6))


def _bathroom(pen: Pen, horizon: float, rng: random.Random) -> None:
    tile = _vary(rng.choice([(206, 228, 232), (224, 232, 226), (190, 214, 226), (232, 222, 222)]), rng)
    _tiles(pen, 0, horizon, rng.choice([0.07, 0.09, 0.12]), tile, shade(tile, 0.84))
    trim = _vary(rng.choice([(60, 120, 150), (80, 140, 120), (150, 90, 110), (70, 80, 100)]), rng)
    pen.rect(0, horizon * 0.62, 1, horizon * 0.62 + 0.035, trim)
    x = rng.uniform(0.1, 0.6)
    pen.rect(x, 0.05, x + 0.28, 0.34, shade(METAL, 1.3), 0.03)
    pen.rect(x + 0.015, 0.065, x + 0.265, 0.325, (214, 228, 234), 0.02)
    pen.poly([(x + 0.06, 0.3), (x + 0.17, 0.08), (x + 0.22, 0.08), (x + 0.11, 0.3)], (232, 242, 246))
    rail = x + 0.36 if x < 0.34 else x - 0.26
    pen.line([(rail, 0.3), (rail + 0.2, 0.3)], 0.012, METAL)
    towel = _vary(rng.choice([(224, 120, 110), (110, 150, 200), (240, 236, 220), (140, 190, 150)]), rng)
    pen.rect(rail + 0.03, 0.29, rail + 0.16, 0.5, towel)
    pen.rect(rail + 0.03, 0.43, rail + 0.16, 0.45, shade(towel, 0.8))
    _floor_tiles(pen, horizon, _vary(rng.choice([(180, 190, 196), (120, 140, 150), (206, 200, 190)]), rng), rng)


def _office(pen: Pen, horizon: float, rng: random.Random) -> None:
    wall = _vary(rng.choice([(218, 220, 222), (206, 212, 218), (226, 222, 212)]), rng)
    pen.rect(0, 0, 1, horizon, wall)
    x = rng.uniform(0.04, 0.5)
    _window(pen, x, 0.06, x + 0.4, 0.38, rng)
    for i in range(rng.randint(5, 11)):  # a blind, let down part of the way
        pen.rect(x - 0.01, 0.05 + i * 0.025, x + 0.41, 0.068 + i * 0.025, (236, 236, 230))
    board = 0.52 if x < 0.1 else 0.02 if x > 0.35 else None
    if board is not None:
        pen.rect(board, 0.1, board + 0.3, 0.34, METAL)
        pen.rect(board + 0.01, 0.11, board + 0.29, 0.33, rng.choice([WHITE, (196, 156, 110)]))
        for i in range(4):
            pen.rect(board + 0.03 + i * 0.065, 0.14, board + 0.08 + i * 0.065, 0.2, _vary((220, 200, 140), rng))
    for left in (0.0, 0.5):  # low dividing walls
        pen.rect(left + 0.01, horizon - 0.16, left + 0.49, horizon + 0.01, _vary((142, 156, 172), rng), 0.01)
        pen.rect(left + 0.01, horizon - 0.165, left + 0.49, horizon - 0.145, shade(METAL, 0.8))
    _floor_tiles(pen, horizon, _vary(rng.choice([(104, 112, 124), (130, 126, 120), (86, 100, 116)]), rng), rng)


def _street(pen: Pen, horizon: float, rng: random.Random) -> None:
    sky = rng.choice(_SKIES)
    _bands(pen, 0, horizon, sky, shade(sky, 1.5))
    x = -rng.uniform(0, 0.2)
    while x < 1:  # a row of houses
        width, top = rng.uniform(0.18, 0.32), rng.uniform(0.03, 0.2)
        house = _vary(
            rng.choice([(176, 120, 100), (196, 184, 164), (150, 156, 166), (206, 170, 130), (128, 110, 108)]), rng
        )
        pen.rect(x, top, x + width, horizon, house)
        pen.rect(x, top, x + width, top + 0.02, shade(house, 0.7))
        pane = rng.choice([GLASS, (90, 108, 128), (236, 216, 150)])
        columns = rng.choice([2, 3, 4])
        for row in range(int((horizon - top - 0.06) / 0.085)):
            for column in range(columns):
                left = x + width * (column + 0.25) / columns
                pen.rect(left, top + 0.05 + row * 0.085, left + width * 0.5 / columns, top + 0.1 + row * 0.085, pane)
        x += width
    kerb = horizon + (1 - horizon) * rng.uniform(0.16, 0.28)
    pen.rect(0, horizon, 1, kerb, _vary((186, 182, 176), rng))
    pen.rect(0, kerb, 1, kerb + 0.015, (140, 138, 134))
    _bands(pen, kerb + 0.015, 1, (92, 94, 98), (72, 74, 80))
    shift, middle = rng.random() * 0.25, kerb + (1 - kerb) * 0.55
    for i in range(-1, 5):
        pen.rect(
            i * 0.25 + shift,
            middle,
            i * 0.25 + shift + 0.13,
            middle + 0.015,
            rng.choice([(232, 230, 220), (230, 200, 90)]),
        )


def _beach(pen: Pen, horizon: float, rng: random.Random) -> None:
    sky = rng.choice(_SKIES)
    _bands(pen, 0, horizon, sky, shade(sky, 1.6))
    _sky_things(pen, horizon, rng)
    sea, shore = (
        _vary(rng.choice([(40, 130, 170), (60, 150, 170), (34, 100, 150)]), rng),
        horizon + (1 - horizon) * rng.uniform(0.22, 0.4),
    )
    _bands(pen, horizon, shore + 0.04, shade(sea, 0.85), shade(sea, 1.2))
    for _ in range(12):
        x, y = rng.random(), rng.uniform(horizon + 0.02, shore)
        pen.line([(x, y), (x + rng.uniform(0.04, 0.12), y)], 0.006, shade(sea, 1.5))
    sand, wave = (
        _vary(rng.choice([(232, 208, 156), (222, 196, 150), (240, 222, 180)]), rng),
        [rng.uniform(-0.015, 0.025) for _ in range(7)],
    )
    edge = [(i / 6, shore + wave[i]) for i in range(7)]
    pen.poly([*edge, (1, 1), (0, 1)], (246, 246, 240))
    pen.poly([*[(x, y + 0.02) for x, y in edge], (1, 1), (0, 1)], shade(sand, 0.85))
    pen.poly([*[(x, y + 0.05) for x, y in edge], (1, 1), (0, 1)], sand)
    for _ in range(26):
        pen.disc(rng.random(), rng.uniform(shore + 0.09, 1), 0.005, shade(sand, rng.choice([0.86, 1.4])))


def _park(pen: Pen, horizon: float, rng: random.Random) -> None:
    sky = rng.choice(_SKIES)
    _bands(pen, 0, horizon, sky, shade(sky, 1.5))
    _sky_things(pen, horizon, rng)
    leaf = _vary(rng.choice([(70, 130, 66), (96, 146, 70), (50, 108, 70), (190, 140, 60)]), rng)
    for i in range(9):
        pen.oval(i / 8, horizon - 0.01, 0.09, rng.uniform(0.04, 0.09), shade(leaf, 0.75))
    for x in (rng.uniform(0.02, 0.24), rng.uniform(0.4, 0.6), rng.uniform(0.76, 0.98)):
        if rng.random() < 0.75:
            pen.rect(x - 0.017, horizon - 0.2, x + 0.017, horizon + 0.04, (104, 76, 54))
            for dx, dy in ((-0.07, -0.2), (0.07, -0.21), (0, -0.28), (0, -0.16)):
                pen.disc(x + dx, horizon + dy, rng.uniform(0.075, 0.1), shade(leaf, rng.uniform(0.88, 1.1)))
    grass = _vary(rng.choice([(104, 164, 76), (124, 170, 84), (84, 148, 80)]), rng)
    _bands(pen, horizon, 1, shade(grass, 0.82), grass)
    bend, far = rng.uniform(0.1, 0.9), rng.uniform(0.2, 0.8)
    pen.poly([(far, horizon), (far + 0.06, horizon), (bend + 0.22, 1), (bend - 0.18, 1)], _vary((206, 186, 150), rng))
    for _ in range(30):
        x, y = rng.random(), rng.uniform(horizon + 0.04, 0.98)
        pen.line([(x, y), (x + 0.006, y - 0.018)], 0.005, shade(grass, 0.72))


def _sky_things(pen: Pen, horizon: float, rng: random.Random) -> None:
    """Clouds, and sometimes the sun."""
    if rng.random() < 0.5:
        pen.disc(rng.uniform(0.1, 0.9), rng.uniform(0.08, horizon * 0.4), 0.055, (255, 240, 180))
    for _ in range(rng.randint(0, 3)):
        x, y, size = rng.random(), rng.uniform(0.05, horizon * 0.6), rng.uniform(0.6, 1.2)
        for dx, dy, r in ((-0.08, 0.012, 0.035), (0, 0, 0.055), (0.075, 0.01, 0.04)):
            pen.oval(x + dx * size, y + dy * size, r * 1.5 * size, r * 0.8 * size, (246, 248, 250))


ELSEWHERE = 0.26  # weight of an object in a place where one does not expect it

PLACES: tuple[Place, ...] = (
    Place("living room", _living_room, (0.56, 0.66), {
        "couch": 7, "television": 4.5, "lamp": 3, "book": 2, "cat": 3, "clock": 2, "vase": 2.5, "teddy bear": 1.5,
        "person": 2, "dog": 1.5, "chair": 1.5, "table": 2, "cake": 1,
    }),
    Place("kitchen", _kitchen, (0.60, 0.70), {
        "refrigerator": 6, "oven": 6, "sink": 3, "table": 2, "chair": 1.5, "cup": 2.5, "bottle": 2, "banana": 5,
        "pizza": 4, "cake": 3, "clock": 1.5, "vase": 1, "person": 2,
    }),
    Place("bedroom", _bedroom, (0.56, 0.66), {
        "bed": 8, "lamp": 3, "teddy bear": 4, "book": 2, "clock": 2, "cat": 2.5, "television": 2, "suitcase": 2.5,
        "laptop": 1.5, "chair": 1.5, "vase": 1,
    }),
    Place("bathroom", _bathroom, (0.58, 0.68), {
        "toilet": 8, "sink": 5, "bottle": 3, "cup": 2.5, "vase": 1.5, "cat": 1, "clock": 1, "book": 1, "lamp": 1,
    }),
    Place("office", _office, (0.58, 0.68), {
        "laptop": 6, "chair": 3, "table": 3, "clock": 2, "cup": 2.5, "book": 3, "bottle": 1.5, "person": 2.5,
        "lamp": 1.5, "suitcase": 2, "television": 1.5, "banana": 0.8, "refrigerator": 0.8,
    }),
    Place("street", _street, (0.50, 0.60), {
        "car": 6, "bus": 6, "traffic light": 6, "stop sign": 6, "bicycle": 3, "person": 3, "dog": 1.5, "bench": 1.5,
        "umbrella": 1.5, "suitcase": 2, "pizza": 0.8,
    }),
    Place("beach", _beach, (0.38, 0.50), {
        "boat": 8, "umbrella": 4.5, "kite": 3.5, "bird": 3, "person": 3, "ball": 4, "airplane": 4, "dog": 1.5,
        "bottle": 1, "bench": 1,
    }),
    Place("park", _park, (0.44, 0.56), {
        "bench": 5, "bicycle": 3.5, "kite": 3.5, "ball": 3.5, "dog": 3, "bird": 4, "person": 3, "airplane": 2,
        "umbrella": 1, "car": 0.8, "boat": 0.8, "cake": 0.8, "teddy bear": 0.5,
    }),
)  # fmt: skip
PLACE_BY_NAME: dict[str, Place] = {place.name: place for place in PLACES}


def paint_place(place: Place, horizon: float, pixels: int, rng: random.Random) -> Image.Image:
    """A square RGB picture of the empty place, ``pixels`` wide, with the horizon at that fraction from the top."""
    picture = Image.new("RGB", (pixels, pixels))
    place.paint(Pen(ImageDraw.Draw(picture), 0, 0, pixels, pixels, mirror=rng.random() < 0.5), horizon, rng)
    return picture
