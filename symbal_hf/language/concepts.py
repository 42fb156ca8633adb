"""Which concepts the captions speak of, and which fact of which row names each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.core.errors import BadData
from symbal_hf.language.denials import asserted
from symbal_hf.language.facts import Facts
from symbal_hf.language.phrases import Vocabulary, names_of, noun_phrases, singular


@dataclass(frozen=True)
class Concepts:
    """P concepts and where F facts of N rows name them.

    Attributes:
        names: P names, noun phrases or vocabulary classes.
        by_fact: (F, P) sparse, 1 where the fact names the concept.
        facts: the facts table.
        asked: the index of each name that was asked for, in the order in which they were.
        extra: how many of the last concepts are there only because they were asked for.
    """

    names: tuple[str, ...]
    by_fact: sparse.csr_matrix
    facts: Facts
    asked: tuple[int, ...] = ()
    extra: int = 0

    def usual(self) -> Concepts:
        """Without the concepts that are there only because they were asked for."""
        if not self.extra:
            return self
        kept = len(self.names) - self.extra
        return Concepts(self.names[:kept], self.by_fact[:, :kept].tocsr(), self.facts)

    def facts_naming(self, concept: int) -> NDArray[np.int64]:
        """Indices of the facts that name the concept, ascending."""
        return self.by_fact[:, concept].nonzero()[0].astype(np.int64)

    def stated(self, concept: int) -> NDArray[np.bool_]:
        """(N,): the row's caption names the concept."""
        out = np.zeros(self.facts.n_rows, bool)
        out[self.facts.row[self.facts_naming(concept)]] = True
        return out

    def mentions(
        self, *, without_facts_naming: int | None = None, of: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """(N, P): the row's caption names the concept, in a fact that does not name concept `without_facts_naming`.

        `of` (F,) are the facts that count, all by default.
        """
        keep = np.ones(len(self.facts), bool) if of is None else of.copy()
        if without_facts_naming is not None:
            keep[self.facts_naming(without_facts_naming)] = False
        of_row = sparse.csr_matrix(
            (np.ones(int(keep.sum()), np.float32), (self.facts.row[keep], np.flatnonzero(keep))),
            shape=(self.facts.n_rows, len(self.facts)),
        )
        return (of_row @ self.by_fact).toarray() > 0


def find_concepts(
    facts: Facts,
    *,
    vocabulary: Vocabulary | None = None,
    also: Iterable[str] = (),
    features: Iterable[str] = (),
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    min_rows: int = 5,
    most: int = 4000,
) -> Concepts:
    """The concepts that facts name.

    Args:
        facts: the facts table.
        vocabulary: its classes are the concepts; by default they are the noun phrases of the captions themselves.
        also: texts (reference captions) whose noun phrases are concepts too, though no caption may name them.
        features: names that images may show, kept however rarely captions use them; not beside a vocabulary.
        always: names that are asked for, kept however rarely they are used; in a vocabulary they must be classes or
            synonyms of one.
        same: noun phrases that count as another one, by that other's name.
        min_rows: a noun phrase needs this many rows (or texts of `also`) that use it.
        most: keep the most frequent.

    Raises:
        BadData: a name of `always` that the vocabulary does not have.
    """
    find: Callable[[str], frozenset[str]] = noun_phrases if vocabulary is None else vocabulary.find
    found = [find(asserted(text)) for text in facts.text]  # "there is no sink" states no sink
    if vocabulary is not None:
        names = list(vocabulary.classes)
        wanted = [class_named(name, vocabulary) for name in always]
        extra: list[str] = []
    else:
        if same:
            found = [frozenset(same.get(name, name) for name in group) for group in found]
        count: Counter[str] = Counter()
        for _, group in _by_row(facts, found):
            count.update(group)
        count.update(name for text in also for name in find(asserted(text)))
        # Equal counts by name: phrases come out of sets, whose order changes from process to process.
        common = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        names = [name for name, n in common[:most] if n >= min_rows]
        found = _completed(facts, found, names)
        names += sorted({own_name(name, names) for name in features} - set(names))
        wanted = [(same or {}).get(own := own_name(name, names), own) for name in always]
        extra = sorted(set(wanted) - set(names))
        found = _with_loose(facts, found, extra, same or {})
    names += extra
    place = {name: i for i, name in enumerate(names)}
    pairs = [(f, place[name]) for f, group in enumerate(found) for name in group if name in place]
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    matrix = sparse.csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), shape=(len(facts), len(names)))
    return Concepts(tuple(names), matrix, facts, tuple(place[name] for name in wanted), len(extra))


