"""The paper's two stages: cluster facts, take the worst aligned cluster; cluster its images, take the worst again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import Pair, error_share, judge_rows, make_pair, other_names
from symbal_hf.auditing.judges import fact_alignment
from symbal_hf.stats.clustering import choose_k, unit
from symbal_hf.stats.keyness import log_odds

if TYPE_CHECKING:
    from symbal_hf.auditing.evidence import Evidence

FACT_KS = (20, 40, 60, 80, 100)
IMAGE_KS = (2, 4, 6, 8, 10, 15, 20)
MIN_FACTS = 10  # a cluster of fewer facts has no mean worth ranking


def paper_pairs(
    evidence: Evidence,
    fact_vectors: NDArray[np.float32],
    image_vectors: NDArray[np.float32],
    *,
    clusters: int = 5,
    seed: int = 0,
) -> list[Pair]:
    """Candidate pairs of the paper's method (section 4, appendix A.3), the worst aligned fact cluster first.

    Args:
        evidence: rows, concepts and beliefs.
        fact_vectors: (F, D) text embeddings of the facts.
        image_vectors: (N, D) embeddings of the images, or of what stands for them in a text-only audit.
        clusters: how many of the worst clusters to follow into stage 2.
        seed: of the k-means starts.
    """
    concepts, beliefs = evidence.concepts, evidence.beliefs
    ratio = beliefs.log_ratio
    alignment = fact_alignment(concepts, ratio)
    judged = np.flatnonzero(~np.isnan(alignment))
    if len(judged) < 2 or not concepts.names:
        return []
    grouping = choose_k(fact_vectors[judged], FACT_KS, seed=seed)
    everywhere = np.asarray(concepts.by_fact[judged].sum(0)).ravel()
    mentioned = concepts.mentions()
    pairs, used = [], set[int]()
    for facts in worst_groups(grouping.labels, alignment[judged], least=MIN_FACTS)[:clusters]:
        members = judged[facts]
        score = log_odds(np.asarray(concepts.by_fact[members].sum(0)).ravel(), len(members), everywhere, len(judged))
        t = next((int(c) for c in np.argsort(-score, kind="stable") if int(c) not in used), None)
        if t is None or not mentioned[:, t].any():
            continue
        used.add(t)
        error = error_share(t, ratio[mentioned[:, t], t])
        rows = judge_rows(concepts, beliefs, error)
        order = _stage_two(members, concepts.facts.row, alignment, image_vectors, rows.shown, seed=seed)
        banned = other_names(concepts, t)
        order = order[~banned[order]]
        if len(order):
            pairs.append(
                make_pair(
                    concepts, beliefs, error, rows, order, scores=np.zeros(len(order)), tried=len(order) * clusters
                )
            )
    return pairs


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


def _stage_two(
    members: Sequence[int] | NDArray[np.int64],
    row_of_fact: NDArray[np.int64],
    alignment: NDArray[np.floating],
    image_vectors: NDArray[np.float32],
    shown: NDArray[np.floating],
    *,
    seed: int,
) -> NDArray[np.int64]:
    """Features in the order in which they set the worst aligned image cluster apart."""
    rows = np.unique(row_of_fact[members])
    group = worst_images(rows, row_of_fact[members], alignment[members], image_vectors, seed=seed)
    score = log_odds(shown[group].sum(0), len(group), shown.sum(0), len(shown))
    return np.argsort(-score, kind="stable")
