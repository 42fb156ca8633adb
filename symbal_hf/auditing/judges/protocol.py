"""What a judge is: it looks at rows, block by block, and concludes over all of them what each image shows.

Looking needs nothing but the rows of a block, so that blocks may be looked at anywhere; what depends on all rows
(means, curves) is left to `conclude`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from symbal_hf.language.concepts import Concepts

ScorerName = Literal["embedding", "reference", "objects", "text-only", "vision-language", "object"]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]
Measured = Mapping[str, tuple[int, int]]
Columns = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
SURE = 0.999  # what a given list of objects is worth: labels are not free of errors
WELL_ALIGNED = 0.1  # prior share of false mentions where nothing is known about a concept
UNMEASURED: Measured = {}
LIMIT = 6.0  # no single mention may outweigh e^6 to 1
BLOCK = 65_536  # rows that are looked at together


@dataclass(frozen=True)
class Beliefs:
    """What a scorer believes about N images and P concepts.

    Attributes:
        presence: (N, P) float32, probability in (0, 1) that the image shows the concept; NaN where it cannot be judged.
        log_ratio: (N, P) float32, log of how much better "the image lacks it" explains what the scorer sees than
            "the image shows it", in [-6, 6]: positive where the image argues against the concept, 0 where the scorer
            knows nothing.
        scorer: which scorer this is.
        given_truth: True when presence is given data and not a model's opinion.
        measured: of names that the judge was measured on, true statements and how many of them it rejected.
    """

    presence: NDArray[np.float32]
    log_ratio: NDArray[np.float32]
    scorer: ScorerName
    given_truth: bool
    measured: Measured = field(default_factory=dict)

    @cached_property
    def known(self) -> NDArray[np.float32]:
        """(N, P) presence, 0 where it cannot be judged."""
        return np.nan_to_num(self.presence, nan=0.0)

    @cached_property
    def if_stated(self) -> NDArray[np.float32]:
        """(N, P) probability that the image shows the concept where the caption, which is mostly right, names it."""
        fits = (1 - WELL_ALIGNED) / (1 - WELL_ALIGNED + WELL_ALIGNED * np.exp(self.log_ratio))
        return np.asarray(fits, np.float32)


class Judge(Protocol):
    """One way of checking concepts against N rows.

    Attributes:
        scorer: its name.
        given_truth: whether presence is given data and no model's opinion.
        measured: see `Beliefs`.
        rows: N.
    """

    scorer: ScorerName
    given_truth: bool
    measured: Measured
    rows: int

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """(n, P) what these rows alone say of the concepts, on the judge's own scale; NaN where they say nothing."""
        ...

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(N, P) presence and (N, P) log-ratio, as in `Beliefs`, from what was `seen` (N, P) in all rows."""
        ...


def judge_all(judge: Judge, names: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(N, P) presence and (N, P) log-ratio of these concepts over all rows of a judge, looked at block by block."""
    blocks = [judge.look(names, slice(start, start + BLOCK)) for start in range(0, judge.rows, BLOCK)]
    seen = blocks[0] if len(blocks) == 1 else np.concatenate(blocks or [np.zeros((0, len(names)), np.float32)])
    return judge.conclude(names, seen)


def beliefs(judge: Judge, names: Sequence[str], *, columns: Columns | None = None) -> Beliefs:
    """The judge's `Beliefs` about `names`. What `columns` holds by name is not asked again; what is new is added."""
    columns = {} if columns is None else columns
    if not names:
        nothing = np.zeros((judge.rows, 0), np.float32)
        return Beliefs(nothing, nothing, judge.scorer, judge.given_truth, judge.measured)
    new = [name for name in names if name not in columns]
    if new:
        presence, ratio = judge_all(judge, new)
        columns.update((name, (presence[:, i], ratio[:, i])) for i, name in enumerate(new))
    return Beliefs(
        np.stack([columns[name][0] for name in names], 1),
        np.stack([columns[name][1] for name in names], 1),
        judge.scorer,
        judge.given_truth,
        judge.measured,
    )


def log_ratio_of(presence: NDArray[np.floating]) -> NDArray[np.float32]:
    """(N, P) log-ratios of `Beliefs` from calibrated probabilities, by Bayes: logit(mean presence) - logit(presence).

    A concept about which the scorer knows nothing has the same presence everywhere and gets 0, however frequent it is.
    """
    p = np.clip(presence, 1e-4, 1 - 1e-4)
    mean = np.nanmean(p, axis=0)
    ratio = np.log(mean / (1 - mean)) - np.log(p / (1 - p))
    return np.nan_to_num(np.clip(ratio, -LIMIT, LIMIT)).astype(np.float32)


def fact_alignment(concepts: Concepts, log_ratio: NDArray[np.float32]) -> NDArray[np.float32]:
    """(F,) alignment in [0, 1] of each fact with its image, NaN for a fact that names no concept.

    A fact is as well aligned as the least fitting concept it names; 0.5 is the fit of a random image.
    """
    coo = sparse.coo_matrix(concepts.by_fact)
    worst = np.full(len(concepts.facts), -np.inf, np.float32)
    np.maximum.at(worst, coo.row, log_ratio[concepts.facts.row[coo.row], coo.col])
    known = np.isfinite(worst)
    return np.where(known, 1 / (1 + np.exp(np.where(known, worst, 0))), np.nan).astype(np.float32)
