"""A pen that draws plain shapes in unit coordinates, so that one drawing gives mirrored, tilted and resized objects."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PIL import ImageColor, ImageDraw

Point = tuple[float, float]

# Words a person would use; none of them is also the name of an object (so no "orange").
COLOURS: dict[str, str] = {
    "red": "#ce302c",
    "blue": "#3062be",
    "green": "#40924a",
    "yellow": "#f0c832",
    "purple": "#804a9e",
    "pink": "#ee92ac",
    "brown": "#885832",
    "black": "#2c2c30",
    "white": "#eeece6",
    "grey": "#8c9096",
}


def channels(colour: str) -> tuple[int, ...]:
    """Red, green and blue of a colour such as "#f0c832", each in 0..255."""
    return ImageColor.getrgb(colour)


def mixed(red: float, green: float, blue: float) -> str:
    """The colour of these channels, each cut to a whole number."""
    return f"#{int(red):02x}{int(green):02x}{int(blue):02x}"


def shade(colour: str, factor: float) -> str:
    """The colour darkened (``factor`` 0..1) or lightened towards white (``factor`` 1..2)."""
    if factor <= 1:
        return mixed(*(channel * factor for channel in channels(colour)))
    return mixed(*(channel + (255 - channel) * (factor - 1) for channel in channels(colour)))


def blend(start: str, end: str, share: float) -> str:
    """The colour that lies at ``share`` (0..1) between two."""
    return mixed(*(round(a + (b - a) * share) for a, b in zip(channels(start), channels(end), strict=True)))


def vary(colour: str, rng: random.Random) -> str:
    """A colour near to this one."""
    return mixed(*(min(255, max(0, channel + rng.randint(-12, 12))) for channel in channels(colour)))


@dataclass(frozen=True)
class Pen:
    """Draws into the box of ``width`` x ``height`` pixels whose top-left pixel is (``left``, ``top``).

    Points are unit coordinates: (0, 0) is the top-left and (1, 1) the bottom-right corner of the box. ``mirror``
    flips left and right, ``tilt`` turns about the centre of the box (degrees, clockwise). Thicknesses and radii
    are fractions of the height of the box, angles are degrees (0 is right and 90 is down).
    """

    paper: ImageDraw.ImageDraw
    left: float
    top: float
    width: float
    height: float
    mirror: bool = False
    tilt: float = 0.0

    def place(self, points: Iterable[Point]) -> list[Point]:
        """Pixel coordinates of unit points."""
        sin, cos = math.sin(math.radians(self.tilt)), math.cos(math.radians(self.tilt))
        sign = -self.width if self.mirror else self.width
        centre_x, centre_y = self.left + self.width / 2, self.top + self.height / 2
        placed = []
        for x, y in points:
            across, down = (x - 0.5) * sign, (y - 0.5) * self.height
            placed.append((centre_x + across * cos - down * sin, centre_y + across * sin + down * cos))
        return placed

    def draw(self, shapes: str) -> None:
        """Shapes, one a line: the name of a method below, the colour, and numbers, points as x y x y ..."""
        for line in shapes.splitlines():
            if line.strip():
                shape, colour, *numbers = line.split()
                getattr(self, shape)(colour, *map(float, numbers))

    def poly(self, colour: str, *numbers: float) -> None:
        """A filled polygon."""
        self._fill(colour, _points(numbers))

    def blob(self, colour: str, *numbers: float) -> None:
        """A smooth closed shape through the points."""
        self._fill(colour, smooth(_points(numbers)))

    def rect(self, colour: str, x0: float, y0: float, x1: float, y1: float, r: float = 0.0) -> None:
        """A filled rectangle, its corners rounded by radius ``r``."""
        if not r:
            self._fill(colour, [(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
            return
        ry = min(r, (y1 - y0) / 2)
        rx = min(r * self.height / self.width, (x1 - x0) / 2)
        points = []
        corners = ((x1 - rx, y1 - ry), (x0 + rx, y1 - ry), (x0 + rx, y0 + ry), (x1 - rx, y0 + ry))
        for quarter, (cx, cy) in enumerate(corners):
            points += _arc(cx, cy, rx, ry, quarter * 90, quarter * 90 + 90, 6)
        self._fill(colour, points)

    def oval(self, colour: str, cx: float, cy: float, rx: float, ry: float, turn: float = 0.0) -> None:
        """A filled ellipse, turned by ``turn`` degrees in unit space."""
        points = _arc(cx, cy, rx, ry, 0, 360, 28)
        if turn:
            sin, cos = math.sin(math.radians(turn)), math.cos(math.radians(turn))
            points = [(cx + (x - cx) * cos - (y - cy) * sin, cy + (x - cx) * sin + (y - cy) * cos) for x, y in points]
        self._fill(colour, points)

    def disc(self, colour: str, cx: float, cy: float, r: float) -> None:
        """A filled circle, round whatever the proportions of the box."""
        self.oval(colour, cx, cy, r * self.height / self.width, r)

    def pie(self, colour: str, cx: float, cy: float, rx: float, ry: float, start: float, end: float) -> None:
        """A wedge from angle ``start`` to ``end``."""
        self._fill(colour, [(cx, cy), *_arc(cx, cy, rx, ry, start, end, 20)])

    def line(self, colour: str, thickness: float, *numbers: float) -> None:
        """A thick line with round ends and joints."""
        self._stroke(colour, thickness, _points(numbers))

    def ring(self, colour: str, cx: float, cy: float, r: float, thickness: float) -> None:
        """A circle line around a see-through middle."""
        self._stroke(colour, thickness, _arc(cx, cy, r * self.height / self.width, r, 0, 360, 32))

    def bow(
        self, colour: str, cx: float, cy: float, rx: float, ry: float, start: float, end: float, thickness: float
    ) -> None:
        """An arc line from angle ``start`` to ``end``."""
        self._stroke(colour, thickness, _arc(cx, cy, rx, ry, start, end, 20))

    def _fill(self, colour: str, points: Iterable[Point]) -> None:
        self.paper.polygon(self.place(points), fill=colour)

    def _stroke(self, colour: str, thickness: float, points: Iterable[Point]) -> None:
        placed = self.place(points)
        pixels = max(1, round(thickness * self.height))
        self.paper.line(placed, fill=colour, width=pixels, joint="curve")
        if pixels > 2:
            r = (pixels - 1) / 2
            for x, y in (placed[0], placed[-1]):
                self.paper.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _points(numbers: Sequence[float]) -> list[Point]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _arc(cx: float, cy: float, rx: float, ry: float, start: float, end: float, steps: int) -> list[Point]:
    angles = (math.radians(start + (end - start) * step / steps) for step in range(steps + 1))
    return [(cx + rx * math.cos(angle), cy + ry * math.sin(angle)) for angle in angles]


def smooth(points: Sequence[Point], steps: int = 6) -> list[Point]:
    """Points of the closed Catmull-Rom curve through ``points``, ``steps`` for each of them."""
    count, curve = len(points), []
    for i in range(count):
        four = [points[(i + shift) % count] for shift in (-1, 0, 1, 2)]
        for step in range(steps):
            t = step / steps
            a, b, c, d = -t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2
            x, y = ((a * p0 + b * p1 + c * p2 + d * p3) / 2 for p0, p1, p2, p3 in zip(*four, strict=True))
            curve.append((x, y))
    return curve
