"""Spherical k-means, the exact cosine silhouette in O(N k D), and the choice of k, on arrays and memory maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

Floats = NDArray[np.floating]
Labels = NDArray[np.int64]
Integer = TypeVar("Integer", bound=np.integer)
ROUNDING = 1e-12  # a mean cosine distance below this is zero: the vectors are alike but for rounding
SAMPLE = 50_000  # vectors that each k is trained on where there are more
PER_CLUSTER = 256  # training vectors per cluster beyond which faiss itself sees no gain
REFITS = 3  # of the k's trained on a sample, how many are trained again on everything
BLOCK = 4096  # rows of a large array that are held as float32 at a time


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


def starts(x: NDArray[np.float32], k: int, *, seed: int = 0) -> NDArray[np.float32]:
    """Rows (k, D) of the unit `x` (N, D) to start from: greedy k-means++ (Arthur & Vassilvitskii 2007)."""
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

    All rows are trained on, as float32 in memory; on GPUs where faiss has some. On CPUs a seed gives the same labels
    each time.

    Raises:
        ValueError: k outside [1, N].
    """
    x = np.ascontiguousarray(unit(x))
    if not 1 <= k <= len(x):
        raise ValueError(f"k={k} clusters asked of {len(x)} vectors; k must be in [1, {len(x)}].")
    index, _ = _train(x, k, seed=seed, iterations=iterations)
    return _renumbered(index.search(x, 1)[1][:, 0])


def silhouette_samples(x: Floats, labels: Labels, *, chunk: int = 1024) -> NDArray[np.float64]:
    """Exact cosine silhouette of every row: (N,) float64 in [-1, 1], 0 for singletons (Rousseeuw 1987).

    The mean cosine distance from a unit vector to a cluster needs only the sum of the cluster's vectors, so the
    cost is N k D instead of N^2 D. Rows are taken `chunk` at a time, few enough to stay in the processor's cache; `x`
    may be a memory map.

    Raises:
        ValueError: fewer than 2 or more than N-1 clusters.
    """
    _, labels = np.unique(labels, return_inverse=True)
    k = int(labels.max()) + 1 if len(labels) else 0
    if not 2 <= k < len(x):
        raise ValueError(f"the silhouette needs 2 to N-1 = {len(x) - 1} clusters, got {k}.")
    out = np.empty(len(x))
    for part, (scores,) in _silhouettes(x, [labels], chunk):
        out[part] = scores
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
    sample: int = SAMPLE,
    progress: Callable[[Sequence[int]], Sequence[int]] = lambda ks: ks,
) -> Clustering:
    """Cluster at each k that fits the data and keep the one with the best mean silhouette (paper section 4.1).

    Beyond `sample` vectors each k is trained on that many, and all vectors are assigned and scored; the best three k's
    are then trained on all vectors from where the sample left them, and the best of these is kept. The vectors are
    read a few thousand at a time, all k's in one pass, so that `x` may be a memory map larger than memory.

    Data too small for any k in `ks` (fewer than three distinct vectors) comes back as one cluster.

    Args:
        x: (N, D) float16, float32 or float64 of any length; an array or a memory map.
        ks: numbers of clusters to try.
        seed: of the sample and of the k-means starts.
        iterations: of k-means, at most.
        sample: vectors to train each k on; 256 for each cluster at least.
        progress: wraps the loop over the k's that are trained.

    Raises:
        ValueError: a value in `x` that is not finite, where there are more than `sample` vectors.
    """
    distinct = _distinct(x, max(ks, default=0))
    usable = sorted({k for k in ks if 2 <= k < min(len(x), distinct + 1)})
    if not usable:
        return Clustering(np.zeros(len(x), np.int64), 1)
    sample = max(sample, PER_CLUSTER * usable[-1])
    if len(x) > sample:
        return _choose_by_sample(x, usable, sample, seed=seed, iterations=iterations, progress=progress)
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


