"""The rows of an audit looked at once more: whose caption refers to t, and which of these references are erroneous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.evidence import concepts_of
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Asking, Placing
from symbal_hf.core.store import Store
from symbal_hf.data.again import audited_vocabulary, check_same_rows, reread
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.followup.detectors import ObjectsDetector
from symbal_hf.followup.options import Looking
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.denials import asserted
from symbal_hf.language.facts import Facts, split_facts
from symbal_hf.language.phrases import Vocabulary, noun_phrases
from symbal_hf.models.composition import CHATS, Composition
from symbal_hf.models.encoders.embedding import Progress, embed_texts, quiet
from symbal_hf.models.encoders.lite import MiniLM
from symbal_hf.models.parts import Parts, named, parts_with
from symbal_hf.models.scorers import score_facts
from symbal_hf.results.findings import AuditResult, Finding

SCORERS = ("auto", "objects", "detector", "audit")  # besides chat models and functions
TRUE = 0.5  # a sentence that a scorer gives less is false


@dataclass(frozen=True)
class Look:
    """N rows, their F facts, and K findings, of each the facts that name its t."""

    findings: tuple[Finding, ...]  # found, suspected, and those that were asked for and are neither
    data: AuditData  # the rows
    facts: Facts  # of their captions
    naming: tuple[NDArray[np.bool_], ...]  # for each finding (F,), the fact names t
    vocabulary: Vocabulary  # of the classes that objects are listed by

    @property
    def errors(self) -> tuple[str, ...]:
        """The t of each finding."""
        return tuple(finding.textual_error for finding in self.findings)

    @property
    def features(self) -> tuple[str, ...]:
        """The v of each finding."""
        return tuple(finding.visual_feature for finding in self.findings)

    @property
    def named(self) -> NDArray[np.bool_]:
        """(N, K) The caption names t."""
        out = np.zeros((len(self.data), len(self.findings)), bool)
        for i, facts in enumerate(self.naming):
            out[self.facts.row[facts], i] = True
        return out

    def sentences(self, finding: int) -> dict[int, list[str]]:
        """By row the sentences that name t of this finding."""
        out: dict[int, list[str]] = {}
        for fact in np.flatnonzero(self.naming[finding]).tolist():
            out.setdefault(int(self.facts.row[fact]), []).append(self.facts.text[fact])
        return out

    def of_examples(self) -> dict[str, int]:
        """The rows of the findings' examples, by their ids."""
        shown = {example.row_id for finding in self.findings for example in finding.examples}
        return {row_id: row for row, row_id in enumerate(self.data.ids) if row_id in shown}

    def known_to_objects(self, names: Sequence[str]) -> bool:
        """Whether the rows have objects, and these a word for one of `names`."""
        objects = ObjectsDetector(self.vocabulary)
        return self.data.objects is not None and any(map(objects.knows, names))


def look_again(
    result: AuditResult,
    *,
    data: Any = None,
    source: str | Path | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    **changed: Any,
) -> Look:
    """The rows of `result`, without those that it left out, and where their captions name the t of its findings.

    Args:
        result: with findings, or pairs that it was asked for.
        data: the rows, as `symbal_hf.load_data` takes or gives them; by default they are read again.
        source: where they lie now.
        vocabulary: classes with synonyms; by default the audit's.
        changed: options of `symbal_hf.load_data` in the place of the audit's.

    Raises:
        BadData: other rows than were audited, or rows in memory that are not given.
        FileNotFoundError: the source is gone.
    """
    if data is None:
        rows = reread(result, source=source, **changed)
    else:
        rows = data if isinstance(data, AuditData) else load_data(data, **changed)
        check_same_rows(result, rows)
    left_out = {row.row_id: row.reason for row in result.skipped}
    rows = rows.without({i: left_out[row_id] for i, row_id in enumerate(rows.ids) if row_id in left_out})
    words = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    audited = words is None
    words = audited_vocabulary(result) if words is None else words
    embed = partial(embed_texts, encoder=MiniLM(), store=store or Store(), progress=progress)
    found = {(f.textual_error, f.visual_feature) for f in result.findings}
    asked = tuple(f for f in result.asked if (f.textual_error, f.visual_feature) not in found)
    suspected = {(f.textual_error, f.visual_feature) for f in result.suspected}
    always = [name for f in result.asked for name in (f.textual_error, f.visual_feature)] if audited else []
    facts = split_facts(rows.captions)
    concepts, known, _ = concepts_of(
        rows, facts, embed, scorer=str(result.provenance.get("scorer")), vocabulary=words, always=always
    )
    asked = tuple(f for f in asked if (f.textual_error, f.visual_feature) not in suspected)
    findings = (*result.findings, *result.suspected, *asked)
    naming = tuple(facts_naming(finding, concepts) for finding in findings)
    return Look(findings, rows, facts, naming, known or Vocabulary({}))


