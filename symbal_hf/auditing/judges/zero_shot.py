"""Presence from any encoder of images and texts in one space: how far a name fits an image better than others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import LIMIT, UNMEASURED, ScorerName
from symbal_hf.language.concepts import Concepts

FORM = "a photo of a {}"
EDGES = np.linspace(-2.5, 4.0, 27)  # standard scores of a cosine among the images, per concept


class ZeroShotJudge:
    """Cosines of an encoder nobody calibrated, read by what captions say.

    A cosine is on no scale of truth, and differs from concept to concept. Captions are mostly right: how far the cosine
    of a name stands out where captions mention it, over all concepts together, says what standing out is worth. A
    concept's own mentions have no say in its curve, or else one that is mostly stated falsely would excuse itself.
    """

    scorer: ScorerName = "embedding"
    given_truth = False
    measured = UNMEASURED

    def __init__(
        self, images: NDArray[np.float32], embed: Callable[[Sequence[str]], NDArray[np.float32]], concepts: Concepts
    ) -> None:
        """`images` (N, D) unit vectors; `embed` gives unit vectors of texts in the same space."""
        self.images, self.embed, self.concepts, self.rows = images, embed, concepts, len(images)

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """(n, P) cosines."""
        return self.images[rows] @ self.embed([FORM.format(name) for name in names]).T

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `symbal_hf.auditing.judges.protocol.Judge.conclude`."""
        from scipy.optimize import isotonic_regression

        z = (seen - seen.mean(0)) / np.maximum(seen.std(0), 1e-6)
        bins, steps = np.digitize(z, EDGES), len(EDGES) + 1
        place = {name: i for i, name in enumerate(self.concepts.names)}
        mentioned = self.concepts.mentions()
        said = np.stack([mentioned[:, place[n]] if n in place else np.zeros(len(z), bool) for n in names], 1)
        mentions = np.bincount(bins[said], minlength=steps) + 1.0
        presence, ratio = np.empty(z.shape, np.float32), np.empty(z.shape, np.float32)
        for c in range(len(names)):
            here = bins[:, c]
            true = mentions - np.bincount(here[said[:, c]], minlength=steps)
            true /= true.sum()
            everywhere = np.bincount(here, minlength=steps) + true
            everywhere /= everywhere.sum()
            # A better fit never argues more strongly against a concept.
            curve = isotonic_regression(np.log(everywhere / true), weights=everywhere + true, increasing=False).x
            share = float(np.clip(1.5 * said[:, c].mean(), 1e-3, 0.9))  # captions leave out some of what is there
            ratio[:, c] = np.clip(curve[here], -LIMIT, LIMIT)
            presence[:, c] = 1 / (1 + np.exp(ratio[:, c] - np.log(share / (1 - share))))
        return presence, ratio
