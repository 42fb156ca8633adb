"""A map of facts as data: where each drawn fact lies, in which named group, and which of them are wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MapPoint:
    """One drawn fact.

    Attributes:
        x: and `y`: its place, each in [0, 1].
        text: the sentence.
        row_id: the row whose caption says it.
        cluster: which of the map's clusters it is in, from 0.
        finding: which of the audit's findings says that it is wrong, from 0 (the first where several do); None where
            none does.
    """

    x: float
    y: float
    text: str
    row_id: str
    cluster: int
    finding: int | None = None


@dataclass(frozen=True)
class MapCluster:
    """Facts that mean alike.

    Attributes:
        name: what they speak of more than the others do.
        facts: how many of the drawn facts are in it; `wrong` of them are wrong.
        typical: the fact nearest to their middle.
    """

    name: str
    facts: int
    wrong: int
    typical: str


@dataclass(frozen=True)
class FactMap:
    """Facts of an audit on a plane, near where they mean alike.

    Attributes:
        points: the drawn facts; the wrong ones that were drawn on purpose come first.
        clusters: the groups, largest first.
        facts: how many facts all captions hold together; None where the audit did not count them.
        rows: how many rows were opened to draw from.
        wrong_drawn: how many of the points were drawn because they are wrong; the others are a random sample.
        encoder: what turned facts into vectors.
        projection: "t-SNE", or "PCA" where there are too few different facts for it.
        seed: of every random choice.

    >>> point = MapPoint(0.2, 0.7, "A sink.", "7", cluster=0, finding=0)
    >>> cluster = MapCluster("sink", facts=1, wrong=1, typical="A sink.")
    >>> FactMap((point,), (cluster,), 1, 1, wrong_drawn=1, encoder="lite", projection="PCA", seed=0).points[0].text
    'A sink.'
    """

    points: tuple[MapPoint, ...]
    clusters: tuple[MapCluster, ...]
    facts: int | None
    rows: int
    wrong_drawn: int
    encoder: str
    projection: str
    seed: int
