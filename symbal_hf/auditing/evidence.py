"""What detection works on: the concepts of the captions, judged on every image by the parts of a composition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import EACH_ROW, FEWEST_MENTIONS
from symbal_hf.auditing.competence import Competence, competence, missed_elsewhere, spoken_beside
from symbal_hf.auditing.judges.by_name import Case, describe, judge_of
from symbal_hf.auditing.judges.lite_witness import LiteWitness
from symbal_hf.auditing.judges.protocol import Beliefs, Columns, Embed, Judge, beliefs, fact_alignment, log_ratio_of
from symbal_hf.auditing.judges.second import SecondJudge, Witness
from symbal_hf.auditing.units import Units, units_of
from symbal_hf.core.arrays import without
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import OnBadRow
from symbal_hf.data.table import AuditData, left_out, readable
from symbal_hf.language.concepts import Concepts, find_concepts, shares_naming
from symbal_hf.language.facts import Facts, split_facts
from symbal_hf.language.phrases import Vocabulary, compounds_of_parts
from symbal_hf.models.composition import FACT_SCORERS, split_part
from symbal_hf.models.detectors.nanodet import CLASSES
from symbal_hf.models.encoders.embedding import embed_images
from symbal_hf.models.scorers import score_facts

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts


@dataclass(frozen=True)
class Evidence:
    """Everything that a detection method works on.

    Attributes:
        data: N rows.
        concepts: P concepts that captions speak of, and the F facts that name them.
        beliefs: what each image shows.
        vectors: (P, 384) unit vectors of the concept names; None where objects are given.
        embed: unit vectors of short phrases.
        images: gives (N, D) vectors of the images, or of what is told of them.
        judged: the same evidence over other concepts of the same facts.
        score: (F,) alignment of each fact in [0, 1] where the scorer looks at facts, NaN where it failed.
        asked: (F,) the scorer was asked about the fact; None where it was about all of them.
        rescored: the same evidence by other scores, of the facts that the scorer was asked about.
        wholes: concepts by a concept that may be part of them, as a bowl of a toilet.
        vocabulary: what concepts are limited to.
        units: which rows show one image.
        second: a judge that had no part in `beliefs` and looks at the same images; None where there is none.
        others: further such judges, asked where that one has no say.
        naming: gives (N, P) the share of a row's references that names each of P concepts, where there are any.
    """

    data: AuditData
    concepts: Concepts
    beliefs: Beliefs
    vectors: NDArray[np.float32] | None
    embed: Embed
    images: Callable[[], NDArray[np.float32]]
    judged: Callable[[Concepts], Evidence]
    score: NDArray[np.float32] | None = None
    wholes: Mapping[int, Set[int]] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None
    units: Units = EACH_ROW
    second: SecondJudge | None = None
    others: tuple[Witness, ...] = ()
    naming: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
    asked: NDArray[np.bool_] | None = None
    rescored: Callable[[NDArray[np.float32], NDArray[np.bool_]], Evidence] | None = None

    def wholes_of(self, concept: int) -> Set[int]:
        """Concepts that this one may be part of."""
        return self.wholes.get(concept, set())

    @cached_property
    def competence(self) -> Competence:
        """What the judge has shown that it can see."""
        return competence(self.concepts, self.beliefs, self.units)

    @cached_property
    def told(self) -> NDArray[np.float32] | None:
        """(N, P) share of the row's references that names each concept; None where there are no references."""
        return None if self.naming is None else self.naming(self.concepts.names)

    @cached_property
    def spoken(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """How often captions, and references, speak of each concept beside each feature; of each image one row."""
        assert self.told is not None  # else nobody asks
        said, one = self.concepts.mentions(), self.units.first(np.ones(len(self.told), bool))
        return spoken_beside(said[one], self.told[one], (self.shows | said)[one])

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Judges that had no part in `beliefs`, in the order in which they are asked."""
        return self.others if self.second is None else (self.second, *self.others)

    @cached_property
    def of_both(self) -> Beliefs:
        """What images show by both judges together, where there is a second: of features, never of errors.

        Whoever took part in an accusation cannot confirm it; a feature accuses nobody.
        """
        if self.second is None or self.beliefs.scorer != "embedding":
            return self.beliefs
        presence = self.second.with_first(self.concepts.names, self.beliefs.presence)
        return replace(self.beliefs, presence=presence, log_ratio=log_ratio_of(presence))

    @cached_property
    def can_be_feature(self) -> NDArray[np.bool_]:
        """(P,) What has been shown to be seen."""
        joined = (self.of_both.presence != self.beliefs.presence).any(0)
        return competence(self.concepts, self.of_both, self.units).can_see | joined

    @cached_property
    def confirmable(self) -> NDArray[np.bool_]:
        """(P,) A judge that had no part in `beliefs` knows the name."""
        names = self.concepts.names
        return np.array([any(witness.knows(name) for witness in self.witnesses) for name in names], bool)

    @cached_property
    def may_see(self) -> NDArray[np.bool_]:
        """(P,) The judge can see the concept, or was not asked about all that captions say of it."""
        if self.asked is None:
            return self.competence.can_see
        return self.competence.can_see | (np.asarray(self.concepts.by_fact[~self.asked].sum(0)).ravel() > 0)

    @cached_property
    def shows(self) -> NDArray[np.bool_]:
        """(N, P) The image shows the concept; where nobody was asked, as far as its caption says so."""
        if self.asked is None:
            return self.beliefs.known > 0.5
        unknown = self.concepts.mentions() & np.isnan(self.beliefs.presence)
        return np.where(unknown, self.beliefs.if_stated, self.beliefs.known) > 0.5

    @cached_property
    def can_be_found(self) -> NDArray[np.bool_]:
        """(P,) As an error the concept may be found, by the second judge or by competence, and not suspected alone."""
        if self.beliefs.given_truth or self.naming is not None:
            return self.may_see
        proven = np.array([missed_elsewhere(name, self.beliefs) is not None for name in self.concepts.names], bool)
        return self.confirmable | (self.may_see & proven)

    @cached_property
    def tried_errors(self) -> NDArray[np.int64]:
        """(P,) Of each concept as an error, how many were looked at with it.

        What can be found and what can only be suspected are two families of tests.
        """
        looked_at = self.competence.stated >= FEWEST_MENTIONS
        of_family = [int((looked_at & (self.can_be_found == found)).sum()) for found in (False, True)]
        return np.where(self.can_be_found, of_family[1], of_family[0])

    @cached_property
    def similar(self) -> NDArray[np.float32] | None:
        """(P, P) cosine of concept names; None where they have no vectors."""
        return None if self.vectors is None else self.vectors @ self.vectors.T

    @cached_property
    def alignment(self) -> NDArray[np.float32]:
        """(F,) alignment of each fact with its image in [0, 1]; NaN where the scorer says nothing of it."""
        return fact_alignment(self.concepts, self.beliefs.log_ratio) if self.score is None else self.score

    def usual(self) -> Evidence:
        """Without the concepts that are there only because they were asked for: they must not change what is found."""
        if not self.concepts.extra:
            return self
        kept, all_beliefs, vectors = len(self.concepts.names) - self.concepts.extra, self.beliefs, self.vectors
        narrow = replace(
            all_beliefs, presence=all_beliefs.presence[:, :kept], log_ratio=all_beliefs.log_ratio[:, :kept]
        )
        vectors = None if vectors is None else vectors[:kept]
        return replace(self, concepts=self.concepts.usual(), vectors=vectors, beliefs=narrow)


@dataclass
class Kept:
    """What captionings of the same images share, so that only the first of them works it out.

    Attributes:
        columns: what was judged, by concept, where a judge looks at images alone.
        regions: embeddings of the images, and why some could not be read.
        judge: the judge of these images, where it looks at them alone.
    """

    columns: Columns = field(default_factory=dict)
    regions: tuple[NDArray[np.float16], dict[int, str]] | None = None
    judge: Judge | None = None


def gather(
    data: AuditData,
    parts: Parts,
    *,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    on_bad_row: OnBadRow = "warn",
    kept: Kept | None = None,
) -> Evidence:
    """Judge every concept of the captions on every image, by the composition's first scorer.

    Args:
        data: the rows.
        parts: the models; scorers "auto" become what the data allow.
        vocabulary: classes with synonyms that concepts are limited to.
        always: and `same`: see `symbal_hf.language.concepts.find_concepts`.
        on_bad_row: of images that cannot be read: "error" stops, "warn" and "skip" leave their rows out.
        kept: what other captions of the same images have left.

    Raises:
        BadData: nothing that the scorer could check captions by, or rows that cannot be used.
    """
    parts.settle(data)
    kind, _ = split_part(parts.composition.scorer_1)
    calibrated = parts.composition.calibrated
    scores_facts = kind in FACT_SCORERS and not calibrated
    regions = None
    if calibrated:
        regions, data = _embedded(parts, data, on_bad_row, kept)
    elif scores_facts:
        data = readable(data, on_bad_row)
    facts = split_facts(data.captions)
    descriptions = describe(parts, data) if scores_facts else [None] * len(data)
    score = asked = None
    if scores_facts:
        asked = None if parts.budget is None else np.zeros(len(facts), bool)
        score = np.full(len(facts), np.nan, np.float32)
        if asked is None:
            score = usable_scores(parts, score_facts(parts, "scorer_1", data, facts, np.arange(len(facts))))
    also = [text for row in data.references or () for text in row] if kind == "reference" else []
    also += [text for row in descriptions for text in row or ()]
    concepts, known, wholes = concepts_of(
        data,
        facts,
        parts.phrase_vectors,
        scorer=kind,
        vocabulary=vocabulary,
        always=always,
        same=same,
        also=also,
        features=CLASSES if calibrated else (),
    )
    units = units_of(data.shown, None if regions is None else regions[:, 0])
    case = Case(data, parts, concepts, known, regions, descriptions, score, units, asked)
    return _judged(case, wholes, None if scores_facts else kept)


def usable_scores(parts: Parts, score: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scores of facts as they are.

    Raises:
        BadData: not one of them is known.
    """
    if np.isnan(score).all() and len(score):
        raise BadData(f"scorer_1={parts.composition.scorer_1!r} gave no usable score for any of {len(score)} facts.")
    return score


def _judged(case: Case, wholes: Mapping[int, Set[int]], kept: Kept | None = None) -> Evidence:
    """Evidence over the concepts of a case."""
    concepts, parts = case.concepts, case.parts
    judge = kept.judge if kept is not None and kept.judge is not None else judge_of(case)
    if kept is not None:
        kept.judge = judge
    views = beliefs(judge, concepts.names, columns=None if kept is None else kept.columns)
    if case.score is not None and concepts.extra and (usual := concepts.usual()).names:
        # One that was asked for takes a share of the blame for a false fact, and must not change what is found.
        narrow, n = beliefs(judge_of(replace(case, concepts=usual)), usual.names), len(usual.names)
        views = replace(
            views,
            presence=np.hstack([narrow.presence, views.presence[:, n:]]),
            log_ratio=np.hstack([narrow.log_ratio, views.log_ratio[:, n:]]),
        )
    objects = views.scorer == "objects"
    images = None if objects or case.regions is not None else case.data.images
    return Evidence(
        case.data,
        concepts,
        views,
        None if objects or not concepts.names else parts.phrase_vectors(concepts.names),
        parts.phrase_vectors,
        lambda: _image_vectors(case),
        lambda other: _judged(replace(case, concepts=other), wholes),
        case.score,
        wholes,
        case.vocabulary if objects else None,
        units=case.units,
        second=None if objects or case.data.images is None else SecondJudge(case.data.images, parts.shared),
        others=() if images is None else (LiteWitness(images, parts.phrase_vectors, parts.shared),),
        asked=case.asked,
        naming=None if objects or not any(case.data.references or ()) else _naming(case),
        rescored=lambda score, asked: _judged(replace(case, score=score, asked=asked), wholes),
    )


def _naming(case: Case) -> Callable[[Sequence[str]], NDArray[np.float32]]:
    return lambda names: shares_naming(case.data.references or (), names, vocabulary=case.vocabulary)


def _image_vectors(case: Case) -> NDArray[np.float32]:
    """(N, D) of the images, or of what references, object names or a captioner tell of them."""
    data, parts = case.data, case.parts
    if case.regions is not None:
        return case.regions[:, 0].astype(np.float32)
    if case.score is not None and data.images is not None:
        return parts.image_vectors(data.images)[0]
    if case.score is not None:
        texts: Sequence[Sequence[str]] = [row or () for row in case.descriptions]
    else:
        texts = data.references or [sorted(objects or ()) for objects in data.objects or [()] * len(data)]
    return parts.text_vectors([". ".join(row) or "nothing known" for row in texts])


def concepts_of(
    data: AuditData,
    facts: Facts,
    embed: Embed,
    *,
    scorer: str,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    also: Sequence[str] = (),
    features: Sequence[str] = (),
) -> tuple[Concepts, Vocabulary | None, dict[int, set[int]]]:
    """What the facts speak of, the vocabulary with all names that it was found by, and the wholes of `Evidence`.

    Args:
        data: the rows; with scorer "objects" and no vocabulary their objects are the concepts.
        facts: of their captions.
        embed: unit vectors of texts; asked only with scorer "objects".
        scorer: its kind.
        vocabulary: classes with synonyms that concepts are limited to.
        always: names that are asked for, `same`, `also` and `features`: see
            `symbal_hf.language.concepts.find_concepts`.

    Raises:
        BadData: a name of `always` that the vocabulary does not have.
    """
    known, wholes = vocabulary_of(data, vocabulary), dict[int, set[int]]()
    if scorer == "objects" and known is not None:
        compounds = compounds_of_parts(facts.text, known, embed)
        known = known.with_synonyms({words: whole for words, (whole, _) in compounds.items()})
        concepts = find_concepts(facts, vocabulary=known, always=always)
        index = {name: i for i, name in enumerate(concepts.names)}
        for whole, part in compounds.values():
            wholes.setdefault(index[part], set()).add(index[whole])
        return concepts, known, wholes
    concepts = find_concepts(
        facts,
        vocabulary=known if vocabulary else None,
        also=also,
        features=features,
        always=always,
        same=same,
        min_rows=max(5, len(data) // 500),
    )
    return concepts, known, wholes


def vocabulary_of(data: AuditData, given: Mapping[str, Sequence[str]] | None) -> Vocabulary | None:
    """The classes that are given, else the objects that the data name, else None."""
    if given is not None:
        return Vocabulary(given)
    if data.objects is None:
        return None
    return Vocabulary(dict.fromkeys(sorted({name for row in data.objects for name in row or ()}), ()))


def _embedded(
    parts: Parts, data: AuditData, on_bad_row: OnBadRow, kept: Kept | None
) -> tuple[NDArray[np.float16], AuditData]:
    """(N, 65, 384) regions of the images by the calibrated encoder, and the rows whose image could be read."""
    from symbal_hf.models.encoders.lite import LiteVision

    assert data.images is not None  # `settle` has looked
    regions, bad = (kept and kept.regions) or embed_images(data.images, LiteVision(), **parts.shared)
    if kept is not None:
        kept.regions = regions, bad
    return without(regions, sorted(bad)), left_out(data, bad, on_bad_row)
