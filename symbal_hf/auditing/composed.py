"""An audit by a composition of models: evidence for the association method, and the paper's two stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from symbal_hf.auditing.association import Pair, error_share, judge_rows, make_pair, other_names
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.judges import Judge, ScorerName, beliefs
from symbal_hf.auditing.references import ReferenceJudge
from symbal_hf.auditing.two_stages import FACT_KS, MIN_FACTS, worst_groups, worst_images
from symbal_hf.auditing.witness import FactJudge, ListJudge
from symbal_hf.auditing.zero_shot import ZeroShotJudge
from symbal_hf.core.errors import BadData
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import AuditData, OnBadRow
from symbal_hf.language.concepts import Concepts, find_concepts, own_name
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import split_part
from symbal_hf.models.encoders.embedding import embed_images, embed_texts
from symbal_hf.models.scorers import image_features, image_texts, score_facts
from symbal_hf.models.summarizers import name_facts, name_images
from symbal_hf.stats.clustering import choose_k
from symbal_hf.stats.keyness import log_odds

if TYPE_CHECKING:
    from symbal_hf.models.parts import Parts


Told = Sequence[tuple[str, ...] | None]


def gather_composed(
    data: AuditData,
    parts: Parts,
    *,
    vocabulary: Mapping[str, Sequence[str]] | None = None,
    always: Sequence[str] = (),
    same: Mapping[str, str] | None = None,
    on_bad_row: OnBadRow = "warn",
) -> tuple[Evidence, NDArray[np.float32], Told]:
    """The evidence of a composition, the alignment (F,) of every fact by its first scorer, what is told of each image.

    Whether an image shows a concept is judged by what is told of the image (references, else the captioner's caption,
    else the feature list of the vision-language model), and, where a fact names the concept, by the score of the fact.
    `always` and `same` are those of `symbal_hf.language.concepts.find_concepts`.

    Raises:
        BadData: nothing that tells of the images, or rows that cannot be used.
    """
    data = _readable(data, on_bad_row)
    facts = split_facts(data.captions)
    told = _told(parts, data)
    score = score_facts(parts, "scorer_1", data, facts, np.arange(len(facts)))
    if np.isnan(score).all() and len(score):
        raise BadData(f"scorer_1={parts.composition.scorer_1!r} gave no usable score for any of {len(score)} facts.")
    known = Vocabulary(vocabulary) if vocabulary else None
    texts = [text for row in told for text in row or ()]
    concepts = find_concepts(
        facts, vocabulary=known, also=texts, always=always, same=same, min_rows=max(5, len(data) // 500)
    )
    evidence = _judged(parts, data, concepts, told, score)
    return evidence, score, told


def _judged(
    parts: Parts,
    data: AuditData,
    concepts: Concepts,
    told: Told,
    score: NDArray[np.float32],
) -> Evidence:
    """Evidence over these concepts."""
    kind, _ = split_part(parts.composition.scorer_1)
    scorer = cast(ScorerName, kind)
    several = sum(len(row or ()) > 1 for row in told) > 0.5 * len(told)
    references = data.references is not None and any(data.references)
    judge: Judge
    if references and several:
        judge = ReferenceJudge([row or () for row in told], parts.phrase_vectors)
    elif any(told):
        judge = ListJudge(told, parts.phrase_vectors, scorer=scorer)
    else:
        assert data.images is not None  # else there is nothing to score by
        encoder = parts.joint("scorer_1")
        images, _ = embed_images(data.images, encoder, **parts.shared)
        embed = partial(embed_texts, encoder=encoder, **parts.shared)
        judge = ZeroShotJudge(images, embed, concepts)
    # Cosines are on no scale of truth: they rank facts, and say nothing of a single one.
    if kind != "embedding":
        judge = FactJudge(judge, concepts, score, scorer=scorer)
    if not concepts.names:
        raise BadData("no caption names anything that could be checked; are they in English?")
    known = beliefs(judge, concepts.names)
    if concepts.extra and (usual := concepts.usual()).names:
        # One that was asked for takes a share of the blame for a false fact, and must not change what is found.
        found, kept = _judged(parts, data, usual, told, score).beliefs, len(usual.names)
        known = replace(
            known, presence=np.hstack([found.presence, known.presence[:, kept:]]),
            log_ratio=np.hstack([found.log_ratio, known.log_ratio[:, kept:]]),
        )  # fmt: skip
    return Evidence(data, concepts, known, parts.phrase_vectors(concepts.names), None, parts.phrase_vectors)


def _told(parts: Parts, data: AuditData) -> Told:
    """What is told of each image: references, a caption by the captioner, or a feature list."""
    texts = image_texts(parts, data)
    if texts is not None:
        return list(texts)
    looking = [
        part for part in ("scorer_1", "scorer_2", "summarizer_2")
        if split_part(getattr(parts.composition, part))[0] == "vision-language"
    ]  # fmt: skip
    spec = parts.composition.chat_of(looking[0]) if looking else None
    if data.images is not None and split_part(parts.composition.scorer_1)[0] in ("embedding", "object"):
        return [None] * len(data)  # the encoder itself is asked
    if spec is None or data.images is None:
        raise BadData(
            "nothing tells what the images show; give references, a captioner, or a vision-language scorer with images."
        )
    return image_features(parts, spec, data, range(len(data)))


def _readable(data: AuditData, on_bad_row: OnBadRow) -> AuditData:
    """The data without rows whose image cannot be decoded."""
    if data.images is None or data.images.readable:
        return data
    bad: dict[int, str] = {}
    for row in range(len(data)):
        try:
            decode(data.images.encoded(row))
        except (OSError, SyntaxError, ValueError) as error:
            bad[row] = f"unreadable image: {error}"
    if bad and on_bad_row == "error":
        row = min(bad)
        raise BadData(f"row {data.ids[row]}: {bad[row]}; mend it or pass on_bad_row='warn'.")
    if len(bad) == len(data):
        raise BadData(f"none of the {len(data)} images can be read; the first: {bad[0]}.")
    data.images.readable = not bad
    return data.without(bad)


def composed_paper_pairs(
    evidence: Evidence,
    parts: Parts,
    score: NDArray[np.float32],
    told: Told,
    *,
    clusters: int = 5,
    k: int = 5,
    seed: int = 0,
) -> tuple[Evidence, list[Pair]]:
    """Candidate pairs by the paper's two stages (section 4, appendix A), the worst aligned fact cluster first.

    Names that a chat model gives join the concepts, so that each pair has its statistics; hence the new evidence.

    Args:
        evidence: as `gather_composed` made it.
        parts: the models.
        score: (F,) alignment of each fact by scorer_1, NaN where unknown.
        told: what is told of each image, as `gather_composed` found it.
        clusters: how many of the worst fact clusters go on to stage 2.
        k: how many names are asked for.
        seed: of k-means and of the members that are summarized.
    """
    facts, data = evidence.concepts.facts, evidence.data
    judged = np.flatnonzero(~np.isnan(score))
    if len(judged) < 2:
        return evidence, []
    vectors = parts.text_vectors([facts.text[f] for f in judged])
    labels = choose_k(vectors, FACT_KS, seed=seed).labels
    images = _image_vectors(parts, evidence, told)
    found: list[tuple[list[str], list[str]]] = []
    for group in worst_groups(labels, score[judged], least=MIN_FACTS)[:clusters]:
        members = judged[group]
        t = name_facts(parts, "summarizer_1", [facts.text[f] for f in members], k=k, seed=seed)
        t = t or _phrases_of_facts(evidence, members, judged)[:k]
        rows = np.unique(facts.row[members])
        second = score_facts(parts, "scorer_2", data, facts, members)
        worst = worst_images(rows, facts.row[members], second, images, seed=seed)
        v = name_images(parts, "summarizer_2", data, worst.tolist(), k=k, seed=seed)
        v = v or _phrases_of_rows(evidence, worst)[:40]
        if t and v:
            found.append((t, v))
    names = [name for t, v in found for name in (*t, *v)]
    evidence = _with_names(evidence, parts, score, told, names)
    return evidence, _pairs(evidence, found, tried=clusters)


def _pairs(evidence: Evidence, found: Sequence[tuple[list[str], list[str]]], *, tried: int) -> list[Pair]:
    concepts, place = evidence.concepts, {name: i for i, name in enumerate(evidence.concepts.names)}
    ratio, mentioned = evidence.beliefs.log_ratio, evidence.concepts.mentions()
    pairs, used = [], set[int]()
    for t_names, v_names in found:
        errors = [place[own_name(name, place)] for name in t_names]
        t = errors[0]
        if t in used:
            continue
        used.add(t)
        share = error_share(t, ratio[mentioned[:, t], t])
        banned = other_names(concepts, t)
        order = [c for c in dict.fromkeys(place[own_name(name, place)] for name in v_names) if not banned[c]]
        if not order:
            continue
        rows = judge_rows(concepts, evidence.beliefs, share)
        pair = make_pair(
            concepts, evidence.beliefs, share, rows, order, scores=np.zeros(len(order)), tried=len(order) * tried
        )
        pairs.append(replace(pair, also_errors=tuple(dict.fromkeys(errors[1:]))))
    return pairs


def _with_names(
    evidence: Evidence, parts: Parts, score: NDArray[np.float32], told: Told, names: Sequence[str]
) -> Evidence:
    """The evidence with these names among its concepts."""
    concepts = evidence.concepts
    known = set(concepts.names)
    new = sorted({own_name(name, known) for name in names} - known)
    if not new:
        return evidence
    vocabulary = Vocabulary(dict.fromkeys(new, ()))
    place = {name: i for i, name in enumerate(new)}
    at = [(f, place[name]) for f, text in enumerate(concepts.facts.text) for name in vocabulary.find(text)]
    rows, columns = np.array(at, np.int64).reshape(-1, 2).T
    extra = sparse.csr_matrix((np.ones(len(at), np.float32), (rows, columns)), shape=(len(concepts.facts), len(new)))
    wider = Concepts((*concepts.names, *new), sparse.hstack([concepts.by_fact, extra]).tocsr(), concepts.facts)
    return _judged(parts, evidence.data, wider, told, score)


def _image_vectors(parts: Parts, evidence: Evidence, told: Told) -> NDArray[np.float32]:
    """(N, D) of the images, or of what is told of them where there are none."""
    if evidence.data.images is not None:
        return parts.image_vectors(evidence.data.images)[0]
    return parts.text_vectors([". ".join(texts or ()) or "nothing known" for texts in told])


def _phrases_of_facts(evidence: Evidence, members: NDArray[np.int64], judged: NDArray[np.int64]) -> list[str]:
    by_fact = evidence.concepts.by_fact
    everywhere = np.asarray(by_fact[judged].sum(0)).ravel()
    order = np.argsort(-log_odds(np.asarray(by_fact[members].sum(0)).ravel(), len(members), everywhere, len(judged)))
    return [evidence.concepts.names[c] for c in order]


def _phrases_of_rows(evidence: Evidence, rows: NDArray[np.int64]) -> list[str]:
    shown = evidence.beliefs.known
    order = np.argsort(-log_odds(shown[rows].sum(0), len(rows), shown.sum(0), len(shown)), kind="stable")
    return [evidence.concepts.names[c] for c in order]
