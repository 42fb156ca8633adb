"""What chat models say about images as a judge of concepts: listed features, captions, and scored facts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import LIMIT, UNMEASURED, WELL_ALIGNED, Embed, Judge, ScorerName, log_ratio_of
from symbal_hf.auditing.judges.references import FORM
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.phrases import noun_phrases, singular

# Cosine of two noun phrases, and how sure it is that both name one thing.
NEAR = (0.5, 0.6, 0.75, 0.9)
SURE = (0.03, 0.25, 0.6, 0.9, 0.97)


class ListJudge:
    """Presence from what is told of each image: a feature list by a model, or a caption by another model.

    A concept is there as far as something told comes near its name. What nobody tells of may still be there; a model
    that was asked to list what it sees leaves out little that is plain to see.
    """

    given_truth = False
    measured = UNMEASURED

    def __init__(self, told: Sequence[Sequence[str] | None], embed: Embed, *, scorer: ScorerName) -> None:
        """`told`: N lists of phrases or sentences, None or empty where nothing is known; `embed` compares phrases."""
        self.scorer, self.embed = scorer, embed
        self.rows = len(told)
        self.told = np.array([bool(texts) for texts in told], bool)
        named = [sorted({p for text in texts or () for p in _phrases(text)}) for texts in told]
        self.phrases = sorted({p for group in named for p in group})
        place = {p: i for i, p in enumerate(self.phrases)}
        self._by_row = [np.array([place[p] for p in group], np.int64) for group in named]

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """See `symbal_hf.auditing.judges.protocol.Judge.look`."""
        told, phrases = self.told[rows], self._by_row[rows]
        presence = np.full((len(told), len(names)), np.nan, np.float32)
        if not self.phrases:
            return presence
        vectors = self.embed([FORM.format(p) for p in self.phrases])
        for start in range(0, len(names), 512):
            near = self.embed([FORM.format(name) for name in names[start : start + 512]]) @ vectors.T
            sure = np.asarray(SURE, np.float32)[np.digitize(near, NEAR)]
            for row in np.flatnonzero(told):
                presence[row, start : start + 512] = sure[:, phrases[row]].max(1, initial=SURE[0])
        return presence

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `symbal_hf.auditing.judges.protocol.Judge.conclude`."""
        return seen, log_ratio_of(seen) if self.phrases else np.zeros_like(seen)


def _phrases(text: str) -> set[str]:
    """Noun phrases of a sentence; a bare name ("stop sign") is one whatever a tagger makes of it."""
    words = text.lower().split()
    own = {" ".join([*words[:-1], singular(words[-1])])} if 0 < len(words) <= 3 else set()
    return own | set(noun_phrases(text))


class FactJudge:
    """Another judge, corrected where a scorer has looked at the very statement that names the concept.

    A fact that is true shows all that it names. A fact that is false lacks something of it: each concept is to blame
    as far as the other judge doubts it. Whether a statement is true that the scorer was not asked about is unknown.
    """

    given_truth = False
    measured = UNMEASURED

    def __init__(
        self,
        judge: Judge,
        concepts: Concepts,
        score: NDArray[np.float32],
        *,
        scorer: ScorerName,
        asked: NDArray[np.bool_] | None = None,
        trust: float = 0.97,
    ) -> None:
        """`score` (F,) probability that each fact is true, NaN unknown; `trust` is the most that an answer is worth.

        `asked` (F,) is about which facts the scorer was asked, all by default.
        """
        self.asked = np.ones(len(score), bool) if asked is None else asked
        self.other, self.concepts, self.scorer, self.rows = judge, concepts, scorer, judge.rows
        self.score = np.clip(score, 1 - trust, trust)

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """What the other judge sees."""
        return self.other.look(names, rows)

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The other judge's conclusion, corrected where a fact was scored."""
        presence, ratio = self.other.conclude(names, seen)
        place = {name: i for i, name in enumerate(self.concepts.names)}
        column = np.array([place.get(name, -1) for name in names])
        back = {int(c): i for i, c in enumerate(column) if c >= 0}
        facts, by_fact = self.concepts.facts, self.concepts.by_fact.tocsr()
        if not self.asked.all():
            known = column >= 0
            unknown = self.concepts.mentions(of=~self.asked) & ~self.concepts.mentions(of=self.asked)
            unknown = unknown[:, column[known]]
            presence[:, known] = np.where(unknown, np.nan, presence[:, known])
            ratio[:, known] = np.where(unknown, 0, ratio[:, known])
        lowest: dict[tuple[int, int], float] = {}
        for f in np.flatnonzero(~np.isnan(self.score)):
            mine = [back[c] for c in by_fact.indices[by_fact.indptr[f] : by_fact.indptr[f + 1]] if int(c) in back]
            if not mine:
                continue
            row = int(facts.row[f])
            there = np.nan_to_num(presence[row, mine].astype(np.float64), nan=1 - WELL_ALIGNED)
            there = np.clip(there, 0.02, 0.98) if len(mine) > 1 else np.full(1, 0.5)
            false = 1 - (1 - there) / max(1 - there.prod(), 1e-6)  # P(there | the fact is false)
            found = self.score[f] + (1 - self.score[f]) * np.clip(false, 0, 1)
            for c, value in zip(mine, found, strict=True):
                lowest[row, c] = min(lowest.get((row, c), 1.0), float(value))
        for (row, c), value in lowest.items():
            value = min(max(value, 0.03), 0.97)
            presence[row, c] = value
            ratio[row, c] = np.clip(np.log((1 - value) / value), -LIMIT, LIMIT)
        return presence, ratio
