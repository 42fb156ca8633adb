"""The judge that is given the truth: a list of objects for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.protocol import SURE, UNMEASURED, ScorerName, log_ratio_of
from symbal_hf.language.phrases import Vocabulary


class ObjectJudge:
    """Presence from given objects: a concept is present when the row's objects name it, or one of its synonyms."""

    scorer: ScorerName = "objects"
    given_truth = True
    measured = UNMEASURED

    def __init__(self, objects: Sequence[frozenset[str] | None], vocabulary: Vocabulary) -> None:
        """`objects` of N rows; None where nobody knows."""
        self.objects, self.vocabulary, self.rows = objects, vocabulary, len(objects)

    def look(self, names: Sequence[str], rows: slice) -> NDArray[np.float32]:
        """See `symbal_hf.auditing.judges.protocol.Judge.look`."""
        block = self.objects[rows]
        presence = np.full((len(block), len(names)), 1 - SURE, np.float32)
        index = {name: i for i, name in enumerate(names)}
        columns: dict[str, list[int]] = {}
        for row, present in enumerate(block):
            if present is None:
                presence[row] = np.nan
                continue
            for name in present:
                if name not in columns:
                    classes = {name} if name in index else self.vocabulary.find(name)
                    columns[name] = [index[c] for c in classes if c in index]
                presence[row, columns[name]] = SURE
        return presence

    def conclude(
        self, names: Sequence[str], seen: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See `symbal_hf.auditing.judges.protocol.Judge.conclude`."""
        return seen, np.zeros_like(seen) if np.isnan(seen).all() else log_ratio_of(seen)
