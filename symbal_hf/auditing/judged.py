"""Pairs (t, v) by a calibrated judge: those whose t is stated more often beside v than what it sees explains.

Where the judge is calibrated, captions that are right state t as often as its presence says, whatever else is in view.
So images that probably lack t are compared within strata of its presence: a judge that is less sure beside v (rooms
with a cat look a little like bedrooms) makes no pair, statements beyond that do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import (
    ALPHA,
    FEWEST_MENTIONS,
    FEWEST_ROWS,
    FURTHER,
    Pair,
    error_share,
    pair_of,
    strength,
)
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.judges.protocol import LIMIT
from symbal_hf.language.naming import other_names
from symbal_hf.stats.contingency import stratified_greater

LACKS = 0.3  # presence below which an image probably lacks a thing
STRATA = np.array([0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25])  # of presence below that
# Where the lite judge gives t less than that beside a feature, its odds are too low by 1.2 over all pairs of COCO's
# classes, by 1.5 at most where v makes t likelier (scripts/measure/second_judge.py, photos apart).
TOO_LOW = 1.5
TESTED = 12  # features of each error that are tested exactly, those with the largest standard scores


@dataclass(frozen=True)
class Strata:
    """Images that probably lack t, by how probably.

    Attributes:
        rows: (M,) the images among those that the evidence is about.
        stated: (M,) whether a caption states t.
        level: (M,) presence of t, below `LACKS`.
    """

    rows: NDArray[np.int64]
    stated: NDArray[np.bool_]
    level: NDArray[np.float64]

    @cached_property
    def of(self) -> NDArray[np.int64]:
        """(M,) the stratum of each."""
        return np.digitize(self.level, STRATA)

    def without(self, feature: NDArray[np.bool_]) -> Strata:
        """Those that do not show a feature, (M,)."""
        return Strata(self.rows[~feature], self.stated[~feature], self.level[~feature])

    def scores(self, has: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(P,) standard scores of "t is stated with the feature" within strata; -inf where nothing can be said."""
        surplus, variance = np.zeros(has.shape[1]), np.zeros(has.shape[1])
        for stratum in np.unique(self.of[self.stated]):
            inside = self.of == stratum
            part, said = has[self.rows[inside]], self.stated[inside]
            n, m, x = len(said), int(said.sum()), part.sum(0, dtype=np.float64)
            surplus += part[said].sum(0) - m * x / n
            variance += m * (n - m) * x * (n - x) / (n * n * max(n - 1, 1))
        shown = has[self.rows].sum(0)
        return np.where((variance > 0) & (shown >= FEWEST_ROWS), surplus / np.sqrt(np.maximum(variance, 1e-9)), -np.inf)

    def p_value(self, feature: NDArray[np.bool_]) -> float:
        """Exact one-sided p-value for a feature, (M,).

        The larger of two: by the judge's presence as it is, and as if it were too low beside the feature.
        """
        odds = self.level / (1 - self.level) * np.where(feature, TOO_LOW, 1)
        raised = odds / (1 + odds)
        within = raised < LACKS
        return max(
            _p_value(self.of, self.stated, feature),
            _p_value(np.digitize(raised[within], STRATA), self.stated[within], feature[within]),
        )


def _p_value(stratum: NDArray[np.int64], stated: NDArray[np.bool_], feature: NDArray[np.bool_]) -> float:
    size = int(stratum.max(initial=0)) + 1
    n, m, n1 = (np.bincount(stratum[rows], minlength=size) for rows in (slice(None), stated, feature))
    some = (n1 > 0) & (m > 0)
    return stratified_greater(int((stated & feature).sum()), n1[some], m[some], n[some])


def judged_pairs(evidence: Evidence) -> list[Pair]:
    """Every pair that might be one, what can be confirmed first; p-values are corrected for all that were looked at."""
    # A caption that names a feature is a witness of it.
    stated, beliefs = evidence.concepts.mentions(), evidence.beliefs
    shows = np.where(stated, beliefs.if_stated, beliefs.known) > 0.5
    has, can_see, pairs = evidence.units.any(shows), evidence.competence.can_see, list[Pair]()
    for t in np.flatnonzero(evidence.competence.stated >= FEWEST_MENTIONS):
        usable = can_see & ~other_names(evidence.concepts, int(t), similar=evidence.similar)
        pairs += _pairs_of(evidence, int(t), shows, has, usable)
    return sorted(pairs, key=lambda pair: (not evidence.can_be_found[pair.error], -strength(pair)))


