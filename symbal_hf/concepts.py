"""Which concepts the captions speak of, and which fact of which row names each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.facts import Facts
from symbal_hf.phrases import Vocabulary, noun_phrases


@dataclass(frozen=True)
class Concepts:
    """P concepts and where F facts of N rows name them.

    Attributes:
        names: P names, noun phrases or vocabulary classes.
        by_fact: (F, P) sparse, 1 where the fact names the concept.
        facts: the facts table.
    """

    names: tuple[str, ...]
    by_fact: sparse.csr_matrix
    facts: Facts

    def facts_naming(self, concept: int) -> NDArray[np.int64]:
        """Indices of the facts that name the concept, ascending."""
        return self.by_fact[:, concept].nonzero()[0].astype(np.int64)

    def stated(self, concept: int) -> NDArray[np.bool_]:
        """(N,): the row's caption names the concept."""
        out = np.zeros(self.facts.n_rows, bool)
        out[self.facts.row[self.facts_naming(concept)]] = True
        return out

    def mentions(self, *, without_facts_naming: int | None = None) -> NDArray[np.bool_]:
        """(N, P): the row's caption names the concept, in a fact that does not name concept `without_facts_naming`."""
        keep = np.ones(len(self.facts), bool)
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
    min_rows: int = 5,
    most: int = 4000,
) -> Concepts:
    """The concepts that facts name.

    Args:
        facts: the facts table.
        vocabulary: its classes are the concepts; by default they are the noun phrases of the captions themselves.
        also: texts (reference captions) whose noun phrases are concepts too, though no caption may name them.
        min_rows: a noun phrase needs this many rows (or texts of `also`) that use it.
        most: keep the most frequent.
    """
    find: Callable[[str], frozenset[str]] = noun_phrases if vocabulary is None else vocabulary.find
    found = [find(text) for text in facts.text]
    if vocabulary is not None:
        names = list(vocabulary.classes)
    else:
        count: Counter[str] = Counter()
        for _, group in _by_row(facts, found):
            count.update(group)
        count.update(name for text in also for name in find(text))
        # Equal counts by name: phrases come out of sets, whose order changes from process to process.
        common = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        names = [name for name, n in common[:most] if n >= min_rows]
        found = _completed(facts, found, names)
    place = {name: i for i, name in enumerate(names)}
    pairs = [(f, place[name]) for f, group in enumerate(found) for name in group if name in place]
    rows, columns = np.array(pairs, np.int64).reshape(-1, 2).T
    matrix = sparse.csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), shape=(len(facts), len(names)))
    return Concepts(tuple(names), matrix, facts)


def _completed(facts: Facts, found: Sequence[frozenset[str]], names: Sequence[str]) -> list[frozenset[str]]:
    """The phrases of each fact with compounds that the tagger missed there but found elsewhere.

    "Two teddy bears sit" may be read as a teddy that bears; where the data knows teddy bears, it is one.
    """
    compounds = Vocabulary({name: () for name in names if " " in name})
    out = []
    for text, group in zip(facts.text, found, strict=True):
        missed = compounds.find(text) - group
        heads = {" ".join(name.split()[start:]) for name in missed for start in range(len(name.split()))}
        out.append(group | heads)
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
