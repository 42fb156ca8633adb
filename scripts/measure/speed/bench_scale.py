"""Clustering of a million facts and association over ten thousand features: minutes, memory, ratios in one run."""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
from bench_json import add_json, write_json
from scipy import sparse
from scipy.stats import fisher_exact

from symbal_hf.stats.clustering import choose_k, unit
from symbal_hf.stats.contingency import fisher_greater

T = TypeVar("T")
PART = 20_000  # rows that are drawn at a time


def timed(work: Callable[[], T], *, runs: int = 1) -> tuple[T, float]:
    """What `work` gives, and its seconds: the median of `runs`."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return result, median(times)


def peak_gib() -> float:
    """Largest resident memory of this process so far, the mapped file's pages included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def facts(file: Path, n: int, d: int, groups: int, seed: int) -> np.memmap:
    """A float16 memory map (n, d) of vectors around `groups` directions, loosely, as sentence embeddings lie."""
    rng = np.random.default_rng(seed)
    centre = unit(rng.normal(size=(groups, d)))
    x = np.memmap(file, np.float16, "w+", shape=(n, d))
    for start in range(0, n, PART):
        m = min(PART, n - start)
        noise = unit(rng.standard_normal((m, d), np.float32))
        x[start : start + m] = unit(centre[rng.integers(0, groups, size=m)] + 0.8 * noise)
    x.flush()
    return np.memmap(file, np.float16, "r", shape=(n, d))


