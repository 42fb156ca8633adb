"""What a judge has shown that it can see, on the user's own images: only of that does its word count.

A name counts as seen where it affirms it in images whose captions state it: in several of them, in a twentieth at
least, and more often than elsewhere. A judge that never affirms a name denies every statement of it, whatever is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import mentions_by_image
from symbal_hf.auditing.judges.protocol import Beliefs
from symbal_hf.auditing.units import Units
from symbal_hf.core.files import packaged_lines
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.phrases import names_of

AFFIRMED = 0.3  # presence from which on the judge sees a name
LEAST_IMAGES, LEAST_SHARE = 3, 0.05  # of those whose captions state it


@cache
def proven_names() -> frozenset[str]:
    """Names that the lite judge has been shown to see, on people's captions and drawn scenes."""
    return frozenset(packaged_lines("symbal_hf.auditing.judges", "proven.txt"))


def is_proven(name: str, scorer: str) -> bool:
    """Whether a judge is known to see `name`, or what it is a kind of; of other judges than lite nothing is known."""
    return scorer != "embedding" or not proven_names().isdisjoint(names_of(name.split()))


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
