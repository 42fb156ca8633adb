"""Detectors: how surely each image shows each name; the protocol, and a column of objects and a function as such."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from symbal_hf.auditing.judges.objects import ObjectJudge
from symbal_hf.auditing.judges.protocol import judge_all
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import AuditData
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.detectors.nanodet import CLASSES, NanoDet, class_of, log_ratio, packaged_detector
from symbal_hf.models.encoders.embedding import Progress, embed_images, quiet
from symbal_hf.results.validation import Box

IMAGES = 16  # that a function of the caller's gets at once


@dataclass(frozen=True)
class Seen:
    """What a detector sees of P names in N rows."""

    # (N, P) float32, how surely the image shows the name, in [0, 1]; NaN where that is not known
    scores: NDArray[np.float32]
    bad: Mapping[int, str] = field(default_factory=dict)  # row -> why its image could not be read
    # row -> boxes of all names, surest first, of the rows that were asked for; empty of a detector without
    boxes: Mapping[int, tuple[Box, ...]] = field(default_factory=dict)


class Detector(Protocol):
    """One way of saying where names are seen."""

    name: str  # what it is called in results: "objects", "hf:MODEL@REVISION", "object:NAME"
    threshold: float  # the score from which on a name counts as seen, unless told otherwise, in (0, 1]

    def detect(
        self,
        data: AuditData,
        names: Sequence[str],
        *,
        where: NDArray[np.bool_] | None = None,
        boxes_of: Collection[int] = (),
        progress: Progress = quiet,
    ) -> Seen:
        """Look for P names in N rows.

        Args:
            data: the rows.
            names: different noun phrases.
            where: (N, P) which of them are wanted; all by default. Others may be NaN.
            boxes_of: rows whose boxes are wanted.
            progress: wraps long loops.
        """
        ...


class ObjectsDetector:
    """The source's own column of objects: 1 where it names the name or a synonym, 0 where not, NaN where it is null.

    A name that is no class and no synonym ("white toilet") is known of no row: an object list that has no word for it
    does not say that it is absent.
    """

    name, threshold = "objects", 0.5

    def __init__(self, vocabulary: Vocabulary) -> None:
        """`vocabulary` of the classes that objects are listed by, with their synonyms."""
        self.vocabulary = vocabulary

    def knows(self, name: str) -> bool:
        """Whether the objects have a word for `name`."""
        return self.vocabulary.class_of(name) is not None

    def detect(self, data: AuditData, names: Sequence[str], **how: Any) -> Seen:
        """See `Detector.detect`; raises `BadData`: the source has no objects."""
        if data.objects is None:
            raise BadData(
                f"{data.source} has no column of objects; add one with --join or --objects-column, or name another "
                "detector."
            )
        classes = [self.vocabulary.class_of(name) for name in names]
        known = sorted({c for c in classes if c is not None})
        scores = np.full((len(data), len(names)), np.nan, np.float32)
        if known:
            presence, _ = judge_all(ObjectJudge(data.objects, self.vocabulary), known)
            sure = np.where(np.isnan(presence), np.nan, presence > 0.5)
            for i, name in enumerate(classes):
                if name is not None:
                    scores[:, i] = sure[:, known.index(name)]
        return Seen(scores)


class PackagedDetector:
    """NanoDet-g, which ships with the package: COCO's 80 classes, by their own names; of others it knows nothing.

    A score is the probability where presence and absence are as likely. One between `threshold` and one half tells
    neither: the name is known of that row neither to be there nor to be absent.
    """

    name, threshold = NanoDet.name, 0.9

    def __init__(self, store: Store | None = None) -> None:
        """`store` is where scores are kept; by default the user's."""
        self.store = store or Store()

    def knows(self, name: str) -> bool:
        """Whether it was taught to see what is called so."""
        return class_of(name) is not None

    def detect(
        self,
        data: AuditData,
        names: Sequence[str],
        *,
        where: NDArray[np.bool_] | None = None,
        boxes_of: Collection[int] = (),
        progress: Progress = quiet,
    ) -> Seen:
        """See `Detector.detect`; raises `BadData`: the source has no images."""
        images = images_of(data, self.name)
        known = [i for i, name in enumerate(names) if self.knows(name)]
        rows = np.arange(len(data)) if where is None else np.flatnonzero(where[:, known].any(1))
        scores = np.full((len(data), len(names)), np.nan, np.float32)
        if not known or not len(rows):
            return Seen(scores)
        model = packaged_detector()
        found, unreadable = embed_images(images.select(rows.tolist()), model, store=self.store, progress=progress)
        bad = {int(rows[row]): reason for row, reason in unreadable.items()}
        for i in known:
            column = 1 / (1 + np.exp(-log_ratio(names[i], found)))
            column[list(unreadable)] = np.nan
            scores[rows, i] = np.where((column > 0.5) & (column < self.threshold), np.nan, column)
        called, boxes = {class_of(names[i]): names[i] for i in known}, {}
        for row in (row for row in boxes_of if row not in bad):
            seen = model.boxes(model.pixels(decode(images.encoded(row))))
            told = ((called.get(CLASSES[which]), score, corners) for which, score, corners in seen)
            boxes[row] = tuple(Box(name, score, *corners) for name, score, corners in told if name is not None)
        return Seen(scores, bad, boxes)


