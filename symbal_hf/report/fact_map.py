"""Draws a map of facts: a sample with the wrong ones in it, grouped by what they mean, named, and laid on a plane."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.language.phrases import noun_phrases
from symbal_hf.language.sentences import sentences
from symbal_hf.models.encoders.embedding import Progress, embed_texts, quiet
from symbal_hf.results.fact_map import FactMap, MapCluster, MapPoint
from symbal_hf.results.findings import AuditResult
from symbal_hf.stats.clustering import choose_k, unit
from symbal_hf.stats.keyness import log_odds
from symbal_hf.stats.plane import project

__all__ = ["FactMap", "MapCluster", "MapPoint", "draw_fact_map"]

KS = (2, 3, 4, 5, 6, 8, 10, 12, 14)  # more groups than these have no room for their names
WRONG_SHARE = 3  # at most every third fact is drawn because it is wrong
LONGEST_NAME = 40  # characters of a fact that must stand for a name


@dataclass(frozen=True)
class _Drawn:
    text: str
    row_id: str
    finding: int | None


def draw_fact_map(
    result: AuditResult,
    data: AuditData,
    *,
    facts: int = 400,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress = quiet,
) -> FactMap:
    """Draw a map of a sample of the facts of `data`, the rows that `result` is about.

    Up to a third of the facts are wrong ones, as many of each finding; the others are drawn at random from the
    captions of as many random rows, so that no more captions than that are split. The lite preset's text encoder says
    which facts mean alike, whatever the audit itself used.

    Args:
        result: says which facts are wrong.
        data: the rows; those that the audit left out are not drawn from.
        facts: how many to draw, at most.
        seed: of the sample, the groups and the projection.
        store: where embeddings are kept; by default the user's.
        progress: wraps the loop over batches of facts.

    Raises:
        ValueError: `facts` is below 1.
        MissingModel: the text encoder is not installed.

    Examples:
        >>> import symbal_hf
        >>> from symbal_hf.data.table import AuditData
        >>> captions = ("A dog runs. The sky is blue.", "A cat sleeps.")
        >>> data = AuditData(("a", "b"), captions, None, None, None, (), "two captions")
        >>> result = symbal_hf.AuditResult("none", (), (), {"facts": 3})
        >>> drawn = symbal_hf.draw_fact_map(result, data)
        >>> sorted(point.text for point in drawn.points), drawn.wrong_drawn, drawn.projection
        (['A cat sleeps.', 'A dog runs.', 'The sky is blue.'], 0, 'PCA')
    """
    if facts < 1:
        raise ValueError(f"facts={facts} leaves nothing to draw; give at least 1.")
    from symbal_hf.models.encoders.lite import MiniLM

    wrong = _wrong_facts(result, most=max(1, facts // WRONG_SHARE), seed=seed)[:facts]
    others, rows = _random_facts(result, data, most=facts, seed=seed)
    known = {(fact.row_id, fact.text) for fact in wrong}
    drawn = [*wrong, *(fact for fact in others if (fact.row_id, fact.text) not in known)][:facts]
    texts = [fact.text for fact in drawn]
    vectors = embed_texts(texts, MiniLM(), store=store or Store(), progress=progress)
    labels = _largest_first(choose_k(vectors, KS, seed=seed).labels)
    places, how = project(vectors, seed=seed)
    return FactMap(
        points=tuple(
            MapPoint(round(float(x), 4), round(float(y), 4), fact.text, fact.row_id, int(label), fact.finding)
            for fact, (x, y), label in zip(drawn, places, labels, strict=True)
        ),
        clusters=_clusters(drawn, labels, vectors),
        facts=result.counts.get("facts"),
        rows=rows,
        wrong_drawn=len(wrong),
        encoder=MiniLM.name,
        projection=how,
        seed=seed,
    )


def _wrong_facts(result: AuditResult, *, most: int, seed: int) -> list[_Drawn]:
    """Wrong facts of every finding, at random, at most an equal share of `most` each."""
    draw = random.Random(seed)
    each = max(1, most // max(1, len(result.findings)))
    out: dict[tuple[str, str], _Drawn] = {}
    for number, finding in enumerate(result.findings):
        own = 0
        for row in draw.sample(finding.affected, min(each, len(finding.affected))):
            for text in row.sentences:
                if own < each and (row.row_id, text) not in out:
                    out[row.row_id, text] = _Drawn(text, row.row_id, number)
                    own += 1
    return list(out.values())


def _random_facts(result: AuditResult, data: AuditData, *, most: int, seed: int) -> tuple[list[_Drawn], int]:
    """Up to `most` facts at random, from the captions of as many random rows; and how many rows that were."""
    draw = random.Random(seed)
    # A row may be left out by its reading, then `data` lacks it, or later, for its image: then it must not be drawn.
    before = {(row.row_id, row.reason) for row in data.skipped}
    left_out = {row.row_id for row in result.skipped if (row.row_id, row.reason) not in before}
    rows = draw.sample(range(len(data)), min(len(data), most + len(left_out)))
    rows = [row for row in rows if data.ids[row] not in left_out][:most]
    ids = {data.ids[row] for row in rows}
    wrong: dict[tuple[str, str], int] = {}
    for number, finding in enumerate(result.findings):
        for affected in finding.affected:
            if affected.row_id in ids:
                for text in affected.sentences:
                    wrong.setdefault((affected.row_id, text), number)
    pool = dict.fromkeys((text, data.ids[row]) for row in rows for text in sentences(data.captions[row]))
    chosen = draw.sample(list(pool), min(most, len(pool)))
    return [_Drawn(text, row_id, wrong.get((row_id, text))) for text, row_id in chosen], len(rows)


def _largest_first(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same grouping with group 0 the largest, of equal ones that which comes first."""
    count = np.bincount(labels)
    rank = np.empty(len(count), np.int64)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    return rank[labels]


