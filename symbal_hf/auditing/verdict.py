"""The verdict: which ranked pairs pass every gate, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from symbal_hf.auditing.association import Pair
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.testimony import Testimony, testimony_of
from symbal_hf.language.concepts import same_thing
from symbal_hf.language.naming import distinct, fuller_name, other_names, plain_names
from symbal_hf.results.findings import Affected, AuditResult, Example, Finding
from symbal_hf.stats.contingency import risk_ratio, stratified_greater

# Where few rows show v, their statements alone prove little: then all statements of t count, at a surer level.
SURER, MOSTLY_FALSE = 0.02, 0.5
MORE = "more rows, or a person who looks at 20 of them, would settle it (symbal validate --human-template)"
SUSPICIOUS = 0.2  # corrected p below which a pair is suspected: what is found is asked for much more


def conclude(
    evidence: Evidence,
    pairs: Sequence[Pair],
    *,
    top_k: int = 5,
    tau: float = 0.7,
    alpha: float = 0.05,
    min_rate: float = 0.05,
) -> AuditResult:
    """The verdict over ranked pairs: those that pass every gate are findings."""
    hear = _hearing(evidence)
    judged = [(pair, _failed(evidence, pair, hear, tau=tau, alpha=alpha, min_rate=min_rate)) for pair in pairs]
    passed = sorted((p for p, failed in judged if failed is None), key=lambda p: (p.p, -p.scores[0]))
    failed = {id(pair): why for pair, why in judged if why is not None}
    missed = [pair for pair, why in judged if why is not None]
    suspicious = {id(pair): _is_suspicious(evidence, pair, alpha=alpha, min_rate=min_rate) for pair in missed}
    # What passed comes first, by the strength of the association; then what nearly does; what only looks wrong follows.
    accusations = [*passed, *(pair for pair in missed if suspicious[id(pair)])]
    # A judge that never sees t denies all of it: what it says of that comes last.
    accusations.sort(key=lambda pair: not evidence.may_see[pair.error])
    order = [*accusations, *(pair for pair in missed if not suspicious[id(pair)])]
    errors = [_own_name(evidence, pair) for pair in order]
    said = list(zip(order, errors, strict=True))[: max(20, 3 * top_k)]
    made = [finding_of(evidence, pair, [error, pair.error, *pair.also_errors, *errors[:12]]) for pair, error in said]
    accused = _different(list(zip(accusations, made, strict=False)))
    heard = [
        replace(finding, state="suspected", reason=f"{failed[id(pair)]}; {MORE}")
        if id(pair) in failed
        else _with_testimony(finding, hear(pair))
        for pair, finding in accused
        if pair is not None
    ]
    findings = [finding for finding in heard if finding.state == "found"][:top_k]
    suspected = [finding for finding in heard if finding.state == "suspected"][: 2 * top_k]
    others = [
        (None, replace(finding, state="candidate", reason=failed[id(pair)], examples=(), affected=()))
        for finding, pair in zip(made[len(accusations) :], order[len(accusations) :], strict=False)
    ]
    candidates = [finding for _, finding in _different([*accused, *others])[len(accused) :]]
    suspects = [*suspected, *candidates][:10]
    why = None
    if suspects and not findings:
        top = suspects[0]
        why = f"the strongest suspect, {top.textual_error!r} with {top.visual_feature!r}: {top.reason}"
    return AuditResult(
        verdict="systematic" if findings else "none",
        findings=tuple(findings),
        suspects=tuple(suspects),
        counts={**_counts(evidence), "pairs_ranked": len(pairs)},
        skipped=evidence.data.skipped,
        why_none=None if findings else why or "no statement in the captions looks false more often than chance allows",
    )


def _counts(evidence: Evidence) -> dict[str, int]:
    return {
        "rows": len(evidence.data),
        "rows_skipped": len(evidence.data.skipped),
        "images": evidence.units.count(len(evidence.data)),
        "facts": len(evidence.concepts.facts),
        "concepts": len(evidence.concepts.names),
        "claims": int(evidence.concepts.by_fact.nnz),
    }


def _own_name(evidence: Evidence, pair: Pair) -> int:
    """What t is called: the concept of the longest name that captions use for it where it is wrong."""
    return fuller_name(evidence.concepts, pair.error, pair.wrong.astype(np.float64))


def _hearing(evidence: Evidence) -> Callable[[Pair], Testimony]:
    """The testimony of a pair, which is heard once: a witness looks at images."""
    heard: dict[int, Testimony] = {}

    def hear(pair: Pair) -> Testimony:
        if id(pair) not in heard:
            heard[id(pair)] = testimony_of(evidence, pair, evidence.concepts.names[_own_name(evidence, pair)])
        return heard[id(pair)]

    return hear


def _with_testimony(finding: Finding, testimony: Testimony) -> Finding:
    """The finding with who confirms it, or why it is suspected only."""
    return replace(
        finding,
        state="found" if testimony.witness else "suspected",
        confirmed_by=testimony.witness,
        confirmed_rows=testimony.confirmed,
        witness_rows=testimony.rows,
        reason=testimony.reason,
    )


def _different(findings: Sequence[tuple[Pair | None, Finding]]) -> list[tuple[Pair | None, Finding]]:
    """Without those that say the error of one before in other words; further features of one error stay.

    Args:
        findings: best first, each with its pair; a candidate has none, and is no further feature.
    """
    out: list[tuple[Pair | None, Finding]] = []
    for pair, finding in findings:
        if not any(
            (same_thing(finding.textual_error, kept.textual_error) or _same_rows(finding, kept))
            and (
                pair is None
                or other is None
                or pair.error != other.error
                or same_thing(finding.visual_feature, kept.visual_feature)
            )
            for other, kept in out
        ):
            out.append((pair, finding))
    return out


def _same_rows(finding: Finding, kept: Finding) -> bool:
    return bool(finding.affected) and set(finding.affected_ids) <= set(kept.affected_ids)


def _failed(
    evidence: Evidence, pair: Pair, hear: Callable[[Pair], Testimony], *, tau: float, alpha: float, min_rate: float
) -> str | None:
    if pair.p_corrected >= alpha:
        return f"the association is not significant (corrected p = {pair.p_corrected:.2g})"
    rate = pair.table[0] / max(pair.table[1], 1)
    if rate < min_rate:
        return f"the error is rare even there ({rate:.1%} of the rows, {min_rate:.0%} are asked for)"
    everywhere = pair.p_corrected < SURER and pair.overall.low >= MOSTLY_FALSE
    if evidence.beliefs.given_truth or pair.confirmed[1] >= tau or everywhere:
        return None
    # A witness that had no part in the accusation needs no accuser who is sure of it.
    if hear(pair).witness in (None, "competence"):
        return (
            f"the error is not confirmed (only {pair.confirmed[1]:.0%} of the rejected statements are surely false, "
            f"{tau:.0%} are asked for)"
        )
    return None


def _is_suspicious(evidence: Evidence, pair: Pair, *, alpha: float, min_rate: float) -> bool:
    """What failed a gate is one judge's word all the same where most statements beside v look false, some surely so."""
    return (
        not evidence.beliefs.given_truth
        and pair.p_corrected < max(alpha, SUSPICIOUS)
        and pair.table[0] >= min_rate * pair.table[1]
        and pair.confirmed[0] >= MOSTLY_FALSE
        and pair.share.low > 0
    )


