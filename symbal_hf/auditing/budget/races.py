"""The groups of statements that a method ranks, and how each is ranked by a sample of its statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from symbal_hf.auditing.association import FEWEST_MENTIONS, Pair
from symbal_hf.auditing.budget.purse import Purse
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.two_stages import MIN_FACTS, cluster_facts, two_stages
from symbal_hf.stats.elimination import ERROR, Values, Z, bounds

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts

FEATURES = 3  # candidates for v whose mentions are asked about too: which is the first depends on who shows them

PairsOf = Callable[..., list[Pair]]  # `symbal_hf.auditing.engine.association_pairs`
OPEN = "the budget was spent before the first place was sure"
SURE = f"the first place is sure at {1 - ERROR:.0%}"
MORE = 0.15  # misalignment of a cluster beyond that of all statements, below which it is told from no other
Ranked = tuple[Evidence, list[Pair]]


class Race:
    """Groups of facts, of which the worst are looked for.

    Attributes:
        size: (G,) facts of each.
        least: facts of each that are asked about before anything is said of it.
        floor: the least value of a group that could make one.
        eager: see `symbal_hf.stats.elimination.eliminate`.
    """

    least, floor, eager = 1, -np.inf, -np.inf

    def __init__(self, purse: Purse, groups: Sequence[NDArray[np.int64]]) -> None:
        self.purse, self.groups = purse, purse.in_order(groups)
        self.size = np.array([len(group) for group in groups], np.int64)

    def ask(self, count: NDArray[np.int64]) -> bool:
        """Ask about so many facts of each group; whether the budget allowed it."""
        return self.purse.ask(group[:n] for group, n in zip(self.groups, count, strict=True))

    def samples(self) -> list[NDArray[np.int64]]:
        """The facts of each group that its value is estimated by."""
        return [self.purse.sample(group) for group in self.groups]

    def values(self) -> Values:
        """See `symbal_hf.stats.elimination.eliminate`."""
        raise NotImplementedError

    def ranked(self, worst: Sequence[int]) -> Ranked:
        """Pairs by what is known, of the t that these groups stand for and of others that were asked about in full."""
        raise NotImplementedError

    def none(self) -> str:
        """What is sure where there is no first place."""
        raise NotImplementedError

    def open(self, rivals: Sequence[int]) -> str:
        """What is known where the budget was spent: these groups may still be worse."""
        raise NotImplementedError

    def completed(self, worst: Sequence[int]) -> Ranked:
        """The same, once all statements of t and of its first features were asked about."""
        evidence, pairs = self.ranked(worst)
        for _ in range(2):
            before = int(self.purse.asked.sum())
            named = [c for pair in pairs for c in (pair.error, *pair.features[:FEATURES])]
            self.purse.ask(evidence.concepts.facts_naming(c) for c in named)
            if int(self.purse.asked.sum()) == before:
                break
            evidence, pairs = self.ranked(worst)
        return evidence, pairs


class Clusters(Race):
    """Clusters of facts by their mean misalignment beyond that of all facts, as in the first stage of the paper."""

    least, floor = 8, MORE

    def __init__(self, purse: Purse, parts: Parts, *, seed: int) -> None:
        self.parts, self.seed = parts, seed
        labels = cluster_facts(purse.facts, parts, np.arange(len(purse.facts)), seed=seed)
        groups = [np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1)]
        super().__init__(purse, [group for group in groups if len(group) >= MIN_FACTS] or groups)

    def values(self) -> Values:
        """By the facts that were asked about; what was not answered counts nowhere."""
        score, samples = self.purse.score, self.samples()
        said = [1 - score[group][~np.isnan(score[group])].astype(np.float64) for group in samples]
        mean = np.array([values.mean() if len(values) else 0.0 for values in said])
        whole = np.array([len(sample) for sample in samples]) == self.size
        mean, lower, upper = bounds(mean, np.where(whole, self.size, [len(values) for values in said]), self.size)
        overall = float(mean @ self.size / self.size.sum())
        return mean - overall, lower - overall, upper - overall

    def ranked(self, worst: Sequence[int]) -> Ranked:
        """The pairs of the second stage."""
        groups = [np.sort(self.groups[group]) for group in worst]
        evidence = self.purse.evidence().usual()
        return two_stages(evidence, self.parts, seed=self.seed, worst=groups, scores=self.purse.scores)

    def none(self) -> str:
        """See `Race`."""
        return f"at {1 - ERROR:.0%} none of their clusters is worse aligned than all of them by {MORE:.0%}"

    def open(self, rivals: Sequence[int]) -> str:
        """See `Race`."""
        return OPEN + (f", {len(rivals):,} clusters of statements may be worse aligned" if rivals else "")


class Concepts(Race):
    """Concepts by how surely their false statements go with a feature, as audits by association rank them."""

    def __init__(self, purse: Purse, pairs_of: PairsOf, *, alpha: float) -> None:
        self.pairs_of, concepts = pairs_of, purse.evidence().usual().concepts
        self.names, self.t = concepts.names, np.flatnonzero(concepts.mentions().sum(0) >= FEWEST_MENTIONS)
        super().__init__(purse, [concepts.facts_naming(int(c)) for c in self.t])
        self.floor = self.eager = float(norm.isf(min(alpha / max(len(self.t) * len(self.names), 1), 0.5)))

    def values(self) -> Values:
        """Standard scores as all statements would give them: of a share f of the errors it is sqrt(f) times as large.

        What chance does to a part of them has the variance (1 - f) / f on that scale.
        """
        share = np.maximum([len(sample) / n for sample, n in zip(self.samples(), self.size, strict=True)], 1e-3)
        z, place = np.zeros(len(share)), {int(c): i for i, c in enumerate(self.t)}
        everything: dict[str, Any] = {"most_errors": len(self.names), "least_evidence": -np.inf}
        for pair in self.pairs_of(self.purse.evidence().usual(), **everything):
            z[place[pair.error]] = max(z[place[pair.error]], float(norm.isf(max(pair.p, 1e-300))))
        value, spread = z / np.sqrt(share), Z * np.sqrt((1 - share) / share)
        return value, value - spread, value + spread

    def ranked(self, worst: Sequence[int]) -> Ranked:
        """Pairs by association; a t that was not asked about in full is not known well enough to be one."""
        evidence = self.purse.evidence().usual()
        whole = {int(self.t[group]) for group in worst}
        return evidence, [pair for pair in self.pairs_of(evidence) if pair.error in whole]

    def none(self) -> str:
        """See `Race`."""
        return f"at {1 - ERROR:.0%} they make no finding"

    def open(self, rivals: Sequence[int]) -> str:
        """See `Race`."""
        names = ", ".join(repr(self.names[self.t[group]]) for group in rivals[:5]) + ", ..." * (len(rivals) > 5)
        return OPEN + (f", {len(rivals):,} names may be stated wrongly more surely ({names})" if rivals else "")
