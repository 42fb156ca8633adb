"""A second judge that had no part in the accusation: a detector that looks at the rejected rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from symbal_hf.auditing.judges.protocol import LIMIT
from symbal_hf.models.detectors.nanodet import (
    CLASSES,
    NanoDet,
    class_of,
    log_ratio,
    packaged_detector,
    usual_when_absent,
)
from symbal_hf.models.encoders.embedding import embed_images

if TYPE_CHECKING:
    from symbal_hf.data.table import Images

# What a score is worth where the lite judge has rejected a name: WEIGHT times what it is worth alone, plus CONSTANT, as
# what is hard for one is often hard for the other. Measured by scripts/measure/second_judge.py on two halves of the
# val2017 photos that neither has seen: .69 and .69, .81 and .83.
WEIGHT, CONSTANT = 0.69, 0.82
# Some surroundings raise its scores, as crowds do for "backpack". Half of what they raise the scores of rows with v
# that do not state t is taken off; all of it would excuse rows that show t unsaid (docs/results/detection.md).
SURROUNDINGS, FEWEST_BESIDE = 0.5, 5

# Log-odds of a class by both judges, from those of the lite judge and of NanoDet's score: fitted on one half of the
# val2017 photos that neither has seen, the other half gives the same within .04 (scripts/measure/second_judge.py).
BOTH = {"constant": 1.25, "first": 0.57, "second": 1.25}
FEWEST_AGREED, SEES, SEES_NONE, LEAST_AUC = 5, 0.5, 0.1, 0.75  # what shows that two judges see the same thing


Rows = NDArray[np.int64]  # indices of N


class Witness(Protocol):
    """A judge that had no part in an accusation.

    Attributes:
        name: by which findings name it.
        by_card: whether its word counts where the images do not tell whether it sees a name.
    """

    name: str
    by_card: bool

    def knows(self, name: str) -> bool:
        """Whether it can be asked."""
        ...

    def worth(self, name: str, rows: Rows) -> NDArray[np.float64]:
        """(n,) the more, the surer these images show it."""
        ...

    def log_ratio(self, name: str, rows: Rows, *, agreed: Rows, elsewhere: Rows, beside: Rows) -> NDArray[np.float32]:
        """(n,) log of how much better "the image lacks it" explains what it sees; 0 for an image that cannot be read.

        Args:
            name: what is looked for.
            rows: n rows whose statement of it the first judge rejects.
            agreed: rows that state it, and in which the first judge sees it.
            elsewhere: rows that probably lack it: what raises their scores (drawings in the place of photos) is not it.
            beside: rows in the same surroundings whose captions do not state it.
        """
        ...


@dataclass(frozen=True)
class SecondJudge:
    """NanoDet-g over N images: it knows 80 names, and nothing of what the first judge has said.

    Attributes:
        images: N images.
        shared: how they are embedded, as keywords of `embed_images`.
    """

    images: Images
    shared: dict[str, Any]

    name, by_card = NanoDet.name, True

    def knows(self, name: str) -> bool:
        """Whether it was taught to see what is called so; synonyms are other names."""
        return class_of(name) is not None

    def log_ratio(self, name: str, rows: Rows, *, agreed: Rows, elsewhere: Rows, beside: Rows) -> NDArray[np.float32]:
        """See `Witness.log_ratio`; of one of its classes."""
        worth, bad = self._worth(name, rows)
        usual = self._usual(name, elsewhere, usual_when_absent(name))
        usual_here = usual + SURROUNDINGS * (self._usual(name, beside, usual) - usual)
        ratio = np.clip(-(WEIGHT * (worth - usual_here + usual_when_absent(name)) + CONSTANT), -LIMIT, LIMIT)
        ratio[list(bad)] = 0
        return ratio.astype(np.float32)

    def with_first(self, names: Sequence[str], presence: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, P) presence by both judges together, from the first one's; the first one's alone of names not known.

        On drawings, say, a detector of photos sees nothing: where it sees no more of a name in the images in which the
        first judge sees it than in others, or that cannot be told, it has no say.
        """
        known = {column: kind for column, name in enumerate(names) if (kind := class_of(name)) is not None}
        if not known:
            return presence
        scores, bad = embed_images(self.images, packaged_detector(), **self.shared)
        read = np.ones(len(presence), bool)
        read[list(bad)] = False
        joined = presence.copy()
        for column, kind in known.items():
            first, score = presence[read, column], scores[read, CLASSES.index(kind)]
            shows, lacks = score[first > SEES], score[first < SEES_NONE]
            if len(shows) < FEWEST_AGREED or not len(lacks) or chance_of_more(shows, lacks) < LEAST_AUC:
                continue
            odds = BOTH["constant"] + BOTH["first"] * _logit(first) + BOTH["second"] * _logit(score)
            joined[read, column] = 1 / (1 + np.exp(-odds))
        return joined

    def worth(self, name: str, rows: Rows) -> NDArray[np.float64]:
        """(n,) log of how much better "the image shows it" explains its scores, by its card."""
        return self._worth(name, rows)[0]

    def _usual(self, name: str, rows: Rows, least: float) -> float:
        """The lower quartile of what scores are worth where the class is absent; no less than usual."""
        if len(rows) < FEWEST_BESIDE:
            return least
        return max(least, float(np.quantile(self._worth(name, rows)[0], 0.25)))

    def _worth(self, name: str, rows: Rows) -> tuple[NDArray[np.float64], dict[int, str]]:
        scores, bad = embed_images(self.images.select(rows.tolist()), packaged_detector(), **self.shared)
        return log_ratio(name, scores), bad


def _logit(p: NDArray[np.floating]) -> NDArray[np.float64]:
    clipped = np.clip(np.asarray(p, np.float64), 1e-4, 1 - 1e-4)
    return np.log(clipped / (1 - clipped))


def chance_of_more(these: NDArray[np.floating], those: NDArray[np.floating]) -> float:
    """Chance that one of `these` is more than one of `those`: the area under a receiver's curve."""
    return float(mannwhitneyu(these, those).statistic / (len(these) * len(those)))