def finding_of(evidence: Evidence, pair: Pair, errors: Sequence[int], features: Sequence[int] | None = None) -> Finding:
    """What is said about `pair`; `errors` and `features` are the candidates for t and v, best first.

    Where there is no error, or no row with or without v, the risk ratio is 1 with an interval of everything.
    """
    names, data, facts = evidence.concepts.names, evidence.data, evidence.concepts.facts
    a, n1, b, n0 = pair.table
    ratio = risk_ratio(a, n1, b, n0) if a + b and n1 and n0 else (1.0, 0.0, float("inf"))
    affected = np.flatnonzero(pair.wrong)
    affected = affected[np.argsort(~pair.has_feature[affected], kind="stable")]
    stated: dict[int, list[str]] = {}
    for fact in evidence.concepts.facts_naming(pair.error):
        if pair.wrong[facts.row[fact]]:
            stated.setdefault(int(facts.row[fact]), []).append(facts.text[fact])
    log_ratio = evidence.beliefs.log_ratio[:, pair.error]
    shown = sorted(affected, key=lambda r: (not pair.has_feature[r], -log_ratio[r]))[:12]
    given = evidence.beliefs.given_truth
    alignment = [None] * len(data) if given else (1 / (1 + np.exp(log_ratio.astype(np.float64)))).tolist()
    features = plain_names(evidence.concepts, pair.features, pair.scores) if features is None else features
    judged = ~np.isnan(evidence.beliefs.presence[:, pair.error])
    stated_in = evidence.units.any(evidence.concepts.stated(pair.error) & judged)
    with_v = int((stated_in & evidence.units.any(pair.has_feature)).sum())
    missed = (None, None) if given else (a / max(with_v, 1), b / max(int(stated_in.sum()) - with_v, 1))
    return Finding(
        textual_error=names[errors[0]],
        visual_feature=names[features[0]],
        textual_error_candidates=distinct(errors, names),
        visual_feature_candidates=distinct(features, names),
        cramers_v=pair.v,
        risk_ratio=ratio[0],
        risk_ratio_low=ratio[1],
        risk_ratio_high=min(ratio[2], 1e9),
        p_value=pair.p,
        p_value_corrected=pair.p_corrected,
        errors_with_feature=a,
        rows_with_feature=n1,
        errors_without_feature=b,
        rows_without_feature=n0,
        confirmed_share=None if given or not a else pair.confirmed[0],
        confirmed_share_low=None if given or not a else pair.confirmed[1],
        examples=tuple(Example(data.ids[r], data.captions[r], stated[int(r)][0], alignment[r]) for r in shown),
        affected=tuple(
            Affected(data.ids[r], tuple(stated[int(r)]), bool(pair.has_feature[r]), alignment[r]) for r in affected
        ),
        state="asked",
        missed_with=missed[0],
        missed_without=missed[1],
        **_beside_other(evidence, pair),
    )


def _beside_other(evidence: Evidence, pair: Pair) -> dict[str, Any]:
    """Whether v matters among images that are alike in the strongest feature beside it."""
    same = other_names(evidence.concepts, pair.feature, similar=evidence.similar)
    other = next((feature for feature in pair.features[1:] if not same[feature]), None)
    if other is None:
        return {}
    units, shown = evidence.units, evidence.shows[:, other] | evidence.concepts.stated(other)
    wrong, has = units.any(pair.wrong), units.any(pair.has_feature)
    lacking = wrong | (units.largest(evidence.beliefs.known[:, pair.error]) < MOSTLY_FALSE)
    strata = [lacking & units.any(shown), lacking & ~units.any(shown)]
    counts = [np.array([int((rows & what).sum()) for rows in strata]) for what in (has, wrong, lacking)]
    p = stratified_greater(int((lacking & wrong & has).sum()), *counts)
    return {"other_feature": evidence.concepts.names[other], "p_beside_other": p}
