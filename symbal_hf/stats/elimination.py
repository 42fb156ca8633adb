"""Which of several groups is the worst, from samples of their members: a group that surely is not is asked no further.

Successive elimination. The group that looks worst is asked about in full, so that its value is exact; every other one
whose upper bound lies below that is out, and the rest is sampled further. The group that truly is worst can be lost
only if its own bound fails, at one of the few sizes of its sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SHARES = (0.1, 0.15, 0.22, 0.33, 0.5, 0.75, 1.0)  # of a group's members that its sample grows by
ERROR = 0.05  # that the worst group is lost
EACH = ERROR / (len(SHARES) - 1)  # at one size of its sample; the last is no sample

Z = float(stats.norm.isf(EACH))

Values = tuple[NDArray[np.float64], NDArray[np.float64]]


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
    sizes: Sequence[int],
    ask: Callable[[NDArray[np.int64]], bool],
    values: Callable[[], Values],
    *,
    settles: Callable[[int], bool] = lambda group: True,
    floor: float = -np.inf,
    least: int = 1,
    most: int = 5,
) -> Outcome:
    """Find the group of the largest value, and the next where that does not settle the matter.

    Args:
        sizes: of the groups.
        ask: gets how many members of each group to have asked about, the first in a random order that it keeps; returns
            whether all of them were.
        values: of each group its value by what was asked, and a bound that its true value exceeds with probability
            `EACH` at most; they are equal where all members were asked about.
        settles: whether there is no need to look on.
        floor: groups whose value is less than that are of no interest.
        least: members of each group that are asked about at first, where it has so many.
        most: groups that are looked at.
    """
    size, level = np.asarray(sizes, np.int64), np.zeros(len(sizes), np.int64)
    share, worst, wanted = np.array(SHARES), list[int](), np.zeros(len(sizes), np.int64)

    def grown() -> NDArray[np.int64]:
        count = np.ceil(share[level] * size - 1e-9).astype(np.int64)
        return np.minimum(np.maximum(count, least), size)

    wanted = grown()
    whole = ask(wanted)
    while len(worst) < min(most, len(size)):
        value, upper = values()
        free = np.ones(len(size), bool)
        free[worst] = False
        leader = int(np.where(free, value, -np.inf).argmax())
        rivals = free & (wanted < size) & (upper > max(value[leader], floor))
        if whole and wanted[leader] < size[leader] and upper[leader] > floor:
            level[leader] = len(SHARES) - 1
        elif whole and (rivals := rivals & (np.arange(len(size)) != leader)).any():
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


def upper_mean(mean: NDArray[np.float64], n: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.float64]:
    """Bounds that the means of groups exceed with probability `EACH` at most, by means of samples, values in [0, 1].

    The upper end of Wilson's score interval (1927), with the correction for samples that are a part of their group.

    Args:
        mean: (G,) of the samples.
        n: (G,) sizes of the samples; where one is 0 the bound is 1.
        size: (G,) of the groups.
    """
    known = np.maximum(n, 1) * np.maximum(size - 1, 1) / np.maximum(size - n, 1)
    ratio = Z**2 / known
    spread = np.sqrt(mean * (1 - mean) / known + ratio / known / 4)
    upper = (mean + ratio / 2 + Z * spread) / (1 + ratio)
    return np.where(n >= size, mean, np.where(n > 0, upper, 1.0))
