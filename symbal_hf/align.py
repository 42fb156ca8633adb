"""Alignment: how probable it is that each image shows each concept, from pixels, from references or from objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.concepts import Concepts
from symbal_hf.phrases import Vocabulary, noun_phrases

SURE = 0.99  # what a given list of objects is worth: labels are not free of errors


@dataclass(frozen=True)
class Beliefs:
    """What a scorer believes about N images and P concepts.

    Attributes:
        presence: (N, P) float32, probability in (0, 1) that the image shows the concept; NaN where it cannot be judged.
        scorer: "embedding", "reference" or "objects".
        given_truth: True when presence is given data and not a model's opinion.
    """

    presence: NDArray[np.float32]
    scorer: str
    given_truth: bool

    @property
    def log_ratio(self) -> NDArray[np.float32]:
        """(N, P): log of how much better "the image was drawn at random" explains a mention than "the image shows it".

        By Bayes it is logit(mean presence) - logit(presence): 0 for a concept about which the scorer knows nothing,
        whatever its frequency, positive where the image argues against the concept. NaN counts as 0.
        """
        p = np.clip(self.presence, 1e-4, 1 - 1e-4)
        mean = np.nanmean(p, axis=0) if len(p) else np.zeros(p.shape[1])
        ratio = np.log(mean / (1 - mean)) - np.log(p / (1 - p))
        return np.nan_to_num(np.clip(ratio, -6, 6)).astype(np.float32)


def object_beliefs(concepts: Concepts, objects: Sequence[frozenset[str] | None], vocabulary: Vocabulary) -> Beliefs:
    """Presence from given objects: a concept is present when the row's objects name it, or one of its synonyms."""
    presence = np.full((len(objects), len(concepts.names)), 1 - SURE, np.float32)
    place = {name: i for i, name in enumerate(concepts.names)}
    seen: dict[str, list[int]] = {}
    for row, present in enumerate(objects):
        if present is None:
            presence[row] = np.nan
            continue
        for name in present:
            if name not in seen:
                classes = {name} if name in place else vocabulary.find(name)
                seen[name] = [place[c] for c in classes if c in place]
            presence[row, seen[name]] = SURE
    return Beliefs(presence, "objects", True)


def reference_beliefs(
    concepts: Concepts,
    references: Sequence[Sequence[str]],
    concept_vectors: NDArray[np.float32],
    phrases: Sequence[str],
    phrase_vectors: NDArray[np.float32],
    *,
    seed: int = 0,
) -> Beliefs:
    """Presence from reference captions: the nearest noun phrase of the row's references, put on a probability scale.

    Args:
        concepts: P concepts.
        references: the reference captions of N rows; a row without any cannot be judged.
        concept_vectors: (P, D) unit vectors of the concept names.
        phrases: Q noun phrases of all references; `phrase_vectors` (Q, D) their unit vectors.
        seed: of the random rows that stand for "has nothing to do with the concept".

    The scale is learnt from the data itself: a mention is far oftener true than a random (row, concept) pair, so that
    a logistic regression of "mentioned here" on the similarity gives log-odds of presence up to a constant.
    """
    place = {name: i for i, name in enumerate(phrases)}
    own = [sorted({place[p] for text in texts for p in noun_phrases(text)}) for texts in references]
    cosine = concept_vectors @ phrase_vectors.T
    nearest = np.full((len(references), len(concepts.names)), np.nan, np.float32)
    for row, columns in enumerate(own):
        if columns:
            nearest[row] = cosine[:, columns].max(1)
        elif references[row]:
            nearest[row] = 0.0
    return Beliefs(_calibrated(nearest, concepts, seed=seed), "reference", False)


def _calibrated(similarity: NDArray[np.float32], concepts: Concepts, *, seed: int) -> NDArray[np.float32]:
    """Probabilities from similarities, by a logistic regression of mentions against random rows."""
    from sklearn.linear_model import LogisticRegression

    mentioned = concepts.mentions()
    known = ~np.isnan(similarity)
    rows, columns = np.nonzero(mentioned & known)
    if not len(rows):
        return np.where(known, 0.5, np.nan).astype(np.float32)
    rng = np.random.default_rng(seed)
    other = rng.permutation(len(rows))
    negatives = similarity[rows[other], columns]
    negatives = negatives[~np.isnan(negatives)]
    x = np.concatenate([similarity[rows, columns], negatives])
    y = np.r_[np.ones(len(rows)), np.zeros(len(negatives))]
    # A second, steeper feature lets the curve bend where "same word" begins.
    model = LogisticRegression(C=100.0).fit(_bend(x), y)
    # Back from "half of the pairs are mentions" to each concept's own share.
    share = np.clip(mentioned.mean(0), 1e-4, 0.9)
    out = np.empty_like(similarity)
    for start in range(0, len(similarity), 1024):
        part = np.nan_to_num(similarity[start : start + 1024])
        odds = model.decision_function(_bend(part.ravel())).reshape(part.shape) + np.log(share / (1 - share))
        out[start : start + 1024] = 1 / (1 + np.exp(-odds))
    out[~known] = np.nan
    return out


def _bend(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.stack([x, np.clip(x, 0, 1) ** 4], 1)


def embedding_beliefs(log_odds: NDArray[np.float32]) -> Beliefs:
    """Presence from an encoder's calibrated log-odds (N, P)."""
    return Beliefs((1 / (1 + np.exp(-np.clip(log_odds, -30, 30)))).astype(np.float32), "embedding", False)


def fact_alignment(concepts: Concepts, log_ratio: NDArray[np.float32]) -> NDArray[np.float32]:
    """(F,) alignment in [0, 1] of each fact with its image, NaN for a fact that names no concept.

    A fact is as well aligned as the least fitting concept it names; 0.5 is the fit of a random image.
    """
    coo = sparse.coo_matrix(concepts.by_fact)
    worst = np.full(len(concepts.facts), -np.inf, np.float32)
    np.maximum.at(worst, coo.row, log_ratio[concepts.facts.row[coo.row], coo.col])
    return np.where(np.isfinite(worst), 1 / (1 + np.exp(np.clip(worst, -30, 30))), np.nan).astype(np.float32)
