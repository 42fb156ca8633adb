"""Pairs (t, v) where the truth is given: every statement is right or wrong, so that pairs are counted and tested.

No statement is weighed by how rare its concept is, as a doubtful judge's word must be: a thing that no image shows is
stated wrongly each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import (
    ALPHA,
    FEWEST_ROWS,
    FURTHER,
    ErrorRows,
    ErrorShare,
    Pair,
    judge_rows,
    make_pair,
)
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.units import Units
from symbal_hf.language.naming import other_names
from symbal_hf.stats.contingency import fisher_greater, wilson

FEWEST_ERRORS = 3  # false statements of a concept without which nothing is tested


@dataclass(frozen=True)
class Counted:
    """One concept that is stated falsely, against every feature.

    Attributes:
        error: its share of false statements.
        rows: how the rows stand to it.
        p: (P,) one-sided exact p-values; NaN for what is no feature of it.
    """

    error: ErrorShare
    rows: ErrorRows
    p: NDArray[np.float64]


def counted_pairs(evidence: Evidence) -> list[Pair]:
    """Every pair worth showing, most significant first; p-values are corrected for all pairs that were looked at.

    An error gets its most significant feature, and further ones where these still matter among the images that show
    none of those before.
    """
    shows = evidence.beliefs.known > 0.5
    has = evidence.units.any(shows)
    counted = [each for t in range(len(evidence.concepts.names)) if (each := _count(evidence, t, has)) is not None]
    tried = int(sum(np.isfinite(each.p).sum() for each in counted))
    pairs = [pair for each in counted for pair in _pairs(evidence, each, shows, has, tried)]
    return sorted(pairs, key=lambda pair: (pair.p, -pair.scores[0]))


def _count(evidence: Evidence, t: int, has: NDArray[np.bool_]) -> Counted | None:
    """How t goes with every feature, which images have (M, P); None where too little is wrong."""
    rows = judge_rows(evidence.concepts, evidence.beliefs, ErrorShare(t, 0, 0, 0, 0), wholes=evidence.wholes_of(t))
    wrong, known = int(rows.wrong.sum()), evidence.concepts.stated(t) & ~np.isnan(evidence.beliefs.presence[:, t])
    if wrong < FEWEST_ERRORS:
        return None
    error = ErrorShare(t, wrong / int(known.sum()), wilson(wrong, int(known.sum()))[0], float(wrong), int(known.sum()))
    p = _p_values(evidence.units, rows, has)
    p[other_names(evidence.concepts, t)] = np.nan
    return Counted(error, rows, p) if np.isfinite(p).any() else None


def _p_values(
    units: Units, rows: ErrorRows, has: NDArray[np.bool_], among: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """(P,) exact p-values over the images that lack t, of `among` alone where given; NaN where too few show it."""
    lacking = units.any(rows.lacking if among is None else rows.lacking & among)
    wrong = (units.any(rows.wrong) & lacking).astype(np.float64)
    shown = lacking.astype(np.float64) @ has
    p = fisher_greater(wrong @ has, shown, wrong.sum(), lacking.sum())
    p[shown < FEWEST_ROWS] = np.nan
    return p


def _pairs(
    evidence: Evidence, counted: Counted, shows: NDArray[np.bool_], has: NDArray[np.bool_], tried: int
) -> Iterator[Pair]:
    """The error with its feature, and with further ones; `shows` is of rows (N, P) what `has` is of images."""
    among, p, taken = np.ones(len(evidence.data), bool), counted.p, np.zeros(len(counted.p), bool)
    for turn in range(1 + FURTHER):
        usable = np.isfinite(p) & np.isfinite(counted.p) & ~taken
        if not usable.any() or (turn and np.nanmin(p[usable]) * tried >= ALPHA):
            return
        order = np.argsort(np.where(usable, p, np.inf), kind="stable")[: int(usable.sum())]
        first = int(order[0])
        if turn and counted.p[first] * tried >= ALPHA:  # it matters only beside another
            return
        scores = -np.log10(np.maximum(p[order], 1e-300))
        yield make_pair(
            evidence.concepts,
            evidence.beliefs,
            counted.error,
            counted.rows,
            order,
            scores=scores,
            tried=tried,
            units=evidence.units,
        )
        taken |= other_names(evidence.concepts, first)
        among &= ~shows[:, first]
        p = _p_values(evidence.units, counted.rows, has, among)
