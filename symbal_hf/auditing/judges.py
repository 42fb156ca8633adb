"""Alignment: how probable it is that each image shows each concept, judged from objects or from pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.language.phrases import Vocabulary

if TYPE_CHECKING:
    from symbal_hf.language.concepts import Concepts
    from symbal_hf.models.encoders.lite import LiteVision

ScorerName = Literal["embedding", "reference", "objects", "text-only", "vision-language", "object"]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Columns = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
SURE = 0.999  # what a given list of objects is worth: labels are not free of errors
WELL_ALIGNED = 0.1  # prior share of false mentions where nothing is known about a concept
LIMIT = 6.0  # no single mention may outweigh e^6 to 1
NAMES = 256  # put to the image encoder at once
QUESTIONS = ("{}", "a photo of a {}")  # how a concept is put to the image encoder; the answers are averaged


@dataclass(frozen=True)
class Beliefs:
    """What a scorer believes about N images and P concepts.

    Attributes:
        presence: (N, P) float32, probability in (0, 1) that the image shows the concept; NaN where it cannot be judged.
        log_ratio: (N, P) float32, log of how much better "the image lacks it" explains what the scorer sees than
            "the image shows it", in [-6, 6]: positive where the image argues against the concept, 0 where the scorer
            knows nothing.
        scorer: which scorer this is.
        given_truth: True when presence is given data and not a model's opinion.
    """

    presence: NDArray[np.float32]
    log_ratio: NDArray[np.float32]
    scorer: ScorerName
    given_truth: bool

    @cached_property
    def known(self) -> NDArray[np.float32]:
        """(N, P) presence, 0 where it cannot be judged."""
        return np.nan_to_num(self.presence, nan=0.0)

    @cached_property
    def if_stated(self) -> NDArray[np.float32]:
        """(N, P) probability that the image shows the concept where the caption, which is mostly right, names it."""
        fits = (1 - WELL_ALIGNED) / (1 - WELL_ALIGNED + WELL_ALIGNED * np.exp(self.log_ratio))
        return np.asarray(fits, np.float32)


class Judge(Protocol):
    """One way of checking concepts against N rows."""

    scorer: ScorerName
    given_truth: bool

    def judge(self, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(N, P) presence and (N, P) log-ratio of these concepts, as in `Beliefs`."""
        ...


def beliefs(judge: Judge, names: Sequence[str], *, columns: Columns | None = None) -> Beliefs:
    """The judge's `Beliefs` about `names`. What `columns` holds by name is not asked again; what is new is added."""
    columns = {} if columns is None else columns
    new = [name for name in names if name not in columns]
    if new:
        presence, ratio = judge.judge(new)
        columns.update((name, (presence[:, i], ratio[:, i])) for i, name in enumerate(new))
    return Beliefs(
        np.stack([columns[name][0] for name in names], 1),
        np.stack([columns[name][1] for name in names], 1),
        judge.scorer,
        judge.given_truth,
    )


def log_ratio_of(presence: NDArray[np.floating]) -> NDArray[np.float32]:
    """(N, P) log-ratios of `Beliefs` from calibrated probabilities, by Bayes: logit(mean presence) - logit(presence).

    A concept about which the scorer knows nothing has the same presence everywhere and gets 0, however frequent it is.
    """
    p = np.clip(presence, 1e-4, 1 - 1e-4)
    mean = np.nanmean(p, axis=0)
    ratio = np.log(mean / (1 - mean)) - np.log(p / (1 - p))
    return np.nan_to_num(np.clip(ratio, -LIMIT, LIMIT)).astype(np.float32)


class ObjectJudge:
    """Presence from given objects: a concept is present when the row's objects name it, or one of its synonyms."""

    scorer: ScorerName = "objects"
    given_truth = True

    def __init__(self, objects: Sequence[frozenset[str] | None], vocabulary: Vocabulary) -> None:
        """`objects` of N rows; None where nobody knows."""
        self.objects, self.vocabulary = objects, vocabulary

    def judge(self, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `Judge.judge`."""
        presence = np.full((len(self.objects), len(names)), 1 - SURE, np.float32)
        place = {name: i for i, name in enumerate(names)}
        columns: dict[str, list[int]] = {}
        for row, present in enumerate(self.objects):
            if present is None:
                presence[row] = np.nan
                continue
            for name in present:
                if name not in columns:
                    classes = {name} if name in place else self.vocabulary.find(name)
                    columns[name] = [place[c] for c in classes if c in place]
                presence[row, columns[name]] = SURE
        if np.isnan(presence).all():
            return presence, np.zeros_like(presence)
        return presence, log_ratio_of(presence)


class EmbeddingJudge:
    """Presence from an image encoder whose log-odds are calibrated."""

    scorer: ScorerName = "embedding"
    given_truth = False

    def __init__(self, regions: NDArray[np.float16], vision: LiteVision, embed: Embed) -> None:
        """`regions` (N, R, D) of the images; `embed` gives unit vectors of texts in the same space."""
        self.regions, self.vision, self.embed = regions, vision, embed

    def judge(self, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `Judge.judge`."""
        asked = [self.embed([form.format(name) for name in names]) for form in QUESTIONS]
        presence = np.empty((len(self.regions), len(names)), np.float32)
        ratio = np.empty_like(presence)
        for start in range(0, len(names), NAMES):  # what lies between them is as large as both
            part = slice(start, start + NAMES)
            odds = self.vision.log_odds(self.regions, np.concatenate([vectors[part] for vectors in asked]))
            odds = odds.reshape(len(odds), len(asked), -1).mean(1)
            presence[:, part] = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
            ratio[:, part] = log_ratio_of(presence[:, part])
        return presence, ratio


def fact_alignment(concepts: Concepts, log_ratio: NDArray[np.float32]) -> NDArray[np.float32]:
    """(F,) alignment in [0, 1] of each fact with its image, NaN for a fact that names no concept.

    A fact is as well aligned as the least fitting concept it names; 0.5 is the fit of a random image.
    """
    coo = sparse.coo_matrix(concepts.by_fact)
    worst = np.full(len(concepts.facts), -np.inf, np.float32)
    np.maximum.at(worst, coo.row, log_ratio[concepts.facts.row[coo.row], coo.col])
    known = np.isfinite(worst)
    return np.where(known, 1 / (1 + np.exp(np.where(known, worst, 0))), np.nan).astype(np.float32)
