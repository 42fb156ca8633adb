"""Pairs (t, v) by a calibrated judge: those whose t is stated falsely more often beside v.

Which statements are false nobody knows; with what probability an image shows t the judge knows, where it is calibrated.
So the share of images without t whose captions state it is estimated with v and without, beside the share of images
with t whose captions state it, which may differ too and is no error (`symbal_hf.stats.latent`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

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
from symbal_hf.stats.latent import false_beside, shares_stated, surplus_beside

LACKS = 0.3  # presence below which an image probably lacks a thing
# Where the lite judge gives t less than that beside a feature, its odds are too low by 1.2 over all pairs of COCO's
# classes, by 1.5 at most where v makes t likelier (scripts/measure/second_judge.py, photos apart).
TOO_LOW = 1.5
TESTED, ROUGH = 12, 2.0  # features of each error whose likelihood is maximised, and the rough score that it takes


@dataclass(frozen=True)
class Statements:
    """Images in which t can be judged.

    Attributes:
        stated: (M,) whether a caption states t.
        presence: (M,) probability that the image shows t.
        has: (M, P) whether it shows each feature.
    """

    stated: NDArray[np.bool_]
    presence: NDArray[np.float64]
    has: NDArray[np.bool_]

    @property
    def lacking(self) -> NDArray[np.bool_]:
        """(M,) images that probably lack t."""
        return self.presence < LACKS

    def without(self, feature: int) -> Statements:
        """Those that do not show a feature."""
        kept = ~self.has[:, feature]
        return Statements(self.stated[kept], self.presence[kept], self.has[kept])

    def scores(self, usable: NDArray[np.bool_]) -> NDArray[np.float64]:
        """(P,) standard scores of the features; -inf where one is not usable or too few images show it.

        The smaller of two: by the judge's presence as it is, and as if it were too low beside the feature. Only what a
        rough test finds is tested so; the rest keeps the rough score.
        """
        z = np.full(len(usable), -np.inf)
        able = np.flatnonzero(usable & (self.has[self.lacking].sum(0) >= FEWEST_ROWS))
        if len(able) and self.stated.any():
            rough = surplus_beside(self.presence, self.stated, self.has[:, able])
            z[able] = np.minimum(rough, ROUGH)
            best = able[[i for i in np.argsort(-rough, kind="stable")[:TESTED] if rough[i] > ROUGH]]
            z[best] = false_beside(self.presence, self.stated, self.has[:, best], odds=(1.0, TOO_LOW))
        return z

    def table(self, feature: int) -> tuple[int, int, int, int]:
        """As in `Pair`, of the images that probably lack t."""
        stated, inside = self.stated[self.lacking], self.has[self.lacking, feature]
        a, n1 = int((stated & inside).sum()), int(inside.sum())
        return a, n1, int(stated.sum()) - a, len(inside) - n1


def judged_pairs(evidence: Evidence) -> list[Pair]:
    """Every pair that might be one, what can be confirmed first; p-values are corrected for all that were looked at."""
    believed, pairs = _believed(evidence), list[Pair]()
    shows = _shows(evidence, believed, evidence.concepts.mentions())
    for t, tried in _tried(evidence).items():
        pairs += _pairs_of(evidence, t, _in_sentences_of(evidence, believed, t, shows), tried)
    return sorted(pairs, key=lambda pair: (not evidence.can_be_found[pair.error], -strength(pair)))


def _tried(evidence: Evidence) -> dict[int, float]:
    """Of each concept that may be an error, as how many its p-values are corrected: the less, the more it is misstated.

    What can be found and what can only be suspected are two families of tests. Each shares the level out among its
    concepts by the square root of how many statements are false; where those stand is another question, and what is
    estimated of it independent of that (weighted Bonferroni: Genovese, Roeder and Wasserman 2006).
    """
    weight = {}
    for t in np.flatnonzero(evidence.competence.stated >= FEWEST_MENTIONS):
        _, stated, presence = _judgeable(evidence, int(t))
        false = shares_stated(presence, stated)[1] * (1 - presence).sum() if len(presence) else 0.0
        weight[int(t)] = max(1.0, float(false)) ** 0.5
    families = evidence.can_be_found
    total = [sum(w for t, w in weight.items() if families[t] == family) for family in (False, True)]
    return {t: total[int(families[t])] / w for t, w in weight.items()}


def _believed(evidence: Evidence) -> NDArray[np.float32]:
    """(N, P) probability that the image shows what its caption names: a caption is believed, but for what it misstates.

    An apple that is stated falsely beside tables would else be a feature of these, and what the judge misses of tables
    an error beside apples.
    """
    beliefs, believed = evidence.of_both, evidence.of_both.if_stated.copy()
    for c in np.flatnonzero(evidence.competence.stated >= FEWEST_MENTIONS):
        p = beliefs.known[:, c]
        m, f = shares_stated(p, evidence.concepts.stated(int(c)))
        believed[:, c] = np.minimum(believed[:, c], m * p / np.maximum(m * p + f * (1 - p), 1e-9))
    return believed


def _shows(
    evidence: Evidence, believed: NDArray[np.float32], named: NDArray[np.bool_], rows: Any = slice(None)
) -> NDArray[np.bool_]:
    """(n, P) the image shows the feature; a caption that names it (n, P) is a witness."""
    return np.where(named, believed[rows], evidence.of_both.known[rows]) > 0.5


def _in_sentences_of(
    evidence: Evidence, believed: NDArray[np.float32], t: int, shows: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """(N, P) `shows`, where sentences that name t, which may be as false of what else they name, count half.

    What only they name is shown where the judges hold it for likelier than usual.
    """
    rows = np.flatnonzero(evidence.concepts.stated(t))
    named, beliefs = evidence.concepts.mentions(without_facts_naming=t)[rows], evidence.of_both
    shows = shows.copy()
    likelier = evidence.concepts.mentions()[rows] & (beliefs.log_ratio[rows] < 0)
    shows[rows] = _shows(evidence, believed, named, rows) | (likelier & ~named)
    return shows


def _judgeable(evidence: Evidence, t: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Which images can be judged and show nothing that t is a part of; and of these `Statements.stated`, `presence`."""
    usable, units = ~np.isnan(evidence.beliefs.presence[:, t]), evidence.units
    for whole in evidence.wholes_of(t):
        usable &= evidence.beliefs.known[:, whole] <= 0.5
    images = units.any(usable)
    presence = units.largest(evidence.beliefs.known[:, t])[images].astype(np.float64)
    return images, units.any(evidence.concepts.stated(t))[images], presence


def _pairs_of(evidence: Evidence, t: int, shows: NDArray[np.bool_], tried: float) -> Iterator[Pair]:
    """The error with its feature, and with further ones that matter where those before are not in view."""
    images, stated, presence = _judgeable(evidence, t)
    everything = rest = Statements(stated, presence, evidence.units.any(shows)[images])
    usable = evidence.can_be_feature & ~other_names(evidence.concepts, t, similar=evidence.similar)
    for turn in range(1 + FURTHER):
        z = rest.scores(usable)
        if not turn:
            tried *= max(int(np.isfinite(z).sum()), 1)  # images that show a feature say nothing of statements of t
        order = np.argsort(-z, kind="stable")[: int((z > 0).sum())]
        if not len(order):
            return
        first, p = int(order[0]), float(norm.sf(z[order[0]]))
        if turn and p * tried >= ALPHA:
            return
        table = everything.table(first)
        yield _pair(evidence, t, shows[:, first], order, z[order], table=table, p=p, tried=tried)
        usable &= ~other_names(evidence.concepts, first)
        rest = rest.without(first)


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
