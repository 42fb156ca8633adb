"""The audit: from a source to a verdict with findings, one stage after the other, whatever the composition."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.auditing.asked import asked_findings, check_pairs
from symbal_hf.auditing.association import HALF_CHI2, Pair, associate, rank_errors, strength
from symbal_hf.auditing.budget.spend import within_budget
from symbal_hf.auditing.effect import check_effect
from symbal_hf.auditing.evidence import Evidence, gather
from symbal_hf.auditing.given_truth import counted_pairs
from symbal_hf.auditing.judged import judged_pairs
from symbal_hf.auditing.two_stages import two_stages
from symbal_hf.auditing.verdict import conclude
from symbal_hf.core.options import AUDIT, Gates, Method, names_of, take, values_of
from symbal_hf.core.store import Store
from symbal_hf.data.again import fingerprint
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.models.composition import Preset, both_stages, choose_composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, named, parts_with
from symbal_hf.results.findings import AuditResult

if TYPE_CHECKING:
    from datasets import Dataset

MOST_ERRORS = 30  # candidates for t that a judge's opinion is followed up for


def audit(
    source: AuditData | Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    preset: str | Path | Preset = "lite",
    method: Method = "association",
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> AuditResult:
    """Find the systematic misalignments of a captioned dataset, or say that there are none.

    Args:
        source: what `symbal_hf.data.table.load_data` reads: a dataset, rows, a file, a folder or a Hub id; or what it
            returned, to which the options of reading no longer apply.
        preset: a named composition of models, or a YAML file; "lite" runs on a CPU without a network.
        method: "association" (over all images) or "paper" (the two stages of the paper, section 4).
        vocabulary: classes with synonyms, as a mapping or a file; limits the audit to these concepts.
        pairs: (t, v) that are measured over all rows whether or not they are found, as `AuditResult.asked`; with a
            vocabulary, or with objects, each name is a class or a synonym of one. They change nothing that is found.
        store: where embeddings and answers are kept; by default one file under the user's cache folder.
        progress: wraps long loops.
        options: flat keywords of the groups `symbal_hf.core.options.AUDIT`, each with its default and range there:
            `Reading` (columns, image_root, join, limit, sample, on_bad_row ...), `Parts` (scorer, chat, text_encoder
            ..., by name or as objects, see `symbal_hf.models.parts.named`), `Gates` (top_k, tau, alpha, min_rate),
            and members, prompts, concurrency, budget, device, dtype, device_map, devices, num_nodes, seed.

    Returns:
        The verdict with its findings; `AuditResult.write` puts them on disk.

    Raises:
        BadData: nothing to audit, a bad row (policy "error"), a name in `pairs` that the vocabulary lacks, or an option
            that could have no effect.
        TypeError: an option that is not there.
        ValueError: a value outside its range.

    >>> scene = {"caption": "A dog on a sofa.", "objects": ["dog", "sofa"]}
    >>> audit([{**scene, "id": number} for number in range(8)]).verdict
    'none'
    """
    groups = take(options, *AUDIT)
    reading, part_options, gates, summing, asking, spending, placing, processes, chance = groups
    if method not in ("association", "paper"):
        raise ValueError(f"no method {method!r}; available: 'association', 'paper'.")
    specs, objects = named(both_stages(part_options.scorer, part_options.summarizer, values_of(part_options)))
    composition = choose_composition(preset, **specs)
    asked = check_pairs(pairs)
    always = [name for pair in asked for name in pair]
    data = source if isinstance(source, AuditData) else load_data(source, seed=chance.seed, **values_of(reading))
    words = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    fields = {"store": store or Store(), "objects": objects, "strategy": "auto", "progress": progress}
    parts = parts_with(composition, summing, asking, spending, placing, processes, **fields)
    parts.settle(data)
    check_effect(parts.composition, data, method, groups)
    evidence = gather(data, parts, vocabulary=words, always=always, on_bad_row=reading.on_bad_row)

    def verdict(evidence: Evidence, pairs: Sequence[Pair]) -> AuditResult:
        return conclude(evidence, pairs, **values_of(gates))

    if parts.budget is not None:
        told: dict[str, Any] = {"alpha": gates.alpha, "seed": chance.seed}
        evidence, result = within_budget(evidence, parts, method, pairs_of=association_pairs, conclude=verdict, **told)
    else:
        measured, evidence = asked_findings(evidence), evidence.usual()
        if method == "association":
            ranked = association_pairs(evidence)
        else:
            evidence, ranked = two_stages(evidence, parts, seed=chance.seed)
        result = replace(verdict(evidence, ranked), asked=measured)
    settings = {
        "preset": preset,
        "method": method,
        "vocabulary": vocabulary,
        "classes": None if words is None else len(words),
    }
    provenance = _provenance(data, parts, evidence, {**settings, "pairs": asked}, reading, gates, spending, chance)
    return replace(result, provenance=provenance)


def _provenance(
    data: AuditData, parts: Parts, evidence: Evidence, settings: Mapping[str, Any], *groups: Any
) -> dict[str, Any]:
    """What an audit was made with, so that it can be made again."""
    preset, vocabulary, options = settings["preset"], settings["vocabulary"], values_of(*groups)
    named = ("seed", *names_of(Gates), "budget", "limit", "sample", "on_bad_row")
    return {
        "symbal_hf": version("symbal-hf"),
        "python": platform.python_version(),
        "preset": preset.name if isinstance(preset, Preset) else str(preset),
        "method": settings["method"],
        "scorer": evidence.beliefs.scorer,
        "source": data.source,
        **{name: options[name] for name in named},
        "models": parts.provenance(),
        "read": data.read,
        "rows_sha256": fingerprint(data),
        "vocabulary": str(Path(vocabulary).absolute()) if isinstance(vocabulary, (str, Path)) else None,
        "classes": settings["classes"],
        "pairs": [list(pair) for pair in settings["pairs"]],
    }


def association_pairs(
    evidence: Evidence, *, most_errors: int = MOST_ERRORS, least_evidence: float = HALF_CHI2
) -> list[Pair]:
    """Candidate pairs by association over all images, best first.

    Args:
        evidence: what is known.
        most_errors: candidates for t that a judge's opinion is followed up for.
        least_evidence: that such a candidate is stated falsely at all, in nats.
    """
    concepts = evidence.concepts
    if not concepts.names:
        return []
    if evidence.beliefs.given_truth:
        return counted_pairs(evidence)
    if evidence.beliefs.scorer == "embedding":
        return judged_pairs(evidence)
    errors = rank_errors(
        concepts, evidence.beliefs.log_ratio, has=evidence.shows, units=evidence.units, least=least_evidence
    )
    pairs = associate(
        concepts,
        evidence.beliefs,
        errors=errors[:most_errors],
        visible=evidence.may_see,
        tried_errors=evidence.tried_errors,
        similar=evidence.similar,
        wholes=evidence.wholes,
        units=evidence.units,
    )
    return sorted(pairs, key=lambda pair: -strength(pair))
