"""Judges by the name of the scorer that a composition has: one table, whatever the composition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges.objects import ObjectJudge
from symbal_hf.auditing.judges.pixels import EmbeddingJudge
from symbal_hf.auditing.judges.protocol import Judge, ScorerName
from symbal_hf.auditing.judges.references import ReferenceJudge
from symbal_hf.auditing.judges.told import FactJudge, ListJudge
from symbal_hf.auditing.judges.zero_shot import ZeroShotJudge
from symbal_hf.auditing.units import Units
from symbal_hf.core.errors import BadData
from symbal_hf.data.table import AuditData
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import split_part
from symbal_hf.models.encoders.embedding import embed_images, embed_texts
from symbal_hf.models.scorers import image_features, image_texts

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts

Descriptions = Sequence[tuple[str, ...] | None]  # what is told of each image, None where nothing is


@dataclass(frozen=True)
class Case:
    """What a judge is made from.

    Attributes:
        data: N rows.
        parts: the models.
        concepts: what captions speak of.
        vocabulary: the classes with every name that concepts were found by; None where concepts are noun phrases.
        regions: (N, 65, 384) of the images, where the encoder is calibrated.
        descriptions: what is told of each image.
        score: (F,) alignment of each fact, where the scorer looks at facts.
        units: which rows show one image.
        asked: (F,) the scorer was asked about the fact; None where it was about all of them.
    """

    data: AuditData
    parts: Parts
    concepts: Concepts
    vocabulary: Vocabulary | None
    regions: NDArray[np.float16] | None
    descriptions: Descriptions
    score: NDArray[np.float32] | None
    units: Units
    asked: NDArray[np.bool_] | None = None


def judge_of(case: Case) -> Judge:
    """The judge of the composition's first scorer."""
    kind, _ = split_part(case.parts.composition.scorer_1)
    return JUDGES[kind](case)


def describe(parts: Parts, data: AuditData) -> Descriptions:
    """What is told of each image: references, a caption by the captioner, or a feature list.

    Raises:
        BadData: nothing tells of the images.
    """
    composition = parts.composition
    kind, _ = split_part(composition.scorer_1)
    texts = image_texts(parts, data)
    if texts is not None:
        return list(texts)
    if data.images is not None and kind in ("embedding", "object"):
        return [None] * len(data)  # the encoder itself is asked
    looking = [
        part
        for part in ("scorer_1", "scorer_2", "summarizer_2")
        if split_part(getattr(composition, part))[0] == "vision-language"
    ]
    spec = composition.chat_of(looking[0]) if looking else None
    if spec is None or data.images is None:
        raise BadData(
            "nothing tells what the images show; give references, a captioner, or a vision-language scorer with images."
        )
    return image_features(parts, spec, data, range(len(data)))


def _objects(case: Case) -> Judge:
    assert case.vocabulary is not None and case.data.objects is not None
    return ObjectJudge(case.data.objects, case.vocabulary)


def _references(case: Case) -> Judge:
    return ReferenceJudge(case.data.references or (), case.parts.phrase_vectors)


def _pixels(case: Case) -> Judge:
    from symbal_hf.models.encoders.lite import LiteVision

    if case.regions is None:
        return _described(case)
    return EmbeddingJudge(case.regions, LiteVision(), case.parts.phrase_vectors)


def _described(case: Case) -> Judge:
    """By what is told of the images, else by cosines of an encoder that nobody calibrated."""
    parts, data, descriptions = case.parts, case.data, case.descriptions
    kind, _ = split_part(parts.composition.scorer_1)
    several = sum(len(row or ()) > 1 for row in descriptions) > 0.5 * len(descriptions)
    if data.references is not None and any(data.references) and several:
        return ReferenceJudge([row or () for row in descriptions], parts.phrase_vectors)
    if any(descriptions):
        return ListJudge(descriptions, parts.phrase_vectors, scorer=cast(ScorerName, kind))
    assert data.images is not None  # else there is nothing to score by
    encoder = parts.joint("scorer_1")
    images, _ = embed_images(data.images, encoder, **parts.shared)
    return ZeroShotJudge(images, partial(embed_texts, encoder=encoder, **parts.shared), case.concepts)


def _facts(case: Case) -> Judge:
    """What is told of the images, corrected by what the scorer says of the very facts that name a concept."""
    kind, _ = split_part(case.parts.composition.scorer_1)
    assert case.score is not None
    return FactJudge(_described(case), case.concepts, case.score, scorer=cast(ScorerName, kind), asked=case.asked)


JUDGES: Mapping[str, Callable[[Case], Judge]] = {
    "objects": _objects,
    "reference": _references,
    "embedding": _pixels,  # cosines are on no scale of truth: they rank facts, and say nothing of a single one
    "text-only": _facts,
    "vision-language": _facts,
    "object": _facts,
}