class FunctionDetector:
    """A function of the caller's: f(images, names) -> a score in [0, 1], or None, for each image and name."""

    threshold = 0.5

    def __init__(self, function: Callable[[list[Image.Image], list[str]], Any]) -> None:
        """`function` gets some RGB images and P names, and gives as many rows of P scores."""
        self.function = function
        self.name = f"object:{getattr(function, '__name__', type(function).__name__)}"

    def detect(
        self,
        data: AuditData,
        names: Sequence[str],
        *,
        where: NDArray[np.bool_] | None = None,
        progress: Progress = quiet,
        **how: Any,
    ) -> Seen:
        """See `Detector.detect`; raises `BadData`: the source has no images, or the function gives something else."""
        images = images_of(data, self.name)
        scores, bad = np.full((len(data), len(names)), np.nan, np.float32), dict[int, str]()
        rows = np.arange(len(data)) if where is None else np.flatnonzero(where.any(1))
        for start in progress(range(0, len(rows), IMAGES), "detections", -(-len(rows) // IMAGES)):
            shown: dict[int, Image.Image] = {}
            for row in rows[start : start + IMAGES].tolist():
                try:
                    shown[row] = decode(images.encoded(row))
                except (OSError, SyntaxError, ValueError) as error:
                    bad[row] = f"unreadable image: {error}"
            if shown:
                scores[list(shown)] = self._checked(self.function(list(shown.values()), list(names)), len(shown), names)
        return Seen(scores, bad)

    def _checked(self, said: Any, n: int, names: Sequence[str]) -> NDArray[np.float32]:
        try:
            table = np.asarray(said, np.float32)  # None becomes NaN
        except (TypeError, ValueError) as error:
            raise BadData(
                f"{self.name} gave no table of numbers ({error}); give one row of scores an image."
            ) from error
        if table.shape != (n, len(names)) or ((table < 0) | (table > 1)).any():
            raise BadData(
                f"{self.name} gave an array of shape {table.shape} for {n} images and {len(names)} names"
                + (f", between {np.nanmin(table):g} and {np.nanmax(table):g}" if table.size else "")
                + "; it must give a score in [0, 1], or None, for each image and name."
            )
        return table


def images_of(data: AuditData, name: str) -> Any:
    """The images that a detector looks at; raises `BadData`: the source has none."""
    if data.images is None:
        raise BadData(
            f"detector {name} looks at images, and {data.source} has none; name their column with --image-column, or "
            "use --detector objects with a column of objects."
        )
    return data.images
