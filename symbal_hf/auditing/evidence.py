"""What detection works on: the concepts of the captions, judged on every image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.judges import Beliefs, Columns, Embed, EmbeddingJudge, Judge, ObjectJudge, beliefs
from symbal_hf.auditing.references import ReferenceJudge
from symbal_hf.core.arrays import without
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, OnBadRow
from symbal_hf.language.concepts import Concepts, find_concepts
from symbal_hf.language.facts import Facts, split_facts
from symbal_hf.language.phrases import Vocabulary, compounds_of_parts
from symbal_hf.models.encoders.embedding import Progress, embed_images, embed_texts, quiet

Scorer = Literal["auto", "embedding", "reference", "objects"]


@dataclass(frozen=True)
class Evidence:
    """Everything that a detection method works on.

    Attributes:
        data: the rows.
        concepts: what captions speak of.
        beliefs: what each image shows.
        vectors: (P, 384) unit vectors of the concept names; None with the objects scorer.
        regions: (N, 65, 384) image embeddings; None without the embedding scorer.
        embed: unit vectors of texts, by the text encoder of this audit.
        wholes: concepts by a concept that may be part of them, as a bowl of a toilet.
    """

    data: AuditData
    concepts: Concepts
    beliefs: Beliefs
    vectors: NDArray[np.float32] | None
    regions: NDArray[np.float16] | None
    embed: Embed
    wholes: Mapping[int, Set[int]] = field(default_factory=dict)

    def usual(self) -> Evidence:
        """Without the concepts that are there only because they were asked for: they must not change what is found."""
        if not self.concepts.extra:
            return self
        kept, known, vectors = len(self.concepts.names) - self.concepts.extra, self.beliefs, self.vectors
        return replace(
            self, concepts=self.concepts.usual(), vectors=None if vectors is None else vectors[:kept],
            beliefs=replace(known, presence=known.presence[:, :kept], log_ratio=known.log_ratio[:, :kept]),
        )  # fmt: skip


def gather(
    data: AuditData,
    *,
    scorer: Scorer = "auto",
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    on_bad_row: OnBadRow = "warn",
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str | None = None,
) -> Evidence:
    """Embed what needs embedding, by so many processes, and judge every concept of the captions on every image.

    `always` and `same` are those of `symbal_hf.language.concepts.find_concepts`.
    """
    from symbal_hf.models.encoders.lite import LiteVision, MiniLM

    scorer = choose_scorer(scorer, data)
    shared: dict[str, Any] = {
        "store": store or Store(), "progress": progress, "devices": devices, "num_nodes": num_nodes,
        "strategy": strategy,
    }  # fmt: skip
    regions = None
    if scorer == "embedding":
        assert data.images is not None
        regions, bad = embed_images(data.images, LiteVision(), **shared)
        if bad and on_bad_row == "error":
            row = min(bad)
            raise BadData(f"row {data.ids[row]}: {bad[row]}; mend it or pass on_bad_row='warn'.")
        if len(bad) == len(data):
            raise BadData(f"none of the {len(data)} images can be read; the first: {bad[0]}.")
        regions = without(regions, sorted(bad))
        data = data.without(bad)
    embed = partial(embed_texts, encoder=MiniLM(), **shared)
    return weigh(data, regions, embed, scorer=scorer, vocabulary=vocabulary, always=always, same=same)


def weigh(
    data: AuditData,
    regions: NDArray[np.float16] | None,
    embed: Embed,
    *,
    scorer: Scorer,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    columns: Columns | None = None,
    reference_judge: ReferenceJudge | None = None,
) -> Evidence:
    """Judge every concept of the captions on every image whose `regions` (N, 65, 384) are known.

    `columns` holds what was judged before about the same rows, and `reference_judge` their references made ready, so
    that many captionings of the same images share the work.
    """
    from symbal_hf.models.encoders.lite import LiteVision

    facts = split_facts(data.captions)
    concepts, known, wholes = concepts_of(
        data, facts, embed, scorer=scorer, vocabulary=vocabulary, always=always, same=same
    )
    if scorer == "objects":
        assert known is not None and data.objects is not None
        judge: Judge = ObjectJudge(data.objects, known)
    elif scorer == "reference":
        assert data.references is not None
        judge = reference_judge or ReferenceJudge(data.references, embed)
    else:
        assert regions is not None
        judge = EmbeddingJudge(regions, LiteVision(), embed)
    if not concepts.names:
        nothing = np.zeros((len(data), 0), np.float32)
        return Evidence(
            data, concepts, Beliefs(nothing, nothing, judge.scorer, judge.given_truth), None, regions, embed
        )
    vectors = None if scorer == "objects" else embed(concepts.names)
    return Evidence(data, concepts, beliefs(judge, concepts.names, columns=columns), vectors, regions, embed, wholes)


def concepts_of(
    data: AuditData,
    facts: Facts,
    embed: Embed,
    *,
    scorer: str,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
) -> tuple[Concepts, Vocabulary | None, dict[int, set[int]]]:
    """What the facts speak of, the vocabulary with all names that it was found by, and the wholes of `Evidence`.

    Args:
        data: the rows; with scorer "objects" and no vocabulary their objects are the concepts.
        facts: of their captions.
        embed: unit vectors of texts; asked only with scorer "objects".
        scorer: "objects", "reference", "embedding" or that of a composition.
        vocabulary: classes with synonyms that concepts are limited to.
        always: names that are asked for, and `same`: see `symbal_hf.language.concepts.find_concepts`.

    Raises:
        BadData: a name of `always` that the vocabulary does not have.
    """
    known, wholes = vocabulary_of(data, vocabulary), dict[int, set[int]]()
    if scorer == "objects" and known is not None:
        parts = compounds_of_parts(facts.text, known, embed)
        known = known.with_synonyms({words: whole for words, (whole, _) in parts.items()})
        concepts = find_concepts(facts, vocabulary=known, always=always)
        place = {name: i for i, name in enumerate(concepts.names)}
        for whole, part in parts.values():
            wholes.setdefault(place[part], set()).add(place[whole])
        return concepts, known, wholes
    references = [t for row in data.references or () for t in row] if scorer != "embedding" else []
    rows = max(5, len(data) // 500)
    concepts = find_concepts(
        facts, vocabulary=known if vocabulary else None, also=references, always=always, same=same, min_rows=rows
    )
    return concepts, known, wholes


def image_vectors(evidence: Evidence) -> NDArray[np.float32]:
    """(N, 384) of the images, or of what references or object names tell of them."""
    data = evidence.data
    if evidence.regions is not None:
        return evidence.regions[:, 0].astype(np.float32)
    told = data.references or [sorted(objects or ()) for objects in data.objects or [()] * len(data)]
    return evidence.embed([". ".join(texts) or "nothing known" for texts in told])


def choose_scorer(scorer: Scorer, data: AuditData) -> Scorer:
    """The scorer that these data allow; raises `BadData` where they do not allow the one that was asked for."""
    if scorer == "auto":
        if data.objects is not None:
            return "objects"
        if data.references is not None:
            return "reference"
        if data.images is not None:
            return "embedding"
        raise BadData(
            "nothing to check the captions against: the source has no images, references or objects; name their "
            "column with --image-column, --reference-column or --objects-column, or add a file with --join."
        )
    have = {"embedding": data.images, "reference": data.references, "objects": data.objects}
    if have[scorer] is None:
        given = ", ".join(k for k, v in have.items() if v is not None) or "none"
        raise BadData(f"scorer {scorer!r} needs a column that the source lacks; usable here: {given}.")
    return scorer


def vocabulary_of(data: AuditData, given: Mapping[str, Sequence[str]] | None) -> Vocabulary | None:
    """The classes that are given, else the objects that the data name, else None."""
    if given is not None:
        return Vocabulary(given)
    if data.objects is None:
        return None
    return Vocabulary(dict.fromkeys(sorted({o for row in data.objects for o in row or ()}), ()))
