"""Which concept is stated wrongly again and again (t), and which feature of the image goes with it (v)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import Beliefs
from symbal_hf.auditing.units import Units
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.naming import fuller_name, other_names
from symbal_hf.stats.contingency import corrected, cramers_v, fisher_greater

SHARES = np.linspace(0.05, 1.0, 20)
FEWEST_MENTIONS = 8  # images whose captions name a concept without which nothing is said of it
FEWEST_ROWS = 5  # images that show a feature without which it is none
FURTHER, ALPHA = 4, 0.05  # features of an error beside its first, and the level at which each must matter
EACH_ROW = Units()
HALF_CHI2 = 1.92  # half of chi-square's 3.84: a likelihood this much lower is outside the 95 % interval


@dataclass(frozen=True)
class ErrorShare:
    """How much of a concept's mentions is false, by maximum likelihood of a two-part mixture.

    Attributes:
        concept: its index.
        share: estimated share of false mentions among the mentions, in [0.05, 1].
        low: lower end of the share's 95 % likelihood interval.
        evidence: log-likelihood gain over "no mention is false", in nats, >= 0.
        mentions: rows that mention the concept.
    """

    concept: int
    share: float
    low: float
    evidence: float
    mentions: int


def error_share(concept: int, log_ratio: NDArray[np.floating]) -> ErrorShare:
    """The `ErrorShare` of mentions with these log-ratios (M,): of a true mention, or of an image that lacks it."""
    ratio = np.exp(np.asarray(log_ratio, np.float64))
    gain = np.log1p(SHARES[:, None] * (ratio - 1)[None, :]).sum(1) if len(ratio) else np.zeros(len(SHARES))
    best = int(gain.argmax())
    if gain[best] <= 0:
        return ErrorShare(concept, float(SHARES[0]), 0.0, 0.0, len(ratio))
    inside = SHARES[gain >= gain[best] - HALF_CHI2]
    low = 0.0 if gain[best] < HALF_CHI2 else float(inside[0])
    return ErrorShare(concept, float(SHARES[best]), low, float(gain[best]), len(ratio))


@dataclass(frozen=True)
class Pair:
    """One (t, v) candidate: concept indices, and the rows behind it as masks over N.

    Attributes:
        error: t's index; `feature` v's index.
        features: v and its runners-up, best first.
        scores: standardised soft association of each, by which they are ranked; 0 where they are ranked otherwise.
        wrong: (N,) the caption states t and the image lacks it.
        has_feature: (N,) the image shows v.
        table: errors with v, rows with v, errors without v, rows without v, among the images that lack t.
        v: Cramér's V of that table; `p` its one-sided Fisher p-value; `p_corrected` for all pairs tried.
        share: the error share of t's mentions in rows with v; `overall` of all its mentions.
        evidence: evidence that t's mentions are false at all.
        also_errors: further candidates for t, best first, where the method names several.
    """

    error: int
    feature: int
    features: tuple[int, ...]
    scores: tuple[float, ...]
    wrong: NDArray[np.bool_]
    has_feature: NDArray[np.bool_]
    table: tuple[int, int, int, int]
    v: float
    p: float
    p_corrected: float
    share: ErrorShare
    overall: ErrorShare
    evidence: float
    also_errors: tuple[int, ...] = ()

    @property
    def confirmed(self) -> tuple[float, float]:
        """(estimate, lower end of its 95 % interval), in [0, 1].

        The mixture says how many of the mentions in rows with v are false, whichever they are; a rejection counts as
        confirmed as far as there are that many.
        """
        if self.share.evidence <= 0:  # then the likeliest share is none, which is below the least that is tried
            return 0.0, 0.0
        rejected = max(int((self.wrong & self.has_feature).sum()), 1)
        false, low = self.share.share * self.share.mentions, self.share.low * self.share.mentions
        return min(false / rejected, 1.0), min(low / rejected, 1.0)


def strength(pair: Pair) -> float:
    """Evidence in nats that t is false and that it goes with v, together; larger is stronger."""
    return pair.evidence - float(np.log(max(pair.p, 1e-300)))


def rank_errors(
    concepts: Concepts,
    log_ratio: NDArray[np.float32],
    *,
    has: NDArray[np.bool_] | None = None,
    min_rows: int = FEWEST_MENTIONS,
    least: float = HALF_CHI2,
    units: Units = EACH_ROW,
) -> list[ErrorShare]:
    """Concepts of whose mentions some are false beyond doubt (95 %), strongest evidence first.

    Args:
        concepts: the concepts and their mentions.
        log_ratio: (N, P) of `Beliefs`.
        has: (N, P) rows that show each feature. With it a concept is also looked at inside the rows of each feature:
            a common word ("person") is false so rarely over all that only there it shows. That evidence is reduced by
            the log of the number of features it was picked from.
        min_rows: mentions that it takes.
        least: evidence that it takes, in nats.
        units: which rows show one image, whose mentions count once.
    """
    mentioned = mentions_by_image(concepts, units)
    usual = np.flatnonzero(mentioned.sum(0) >= min_rows)
    shares = {int(c): error_share(int(c), log_ratio[mentioned[:, c], c]) for c in usual}
    if has is not None:
        for inside in _shares_inside(concepts, log_ratio, mentioned, has, usual, min_rows=min_rows):
            if inside.evidence > shares[inside.concept].evidence:
                shares[inside.concept] = inside
    return sorted((s for s in shares.values() if s.evidence > least), key=lambda s: -s.evidence)


def mentions_by_image(concepts: Concepts, units: Units) -> NDArray[np.bool_]:
    """(N, P) The row's caption names the concept, and no row before it of the same image does."""
    mentioned = concepts.mentions()
    if units.image is not None:
        for concept in np.flatnonzero(mentioned.any(0)):
            mentioned[:, concept] = units.first(mentioned[:, concept])
    return mentioned


