"""Captions rewritten by a chat model, each taken only where it says the rest as before and nothing that is false."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.evidence import gather
from symbal_hf.data.table import AuditData
from symbal_hf.followup.repair_plan import Rewrite
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary, noun_phrases
from symbal_hf.language.sentences import sentences, unmarked
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import FACT_SCORERS, split_part
from symbal_hf.models.parts import Parts
from symbal_hf.models.scorers import score_facts
from symbal_hf.results.findings import Finding
from symbal_hf.results.repaired import RowError

NEW_TOKENS = 1024
LONGER = 1.2  # a caption without a thing is hardly longer than one with it
SOME = 20  # characters that it may grow by in any case
FRESH = 0.5  # share of the words of new sentences that the old caption does not have, at most
TOKEN = re.compile(r"[^\W_]+|[^\w\s]")
QUOTES = {'"': '"', "“": "”", "'": "'"}  # answers are often put in quotes that are none of their own

WORSE = 1e-4  # a difference of alignment below this is none
UNKNOWN = "its new sentences could not be scored"

Sentences = tuple[tuple[str, ...], tuple[str, ...]]  # new ones, and those that are gone


@dataclass(frozen=True)
class Named:
    """How to tell whether a text names t: the whole vocabulary where there was one, else its noun phrases."""

    name: str
    vocabulary: Vocabulary | None

    def __call__(self, text: str) -> bool:
        """Whether a sentence of `text` names t."""
        if self.vocabulary is not None:
            return any(self.name in self.vocabulary.find(s) for s in sentences(text))
        words = Vocabulary({self.name: ()})
        return any(self.name in words.find(s) or self.name in noun_phrases(s) for s in sentences(text))


def named_by(finding: Finding, vocabulary: Mapping[str, Sequence[str]] | None) -> Named:
    """How captions name the t of a finding.

    Without a vocabulary t may have been given the fuller name that most captions use ("tennis racket") of what all of
    the wrong sentences name ("racket").
    """
    t = finding.textual_error
    if vocabulary is not None and t in vocabulary:
        return Named(t, Vocabulary(vocabulary))
    words = t.split()
    tails = [" ".join(words[n:]) for n in range(len(words))]
    said = [s for row in finding.affected for s in row.sentences]
    common = (tail for tail in tails if said and all(tail in noun_phrases(s) for s in said))
    return Named(next(common, t), None)


def rewritten(
    data: AuditData,
    wrong: Mapping[int, tuple[RowError, ...]],
    captions: Mapping[int, str],
    named: Mapping[str, Named],
    *,
    parts: Parts,
    spec: str,
    vocabulary: Mapping[str, Sequence[str]] | None,
    seed: int = 0,
) -> tuple[dict[int, Rewrite], dict[str, Any]]:
    """What a chat model makes of each caption, or why that is not taken; and who was asked how much.

    Args:
        data: the audited rows.
        wrong: what is wrong in each row, by its number; `captions` are of these rows.
        captions: as the audit read them.
        named: t -> how captions name it.
        parts: of the audit, with the chat model `spec`; every good answer is stored, so that a second run asks nothing.
        spec: the chat model.
        vocabulary: classes of the audit with synonyms, if it had any.
        seed: of the model's draw, where it makes one.

    Raises:
        ChatFailed: no answer came at all.
    """
    rows, out, new = sorted(wrong), dict[int, Rewrite](), dict[int, str]()
    gone = {row: list(dict.fromkeys(s for error in wrong[row] for s in error.sentences)) for row in rows}
    errors = {row: list(dict.fromkeys(error.textual_error for error in wrong[row])) for row in rows}
    values = [{"text": captions[row], "facts": gone[row], "errors": errors[row]} for row in rows]
    answers = parts.ask(spec, "rewrite_caption", values, kind="text", max_new_tokens=NEW_TOKENS, seed=seed)
    asked = {"prompts": {"rewrite_caption": parts.prompts.hash("rewrite_caption")}, "seed": seed}
    asked |= parts.ledger.as_dict()  # what checks ask of models is told of nowhere
    for row, answer in zip(rows, answers, strict=True):
        text, reason = _read(answer, captions[row])
        reason = reason or _refused(text, captions[row], set(gone[row]), [named[t] for t in errors[row]])
        if reason is None:
            new[row] = text
        else:
            out[row] = Rewrite(None, reason)
    changed: dict[int, Sentences] = {}
    for row, text in new.items():
        after, before = sentences(text), sentences(captions[row])
        changed[row] = tuple(s for s in after if s not in before), tuple(s for s in before if s not in after)
    for row, verdict in (check_rewrites(changed, data, parts, vocabulary=vocabulary) if changed else {}).items():
        out[row] = Rewrite(None, verdict) if isinstance(verdict, str) else Rewrite(new[row], checked=verdict)
    return out, asked


def _read(answer: Answer, before: str) -> tuple[str, str | None]:
    """The new caption as the model wrote it, or why there is none."""
    if answer.text is None:
        return "", f"the model gave no answer ({(answer.error or 'no reason was given').rstrip('.')})"
    text = answer.text.strip()
    close = QUOTES.get(text[:1])
    if close is not None and len(text) > 2 and text.endswith(close) and not before.startswith(text[0]):
        text = text[1:-1].strip()
    return text, None


def _refused(text: str, before: str, gone: set[str], named: Sequence[Named]) -> str | None:
    """Why a new caption is not taken, whatever the image shows; None where it may be."""
    after = sentences(text)
    if not after:
        return "the new caption is empty"
    if len(text) > LONGER * len(before) + SOME:
        return f"the new caption has {len(text)} characters where the old one has {len(before)}"
    if named_still := next((t for t in named if t(text)), None):
        return f"the new caption still names {named_still.name!r}"
    spoken, at = _tokens(text), 0
    for sentence in sentences(before):
        if sentence in gone:
            continue
        start = spoken.find(_tokens(sentence), at)
        if start < 0:
            return f"the new caption no longer says {sentence!r}"
        at = start + len(_tokens(sentence)) - 1  # the space between two tokens belongs to both
    known = set(re.findall(r"\w+", before.lower()))
    words = set(re.findall(r"\w+", " ".join(s for s in after if s not in sentences(before)).lower()))
    if len(words - known) > FRESH * len(words):  # an apology, or another story
        return f"the new caption adds {len(words - known)} words, such as {min(words - known)!r}"
    return None


def _tokens(text: str) -> str:
    """The words and signs of a text with a space about each, whatever marks and spaces lay between them."""
    return f" {' '.join(TOKEN.findall(unmarked(text)))} "


def check_rewrites(
    asked: Mapping[int, Sentences], data: AuditData, parts: Parts, *, vocabulary: Mapping[str, Sequence[str]] | None
) -> dict[int, str | bool]:
    """For each row asked about True where its new sentences hold, a reason where not, False where nobody can tell.

    With objects a new sentence may name nothing that is absent; with any other scorer it may fit its image no worse
    than the worst of the sentences that are gone. A caption without new sentences holds.
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
    composition = parts.composition
    if any(isinstance(spec, str) and spec.split(":")[-2:-1] == ["object"] for spec in asdict(composition).values()):
        return out | dict.fromkeys(rows, False)  # its models were the caller's own
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
