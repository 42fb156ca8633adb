"""Where the marks of a map of facts lie on the page, and the numbers of its groups."""

from __future__ import annotations

import math

import numpy as np

from symbal_hf.results.fact_map import FactMap, MapCluster, MapPoint

WIDTH, HEIGHT, MARGIN = 960, 620, 24
APART = 24  # between two numbers, in pixels
# One shape for each finding, in a square of -6 to 6, so that colour is not what tells them apart.
SHAPES = (
    "M0 -6.5L6.5 0L0 6.5L-6.5 0Z",
    "M0 -6.5L6.3 5L-6.3 5Z",
    "M-5.2 -5.2H5.2V5.2H-5.2Z",
    "M0 6.5L6.3 -5L-6.3 -5Z",
    "M-2.2 -6.5H2.2V-2.2H6.5V2.2H2.2V6.5H-2.2V2.2H-6.5V-2.2H-2.2Z",
)


def place(point: MapPoint) -> tuple[float, float]:
    """Where a fact lies, in pixels from the upper left corner."""
    return MARGIN + point.x * (WIDTH - 2 * MARGIN), MARGIN + (1 - point.y) * (HEIGHT - 2 * MARGIN)


def groups(drawn: FactMap) -> list[tuple[int, MapCluster, tuple[float, float]]]:
    """The number of each group, and where it stands: at a fact near its middle that no other number covers."""
    places = np.array([place(point) for point in drawn.points]).reshape(-1, 2)
    cluster_of = np.array([point.cluster for point in drawn.points], np.int64)
    out: list[tuple[int, MapCluster, tuple[float, float]]] = []
    for number, cluster in enumerate(drawn.clusters, 1):
        if len(own := places[cluster_of == number - 1]):
            nearest = own[np.hypot(*(own - np.median(own, axis=0)).T).argsort(kind="stable")].round(1).tolist()
            free = (at for at in nearest if all(math.dist(at, other) > APART for _, _, other in out))
            out.append((number, cluster, tuple(next(free, nearest[0]))))
    return out