def shares_naming(
    texts: Sequence[Sequence[str]], names: Sequence[str], *, vocabulary: Vocabulary | None = None
) -> NDArray[np.float32]:
    """(N, P) of the texts of each row, the share that names each concept; 0 of a row without texts.

    Args:
        texts: of N rows, such as reference captions.
        names: P noun phrases, or classes of the vocabulary.
        vocabulary: the classes with their synonyms.

    Examples:
        >>> shares_naming([["A dog runs.", "The dog."], ["A cat by a dog."], []], ["dog", "cat"]).tolist()
        [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    """
    find, place = noun_phrases if vocabulary is None else vocabulary.find, {name: i for i, name in enumerate(names)}
    shares = np.zeros((len(texts), len(names)), np.float32)
    for row, some in enumerate(texts):
        for text in some:
            shares[row, [place[name] for name in find(asserted(text)) if name in place]] += 1 / len(some)
    return shares


def own_name(name: str, known: Container[str]) -> str:
    """A name as concepts are named: lower-case, its last word in the singular, without an article."""
    if name in known:
        return name
    words = [w for w in name.lower().split() if w not in ("a", "an", "the")] or name.lower().split()
    return " ".join([*words[:-1], singular(words[-1])])


def class_named(name: str, vocabulary: Vocabulary) -> str:
    """The class of the vocabulary that `name` is, or is a synonym of.

    Raises:
        BadData: it names none.
    """
    from difflib import get_close_matches

    found = vocabulary.class_of(name)
    if found is not None:
        return found
    words = name.lower().split()
    near = [c for c in vocabulary.classes if set(words) & set(c.lower().split())]
    near += [c for form in (name.lower(), *words) for c in get_close_matches(form, vocabulary.classes)]
    some = tuple(dict.fromkeys(near))[:5] or vocabulary.classes[:5]
    raise BadData(
        f"{name!r} is no class of the vocabulary and no synonym of one; of its {len(vocabulary.classes)} classes "
        f"{'these are near' if near else 'the first are'}: {', '.join(some) or 'none'}."
    )


def _with_loose(
    facts: Facts, found: list[frozenset[str]], extra: Sequence[str], same: Mapping[str, str]
) -> list[frozenset[str]]:
    """The phrases of each fact with the names of `extra` and `same` that the tagger may miss, as what they count as."""
    missed: dict[str, list[str]] = {}
    for name, counted in [*((name, name) for name in extra), *same.items()]:
        if " " in name or name not in noun_phrases(f"a {name}"):
            missed.setdefault(counted, []).append(name)
    if not missed:
        return found
    # A class's own name always counts as one, and "tv" may be there for the sake of "television set" alone.
    loose = Vocabulary(missed)
    return [group | loose.find(asserted(text)) for text, group in zip(facts.text, found, strict=True)]


def _completed(facts: Facts, found: Sequence[frozenset[str]], names: Sequence[str]) -> list[frozenset[str]]:
    """The phrases of each fact with compounds that the tagger missed there but found elsewhere.

    "Two teddy bears sit" may be read as a teddy that bears; where the data knows teddy bears, it is one.
    """
    compounds = Vocabulary({name: () for name in names if " " in name})
    out = []
    for text, group in zip(facts.text, found, strict=True):
        missed = compounds.find(asserted(text)) - group
        out.append(group | {part for name in missed for part in names_of(name.split())})
    return out


def _by_row(facts: Facts, found: Sequence[frozenset[str]]) -> Iterable[tuple[int, frozenset[str]]]:
    rows: dict[int, frozenset[str]] = {}
    for row, group in zip(facts.row, found, strict=True):
        rows[int(row)] = rows.get(int(row), frozenset()) | group
    return rows.items()


def same_thing(a: str, b: str) -> bool:
    """True when one name's words contain the other's ("toilet" and "white toilet"), so that they are one answer."""
    one, other = set(a.lower().split()), set(b.lower().split())
    return one <= other or other <= one
