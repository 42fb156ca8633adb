"""Which statements the scorer was asked about, and what it said; nobody is asked once the budget is spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.evidence import Evidence
from symbal_hf.models.scorers import score_facts

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts


class Purse:
    """Facts come up in a random order, of which samples of any group are the first ones, whoever asks and how often.

    Attributes:
        score: (F,) as in `Evidence`.
        asked: (F,) whether the first scorer was asked.
        spent: whether something was left unasked for want of budget.
    """

    def __init__(self, evidence: Evidence, parts: Parts, *, seed: int) -> None:
        """`evidence` has no score yet; `seed` is of the order."""
        self._evidence, self._parts = evidence, parts
        self.facts = evidence.concepts.facts
        self.score, self.asked = np.full(len(self.facts), np.nan, np.float32), np.zeros(len(self.facts), bool)
        self._place = np.random.default_rng(seed).permutation(len(self.facts))
        self._limit = None if parts.budget == "auto" else int(parts.budget)
        self._before, self.spent = self._calls(), False

    def _calls(self) -> int:
        return sum(count.asked for (_, kind), count in self._parts.ledger.counts.items() if kind == "yes")

    def scores(self, part: str, which: NDArray[np.int64]) -> NDArray[np.float32]:
        """(len(which),) alignment by scorer `part`, NaN from where on the budget is spent.

        What is known from before costs nothing: as many are asked as there is room for, until there is none.
        """
        out, start = np.full(len(which), np.nan, np.float32), 0
        while start < len(which):
            room = len(which) if self._limit is None else self._limit - (self._calls() - self._before)
            if room <= 0:
                self.spent = True
                break
            batch = which[start : start + room]
            out[start : start + room] = score_facts(self._parts, part, self._evidence.data, self.facts, batch)
            if part == "scorer_1":
                self.asked[batch] = True
            start += len(batch)
        return out

    def ask(self, groups: Iterable[NDArray[np.int64]]) -> bool:
        """Have the first scorer look at the facts of these groups; whether it was asked about all of them."""
        wanted = np.zeros(len(self.facts), bool)
        for group in groups:
            wanted[group] = True
        which = np.flatnonzero(wanted & ~self.asked)
        which = which[np.argsort(self._place[which])]
        self.score[which] = self.scores("scorer_1", which)
        return bool(self.asked[which].all())

    def in_order(self, groups: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """The facts of each group in the random order."""
        return [group[np.argsort(self._place[group])] for group in groups]

    def sample(self, group: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of a group in that order the first ones, as far as all of them were asked about."""
        asked = self.asked[group]
        return group if asked.all() else group[: int(asked.argmin())]

    def evidence(self) -> Evidence:
        """The evidence by what was said so far."""
        assert self._evidence.rescored is not None
        return self._evidence.rescored(self.score, self.asked)
