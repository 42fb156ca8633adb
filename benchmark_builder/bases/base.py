"""A base: rows with true captions and known objects that errors can be planted into (paper section 5, appendix B)."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from symbal_hf.data.table import Images
from symbal_hf.language.phrases import Vocabulary


@dataclass(frozen=True)
class Base:
    """N rows that errors can be planted into.

    Attributes:
        ids: row ids, all different.
        captions: one true caption a row.
        objects: what each image plainly shows; a visual feature v is looked up here.
        images: image files, or encoded images in a dataset; None for a text base.
        references: held-out true texts of each row, or None.
        also_present: what each image may show besides: too small to count as a feature, or not sure. An error t is
            planted only where it is neither here nor among the objects. None: nothing besides.
        areas: share of the image, in [0, 1], of each of a row's objects (all instances of a class together), or None.
        vocabulary: the names and synonyms by which captions are searched for t; None: a name's own words.
        statements: for each t the sentences that state it (medical bases: mined from reports); None: the templates.
        name: first part of every config name, such as "natural".
        origin: which reader made it: "coco", "mimic_cxr", "openi", "scenes" or "custom".
        licence: the terms that its captions and images are under, one sentence for the dataset card.
        notes: what was read, kept and left out, one sentence each, for the screen and the card.
    """

    ids: tuple[str, ...]
    captions: tuple[str, ...]
    objects: tuple[frozenset[str], ...]
    images: tuple[Path, ...] | Images | None = None
    references: tuple[tuple[str, ...], ...] | None = None
    also_present: tuple[frozenset[str], ...] | None = None
    areas: tuple[Mapping[str, float], ...] | None = None
    vocabulary: Vocabulary | None = None
    statements: Mapping[str, tuple[str, ...]] | None = None
    name: str = "custom"
    origin: str = "custom"
    licence: str = "unknown"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.ids)
        if not re.fullmatch(r"[a-z0-9_]+", self.name):
            raise ValueError(f"base name {self.name!r}; it opens config names and takes a-z, 0-9 and _ only.")
        for field in ("captions", "objects", "images", "references", "also_present", "areas"):
            value = getattr(self, field)
            if value is not None and len(value) != n:
                raise ValueError(f"{len(value)} {field} for {n} ids; every row needs exactly one.")
        if len(set(self.ids)) != n:
            raise ValueError(f"{n - len(set(self.ids))} of {n} row ids occur twice; ids must differ.")

    def __len__(self) -> int:
        return len(self.ids)

    def present(self, row: int) -> frozenset[str]:
        """Everything that the image of `row` may show; nothing of this can be an error there."""
        return self.objects[row] | (self.also_present[row] if self.also_present else frozenset())

    def encoded(self, row: int) -> bytes:
        """The bytes of the image file of `row`, as they are."""
        if self.images is None:
            raise ValueError(f"the base {self.name!r} has no images.")
        return self.images.encoded(row) if isinstance(self.images, Images) else self.images[row].read_bytes()


def caption_and_references(texts: Sequence[str], *, seed: int, row_id: str) -> tuple[str, tuple[str, ...]]:
    """Two of an image's captions, drawn by (seed, id), as one caption; the others as references (paper appendix B)."""
    drawn = [sentence(text) for text in texts]
    random.Random(f"caption {seed} {row_id}").shuffle(drawn)
    return " ".join(drawn[:2]), tuple(drawn[2:])


def sentence(text: str) -> str:
    """A caption as people type it ("a dog on a bed ") with a capital and a full stop."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:].rstrip(". ") + "."