def _choose_by_sample(
    x: Floats,
    ks: Sequence[int],
    sample: int,
    *,
    seed: int,
    iterations: int,
    progress: Callable[[Sequence[int]], Sequence[int]],
) -> Clustering:
    rows = np.random.default_rng(seed).choice(len(x), sample, replace=False, shuffle=False)
    few = np.ascontiguousarray(unit(x[np.sort(rows)]))  # in the order of the file
    centres = [_train(few, k, seed=seed, iterations=iterations)[1] for k in progress(ks)]
    labels, sums = _assign(x, centres)
    scores = _mean_silhouettes(x, labels)
    best = sorted(range(len(ks)), key=lambda i: -scores[i])[:REFITS]
    groups = _refit(
        x, [centres[i] for i in best], [labels[i] for i in best], [sums[i] for i in best], iterations=iterations
    )
    for i, score in zip(best, _mean_silhouettes(x, groups), strict=True):
        scores[i] = score
    winner = max(best, key=lambda i: scores[i])
    if not np.isfinite(scores[winner]):
        return Clustering(np.zeros(len(x), np.int64), 1)
    final = _renumbered(groups[best.index(winner)]).astype(np.int64)
    sweep = tuple((k, score) for k, score in zip(ks, scores, strict=True) if np.isfinite(score))
    return Clustering(final, int(final.max()) + 1, scores[winner], sweep)


def _distinct(x: Floats, most: int) -> int:
    """Number of directions in `x`, as far as six digits tell them apart; `most` where there are as many or more."""
    seen = set[bytes]()
    for _, block in _blocks(x):
        for row in block.round(6) + 0.0:  # turns -0 into 0
            seen.add(row.tobytes())
            if len(seen) >= most:
                return most
    return len(seen)


def _blocks(x: Floats) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Unit rows of `x`, a block at a time, and which rows they are."""
    for start in range(0, len(x), BLOCK):
        part = slice(start, min(start + BLOCK, len(x)))
        with np.errstate(invalid="ignore"):  # infinite values: `_assign` names their row
            block = np.ascontiguousarray(unit(x[part]))
        yield part, block


def _train(x: NDArray[np.float32], k: int, *, seed: int, iterations: int) -> tuple[Any, NDArray[np.float32]]:
    """An index of k centres trained on every unit row of `x`, and the centres (k, D)."""
    import faiss

    # faiss trains on 256 points per centroid by default and says so nowhere but in its own log.
    kmeans = faiss.Kmeans(
        x.shape[1],
        k,
        niter=iterations,
        spherical=True,
        seed=seed + 1,
        max_points_per_centroid=len(x),
        min_points_per_centroid=1,
        gpu=faiss.get_num_gpus(),
    )
    kmeans.train(x, init_centroids=starts(x, k, seed=seed))  # random rows would leave whole groups without a centroid
    return kmeans.index, cast(NDArray[np.float32], kmeans.centroids)


def _index(centres: NDArray[np.float32]) -> Any:
    """What finds the nearest of `centres` (k, D), on GPUs where faiss has some."""
    import faiss

    index = faiss.IndexFlatIP(centres.shape[1])
    index.add(np.ascontiguousarray(centres))
    return faiss.index_cpu_to_all_gpus(index) if faiss.get_num_gpus() else index


def _assign(
    x: Floats, centres: Sequence[NDArray[np.float32]]
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.float64]]]:
    """For each set of centres (k, D) the nearest one of every row (N,), and the sums (k, D) of the rows of each."""
    indexes = [_index(c) for c in centres]
    labels = [np.empty(len(x), np.int32) for _ in centres]
    sums = [np.zeros(c.shape) for c in centres]
    for part, block in _blocks(x):
        if not np.isfinite(block.sum()):  # faiss would give label -1
            row = part.start + int(np.argmin(np.isfinite(block).all(1)))
            raise ValueError(f"vector {row} holds a value that is not finite; leave it out or embed it again.")
        for index, own, total in zip(indexes, labels, sums, strict=True):
            own[part] = index.search(block, 1)[1][:, 0]
            total += _members(own[part], len(total)) @ block
    return labels, sums


def _refit(
    x: Floats,
    centres: Sequence[NDArray[np.float32]],
    labels: list[NDArray[np.int32]],
    sums: list[NDArray[np.float64]],
    *,
    iterations: int,
) -> list[NDArray[np.int32]]:
    """Labels after Lloyd's steps over every row, for several sets of centres at once, until no label moves."""
    for _ in range(iterations):
        # A centre that lost all its vectors stays where it was.
        centres = [np.where(s.any(axis=1, keepdims=True), unit(s), c) for s, c in zip(sums, centres, strict=True)]
        before = labels
        labels, sums = _assign(x, centres)
        if all(np.array_equal(a, b) for a, b in zip(before, labels, strict=True)):
            break
    return labels


