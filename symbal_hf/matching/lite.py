"""The judge `lite`: names are the same by their words and a table of synonyms, else by how near their embeddings are.

A name is read as words in the singular. What only describes is set aside (colours, sizes, sides, materials, amounts
such as "a group of", places such as "in the background"), "fracture of the rib" becomes "rib fracture", and the rest is
cut into units: the longest names of the packaged table `judge_data/synonyms.txt`, else single words. Then, in order:

1. One is negated and the other is not, or they give different values of one attribute (side, level, colour, ...):
   different.
2. All units in turn are equal or synonyms: same.
3. Both are names of the table: different.
4. The letters are equal but for spaces: same.
5. One has all units of the other and more of them: another kind, or a part: different. Only names of two units and
   more go on to 6 where they share the last ("coronary calcification", "coronary artery calcification").
6. The cosine of their MiniLM vectors reaches a threshold: same; else different. It is higher where one of them is a
   name of the table, which lists its other names, and for what comes from 5.

The judge is symmetric, keeps no state and needs no network. `scripts/train/tune_lite_judge.py` shows where the
threshold comes from.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from symbal_hf.core.files import packaged_lines
from symbal_hf.core.store import Store
from symbal_hf.language.phrases import singular
from symbal_hf.matching.protocol import State, normalised
from symbal_hf.models.encoders.embedding import Progress, embed_texts, quiet

Why = Literal["blank", "equal", "contradiction", "names", "table", "kind", "embedding"]
Unit = frozenset[str]

# Chosen on the pairs of scripts/train/tune_lite_judge.py, none of which the agreement is measured on.
# Of names that the table does not know the sure siblings end at 0.77 ("beer bottle", "wine bottle"); of pairs with one
# that it knows at 0.89 ("wine bottle", "wine glass"), above most that are the same.
THRESHOLD = 0.8
SURE = 0.92
RULES = 1  # counted up by hand whenever the rules answer some pair otherwise; tables and thresholds tell of themselves
FORM = "a {}"  # names stand in a phrase, as in the captions that MiniLM knows; a bare word scatters more

WORD = re.compile(r"[^\W_]+")
GREEK = (("oed", "ed"), ("oes", "es"), ("haem", "hem"), ("aem", "em"), ("paed", "ped"), ("anaes", "anes"))
ARTICLES = frozenset(
    (
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "its",
        "his",
        "her",
        "their",
        "my",
        "your",
        "our",
        "some",
        "any",
    )
)


@dataclass(frozen=True)
class Words:
    """The words of `judge_data/words.txt`.

    Attributes:
        negation, amount, place, generic, description: words of that use.
        attributes: by word the attribute and its value.
        spelling, organ: what a word is rewritten to.
    """

    negation: frozenset[str]
    amount: frozenset[str]
    place: frozenset[str]
    generic: frozenset[str]
    description: frozenset[str]
    attributes: Mapping[str, tuple[str, str]]
    spelling: Mapping[str, str]
    organ: Mapping[str, str]

    @cached_property
    def sites(self) -> frozenset[str]:
        """The organs, which things are in."""
        return frozenset(self.organ.values())


@lru_cache(maxsize=1)
def packaged_words() -> Words:
    """The packaged words, read once."""
    lists: dict[str, frozenset[str]] = {}
    maps: dict[str, dict[str, str]] = {"spelling": {}, "organ": {}}
    attributes: dict[str, tuple[str, str]] = {}
    for line in packaged("words.txt"):
        use, _, listed = line.partition(":")
        kind, _, value = use.partition(" ")
        words = listed.split()
        if not value:
            lists[kind] = frozenset(words)
        elif kind in maps:
            maps[kind].update(dict.fromkeys(words, value))
        else:
            attributes.update(dict.fromkeys(words, (kind, value)))
    return Words(**lists, attributes=attributes, spelling=maps["spelling"], organ=maps["organ"])


@lru_cache(maxsize=8)
def packaged(file: str) -> tuple[str, ...]:
    """The lines of a table in `judge_data`."""
    return packaged_lines("symbal_hf.matching", f"judge_data/{file}")


@dataclass(frozen=True)
class Name:
    """What a name says.

    Attributes:
        units: groups of the table, else single words, the head last.
        words: the words of the units.
        values: of attributes.
        negated: says that the thing is not there.
        known: is, apart from what describes it, one name of the table.
    """

    units: tuple[Unit, ...] = ()
    words: tuple[str, ...] = ()
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    negated: bool = False
    known: bool = False


class Synonyms:
    """Names and the groups they belong to, found at the beginning of a list of words, the longest first."""

    def __init__(self, lines: Iterable[str]) -> None:
        """`lines` have names of one thing between commas; "!" ends a name that matches only as it is written."""
        self._groups: dict[tuple[str, ...], set[str]] = {}
        self._written: dict[tuple[str, ...], set[str]] = {}
        for number, line in enumerate(lines):
            for name in line.split(","):
                if name.strip().endswith("!"):
                    self._written.setdefault(raw_words(name), set()).add(f"#{number}")
                else:
                    self._groups.setdefault(tuple(map(base_form, raw_words(name))), set()).add(f"#{number}")
        self._longest = max(map(len, (*self._groups, *self._written)), default=0)
        self.groups = frozenset(g for of in (self._groups, self._written) for groups in of.values() for g in groups)

    def at(self, raw: Sequence[str], start: int) -> tuple[int, Unit]:
        """How many words from `start` on are a name, and its groups; 0 words where none is."""
        for size in range(min(self._longest, len(raw) - start), 0, -1):
            part = tuple(raw[start : start + size])
            if groups := self._written.get(part) or self._groups.get(tuple(map(base_form, part))):
                return size, frozenset(groups)
        return 0, frozenset()

    def __contains__(self, raw: Sequence[str]) -> bool:
        return bool(raw) and self.at(raw, 0)[0] == len(raw)


def raw_words(name: str) -> tuple[str, ...]:
    """Words of a name without articles and possessive endings, as they are written."""
    text = re.sub(r"['’]s\b|['’]", "", normalised(name))
    return tuple(w for w in WORD.findall(text) if w not in ARTICLES)


@lru_cache(maxsize=65_536)
def base_form(word: str) -> str:
    """The singular, in American spelling; an organ's adjective is the organ."""
    out = singular(word)
    for old, new in GREEK:
        out = out.replace(old, new) if old in out and len(out) > 4 else out
    rewritten = packaged_words()
    out = rewritten.spelling.get(out, out)
    return rewritten.organ.get(out, out)


