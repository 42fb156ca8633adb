"""The audit: from a source to a verdict with findings, one stage after the other."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from symbal_hf.align import Beliefs, Columns, EmbeddingJudge, Judge, ObjectJudge, beliefs
from symbal_hf.associate import risk_ratio
from symbal_hf.concepts import Concepts, find_concepts, same_thing
from symbal_hf.data import AuditData, BadData, OnBadRow, load_data, load_vocabulary
from symbal_hf.detect import ErrorShare, Pair, associate, distinct, fuller_name, rank_errors
from symbal_hf.embed import Progress, embed_images, embed_texts, quiet
from symbal_hf.facts import split_facts
from symbal_hf.findings import AuditResult, Example, Finding
from symbal_hf.phrases import Vocabulary, compounds_of_parts
from symbal_hf.references import ReferenceJudge
from symbal_hf.store import Store

if TYPE_CHECKING:
    from datasets import Dataset

Method = Literal["association", "paper"]
Scorer = Literal["auto", "embedding", "reference", "objects"]


@dataclass(frozen=True)
class Evidence:
    """Everything that a detection method works on.

    Attributes:
        data: the rows.
        concepts: what captions speak of.
        beliefs: what each image shows.
        vectors: (P, 384) unit vectors of the concept names; None with the objects scorer.
        regions: (N, 65, 384) image embeddings; None without the embedding scorer.
        wholes: concepts by a concept that may be part of them, as a bowl of a toilet.
    """

    data: AuditData
    concepts: Concepts
    beliefs: Beliefs
    vectors: NDArray[np.float32] | None
    regions: NDArray[np.float16] | None
    wholes: Mapping[int, Set[int]] = field(default_factory=dict)


def gather(
    data: AuditData,
    *,
    scorer: Scorer = "auto",
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress = quiet,
    on_bad_row: OnBadRow = "warn",
) -> Evidence:
    """Embed what needs embedding and judge every concept of the captions on every image."""
    from symbal_hf.encode import LiteVision

    scorer = _choose(scorer, data)
    store = store or Store()
    regions = None
    if scorer == "embedding":
        assert data.images is not None
        regions, bad = embed_images(data.images, LiteVision(), store=store, progress=progress)
        if bad and on_bad_row == "error":
            row = min(bad)
            raise BadData(f"row {data.ids[row]}: {bad[row]}; mend it or pass on_bad_row='warn'.")
        if len(bad) == len(data):
            raise BadData(f"none of the {len(data)} images can be read; the first: {bad[0]}.")
        regions = np.delete(regions, sorted(bad), axis=0)
        data = data.without(bad)
    return weigh(data, regions, scorer=scorer, vocabulary=vocabulary, seed=seed, store=store, progress=progress)


def weigh(
    data: AuditData,
    regions: NDArray[np.float16] | None,
    *,
    scorer: Scorer,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    store: Store,
    progress: Progress = quiet,
    columns: Columns | None = None,
    reference_judge: ReferenceJudge | None = None,
) -> Evidence:
    """Judge every concept of the captions on every image whose `regions` (N, 65, 384) are known.

    `columns` holds what was judged before about the same rows, and `reference_judge` their references made ready, so
    that many captionings of the same images share the work.
    """
    from symbal_hf.encode import LiteVision, MiniLM

    text = MiniLM()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        return embed_texts(texts, text, store=store, progress=progress)

    facts, wholes = split_facts(data.captions), dict[int, set[int]]()
    known = _vocabulary(data, vocabulary)
    if scorer == "objects":
        assert known is not None and data.objects is not None
        parts = compounds_of_parts(facts.text, known, embed)
        known = known.with_synonyms({words: whole for words, (whole, _) in parts.items()})
        judge: Judge = ObjectJudge(data.objects, known)
        concepts = find_concepts(facts, vocabulary=known)
        place = {name: i for i, name in enumerate(concepts.names)}
        for whole, part in parts.values():
            wholes.setdefault(place[part], set()).add(place[whole])
    else:
        references = [t for row in data.references or () for t in row] if scorer == "reference" else []
        rows = max(5, len(data) // 500)
        concepts = find_concepts(facts, vocabulary=known if vocabulary else None, also=references, min_rows=rows)
        if scorer == "reference":
            assert data.references is not None
            judge = reference_judge or ReferenceJudge(data.references, embed)
        else:
            assert regions is not None
            judge = EmbeddingJudge(regions, LiteVision(), embed)
    if not concepts.names:
        nothing = np.zeros((len(data), 0), np.float32)
        return Evidence(data, concepts, Beliefs(nothing, nothing, judge.scorer, judge.given_truth), None, regions)
    vectors = None if scorer == "objects" else embed(concepts.names)
    return Evidence(data, concepts, beliefs(judge, concepts.names, columns=columns), vectors, regions, wholes)


def _choose(scorer: Scorer, data: AuditData) -> Scorer:
    if scorer == "auto":
        if data.objects is not None:
            return "objects"
        if data.references is not None:
            return "reference"
        if data.images is not None:
            return "embedding"
        raise BadData(
            "nothing to check the captions against: the source has no images, references or objects; name their "
            "column with --image-column, --reference-column or --objects-column, or add a file with --join."
        )
    have = {"embedding": data.images, "reference": data.references, "objects": data.objects}
    if have[scorer] is None:
        given = ", ".join(k for k, v in have.items() if v is not None) or "none"
        raise BadData(f"scorer {scorer!r} needs a column that the source lacks; usable here: {given}.")
    return scorer


def _vocabulary(data: AuditData, given: Mapping[str, Sequence[str]] | None) -> Vocabulary | None:
    if given is not None:
        return Vocabulary(given)
    if data.objects is None:
        return None
    return Vocabulary({name: () for name in sorted({o for row in data.objects for o in row or ()})})


def audit(
    source: Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    preset: str = "lite",
    method: Method = "association",
    scorer: Scorer = "auto",
    image_column: str | None = None,
    caption_column: str | None = None,
    reference_column: str | None = None,
    objects_column: str | None = None,
    join: str | Path | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    limit: int | None = None,
    top_k: int = 5,
    tau: float = 0.7,
    alpha: float = 0.05,
    seed: int = 0,
    on_bad_row: OnBadRow = "warn",
    store: Store | None = None,
    progress: Progress = quiet,
) -> AuditResult:
    """Find the systematic misalignments of a captioned dataset, or say that there are none.

    Args:
        source: what `symbal_hf.data.load_data` reads: a dataset, rows, a file, a folder or a Hub id.
        preset: a named composition of models; "lite" runs on a CPU without a network.
        method: "association" (over all images) or "paper" (the two stages of the paper, section 4).
        scorer: what captions are checked against; "auto" takes objects, else references, else the images.
        image_column: and the other columns: found by their usual names when not given.
        join: a second table whose columns are added by id.
        vocabulary: classes with synonyms, as a mapping or a file; limits the audit to these concepts.
        limit: audit at most this many rows.
        top_k: at most this many findings.
        tau: a finding needs the lower bound of its confirmed share above this, in [0, 1].
        alpha: a finding needs a corrected p-value below this, in (0, 1).
        seed: of every random choice.
        on_bad_row: "error" stops at a bad row, "warn" and "skip" leave it out and count it.
        store: where embeddings are kept; by default one file under the user's cache folder.
        progress: wraps long loops.

    Raises:
        BadData: nothing to audit, or (policy "error") a bad row.
    """
    if preset != "lite":
        raise ValueError(f"no preset {preset!r}; available: 'lite'.")
    if method not in ("association", "paper"):
        raise ValueError(f"no method {method!r}; available: 'association', 'paper'.")
    if top_k < 1 or not 0 <= tau <= 1 or not 0 < alpha < 1:
        raise ValueError(f"top_k={top_k}, tau={tau}, alpha={alpha}: top_k must be >= 1, tau in [0, 1], alpha in (0, 1).")
    data = load_data(
        source, image_column=image_column, caption_column=caption_column, reference_column=reference_column,
        objects_column=objects_column, join=join, limit=limit, on_bad_row=on_bad_row,
    )  # fmt: skip
    words = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    evidence = gather(
        data, scorer=scorer, vocabulary=words, seed=seed, store=store, progress=progress, on_bad_row=on_bad_row
    )
    pairs = association_pairs(evidence) if method == "association" else two_stage_pairs(evidence, store=store, seed=seed)
    result = conclude(evidence, pairs, top_k=top_k, tau=tau, alpha=alpha)
    return replace(
        result,
        provenance={
            "symbal_hf": version("symbal-hf"), "python": platform.python_version(), "preset": preset, "method": method,
            "scorer": evidence.beliefs.scorer, "source": data.source, "seed": seed, "top_k": top_k, "tau": tau,
            "alpha": alpha, "limit": limit, "on_bad_row": on_bad_row,
        },
    )  # fmt: skip


def association_pairs(evidence: Evidence, *, most_errors: int = 30) -> list[Pair]:
    """Candidate pairs by association over all images, best first (design section 4)."""
    concepts = evidence.concepts
    if not concepts.names:
        return []
    errors = rank_errors(concepts, evidence.beliefs.log_ratio)
    tried = max(len(errors), 1)
    similar = None if evidence.vectors is None else evidence.vectors @ evidence.vectors.T
    if not evidence.beliefs.given_truth:
        errors = errors[:most_errors]
    pairs = associate(
        concepts, evidence.beliefs, errors=errors, tried_errors=tried, similar=similar, wholes=evidence.wholes
    )
    return sorted(pairs, key=lambda pair: -strength(pair))


def two_stage_pairs(
    evidence: Evidence, *, store: Store | None = None, seed: int = 0, progress: Progress = quiet
) -> list[Pair]:
    """Candidate pairs by the paper's method; references or object names stand for images where there are none."""
    from symbal_hf.encode import MiniLM
    from symbal_hf.paper import paper_pairs

    text, store, data = MiniLM(), store or Store(), evidence.data
    facts = embed_texts(evidence.concepts.facts.text, text, store=store, progress=progress)
    if evidence.regions is not None:
        images = evidence.regions[:, 0].astype(np.float32)
    else:
        told = data.references or [sorted(o or ()) for o in data.objects or [()] * len(data)]
        images = embed_texts([". ".join(t) or "nothing known" for t in told], text, store=store, progress=progress)
    return paper_pairs(evidence, facts, images, seed=seed)


