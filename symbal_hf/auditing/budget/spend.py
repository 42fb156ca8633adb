"""The verdict by as few questions as settle its first finding, or as the budget allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from symbal_hf.auditing.asked import asked_findings
from symbal_hf.auditing.association import Pair
from symbal_hf.auditing.budget.purse import Purse
from symbal_hf.auditing.budget.races import Clusters, Concepts, PairsOf, Race
from symbal_hf.auditing.evidence import Evidence, usable_scores
from symbal_hf.results.findings import AuditResult
from symbal_hf.stats.elimination import Outcome, eliminate

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts


def within_budget(
    evidence: Evidence,
    parts: Parts,
    method: str,
    *,
    pairs_of: PairsOf,
    conclude: Callable[[Evidence, list[Pair]], AuditResult],
    alpha: float,
    seed: int,
) -> tuple[Evidence, AuditResult]:
    """The evidence with the scores that were asked for, and the verdict on them.

    Args:
        evidence: of which no fact was scored yet.
        parts: the models, with the budget.
        method: "association" or "paper".
        pairs_of: candidate pairs by association over all images.
        conclude: the verdict over ranked pairs.
        alpha: largest corrected p-value of a finding.
        seed: of clusters and samples.

    Raises:
        BadData: the model gave no usable answer.
    """
    purse = Purse(evidence, parts, seed=seed)
    purse.ask(evidence.concepts.facts_naming(c) for c in evidence.concepts.asked)
    race: Race = Clusters(purse, parts, seed=seed) if method == "paper" else Concepts(purse, pairs_of, alpha=alpha)
    worst: list[int] = []

    def settles(group: int) -> bool:
        worst.append(group)
        return method == "paper" or bool(conclude(*race.completed(worst)).findings)

    outcome = eliminate(race.size, race.ask, race.values, settles=settles, floor=race.floor, least=race.least)
    usable_scores(parts, purse.score)
    found, pairs = race.completed(outcome.worst)
    result = conclude(found, pairs)
    counts = {**result.counts, "facts_asked": int(purse.asked.sum())}
    return found, replace(
        result, counts=counts, asked=asked_findings(purse.evidence()), budget=_told(purse, race, outcome, result)
    )


def _told(purse: Purse, race: Race, outcome: Outcome, result: AuditResult) -> str:
    """How many statements were asked about, and how sure the first place is."""
    asked = f"asked about {int(purse.asked.sum()):,} of {len(purse.asked):,} statements, the others are unknown"
    found = bool(result.findings) if method == "association" else bool(outcome.worst)
    return f"{asked}; {race.told(outcome.rivals, found=found)}"
