"""What a judge has shown that it can see, on the user's own images: only of that does its word count.

A name counts as seen where it affirms it in images whose captions state it: in several of them, in a twentieth at
least, and more often than elsewhere. A judge that never affirms a name denies every statement of it, whatever is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.stats import nchypergeom_fisher
from scipy.stats import t as student

from symbal_hf.auditing.association import FEWEST_ROWS, mentions_by_image
from symbal_hf.auditing.judges.protocol import Beliefs
from symbal_hf.auditing.units import Units
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.phrases import names_of

AFFIRMED = 0.3  # presence from which on the judge sees a name
LEAST_IMAGES, LEAST_SHARE = 3, 0.05  # of those whose captions state it
COMPARED, FEW = 500, 10  # concepts beside features that are stated about as often
LEAST_SPREAD = 0.3  # of the logarithm of how many times as often captions state things as references do
BIAS = 3.0  # odds by which what the judge misses may be stated more often here than where it was measured


def missed_elsewhere(name: str, beliefs: Beliefs) -> tuple[int, int] | None:
    """People's statements of `name`, or of what it is a kind of, and how many of them the judge rejected.

    None where it was not measured on it.
    """
    return next((beliefs.measured[known] for known in names_of(name.split()) if known in beliefs.measured), None)


def more_than_missed(rejected: int, stated: int, elsewhere: tuple[int, int], *, bias: float = BIAS) -> float:
    """P-value of "it rejects more than it misses", though statements that it misses may be more frequent here.

    Args:
        rejected: images whose statement the judge rejects, of `stated`.
        stated: images whose captions state the name.
        elsewhere: statements that are true, and how many of these it rejected.
        bias: odds by which true statements that it misses may be more frequent here (Rosenbaum 2002, chapter 4).

    Examples:
        >>> more_than_missed(20, 40, (100, 10)) < 0.05, more_than_missed(11, 40, (100, 10)) < 0.05
        (True, False)
    """
    total, missed = elsewhere
    return float(nchypergeom_fisher(total + stated, missed + rejected, stated, bias).sf(rejected - 1))


def spoken_beside(
    said: NDArray[np.bool_], told: NDArray[np.floating], shown: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """How often captions, and references, speak of each concept beside each feature, and which of these compare.

    Args:
        said: (N, P) the caption names the concept.
        told: (N, P) share of the row's references that names it.
        shown: (N, P) the image shows it.

    Returns:
        (P, P) rows, (P, P) sums of shares, and (P, P) what is stated and shown often enough to be compared with.
    """
    by_captions, by_references = (one.T.astype(np.float64) @ shown for one in (said, told))
    comparable = (by_captions >= FEWEST_ROWS) & (shown.sum(0) >= FEWEST_ROWS)
    np.fill_diagonal(comparable, False)
    return by_captions, by_references, comparable


def as_unspoken(
    beside: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]], t: int, stated: float, spoken: float
) -> float:
    """P-value of "references leave t out beside v no more than they leave out other things".

    References are silent about most of what an image shows, and about some things nearly always. Captions that speak
    of t beside v by a larger multiple of what references do than of nearly anything else say what is not there.

    Args:
        beside: of `spoken_beside`.
        t: the index of the concept.
        stated: rows with the feature whose caption names it; `spoken` sums the shares of their references that do.

    Returns:
        Of concepts beside features that captions state about as often, the share that is as unspoken of in references;
        where there are few, and none is, how likely another would be.
    """
    by_captions, by_references, comparable = beside[0], beside[1], beside[2].copy()
    comparable[t], comparable[:, t] = False, False
    captions, references = by_captions[comparable], by_references[comparable]
    near = np.argsort(np.abs(np.log(captions / max(stated, 1))), kind="stable")[:COMPARED]
    times = np.log((captions[near] + 0.5) / (references[near] + 0.5))
    own = float(np.log((stated + 0.5) / (spoken + 0.5)))
    share = float((1 + (times >= own).sum()) / (1 + len(near)))
    if len(near) < FEW or (times >= own).any():
        return share
    # Of few the largest proves little by its rank; then it is held against how much these differ (prediction interval).
    spread = max(float(times.std(ddof=1)), LEAST_SPREAD) * sqrt(1 + 1 / len(near))
    return min(share, float(student.sf((own - times.mean()) / spread, len(near) - 1)))


@dataclass(frozen=True)
class Competence:
    """Of P names, what the judge affirms.

    Attributes:
        seen: (P,) images whose captions state the name, and in which the judge sees it.
        stated: (P,) images whose captions state it.
        can_see: (P,) whether that shows that the judge can see it.
    """

    seen: NDArray[np.int64]
    stated: NDArray[np.int64]
    can_see: NDArray[np.bool_]


def competence(concepts: Concepts, beliefs: Beliefs, units: Units) -> Competence:
    """What the judge affirms of each name; given truth, and references, count as able to see everything."""
    mentioned = mentions_by_image(concepts, units)
    sees = beliefs.known > AFFIRMED
    stated, seen = mentioned.sum(0), (mentioned & sees).sum(0)
    if beliefs.given_truth or beliefs.scorer == "reference":
        return Competence(seen, stated, np.ones(len(stated), bool))
    elsewhere = (units.any(sees).sum(0) - seen) / np.maximum(units.count(len(sees)) - stated, 1)
    share = seen / np.maximum((mentioned & ~np.isnan(beliefs.presence)).sum(0), 1)  # of those that were judged
    return Competence(seen, stated, (seen >= LEAST_IMAGES) & (share >= LEAST_SHARE) & (share > elsewhere))