def _strata(evidence: Evidence, t: int) -> Strata:
    """The images that probably lack t, and show nothing that t may be part of."""
    presence, units = evidence.beliefs.presence[:, t], evidence.units
    lacks = presence < LACKS  # what cannot be judged, NaN, is not lacking
    for whole in evidence.wholes_of(t):
        lacks &= evidence.beliefs.known[:, whole] <= 0.5
    rows = np.flatnonzero(units.any(lacks))
    level = units.largest(evidence.beliefs.known[:, t])[rows].astype(np.float64)
    return Strata(rows, units.any(evidence.concepts.stated(t))[rows], level)


def _pairs_of(
    evidence: Evidence, t: int, shows: NDArray[np.bool_], has: NDArray[np.bool_], usable: NDArray[np.bool_]
) -> Iterator[Pair]:
    """The error with its feature, and with further ones that matter where those before are not in view.

    Args:
        t: the error.
        shows: (N, P) the row's image shows the concept; `has` the same of images.
        usable: (P,) what can be a feature of it.
    """
    everything = strata = _strata(evidence, t)
    tried = max(int(usable.sum()), 1) * int(evidence.tried_errors[t])
    for turn in range(1 + FURTHER):
        z = np.where(usable, strata.scores(has), -np.inf)
        order = np.argsort(-z, kind="stable")[: int(np.isfinite(z).sum())]
        if not len(order) or z[order[0]] <= 0:
            return
        p = {int(v): strata.p_value(has[strata.rows, v]) for v in order[:TESTED]}
        best = sorted(p, key=lambda v: (p[v], -z[v]))
        first = best[0]
        if turn and p[first] * tried >= ALPHA:
            return
        order = np.array([*best, *order[TESTED:]])
        inside = has[everything.rows, first]
        a, n1, m = int((everything.stated & inside).sum()), int(inside.sum()), int(everything.stated.sum())
        table = (a, n1, m - a, len(inside) - n1)
        yield _pair(evidence, t, shows[:, first], order, z[order], table=table, p=p[first], tried=tried)
        usable = usable & ~other_names(evidence.concepts, first)
        strata = strata.without(has[strata.rows, first])


def _pair(
    evidence: Evidence,
    t: int,
    has_feature: NDArray[np.bool_],
    order: NDArray[np.int64],
    z: NDArray[np.float64],
    **tested: Any,
) -> Pair:
    beliefs, units, stated = evidence.beliefs, evidence.units, evidence.concepts.stated(t)
    # Where nobody else will look, t must also look false against how often it is there at all.
    ratio = _in_surroundings(evidence, t, has_feature) if evidence.confirmable[t] else beliefs.log_ratio[:, t]
    overall = error_share(t, beliefs.log_ratio[units.first(stated), t])
    return pair_of(
        order,
        z,
        wrong=stated & (beliefs.presence[:, t] < LACKS),
        has_feature=has_feature,
        share=error_share(t, ratio[units.first(stated & has_feature)]),
        overall=overall,
        evidence=overall.evidence,
        **tested,
    )


def _in_surroundings(evidence: Evidence, t: int, has_feature: NDArray[np.bool_]) -> NDArray[np.float32]:
    """(N,) log-ratios of t against how often it is there beside v, and not against how often it is there at all."""
    known = evidence.beliefs.known[:, t]
    if not has_feature.any():
        return evidence.beliefs.log_ratio[:, t]
    here, all_over = (np.clip(known[rows].mean(), 1e-4, 1 - 1e-4) for rows in (has_feature, slice(None)))
    shift = np.log(here / (1 - here)) - np.log(all_over / (1 - all_over))
    return np.clip(evidence.beliefs.log_ratio[:, t] + shift, -LIMIT, LIMIT)