def strength(pair: Pair) -> float:
    """Evidence in nats that t is false and that it goes with v, together; larger is stronger."""
    return pair.evidence - float(np.log(max(pair.p, 1e-300)))


def conclude(
    evidence: Evidence, pairs: Sequence[Pair], *, top_k: int = 5, tau: float = 0.7, alpha: float = 0.05
) -> AuditResult:
    """The verdict over ranked pairs: those that pass every gate are findings."""
    failed = {id(pair): _failed(evidence, pair, tau=tau, alpha=alpha) for pair in pairs}
    passed = sorted((p for p in pairs if failed[id(p)] is None), key=lambda p: (p.p, -p.z))
    # What passed comes first, by the strength of the association; what only looks wrong follows.
    order = [*passed, *(p for p in pairs if failed[id(p)] is not None)]
    findings = _different([_finding(evidence, pair, order) for pair in passed[: 3 * top_k]])[:top_k]
    suspects = _different([_finding(evidence, pair, order) for pair in order[:20]])[:10]
    why = None
    if order and not findings:
        top = suspects[0]
        why = f"the strongest suspect, {top.textual_error!r} with {top.visual_feature!r}: {failed[id(order[0])]}"
    facts = evidence.concepts.facts
    return AuditResult(
        verdict="systematic" if findings else "none",
        findings=tuple(findings),
        suspects=tuple(suspects),
        counts={
            "rows": len(evidence.data), "rows_skipped": len(evidence.data.skipped), "facts": len(facts),
            "concepts": len(evidence.concepts.names), "claims": int(evidence.concepts.by_fact.nnz), "pairs_ranked": len(pairs),
        },
        skipped=evidence.data.skipped,
        why_none=None if findings else why or "no statement in the captions looks false more often than chance allows",
    )  # fmt: skip