def _shares_inside(
    concepts: Concepts,
    log_ratio: NDArray[np.float32],
    mentioned: NDArray[np.bool_],
    has: NDArray[np.bool_],
    usual: NDArray[np.int64],
    *,
    min_rows: int,
) -> Iterable[ErrorShare]:
    """The error share of each concept inside the rows of the feature where there is most evidence for it."""
    shown = has.astype(np.float32)
    count = shown.T @ mentioned[:, usual].astype(np.float32)
    best = np.zeros((shown.shape[1], len(usual)), np.float32)
    ratio = np.exp(log_ratio[:, usual]) - 1
    for share in SHARES[1::2]:
        gain = np.where(mentioned[:, usual], np.log1p(np.float32(share) * ratio), 0)
        np.maximum(best, shown.T @ gain, out=best)
    best[count < min_rows] = 0
    for column, concept in enumerate(usual):
        best[other_names(concepts, int(concept)), column] = 0
        feature = int(best[:, column].argmax())
        if best[feature, column] > 0:
            rows = mentioned[:, concept] & has[:, feature]
            found = error_share(int(concept), log_ratio[rows, concept])
            yield replace(found, evidence=found.evidence - float(np.log(shown.shape[1])))


def associate(
    concepts: Concepts,
    beliefs: Beliefs,
    *,
    errors: Sequence[ErrorShare],
    visible: NDArray[np.bool_] | None = None,
    tried_errors: NDArray[np.int64] | None = None,
    min_rows: int = FEWEST_ROWS,
    similar: NDArray[np.floating] | None = None,
    wholes: Mapping[int, Set[int]] | None = None,
    units: Units = EACH_ROW,
) -> list[Pair]:
    """For each candidate error, the feature that goes with it most, over all rows that truly lack t.

    Args:
        concepts: the concepts and their mentions.
        beliefs: presence of each concept in each row.
        errors: candidate errors (`rank_errors`).
        visible: (P,) concepts that can be a feature; all by default.
        tried_errors: (P,) of each concept as an error, how many were looked at with it, for the correction; all that
            are mentioned often enough by default.
        min_rows: a feature must be present in this many rows.
        similar: (P, P) cosine of concept names; a feature this close to t (>= 0.7) is t under another name.
        wholes: concepts that t may be part of; images that show one are not judged for t.
        units: which rows show one image, that counts once.
    """
    if tried_errors is None:
        often = mentions_by_image(concepts, units).sum(0) >= FEWEST_MENTIONS
        tried_errors = np.full(len(often), often.sum())
    pairs = []
    for error in errors:
        rows = judge_rows(concepts, beliefs, error, wholes=(wholes or {}).get(error.concept, ()))
        seen = rows.by_image(units)
        z = _soft_z(seen.false, seen.lacks, seen.shown)
        z[(seen.has & seen.lacking[:, None]).sum(0) < min_rows] = -np.inf
        if visible is not None:
            z[~visible] = -np.inf
        # "Seat" may stand for "toilet seat" wherever it is wrong: then a toilet is no feature of it either.
        for name in {error.concept, fuller_name(concepts, error.concept, rows.wrong.astype(np.float64))}:
            z[other_names(concepts, name, similar=similar)] = -np.inf
        usable = int(np.isfinite(z).sum())
        if usable:
            order = np.argsort(-z, kind="stable")[:usable]
            tried = usable * max(int(tried_errors[error.concept]), 1)
            pairs.append(make_pair(concepts, beliefs, error, rows, order, scores=z[order], tried=tried, units=units))
    return pairs


