"""Captions rewritten by a chat model, each taken only where it says the rest as before and nothing that is false."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from symbal_hf.core.store import Store
from symbal_hf.followup.repair_plan import Rewrite
from symbal_hf.language.phrases import Vocabulary, noun_phrases
from symbal_hf.language.sentences import sentences
from symbal_hf.language.spans import span_of
from symbal_hf.models.chat.asking import Ledger, ask
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel, Message
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.repaired import RowError

if TYPE_CHECKING:
    from symbal_hf.results.findings import Finding

AT_ONCE = 1024  # questions in memory together
NEW_TOKENS = 1024
LONGER = 1.2  # a caption without a thing is hardly longer than one with it
SOME = 20  # characters that it may grow by in any case
FRESH = 0.5  # share of the words of new sentences that the old caption does not have, at most
QUOTES = {'"': '"', "“": "”", "'": "'"}  # answers are often put in quotes that are none of their own

Check = Callable[[Mapping[int, tuple[tuple[str, ...], tuple[str, ...]]]], Mapping[int, str | bool]]


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
        part = rows[start : start + AT_ONCE]
        questions = [[Message(_question(prompts, wrong[row], captions[row]))] for row in part]
        answers = ask(
            model, questions, kind="text", prompt_hash=prompts.hash("rewrite_caption"), store=store, ledger=ledger,
            max_new_tokens=NEW_TOKENS, seed=seed, progress=partial(_labelled, progress),
        )  # fmt: skip
        for row, answer in zip(part, answers, strict=True):
            text, reason = _read(answer, captions[row])
            gone = {s for error in wrong[row] for s in error.sentences}
            reason = reason or _refused(text, captions[row], gone, [named[e.textual_error] for e in wrong[row]])
            if reason is None:
                new[row] = text
            else:
                out[row] = Rewrite(None, reason)
    asked = {}
    for row, text in new.items():
        before, after = sentences(captions[row]), sentences(text)
        asked[row] = (
            tuple(s for s in after if s not in before),
            tuple(s for s in before if s not in after),
        )
    judged = check(asked) if asked else {}
    for row, text in new.items():
        verdict = judged[row]
        if isinstance(verdict, str):
            out[row] = Rewrite(None, verdict)
        else:
            out[row] = Rewrite(text, checked=verdict)
    return out


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
    at = 0
    for sentence in sentences(before):
        if sentence in gone:
            continue
        span = span_of(sentence, text[at:])
        if span is None:
            return f"the new caption no longer says {sentence!r}"
        at += span[1]
    known = _words(before)
    words = _words(" ".join(s for s in after if s not in sentences(before)))
    if len(words - known) > FRESH * len(words):  # an apology, or another story
        return f"the new caption adds {len(words - known)} words, such as {min(words - known)!r}"
    return None


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
