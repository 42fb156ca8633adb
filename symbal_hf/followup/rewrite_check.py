"""Whether the new sentences of rewritten captions hold, judged as the audit judged the old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.evidence import gather
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.language.facts import split_facts
from symbal_hf.models.composition import FACT_SCORERS, audited_composition, split_part
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts
from symbal_hf.models.scorers import score_facts

if TYPE_CHECKING:
    from symbal_hf.models.chat.prompting import Prompts
    from symbal_hf.results.findings import AuditResult

Sentences = tuple[tuple[str, ...], tuple[str, ...]]  # new ones, and those that are gone
WORSE = 1e-4  # a difference of alignment below this is none
UNKNOWN = "its new sentences could not be scored"


def check_rewrites(
    asked: Mapping[int, Sentences],
    result: AuditResult,
    data: AuditData,
    *,
    vocabulary: Mapping[str, Sequence[str]] | None,
    store: Store,
    prompts: Prompts,
    progress: Progress = quiet,
    **place: Any,
) -> dict[int, str | bool]:
    """For each row True where its new sentences hold, a reason where they do not, False where nobody can tell.

    With objects a new sentence may name nothing that is absent; with any other scorer it may fit its image no worse
    than the worst of the sentences that are gone. A caption without new sentences holds.

    Args:
        asked: number of a row -> its new and its lost sentences.
        result: of the audit.
        data: its rows.
        vocabulary: its classes with synonyms, if it had any.
        store: of embeddings and answers.
        prompts: what chat models are asked.
        progress: wraps long loops.
        place: how models are loaded, as for `symbal_hf.models.parts.Parts`.
    """
    out: dict[int, str | bool] = {number: True for number, (new, _) in asked.items() if not new}
    assert data.numbers is not None
    rows = {number: row for row, number in enumerate(data.numbers) if number in asked and number not in out}
    if not rows:
        return out
    captions = list(data.captions)
    for number, row in rows.items():
        captions[row] = "\n".join(sentence for part in asked[number] for sentence in part)
    changed = replace(data, captions=tuple(captions))
    composition = audited_composition(result.provenance)
    if any(isinstance(spec, str) and spec.split(":")[-2:-1] == ["object"] for spec in asdict(composition).values()):
        return out | dict.fromkeys(rows, False)  # its models were the caller's own
    parts = Parts(composition, store, prompts=prompts, progress=progress, **place)
    kind, _ = split_part(composition.scorer_1)
    if kind not in FACT_SCORERS or composition.calibrated:
        evidence = gather(changed, parts, vocabulary=vocabulary)
        if evidence.beliefs.given_truth:
            return out | _named(evidence, asked, rows)
        compared = _compared(evidence.data, evidence.concepts.facts, evidence.alignment, asked, silent=True)
        return dict.fromkeys(rows, False) | out | compared
    keep = set(rows.values())
    few = changed.without({row: "" for row in range(len(data)) if row not in keep})
    facts = split_facts(few.captions)
    score = score_facts(parts, "scorer_1", few, facts, np.arange(len(facts)))
    return out | _compared(few, facts, score, asked, silent=UNKNOWN)


def _of_rows(data: AuditData, facts: Any, asked: Mapping[int, Sentences]) -> dict[int, tuple[list[int], list[int]]]:
    """By number of a row the facts that are new and those that are gone."""
    assert data.numbers is not None
    out: dict[int, tuple[list[int], list[int]]] = {}
    for f, row in enumerate(facts.row):
        number = data.numbers[int(row)]
        if number in asked:
            new = facts.text[f] in asked[number][0]
            out.setdefault(number, ([], []))[0 if new else 1].append(f)
    return out


def _compared(
    data: AuditData, facts: Any, score: NDArray[np.float32], asked: Mapping[int, Sentences], *, silent: str | bool
) -> dict[int, str | bool]:
    """`silent` is what is said of new sentences that have no score."""
    out: dict[int, str | bool] = {}
    for number, (new, gone) in _of_rows(data, facts, asked).items():
        if not asked[number][0]:
            continue
        scored, before = score[new], score[gone]
        if not len(scored) or (np.isnan(scored).any() and silent is not True):
            out[number] = silent
        elif np.isnan(scored).all():
            out[number] = True  # they name nothing that could be wrong
        elif not len(before) or np.isnan(before).all():
            out[number] = False
        elif np.nanmin(scored) < np.nanmin(before) - WORSE:
            out[number] = "its new sentences fit the image worse than those that they replace"
        else:
            out[number] = True
    return out


def _named(evidence: Any, asked: Mapping[int, Sentences], rows: Mapping[int, int]) -> dict[int, str | bool]:
    concepts, presence = evidence.concepts, evidence.beliefs.presence
    out: dict[int, str | bool] = {}
    for number, (new, _) in _of_rows(evidence.data, concepts.facts, asked).items():
        named = sorted(set(concepts.by_fact[new].nonzero()[1].tolist())) if new else []
        shown = presence[rows[number], named]
        absent = [concepts.names[c] for c, p in zip(named, shown, strict=True) if p < 0.5]
        if absent:
            out[number] = f"a new sentence names {absent[0]!r}, which is not there"
        else:
            out[number] = not np.isnan(shown).any()
    return out
