"""2x2 tables: association, risk ratio, how far two shares differ, exact tests, intervals, multiple testing."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Correction = Literal["bonferroni", "holm", "bh"]
Z95 = 1.959963984540054


def cramers_v(a: ArrayLike, n_feature: ArrayLike, n_error: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Signed phi (Cramér's V of a 2x2 table) in [-1, 1]; 0 where a margin is empty.

    Args:
        a: rows with both the feature and the error.
        n_feature: rows with the feature.
        n_error: rows with the error.
        n: all rows.
    """
    a, n1, m, n = (np.asarray(v, dtype=np.float64) for v in (a, n_feature, n_error, n))
    spread = n1 * (n - n1) * m * (n - m)
    return np.where(spread > 0, (a * n - n1 * m) / np.sqrt(np.where(spread > 0, spread, 1)), 0.0)


def fisher_greater(a: ArrayLike, n_feature: ArrayLike, n_error: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """One-sided exact p-values P(X >= a), X hypergeometric (Fisher), for arrays that broadcast together.

    The tail is summed from its largest term by the ratio of neighbouring terms, all tables at once; the lower tail
    is summed instead where `a` lies below the mean, so that every sum starts at its largest term.

    Raises:
        ValueError: a table with a negative cell.
    """
    a, n1, m, n = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (a, n_feature, n_error, n)))
    shape = a.shape
    a, n1, m, n = (v.ravel() for v in (a, n1, m, n))
    low, high = np.maximum(0, n1 + m - n), np.minimum(n1, m)
    if ((a < low) | (a > high) | (n1 > n) | (m > n)).any():
        i = int(np.argmax((a < low) | (a > high) | (n1 > n) | (m > n)))
        raise ValueError(
            f"no 2x2 table has a={a[i]:g} with margins {n1[i]:g}, {m[i]:g} of {n[i]:g}; "
            f"a must be in [{low[i]:g}, {high[i]:g}]."
        )
    upper = a > n1 * m / np.maximum(n, 1)
    x = np.where(upper, a, a - 1)
    empty = ~upper & (x < low)

    x = np.maximum(x, low)
    log_start = _log_choose(m, x) + _log_choose(n - m, n1 - x) - _log_choose(n, n1)
    total, term = np.ones_like(x), np.ones_like(x)
    live = np.arange(len(x))
    while len(live):
        xi, n1i, mi, ni, up = x[live], n1[live], m[live], n[live], upper[live]
        rise = (n1i - xi) * (mi - xi) / ((xi + 1) * (ni - n1i - mi + xi + 1))
        fall = xi * (ni - n1i - mi + xi) / np.maximum((n1i - xi + 1) * (mi - xi + 1), 1)
        term[live] *= np.where(up, rise, fall)
        total[live] += term[live]
        x[live] += np.where(up, 1, -1)
        live = live[term[live] > total[live] * 1e-17]
    tail = np.exp(log_start) * total
    return np.clip(np.where(empty, 1.0, np.where(upper, tail, 1 - tail)), 0, 1).reshape(shape)


def stratified_greater(
    a: float, n_feature: NDArray[np.integer], n_error: NDArray[np.integer], n: NDArray[np.integer]
) -> float:
    """One-sided exact p-value P(X >= a) of S 2x2 tables at once; X is the sum of their hypergeometric counts.

    Rows are compared within their stratum alone, as by Cochran, Mantel and Haenszel, but exactly (Gart 1970). With one
    stratum it is `fisher_greater`.

    Args:
        a: rows with both the feature and the error, over all strata.
        n_feature: (S,) rows with the feature; `n_error` and `n` likewise.
    """
    total = np.ones(1)
    for n1, m, size in zip(n_feature, n_error, n, strict=True):
        counts = np.arange(max(0, n1 + m - size), min(n1, m) + 1)
        chance = np.exp(_log_choose(m, counts) + _log_choose(size - m, n1 - counts) - _log_choose(size, n1))
        total = np.convolve(total, np.concatenate([np.zeros(counts[0]), chance]))
    return float(np.clip(total[int(a) :].sum(), 0, 1))


def _log_choose(top: ArrayLike, bottom: ArrayLike) -> NDArray[np.float64]:
    from scipy.special import gammaln

    top, bottom = np.asarray(top, np.float64), np.asarray(bottom, np.float64)
    return gammaln(top + 1) - gammaln(bottom + 1) - gammaln(top - bottom + 1)


