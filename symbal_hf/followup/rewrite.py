"""Captions rewritten by a chat model, each taken only where it says the rest as before and nothing that is false."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.evidence import gather
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.followup.repair_plan import Rewrite
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary, noun_phrases
from symbal_hf.language.sentences import sentences, unmarked
from symbal_hf.models.chat.asking import Ledger, ask
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel, Message
from symbal_hf.models.composition import FACT_SCORERS, audited_composition, split_part
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts
from symbal_hf.models.scorers import score_facts
from symbal_hf.results.repaired import RowError

if TYPE_CHECKING:
    from symbal_hf.results.findings import AuditResult, Finding

AT_ONCE = 1024  # questions in memory together
NEW_TOKENS = 1024
LONGER = 1.2  # a caption without a thing is hardly longer than one with it
SOME = 20  # characters that it may grow by in any case
FRESH = 0.5  # share of the words of new sentences that the old caption does not have, at most
TOKEN = re.compile(r"[^\W_]+|[^\w\s]")
QUOTES = {'"': '"', "“": "”", "'": "'"}  # answers are often put in quotes that are none of their own

WORSE = 1e-4  # a difference of alignment below this is none
UNKNOWN = "its new sentences could not be scored"

Sentences = tuple[tuple[str, ...], tuple[str, ...]]  # new ones, and those that are gone
Check = Callable[[Mapping[int, Sentences]], Mapping[int, str | bool]]


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
    wrong: Mapping[int, tuple[RowError, ...]],
    captions: Mapping[int, str],
    named: Mapping[str, Named],
    *,
    model: ChatModel,
    check: Check,
    store: Store,
    prompts: Prompts,
    ledger: Ledger,
    progress: Progress = quiet,
    seed: int = 0,
) -> dict[int, Rewrite]:
    """What the model makes of each caption, or why that is not taken.

    Args:
        wrong: what is wrong in each row, by its number.
        captions: of these rows.
        named: t -> how captions name it.
        model: the chat model; every good answer is stored, so that a second run asks nothing.
        check: judges rows by (new sentences, sentences that are gone): True where they hold, False where nobody can
            tell, a reason where they do not.
        store: of answers.
        prompts: the packaged ones, or a folder's.
        ledger: counts what is asked.
        progress: wraps the questions.
        seed: of the model's draw, where it makes one.

    Raises:
        ChatFailed: no answer came at all.
    """
    rows, out, new = sorted(wrong), dict[int, Rewrite](), dict[int, str]()
    for start in range(0, len(rows), AT_ONCE):
        batch = rows[start : start + AT_ONCE]
        questions = [[Message(_question(prompts, wrong[row], captions[row]))] for row in batch]
        answers = ask(
            model,
            questions,
            kind="text",
            prompt_hash=prompts.hash("rewrite_caption"),
            store=store,
            ledger=ledger,
            max_new_tokens=NEW_TOKENS,
            seed=seed,
            progress=partial(_labelled, progress),
        )
        for row, answer in zip(batch, answers, strict=True):
            text, reason = _read(answer, captions[row])
            gone = {s for error in wrong[row] for s in error.sentences}
            reason = reason or _refused(text, captions[row], gone, [named[e.textual_error] for e in wrong[row]])
            if reason is None:
                new[row] = text
            else:
                out[row] = Rewrite(None, reason)
    changed = {row: _changed(captions[row], text) for row, text in new.items()}
    for row, verdict in (check(changed) if changed else {}).items():
        out[row] = Rewrite(None, verdict) if isinstance(verdict, str) else Rewrite(new[row], checked=verdict)
    return out


def _changed(before: str, after: str) -> Sentences:
    """The sentences that only the new caption says, and those that only the old one said."""
    old, new = sentences(before), sentences(after)
    return tuple(s for s in new if s not in old), tuple(s for s in old if s not in new)


def _labelled(progress: Progress, items: Any, _: str, total: int) -> Any:
    return progress(items, "rewritten captions", total)


def _question(prompts: Prompts, errors: Sequence[RowError], caption: str) -> str:
    facts = dict.fromkeys(s for error in errors for s in error.sentences)
    names = dict.fromkeys(error.textual_error for error in errors)
    return prompts.render("rewrite_caption", text=caption, facts=list(facts), errors=list(names))


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
    known = _words(before)
    words = _words(" ".join(s for s in after if s not in sentences(before)))
    if len(words - known) > FRESH * len(words):  # an apology, or another story
        return f"the new caption adds {len(words - known)} words, such as {min(words - known)!r}"
    return None


def _tokens(text: str) -> str:
    """The words and signs of a text with a space about each, whatever marks and spaces lay between them."""
    return f" {' '.join(TOKEN.findall(unmarked(text)))} "


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


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
