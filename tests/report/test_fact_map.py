"""A map of facts shows a fair sample with the wrong ones in it, near where they mean alike, under names that fit."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbal_hf
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.language.sentences import sentences
from symbal_hf.report import fact_map
from symbal_hf.report.fact_map import draw_fact_map
from symbal_hf.results.findings import Affected, AuditResult, Finding, Skipped, load_result
from symbal_hf.stats.plane import principal, project

TOPICS = {
    "dog": ("A {a} dog runs over the grass.", "Two {a} dogs play in the park.", "The {a} dog chases a ball."),
    "airplane": ("A {a} airplane stands on the runway.", "The {a} airplane takes off.", "An {a} airplane lands."),
    "pizza": ("A {a} pizza lies on a plate.", "Somebody eats a {a} pizza.", "The {a} pizza has melted cheese."),
}
KINDS = ("large", "small", "old", "new", "brown", "white", "dark", "bright", "nice", "strange", "round", "clean")
WRONG = "A fork lies beside the {a} pizza."


def rows_of(n: int) -> list[dict[str, str]]:
    """Captions of two sentences on one topic; every fifth on pizza also speaks of a fork."""
    rows = []
    for i in range(n):
        topic, a = list(TOPICS)[i % 3], KINDS[i // 3 % len(KINDS)]
        first, second = (TOPICS[topic][(i // 9 + k) % 3].format(a=a) for k in (0, 1))
        also = " " + WRONG.format(a=a) if topic == "pizza" and i % 5 == 0 else ""
        rows.append({"id": f"r{i}", "caption": f"{first} {second}{also}"})
    return rows


def result_of(data: AuditData, **changes: Any) -> AuditResult:
    """What an audit could say of them: every fork is wrong."""
    wrong = [
        Affected(row_id, tuple(s for s in sentences(caption) if "fork" in s), i % 2 == 0)
        for i, (row_id, caption) in enumerate(zip(data.ids, data.captions, strict=True))
        if "fork" in caption
    ]
    found = Finding(
        "fork", "pizza", ("fork",), ("pizza",), 0.5, 9.0, 4.0, 20.0, 1e-9, 1e-8, len(wrong), len(data) // 3, 0,
        len(data) - len(data) // 3, affected=tuple(wrong),
    )  # fmt: skip
    suspect = replace(found, state="suspected", reason="one judge says so")
    return replace(AuditResult("systematic", (found,), (suspect,), {"facts": 12345}), **changes)


@pytest.fixture(scope="module")
def data() -> AuditData:
    return load_data(rows_of(900))


@pytest.fixture(scope="module")
def drawn(data: AuditData) -> symbal_hf.FactMap:
    return draw_fact_map(result_of(data), data, facts=240)


def test_every_point_is_a_sentence_of_its_row_and_none_is_drawn_twice(
    drawn: symbal_hf.FactMap, data: AuditData
) -> None:
    captions = dict(zip(data.ids, data.captions, strict=True))
    assert len(drawn.points) == 240 and drawn.facts == 12345 and drawn.rows == 240
    assert all(point.text in sentences(captions[point.row_id]) for point in drawn.points)
    assert len({(point.row_id, point.text) for point in drawn.points}) == 240
    assert all(0 <= point.x <= 1 and 0 <= point.y <= 1 for point in drawn.points)
    assert {0.0, 1.0} <= {point.x for point in drawn.points} and {0.0, 1.0} <= {point.y for point in drawn.points}


def test_wrong_facts_are_marked_and_there_in_fair_number(drawn: symbal_hf.FactMap, data: AuditData) -> None:
    assert all((point.finding == 0) == ("fork" in point.text) for point in drawn.points)
    wrong = [point for point in drawn.points if point.finding is not None]
    assert drawn.wrong_drawn == 60 <= len(wrong) < 75  # all that there are; a plain sample would have seven of them
    assert [point.finding for point in drawn.points[:60]] == [0] * 60


def test_each_finding_gets_an_equal_share_however_many_rows_it_has() -> None:
    data = load_data(rows_of(3000))
    many = result_of(data).findings[0]
    few = replace(
        many, textual_error="knife", affected=tuple(Affected(f"r{i}", ("A knife.",), True) for i in range(20))
    )
    drawn = draw_fact_map(replace(result_of(data), findings=(many, few)), data, facts=90)
    assert Counter(point.finding for point in drawn.points[:30]) == {0: 15, 1: 15}
    assert drawn.wrong_drawn == 30


def test_what_means_alike_lies_together_and_goes_by_its_name(drawn: symbal_hf.FactMap) -> None:
    def topic(text: str) -> str:
        return next(name for name in TOPICS if name in text)

    groups: dict[int, Counter[str]] = {}
    for point in drawn.points:
        groups.setdefault(point.cluster, Counter())[topic(point.text)] += 1
    assert len(groups) == len(drawn.clusters) >= 3
    assert sum(count.most_common(1)[0][1] for count in groups.values()) >= 0.95 * len(drawn.points)
    assert {topic(c.typical) for c in drawn.clusters} == set(TOPICS)
    assert len({c.name for c in drawn.clusters}) == len(drawn.clusters)
    assert [c.facts for c in drawn.clusters] == sorted((c.facts for c in drawn.clusters), reverse=True)
    for number, cluster in enumerate(drawn.clusters):
        own = [point for point in drawn.points if point.cluster == number]
        assert (cluster.facts, cluster.wrong) == (len(own), sum(point.finding is not None for point in own))
        said = sum(cluster.name in point.text.lower() for point in own)
        elsewhere = sum(cluster.name in p.text.lower() for p in drawn.points if p.cluster != number)
        assert said / len(own) > elsewhere / (len(drawn.points) - len(own)), cluster
    places = np.array([(point.x, point.y) for point in drawn.points])
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    np.fill_diagonal(apart, np.inf)
    same = [topic(drawn.points[i].text) == topic(drawn.points[int(j)].text) for i, j in enumerate(apart.argmin(1))]
    assert np.mean(same) > 0.9


def test_a_seed_draws_the_same_map_again_and_another_seed_another(drawn: symbal_hf.FactMap, data: AuditData) -> None:
    assert draw_fact_map(result_of(data), data, facts=240) == drawn
    other = draw_fact_map(result_of(data), data, facts=240, seed=1)
    assert {(p.row_id, p.text) for p in other.points} != {(p.row_id, p.text) for p in drawn.points}
    assert other.seed == 1


def test_no_more_captions_are_split_than_facts_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    split = []

    def counted(caption: str) -> list[str]:
        split.append(caption)
        return sentences(caption)

    data = load_data(rows_of(20_000))
    result = result_of(data)
    monkeypatch.setattr(fact_map, "sentences", counted)
    drawn = draw_fact_map(result, data, facts=50)
    assert len(split) == 50 == drawn.rows == len(drawn.points)


def test_rows_that_the_audit_left_out_are_not_drawn_from() -> None:
    data = load_data([*rows_of(40), {"id": "r3", "caption": "A second row three."}])
    assert [row.row_id for row in data.skipped] == ["r3"]
    lost = tuple(Skipped(f"r{i}", "unreadable image") for i in range(10, 40))
    drawn = draw_fact_map(result_of(data, findings=(), skipped=(*data.skipped, *lost)), data)
    assert {point.row_id for point in drawn.points} == {f"r{i}" for i in range(10)}  # r3 itself was audited
    assert drawn.rows == 10 and drawn.wrong_drawn == 0


@pytest.mark.parametrize(
    ("captions", "points"),
    [
        (["A dog."], 1),
        (["A dog."] * 50, 50),
        (["A dog.", "A cat.", "Ein Hund schläft."], 3),
        (["这是一只狗。它很可爱！", "Ein Hund schläft auf dem Sofa.", "猫が寝ています。"] * 20, 80),
        (["![a dog](dog.png)"], 0),
        (["word " * 3000, "A cat sits."], 2),
    ],
    ids=["one fact", "all alike", "three", "languages", "no sentence", "very long"],
)
def test_thin_and_odd_captions_make_a_map_too(captions: list[str], points: int) -> None:
    data = load_data([{"id": str(i), "caption": caption} for i, caption in enumerate(captions)])
    drawn = draw_fact_map(AuditResult("none", (), (), {}), data)
    assert len(drawn.points) == points == sum(cluster.facts for cluster in drawn.clusters)
    assert all(np.isfinite([point.x, point.y]).all() for point in drawn.points)
    assert drawn.facts is None and drawn.projection == "PCA"
    assert all(0 < len(cluster.name) <= 40 for cluster in drawn.clusters)


def test_a_map_goes_into_findings_json_and_comes_back(
    drawn: symbal_hf.FactMap, data: AuditData, tmp_path: Path
) -> None:
    result = replace(result_of(data), fact_map=drawn)
    result.write(tmp_path)
    assert load_result(tmp_path) == result
    stored = json.loads((tmp_path / "findings.json").read_text())
    assert len(stored["fact_map"]["points"]) == 240
    del stored["fact_map"]  # as files of before lack it
    (tmp_path / "findings.json").write_text(json.dumps(stored))
    assert load_result(tmp_path).fact_map is None


def test_a_map_of_nothing_is_refused(data: AuditData) -> None:
    with pytest.raises(ValueError, match="facts=0"):
        draw_fact_map(result_of(data), data, facts=0)


def test_few_points_are_laid_out_by_their_principal_components() -> None:
    line = np.linspace(0, 1, 20)[:, None] * np.array([[3.0, 4.0, 0.0]])
    places, how = project(line)
    assert how == "PCA" and places[:, 0] == pytest.approx(np.linspace(0, 1, 20)) and (places[:, 1] == 0.5).all()
    cloud = np.random.default_rng(0).normal(size=(12, 2)) @ np.diag([5.0, 1.0])
    flat = principal(np.pad(cloud, ((0, 0), (0, 6))))
    before, after = (np.linalg.norm(c[:, None] - c[None], axis=-1) for c in (cloud, flat))
    assert after == pytest.approx(before)


def test_many_points_keep_their_neighbours() -> None:
    draw = np.random.default_rng(0)
    heaps = np.repeat(np.eye(6, 50), 20, axis=0)
    places, how = project(heaps + 0.02 * draw.normal(size=heaps.shape))
    middles = places.reshape(6, 20, 2).mean(1)
    nearest = np.linalg.norm(places[:, None] - middles[None], axis=-1).argmin(1)
    assert how == "t-SNE" and (nearest == np.repeat(np.arange(6), 20)).all()
    assert places.min() == 0 and places.max() == 1