def corrected(p: ArrayLike, *, tried: float | None = None, method: Correction = "bonferroni") -> NDArray[np.float64]:
    """p-values corrected for the `tried` tests they were picked from (default: the ones given), in [0, 1]."""
    p = np.asarray(p, dtype=np.float64)
    tried = p.size if tried is None else tried
    if tried < p.size:
        raise ValueError(f"tried={tried} is fewer than the {p.size} p-values given; count every test that was made.")
    if method == "bonferroni" or p.size == 0:
        return np.minimum(p * tried, 1)
    order = np.argsort(p)
    out = np.empty_like(p)
    if method == "holm":
        out[order] = np.maximum.accumulate(p[order] * (tried - np.arange(p.size)))
    else:
        steps = p[order] * tried / np.arange(1, p.size + 1)
        out[order] = np.minimum.accumulate(steps[::-1])[::-1]
    return np.minimum(out, 1)


def wilson(successes: float, n: float, *, z: float = Z95) -> tuple[float, float]:
    """Wilson score interval of a share; (0, 1) when nothing was observed (Wilson 1927)."""
    if n <= 0:
        return 0.0, 1.0
    share, z2 = successes / n, z * z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))


def risk_ratio(a: float, n1: float, b: float, n0: float) -> tuple[float, float, float]:
    """Risk of the error with the feature over the risk without, with its 95 % interval (Katz, log scale).

    Half a count is added to each cell when one of them is zero, so that the ratio stays finite.

    Args:
        a: errors among the `n1` rows with the feature.
        b: errors among the `n0` rows without it.
    """
    if n1 <= 0 or n0 <= 0:
        return float("nan"), 0.0, float("inf")
    if a == 0 or b == 0:
        a, b, n1, n0 = a + 0.5, b + 0.5, n1 + 1, n0 + 1
    ratio = (a / n1) / (b / n0)
    half = Z95 * np.sqrt(max(1 / a - 1 / n1 + 1 / b - 1 / n0, 0))
    return float(ratio), float(ratio * np.exp(-half)), float(ratio * np.exp(half))


def difference_interval(a: float, n_a: float, b: float, n_b: float) -> tuple[float, float]:
    """95 % interval in [-1, 1] of a / n_a - b / n_b, shares of different rows.

    Each end joins the Wilson intervals of both shares (Newcombe, Statistics in Medicine 17:873, 1998, method 10).

    Args:
        a: rows of the `n_a` that have the property; `b` of the `n_b` likewise.
    """
    if n_a <= 0 or n_b <= 0:
        return -1.0, 1.0
    (p, low_p, high_p), (q, low_q, high_q) = _share(a, n_a), _share(b, n_b)
    low = (p - q) - sqrt((p - low_p) ** 2 + (high_q - q) ** 2)
    high = (p - q) + sqrt((high_p - p) ** 2 + (q - low_q) ** 2)
    return max(low, -1.0), min(high, 1.0)


def paired_interval(both: float, only_a: float, only_b: float, neither: float) -> tuple[float, float]:
    """95 % interval in [-1, 1] of the share of A minus the share of B over the same rows.

    As `difference_interval`, but that it takes account of how far the two go together (Newcombe, Statistics in Medicine
    17:2635, 1998, method 10).

    Args:
        both: rows that have the property in A and in B; the others likewise.
    """
    n = both + only_a + only_b + neither
    if n <= 0:
        return -1.0, 1.0
    (p, low_p, high_p), (q, low_q, high_q) = _share(both + only_a, n), _share(both + only_b, n)
    together = both * neither - only_a * only_b
    if together > 0:
        together = max(together - n / 2, 0.0)
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    phi = together / sqrt(margins) if margins > 0 else 0.0
    down = (p - low_p) ** 2 - 2 * phi * (p - low_p) * (high_q - q) + (high_q - q) ** 2
    up = (high_p - p) ** 2 - 2 * phi * (high_p - p) * (q - low_q) + (q - low_q) ** 2
    return max((p - q) - sqrt(max(down, 0.0)), -1.0), min((p - q) + sqrt(max(up, 0.0)), 1.0)


def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test, from the rows in which the two differ; 1 where there are none."""
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0


def fisher_two_sided(a: int, n_a: int, b: int, n_b: int) -> float:
    """Two-sided exact p-value (Fisher) that the shares a / n_a and b / n_b of different rows are one."""
    from scipy.stats import fisher_exact

    return float(fisher_exact([[a, n_a - a], [b, n_b - b]]).pvalue)


def _share(a: float, n: float) -> tuple[float, float, float]:
    """The share, and the ends of its Wilson interval."""
    return a / n, *wilson(a, n)
