"""What a sentence of a chest report asserts: which diseases and devices are present, absent or uncertain.

Cues such as "no" and "possible" have a scope, from the cue to the end of its clause or back to the start of it; a name
inside a scope takes its status, a name outside all scopes is present.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, get_args

from benchmark_builder.reports.radiology_terms import CONCEPTS, CUES, MENTIONS, PATTERNS
from symbal_hf.language.facts import sentences
from symbal_hf.language.phrases import Vocabulary

Status = Literal["present", "absent", "uncertain"]
Kind = Literal["named", "near", "opposite"]
RANK: Mapping[str, int] = {"absent": 0, "uncertain": 1, "present": 2}
# "May represent crowding, mild edema, infiltrates": what a verb leaves open goes on over commas.
OPEN_VERBS = frozenset(("may", "might", "could", "differential"))
PERMANENT = frozenset(("pacemaker", "surgical clips", "sternotomy wires"))  # what was there once is there still

SHORT = (
    (re.compile(r"[’`]"), "'"),
    (re.compile(r"\bw/o\b"), "without"),
    (re.compile(r"\bw/ ?"), "with "),
    (re.compile(r"\bs/p\b"), "status post"),
    (re.compile(r"\bc/w\b"), "consistent with"),
    (re.compile(r"\br/o\b"), "rule out"),
    (re.compile(r"\bh/o\b"), "history of"),
    (re.compile(r"\band ?/ ?or\b"), "or"),
    (re.compile(r"\(s\)"), "s"),
    (re.compile(r"\s+"), " "),
)

LIST_NUMBER = re.compile(r"(?:^|(?<=\s))(\d{1,2})[.)](?=\s+\S)")
# Dictated reports lack the blank or the capital after a full stop now and then.
GLUED = re.compile(r"(?<=[a-z]{2})\.(?=[A-Z][a-z])|(?<=[a-z]{4})(?<!approx)\. (?=[a-z]{2})")


@dataclass(frozen=True)
class Mention:
    """One concept named in a text at [start, end).

    Attributes:
        kind: "named"; "near" for what only goes with the concept; "opposite" for what rules it out ("normal heart").
    """

    concept: str
    start: int
    end: int
    kind: Kind


_PATTERNS: tuple[tuple[str, Kind, re.Pattern[str]], ...] = tuple(
    (concept, kind, re.compile(MENTIONS[kind][concept]))
    for kind in get_args(Kind)
    for concept in CONCEPTS
    if concept in MENTIONS[kind]
)


def mentions(text: str) -> list[Mention]:
    """Every mention of a concept in lower-case, single-spaced `text`, whatever is said about it."""
    text = PATTERNS["other"].sub(lambda match: "~" * len(match[0]), text)
    return [
        Mention(concept, match.start(), match.end(), kind)
        for concept, kind, pattern in _PATTERNS
        for match in pattern.finditer(text)
    ]


def most_affirmative(votes: Iterable[tuple[str, Status]]) -> dict[str, Status]:
    """The status of each concept; of several "present" counts before "uncertain", and that before "absent"."""
    return dict(sorted(votes, key=lambda vote: RANK[vote[1]]))


@lru_cache(maxsize=262_144)
def statuses(sentence: str) -> Mapping[str, Status]:
    """The status of each concept that one sentence speaks of; of several mentions the most affirmative counts."""
    text = plain(sentence)
    found = mentions(text)
    absent, unsure = _scopes(text, found) if found else ([], [])
    votes: list[tuple[str, Status]] = []
    for mention in found:
        past = mention.concept not in PERMANENT and PATTERNS["past"].search(text, 0, mention.start) is not None
        if mention.kind == "opposite" or _inside(mention, absent):
            if mention.kind != "near":  # without blunting there may still be fluid
                votes.append((mention.concept, "absent"))
        else:
            doubtful = mention.kind == "near" or _inside(mention, unsure) or past
            votes.append((mention.concept, "uncertain" if doubtful else "present"))
    return MappingProxyType(most_affirmative(votes))


def report_statuses(texts: Iterable[str]) -> dict[str, Status]:
    """The status of each concept over all sentences of a report's texts; the most affirmative sentence counts."""
    said = (sentence for text in texts for sentence in report_sentences(text))
    return most_affirmative(vote for sentence in said for vote in statuses(sentence).items())


def weigh(
    sources: Iterable[Mapping[str, Status]], decided: Mapping[str, bool] = MappingProxyType({})
) -> tuple[frozenset[str], frozenset[str]]:
    """Concepts that any source calls present, and those that none does and any calls uncertain.

    What is `decided` to be there or not overrides all sources.
    """
    votes = [vote for source in sources for vote in source.items() if vote[0] not in decided]
    present = frozenset(concept for concept, status in votes if status == "present")
    unsure = frozenset(concept for concept, status in votes if status == "uncertain") - present
    return present | {concept for concept, there in decided.items() if there}, unsure


