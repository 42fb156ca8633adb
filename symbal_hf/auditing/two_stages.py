"""The paper's two stages: cluster facts, take the worst aligned cluster; cluster its images, take the worst again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.auditing.association import Pair, error_share, judge_rows, make_pair
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.language.concepts import Concepts, own_name
from symbal_hf.language.facts import Facts
from symbal_hf.language.naming import other_names
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import FACT_SCORERS, split_part
from symbal_hf.models.scorers import score_facts
from symbal_hf.models.summarizers import name_facts, name_images
from symbal_hf.stats.clustering import choose_k, unit
from symbal_hf.stats.keyness import log_odds

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts

FACT_KS = (20, 40, 60, 80, 100)
IMAGE_KS = (2, 4, 6, 8, 10, 15, 20)
MIN_FACTS = 10  # a cluster of fewer facts has no mean worth ranking


Scores = Callable[[str, NDArray[np.int64]], NDArray[np.float32]]  # of these facts, by this scorer


@dataclass(frozen=True)
class Cluster:
    """One of the worst aligned fact clusters.

    Attributes:
        members: indices of its facts.
        rows: those of its images that are aligned worst.
        errors: names for t by the first summarizer, best first; none where phrases are counted.
        features: names for v by the second.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    errors: Sequence[str]
    features: Sequence[str]


def two_stages(
    evidence: Evidence,
    parts: Parts,
    *,
    clusters: int = 5,
    k: int = 5,
    seed: int = 0,
    worst: Sequence[NDArray[np.int64]] | None = None,
    scores: Scores | None = None,
) -> tuple[Evidence, list[Pair]]:
    """Candidate pairs of the paper's method (section 4, appendix A), the worst aligned fact cluster first.

    Names that a model gives join the concepts, so that each pair has its statistics; hence the new evidence.

    Args:
        evidence: rows, concepts, beliefs, and the alignment of every fact by the first scorer.
        parts: the models; summarizers that name by phrases, or say nothing, leave it to phrase statistics.
        clusters: how many of the worst fact clusters go on to stage 2.
        k: how many names are asked for.
        seed: of k-means and of the members that are summarized.
        worst: the facts of these clusters, where they are known already.
        scores: who is asked for second scores; `symbal_hf.models.scorers.score_facts` by default.
    """
    facts, alignment = evidence.concepts.facts, evidence.alignment
    if worst is None:
        judged = np.flatnonzero(~np.isnan(alignment))
        if len(judged) < 2 or not evidence.concepts.names:
            return evidence, []
        groups = worst_groups(cluster_facts(facts, parts, judged, seed=seed), alignment[judged], least=MIN_FACTS)
        worst = [judged[group] for group in groups[:clusters]]
    else:
        judged = np.arange(len(facts))
    images = evidence.images()
    chosen = []
    for members in worst:
        errors = name_facts(parts, "summarizer_1", [facts.text[f] for f in members], k=k, seed=seed)
        second = _second_scores(evidence, parts, members, scores)
        rows = worst_images(np.unique(facts.row[members]), facts.row[members], second, images, seed=seed)
        features = name_images(parts, "summarizer_2", evidence.data, rows.tolist(), k=k, seed=seed)
        chosen.append(Cluster(members, rows, errors, features))
    evidence = _with_names(evidence, [name for one in chosen for name in (*one.errors, *one.features)])
    used: set[int] = set()
    pairs = [_pair(evidence, one, judged, used, tried=clusters) for one in chosen]
    return evidence, [pair for pair in pairs if pair is not None]