@dataclass(frozen=True)
class ErrorRows:
    """How N rows stand to one candidate error t and to all P features.

    Attributes:
        false: (N,) probability that the caption states t falsely; `wrong` where it is above one half.
        lacks: (N,) probability that the image lacks t; `lacking` where it is above one half.
        shown: (N, P) probability that the image shows the feature; `has` where it is above one half.
    """

    false: NDArray[np.float64]
    lacks: NDArray[np.float64]
    shown: NDArray[np.floating]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """(N,) The caption states t and the image lacks it."""
        return self.false > 0.5

    @property
    def lacking(self) -> NDArray[np.bool_]:
        """(N,) The image lacks t."""
        return (self.lacks > 0.5) | self.wrong

    @property
    def has(self) -> NDArray[np.bool_]:
        """(N, P) The image shows the feature."""
        return self.shown > 0.5

    def by_image(self, units: Units) -> ErrorRows:
        """The same of images: an image lacks t or is told to have it as far as any of its rows says so."""
        return ErrorRows(units.largest(self.false), units.largest(self.lacks), units.largest(self.shown))


def judge_rows(concepts: Concepts, beliefs: Beliefs, error: ErrorShare, *, wholes: Iterable[int] = ()) -> ErrorRows:
    """Where t is stated falsely, where it is lacking, and which features each row shows.

    A caption counts as a witness of its other features only in facts that do not name t: what is said in the same
    sentence as an error may belong to the error.
    """
    t, presence = error.concept, beliefs.known
    judged = ~np.isnan(beliefs.presence[:, t])
    for whole in wholes:
        judged &= presence[:, whole] <= 0.5
    stated = concepts.stated(t)
    if beliefs.given_truth:
        absent = (presence[:, t] < 0.5) & judged
        return ErrorRows((stated & absent).astype(np.float64), absent.astype(np.float64), presence)
    # Of all mentions, not of those inside one feature's rows, where t may have been found out: true mentions elsewhere
    # would count as false.
    share = error_share(t, beliefs.log_ratio[stated & judged, t]).share
    odds = share * np.exp(beliefs.log_ratio[:, t].astype(np.float64))
    false = np.where(stated & judged, odds / (1 - share + odds), 0.0)
    lacks = np.where(stated, false, 1 - presence[:, t]) * judged
    said = concepts.mentions(without_facts_naming=t)
    return ErrorRows(false, lacks, np.where(said, beliefs.if_stated, presence))


def make_pair(
    concepts: Concepts,
    beliefs: Beliefs,
    error: ErrorShare,
    rows: ErrorRows,
    order: Sequence[int] | NDArray[np.int64],
    *,
    scores: NDArray[np.floating],
    tried: float,
    units: Units = EACH_ROW,
) -> Pair:
    """The pair of `error` and the first feature of `order`, with the statistics of its 2x2 table of images."""
    t, v = error.concept, int(order[0])
    wrong, has = rows.wrong, rows.shown[:, v] > 0.5
    said, lacking, shown = units.any(wrong), units.any(rows.lacking), units.any(has)
    a, n1 = int((said & shown).sum()), int((lacking & shown).sum())
    b, n0 = int(said.sum()) - a, int(lacking.sum()) - n1
    p, stated = float(fisher_greater(a, n1, a + b, n1 + n0)), concepts.stated(t) & ~np.isnan(beliefs.presence[:, t])
    return pair_of(
        order,
        scores,
        wrong=wrong,
        has_feature=has,
        table=(a, n1, b, n0),
        p=p,
        tried=tried,
        share=error_share(t, beliefs.log_ratio[units.first(stated & has), t]),
        overall=error_share(t, beliefs.log_ratio[units.first(stated), t]),
        evidence=error.evidence,
    )


def pair_of(
    order: Sequence[int] | NDArray[np.int64],
    scores: NDArray[np.floating],
    *,
    table: tuple[int, int, int, int],
    p: float,
    tried: float,
    share: ErrorShare,
    **others: Any,
) -> Pair:
    """A `Pair` of the concept of `share` and the first feature of `order`, with what follows from its table.

    Args:
        order: features, best first; `scores` of each.
        table: see `Pair`, as for `p`, `share` and `others`.
        tried: pairs that were looked at, for the correction.
    """
    a, n1, b, n0 = table
    return Pair(
        error=share.concept,
        feature=int(order[0]),
        features=tuple(int(o) for o in order[:40]),
        scores=tuple(float(x) for x in scores[:40]),
        table=table,
        v=float(cramers_v(a, n1, a + b, n1 + n0)),
        p=p,
        p_corrected=float(corrected([p], tried=max(tried, 1))[0]),
        share=share,
        **others,
    )


def _soft_z(
    error: NDArray[np.float64], lacking: NDArray[np.float64], shown: NDArray[np.floating]
) -> NDArray[np.float64]:
    """(P,) standard score of sum(error x feature) against drawing the errors at random among the lacking rows."""
    rows, errors = lacking.sum(), error.sum()
    if rows <= 0 or errors <= 0:
        return np.full(shown.shape[1], -np.inf)
    mean = lacking @ shown / rows
    spread = np.maximum(lacking @ (shown * shown) / rows - mean**2, 1e-9)
    return (error @ shown - errors * mean) / np.sqrt(np.maximum(errors * (1 - errors / rows), 1e-9) * spread)
