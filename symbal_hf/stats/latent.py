"""Whether false statements are more frequent beside a feature, where only the probability of their truth is known.

An image shows a thing with probability p. Its caption states the thing with probability m where the image shows it and
f where it does not, so with p m + (1 - p) f. Beside a feature both may differ: captions mention a thing more or less
often there, which is no error, or state it falsely more often, which is one. The test compares f alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FINE = 14  # bins to a unit of log-odds of presence; finer ones change scores by some hundredths
STEPS, CLOSE = 60, 1e-7  # of the maximum of a likelihood, at most; a gain in nats that is none
INSIDE = 0.9  # of the way to the edge of what a share can be, that a step may go
HELD = np.array([0.5, 1e-3])  # pseudo-counts that hold m (Jeffreys) and f off 0 and 1


def false_beside(
    presence: NDArray[np.floating],
    stated: NDArray[np.bool_],
    features: NDArray[np.bool_],
    *,
    odds: Sequence[float] = (1.0,),
) -> NDArray[np.float64]:
    """(K,) standard scores of "the thing is stated falsely more often beside the feature".

    They are signed roots of likelihood ratios, normal where nothing is (Wilks 1938); `scipy.stats.norm.sf` gives
    p-values.

    Args:
        presence: (M,) calibrated probability in [0, 1] that image m shows the thing.
        stated: (M,) whether its caption states it.
        features: (M, K) whether it shows each feature.
        odds: what the odds of presence may have to be multiplied by beside a feature; the smallest score counts.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> presence, feature = rng.beta(0.1, 1, 2000), rng.random(2000) < 0.1
        >>> shown = rng.random(2000) < presence
        >>> true, false = shown & (rng.random(2000) < 0.6), ~shown & (rng.random(2000) < 0.02)
        >>> beside = ~shown & feature & (rng.random(2000) < 0.3)
        >>> right, wrong = (false_beside(presence, s, feature[:, None])[0] for s in (true | false, true | beside))
        >>> bool(right < 3), bool(wrong > 6)
        (True, True)
    """
    at, middle = _binned(presence)
    total, said = (_counts(at[rows], features[rows], len(middle)) for rows in (slice(None), stated))
    z = np.full(features.shape[1], np.inf)
    for times in odds:
        shown = 1 / (1 + np.exp(-(middle + np.log([[1.0], [times]]))))  # (2, B), without and with the feature
        common, start = _fit(shown, total, said, together=True)
        apart, shares = _fit(shown, total, said, together=False, start=start)
        root = np.sqrt(2 * np.maximum(apart - common, 0)) * np.sign(shares[:, 1, 1] - shares[:, 0, 1])
        z = np.minimum(z, root)
    return z


def surplus_beside(
    presence: NDArray[np.floating], stated: NDArray[np.bool_], features: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """(K,) score test of what `false_beside` tests: for many features at once, and less exact; -inf without images.

    Its arguments are those of `false_beside`.
    """
    at, middle = _binned(presence)
    m, f = shares_stated(presence, stated)
    shown = 1 / (1 + np.exp(-middle))
    chance = shown * m + (1 - shown) * f
    per_error = ((1 - shown) / (chance * (1 - chance)))[at]  # how much a statement says of f
    expected, information = chance[at], ((1 - shown) ** 2 / (chance * (1 - chance)))[at]
    beside = features.T.astype(np.float32)
    surplus = beside @ ((stated - expected) * per_error).astype(np.float32)
    share = beside @ information.astype(np.float32)
    variance = share * (1 - share / information.sum())
    return np.where(variance > 0, surplus / np.sqrt(np.maximum(variance, 1e-12)), -np.inf)


def shares_stated(presence: NDArray[np.floating], stated: NDArray[np.bool_]) -> tuple[float, float]:
    """The shares (m, f) of images with the thing, and of images without it, whose captions state it.

    Its arguments are those of `false_beside`.
    """
    at, middle = _binned(presence)
    nothing = np.zeros((len(at), 1), bool)
    total, said = (_counts(at[rows], nothing[rows], len(middle)) for rows in (slice(None), stated))
    shown = np.tile(1 / (1 + np.exp(-middle)), (2, 1))
    m, f = _fit(shown, total, said, together=True)[1][0, 0]
    return float(m), float(f)


def _binned(presence: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(M,) the bin of each presence, and the log-odds of the mean presence in each; no bin is empty."""
    clipped = np.clip(np.asarray(presence, np.float64), 1e-4, 1 - 1e-4)
    _, at = np.unique((_logit(clipped) * FINE).astype(np.int64), return_inverse=True)
    return at, _logit(np.bincount(at, clipped) / np.bincount(at))


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(p / (1 - p))


