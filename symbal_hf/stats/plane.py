"""Vectors on a plane: t-SNE, or principal components where there are too few different ones for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FEWEST = 30  # different vectors that t-SNE needs: below, its neighbourhoods are the whole


def project(vectors: NDArray[np.floating], *, seed: int = 0) -> tuple[NDArray[np.float64], str]:
    """Places (N, 2), each coordinate in [0, 1], near where vectors are near; and "t-SNE" or "PCA", which made them.

    Args:
        vectors: (N, D), N >= 0, finite.
        seed: of t-SNE.

    Source: van der Maaten and Hinton (2008), by scikit-learn.
    """
    different = len(np.unique(np.round(vectors, 6), axis=0)) if len(vectors) else 0
    if different < FEWEST:
        return _to_unit(principal(vectors)), "PCA"
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (different - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", learning_rate="auto", random_state=seed).fit_transform(vectors)
    return _to_unit(places.astype(np.float64)), "t-SNE"


def principal(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """(N, 2) projections of `vectors` (N, D) on their first two principal components; zeros where there are fewer."""
    out = np.zeros((len(vectors), 2))
    if len(vectors):
        centred = np.asarray(vectors, np.float64) - np.mean(vectors, axis=0, dtype=np.float64)
        _, size, axes = np.linalg.svd(centred, full_matrices=False)
        kept = int((size[:2] > 1e-9).sum())
        # The sign of a component is arbitrary: the largest entry of each is made positive.
        sign = np.sign(axes[np.arange(kept), np.abs(axes[:kept]).argmax(1)])
        out[:, :kept] = centred @ axes[:kept].T * sign
    return out


def _to_unit(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each coordinate stretched to [0, 1]; one that never changes becomes 0.5."""
    if not len(places):
        return places
    low, high = places.min(0), places.max(0)
    return np.where(high > low, (places - low) / np.where(high > low, high - low, 1), 0.5)
