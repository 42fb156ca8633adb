"""Which of several groups is the worst, from samples of their members: a group that surely is not is asked no further.

Successive elimination. The group that looks worst is asked about in full, so that its value is exact; every other one
whose upper bound lies below that is out, and the rest is sampled further. The group that truly is worst can be lost
only if its own bound fails, at one of the few sizes of its sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SHARES = (0.1, 0.15, 0.22, 0.33, 0.5, 0.75, 1.0)  # of a group's members that its sample grows by
ERROR = 0.05  # that the worst group is lost
EACH = ERROR / (len(SHARES) - 1)  # at one size of its sample; the last is no sample

Z = float(stats.norm.isf(EACH))

Values = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Outcome:
    """What is known at the end.

    Attributes:
        worst: the groups that were told apart from the rest, the worst first; the last may be open.
        rivals: groups that may still be worse than the last of them; none where that is settled at `ERROR`.
    """

    worst: tuple[int, ...]
    rivals: tuple[int, ...] = ()


def eliminate(
    size: NDArray[np.int64],
    ask: Callable[[NDArray[np.int64]], bool],
    values: Callable[[], Values],
    *,
    settles: Callable[[int], bool] = lambda group: True,
    floor: float = -np.inf,
    eager: float = -np.inf,
    least: int = 1,
) -> Outcome:
    """Find the group of the largest value, and the next where that does not settle the matter.

    Args:
        size: (G,) members of each group.
        ask: gets how many members of each group to have asked about, the first in a random order that it keeps; returns
            whether all of them were.
        values: of each group its value by what was asked, a lower bound, and an upper one that its true value exceeds
            with probability `EACH` at most; all three are equal where all members were asked about. Nothing is lost by
            a lower bound that fails: it says which group is worth asking about in full.
        settles: whether there is no need to look on.
        floor: groups whose value is less than that are of no interest.
        eager: the group that looks worst is asked about in full once its lower bound is more than that.
        least: members of each group that are asked about at first, where it has so many.
    """
    share, level, worst = np.array(SHARES), np.zeros(len(size), np.int64), list[int]()

    def grown() -> NDArray[np.int64]:
        count = np.ceil(share[level] * size - 1e-9).astype(np.int64)
        return np.minimum(np.maximum(count, least), size)

    wanted = grown()
    whole = ask(wanted)
    while len(worst) < len(size):
        value, lower, upper = values()
        free = np.ones(len(size), bool)
        free[worst] = False
        leader = int(np.where(free, value, -np.inf).argmax())
        exact = wanted[leader] >= size[leader]
        rivals = free & (wanted < size) & (upper > max(value[leader] if exact else -np.inf, floor))
        if whole and not exact and lower[leader] > eager:
            level[leader] = len(SHARES) - 1
        elif whole and rivals.any():
            level[rivals] += 1
        else:
            if not whole or value[leader] >= floor:
                worst.append(leader)
            if not whole or value[leader] < floor or settles(leader):
                rivals[leader] = False
                return Outcome(tuple(worst), tuple(np.flatnonzero(rivals).tolist()))
            continue
        wanted = np.maximum(wanted, grown())
        whole = ask(wanted)
    return Outcome(tuple(worst))


def bounds(mean: NDArray[np.float64], n: NDArray[np.int64], size: NDArray[np.int64]) -> Values:
    """The means of samples, and bounds of the means of their groups as `eliminate` takes them; values are in [0, 1].

    The ends of Wilson's score interval (1927), with the correction for samples that are a part of their group.

    Args:
        mean: (G,) of the samples.
        n: (G,) sizes of the samples; where one is 0 nothing is known.
        size: (G,) of the groups.
    """
    known = np.maximum(n, 1) * np.maximum(size - 1, 1) / np.maximum(size - n, 1e-9)
    ratio = Z**2 / known
    spread = np.sqrt(mean * (1 - mean) / known + ratio / known / 4)
    lower, upper = ((mean + ratio / 2 + sign * Z * spread) / (1 + ratio) for sign in (-1, 1))
    lower, upper = np.minimum(lower, mean), np.maximum(upper, mean)  # whatever rounding says
    return mean, np.where(n > 0, lower, 0.0), np.where(n > 0, upper, 1.0)