def read_name(name: str, table: Synonyms) -> Name:
    """What a name says, by the names of the table and the packaged words."""
    raw, listed = raw_words(name), packaged_words()
    negated = False
    if raw not in table:
        negated = any(w in listed.negation for w in raw)
        raw = _turned(_placeless(tuple(w for w in raw if w not in listed.negation), table), table)
    units: list[Unit] = []
    words: list[str] = []
    values: dict[str, set[str]] = {}
    start = 0
    while start < len(raw):
        size, groups = table.at(raw, start)
        word, end = base_form(raw[start]), start + max(size, 1)
        attribute = listed.attributes.get(word)
        if size < 2 and end < len(raw) and (attribute or word in listed.description):
            if attribute:
                values.setdefault(attribute[0], set()).add(attribute[1])
        else:
            units.append(groups or frozenset((word,)))
            words += map(base_form, raw[start:end])
        start = end
    if len(units) == 2 and words[-1] in listed.generic and units[0] <= table.groups:
        # a "pacemaker device" is a pacemaker
        units, words = units[:1], words[:-1]
    named = len(units) == 1 and units[0] <= table.groups
    return Name(tuple(units), tuple(words), {k: frozenset(v) for k, v in values.items()}, negated, named)


def _placeless(raw: tuple[str, ...], table: Synonyms) -> tuple[str, ...]:
    """Words without where it is: "dog on a couch" is a dog; "mass in the mediastinum" is "mediastinum mass"."""
    listed = packaged_words()
    for index in range(1, len(raw) - 1):
        if raw[index] in listed.place and not _in_a_name(raw, index, table):
            where = [w for w in raw[index + 1 :] if listed.attributes.get(w, ("",))[0] != "side"]
            if len(where) == 1 and base_form(where[0]) in listed.sites:
                return (*raw[index + 1 :], *raw[:index])
            return raw[:index]
    return raw


def _in_a_name(raw: tuple[str, ...], index: int, table: Synonyms) -> bool:
    """Whether a name of the table that begins before it holds this word: "air in the pleural space" is one name."""
    return any(start + table.at(raw, start)[0] > index for start in range(index))


