"""Where to plant an error so that its Cramér's V with a feature hits a target (paper section 5, appendix B)."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOLERANCE = 0.01  # a Cramér's V this near to the target has hit it


@dataclass(frozen=True)
class Plan:
    """How many captions get the error, and how strong that makes the association.

    Attributes:
        with_feature: captions to inject among the rows with the feature that lack the error's object.
        without_feature: the same among the rows without the feature.
        achieved: Cramér's V (phi) over all n rows that these counts give, in [-1, 1].
    """

    with_feature: int
    without_feature: int
    achieved: float


@dataclass(frozen=True)
class Infeasible:
    """No choice of captions reaches the target; `largest` is the Cramér's V that can be reached."""

    target: float
    largest: float


def phi(with_feature: int, without_feature: int, n_feature: int, n: int) -> float:
    """Signed phi of (error planted) x (feature present) over n rows; 0 where a margin is empty."""
    m = with_feature + without_feature
    spread = n_feature * (n - n_feature) * m * (n - m)
    return (with_feature * n - n_feature * m) / math.sqrt(spread) if spread else 0.0


def largest_v(n: int, n_feature: int, free_with: int) -> float:
    """The largest Cramér's V: the error in every free row with the feature and in no row without it."""
    return max(phi(free_with, 0, n_feature, n), 0.0)


def solve(n: int, n_feature: int, free_with: int, free_without: int, strength: float) -> Plan | Infeasible:
    """Injection counts whose Cramér's V lies within 0.01 of `strength`, or else as near to it as any counts can.

    Args:
        n: all rows.
        n_feature: rows with the feature v.
        free_with: rows with v in which t is absent, so that it can be planted.
        free_without: rows without v in which t is absent.
        strength: target Cramér's V, in (0, 1].

    Returns:
        A `Plan` of positive V, preferring about as many errors as there are rows with v; or `Infeasible` with the
        largest V.

    Raises:
        ValueError: margins that no dataset can have, or a strength outside (0, 1].
    """
    if not (0 <= free_with <= n_feature <= n and 0 <= free_without <= n - n_feature):
        raise ValueError(
            f"impossible counts: {free_with} free of {n_feature} rows with the feature and {free_without} free of "
            f"{n - n_feature} rows without it; free rows cannot outnumber their group."
        )
    if not 0 < strength <= 1:
        raise ValueError(f"strength={strength} is outside (0, 1]; the benchmark uses 0.3, 0.6 and 0.9.")
    top = largest_v(n, n_feature, free_with)
    if n_feature in (0, n) or free_with == 0 or strength > top:
        return Infeasible(strength, top)
    share = n_feature / n
    w = strength**2 * share * (1 - share)
    m_min = strength**2 * share * n / (1 - share + strength**2 * share)
    # With all free rows of v used up, more errors can only dilute: the smaller root bounds m from above.
    qa, qb, qc = share**2 + w, 2 * free_with * share + w * n, float(free_with**2)
    m_max = (qb - math.sqrt(max(qb * qb - 4 * qa * qc, 0))) / (2 * qa)
    m = min(max(n_feature, m_min), m_max)
    middle_a = m * share + strength * math.sqrt(max(m * (n - m), 0) * share * (1 - share))
    best: tuple[float, int, int] | None = None
    for a in range(max(0, math.floor(middle_a) - 3), min(free_with, math.ceil(middle_a) + 3) + 1):
        for c in range(max(0, math.floor(m - middle_a) - 3), min(free_without, math.ceil(m - middle_a) + 3) + 1):
            if (v := phi(a, c, n_feature, n)) > 0:
                best = min(best or (math.inf, 0, 0), (abs(v - strength), a, c))
    if best is None or best[0] > TOLERANCE:
        best = _scan(n, n_feature, free_with, free_without, strength, m)
    return Plan(best[1], best[2], phi(best[1], best[2], n_feature, n))


def _scan(
    n: int, n_feature: int, free_with: int, free_without: int, strength: float, m: float
) -> tuple[float, int, int]:
    """Every a with its best c by bisection: for margins so tight that nothing near the closed form will do.

    Of several counts within the tolerance, those win whose total lies nearest to `m`.
    """
    best: tuple[float, float, int, int] | None = None
    for a in range(1, free_with + 1):
        low, high = 0, min(free_without, n - a - 1)
        while low < high:  # phi falls as c grows
            middle = (low + high) // 2
            if phi(a, middle, n_feature, n) > strength:
                low = middle + 1
            else:
                high = middle
        for c in {max(low - 1, 0), low}:
            if (v := phi(a, c, n_feature, n)) > 0:
                gap = max(abs(v - strength), TOLERANCE)
                best = min(best or (math.inf, 0, 0, 0), (gap, abs(a + c - m), a, c))
    assert best is not None  # a = free_with, c = 0 reaches the largest V, which the caller checked
    return best[0], best[2], best[3]