def _members(own: NDArray[np.integer], k: int, weight: NDArray[np.floating] | None = None) -> sparse.csc_matrix:
    """(k, n) matrix that sums the rows of each of k clusters, as float32 unless weighted by float64."""
    from scipy import sparse

    weight = np.ones(len(own), np.float32) if weight is None else weight
    return sparse.csc_matrix((weight, own, np.arange(len(own) + 1)), shape=(k, len(own)))


def _renumbered(labels: NDArray[Integer]) -> NDArray[Integer]:
    """Labels (N,) >= 0 without the gaps that empty clusters leave, in the same order."""
    return (np.cumsum(np.bincount(labels) > 0) - 1).astype(labels.dtype)[labels]


def _silhouettes(
    x: Floats, labelings: Sequence[NDArray[np.integer]], chunk: int
) -> Iterator[tuple[slice, list[NDArray[np.float64]]]]:
    """Silhouettes of `chunk` rows at a time, and which rows, under each of several labelings without empty clusters."""
    counts = [np.bincount(labels) for labels in labelings]
    sums = [np.zeros((len(count), x.shape[1])) for count in counts]
    length = np.empty(len(x))
    parts = [slice(start, min(start + chunk, len(x))) for start in range(0, len(x), chunk)]
    for part in parts:
        block = np.asarray(x[part], np.float64)
        length[part] = np.sqrt(np.einsum("nd,nd->n", block, block))
        scale = 1 / np.where(length[part] > 0, length[part], 1)
        for labels, total in zip(labelings, sums, strict=True):
            total += _members(labels[part], len(total), scale) @ block
    for part in parts:
        block = np.asarray(x[part], np.float64)
        scale = 1 / np.where(length[part] > 0, length[part], 1)
        yield (
            part,
            [
                _scores((block @ total.T) * scale[:, None], labels[part], count, length[part] > 0)
                for labels, count, total in zip(labelings, counts, sums, strict=True)
            ],
        )


def _scores(
    total: NDArray[np.float64], own: NDArray[np.integer], count: NDArray[np.integer], itself: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Silhouettes (n,) from the similarities (n, k) to the sums of clusters of `count` vectors.

    A vector's distance to itself is zero by definition, whatever rounding says; a zero vector's, which has no
    `itself`, is one.
    """
    here, own_count = np.arange(len(own)), count[own]
    a = (own_count - 1 - (total[here, own] - itself)) / np.maximum(own_count - 1, 1)
    other = 1 - total / count
    other[here, own] = np.inf
    b = other.min(1)
    a[a < ROUNDING], b[b < ROUNDING] = 0, 0
    size = np.maximum(a, b)
    return np.where((own_count > 1) & (size > 0), (b - a) / np.where(size > 0, size, 1), 0)


def _mean_silhouettes(x: Floats, labelings: Sequence[NDArray[np.integer]]) -> list[float]:
    """The mean silhouette under each labeling, in two passes over `x`; -inf where all rows share one cluster."""
    scores = [-np.inf] * len(labelings)
    several = [i for i, labels in enumerate(labelings) if labels.min() < labels.max()]
    for i in several:
        scores[i] = 0.0
    for _, parts in _silhouettes(x, [_renumbered(labelings[i]) for i in several], 1024):
        for i, part in zip(several, parts, strict=True):
            scores[i] += float(part.sum()) / len(x)
    return scores
