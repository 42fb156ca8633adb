"""Whether two shares are the same within a margin: two one-sided score tests.

That no difference is significant does not say that there is none. Equality is claimed only where both "A is larger by
the margin or more" and "B is larger by the margin or more" are rejected (Schuirmann, J Pharmacokinet Biopharm 15:657,
1987). The standard error of each is that under its hypothesis, so that it is not 0 where all rows agree. By
enumeration at a level of .05, with 40 to 400 rows a side and margins of .05 and .1, equality is claimed in .058 at most
where both are just the margin apart.
"""

from __future__ import annotations

from math import sqrt


def equivalent(a: int, n_a: int, b: int, n_b: int, margin: float) -> float:
    """p-value in [0, 1] against a / n_a and b / n_b, shares of different rows, being `margin` or more apart.

    The score test of Farrington and Manning (Statistics in Medicine 9:1447, 1990).

    >>> round(equivalent(300, 1000, 300, 1000, 0.05), 3), round(equivalent(3, 10, 3, 10, 0.05), 3)
    (0.007, 0.404)
    """
    if n_a <= 0 or n_b <= 0:
        return 1.0
    return max(_at_least(*of, margin) for of in ((a, n_a, b, n_b), (b, n_b, a, n_a)))


def _at_least(a: int, n_a: int, b: int, n_b: int, gap: float) -> float:
    """One-sided p-value against the share of A being larger than that of B by `gap` or more."""
    from scipy.optimize import minimize_scalar
    from scipy.special import ndtr, xlogy

    def unlikely(q: float) -> float:
        p = q + gap
        return -float(xlogy(a, p) + xlogy(n_a - a, 1 - p) + xlogy(b, q) + xlogy(n_b - b, 1 - q))

    q = minimize_scalar(unlikely, bounds=(0, 1 - gap), method="bounded", options={"xatol": 1e-10}).x
    p = q + gap
    return float(ndtr((a / n_a - b / n_b - gap) / sqrt(p * (1 - p) / n_a + q * (1 - q) / n_b)))


def equivalent_paired(only_a: int, only_b: int, n: int, margin: float) -> float:
    """p-value in [0, 1] against two shares of the same `n` rows being `margin` or more apart.

    The score test of Tango (Statistics in Medicine 17:891, 1998), as two tests by Liu and others (21:231, 2002).

    Args:
        only_a: rows that have the property in A alone; `only_b` in B alone.

    >>> round(equivalent_paired(0, 0, 100, 0.05), 3), round(equivalent_paired(0, 0, 20, 0.05), 3)
    (0.011, 0.152)
    """
    if n <= 0:
        return 1.0
    return max(_at_least_paired(*of, n, margin) for of in ((only_a, only_b), (only_b, only_a)))


def _at_least_paired(only_a: int, only_b: int, n: int, gap: float) -> float:
    from scipy.special import ndtr

    # The likeliest share of rows that have it in B alone, where A has it in `gap` more than B.
    linear = -only_a - only_b + gap * (2 * n - only_a + only_b)
    alone = (sqrt(linear**2 + 8 * n * only_b * gap * (1 - gap)) - linear) / (4 * n)
    return float(ndtr((only_a - only_b - n * gap) / sqrt(n * (2 * alone + gap * (1 - gap)))))
