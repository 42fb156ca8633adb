"""Names for a group of rows without a language model: phrases that it uses more than the background does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def log_odds(
    inside: NDArray[np.floating], n_inside: float, everywhere: NDArray[np.floating], n_everywhere: float
) -> NDArray[np.float64]:
    """(P,) z-scores of the log-odds of each phrase in a group against the rest, with the whole as prior.

    Args:
        inside: (P,) how many of the group's `n_inside` members use the phrase (expected counts are fine).
        everywhere: (P,) the same over all `n_everywhere` members.

    Source: the informative Dirichlet prior of Monroe, Colaresi and Quinn (2008), weighing as much as ten members.
    """
    prior = 10.0 * everywhere / max(n_everywhere, 1)
    outside, n_outside = everywhere - inside, n_everywhere - n_inside

    def odds(count: NDArray[np.floating], n: float) -> NDArray[np.float64]:
        return np.log(count + prior + 1e-9) - np.log(np.maximum(n + 10.0 - count - prior, 1e-9))

    spread = 1 / (inside + prior + 1e-9) + 1 / (outside + prior + 1e-9)
    return (odds(inside, n_inside) - odds(outside, n_outside)) / np.sqrt(spread)