def says_something(sentence: str) -> bool:
    """True when a sentence names a finding, a device or a part of the body that is not denied.

    "Heart size is normal." says something; "No acute cardiopulmonary process." and "Findings were phoned in." do not.
    """
    text = plain(sentence)
    if PATTERNS["heading"].fullmatch(text):
        return False
    absent, _ = _scopes(text, ())
    # "A CT of the chest is recommended" names a part of the body and says nothing about it.
    terms = PATTERNS["findings" if PATTERNS["advice"].search(text) else "terms"]
    return any(not any(start <= m.start() < end for start, end in absent) for m in terms.finditer(text))


def states_only(sentence: str, concept: str) -> bool:
    """True when a sentence asserts `concept` and no other finding or device, and denies or doubts nothing."""
    if dict(statuses(sentence)) != {concept: "present"}:
        return False
    text = plain(sentence)
    found = mentions(text)
    if {m.concept for m in found} != {concept}:
        return False
    named = [m for m in found if m.kind == "named"]
    absent, unsure = _scopes(text, named)
    others = (
        m for m in PATTERNS["extras"].finditer(text) if not any(n.start < m.end() and m.start() < n.end for n in named)
    )
    return len(named) == len(found) and not absent and not unsure and next(others, None) is None


def plain(sentence: str) -> str:
    """Lower-case text with single spaces and the usual abbreviations written out."""
    text = sentence.lower()
    for pattern, instead in SHORT:
        text = pattern.sub(instead, text)
    return text.strip()


@lru_cache(maxsize=4096)
def report_sentences(text: str) -> tuple[str, ...]:
    """The sentences of a report section, list numbers dropped ("1. Edema. 2. No effusion." -> two sentences)."""
    parts, start, expected = [], 0, 1
    for match in LIST_NUMBER.finditer(text):
        # Only numbers that count up from 1 open items: "rib 4. The lungs" is none.
        if int(match[1]) in (1, expected):
            parts.append(text[start : match.start()])
            start, expected = match.end(), int(match[1]) + 1
    parts.append(text[start:])
    split = sentences(GLUED.sub(".\n", "\n".join(parts)))
    unnumbered = (LIST_NUMBER.sub("", one, count=1) if LIST_NUMBER.match(one) else one for one in split)
    return tuple(" ".join(one.split()) for one in unnumbered if any(c.isalnum() for c in one))


class MedicalVocabulary(Vocabulary):
    """The ten concepts with all their synonyms; side by side ("effusion/atelectasis") each of them counts."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(CONCEPTS, ()))

    def find(self, text: str) -> frozenset[str]:
        """Concepts that `text` speaks of, even to deny them."""
        return frozenset(mention.concept for mention in mentions(plain(text)))


@lru_cache(maxsize=1)
def medical_vocabulary() -> Vocabulary:
    """Names, synonyms and opposites of the ten concepts, for finding captions that already speak of one."""
    return MedicalVocabulary()


def _inside(mention: Mention, scopes: list[tuple[int, int]]) -> bool:
    return any(mention.start < end and start < mention.end for start, end in scopes)


def _scopes(text: str, found: Iterable[Mention]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """[start, end) of every part of `text` that is denied, and of every part that is uncertain."""
    absent: list[tuple[int, int]] = []
    unsure: list[tuple[int, int]] = []
    joint: list[tuple[int, int]] = []
    for cue in CUES.finditer(text):
        kind = cue.lastgroup
        if kind == "nothing":
            joint.append((cue.start(), len(text)))
        elif kind in ("absent", "unsure"):
            # Two further on: "no evidence of, but cannot exclude, ..." does not end at the comma right after the cue.
            verb = cue[0] in OPEN_VERBS
            stop = PATTERNS["verb_end" if verb else "clause_end"].search(text, cue.end() + 2)
            end = stop.start() if stop else len(text)
            if verb:
                unsure.append((cue.start(), end))
            elif kind == "unsure":
                comma = PATTERNS["list_end"].search(text, cue.end() + 2, end)
                unsure.append((cue.start(), comma.start() if comma else end))
            else:
                absent.append((cue.start(), end))
        elif kind in ("absent_before", "unsure_before"):
            many = cue[0].startswith(("are", "have", "were"))
            start = PATTERNS["clause_start" if many else "item_start"]
            starts = [m.end() for m in start.finditer(text, 0, cue.start())]
            (absent if kind == "absent_before" else unsure).append((max(starts, default=0), cue.end()))
    return absent, unsure + _choices(text, found, joint)


def _choices(text: str, found: Iterable[Mention], joint: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of `text` that leave a choice open ("scarring or atelectasis"), lists that end in one included.

    After "no change in" (`joint`) an "or" only joins.
    """
    edges = [0, *(m.start() for m in PATTERNS["part"].finditer(text)), len(text)]
    parts = list(pairwise(edges))
    out: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(parts):
        choice = PATTERNS["choice"].search(text, start, end)
        # "Pacemaker/ICD" is no choice: both names are of one thing.
        if choice is None or _same(choice, found) or any(a <= choice.start() < b for a, b in joint):
            continue
        if not text[start : choice.start()].strip(", ") and i:
            start = parts[i - 1][0]
        out.append((start, end))
    return out


def _same(choice: re.Match[str], found: Iterable[Mention]) -> bool:
    before = {m.concept for m in found if m.end == choice.start()}
    return any(m.concept in before for m in found if m.start == choice.end())
