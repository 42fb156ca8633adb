"""Pairs that are asked for are measured as findings are, whether or not they are found, and change nothing else."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from command import symbal
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground
from symbal_hf.auditing.asked import check_pairs, read_pairs
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.language.concepts import class_named, find_concepts
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.results.findings import load_result

COUNTS = ("errors_with_feature", "rows_with_feature", "errors_without_feature", "rows_without_feature")
NUMBERS = (*COUNTS, "cramers_v", "risk_ratio", "risk_ratio_low", "risk_ratio_high", "p_value", "confirmed_share")
NAMES = st.sets(st.sampled_from(["sink", "toilet", "cat"])).map(sorted)
RARE = [("unicorn", "lamp"), ("umbrella", "zeppelin")]


def home(n=240):
    """Captions that say "sink" falsely in most bathrooms with a toilet, and now and then elsewhere."""
    rows = []
    for i in range(n):
        objects = [name for k, name in enumerate(("toilet", "couch", "cat", "lamp")) if (i * (k + 3)) % 7 < 2]
        said = [*objects] + (["sink"] if ("toilet" in objects and i % 4) or i % 29 == 0 else [])
        text = " ".join(f"There is a {name}." for name in said) or "A view of a room."
        rows.append({"id": f"r{i}", "caption": text, "objects": objects + (["sink"] if i % 31 == 0 else [])})
    return rows


def as_references(rows):
    out = []
    for row in rows:
        names = row["objects"] or ["room"]
        told = [f"A {' and a '.join(names)} in a house.", f"A {' by a '.join(names)}."]
        out.append({"id": row["id"], "caption": row["caption"], "references": told})
    return out


def recounted(rows, t, v):
    """The 2x2 table by words alone, without the package."""
    count = Counter(
        (v in row["objects"], bool(re.search(rf"\b{t}s?\b", row["caption"].lower())))
        for row in rows if t not in row["objects"]
    )  # fmt: skip
    return {
        "errors_with_feature": count[True, True], "rows_with_feature": count[True, True] + count[True, False],
        "errors_without_feature": count[False, True], "rows_without_feature": count[False, True] + count[False, False],
    }  # fmt: skip


@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=40))
@settings(max_examples=25)
def test_with_objects_the_table_is_the_one_that_anybody_counts(drawn):
    rows = [
        {"id": i, "objects": objects, "caption": " ".join(f"There is a {s}." for s in said) or "A room."}
        for i, (objects, said) in enumerate(drawn)
    ]
    pairs = [("sink", "toilet"), ("cat", "sink")]
    words = {name: [] for name in ("sink", "toilet", "cat")}
    result = symbal_hf.audit(rows, vocabulary=words, pairs=pairs)
    for (t, v), asked in zip(pairs, result.asked, strict=True):
        assert {name: getattr(asked, name) for name in COUNTS} == recounted(rows, t, v)
        assert asked.p_value_corrected == pytest.approx(min(1, 2 * asked.p_value))
        assert len(asked.affected) == asked.errors_with_feature + asked.errors_without_feature
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("method", ["association", "paper"])
@pytest.mark.parametrize("rows", [home(), as_references(home())], ids=["objects", "references"])
def test_what_is_found_has_the_same_numbers_when_it_is_asked_for(rows, method):
    found = symbal_hf.audit(rows).findings[0]
    pair = (found.textual_error, found.visual_feature)
    assert pair == ("sink", "toilet")
    asked = symbal_hf.audit(rows, method=method, pairs=[pair]).asked[0]
    assert [getattr(asked, name) for name in NUMBERS] == [getattr(found, name) for name in NUMBERS]
    assert (asked.affected, asked.examples) == (found.affected, found.examples)
    assert asked.p_value_corrected == asked.p_value < found.p_value_corrected


@pytest.mark.parametrize("method", ["association", "paper"])
@pytest.mark.parametrize("pixels", [True, False])
def test_asking_changes_nothing_that_is_found(scene_folder, method, pixels):
    source = scene_folder[0] / "captions.jsonl" if pixels else as_references(home())
    results = [symbal_hf.audit(source, method=method, pairs=pairs).to_dict() for pairs in ((), RARE)]
    for result in results:
        result.pop("asked"), result["provenance"].pop("pairs")
    assert results[0] == results[1]


def test_pixels_measure_what_was_planted(scene_folder):
    folder, truth = scene_folder
    pairs = [(truth.textual_error, truth.visual_feature), (truth.textual_error, "stop sign"), *RARE]
    asked = symbal_hf.audit(folder / "captions.jsonl", pairs=pairs).asked
    assert [(f.textual_error, f.visual_feature) for f in asked] == pairs
    scenes = {str(s["image_id"]): s["objects"] for s in map(json.loads, (folder / "scenes.jsonl").open())}
    right = [truth.textual_error not in scenes[row.row_id] for row in asked[0].affected]
    assert sum(right) >= 0.8 * len(right) >= 8
    assert asked[0].error_rate_with > 0.4 > asked[1].error_rate_with and asked[0].p_value < 1e-6 < asked[1].p_value


def test_what_is_stated_or_shown_nowhere_is_a_finite_nothing(tmp_path):
    result = symbal_hf.audit(as_references(home()), pairs=[("unicorn", "toilet"), ("sink", "zeppelin"), ("yak", "gnu")])
    for asked in result.asked[::2]:
        assert asked.errors_with_feature == asked.errors_without_feature == len(asked.affected) == 0
        assert (asked.cramers_v, asked.risk_ratio, asked.p_value, asked.p_value_corrected) == (0, 1, 1, 1)
        assert (asked.risk_ratio_low, asked.risk_ratio_high, asked.confirmed_share) == (0, 1e9, None)
    assert result.asked[1].rows_with_feature == 0 and result.asked[1].risk_ratio == 1
    json.dumps(result.to_dict(), allow_nan=False)
    result.write(tmp_path)
    assert load_result(tmp_path) == result
    old = json.loads((tmp_path / "findings.json").read_text("utf-8"))
    del old["asked"]
    (tmp_path / "findings.json").write_text(json.dumps(old), "utf-8")
    assert load_result(tmp_path) == replace(result, asked=())


def test_names_are_found_however_rare_and_however_they_are_given():
    texts = ["A zeppelin by a lamp.", "Two zeppelins.", "A man in black.", "There is no zeppelin."] + ["A dog."] * 9
    concepts = find_concepts(split_facts(texts), always=["The Zeppelins", "man in black", "dogs", "wing"])
    assert concepts.names[-3:] == ("man in black", "wing", "zeppelin") and concepts.extra == 3
    named = [np.flatnonzero(concepts.stated(place)).tolist() for place in concepts.asked]
    assert named == [[0, 1], [2], list(range(4, 13)), []]
    assert concepts.usual().names == find_concepts(split_facts(texts)).names == ("dog",)


def test_phrases_may_count_as_another():
    texts = ["A tv on a wall."] * 6 + ["A television."] * 4 + ["A television set."] * 3 + ["A cat."] * 5
    same = {"television": "tv", "television set": "tv"}
    concepts = find_concepts(split_facts(texts), always=["television", "tv"], same=same)
    assert concepts.asked[0] == concepts.asked[1] and "television" not in concepts.names
    assert concepts.stated(concepts.asked[0]).sum() == 13


def test_a_vocabulary_knows_synonyms_and_names_what_is_near():
    words = Vocabulary({"couch": ["sofa", "love seat"], "dining table": [], "stop sign": [], "cat": []})
    assert [class_named(name, words) for name in ("sofas", "Love Seat", "couch")] == ["couch"] * 3
    with pytest.raises(BadData, match=r"'table' is no class of the vocabulary .*these are near: dining table"):
        class_named("table", words)
    with pytest.raises(BadData, match=r"'coach' is no class .*: couch"):
        class_named("coach", words)
    with pytest.raises(BadData, match="of its 4 classes the first are: couch, dining table, stop sign, cat"):
        class_named("zzz", words)
    rows, vocabulary = home(), {"toilet": ["loo"], "sink": ["basin"], "couch": ["sofa"]}
    asked = symbal_hf.audit(rows, vocabulary=vocabulary, pairs=[("basin", "loo")]).asked[0]
    assert (asked.textual_error, asked.visual_feature) == ("sink", "toilet")
    with pytest.raises(BadData, match="'lamp' is no class"):
        symbal_hf.audit(rows, vocabulary=vocabulary, pairs=[("lamp", "loo")])
    with pytest.raises(BadData, match="'washbowl' is no class"):
        symbal_hf.audit(rows, pairs=[("washbowl", "toilet")])  # the objects are the vocabulary
    with pytest.raises(BadData, match="both names of a pair mean 'couch'"):
        symbal_hf.audit(rows, vocabulary=vocabulary, pairs=[("sofa", "couch")])


@pytest.mark.parametrize(
    "pairs", ["sink|toilet", ["sink|toilet"], [("sink",)], [("a", "b", "c")], [("sink", " ")], [("sink", 3)]]
)
def test_what_is_no_pair_is_refused_with_an_example(pairs):
    with pytest.raises(ValueError, match=r"such as \('sink', 'toilet'\)"):
        check_pairs(pairs)


def test_pairs_of_the_command_line():
    assert read_pairs(["sink|toilet", " tv set | couch "]) == (("sink", "toilet"), ("tv set", "couch"))
    for text in ("sink", "sink|", "a|b|c", "|"):
        with pytest.raises(ValueError, match=r"textual error and the visual feature as 'sink\|toilet'"):
            read_pairs([text])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    base = scenes_base(tmp_path_factory.mktemp("drawn"), rows=240, size=64, seed=11)
    found = Ground(base).plant("bench", "car", 0.6)
    data = load_data([{"id": i, "image": str(image), "caption": caption}
                      for i, image, caption in zip(base.ids, base.images, found.captions, strict=True)])  # fmt: skip
    return base, data, found, Store(tmp_path_factory.mktemp("store") / "store.sqlite")


@pytest.mark.parametrize("method", ["association", "paper"])
@pytest.mark.parametrize("kind", ["vision-language", "embedding"])
def test_compositions_measure_pairs_too_and_find_the_same(planted, kind, method):
    base, data, found, store = planted
    parts = {"chat": Oracle(base, miss=0.02)} if kind == "vision-language" else {}
    options = dict(scorer_1=kind, scorer_2=kind, method=method, store=store, **parts)
    plain = symbal_hf.audit(data, **options)
    result = symbal_hf.audit(data, pairs=[("bench", "car"), ("unicorn", "car"), ("bench", "dirigible")], **options)
    assert (result.findings, result.suspects, result.counts) == (plain.findings, plain.suspects, plain.counts)
    bench, unicorn, dirigible = result.asked
    lies = {data.ids[row] for row in found.rows}
    assert unicorn.affected == () and dirigible.rows_with_feature < 0.5 * len(data)
    assert bench.p_value < 0.01 and bench.error_rate_with > 3 * bench.error_rate_without
    if kind == "vision-language":  # an encoder that nobody calibrated knows less
        assert len(lies & set(bench.affected_ids)) > 0.8 * len(lies)
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_pipeline_takes_pairs_and_gives_them_back(planted):
    auditor = symbal_hf.pipeline(output="result")
    found = auditor(home(), pairs=[["sink", "toilet"]])
    assert found["asked"][0]["textual_error"] == "sink" and found["provenance"]["pairs"] == [["sink", "toilet"]]
    assert auditor(home())["asked"] == []


def test_the_command_prints_and_writes_what_was_asked_for(tmp_path):
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in home()), "utf-8")
    done = symbal("audit", table, "--out", tmp_path / "out", "--pair", "sink|toilet", "--pair", "cat|couch")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.partition("Pairs that were asked for")[2]
    assert re.search(r"sink +│ toilet", shown) and re.search(r"cat +│ couch.*unknown", shown)
    assert [f.textual_error for f in load_result(tmp_path / "out").asked] == ["sink", "cat"]
    refused = symbal("audit", table, "--out", tmp_path / "no", "--pair", "sink,toilet")
    assert refused.returncode == 2 and "'sink,toilet'" in refused.stderr and not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("name", "rate"), [("pope__mplug-owl__instruction1", 0.73), ("pope__minigpt4__instruction1", 0.43)]
)
def test_real_captions_are_counted_as_anybody_would(name, rate, shared_data):
    folder = shared_data / "mllm_coco"
    source = folder / "mllm_captions" / f"{name}.jsonl"
    objects = {str(r["image_id"]): r["objects"] for r in map(json.loads, (folder / "objects_chair.jsonl").open())}
    rows = [json.loads(line) for line in source.open()]
    rows = [{**row, "objects": objects[str(row["image_id"])]} for row in rows]
    options = {"join": folder / "objects_chair.jsonl", "vocabulary": folder / "chair_vocab.json"}
    asked, zebra = symbal_hf.audit(source, pairs=[("sink", "toilet"), ("zebra", "toaster")], **options).asked
    assert {key: getattr(asked, key) for key in COUNTS} == recounted(rows, "sink", "toilet")
    assert {key: getattr(zebra, key) for key in COUNTS} == recounted(rows, "zebra", "toaster")
    assert round(asked.error_rate_with, 2) == rate
