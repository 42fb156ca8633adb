"""A second look counts what it says it counts, tells what it does not know, and says when it is none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from chat_fakes import FakeServer, truth
from hypothesis import given
from hypothesis import strategies as st
from kitchen_case import colours, kitchen, only
from tiny_detectors import save_owl
from typer.testing import CliRunner

import symbal_hf
from symbal_hf.cli.app import app
from symbal_hf.cli.followup import sentence
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.followup.second_look import look_again
from symbal_hf.followup.validate import compare_rates, independent
from symbal_hf.results.findings import load_result
from symbal_hf.results.validation import load_validation
from symbal_hf.stats.contingency import fisher_greater, risk_ratio

states = st.sampled_from((1.0, 0.0, float("nan")))


@given(st.lists(st.tuples(states, states), max_size=60))
def test_every_row_counts_once_or_is_undecided(rows):
    feature, wrong = np.array(rows, np.float64).reshape(-1, 2).T
    found = compare_rates("t", "v", feature, wrong)
    known = [(v, t) for v, t in rows if v == v and t == t]
    assert found.rows_with_feature + found.rows_without_feature + found.undecided == len(rows)
    assert found.errors_with_feature == known.count((1, 1)) and found.rows_with_feature == sum(v for v, _ in known)
    assert found.errors_without_feature == known.count((0, 1))
    a, n1, b, n0 = known.count((1, 1)), found.rows_with_feature, known.count((0, 1)), found.rows_without_feature
    assert found.p_value == pytest.approx(float(fisher_greater(a, n1, a + b, n1 + n0)))
    if n1 and n0 and a + b:
        ratio = risk_ratio(a, n1, b, n0)
        assert (found.risk_ratio, found.risk_ratio_low, found.risk_ratio_high) == pytest.approx(ratio)
    else:
        assert (found.risk_ratio, found.risk_ratio_low, found.p_value) == (1, 0, 1) and found.risk_ratio_high == 1e9
    json.dumps(symbal_hf.results.validation.Validation("d", "s", True, (found,)).to_dict(), allow_nan=False)
    assert sentence(found).endswith(").")


def test_real_captions_by_objects_are_seconded_and_called_not_independent(shared_data, tmp_path):
    folder = shared_data / "mllm_coco"
    result = symbal_hf.audit(
        folder / "mllm_captions/pope__mplug-owl__instruction1.jsonl", join=folder / "objects_chair.jsonl",
        vocabulary=folder / "chair_vocab.json",
    )  # fmt: skip
    result.write(tmp_path)
    look = look_again(load_result(tmp_path))
    row = {row_id: i for i, row_id in enumerate(look.data.ids)}
    for i, finding in enumerate(result.findings):
        named = look.sentences(i)
        assert finding.affected and all(set(a.sentences) <= set(named[row[a.row_id]]) for a in finding.affected)
    validation = symbal_hf.validate(tmp_path)
    assert (validation.detector, validation.scorer, validation.independent) == ("objects", "objects", False)
    first = validation.findings[0]
    assert (first.textual_error, first.visual_feature) == ("sink", "toilet")
    # Of images without a sink .73 of those with a toilet and .011 of the others; here those with a sink count too.
    audit = result.findings[0]
    assert audit.error_rate_with == pytest.approx(0.73, abs=0.02) and audit.risk_ratio > 50
    assert first.errors_with_feature == audit.errors_with_feature and 20 < first.risk_ratio < audit.risk_ratio
    assert first.rows_with_feature + first.rows_without_feature == 2000 and first.p_value < 1e-25


def test_a_detector_of_pictures_is_an_independent_look_and_counts_the_same(audited):
    by_objects, seen = symbal_hf.validate(audited), symbal_hf.validate(audited, detector=colours, scorer="detector")
    assert not by_objects.independent and seen.independent and seen.detector == "object:colours"
    assert seen.scorer == "detector" and seen.provenance["threshold"] == 0.5
    assert only(seen) == only(by_objects)
    assert only(seen).errors_with_feature == 40 and only(seen).rows_with_feature == 60
    assert (only(seen).rejected_confirmed, only(seen).rejected_rows, only(seen).says) == (40, 40, "confirmed")
    nothing = {"rejected_confirmed": 0, "rejected_rows": 0, "says": None}  # the audit's own word confirms nothing
    own = symbal_hf.validate(audited, detector=colours, scorer="audit")
    assert only(own) == replace(only(seen), **nothing)
    strict = symbal_hf.validate(audited, detector=colours, scorer="objects", threshold=0.9)
    assert only(strict).rows_with_feature == 0 and "nothing can be compared" in sentence(only(strict)).lower()


def test_boxes_of_the_examples_come_from_a_detector_that_has_some(audited, tmp_path):
    spec = f"hf:{save_owl(tmp_path / 'owl')}"
    found = symbal_hf.validate(audited, detector=spec, scorer="detector", threshold=0.02)
    found.write(audited)
    again = load_validation(audited)
    assert again == replace(found, findings=again.findings) and again.findings == found.findings
    boxes, examples = only(again).boxes, load_result(audited).findings[0].examples
    assert set(boxes) <= {example.row_id for example in examples} and boxes
    assert {box.label for row in boxes.values() for box in row} == {"sink", "toilet"}
    assert all(box.score >= 0.02 for row in boxes.values() for box in row)
    assert not only(symbal_hf.validate(audited)).boxes


def test_the_threshold_is_fitted_to_known_objects(audited):
    def dim(images, names):
        return [[score / 3 for score in row] for row in colours(images, names)]

    with pytest.raises(BadData, match="contradict"):
        symbal_hf.validate(audited, detector=dim, threshold=0.4, calibrate="objects")
    with pytest.raises(BadData, match="compares objects with themselves"):
        symbal_hf.validate(audited, calibrate="objects")
    assert only(symbal_hf.validate(audited, detector=dim)).rows_with_feature == 0
    fitted = symbal_hf.validate(audited, detector=dim, calibrate="objects")
    assert only(fitted).rows_with_feature == 60 and 20 / 765 < fitted.provenance["threshold"] <= 200 / 765 + 1e-6
    assert fitted.provenance["calibrated"]["balanced_accuracy"] == 1


def test_what_is_not_known_is_undecided_and_nothing_else_is(audited, table):
    rows = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
    for i in (0, 1, 70, 100):  # 100 speaks of a sink, 70 does not
        rows[i]["objects"] = None
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = symbal_hf.validate(audited, detector=colours)
    assert only(found).undecided == 3 and only(found).errors_with_feature == 38
    assert found.provenance["undecided"] == [{"feature": 0, "reference": 3, "both": 0}]
    both = symbal_hf.validate(audited)
    assert both.provenance["undecided"] == [{"feature": 1, "reference": 0, "both": 3}]
    (audited.parent / "images" / "r5.png").write_bytes(b"no picture")
    unread = symbal_hf.validate(audited, detector=colours)
    assert only(unread).undecided == 4 and unread.provenance["unreadable_images"] == 1


def test_names_that_the_objects_have_no_word_for_are_told(audited):
    result = load_result(audited)
    strange = replace(result.findings[0], visual_feature="white toilet")
    found = symbal_hf.validate(replace(result, findings=(strange,)), detector="objects")
    assert only(found).undecided == 240 and found.provenance["unknown_to_objects"] == ["white toilet"]
    assert "of no row" in sentence(only(found)).lower()


def test_a_fuller_name_of_the_error_finds_what_the_audit_found(tmp_path):
    rows = [
        {
            "id": str(i),
            "caption": "A dog runs." if i >= 60 else "A man holds a tennis racket." if i % 5 else "He has a racket.",
        }
        for i in range(120)
    ]  # fmt: skip
    data = symbal_hf.data.table.load_data(rows)
    finding = symbal_hf.Finding(
        "tennis racket", "net", ("tennis racket", "racket"), ("net",), *[0.0] * 6, *[0] * 4,
        affected=tuple(symbal_hf.results.findings.Affected(str(i), (rows[i]["caption"],), True) for i in (0, 1)),
    )  # fmt: skip
    result = symbal_hf.AuditResult("systematic", (finding,), (), {}, provenance={"scorer": "embedding"})
    assert look_again(result, data=data).named.sum() == 60
    fuller = replace(finding, affected=finding.affected[1:])
    assert look_again(replace(result, findings=(fuller,)), data=data).named.sum() == 48


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "fact_of_image.jinja").write_text("{{ fact }} Answer 1 or 0.")
    with FakeServer() as fake:
        yield fake


def test_a_chat_model_is_asked_of_each_sentence_that_names_the_error_and_never_twice(audited, server, tmp_path):
    store, spec = Store(tmp_path / "s.sqlite"), f"openai:{server.url}#tiny"
    options = {"scorer": spec, "prompts": tmp_path / "prompts", "store": store}
    lost = {(audited.parent / "images" / f"r{i}.png").read_bytes(): "refusal" for i in range(7)}
    lost[(audited.parent / "images" / "r7.png").read_bytes()] = "400"
    server.fault = lambda question, times: lost.get(question.images[0])
    found = symbal_hf.validate(audited, **options)
    said = [row for row in kitchen() if "sink" in row["caption"]]
    assert len({q.images for q in server.questions}) == len(said)
    assert {q.prompt for q in server.questions} == {"A sink shines. Answer 1 or 0."}
    assert found.provenance["undecided"] == [{"feature": 0, "reference": 8, "both": 0}] and only(found).undecided == 8
    assert found.provenance["sentences_unclear"] == 8 and found.scorer == spec
    false = [
        row["id"] for row in said
        if truth("A sink shines. Answer 1 or 0.", [(audited.parent / "images" / f"{row['id']}.png").read_bytes()]) < 0.5
    ]  # fmt: skip
    expected = [i for i in false if i not in {f"r{k}" for k in range(8)}]
    assert only(found).errors_with_feature + only(found).errors_without_feature == len(expected)
    before = len(server.questions)
    lost.clear()
    symbal_hf.validate(audited, **options)
    assert len(server.questions) == before + 8  # those without an answer
    symbal_hf.validate(audited, **options)
    assert len(server.questions) == before + 8


def test_an_unknown_scorer_is_told_with_those_there_are(audited):
    with pytest.raises(BadData, match="no scorer 'objectz'; available: auto, objects, detector, audit, hf:MODEL"):
        symbal_hf.validate(audited, scorer="objectz")


@pytest.mark.parametrize(
    ("scorer", "models", "detector", "second", "free"),
    [
        ("objects", {}, "objects", "objects", False),
        ("objects", {}, "hf:google/owlv2@abc", "objects", False),
        ("objects", {}, "hf:google/owlv2@abc", "hf:google/owlv2@abc", True),
        ("embedding", {"image": "lite"}, "objects", "objects", True),
        ("embedding", {}, "objects", "audit", False),
        ("vision-language", {"composition": {"chat": "openai:http://a:1/v1#Q/V"}}, "objects", "hf:Q/V@main", False),
        ("vision-language", {"composition": {"chat": "openai:http://a:1/v1#Q/V"}}, "objects", "hf:Q/W", True),
        ("vision-language", {"calls": [{"model": "hf:Q/V@1"}]}, "objects", "openai:http://b/v1#Q/V", False),
        ("object", {"composition": {"scorer_1": "object:mine"}}, "object:mine", "objects", False),
    ],
)
def test_what_the_audit_judged_by_is_no_second_look(scorer, models, detector, second, free):
    assert independent({"scorer": scorer, "models": models}, detector, second) is free


def test_the_command_writes_its_result_and_the_report_anew(audited):
    before = (audited / "report.html").exists()
    done = CliRunner().invoke(app, ["validate", str(audited)])
    assert done.exit_code == 0, done.output
    assert 'Erroneous references to "sink" are ' in done.output and "40 of 60 rows against " in done.output
    assert "this is no independent look" in done.output and not before
    assert only(load_validation(audited)).errors_with_feature == 40
    assert "second look" in (audited / "report.html").read_text("utf-8").lower()


def test_an_audit_that_found_nothing_has_nothing_to_validate(tmp_path):
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps([{"id": str(i), "caption": "A cat.", "objects": ["cat"]} for i in range(30)]))
    symbal_hf.audit(rows).write(tmp_path / "out")
    done = CliRunner().invoke(app, ["validate", str(tmp_path / "out")])
    assert done.exit_code == 0 and "nothing to validate" in done.output
    assert load_validation(tmp_path / "out") is None


def test_other_rows_than_were_audited_are_refused(audited, table):
    rows = [json.loads(line) for line in table.read_text("utf-8").splitlines()]
    with pytest.raises(BadData, match="not those that were audited"):
        symbal_hf.validate(audited, data=rows[1:])
    assert only(symbal_hf.validate(audited, data=rows)) == only(symbal_hf.validate(audited))
