"""The lite judge as the second one, of what another model accuses: any name that it shows to see on these images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.pixels import QUESTIONS
from symbal_hf.auditing.judges.protocol import LIMIT, Embed
from symbal_hf.auditing.judges.second import CONSTANT, SURROUNDINGS, WEIGHT, Rows
from symbal_hf.models.encoders.embedding import embed_images

if TYPE_CHECKING:
    from symbal_hf.data.table import Images


@dataclass(frozen=True)
class LiteWitness:
    """EfficientNet-Lite0 with our adapter over N images; what its word is worth is told by images on which both agree.

    Attributes:
        images: N images.
        embed: unit vectors of texts in its space.
        shared: how images are embedded, as keywords of `embed_images`.
    """

    images: Images
    embed: Embed
    shared: dict[str, Any]

    name, by_card = "lite", False

    def knows(self, name: str) -> bool:
        """It can be asked for any name."""
        return True

    def worth(self, name: str, rows: Rows) -> NDArray[np.float64]:
        """(n,) log-odds that the image shows it."""
        return self._worth(name, rows)[0]

    def log_ratio(self, name: str, rows: Rows, *, agreed: Rows, elsewhere: Rows, beside: Rows) -> NDArray[np.float32]:
        """See `symbal_hf.auditing.judges.second.Witness.log_ratio`.

        What its log-odds are worth is told by a logistic curve between images that show the name and images that lack
        it. As of the other second judge it counts less than it says: what is hard for one is often hard for another.
        """
        from sklearn.linear_model import LogisticRegression

        shows, lacks = self.worth(name, agreed), self.worth(name, elsewhere)
        told = np.repeat([True, False], [len(shows), len(lacks)])
        curve = LogisticRegression(class_weight="balanced").fit(np.concatenate([shows, lacks])[:, None], told)
        worth, bad = self._worth(name, rows)
        raised = np.quantile(self.worth(name, beside), 0.25) - np.quantile(lacks, 0.25) if len(beside) else 0.0
        worth -= SURROUNDINGS * max(0.0, float(raised))
        ratio = np.clip(-(WEIGHT * curve.decision_function(worth[:, None]) + CONSTANT), -LIMIT, LIMIT)
        ratio[list(bad)] = 0
        return np.asarray(ratio, np.float32)

    def _worth(self, name: str, rows: Rows) -> tuple[NDArray[np.float64], dict[int, str]]:
        from symbal_hf.models.encoders.lite import LiteVision

        vision = LiteVision()
        regions, bad = embed_images(self.images.select(rows.tolist()), vision, **self.shared)
        odds = vision.log_odds(regions, self.embed([form.format(name) for form in QUESTIONS]))
        return np.clip(odds.mean(1).astype(np.float64), -30, 30), bad
