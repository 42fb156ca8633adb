"""A map of facts as shapes for the page: a mark for each fact, and a number for each group, named in the legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbal_hf.report.numbers import cut
from symbal_hf.results.fact_map import FactMap, MapCluster, MapPoint
from symbal_hf.results.findings import Finding

WIDTH, HEIGHT, MARGIN = 960, 620, 24
APART = 24  # between two numbers, in pixels
LONGEST_TITLE = 240  # characters of a fact that is pointed at
# One shape for each finding, in a square of -6 to 6, so that colour is not what tells them apart.
SHAPES = (
    "M0 -6.5L6.5 0L0 6.5L-6.5 0Z",
    "M0 -6.5L6.3 5L-6.3 5Z",
    "M-5.2 -5.2H5.2V5.2H-5.2Z",
    "M0 6.5L6.3 -5L-6.3 -5Z",
    "M-2.2 -6.5H2.2V-2.2H6.5V2.2H2.2V6.5H-2.2V2.2H-6.5V-2.2H-2.2Z",
)


@dataclass(frozen=True)
class Mark:
    """One fact at (`x`, `y`): a circle, or the `shape` of the finding that says that it is wrong."""

    x: float
    y: float
    shape: str | None
    title: str


@dataclass(frozen=True)
class Group:
    """Facts that mean alike: their number stands at (`x`, `y`) and the legend says what it is called."""

    number: int
    cluster: MapCluster
    x: float
    y: float


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
    groups: tuple[Group, ...]
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
    return MapView(WIDTH, HEIGHT, tuple(marks), tuple(_groups(drawn, places)), tuple(keys), right)


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


def _groups(drawn: FactMap, places: NDArray[np.float64]) -> list[Group]:
    """The groups with their numbers, each at a fact near its middle that no other number covers."""
    cluster_of = np.array([point.cluster for point in drawn.points], np.int64)
    groups: list[Group] = []
    for index, cluster in enumerate(drawn.clusters):
        if len(own := places[cluster_of == index]):
            nearest = own[np.hypot(*(own - np.median(own, axis=0)).T).argsort(kind="stable")].round(1).tolist()
            free = (place for place in nearest if all(math.dist(place, (g.x, g.y)) > APART for g in groups))
            groups.append(Group(index + 1, cluster, *next(free, nearest[0])))
    return groups