def _counts(at: NDArray[np.int64], features: NDArray[np.bool_], bins: int) -> NDArray[np.float64]:
    """(K, 2, B) images without and with each feature, in each of B bins of presence."""
    beside = np.array([np.bincount(at[shown], minlength=bins) for shown in features.T]).reshape(-1, bins)
    return np.stack([np.bincount(at, minlength=bins) - beside, beside], 1).astype(np.float64)


def _likelihood(
    shares: NDArray[np.float64], shown: NDArray[np.float64], total: NDArray[np.float64], said: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K,) log-likelihood, held off the edges, of (K, 2, 2) shares m and f; and (K, 2, B) chance of a statement."""
    chance = np.clip(shares[:, :, :1] * shown + shares[:, :, 1:] * (1 - shown), 1e-12, 1 - 1e-12)
    held = (HELD * (np.log(shares) + np.log1p(-shares))).sum((1, 2))
    return (said * np.log(chance) + (total - said) * np.log1p(-chance)).sum((1, 2)) + held, chance


def _fit(
    shown: NDArray[np.float64],
    total: NDArray[np.float64],
    said: NDArray[np.float64],
    *,
    together: bool,
    start: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K,) largest log-likelihood, and its (K, 2, 2) shares, by Fisher scoring; f is one with `together`.

    The likelihood is concave in the shares. A step that goes too far is halved.
    """
    n = len(total)
    of_share = np.stack([shown, 1 - shown], -1)  # (2, B, 2)
    of_two = np.stack([shown**2, shown * (1 - shown), (1 - shown) ** 2], -1)
    # Shares are (m without, m with, f without, f with), or (m without, m with, f).
    tie = np.zeros((4, 3 if together else 4))
    tie[[0, 2], [0, 1]], tie[[1, 3], [2, 2 if together else 3]] = 1, 1
    shares = np.tile([0.5, 0.05], (n, 2, 1)) if start is None else start
    best, chance = _likelihood(shares, shown, total, said)
    for _ in range(STEPS):
        slope = said / chance - (total - said) / (1 - chance)
        gradient = _summed(slope, of_share) + HELD * (1 / shares - 1 / (1 - shares))
        blocks = _summed(total / (chance * (1 - chance)), of_two)[..., [0, 1, 1, 2]].reshape(n, 2, 2, 2)
        blocks += np.eye(2) * (HELD * (1 / shares**2 + 1 / (1 - shares) ** 2))[..., None]
        information = np.zeros((n, 4, 4))
        information[:, :2, :2], information[:, 2:, 2:] = blocks[:, 0], blocks[:, 1]
        small = np.linalg.solve(tie.T @ information @ tie, (gradient.reshape(n, 4) @ tie)[..., None])
        step = (tie @ small).reshape(n, 2, 2)
        room = np.where(step > 0, 1 - shares, shares) / np.maximum(np.abs(step), 1e-300)
        step *= np.minimum(1, INSIDE * room.min((1, 2)))[:, None, None]
        reached, at = _likelihood(shares + step, shown, total, said)
        for _ in range(20):
            if not (worse := reached < best - CLOSE).any():
                break
            step[worse] /= 2
            reached, at = _likelihood(shares + step, shown, total, said)
        gain = reached - best
        shares, best, chance = shares + step, reached, at
        if (gain < CLOSE).all():
            break
    return best, shares


def _summed(values: NDArray[np.float64], design: NDArray[np.float64]) -> NDArray[np.float64]:
    """(K, 2, J) sums over the bins of (K, 2, B) values times a (2, B, J) design."""
    return np.matmul(values.swapaxes(0, 1), design).swapaxes(0, 1)
