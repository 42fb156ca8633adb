"""A pen that draws plain shapes in unit coordinates, so that one recipe gives mirrored, tilted and resized objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import ImageDraw

Colour = tuple[int, int, int]
Point = tuple[float, float]

# Words a person would use; none of them is also the name of an object (so no "orange").
COLOURS: dict[str, Colour] = {
    "red": (206, 48, 44),
    "blue": (48, 98, 190),
    "green": (64, 146, 74),
    "yellow": (240, 200, 50),
    "purple": (128, 74, 158),
    "pink": (238, 146, 172),
    "brown": (136, 88, 50),
    "black": (44, 44, 48),
    "white": (238, 236, 230),
    "grey": (140, 144, 150),
}
BLACK: Colour = (24, 24, 28)
WHITE: Colour = (248, 248, 246)
METAL: Colour = (150, 154, 160)
GLASS: Colour = (176, 208, 226)


def shade(colour: Colour, factor: float) -> Colour:
    """The colour darkened (``factor`` 0..1) or lightened towards white (``factor`` 1..2)."""
    if factor <= 1:
        return tuple(int(channel * factor) for channel in colour)  # type: ignore[return-value]
    return tuple(int(channel + (255 - channel) * (factor - 1)) for channel in colour)  # type: ignore[return-value]


@dataclass(frozen=True)
class Pen:
    """Draws into the box of ``width`` x ``height`` pixels whose top-left pixel is (``left``, ``top``).

    Points are unit coordinates: (0, 0) is the top-left and (1, 1) the bottom-right corner of the box. ``mirror``
    flips left and right, ``tilt`` turns about the centre of the box (degrees, clockwise). Thicknesses and radii
    are fractions of the height of the box.
    """

    draw: ImageDraw.ImageDraw
    left: float
    top: float
    width: float
    height: float
    mirror: bool = False
    tilt: float = 0.0

    def place(self, points: Sequence[Point]) -> list[Point]:
        """Pixel coordinates of unit points."""
        sin, cos = math.sin(math.radians(self.tilt)), math.cos(math.radians(self.tilt))
        sign = -self.width if self.mirror else self.width
        centre_x, centre_y = self.left + self.width / 2, self.top + self.height / 2
        placed = []
        for x, y in points:
            across, down = (x - 0.5) * sign, (y - 0.5) * self.height
            placed.append((centre_x + across * cos - down * sin, centre_y + across * sin + down * cos))
        return placed

    def poly(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon."""
        self.draw.polygon(self.place(points), fill=colour)

    def rect(self, x0: float, y0: float, x1: float, y1: float, colour: Colour, r: float = 0.0) -> None:
        """A filled rectangle, its corners rounded by radius ``r``."""
        if not r:
            self.poly([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour)
            return
        ry = min(r, (y1 - y0) / 2)
        rx = min(r * self.height / self.width, (x1 - x0) / 2)
        points = []
        for cx, cy, start in (
            (x1 - rx, y1 - ry, 0),
            (x0 + rx, y1 - ry, 90),
            (x0 + rx, y0 + ry, 180),
            (x1 - rx, y0 + ry, 270),
        ):
            points += _arc(cx, cy, rx, ry, start, start + 90, 6)
        self.poly(points, colour)

    def oval(self, cx: float, cy: float, rx: float, ry: float, colour: Colour, turn: float = 0.0) -> None:
        """A filled ellipse, turned by ``turn`` degrees in unit space."""
        points = _arc(cx, cy, rx, ry, 0, 360, 28)
        if turn:
            sin, cos = math.sin(math.radians(turn)), math.cos(math.radians(turn))
            points = [(cx + (x - cx) * cos - (y - cy) * sin, cy + (x - cx) * sin + (y - cy) * cos) for x, y in points]
        self.poly(points, colour)

    def disc(self, cx: float, cy: float, r: float, colour: Colour) -> None:
        """A filled circle, round whatever the proportions of the box."""
        self.oval(cx, cy, r * self.height / self.width, r, colour)

    def ring(self, cx: float, cy: float, r: float, thickness: float, colour: Colour) -> None:
        """A circle line around a see-through middle."""
        self.line(_arc(cx, cy, r * self.height / self.width, r, 0, 360, 32), thickness, colour)

    def pie(self, cx: float, cy: float, rx: float, ry: float, start: float, end: float, colour: Colour) -> None:
        """A wedge from angle ``start`` to ``end`` (degrees, 0 is right and 90 is down)."""
        self.poly([(cx, cy), *_arc(cx, cy, rx, ry, start, end, 20)], colour)

    def bow(
        self, cx: float, cy: float, rx: float, ry: float, start: float, end: float, thickness: float, colour: Colour
    ) -> None:
        """An arc line from angle ``start`` to ``end``."""
        self.line(_arc(cx, cy, rx, ry, start, end, 20), thickness, colour)

    def line(self, points: Sequence[Point], thickness: float, colour: Colour) -> None:
        """A thick line with round ends and joints."""
        placed = self.place(points)
        pixels = max(1, round(thickness * self.height))
        self.draw.line(placed, fill=colour, width=pixels, joint="curve")
        if pixels > 2:
            r = (pixels - 1) / 2
            for x, y in (placed[0], placed[-1]):
                self.draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)

    def blob(self, points: Sequence[Point], colour: Colour) -> None:
        """A smooth closed shape through the points."""
        self.poly(smooth(points), colour)


def _arc(cx: float, cy: float, rx: float, ry: float, start: float, end: float, steps: int) -> list[Point]:
    angles = (math.radians(start + (end - start) * step / steps) for step in range(steps + 1))
    return [(cx + rx * math.cos(angle), cy + ry * math.sin(angle)) for angle in angles]


def smooth(points: Sequence[Point], steps: int = 6) -> list[Point]:
    """Points of the closed Catmull-Rom curve through ``points``, ``steps`` for each of them."""
    count, curve = len(points), []
    for i in range(count):
        p0, p1, p2, p3 = (points[(i + shift) % count] for shift in (-1, 0, 1, 2))
        for step in range(steps):
            t = step / steps
            a, b, c, d = -t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, t**3 - t**2
            curve.append(
                (
                    (a * p0[0] + b * p1[0] + c * p2[0] + d * p3[0]) / 2,
                    (a * p0[1] + b * p1[1] + c * p2[1] + d * p3[1]) / 2,
                )
            )
    return curve