def cluster(args: argparse.Namespace) -> None:
    """A sweep over all facts; and at a size where it is affordable, against training every k on everything."""
    ks = sorted(set(np.linspace(args.k // args.ks, args.k, args.ks).round().astype(int).tolist()))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        x = facts(Path(folder) / "facts.f16", args.n, args.d, args.groups, args.seed)
        before = peak_gib()
        found, seconds = timed(lambda: choose_k(x, ks, seed=args.seed))
        peak = peak_gib()
        print(
            f"N={args.n:,}, D={args.d}, float16 memory map of {x.nbytes / 2**30:.2f} GiB, {args.groups} groups, "
            f"k in {ks}"
        )
        print(
            f"clustered and silhouetted in {seconds / 60:.2f} minutes; k={found.k}, silhouette {found.silhouette:.4f}"
        )
        print(f"peak memory {peak:.2f} GiB (before it {before:.2f} GiB)")
        figures = {f"minutes to cluster and silhouette {args.n} facts": seconds / 60, "peak GiB of it": peak}
        n = min(args.compare, args.n)
        if not n:
            write_json(args.json, figures)
            return
        ours, ours_s = timed(lambda: choose_k(x[:n], ks, seed=args.seed, sample=args.sample))
        full, full_s = timed(lambda: choose_k(x[:n], ks, seed=args.seed, sample=n))
    print(f"\nN={n:,} of them, each k trained on {args.sample:,} or on all\n")
    print("| trained on | seconds | k | silhouette |")
    print("| --- | ---: | ---: | ---: |")
    print(f"| a sample, three again on all | {ours_s:.1f} | {ours.k} | {ours.silhouette:.4f} |")
    print(f"| all | {full_s:.1f} | {full.k} | {full.silhouette:.4f} |")
    print(f"\nratio {full_s / ours_s:.1f}x")
    figures[f"sweep over {n} facts, every k on everything / ours"] = full_s / ours_s
    write_json(args.json, figures)


def shown(n: int, features: int, errors: np.ndarray, rng: np.random.Generator) -> sparse.csr_matrix:
    """(features, n) which image shows which feature: few are common, and every 50th goes with errors."""
    share = np.clip(0.3 / np.arange(1, features + 1) ** 0.7, 5 / n, None)
    wrong = np.flatnonzero(errors)
    rows = []
    for f in range(features):
        at = rng.integers(0, n, size=rng.poisson(share[f] * n))
        if f % 50 == 0:
            at = np.r_[at, wrong[rng.random(len(wrong)) < share[f]]]
        rows.append(np.unique(at).astype(np.int32))
    ends = np.cumsum([0, *map(len, rows)])
    return sparse.csr_matrix((np.ones(ends[-1], np.int32), np.concatenate(rows), ends), shape=(features, n))


def association(args: argparse.Namespace) -> None:
    """Counts and exact p-values of every feature, against scipy's test on some of them, one after the other."""
    rng = np.random.default_rng(args.seed)
    errors = rng.random(args.n) < args.errors
    has = shown(args.n, args.features, errors, rng)

    def count() -> tuple[np.ndarray, np.ndarray]:
        return has @ errors.astype(np.int32), np.diff(has.indptr)

    (a, n1), count_s = timed(count, runs=args.runs)
    m = int(errors.sum())
    p, test_s = timed(lambda: fisher_greater(a, n1, m, args.n), runs=args.runs)
    some = np.unique(np.linspace(0, args.features - 1, min(args.sample, args.features)).astype(int))  # common to rare

    def one_by_one() -> list[float]:
        out = []
        for f in some:
            table = [[a[f], n1[f] - a[f]], [m - a[f], args.n - n1[f] - m + a[f]]]
            out.append(float(fisher_exact(table, alternative="greater").pvalue))
        return out

    theirs, some_s = timed(one_by_one, runs=args.runs)
    apart = np.abs(p[some] - theirs)
    relative = apart / np.maximum(theirs, 1e-300)
    whole = some_s / len(some) * args.features
    print(f"{args.features:,} features x {args.n:,} images, {m:,} errors, {has.nnz:,} features shown\n")
    print("| work | seconds |")
    print("| --- | ---: |")
    print(f"| counts from the sparse matrix | {count_s:.3f} |")
    print(f"| fisher_greater, all features | {test_s:.3f} |")
    print(f"| scipy's fisher_exact, {len(some):,} features | {some_s:.2f} |")
    print(f"| the same, extrapolated to {args.features:,} | {whole:.1f} |")
    print(f"\ncounts and tests together {count_s + test_s:.3f} s, the median of {args.runs} runs each")
    print(f"ratio {whole / (count_s + test_s):.0f}x (extrapolated; scipy is given the counts)")
    print(f"p-values from {min(theirs):.1e} to {max(theirs):.2f}; largest difference {apart.max():.1e}")
    print(f"largest difference relative to the p-value {relative.max():.1e}")
    name = f"association of {args.features} features over {args.n} images, scipy's loop / ours"
    figures = {name: whole / (count_s + test_s), "largest difference of its p-values": float(apart.max())}
    write_json(args.json, figures)


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("cluster", help=cluster.__doc__)
    one.add_argument("--n", type=int, default=1_000_000, help="facts")
    one.add_argument("--d", type=int, default=384, help="dimensions")
    one.add_argument("--k", type=int, default=100, help="largest number of clusters")
    one.add_argument("--ks", type=int, default=12, help="how many numbers of clusters are tried")
    one.add_argument("--groups", type=int, default=60, help="groups that are there")
    one.add_argument("--compare", type=int, default=200_000, help="facts to train every k on, for the ratio; 0: none")
    one.add_argument("--sample", type=int, default=50_000, help="facts to train each k on in the comparison")
    one.add_argument("--folder", type=Path, help="where the memory map goes; by default the system's temporary folder")
    one.set_defaults(run=cluster)
    two = commands.add_parser("association", help=association.__doc__)
    two.add_argument("--features", type=int, default=10_000)
    two.add_argument("--n", type=int, default=100_000, help="images")
    two.add_argument("--errors", type=float, default=0.03, help="share of the images with the error")
    two.add_argument("--sample", type=int, default=500, help="features that scipy tests")
    two.add_argument("--runs", type=int, default=5, help="runs of each side, of which the median counts")
    two.set_defaults(run=association)
    for command in (one, two):
        command.add_argument("--seed", type=int, default=0)
        add_json(command)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
