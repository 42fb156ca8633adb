"""The verdict by as few questions as settle its first finding, or as the budget allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from symbal_hf.auditing.asked import asked_findings
from symbal_hf.auditing.association import Pair
from symbal_hf.auditing.budget.purse import Purse
from symbal_hf.auditing.budget.races import SURE, Clusters, Concepts, PairsOf, Race
from symbal_hf.auditing.evidence import Evidence, usable_scores
from symbal_hf.results.findings import AuditResult
from symbal_hf.stats.elimination import eliminate

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
        told = conclude(*race.completed(worst))
        return method == "paper" or any(f.p_value_corrected < alpha for f in (*told.findings, *told.suspected))

    how: dict[str, Any] = {"floor": race.floor, "eager": race.eager, "least": race.least}
    outcome = eliminate(race.size, race.ask, race.values, settles=settles, **how)
    usable_scores(parts, purse.score)
    known, pairs = race.completed(outcome.worst)
    result = conclude(known, pairs)
    found = bool(result.findings or result.suspected if method == "association" else outcome.worst)
    asked = int(purse.asked.sum())
    return known, replace(
        result,
        counts={**result.counts, "facts_asked": asked},
        asked=asked_findings(purse.evidence()),
        budget=f"asked about {asked:,} of {len(purse.asked):,} statements, the others are unknown; "
        + (race.open(outcome.rivals) if purse.spent else SURE if found else race.none()),
    )