def _clusters(drawn: list[_Drawn], labels: NDArray[np.int64], vectors: NDArray[np.float32]) -> tuple[MapCluster, ...]:
    """The groups with their names, each different."""
    if not drawn:
        return ()
    k = int(labels.max()) + 1
    groups = [np.flatnonzero(labels == c) for c in range(k)]
    typical = [int(g[(vectors[g] @ unit(vectors[g].mean(0))).argmax()]) for g in groups]
    names = name_groups([fact.text for fact in drawn], groups)
    out, used = [], set[str]()
    for group, middle, ranked in zip(groups, typical, names, strict=True):
        text = drawn[middle].text
        short = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1].rstrip() + "…"
        # What speaks of no thing that the tagger knows, as in most languages, is called by its middle.
        name = next((n for n in [*ranked, short] if n not in used), f"{short} ({len(used) + 1})")
        used.add(name)
        wrong = sum(drawn[i].finding is not None for i in group)
        out.append(MapCluster(name, len(group), wrong, text))
    return tuple(out)


def name_groups(texts: list[str], groups: list[NDArray[np.int64]]) -> list[list[str]]:
    """Noun phrases that each group of `texts` uses more than the others do, best first; of one group, the commonest.

    A phrase of more words goes before a shorter one within it that the group hardly ever uses without them.
    """
    found = [noun_phrases(text) for text in texts]
    counts = [Counter(name for i in group for name in found[i]) for group in groups]
    phrases = sorted(set[str]().union(*counts))
    table = np.array([[count[name] for name in phrases] for count in counts], np.float64).reshape(len(groups), -1)
    out = []
    for count, inside in zip(counts, table, strict=True):
        size = sum(count.values())
        score = log_odds(inside, size, table.sum(0), table.sum()) if len(groups) > 1 else inside
        ranked = [phrases[i] for i in np.argsort(-score, kind="stable") if inside[i] > 0 and score[i] > 0]
        out.append([_fuller(name, count) for name in ranked[:20]])
    return out


def _fuller(name: str, count: Counter[str]) -> str:
    """The longest phrase that ends in `name` and is used nearly as often."""
    longer = [p for p, n in count.items() if p.endswith(" " + name) and n >= 0.8 * count[name]]
    return max(longer, key=lambda p: (len(p.split()), count[p], p), default=name)
