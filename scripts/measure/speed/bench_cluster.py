"""Measure, in one run and as ratios, what the silhouette from cluster sums saves over the one from all pairs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from bench_json import add_json, write_json
from sklearn.metrics import silhouette_samples as all_pairs_samples
from sklearn.metrics import silhouette_score as all_pairs_score

from symbal_hf.stats.clustering import cosine_silhouette, silhouette_samples, spherical_kmeans, unit


def seconds(work: Callable[[], object], runs: int) -> float:
    """Median wall time of `runs` calls."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def groups(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Vectors (n, d) around k directions, loosely, as sentence embeddings lie."""
    rng = np.random.default_rng(seed)
    centre = unit(rng.normal(size=(k, d)))
    return unit(centre[rng.integers(0, k, size=n)] + 0.8 * unit(rng.normal(size=(n, d))))


def main() -> None:
    """Time both sides on the same vectors and labels and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=12_000, help="vectors")
    parser.add_argument("--d", type=int, default=512, help="dimensions")
    parser.add_argument("--k", type=int, default=20, help="groups; the sweep tries k/2, k and 2k clusters")
    parser.add_argument("--runs", type=int, default=3, help="runs of each side, of which the median counts")
    parser.add_argument("--seed", type=int, default=0)
    add_json(parser)
    args = parser.parse_args()

    x = groups(args.n, args.d, args.k, args.seed)
    labels = spherical_kmeans(x, args.k, seed=args.seed)
    sweep = sorted({max(2, args.k // 2), args.k, 2 * args.k})

    def cluster_and_score(score: Callable[..., float]) -> None:
        for k in sweep:
            score(x, spherical_kmeans(x, k, seed=args.seed))

    cosine = {"metric": "cosine"}
    rows = [
        (
            f"silhouette, k={args.k}",
            seconds(lambda: cosine_silhouette(x, labels), args.runs),
            seconds(lambda: all_pairs_score(x, labels, **cosine), args.runs),
        ),
        (
            f"k-means and silhouette, k in {sweep}",
            seconds(lambda: cluster_and_score(cosine_silhouette), args.runs),
            seconds(lambda: cluster_and_score(lambda x, y: all_pairs_score(x, y, **cosine)), args.runs),
        ),
    ]
    apart = np.abs(silhouette_samples(x, labels) - all_pairs_samples(x, labels, **cosine)).max()

    print(f"N={args.n}, D={args.d}, float32, median of {args.runs} runs each, seed {args.seed}\n")
    print("| work | symbal_hf, s | scikit-learn, s | ratio |")
    print("| --- | ---: | ---: | ---: |")
    for name, ours, theirs in rows:
        print(f"| {name} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.1f}x |")
    print(f"\nlargest difference of a vector's silhouette: {apart:.1e}")
    write_json(args.json, {f"{name}, scikit-learn / ours": theirs / ours for name, ours, theirs in rows})


if __name__ == "__main__":
    main()