@dataclass(frozen=True)
class References:
    """What is said of the references to K textual errors in N rows."""

    scorer: str  # who says it
    # (N, K) 1 where the caption refers to t erroneously, 0 where not, NaN where that is not known. A caption that does
    # not name t refers to it in no way, whatever else is not known of the row.
    erroneous: NDArray[np.float64]
    provenance: Mapping[str, Any]  # what else to say of how it was made


def judge_references(
    look: Look,
    looking: Looking,
    asking: Asking,
    placing: Placing,
    *,
    seen: NDArray[np.floating] | None = None,
    store: Store,
    progress: Progress = quiet,
) -> References:
    """Which references to t are erroneous, by the scorer of `looking`, which is settled.

    For the scorer "detector" `seen` (N, K) is 1 where t is seen, 0 where not, NaN where that is not known.

    Raises:
        BadData: no such scorer, or one that needs what the rows do not have.
        ChatFailed: a chat model answers nothing.
    """
    scorer = looking.scorer
    if scorer == "audit":
        audited = [np.isin(look.data.ids, finding.affected_ids) for finding in look.findings]
        return References("audit", np.stack(audited, 1).astype(np.float64), {})
    if scorer == "objects":
        seen = ObjectsDetector(look.vocabulary).detect(look.data, look.errors).scores
    if scorer in ("objects", "detector"):
        assert seen is not None
        return References(scorer, np.where(look.named, 1 - seen.astype(np.float64), 0.0), {})

    if isinstance(scorer, str):
        kind = scorer.partition(":")[0]
        if kind not in ("vision-language", "text-only", *CHATS[:2]):
            known = ", ".join(SCORERS)
            raise BadData(f"no scorer {scorer!r}; available: {known}, hf:MODEL[@revision], openai:URL#MODEL.")
        scorer = f"vision-language:{scorer}" if kind in CHATS else scorer  # a chat model is asked of what it sees
    specs, objects = named({"scorer_1": scorer, "chat": looking.chat})
    spec = str(specs["scorer_1"])
    composition = Composition(scorer_1=spec, scorer_2=spec, chat=specs["chat"])
    return _scored(look, parts_with(composition, asking, placing, store=store, objects=objects, progress=progress))


def _scored(look: Look, parts: Parts) -> References:
    """What the first scorer of `parts` says of each sentence that names some t."""
    asked = np.flatnonzero(np.any(look.naming, axis=0))
    score = np.full(len(look.facts), np.nan, np.float32)
    score[asked] = score_facts(parts, "scorer_1", look.data, look.facts, asked)
    out = np.zeros((len(look.data), len(look.naming)))
    for i, facts in enumerate(look.naming):
        out[look.facts.row[facts & np.isnan(score)], i] = np.nan
        out[look.facts.row[facts & (score < TRUE)], i] = 1.0  # one false sentence is enough, whatever the others are
    models = parts.provenance()
    name = str(models["composition"]["scorer_1"])
    if name in ("vision-language", "text-only"):
        name = str(models["composition"]["chat"])
    unclear = int(np.isnan(score[asked]).sum())
    provenance = {"models": models, "sentences": len(asked), "sentences_unclear": unclear}
    return References(name.removeprefix("vision-language:"), out, provenance)


def facts_naming(finding: Finding, concepts: Concepts) -> NDArray[np.bool_]:
    """(F,) The fact names t; `concepts` of the captions are as the audit found them.

    An audit may call t by a fuller name than the one that it counted ("tennis racket" for "racket"). So of t and of the
    finding's candidates whose words are among t's, that name counts by which all affected sentences name t.
    """
    words = set(finding.textual_error.split())
    shorter = [name for name in finding.textual_error_candidates if set(name.split()) < words]
    names = [finding.textual_error, *sorted(shorter, key=lambda name: -len(name.split()))]
    affected = {sentence for row in finding.affected for sentence in row.sentences}
    fewest, best = len(affected) + 1, np.zeros(len(concepts.facts), bool)
    for name in names:
        facts = _naming(name, concepts)
        missed = len(affected - {concepts.facts.text[int(fact)] for fact in np.flatnonzero(facts)})
        if missed < fewest:
            fewest, best = missed, facts
        if not missed:
            break
    return best


def _naming(name: str, concepts: Concepts) -> NDArray[np.bool_]:
    out = np.zeros(len(concepts.facts), bool)
    if name in concepts.names:
        out[concepts.facts_naming(concepts.names.index(name))] = True
        return out
    # Rare in these captions, or a language model's own words: no concept that was found by itself.
    plain = Vocabulary({name: ()})
    for fact, text in enumerate(concepts.facts.text):
        said = asserted(text)
        out[fact] = name in noun_phrases(said) or (" " in name and bool(plain.find(said)))
    return out
