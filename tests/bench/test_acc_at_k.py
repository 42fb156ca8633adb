"""A setting counts when both names are among the first K; what the judge could not tell stays visible."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.bench.acc_at_k import acc_at_k, checked
from symbal_hf.core.errors import BadData

WORDS = ["sink", "toilet", "Katze 猫", "Ärztin", "naïve café", "🚗", "tv", "ﬀ", "مكتب", " "]
T, V = "textual_error", "visual_feature"


class Oracle:
    """Same means equal; pairs of the listed answers get the listed state. Remembers what it was asked."""

    name, revision, prompt_hash = "oracle", "r1", "p1"

    def __init__(self, **states):
        self.states, self.asked = states, []

    def judge(self, pairs):
        self.asked += pairs
        return [self.states.get(answer, "same" if answer == truth else "different") for answer, truth in pairs]


def said(t, v, **more):
    return {T: t, V: v, **more}


def score(predictions, references, judge=None, **options):
    return acc_at_k(predictions, references, judge=judge or Oracle(), **options)


def by_the_book(predictions, references, k, unsure=()):
    """Acc@k, the number undecided, and the other end, as one would say it in words."""
    right = undecided = 0
    for row, truth in zip(predictions, references, strict=True):
        sides = []
        for part in (T, V):
            names = [name.strip() for name in row[part][:k] if name.strip()]
            if any(n == truth[part].strip() and n not in unsure for n in names):
                sides.append("yes")
            elif any(n in unsure for n in names):
                sides.append("perhaps")
            else:
                sides.append("no")
        if sides == ["yes", "yes"]:
            right += 1
        elif "no" not in sides:
            undecided += 1
    n = len(predictions)
    return right / n, undecided, (right + undecided) / n


names = st.lists(st.sampled_from(WORDS), max_size=7)
truths = st.sampled_from([word for word in WORDS if word.strip()])
benchmarks = st.lists(
    st.tuples(st.builds(said, names, names), st.builds(said, truths, truths)), min_size=1, max_size=12
)


@given(benchmarks, st.sets(st.sampled_from(WORDS), max_size=3), st.sampled_from(["unparsed", "failed"]))
def test_scores_are_what_the_definition_says_in_any_script(rows, unsure, how):
    predictions, references = zip(*rows, strict=True)
    scores = score(predictions, references, Oracle(**dict.fromkeys(unsure, how)), k=(1, 2, 5), resamples=0)
    for k in (1, 2, 5):
        found = tuple(scores[key] for key in (f"acc@{k}", f"undecided@{k}", f"acc@{k}_if_undecided_right"))
        assert found == by_the_book(predictions, references, k, unsure)


@given(benchmarks, st.randoms(use_true_random=False))
def test_more_names_never_hurt_and_the_order_of_the_settings_does_not_matter(rows, rng):
    before = score(*zip(*rows, strict=True), resamples=50)
    for kind in ("", "textual_error_", "visual_feature_"):
        assert before[f"{kind}acc@1"] <= before[f"{kind}acc@5"]
        assert before["acc@5"] <= before[f"{kind}acc@5"]
    shuffled = list(rows)
    rng.shuffle(shuffled)
    assert score(*zip(*shuffled, strict=True), resamples=50) == before


@given(benchmarks, st.data())
def test_saying_a_name_again_never_helps(rows, data):
    row = data.draw(st.sampled_from(range(len(rows))))
    prediction, truth = rows[row]
    part = data.draw(st.sampled_from([T, V]))
    if not prediction[part]:
        return
    longer = list(prediction[part])
    place = data.draw(st.integers(1, len(longer)))
    longer.insert(place, data.draw(st.sampled_from(longer[:place])))
    repeated = [*rows[:row], ({**prediction, part: longer}, truth), *rows[row + 1 :]]
    before, after = (score(*zip(*r, strict=True), resamples=0, k=(1, 2, 3, 5)) for r in (rows, repeated))
    assert all(after[f"acc@{k}"] <= before[f"acc@{k}"] for k in (1, 2, 3, 5))


def test_a_repeated_or_blank_name_wastes_its_place():
    truth = [said("sink", "toilet")]
    assert score([said(["cup", "cup", "sink"], ["toilet"])], truth, k=2)["acc@2"] == 0
    assert score([said(["", "sink"], ["toilet"])], truth, k=1)["acc@1"] == 0
    assert score([said(["", " ", "sink"], ["toilet"])], truth, k=3)["acc@3"] == 1


def test_empty_lists_are_wrong_and_nobody_is_asked():
    judge = Oracle()
    scores = score([said([], [])] * 3, [said("sink", "toilet")] * 3, judge)
    assert scores["acc@5"] == 0 and scores["undecided@5"] == 0 and scores["judgements"] == 0 and judge.asked == []


def test_each_pair_is_judged_once_and_no_name_behind_the_last_k():
    judge = Oracle()
    row = said(["a", "b", "a", "c"], ["a", "b", "d"])
    scores = score([row, row], [said("t", "t"), said("t", "v")], judge, k=(1, 3))
    assert sorted(judge.asked) == [(a, b) for a in "abd" for b in "tv"]
    assert scores["judgements"] == 6


def test_what_the_judge_could_not_tell_counts_as_not_right_and_gives_the_other_end():
    judge = Oracle(basin="unparsed", tap="failed")
    predictions = [
        said(["basin"], ["toilet"]),  # hangs on one answer
        said(["basin", "sink"], ["toilet"]),  # at 5 the second name settles it
        said(["tap"], ["cup"]),  # wrong in v, so it does not matter
        said(["sink"], ["toilet"]),
    ]
    scores = score(predictions, [said("sink", "toilet")] * 4, judge)
    assert (scores["acc@1"], scores["undecided@1"], scores["acc@1_if_undecided_right"]) == (0.25, 2, 0.75)
    assert (scores["acc@5"], scores["undecided@5"], scores["acc@5_if_undecided_right"]) == (0.5, 1, 0.75)
    assert (scores["textual_error_undecided@5"], scores["visual_feature_undecided@5"]) == (2, 0)
    assert (scores["judgements"], scores["unparsed"], scores["failed"]) == (5, 1, 1)


def test_a_judge_may_be_a_function_an_object_or_a_name():
    row, truth = [said(["a sink", "?"], ["toilet"])], [said("Sink", "toilet")]

    def first_letter(pairs):
        return [None if a == "?" else a[-1].lower() == b[-1].lower() for a, b in pairs]

    assert score(row, truth, first_letter)["judge"] == {"name": "first_letter", "revision": "", "prompt_hash": ""}
    assert score(row, truth, first_letter)["unparsed"] == 1
    assert score(row, truth)["judge"] == {"name": "oracle", "revision": "r1", "prompt_hash": "p1"}
    assert score(row, truth, "exact")["acc@1"] == 1


def test_intervals_are_those_of_resampled_settings_and_the_seed_decides():
    rng = random.Random(3)
    truth = [said("sink", "toilet")] * 200
    predictions = [said(["sink" if rng.random() < 0.6 else "cup"], ["toilet"]) for _ in truth]
    one, same = (score(predictions, truth, resamples=4000, seed=1) for _ in range(2))
    assert one == same
    assert len({tuple(score(predictions, truth, resamples=20, seed=s)["acc@1_interval"]) for s in range(9)}) > 1
    right = np.array([row[T] == ["sink"] for row in predictions])
    draws = right[np.random.default_rng(0).integers(0, 200, (4000, 200))].mean(axis=1)
    assert one["acc@1_interval"] == pytest.approx(np.percentile(draws, (2.5, 97.5)), abs=0.011)
    assert one["visual_feature_acc@1_interval"] == [1.0, 1.0]
    assert not [key for key in score(predictions, truth, resamples=0) if "interval" in key]


def test_strata_come_from_plain_keys_or_from_rows_of_the_settings_table():
    plain = said("a", "b", domain="natural", strength=0.3, sampling="random", feature_size=0.01, variant="x")
    table = said(
        "a", "b", domain="scenes", strength=0.5998, strength_target=0.6, strategies=["random", "popular"],
        mean_feature_area=0.05, feasible=True, n_rows=400, config="scenes-b-a-0.6", seed=0,
    )  # fmt: skip
    bare = said("a", "b", mean_feature_area=None, domain=math.nan, sampling=[], strength=0.2)
    scores = score([said(["a"], ["b"]), said(["a"], ["b"]), said([], [])], [plain, table, bare])
    found = {key: {label: (part["n"], part["acc@1"]) for label, part in groups.items()}
             for key, groups in scores["by"].items()}  # fmt: skip
    assert found == {
        "domain": {"natural": (1, 1), "scenes": (1, 1), "unknown": (1, 0)},
        "strength": {"0.2": (1, 0), "0.3": (1, 1), "0.6": (1, 1)},
        "sampling": {"popular": (1, 1), "random": (2, 1), "unknown": (1, 0)},
        "feature_size": {"small": (1, 1), "medium": (1, 1), "unknown": (1, 0)},
        "variant": {"x": (1, 1), "unknown": (2, 0.5)},
    }
    assert list(scores["by"]["feature_size"]) == ["small", "medium", "unknown"]
    assert score([said([], [])], [said("a", "b")])["by"] == {}
    own = score([said(["a"], ["b"])] * 2, [said("a", "b", split=n) for n in (1, 2)], strata=("split",))
    assert {label: part["n"] for label, part in own["by"]["split"].items()} == {"1": 1, "2": 1}


def test_sizes_have_these_edges():
    rows = [said("a", "b", feature_size=size) for size in (0, 0.0499, 0.05, 0.1999, 0.2, 1)]
    labels = [row["feature_size"] for row in checked([said([], [])] * 6, rows)[1]]
    assert labels == [["small"]] * 2 + [["medium"]] * 2 + [["large"]] * 2


def test_scores_are_json_and_checked_rows_stay_as_they_are():
    references = [said("a", "b", strength=0.6, sampling=("random", "popular"), domain="x")]
    scores = score([said(["a"], ["b"])], references)
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores
    once = checked([said(("a", "b"), np.array(["c"]))], references)
    assert checked(*once) == once and once[0] == [said(["a", "b"], ["c"])]


FINE, TRUE = said(["a"], ["b"]), said("a", "b")


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    [
        ([], [], {}, "nothing to score"),
        ([FINE], [TRUE, TRUE], {}, "1 predictions for 2 references; give one prediction for each"),
        (FINE, [TRUE], {}, r"predictions are .* \(dict\); give a list"),
        ("a", [TRUE], {}, r"predictions are 'a' \(str\)"),
        ([FINE], 3, {}, r"references are 3 \(int\)"),
        ([FINE, ["a"]], [TRUE, TRUE], {}, r"predictions\[1\] is \['a'\] \(list\), not a mapping"),
        ([FINE], ["a"], {}, r"references\[0\] is 'a' \(str\), not a mapping"),
        ([FINE, {T: ["a"]}], [TRUE, TRUE], {}, r"predictions\[1\] has no 'visual_feature'; give a list"),
        ([said("sink", [])], [TRUE], {}, r"predictions\[0\]\['textual_error'\] is 'sink' \(str\); give a list"),
        ([said([], {"b"})], [TRUE], {}, r"predictions\[0\]\['visual_feature'\] is {'b'} \(set\)"),
        ([said(["a", 3], [])], [TRUE], {}, r"predictions\[0\]\['textual_error'\]\[1\] is 3 \(int\); every name"),
        ([said(["a", None], [])], [TRUE], {}, r"\[1\] is None \(NoneType\); every name must be text"),
        ([FINE] * 2, [TRUE, {V: "b"}], {}, r"references\[1\] has no 'textual_error'; give the name"),
        ([FINE], [said("a", "  ")], {}, r"references\[0\] has no 'visual_feature'"),
        ([FINE], [said("a", ["b"])], {}, r"references\[0\]\['visual_feature'\] is \['b'\] \(list\); the truth"),
        ([FINE], [said("a", "b", feasible=False)], {}, r"references\[0\] has feasible=False, so nothing was planted"),
        ([FINE], [said("a", "b", feature_size=7)], {}, r"references\[0\]\['feature_size'\] is 7; .* in \[0, 1\]"),
        ([FINE], [said("a", "b", strategies={})], {}, r"\['strategies'\] is {} \(dict\); give text, a number"),
        ([FINE], [said("a", "b", domain=True)], {}, r"\['domain'\] is True \(bool\)"),
        ([{**FINE, "config": "x"}], [{**TRUE, "config": "y"}], {}, r"predictions\[0\] has config 'x', but .* 'y'"),
        ([FINE], [TRUE], {"k": 0}, "k has 0; give whole numbers of at least 1"),
        ([FINE], [TRUE], {"k": (1, 2.0)}, "k has 2.0; give"),
        ([FINE], [TRUE], {"k": True}, "k has True; give"),
        ([FINE], [TRUE], {"k": "5"}, "k has '5'; give"),
        ([FINE], [TRUE], {"k": ()}, "k is empty; give"),
        ([FINE], [TRUE], {"resamples": -1}, "resamples is -1; give a whole number of at least 0"),
        ([FINE], [TRUE], {"seed": 0.5}, "seed is 0.5; give"),
        ([FINE], [TRUE], {"judge": "strict"}, "judge 'strict'; available are"),
        ([FINE], [TRUE], {"judge": lambda pairs: [True]}, "gave 1 verdicts on 2 pairs; give one for each"),
        ([FINE], [TRUE], {"judge": Oracle(a="maybe")}, "judge oracle said 'maybe'; it must say one of same, different"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_one_sentence(predictions, references, options, sentence):
    with pytest.raises(BadData, match=sentence) as refused:
        score(predictions, references, **options)
    assert str(refused.value).count(". ") == 0 and str(refused.value).endswith(".")


def test_a_judge_that_leaves_pairs_out_is_refused():
    short = Oracle()
    short.judge = lambda pairs: ["same"]
    with pytest.raises(BadData, match="judge oracle gave 1 verdicts on 2 pairs"):
        score([FINE], [TRUE], short)


def test_a_prediction_for_a_variant_belongs_to_its_setting():
    truth = [{**TRUE, "config": "scenes-b-a-0.6"}]
    assert score([{**FINE, "config": "scenes-b-a-0.6-reference_free"}], truth)["acc@1"] == 1
    assert score([{**FINE, "id": 7}], truth)["acc@1"] == 1


def test_tables_of_pandas_and_datasets_are_lists_of_rows():
    import pandas as pd
    from datasets import Dataset

    rows, truths = [FINE, said(["b"], ["b"])], [said("a", "b", mean_feature_area=x) for x in (0.1, None)]
    wanted = score(rows, truths)
    assert score(pd.DataFrame(rows), pd.DataFrame(truths)) == wanted
    assert score(Dataset.from_list(rows), Dataset.from_list(truths)) == wanted