def _different(findings: Sequence[Finding]) -> list[Finding]:
    """Without those whose error is another way of saying the error of one before, with the same feature."""
    out: list[Finding] = []
    for finding in findings:
        if not any(
            same_thing(finding.textual_error, kept.textual_error)
            or (set(finding.affected) and set(finding.affected) <= set(kept.affected))
            for kept in out
        ):
            out.append(finding)
    return out


def _failed(evidence: Evidence, pair: Pair, *, tau: float, alpha: float) -> str | None:
    if pair.p_corrected >= alpha:
        return f"the association is not significant (corrected p = {pair.p_corrected:.2g})"
    if not evidence.beliefs.given_truth and pair.share.low < tau:
        return (
            f"the error is not confirmed (only {pair.share.low:.0%} of the statements are surely false, "
            f"{tau:.0%} are asked for)"
        )
    return None


def _finding(evidence: Evidence, pair: Pair, pairs: Sequence[Pair]) -> Finding:
    names, data, facts = evidence.concepts.names, evidence.data, evidence.concepts.facts
    a, n1, b, n0 = pair.table
    ratio = risk_ratio(a, n1, b, n0)
    affected = np.flatnonzero(pair.wrong)
    affected = affected[np.argsort(~pair.has_feature[affected], kind="stable")]
    naming = set(evidence.concepts.by_fact[:, pair.error].nonzero()[0].tolist())
    stated = {}
    for f in sorted(naming, reverse=True):
        stated[int(facts.row[f])] = facts.text[f]
    log_ratio = evidence.beliefs.log_ratio[:, pair.error]
    shown = sorted(affected, key=lambda r: (not pair.has_feature[r], -log_ratio[r]))[:12]
    given = evidence.beliefs.given_truth
    weight = pair.wrong.astype(np.float64)
    error = fuller_name(evidence.concepts, pair.error, weight)
    everyone = np.ones(len(data))
    features = [fuller_name(evidence.concepts, f, everyone) for f in pair.features]
    errors = [error, pair.error, *(fuller_name(evidence.concepts, p.error, p.wrong * 1.0) for p in pairs[:12])]
    return Finding(
        textual_error=names[error],
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
        confirmed_share=None if given else pair.share.share,
        confirmed_share_low=None if given else pair.share.low,
        examples=tuple(
            Example(data.ids[r], data.captions[r], stated[int(r)], float(1 / (1 + np.exp(log_ratio[r])))) for r in shown
        ),
        affected=tuple(data.ids[r] for r in affected),
    )


__all__ = ["ErrorShare", "Evidence", "audit", "association_pairs", "conclude", "gather"]
