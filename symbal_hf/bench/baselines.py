"""Methods to compare with that leave out what the audit is made of: grouping, association, or looking at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import error_share, judge_rows, make_pair
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.verdict import conclude
from symbal_hf.language.concepts import Concepts, same_thing
from symbal_hf.language.naming import other_names
from symbal_hf.models.parts import Parts
from symbal_hf.models.summarizers import name_facts, name_images
from symbal_hf.stats.keyness import log_odds

Names = tuple[list[str], list[str]]  # for t and for v, best first
FLAG = 0.5  # a fact aligned worse than this is called misaligned (appendix D: each is valid or not)
WORST = 0.1  # share of the facts that count as the worst aligned ones
LEAST = 10  # and how many there are at least


def no_grouping(evidence: Evidence, parts: Parts, *, k: int = 5, seed: int = 0) -> Names:
    """Names for all facts that are called misaligned, and for their images (paper appendix D).

    The two stages of the paper without their clusters: facts are flagged one by one, and the summarizers of the
    composition name them and their images; where they are "phrases", or say nothing, phrases are counted and names made
    plain exactly as `symbal_hf.auditing.two_stages` and `symbal_hf.auditing.verdict` do.
    """
    facts, flagged = evidence.concepts.facts, np.flatnonzero(evidence.alignment < FLAG)
    if not len(flagged):
        return [], []
    t = name_facts(parts, "summarizer_1", [facts.text[f] for f in flagged], k=k, seed=seed)
    rows = np.unique(facts.row[flagged]).tolist()
    v = name_images(parts, "summarizer_2", evidence.data, rows, k=k, seed=seed)
    if t and v:
        return t, [name for name in v if not _names_part_of(name, t[0])]
    counted = _counted_names(evidence, flagged, k=k)
    if not t and not v:
        return counted
    t, v = t or counted[0], v or counted[1]
    return t, [name for name in v if not t or not _names_part_of(name, t[0])]


def _counted_names(evidence: Evidence, flagged: NDArray[np.int64], *, k: int) -> Names:
    """Names for these facts and their images by phrase statistics: what they name, and what their images show, more."""
    concepts, beliefs, judged = evidence.concepts, evidence.beliefs, np.flatnonzero(~np.isnan(evidence.alignment))
    inside = np.asarray(concepts.by_fact[flagged].sum(0)).ravel()
    if not inside.any():
        return [], []
    everywhere = np.asarray(concepts.by_fact[judged].sum(0)).ravel()
    order = np.argsort(-log_odds(inside, len(flagged), everywhere, len(judged)), kind="stable")
    errors = [int(c) for c in order if inside[c]][:k]
    t, group = errors[0], np.unique(concepts.facts.row[flagged])
    share = error_share(t, beliefs.log_ratio[concepts.stated(t), t])
    rows = judge_rows(concepts, beliefs, share)
    score = log_odds(rows.shown[group].sum(0), len(group), rows.shown.sum(0), len(rows.shown))
    order = np.argsort(-score, kind="stable")
    order = order[~other_names(concepts, t)[order]]
    if not len(order):
        return _different(concepts, errors, k=k), []
    pair = make_pair(concepts, beliefs, share, rows, order, scores=np.zeros(len(order)), tried=len(order))
    said = conclude(evidence, [replace(pair, also_errors=tuple(errors[1:]))]).prediction(k)
    return said["textual_error"], said["visual_feature"]


def _names_part_of(one: str, other: str) -> bool:
    """Whether the head of one name is a word of the other, as in `symbal_hf.language.naming.other_names`."""
    a, b = one.lower().split(), other.lower().split()
    return bool(a and b) and (a[-1] in b or b[-1] in a)


def most_frequent(evidence: Evidence, *, k: int = 5) -> Names:
    """Floor: t is what most captions name, v what most images show besides; no error is looked for."""
    return _counted(evidence, evidence.concepts.mentions(), among=np.arange(len(evidence.data)), k=k)


def chair(evidence: Evidence, *, k: int = 5) -> Names:
    """Floor: t is what most captions name though the image lacks it, v what most of exactly those images show.

    The counting of CHAIR (Rohrbach et al., 2018) with noun phrases for its list of objects: neither how often a thing
    is named truly nor how often v is shown elsewhere plays a part. An image lacks what fits it worse than it fits a
    random image, which is also how `no_grouping` flags facts; with given objects, what is not among them.
    """
    return _counted(evidence, evidence.concepts.mentions() & (evidence.beliefs.log_ratio > 0), k=k)


def _counted(evidence: Evidence, said: NDArray[np.bool_], *, k: int, among: NDArray[np.int64] | None = None) -> Names:
    """What is `said` (N, C) most, and what most rows `among` (by default those that say it) show besides."""
    concepts, beliefs = evidence.concepts, evidence.beliefs
    errors = _most(said.sum(0))
    if not errors:
        return [], []
    t = errors[0]
    share = error_share(t, beliefs.log_ratio[concepts.stated(t), t])
    shown = judge_rows(concepts, beliefs, share).has[np.flatnonzero(said[:, t]) if among is None else among].sum(0)
    shown[other_names(concepts, t)] = 0
    return _different(concepts, errors, k=k), _different(concepts, _most(shown), k=k)


def _most(count: NDArray[np.integer]) -> list[int]:
    """Concepts that were counted at all, the most frequent first."""
    return [int(c) for c in np.argsort(-count, kind="stable") if count[c]]


def embedding_difference(evidence: Evidence, *, k: int = 5) -> Names:
    """Floor: t is the phrase nearest to the direction in which the worst aligned facts differ from all, v likewise.

    The worst aligned are the lowest tenth, at least ten; v's direction is that of their images. Images are the
    whole-image vectors of the lite preset, in the space of its text encoder, or else text vectors of references.
    """
    concepts, facts = evidence.concepts, evidence.concepts.facts
    if not concepts.names:
        return [], []
    alignment = evidence.alignment
    judged = np.flatnonzero(~np.isnan(alignment))
    if len(judged) < 2:
        return [], []
    worst = judged[np.argsort(alignment[judged], kind="stable")][: max(LEAST, int(WORST * len(judged)))]
    said = evidence.embed([facts.text[f] for f in judged])
    phrases = evidence.vectors if evidence.vectors is not None else evidence.embed(concepts.names)
    place = np.full(len(facts), -1)
    place[judged] = np.arange(len(judged))
    errors = np.argsort(-phrases @ (said[place[worst]].mean(0) - said.mean(0)), kind="stable")
    images = evidence.images()
    rows = np.unique(facts.row[worst])
    order = np.argsort(-phrases @ (images[rows].mean(0) - images.mean(0)), kind="stable")
    order = order[~other_names(concepts, int(errors[0]))[order]]
    return _different(concepts, errors, k=k), _different(concepts, order, k=k)


FLOORS: Mapping[str, Callable[[Evidence], Names]] = {
    "most-frequent": most_frequent, "chair": chair, "embedding-difference": embedding_difference,
}  # fmt: skip


def _different(concepts: Concepts, order: Iterable[int], *, k: int) -> list[str]:
    """The first `k` names of `order` that name different things."""
    out: list[str] = []
    for concept in order:
        name = concepts.names[concept]
        if not any(same_thing(name, kept) for kept in out):
            out.append(name)
        if len(out) == k:
            break
    return out
