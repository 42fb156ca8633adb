"""A map of facts as shapes for the page: a mark for each fact, and names that keep out of each other's way."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbal_hf.report.numbers import cut
from symbal_hf.results.fact_map import FactMap, MapPoint
from symbal_hf.results.findings import Finding

WIDTH, HEIGHT, MARGIN = 960, 620, 24
FONT = 15.0
LONGEST_NAME, LONGEST_TITLE = 26, 240
# One shape for each finding, in a square of -6 to 6, so that colour is not what tells them apart.
SHAPES = (
    "M0 -6.5L6.5 0L0 6.5L-6.5 0Z",
    "M0 -6.5L6.3 5L-6.3 5Z",
    "M-5.2 -5.2H5.2V5.2H-5.2Z",
    "M0 6.5L6.3 -5L-6.3 -5Z",
    "M-2.2 -6.5H2.2V-2.2H6.5V2.2H2.2V6.5H-2.2V2.2H-6.5V-2.2H-2.2Z",
)
Rectangle = tuple[float, float, float, float]


@dataclass(frozen=True)
class Mark:
    """One fact at (`x`, `y`): a circle, or the `shape` of the finding that says that it is wrong."""

    x: float
    y: float
    shape: str | None
    title: str


@dataclass(frozen=True)
class Label:
    """A cluster's name with its middle at (`x`, `y`), and the point (`to_x`, `to_y`) that it names."""

    text: str
    x: float
    y: float
    to_x: float
    to_y: float

    @property
    def far(self) -> bool:
        """It stands so far from what it names that a line must lead there."""
        return math.hypot(self.x - self.to_x, self.y - self.to_y) > 2.2 * FONT


@dataclass(frozen=True)
class Key:
    """One line of the legend: the shape of a finding, and how many of its wrong facts are drawn."""

    finding: Finding
    shape: str
    facts: int


@dataclass(frozen=True)
class MapView:
    """The map, prepared for the page; wrong facts come last, so that they lie on top."""

    width: int
    height: int
    marks: tuple[Mark, ...]
    labels: tuple[Label, ...]
    keys: tuple[Key, ...]
    right: int


def map_view(drawn: FactMap, findings: Sequence[Finding]) -> MapView:
    """Shapes for the map of an audit with these findings."""
    places = np.array([_at(point) for point in drawn.points]).reshape(-1, 2)
    order = sorted(range(len(drawn.points)), key=lambda i: drawn.points[i].finding is not None)
    marks = [_mark(drawn, i, places[i], findings) for i in order]
    count = [sum(p.finding == number for p in drawn.points) for number in range(len(findings))]
    keys = [Key(f, SHAPES[i % len(SHAPES)], n) for i, (f, n) in enumerate(zip(findings, count, strict=True)) if n]
    right = sum(point.finding is None for point in drawn.points)
    return MapView(WIDTH, HEIGHT, tuple(marks), tuple(_labels(drawn, places)), tuple(keys), right)


def _at(point: MapPoint) -> tuple[float, float]:
    return MARGIN + point.x * (WIDTH - 2 * MARGIN), MARGIN + (1 - point.y) * (HEIGHT - 2 * MARGIN)


def _mark(drawn: FactMap, number: int, place: NDArray[np.float64], findings: Sequence[Finding]) -> Mark:
    point = drawn.points[number]
    lines = [cut(point.text, LONGEST_TITLE), f"row {point.row_id}, in “{drawn.clusters[point.cluster].name}”"]
    shape = None
    if point.finding is not None:
        shape = SHAPES[point.finding % len(SHAPES)]
        if point.finding < len(findings):
            f = findings[point.finding]
            lines.insert(1, f"wrong: “{f.textual_error}” when “{f.visual_feature}”")
    return Mark(round(float(place[0]), 1), round(float(place[1]), 1), shape, "\n".join(lines))


def _labels(drawn: FactMap, places: NDArray[np.float64]) -> list[Label]:
    """Names near the densest place of each cluster, the largest first; one that finds no free place is left out."""
    of = np.array([point.cluster for point in drawn.points], np.int64)
    weight = np.array([3.0 if point.finding is not None else 1.0 for point in drawn.points])
    out, taken = list[Label](), list[Rectangle]()
    for number, cluster in enumerate(drawn.clusters):
        own = places[of == number]
        if not len(own):
            continue
        x, y = densest(own)
        text = cut(cluster.name, LONGEST_NAME)
        found = free_place(x, y, _text_width(text) + 10, FONT * 1.35, taken, marks=places, weight=weight)
        if found is not None:
            left, top, right, bottom = found
            taken.append(found)
            out.append(Label(text, *(round(v, 1) for v in ((left + right) / 2, (top + bottom) / 2, x, y))))
    return out


def densest(places: NDArray[np.float64]) -> tuple[float, float]:
    """The middle of the nearest half of `places` (N, 2) around the one that has the most others near."""
    apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    near = max(1, math.ceil(len(places) / 2))
    reach = np.sort(apart, axis=1)[:, near - 1]
    best = int(reach.argmin())
    x, y = places[np.argsort(apart[best], kind="stable")[:near]].mean(0)
    return float(x), float(y)


def free_place(
    x: float,
    y: float,
    width: float,
    height: float,
    taken: Sequence[Rectangle],
    *,
    marks: NDArray[np.float64],
    weight: NDArray[np.float64],
    farthest: float = 170.0,
) -> Rectangle | None:
    """Where within the map a name of this size fits that is to stand at (`x`, `y`); None where no place is free.

    No other name may be covered; of the other places that is best which is near and covers few of the `marks` (N, 2),
    each as bad as its `weight` says.
    """
    best: tuple[float, Rectangle] | None = None
    for away in np.arange(0.0, farthest, 8.0):
        if best is not None and away / 8 > best[0]:
            break
        for turn in range(1 if away == 0 else 12):
            angle = -math.pi / 2 + turn * math.pi / 6
            left = min(max(x + away * math.cos(angle) - width / 2, 2), WIDTH - 2 - width)
            top = min(max(y + away * math.sin(angle) - height / 2, 2), HEIGHT - 2 - height)
            place = (left, top, left + width, top + height)
            if any(_meet(place, other) for other in taken):
                continue
            inside = ((marks >= (left, top)) & (marks <= (left + width, top + height))).all(1)
            cost = away / 8 + float(weight[inside].sum())
            if best is None or cost < best[0]:
                best = cost, place
    return None if best is None else best[1]


def _meet(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _text_width(text: str) -> float:
    """Of semibold sans-serif letters, about; wide ones, as of Chinese, take a square."""
    return FONT * sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.6 for c in text)