def cluster_facts(facts: Facts, parts: Parts, which: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
    """(len(which),) the cluster of each of these facts, by what they say."""
    return choose_k(parts.text_vectors(facts.text)[which], FACT_KS, seed=seed).labels


def _second_scores(
    evidence: Evidence, parts: Parts, members: NDArray[np.int64], scores: Scores | None
) -> NDArray[np.float32]:
    """Alignment of these facts by the second scorer; the first one's where it is the same or judges concepts alone."""
    first, second = parts.composition.scorer_1, parts.composition.scorer_2
    if evidence.score is None or second == first or split_part(second)[0] not in FACT_SCORERS:
        return evidence.alignment[members]
    if scores is not None:
        return scores("scorer_2", members)
    return score_facts(parts, "scorer_2", evidence.data, evidence.concepts.facts, members)


def _pair(
    evidence: Evidence, cluster: Cluster, judged: NDArray[np.int64], used: set[int], *, tried: int
) -> Pair | None:
    """The pair of a cluster; None where it names nothing new, or nothing that captions state and images show."""
    concepts, beliefs = evidence.concepts, evidence.beliefs
    errors = _indices(evidence, cluster.errors)
    if errors:
        t, also = errors[0], tuple(dict.fromkeys(errors[1:]))
        if t in used:
            return None
    else:
        phrases = (int(c) for c in phrases_of_facts(concepts, cluster.members, judged))
        first = next((c for c in phrases if c not in used), None)
        if first is None:
            return None
        t, also = first, ()
    mentioned = concepts.stated(t)
    if not mentioned.any() and not errors:
        return None
    used.add(t)
    error = error_share(t, beliefs.log_ratio[mentioned, t])
    rows = judge_rows(concepts, beliefs, error)
    order = np.array(_indices(evidence, cluster.features), np.int64)
    if not len(order):
        score = log_odds(rows.shown[cluster.rows].sum(0), len(cluster.rows), rows.shown.sum(0), len(rows.shown))
        order = np.argsort(-score, kind="stable")
    order = order[~other_names(concepts, t)[order]]
    if not len(order):
        return None
    pair = make_pair(concepts, beliefs, error, rows, order, scores=np.zeros(len(order)), tried=len(order) * tried)
    return replace(pair, also_errors=also)


def _indices(evidence: Evidence, names: Sequence[str]) -> list[int]:
    """Concepts by these names, each once; names that a given vocabulary does not have are left out."""
    index = {name: i for i, name in enumerate(evidence.concepts.names)}
    if evidence.vocabulary is not None:
        own = [evidence.vocabulary.class_of(name) for name in names]
    else:
        own = [own_name(name, index) for name in names]
    return list(dict.fromkeys(index[name] for name in own if name is not None and name in index))


def _with_names(evidence: Evidence, names: Sequence[str]) -> Evidence:
    """The evidence with these names among its concepts, unless these are given classes."""
    concepts = evidence.concepts
    known = set(concepts.names)
    new = sorted({own_name(name, known) for name in names} - known)
    if not new or evidence.vocabulary is not None:
        return evidence
    vocabulary = Vocabulary(dict.fromkeys(new, ()))
    index = {name: i for i, name in enumerate(new)}
    at = [(f, index[name]) for f, text in enumerate(concepts.facts.text) for name in vocabulary.find(text)]
    rows, columns = np.array(at, np.int64).reshape(-1, 2).T
    extra = sparse.csr_matrix((np.ones(len(at), np.float32), (rows, columns)), shape=(len(concepts.facts), len(new)))
    wider = Concepts((*concepts.names, *new), sparse.hstack([concepts.by_fact, extra]).tocsr(), concepts.facts)
    return evidence.judged(wider)


def phrases_of_facts(concepts: Concepts, members: NDArray[np.int64], judged: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concepts in the order in which they set the facts `members` apart from all that are `judged`."""
    everywhere = np.asarray(concepts.by_fact[judged].sum(0)).ravel()
    score = log_odds(np.asarray(concepts.by_fact[members].sum(0)).ravel(), len(members), everywhere, len(judged))
    return np.argsort(-score, kind="stable")


def worst_groups(labels: NDArray[np.int64], alignment: NDArray[np.floating], *, least: int) -> list[NDArray[np.int64]]:
    """Members of each cluster of at least `least`, the lowest mean alignment first (all clusters if none is so big)."""
    groups = [np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1)]
    big = [g for g in groups if len(g) >= least] or groups
    return sorted(big, key=lambda g: float(alignment[g].mean()))


def worst_images(
    rows: NDArray[np.int64],
    row_of_member: NDArray[np.int64],
    score: NDArray[np.floating],
    images: NDArray[np.float32],
    *,
    seed: int,
) -> NDArray[np.int64]:
    """Those of `rows` in the image cluster whose facts, scored NaN where unknown, are aligned worst."""
    known = ~np.isnan(score)
    lowest = np.full(int(rows.max()) + 1, np.inf, np.float64)
    np.minimum.at(lowest, row_of_member[known], score[known])
    usable = rows[np.isfinite(lowest[rows])]
    if len(usable) < 4:
        return usable if len(usable) else rows
    labels = choose_k(unit(images[usable]), IMAGE_KS, seed=seed).labels
    return usable[worst_groups(labels, lowest[usable], least=5)[0]]
