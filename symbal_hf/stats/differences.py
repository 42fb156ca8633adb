"""How far two shares differ: intervals and exact tests, for shares of different rows and of the same rows."""

from __future__ import annotations

from math import sqrt

from symbal_hf.stats.contingency import wilson


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