def _turned(raw: tuple[str, ...], table: Synonyms) -> tuple[str, ...]:
    """Words without amounts and with "A of B" as "B A"; names of the table stay as they are."""
    while "of" in raw:
        index = raw.index("of")
        first, rest = raw[:index], raw[index + 1 :]
        if _in_a_name(raw, index, table):
            break
        raw = rest if not first or base_form(first[-1]) in packaged_words().amount else rest + first
    return raw


def compare(one: Name, other: Name) -> tuple[bool | None, Why]:
    """Whether two names mean the same by their words; None where only an embedding can tell."""
    if not one.units or not other.units:
        return False, "blank"
    if one.negated != other.negated or any(
        not (values & other.values[attribute]) for attribute, values in one.values.items() if attribute in other.values
    ):
        return False, "contradiction"
    if _alike(one.units, other.units):
        return True, "names"
    if one.known and other.known:
        return False, "table"
    if "".join(one.words) == "".join(other.words):
        return True, "names"
    if _kinds(one, other):
        fine = min(len(one.units), len(other.units)) > 1 and bool(one.units[-1] & other.units[-1])
        return None if fine else False, "kind"
    return None, "embedding"


def bar(one: Name, other: Name, threshold: float) -> float:
    """The cosine from which on two names of which `compare` says None are the same."""
    return max(threshold, SURE) if one.known or other.known or _kinds(one, other) else threshold


def _kinds(one: Name, other: Name) -> bool:
    return _within(one.units, other.units) or _within(other.units, one.units)


def _alike(one: Sequence[Unit], other: Sequence[Unit]) -> bool:
    return len(one) == len(other) and all(a & b for a, b in zip(one, other, strict=True))


def _within(few: Sequence[Unit], many: Sequence[Unit]) -> bool:
    return len(few) < len(many) and all(any(unit & other for other in many) for unit in few)


class LiteJudge:
    """The judge of this module."""

    name, prompt_hash = "lite", ""

    def __init__(self, store: Store, *, threshold: float = THRESHOLD, progress: Progress = quiet) -> None:
        """`threshold` is a cosine in [-1, 1]; above 1 embeddings are not asked. `store` keeps vectors."""
        self.store, self.threshold, self.progress = store, threshold, progress

    @cached_property
    def _table(self) -> Synonyms:
        return Synonyms(packaged("synonyms.txt"))

    @cached_property
    def revision(self) -> str:
        """Eight hex digits of what decides its answers, and the threshold: equal ones answer alike.

        Until version 0.1 the digits were of a source file; submissions with such a revision are read as before, and
        their verdicts are those of another judge.
        """
        decides = [RULES, SURE, FORM, GREEK, sorted(ARTICLES), packaged("synonyms.txt"), packaged("words.txt")]
        return f"{hashlib.sha256(json.dumps(decides).encode()).hexdigest()[:8]}-{self.threshold:g}"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """For each (answer, truth) "same" or "different"; a blank name names nothing, and is the same as no other.

        Raises:
            MissingModel: names that only the embedding can tell apart, and no MiniLM.
        """
        return ["same" if same else "different" for same, _ in self.explain(pairs)]

    def explain(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[bool, Why]]:
        """For each pair whether it is the same, and what said so."""
        out: list[tuple[bool, Why]] = []
        undecided, bars, texts = [], [], []
        for index, (answer, truth) in enumerate(pairs):
            if normalised(answer) and normalised(answer) == normalised(truth):
                out.append((True, "equal"))
                continue
            one, other = read_name(answer, self._table), read_name(truth, self._table)
            same, why = compare(one, other)
            out.append((bool(same), why))
            if same is None:
                undecided.append(index)
                bars.append(bar(one, other, self.threshold))
                texts.append((FORM.format(" ".join(one.words)), FORM.format(" ".join(other.words))))
        if texts and self.threshold <= 1:
            from symbal_hf.models.encoders.lite import MiniLM

            flat = [text for pair in texts for text in pair]
            vectors = embed_texts(flat, MiniLM(), store=self.store, progress=self.progress)
            near = (vectors[::2] * vectors[1::2]).sum(1)
            for index, cosine, least in zip(undecided, near, bars, strict=True):
                out[index] = (bool(cosine >= least), "embedding")
        return out
