"""Alignment with reference captions: whether anything they speak of comes near the concept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import LIMIT, UNMEASURED, Embed, ScorerName
from symbal_hf.language.denials import asserted
from symbal_hf.language.phrases import noun_phrases

# Cosine between two noun phrases, in steps fine enough where "same thing" begins.
EDGES = np.array([0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.98])
FORM = "a {}"  # with its article "person" lies near "man", "guy" and "player"; bare words do not
PRIOR = 20.0  # how many mentions the average concept's curve is worth for a rare concept


class ReferenceJudge:
    """Presence from the reference captions of each row.

    References are silent about most of what an image shows, and about some things nearly always. How a true mention
    of a concept looks is therefore learnt from the references alone: for each reference that names it, how near do
    the row's other references come? A planted or hallucinated statement in the captions cannot bend that scale.
    """

    scorer: ScorerName = "reference"
    given_truth = False
    measured = UNMEASURED

    def __init__(self, references: Sequence[Sequence[str]], embed: Embed) -> None:
        """`references` of N rows (an empty row cannot be judged); `embed` gives unit vectors of texts."""
        self.embed = embed
        self.rows = len(references)
        self.told = np.array([any(t.strip() for t in texts) for texts in references], bool)
        found = [[sorted(noun_phrases(asserted(text))) for text in texts] for texts in references]
        self.phrases = sorted({p for texts in found for group in texts for p in group})
        place = {p: i for i, p in enumerate(self.phrases)}
        self._by_text = [[np.array([place[p] for p in group], np.int64) for group in texts] for texts in found]
        self._by_row = [np.unique(np.concatenate([*texts, []])).astype(np.int64) for texts in self._by_text]

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return self.embed([FORM.format(p) for p in self.phrases])

    @cached_property
    def _agreement(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Per mention in a reference: the phrase, and its nearest phrase in the row's other references."""
        phrase, near = [], []
        for texts in self._by_text:
            for number, own in enumerate(texts):
                rest = [other for k, other in enumerate(texts) if k != number and len(other)]
                if len(own) and rest:
                    others = np.unique(np.concatenate(rest))
                    phrase.append(own)
                    near.append((self._vectors[own] @ self._vectors[others].T).max(1))
        if not phrase:
            return np.zeros(0, np.int64), np.zeros(0)
        return np.concatenate(phrase), np.concatenate(near).astype(np.float64)

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """(n, P) cosine of each concept and the nearest phrase of the row's references; NaN where nothing is told."""
        told, phrases = self.told[rows], self._by_row[rows]
        seen = np.full((len(told), len(names)), np.nan, np.float32)
        if not self.phrases:
            return seen
        for start in range(0, len(names), 512):
            cosine = self.embed([FORM.format(name) for name in names[start : start + 512]]) @ self._vectors.T
            for row in np.flatnonzero(told):
                seen[row, start : start + 512] = cosine[:, phrases[row]].max(1, initial=0.0)
        return seen

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `symbal_hf.auditing.judges.protocol.Judge.conclude`."""
        from scipy.optimize import isotonic_regression

        rows = np.flatnonzero(self.told)
        presence = np.full(seen.shape, np.nan, np.float32)
        ratio = np.zeros_like(presence)
        if not len(rows) or not self.phrases:
            return presence, ratio
        phrase, near = self._agreement
        bins, steps = np.digitize(near, EDGES), len(EDGES) + 1
        overall = np.bincount(bins, minlength=steps) + 1.0
        overall /= overall.sum()
        index = {p: i for i, p in enumerate(self.phrases)}
        order = np.argsort(phrase, kind="stable")
        starts = np.searchsorted(phrase[order], np.arange(len(self.phrases) + 1))
        for c, name in enumerate(names):
            near_row = seen[rows, c]
            here = np.digitize(near_row, EDGES)
            at_random = np.bincount(here, minlength=steps) + overall
            at_random /= at_random.sum()
            true = PRIOR * overall
            if name in index:
                own = order[starts[index[name]] : starts[index[name] + 1]]
                true = true + np.bincount(bins[own], minlength=steps)
            true = true / true.sum()
            # Nearer references never argue more strongly against a concept.
            curve = isotonic_regression(np.log(at_random / true), weights=at_random + true, increasing=False).x
            share = np.clip((near_row >= EDGES[-1]).mean(), 1e-3, 0.9)
            column = np.clip(curve[here], -LIMIT, LIMIT)
            ratio[rows, c] = column
            presence[rows, c] = 1 / (1 + np.exp(column - np.log(share / (1 - share))))
        return presence, ratio
