"""The judge that looks at pixels by an encoder whose log-odds are calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import Embed, Measured, ScorerName, log_ratio_of
from symbal_hf.core.files import packaged_lines

if TYPE_CHECKING:
    from symbal_hf.models.encoders.lite import LiteVision

NAMES = 256  # put to the image encoder at once
QUESTIONS = ("{}", "a photo of a {}")  # how a concept is put to the image encoder; the answers are averaged


@cache
def proven_names() -> Measured:
    """Of names that the lite judge was shown to see on photos: people's statements, and how many it rejected."""
    rows = (line.split(",") for line in packaged_lines("symbal_hf.auditing.judges", "proven.csv")[1:])
    return {name: (int(stated), int(rejected)) for name, stated, rejected in rows}


class EmbeddingJudge:
    """Presence from an image encoder whose log-odds are calibrated."""

    scorer: ScorerName = "embedding"
    given_truth = False

    def __init__(self, regions: NDArray[np.float16], vision: LiteVision, embed: Embed) -> None:
        """`regions` (N, R, D) of the images; `embed` gives unit vectors of texts in the same space."""
        self.regions, self.vision, self.embed, self.rows = regions, vision, embed, len(regions)
        self.measured = proven_names()

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """See `symbal_hf.auditing.judges.protocol.Judge.look`."""
        questions = [self.embed([form.format(name) for name in names]) for form in QUESTIONS]
        regions = self.regions[rows]
        presence = np.empty((len(regions), len(names)), np.float32)
        for start in range(0, len(names), NAMES):  # what lies between them is as large as both
            columns = slice(start, start + NAMES)
            odds = self.vision.log_odds(regions, np.concatenate([vectors[columns] for vectors in questions]))
            odds = odds.reshape(len(odds), len(questions), -1).mean(1)
            presence[:, columns] = 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
        return presence

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `symbal_hf.auditing.judges.protocol.Judge.conclude`."""
        ratio = np.empty_like(seen)
        for start in range(0, len(names), NAMES):
            columns = slice(start, start + NAMES)
            ratio[:, columns] = log_ratio_of(seen[:, columns])
        return seen, ratio
