"""How far two judges agree is a matter of the pairs of which both speak, and of nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from typer.testing import CliRunner

from symbal_hf.cli.app import app
from symbal_hf.core.errors import BadData
from symbal_hf.matching.agreement import DOMAINS, RELATIONS, SAME, agreement, read_pairs

verdicts = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)
states = st.sampled_from(("same", "different", "unparsed", "failed"))


def kappa(pairs):
    """Cohen 1960."""
    n = len(pairs)
    seen = sum(a == b for a, b in pairs) / n
    one, other = (sum(column) / n for column in zip(*pairs, strict=True))
    chance = one * other + (1 - one) * (1 - other)
    return None if chance == 1 else (seen - chance) / (1 - chance)


def of(pairs, **options):
    return agreement([a for a, _ in pairs], [b for _, b in pairs], **{"resamples": 30, **options})


@given(verdicts)
def test_kappa_is_cohens(pairs):
    found = of(pairs)
    wanted = kappa(pairs)
    assert (found.kappa is None) == (wanted is None) == bool(found.undefined)
    if wanted is not None:
        assert found.kappa == pytest.approx(wanted)
        assert found.kappa == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))
        assert -1 <= found.low <= found.high <= 1
    assert found.n == found.both_same + found.only_one_same + found.only_other_same + found.both_different
    assert found.share == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


@given(verdicts, st.randoms(use_true_random=False))
def test_the_order_of_pairs_plays_no_part(pairs, rng):
    mixed = list(pairs)
    rng.shuffle(mixed)
    assert of(pairs) == of(mixed)


@given(verdicts)
def test_whom_one_compares_with_whom_plays_no_part(pairs):
    there, back = of(pairs), of([(b, a) for a, b in pairs])
    assert (there.share, there.kappa) == (back.share, pytest.approx(back.kappa) if back.kappa is not None else None)


@given(st.lists(st.booleans(), min_size=2, max_size=40))
def test_a_judge_agrees_with_itself(said):
    assume(len(set(said)) == 2)
    found = agreement(said, said, resamples=30)
    assert (found.share, found.kappa, found.low, found.high) == (1, 1, 1, 1)


@given(st.lists(st.tuples(states, states), min_size=1, max_size=40))
def test_pairs_of_which_a_judge_is_silent_are_left_out_and_counted(pairs):
    spoken = [(a == "same", b == "same") for a, b in pairs if {a, b} <= {"same", "different"}]
    found = of(pairs)
    assert (found.n, found.left_out) == (len(spoken), len(pairs) - len(spoken))
    if spoken:
        assert found.share == of(spoken).share and found.kappa == of(spoken).kappa


def test_where_chance_explains_all_kappa_is_undefined_and_says_so():
    found = agreement(["different"] * 5, ["different"] * 5)
    assert (found.share, found.kappa, found.low, found.high) == (1, None, None, None)
    assert found.undefined == "both judges say 'different' of all 5 pairs, as chance would have it too"
    none = agreement(["failed", None], [True, "unparsed"])
    assert (none.n, none.left_out, none.share, none.kappa) == (0, 2, None, None) and none.undefined


def test_one_judge_that_never_changes_its_mind_has_kappa_0():
    assert of([(True, True), (True, False), (True, True)]).kappa == 0


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """Two judges that are right at random 4 times in 5 each: kappa is .36."""
    rng = random.Random(1)
    hits = 0
    for seed in range(60):
        truth = [rng.random() < 0.5 for _ in range(120)]
        said = [[t == (rng.random() < 0.8) for t in truth] for _ in range(2)]
        found = agreement(*said, seed=seed, resamples=200)
        hits += found.low <= 0.36 <= found.high
    assert hits >= 52


@pytest.mark.parametrize(
    ("one", "other", "complaint"),
    [([True], [True, False], "1 and 2 verdicts"), (["maybe"], [True], "'maybe'"), ([1], [True], "verdict 1")],
)
def test_what_is_no_verdict_is_refused(one, other, complaint):
    with pytest.raises(ValueError, match=complaint):
        agreement(one, other)


def test_the_shipped_pairs_are_many_and_of_all_kinds():
    pairs = read_pairs()
    assert len(pairs) >= 240 and sum(p.domain == "medical" for p in pairs) >= 90
    assert sum(p.same for p in pairs) / len(pairs) >= 0.4
    assert {p.relation for p in pairs} == set(RELATIONS) and {p.domain for p in pairs} == set(DOMAINS)
    assert all(p.same == (p.relation in SAME) for p in pairs)
    twice = Counter(frozenset((p.answer.lower(), p.truth.lower())) for p in pairs)
    assert max(twice.values()) == 1


HEAD = "answer,truth,same,relation,domain\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("answer,truth\ncat,dog\n", "no column 'same'"), (f"{HEAD}cat,dog,no,,\n", "row 1: same is 'no'"),
        (f"{HEAD}cat,,1,,\n", "truth is blank"), (f"{HEAD}cat,dog,0,cousin,\n", "relation is 'cousin'"),
        (f"{HEAD}cat,dog,0,,urban\n", "domain is 'urban'"), (f"{HEAD}cat,dog,1,sibling,\n", "same is 1 for 'sibling'"),
        (f"{HEAD}cat,dog,0,,\ncat,dog,0,,\n", "row 2: 'cat' and 'dog' are in row 1"), (HEAD, "no column|no pair"),
    ],
)  # fmt: skip
def test_a_bad_file_of_pairs_is_named_with_its_row(tmp_path, text, complaint):
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(BadData, match=complaint):
        read_pairs(tmp_path / "pairs.csv")


def test_own_pairs_need_no_relation(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("answer,truth,same\ncat,dog,0\nsofa,couch,1\n")
    assert [(p.same, p.relation, p.domain) for p in read_pairs(path)] == [(False, "", ""), (True, "", "")]
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_pairs(tmp_path / "none.csv")


def symbal(*arguments):
    result = CliRunner().invoke(app, ["judge", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_command_compares_a_judge_with_the_labels(tmp_path):
    out, store = tmp_path / "found" / "lite.json", tmp_path / "s.sqlite"
    text = symbal("agreement", "lite", "labels", "--store", store, "--out", out)
    found = json.loads(out.read_text())
    assert "kappa 0." in text and "95 % interval" in text and "sibling: agree on" in text and "labels: same" in text
    assert found["one"]["name"] == "lite" and found["one"]["revision"] and found["other"]["name"] == "labels"
    assert set(found["by_domain"]) == set(DOMAINS) and set(found["by_relation"]) == set(RELATIONS)
    again = agreement([v["one"] for v in found["verdicts"]], [v["same"] for v in found["verdicts"]])
    assert found["agreement"]["kappa"] == again.kappa and found["agreement"]["low"] == again.low
    differ = sum(v["one"] != v["other"] for v in found["verdicts"])
    assert f"they differ on {differ}" in text and text.count(", truth ") == min(differ, 20)


def test_the_command_says_where_kappa_is_undefined(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("answer,truth,same\nDog,dog,1\na cat,cat,1\n")
    text = symbal("agreement", "exact", "labels", "--pairs", path)
    assert "exact and labels on 2 pairs of pairs.csv" in text
    assert "agree on 100.0% of 2; kappa is undefined: both judges say 'same' of all 2 pairs" in text
    assert "they differ" not in text


def test_the_command_counts_what_a_model_did_not_say(tmp_path, monkeypatch):
    from symbal_hf.models.chat.protocol import Answer

    class Moody:
        name, revision = "openai:http://moody/v1#m", ""

        def __init__(self, *_, **__): ...

        def probability_of_yes(self, conversations):
            for place, messages in enumerate(conversations):
                text = messages[-1].text
                said = Answer(text="1", yes=0.9) if "[A] sofa" in text else Answer(text="Well")
                yield place, Answer(error="too busy") if "[A] cat" in text else said

        def generate(self, *_, **__): ...

    monkeypatch.setattr("symbal_hf.matching.load.load_chat", Moody)
    path = tmp_path / "pairs.csv"
    path.write_text("answer,truth,same\ncat,dog,0\nsofa,couch,1\ncow,owl,0\n")
    options = ("--store", tmp_path / "s.sqlite")
    text = symbal("agreement", "openai:http://moody/v1#m", "labels", "--pairs", path, *options)
    assert "openai:http://moody/v1#m: 1 unparsed, 1 failed" in text and "left out: 2 pairs" in text
    assert "they differ" not in text
    assert symbal("ask", "openai:http://moody/v1#m", "cow", "owl", *options) == "unparsed\n"


def test_the_command_answers_for_one_pair(tmp_path):
    store = ("--store", tmp_path / "s.sqlite")
    assert symbal("ask", "exact", "The Dog", "dog") == "same\n"
    assert symbal("ask", "lite", "enlarged heart", "cardiomegaly", *store) == "same\n"
    with pytest.raises(BadData, match="judge 'labels'; available are exact, lite"):
        symbal("ask", "labels", "cat", "dog", *store)
