"""Spherical k-means, the exact cosine silhouette in O(N k D), and the choice of k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Labels = NDArray[np.int64]
ROUNDING = 1e-12  # a mean cosine distance below this is zero: the vectors are alike but for rounding


@dataclass(frozen=True)
class Clustering:
    """A grouping of N unit vectors.

    Attributes:
        labels: (N,) int64, the cluster of each vector, in [0, k).
        k: number of non-empty clusters.
        silhouette: mean cosine silhouette in [-1, 1], or None where no sweep was asked for.
        sweep: the mean silhouette of every k that was tried.
    """

    labels: Labels
    k: int
    silhouette: float | None = None
    sweep: tuple[tuple[int, float], ...] = ()


def unit(x: Floats) -> NDArray[np.float32]:
    """Rows of `x` (N, D) scaled to length 1, as float32; zero rows stay zero."""
    x = np.asarray(x, dtype=np.float32)
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(x / np.where(norm > 0, norm, 1), np.float32)


def _seeds(x: NDArray[np.float32], k: int, seed: int) -> NDArray[np.float32]:
    """Rows of the unit `x` to start k clusters from: greedy k-means++ (Arthur & Vassilvitskii 2007)."""
    rng = np.random.default_rng(seed)
    chosen = [int(rng.integers(len(x)))]
    far = np.maximum(1 - x @ x[chosen[0]], 0)
    while len(chosen) < k:
        weight = np.cumsum(far, dtype=np.float64) if far.any() else np.arange(1.0, len(x) + 1)
        draws = np.searchsorted(weight, rng.random(2 + int(np.log(k))) * weight[-1], side="right")
        draws = np.minimum(draws, len(x) - 1)  # a product may round up to the total
        near = np.minimum(far[:, None], np.maximum(1 - x @ x[draws].T, 0))
        best = int(near.sum(0).argmin())
        chosen.append(int(draws[best]))
        far = near[:, best]
    return x[chosen]


def spherical_kmeans(x: Floats, k: int, *, seed: int = 0, iterations: int = 20) -> Labels:
    """Labels (N,) of spherical k-means over the unit rows of `x` (N, D), empty clusters renumbered away.

    Raises:
        ValueError: k outside [1, N].
    """
    import faiss

    x = np.ascontiguousarray(unit(x))
    if not 1 <= k <= len(x):
        raise ValueError(f"k={k} clusters asked of {len(x)} vectors; k must be in [1, {len(x)}].")
    # faiss trains on 256 points per centroid by default and says so nowhere but in its own log.
    kmeans = faiss.Kmeans(
        x.shape[1], k, niter=iterations, spherical=True, seed=seed + 1, max_points_per_centroid=len(x),
        min_points_per_centroid=1,
    )  # fmt: skip
    kmeans.train(x, init_centroids=_seeds(x, k, seed))  # random rows would leave whole groups without a centroid
    labels = kmeans.index.search(x, 1)[1][:, 0]
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def silhouette_samples(x: Floats, labels: Labels, *, chunk: int = 1024) -> NDArray[np.float64]:
    """Exact cosine silhouette of every row: (N,) float64 in [-1, 1], 0 for singletons (Rousseeuw 1987).

    The mean cosine distance from a unit vector to a cluster needs only the sum of the cluster's vectors, so the
    cost is N k D instead of N^2 D. Rows are taken `chunk` at a time, few enough to stay in the processor's cache.

    Raises:
        ValueError: fewer than 2 or more than N-1 clusters.
    """
    _, labels = np.unique(labels, return_inverse=True)
    count = np.bincount(labels)
    k = len(count)
    if not 2 <= k < len(x):
        raise ValueError(f"the silhouette needs 2 to N-1 = {len(x) - 1} clusters, got {k}.")
    length = np.sqrt(np.einsum("nd,nd->n", x, x, dtype=np.float64))
    scale = 1 / np.where(length > 0, length, 1)
    sums = np.zeros((k, x.shape[1]))
    for start in range(0, len(x), chunk):
        member = np.zeros((k, min(chunk, len(x) - start)))
        member[labels[start : start + chunk], np.arange(member.shape[1])] = scale[start : start + chunk]
        sums += member @ np.asarray(x[start : start + chunk], np.float64)
    out = np.empty(len(x))
    for start in range(0, len(x), chunk):
        own = labels[start : start + chunk]
        here = np.arange(len(own))
        total = (np.asarray(x[start : start + chunk], np.float64) @ sums.T) * scale[start : start + chunk, None]
        own_count = count[own]
        # A vector's distance to itself is zero by definition, whatever rounding says; a zero vector's is one.
        itself = length[start : start + chunk] > 0
        a = (own_count - 1 - (total[here, own] - itself)) / np.maximum(own_count - 1, 1)
        other = 1 - total / count
        other[here, own] = np.inf
        b = other.min(1)
        a[a < ROUNDING], b[b < ROUNDING] = 0, 0
        size = np.maximum(a, b)
        out[start : start + chunk] = np.where((own_count > 1) & (size > 0), (b - a) / np.where(size > 0, size, 1), 0)
    return out


def cosine_silhouette(x: Floats, labels: Labels) -> float:
    """Mean of `silhouette_samples`, in [-1, 1]."""
    return float(silhouette_samples(x, labels).mean())


def choose_k(
    x: Floats,
    ks: Sequence[int],
    *,
    seed: int = 0,
    iterations: int = 20,
    progress: Callable[[Sequence[int]], Sequence[int]] = lambda ks: ks,
) -> Clustering:
    """Cluster at each k that fits the data and keep the one with the best mean silhouette (paper section 4.1).

    Data too small for any k in `ks` (fewer than three distinct vectors) comes back as one cluster.
    """
    distinct = len(np.unique(unit(x).round(6), axis=0))
    usable = sorted({k for k in ks if 2 <= k < min(len(x), distinct + 1)})
    if not usable:
        return Clustering(np.zeros(len(x), np.int64), 1)
    best: tuple[float, Labels] | None = None
    sweep = []
    for k in progress(usable):
        labels = spherical_kmeans(x, k, seed=seed, iterations=iterations)
        if not 2 <= labels.max() + 1 < len(x):
            continue
        score = cosine_silhouette(x, labels)
        sweep.append((k, score))
        if best is None or score > best[0]:
            best = score, labels
    if best is None:
        return Clustering(np.zeros(len(x), np.int64), 1)
    return Clustering(best[1], int(best[1].max()) + 1, best[0], tuple(sweep))
