"""A person is asked first where it matters most, and twenty answers say how far an audit is right."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kitchen_case import colours, kitchen, labelled, only
from scipy.stats import binom
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner

import symbal_hf
from symbal_hf.auditing.units import Units
from symbal_hf.cli.app import app
from symbal_hf.core.errors import BadData
from symbal_hf.followup.human_labels import FIRST, LABEL, TEMPLATE, rows_to_label, second_look_on, verdict_of
from symbal_hf.results.findings import Affected, Finding, load_result
from symbal_hf.results.validation import load_validation
from symbal_hf.stats.contingency import fisher_greater, wilson

states = st.sampled_from((1.0, 0.0, float("nan")))


def test_a_persons_labels_are_compared_with_what_was_decided(audited, tmp_path):
    rows = list(kitchen())
    wrong = {row["id"]: "sink" in row["caption"] and "sink" not in row["objects"] for row in rows}
    say = {row["id"]: wrong[row["id"]] != (i % 10 == 0) for i, row in enumerate(rows) if i % 2 == 0}
    answers = {True: ("1", "yes", "Y"), False: ("0", "No", "false")}
    lines = [{"image_id": i, "label": answers[s][k % 3]} for k, (i, s) in enumerate(say.items())]
    lines += [{"image_id": "r1", "label": " "}, {"image_id": "elsewhere", "label": "1"}]
    found = symbal_hf.validate(audited, detector=colours, human=labelled(tmp_path / "h.csv", lines))
    human = only(found).human
    expected = cohen_kappa_score([say[i] for i in say], [wrong[i] for i in say])
    assert human.rows == 120 and human.agreed == 96 and human.kappa == pytest.approx(expected)
    assert human.low < human.kappa < human.high
    told = found.provenance["human"]
    assert told["labels"] == 120 and told["blank"] == 1 and told["strange"] == ["elsewhere"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "r1", "label": "maybe"}], "row 1: label is 'maybe'; give 1 or 0"),
        ([{"id": "r1", "label": "1"}, {"id": "r1", "label": "0"}], "row 2: row r1 is labelled 1 and 0"),
        ([{"id": "x", "label": "1"}], "no label of an audited row"),
        ([{"name": "r1", "label": "1"}], "labels need an id"),
        ([{"id": "r1", "answer": "1"}], "labels need a label"),
        ([{"id": "r1", "label": "1", "textual_error": "car"}], "the first of 1 is 'car'"),
    ],
)
def test_labels_that_cannot_be_used_are_told_in_one_sentence(audited, tmp_path, rows, said):
    with pytest.raises(BadData, match=said):
        symbal_hf.validate(audited, human=labelled(tmp_path / "h.csv", rows))


def test_a_template_asks_of_rejected_rows_first_is_blind_and_never_overwritten(audited, tmp_path):
    path = tmp_path / "label.csv"
    symbal_hf.validate(audited, detector=colours, human_template=path, human_rows=44, seed=3)
    lines = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    by_id = {row["id"]: row for row in kitchen()}
    assert tuple(lines[0]) == TEMPLATE and len(lines) == 44 and len({line["id"] for line in lines}) == 44
    rejected = {f"r{i}" for i in range(40)}
    assert {line["id"] for line in lines[:FIRST]} < rejected
    assert all(line[LABEL] == "" and line["caption"] == by_id[line["id"]]["caption"] for line in lines)
    assert all(line["sentence"] == ("A sink shines." if "sink" in line["caption"] else "") for line in lines)
    rest = lines[FIRST:]
    with_v = [line["id"] for line in rest if "toilet" in by_id[line["id"]]["objects"]]
    said = [line["id"] for line in rest if line["sentence"]]
    assert len(with_v) == 8 and len(said) == 16  # nobody with a toilet is silent about a sink, so the others give more
    with pytest.raises(BadData, match="may hold somebody's labels"):
        symbal_hf.validate(audited, human_template=path)
    for line in lines:
        line[LABEL] = int(bool(line["sentence"]) and "sink" not in by_id[line["id"]]["objects"])
    filled = symbal_hf.validate(audited, detector=colours, human=labelled(path, lines))
    assert only(filled).human.agreed == only(filled).human.rows == 44 and only(filled).human.kappa == 1


@given(st.lists(st.tuples(st.booleans(), states), max_size=80), st.integers(4, 40), st.integers(0, 5))
def test_the_rest_to_label_come_from_every_quarter(rows, n, seed):
    said, feature = np.array([s for s, _ in rows], bool), np.array([v for _, v in rows], np.float64)
    drawn = rows_to_label(said, feature, rows=n, seed=seed).tolist()
    known = [i for i in range(len(rows)) if feature[i] == feature[i]]
    assert len(set(drawn)) == len(drawn) == min(n, len(known)) and set(drawn) <= set(known)
    for cell in ((s, v) for s in (True, False) for v in (1.0, 0.0)):
        there = sum(rows[i] == cell for i in known)
        assert sum(rows[i] == cell for i in drawn) >= min(there, n // 4)


@given(st.lists(st.tuples(states, st.booleans()), max_size=80), st.integers(4, 60), st.integers(0, 5))
def test_rejected_rows_are_asked_about_first_and_at_random(rows, n, seed):
    feature, rejected = np.array([v for v, _ in rows], np.float64), np.array([r for _, r in rows], bool)
    said = rejected | (feature > 0)
    drawn = rows_to_label(said, feature, rejected, rows=n, seed=seed).tolist()
    first = min(FIRST, n, int(rejected.sum()))
    assert len(set(drawn)) == len(drawn) <= n and rejected[drawn[:first]].all()
    assert set(np.flatnonzero(~np.isnan(feature) | rejected)) >= set(drawn)
    assert drawn == rows_to_label(said, feature, rejected, rows=n, seed=seed).tolist()


def test_any_rejected_row_may_be_the_first():
    many = np.ones(60, bool)
    asked = {row for seed in range(40) for row in rows_to_label(many, many * 1.0, many, seed=seed)[:FIRST].tolist()}
    assert asked == set(range(60))


def suspected(folder):
    """The same audit as if one judge alone had said so."""
    result = load_result(folder)
    suspect = replace(result.findings[0], state="suspected", confirmed_by=None, reason="one judge says so")
    replace(result, verdict="none", findings=(), suspects=(suspect,), why_none="one judge").write(folder)
    return folder


def answered(path, folder, yes, *, rows=20):
    """A template of which so many of its first rows are answered by yes, the others by no."""
    symbal_hf.validate(folder, human_template=path, human_rows=rows)
    lines = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    path.unlink()
    return labelled(path, [{**line, LABEL: int(i < yes)} for i, line in enumerate(lines)])


@pytest.mark.parametrize(
    ("yes", "says", "words"),
    [
        (18, "confirmed", "what was only suspected is confirmed by a person"),
        (14, "open", "not settled"),
        (3, "contradicted", "what was only suspected is contradicted by a person"),
    ],
)
def test_twenty_answers_settle_what_is_suspected(audited, tmp_path, yes, says, words):
    labels = answered(tmp_path / "l.csv", suspected(audited), yes)
    done = CliRunner().invoke(app, ["validate", str(audited), "--human", str(labels)])
    assert done.exit_code == 0, done.output
    human, told = only(load_validation(audited)).human, json.loads((audited / "validation.json").read_text("utf-8"))
    low, high = wilson(yes, 20)
    assert (human.confirmed, human.rejected, human.precision, human.says) == (yes, 20, yes / 20, says)
    assert (human.precision_low, human.precision_high) == pytest.approx((low, high))
    assert told["findings"][0]["state"] == "suspected" and told["findings"][0]["human"]["says"] == says
    precision = f"precision {yes / 20:.2f} [{low:.2f}, {high:.2f}]"
    assert f"{yes} of 20 rejected rows with 'toilet' confirmed by a person, {precision}: {words}" in done.output
    page = (audited / "report.html").read_text("utf-8")
    assert words in page and "rejected rows with" in page


def test_only_rejected_images_with_the_feature_count_and_each_once(tmp_path):
    rows = [
        {**row, "id": f"{row['id']}-{copy}", "image_id": row["id"]} for row in kitchen() for copy in (1, 2)
    ]  # fmt: skip
    table = tmp_path / "twice.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    symbal_hf.audit(table).write(tmp_path / "twice")
    path = tmp_path / "t.csv"
    symbal_hf.validate(tmp_path / "twice", human_template=path, human_rows=20)
    lines = list(csv.DictReader(path.open(encoding="utf-8", newline="")))[:20]
    assert len({line["id"].rpartition("-")[0] for line in lines}) == 20  # of as many images
    answers = [{"id": f"r{i}-{copy}", "erroneous": "1" if i < 8 else "0"} for i in range(12) for copy in (1, 2)]
    answers += [{"id": f"r{i}-1", "erroneous": "0"} for i in (50, 51, 100, 150, 200)]  # true ones, or without a toilet
    found = symbal_hf.validate(tmp_path / "twice", human=labelled(tmp_path / "h.csv", answers)).findings[0]
    assert (found.human.confirmed, found.human.rejected) == (8, 12) and found.human.says == "open"


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 300), st.integers(0, 300), st.integers(0, 400))
def test_a_person_confirms_only_what_is_surely_true_more_often_than_not(yes, no, a, b, more):
    finding = symbal_hf.Finding("t", "v", ("t",), ("v",), *[0.0] * 6, a, a + 50, b, b + more)
    says, (low, high) = verdict_of(finding, yes, yes + no), wilson(yes, yes + no)
    assert (says == "contradicted") == (high < 0.5)
    if says == "confirmed":
        assert low >= 0.5 and fisher_greater(a, a + 50, a + b, a + 50 + b + more) < 0.05
        assert verdict_of(finding, yes + 1, yes + 1 + no) == "confirmed"


def test_an_error_as_frequent_everywhere_is_not_confirmed_by_its_being_one():
    """Real errors in one image of ten everywhere, and a judge that is blind to half as many true ones beside v."""
    finding = symbal_hf.Finding("t", "v", ("t",), ("v",), *[0.0] * 6, 30, 200, 100, 1000)
    assert fisher_greater(30, 200, 130, 1200) < 0.05 and wilson(40, 60)[0] > 0.5
    assert verdict_of(finding, 40, 60) == "open" and verdict_of(finding, 60, 60) == "confirmed"


def test_twenty_answers_confirm_what_is_mostly_right_and_not_what_is_right_by_half():
    finding = symbal_hf.Finding("t", "v", ("t",), ("v",), *[0.0] * 6, 40, 60, 2, 600)
    said = [verdict_of(finding, yes, 20) for yes in range(21)]
    assert said == ["contradicted"] * 6 + ["open"] * 9 + ["confirmed"] * 6
    assert binom.sf(14, 20, 0.9) > 0.98 and binom.sf(14, 20, 0.5) < 0.025 and binom.sf(14, 20, 0.1) < 1e-9


def accused(rejected):
    """A finding whose rejected rows are these of N, all with v."""
    finding = Finding("sink", "toilet", ("sink",), ("toilet",), 0.5, 9, 4, 20, 1e-6, 1e-4, 60, 80, 10, 400)
    return replace(finding, affected=tuple(Affected(str(row), ("A sink.",), True) for row in np.flatnonzero(rejected)))


def second(erroneous, rejected, units):
    ids = [str(row) for row in range(len(rejected))]
    found = second_look_on(accused(rejected), ids, erroneous, np.ones(len(rejected), bool), units=units)
    return found["rejected_confirmed"], found["rejected_rows"], found["says"]


@pytest.mark.parametrize(("misses", "says"), [(0.05, "confirmed"), (0.8, "open"), (0.9, "open")])
def test_what_a_second_look_misses_elsewhere_is_taken_off_what_it_confirms(misses, says):
    """60 rejected statements of which it sees none, and 200 that the audit accepts, of which it misses some."""
    rejected = np.arange(260) < 60
    erroneous = (rejected | (np.arange(260) >= 260 - 200 * misses)).astype(float)
    erroneous[50:60] = np.where(np.arange(10) < 5, np.nan, 0.0)
    assert second(erroneous, rejected, Units()) == (50, 55, says)


def test_a_second_look_that_sees_what_was_rejected_contradicts_and_one_that_decides_nothing_is_open():
    rejected = np.arange(100) < 20
    assert second(np.zeros(100), rejected, Units()) == (0, 20, "contradicted")
    assert second(np.full(100, np.nan), rejected, Units()) == (0, 0, "open")
    assert second(rejected * 1.0, rejected, Units(np.arange(100) // 2))[:2] == (10, 10)
