"""By which name a thing of the captions is called: which names speak of one thing, the fuller one, the plainer one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from symbal_hf.language.concepts import Concepts


def other_names(concepts: Concepts, t: int, *, similar: NDArray[np.floating] | None = None) -> NDArray[np.bool_]:
    """(P,) True for t itself and for what only names it or a part of it otherwise.

    Two phrases speak of one thing when the head of one is a word of the other: "toilet", "white toilet" and "toilet
    seat"; "tennis ball" and "tennis racket" do not.
    """
    own = concepts.names[t].lower().split()
    same = np.zeros(len(concepts.names), bool)
    for other, name in enumerate(concepts.names):
        words = name.lower().split()
        same[other] = own[-1] in words or words[-1] in own
    return same if similar is None else same | (similar[t] >= 0.7)


def fuller_name(concepts: Concepts, concept: int, weight: NDArray[np.floating]) -> int:
    """The longest name that the captions use for `concept`: "racket" is "tennis racket" when they nearly always say so.

    Args:
        concepts: the concepts and their mentions.
        concept: the index to name.
        weight: (N,) how much each row counts, such as the probability that it states the concept falsely.
    """
    facts = concepts.facts_naming(concept)
    total = weight[concepts.facts.row[facts]].sum()
    best, words = concept, concepts.names[concept].split()
    if total <= 0:
        return concept
    for other in np.unique(concepts.by_fact[facts].nonzero()[1]):
        longer = concepts.names[other].split()
        if len(longer) > len(concepts.names[best].split()) and set(words) < set(longer):
            both = concepts.by_fact[facts][:, other].nonzero()[0]
            if weight[concepts.facts.row[facts[both]]].sum() >= 0.7 * total:
                best = int(other)
    return best


def plain_names(concepts: Concepts, features: Sequence[int], scores: Sequence[float]) -> list[int]:
    """Features, best first, under their plainest names that do nearly as well: "blue clock" is a clock.

    A name counts as plainer when it ends the other ("clock"), and as doing nearly as well at four fifths of its score.
    """
    score = dict(zip(features, scores, strict=True))
    everyone = np.ones(concepts.facts.n_rows)
    out = []
    for feature in features:
        words = concepts.names[feature].split()
        shorter = [
            other
            for other in features
            if words[-len(concepts.names[other].split()) :] == concepts.names[other].split()
            and (other == feature or score[other] >= 0.8 * score[feature])
        ]
        plain = min(shorter, key=lambda other: len(concepts.names[other].split()))
        out.append(fuller_name(concepts, plain, everyone))
    return out


def distinct(order: Sequence[int], names: Sequence[str], *, most: int = 5) -> tuple[str, ...]:
    """The first `most` different names of `order`."""
    return tuple(dict.fromkeys(names[index] for index in order))[:most]
