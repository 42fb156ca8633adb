"""Pairs (t, v) where the truth is given: every statement is right or wrong, so that pairs are counted and tested.

No statement is weighed by how rare its concept is, as a doubtful judge's word must be: a thing that no image shows is
stated wrongly each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from symbal_hf.stats.contingency import fisher_greater, stratified_greater, wilson

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

    The level is shared out among all concepts that captions state, by the square root of how many statements are false:
    where those stand is another question than how many there are (weighted Bonferroni: Genovese, Roeder and Wasserman
    2006).
    An error gets its most significant feature, and further ones that still matter among images that are alike in those
    before.
    """
    has = evidence.units.any(evidence.beliefs.known > 0.5)
    counted = [each for t in range(len(evidence.concepts.names)) if (each := _count(evidence, t, has)) is not None]
    weight = {each.error.concept: each.error.evidence**0.5 for each in counted}
    looked_at = int((evidence.competence.stated > 0).sum()) - len(weight) + sum(weight.values())
    pairs = []
    for each in counted:
        tried = looked_at / weight[each.error.concept] * int(np.isfinite(each.p).sum())
        pairs += list(_pairs(evidence, each, has, tried))
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


def _p_values(units: Units, rows: ErrorRows, has: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(P,) exact p-values over the images that lack t; NaN where too few show the feature."""
    lacking = units.any(rows.lacking)
    wrong = (units.any(rows.wrong) & lacking).astype(np.float64)
    shown = lacking.astype(np.float64) @ has
    p = fisher_greater(wrong @ has, shown, wrong.sum(), lacking.sum())
    p[shown < FEWEST_ROWS] = np.nan
    return p


def _beside(
    units: Units, rows: ErrorRows, has: NDArray[np.bool_], taken: Sequence[int], usable: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(P,) exact p-values of the usable features within images that show the same of those taken before; NaN elsewhere.

    Images that show none of these would not do: where one is in view nearly wherever another is, as people are where
    skateboards are, hardly any would be left.
    """
    lacking = units.any(rows.lacking)
    wrong, shown = units.any(rows.wrong)[lacking], has[lacking]
    stratum = shown[:, taken] @ (1 << np.arange(len(taken)))
    n, m = np.bincount(stratum), np.bincount(stratum[wrong], minlength=int(stratum.max(initial=0)) + 1)
    p = np.full(has.shape[1], np.nan)
    for v in np.flatnonzero(usable):
        p[v] = stratified_greater(
            int((wrong & shown[:, v]).sum()), np.bincount(stratum[shown[:, v]], minlength=len(n)), m, n
        )
    return p


def _pairs(evidence: Evidence, counted: Counted, has: NDArray[np.bool_], tried: float) -> Iterator[Pair]:
    """The error with its feature, and with further ones that matter wherever those before are in view, or are not."""
    p, usable, taken = counted.p, np.isfinite(counted.p), list[int]()
    while usable.any() and len(taken) <= FURTHER:
        order = np.argsort(np.where(usable, p, np.inf), kind="stable")[: int(usable.sum())]
        first = int(order[0])
        if taken and p[first] * tried >= ALPHA:
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
        taken.append(first)
        # One that matters only beside another is no feature.
        usable = usable & (counted.p * tried < ALPHA) & ~other_names(evidence.concepts, first)
        p = _beside(evidence.units, counted.rows, has, taken, usable)
