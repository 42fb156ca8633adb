"""Two audits held against each other: paired by id, measured on both sides, and never claiming more than they show."""

from __future__ import annotations

import csv
import json
import random
import re
from dataclasses import replace

import pytest
from command import symbal
from scipy.stats import binomtest, fisher_exact

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.data.table import load_data
from symbal_hf.results.comparison import CHANGES
from symbal_hf.results.findings import load_result


@pytest.fixture(scope="module")
def folder(scene_folder, tmp_path_factory):
    """Captions of the same scenes, audited: as planted, without the error, with half of it, in other words."""
    source, truth = scene_folder
    t, out = truth.textual_error, tmp_path_factory.mktemp("audits")
    rows = [json.loads(line) for line in (source / "captions.jsonl").open()]
    wrong = symbal_hf.audit(source / "captions.jsonl").findings[0].affected_ids

    def without(caption):
        return " ".join(s for s in re.split(r"(?<=\.) ", caption) if t not in s.lower()) or "A view of a place."

    captions = {
        "planted": {},
        "repaired": {row["id"]: without(row["caption"]) for row in rows if row["id"] in wrong},
        "half": {row["id"]: without(row["caption"]) for row in rows if row["id"] in wrong[::3] + wrong[1::3]},
        "couch": {row["id"]: re.sub(rf"\b(an?) {t}", r"a couch", row["caption"], flags=re.I) for row in rows},
        "sofa": {row["id"]: re.sub(rf"\b(an?) {t}", r"a sofa", row["caption"], flags=re.I) for row in rows},
    }
    for name, changed in captions.items():
        made = [{**row, "caption": changed.get(row["id"], row["caption"])} for row in rows]
        if name == "half":
            random.Random(4).shuffle(made)
        (source / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made), "utf-8")
        symbal_hf.audit(source / f"{name}.jsonl").write(out / name)
    return out


def test_an_audit_is_the_same_as_itself(folder):
    found = symbal_hf.compare(folder / "planted", folder / "planted", margin=0.1)
    assert [one.verdict for one in found.findings] == ["same"] and found.overall_verdict == "same"
    assert found.paired and found.rows_in_common == 300 and not found.notes
    for d in (found.findings[0].difference, found.overall):
        assert d.paired and d.difference == 0 and d.low < 0 < d.high and d.p_value == 1


def test_as_few_images_as_show_the_feature_cannot_show_that_rates_are_as_near_as_that(folder):
    """Not a single caption differs; yet of rates that do by .05 less than 52 images would show it now and then."""
    found = symbal_hf.compare(folder / "planted", folder / "planted")
    (one,) = found.findings
    assert one.difference.rows_a < 52 and one.verdict == "not shown" and one.p_value_same_corrected >= 0.05
    assert found.margin == 0.05 and found.overall.rows_a == 300 and found.overall_verdict == "same"
    assert "1 not shown in B" in found.sentence and '"Not shown" is not "same"' in found.markdown()
    for margin in (0, 1, -0.1):
        with pytest.raises(ValueError, match=re.escape(f"margin={margin}; it must be in (0, 1).")):
            symbal_hf.compare(folder / "planted", folder / "planted", margin=margin)


def test_an_error_that_was_mended_is_less_and_the_other_way_round_it_is_more(folder, scene_folder):
    truth = scene_folder[1]
    there = symbal_hf.compare(folder / "planted", folder / "repaired")
    back = symbal_hf.compare(folder / "repaired", folder / "planted")
    (less,), (more,) = there.findings, back.findings
    assert (less.textual_error, less.visual_feature) == (truth.textual_error, truth.visual_feature)
    assert (less.verdict, more.verdict) == ("less", "more") == (there.overall_verdict, back.overall_verdict)
    assert (less.reported_a, less.reported_b, more.reported_a, more.reported_b) == (True, False, False, True)
    assert less.b.errors_with_feature == 0 and less.a == more.b
    d, e = less.difference, more.difference
    assert (d.difference, d.low, d.high) == pytest.approx((-e.difference, -e.high, -e.low))
    assert d.p_value == e.p_value == 2 * 0.5**d.errors_a
    assert there.overall.rate_b == 0 < there.overall.rate_a == back.overall.rate_b
    assert "1 less in B" in there.sentence and "1 more in B" in back.sentence


def test_rows_are_paired_by_id_whatever_their_order(folder, scene_folder):
    """The rows of "half" are in another order than those of "planted"."""
    ids = {name: load_data(scene_folder[0] / f"{name}.jsonl").ids for name in ("planted", "half")}
    assert ids["planted"] != ids["half"] and set(ids["planted"]) == set(ids["half"])
    found = symbal_hf.compare(folder / "planted", folder / "half")
    (one,), d = found.findings, found.findings[0].difference
    assert found.paired and one.verdict == "less"
    assert d.errors_both == d.errors_b < d.errors_a  # no row errs that did not err before
    assert d.rows_a == d.rows_b


def test_another_word_for_the_same_thing_is_no_progress(folder, scene_folder, tmp_path):
    """Whether or not B reports it: with one error in four left out, what is left is still counted under both words."""
    found = symbal_hf.compare(folder / "couch", folder / "sofa")
    # Beside the planted feature it goes with what it was called before: an umbrella in view.
    assert {(one.textual_error, one.verdict) for one in found.findings} == {("couch", "not shown")}
    unreported = replace(load_result(folder / "sofa"), findings=())
    found = symbal_hf.compare(folder / "couch", unreported)
    assert {one.verdict for one in found.findings} == {"not shown"} and "sofa" in found.findings[0].names_b
    assert found.findings[0].reported_b is False
    by_letters = symbal_hf.compare(folder / "couch", unreported, match="exact")
    assert {one.verdict for one in by_letters.findings} == {"less"}


def test_other_images_are_not_paired(folder, scene_folder):
    rows = [json.loads(line) for line in (scene_folder[0] / "planted.jsonl").open()]
    for name, part in (("first", rows[:150]), ("second", rows[150:])):
        (scene_folder[0] / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), "utf-8")
    first, second = (symbal_hf.audit(scene_folder[0] / f"{name}.jsonl") for name in ("first", "second"))
    found = symbal_hf.compare(folder / "planted", second)
    assert not found.paired and found.rows_in_common == 150  # what the smaller lacks may be what was dropped
    assert found.why_unpaired.startswith("150 ids are in both, of 300 in the larger; 90% of them are needed")
    found = symbal_hf.compare(replace(first, findings=load_result(folder / "planted").findings), second)
    assert not found.paired and found.why_unpaired.startswith("0 ids are in both, of 150")
    for one in found.findings:
        d, a, b = one.difference, one.a, one.b
        assert d.errors_both is None and (d.errors_a, d.rows_b) == (a.errors_with_feature, b.rows_with_feature)
        table = [[d.errors_a, d.rows_a - d.errors_a], [d.errors_b, d.rows_b - d.errors_b]]
        assert d.p_value == pytest.approx(fisher_exact(table).pvalue)


def test_several_captions_of_one_image_are_one_image(tmp_path):
    """Whatever differs between A and B, told five times it proves no more than told once."""
    rng, rows = random.Random(3), {1: [[], []], 5: [[], []]}
    for i in range(240):
        toilet = i % 3 == 0
        for times, sides in rows.items():
            random_state = random.Random(i)
            for side, out in enumerate(sides):
                says = random_state.random() < ((0.6, 0.4)[side] if toilet else 0.02)
                caption = f"A room{' with a toilet' if toilet else ''}{' and a sink' if says else ''}."
                for copy in range(times):
                    shown = ["toilet"] if toilet else ["cat", "sink"] if i % 19 == 1 else ["cat"]
                    out.append({"id": f"{i}-{copy}", "image_id": f"p{i}", "caption": caption, "objects": shown})
    found = {}
    for times, sides in rows.items():
        results = []
        for side, out in zip("ab", sides, strict=True):
            rng.shuffle(out)
            path = tmp_path / f"{side}{times}.jsonl"
            path.write_text("".join(json.dumps(row) + "\n" for row in out), "utf-8")
            results.append(symbal_hf.audit(path))
        found[times] = symbal_hf.compare(*results, match="exact")
        unread = symbal_hf.compare(*results, match="exact", measure=False)
        assert (unread.overall is None) == (times > 1)  # which rows show one image is not told without rows
    once, often = (of_pair(found[times], "sink", "toilet") for times in (1, 5))
    assert (
        found[5].paired
        and once.difference == often.difference
        and once.a.rows_with_feature == often.a.rows_with_feature == 80
    )
    assert found[1].overall == found[5].overall and found[5].overall.rows_a == 240


def test_small_steps_that_no_finding_shows_are_shown_by_all_together(tmp_path):
    """Six errors, each halved: of each there are too few images, of all together there are enough."""
    things = {"toilet": "sink", "oven": "cup", "couch": "lamp", "bed": "book", "car": "bus", "boat": "bird"}
    rng, sides = random.Random(8), {"a": [], "b": []}
    for i in range(900):
        place, thing = list(things.items())[i % 6]
        for side, rate in (("a", 0.3), ("b", 0.15)):
            says = i < 300 and rng.random() < rate
            said = f"A {place if i < 300 else 'dog'}.{f' A {thing}.' if says else ''}"
            shown = [place] if i < 300 else ["dog", thing] if i % 25 == 0 else ["dog"]
            sides[side].append({"id": str(i), "caption": said, "objects": shown})
    results = []
    for side, rows in sides.items():
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        results.append(symbal_hf.audit(tmp_path / f"{side}.jsonl", top_k=6))
    found = symbal_hf.compare(*results, match="exact")
    assert found.counts["same"] == 0 and found.counts["not shown"] >= 1
    d, rows = found.overall, list(zip(*sides.values(), strict=True))
    wrong = [tuple(any(t in row["caption"] for t in things.values()) for row in pair) for pair in rows]
    only_a, only_b = wrong.count((True, False)), wrong.count((False, True))
    assert len(found.findings) >= 4 and d.paired and d.rows_a == 900 and found.overall_verdict == "less"
    assert (d.errors_a, d.errors_b) == (sum(a for a, _ in wrong), sum(b for _, b in wrong))
    assert d.p_value == pytest.approx(binomtest(only_a, only_a + only_b).pvalue)
    assert f"{d.rate_a:.1%} in A, {d.rate_b:.1%} in B, less (difference" in found.sentence
    assert found.sentence in found.markdown() and found.to_dict()["overall_verdict"] == "less"


@pytest.mark.parametrize("what", ["objects", "image"])
def test_equal_ids_of_other_images_are_not_paired(folder, scene_folder, what):
    """As ids are that count the rows of each file from zero."""
    rows = [json.loads(line) for line in (scene_folder[0] / "planted.jsonl").open()]
    if what == "objects":
        scenes = {str(s["image_id"]): s["objects"] for s in map(json.loads, (scene_folder[0] / "scenes.jsonl").open())}
        rows = [{"id": row["id"], "caption": row["caption"], "objects": scenes[row["id"]]} for row in rows]
    turned = [{**row, "id": other["id"]} for row, other in zip(rows, rows[7:] + rows[:7], strict=True)]
    results = []
    for name, made in (("counted", rows), ("turned", turned)):
        path = scene_folder[0] / f"{name}-{what}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in made), "utf-8")
        results.append(symbal_hf.audit(path))
    found = symbal_hf.compare(*results)
    assert not found.paired and found.rows_in_common == 300
    assert ("their objects differ" if what == "objects" else "their image files differ") in found.why_unpaired
    assert {one.verdict for one in found.findings} == {"not shown"} and found.overall.difference == 0


def test_what_cannot_be_measured_is_told_and_counted(folder, scene_folder, tmp_path):
    planted, repaired = load_result(folder / "planted"), load_result(folder / "repaired")
    in_memory = replace(repaired, provenance={**repaired.provenance, "read": None})
    for b, source, reason in (
        (in_memory, None, "this audit was of data in memory"),
        (repaired, tmp_path / "gone.jsonl", "gone.jsonl"),
        (repaired, scene_folder[0] / "half.jsonl", "are not those that were audited"),
    ):
        (one,) = symbal_hf.compare(planted, b, source_b=source).findings
        assert one.verdict == "not measured" and one.difference is one.b is one.p_value_corrected is None
        assert one.reason.startswith("in B: ") and reason in one.reason
    changed = {**repaired.provenance, "models": {**repaired.provenance["models"], "adapter": "another"}}
    found = symbal_hf.compare(planted, replace(repaired, provenance=changed))
    assert found.findings[0].verdict == "not measured" and "audit again" in found.findings[0].reason
    assert found.overall is None and found.counts == {change: int(change == "not measured") for change in CHANGES}
    assert found.a.problem is None and found.b.problem and found.notes[0].startswith("the models of A and B differ")
    moved = load_data(scene_folder[0] / "repaired.jsonl")
    assert symbal_hf.compare(planted, in_memory, source_b=moved).counts["less"] == 1


def test_a_composition_is_asked_again_unless_it_was_an_object(folder, scene_folder):
    source, reported = scene_folder[0] / "planted.jsonl", load_result(folder / "planted").findings
    encoded = symbal_hf.audit(source, scorer_1="embedding", scorer_2="embedding")
    found = symbal_hf.compare(replace(encoded, findings=reported), replace(encoded, findings=()), margin=0.1)
    assert found.paired and [one.verdict for one in found.findings] == ["same"]
    spec = {**encoded.provenance["models"]["composition"], "scorer_1": "object:mine"}
    lost = {**encoded.provenance, "models": {"composition": spec, "prompts": {}}}
    found = symbal_hf.compare(folder / "planted", replace(encoded, provenance=lost, findings=(), suspects=()))
    assert found.counts["not measured"] == len(found.findings) == 1 and found.findings[0].reason.startswith("in B: ")


def test_without_measuring_what_was_asked_for_serves(folder, scene_folder):
    pair = [(scene_folder[1].textual_error, scene_folder[1].visual_feature)]
    asked = symbal_hf.audit(scene_folder[0] / "repaired.jsonl", pairs=pair)
    found = symbal_hf.compare(folder / "planted", asked, measure=False, match="exact")
    assert [one.verdict for one in found.findings] == ["less"] and not found.paired
    assert found.overall.rate_b == 0 and found.a.problem == "its rows were not judged again (--no-measure)"
    bare = replace(asked, asked=(), suspects=())
    assert symbal_hf.compare(folder / "planted", bare, measure=False).counts["not measured"] == 1


def test_a_class_that_the_other_vocabulary_lacks_is_not_measured(tmp_path):
    """The objects of the rows name a sink now and then; a vocabulary need not."""
    rows = []
    for i in range(200):
        there = ["toilet"] if i % 3 == 0 else ["cat"]
        said = "A room with a sink." if (i % 3 == 0 and i % 4) or i % 19 == 0 else "A cat."
        rows.append({"id": i, "caption": said, "objects": there + ["sink"] * (i % 19 == 0)})
    table, words = tmp_path / "rows.jsonl", tmp_path / "words.json"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    words.write_text(json.dumps(classes := {"toilet": [], "cat": []}), "utf-8")
    a = symbal_hf.audit(table)
    found = symbal_hf.compare(a, symbal_hf.audit(table, vocabulary=words), match="exact")
    assert [(one.textual_error, one.verdict) for one in found.findings] == [("sink", "not measured")]
    assert "'sink' is no class of the vocabulary" in found.findings[0].reason
    assert found.notes[0].startswith("the vocabulary of A and B differ (None and words.json)")
    b = replace(symbal_hf.audit(table, vocabulary=classes), findings=(), suspects=())
    (one,) = symbal_hf.compare(a, b, match="exact").findings
    assert "vocabulary of the audit cannot be read again" in one.reason


def test_with_nothing_found_there_is_nothing_to_compare(folder, tmp_path):
    found = symbal_hf.compare(folder / "repaired", folder / "repaired")
    assert found.findings == () and found.overall is None
    assert found.sentence.startswith("Neither audit reports anything systematic")
    assert len(found.write(tmp_path / "out")["csv"].read_text("utf-8").splitlines()) == 1


def test_three_files_say_the_same_and_nothing_is_overwritten(folder, tmp_path):
    found = symbal_hf.compare(folder / "planted", folder / "repaired")
    paths = found.write(tmp_path / "out")
    data = json.loads(paths["json"].read_text("utf-8"))
    assert data == json.loads(json.dumps(found.to_dict(), allow_nan=False)) and data["sentence"] == found.sentence
    (row,) = csv.DictReader(paths["csv"].open(newline=""))
    assert row["verdict"] == "less" and float(row["low"]) == found.findings[0].difference.low
    page = paths["md"].read_text("utf-8")
    assert found.sentence in page and "| less |" in page and "paired by id" in page
    for place in (tmp_path / "out", paths["json"]):
        with pytest.raises(BadData, match="is not empty, and a comparison overwrites nothing"):
            found.write(place)
    (tmp_path / "empty").mkdir()
    found.write(tmp_path / "empty")


def test_the_command_prints_one_sentence_and_refuses_a_full_folder(folder, tmp_path):
    options = (folder / "planted", folder / "half", "--out", tmp_path / "out", "--match", "exact")
    done = symbal("compare", *options)
    assert done.returncode == 0, done.stderr
    assert load_result(folder / "planted").findings[0].textual_error in done.stdout
    assert "Of 1 finding of A or B" in done.stdout
    again = symbal("compare", *options)
    assert again.returncode == 2 and "overwrites nothing" in again.stderr and not again.stdout
    lost = symbal("compare", tmp_path, tmp_path, "--out", tmp_path / "other")
    assert lost.returncode == 2 and "no findings.json" in lost.stderr


def real(folder, name):
    options = {"join": folder / "objects_chair.jsonl", "vocabulary": folder / "chair_vocab.json"}
    return symbal_hf.audit(folder / "mllm_captions" / f"{name}.jsonl", **options)


def stated(folder, name):
    """By image whether its caption says "sink", and what it shows; read from the lines alone."""
    shown = {r["image_id"]: r["objects"] for r in map(json.loads, (folder / "objects_chair.jsonl").open())}
    rows = map(json.loads, (folder / "mllm_captions" / f"{name}.jsonl").open())
    return {r["image_id"]: (bool(re.search(r"\bsinks?\b", r["caption"].lower())), shown[r["image_id"]]) for r in rows}


def of_pair(found, t, v):
    return next(one for one in found.findings if (one.textual_error, one.visual_feature) == (t, v))


def test_real_models_on_the_same_images_are_recounted(shared_data):
    names, folder = ("pope__mplug-owl__instruction1", "pope__minigpt4__instruction1"), shared_data / "mllm_coco"
    found = symbal_hf.compare(*(real(folder, name) for name in names))
    one, (a, b) = of_pair(found, "sink", "toilet"), (stated(folder, name) for name in names)
    rows = [i for i in a if "toilet" in a[i][1] and "sink" not in a[i][1]]
    says = [(a[i][0], b[i][0]) for i in rows]
    only_a, only_b, d = says.count((True, False)), says.count((False, True)), one.difference
    assert (d.errors_a, d.errors_b, d.rows_a, d.rows_b) == (32, 19, 44, 44)
    assert d.errors_both == says.count((True, True)) and d.errors_a == d.errors_both + only_a
    assert d.p_value == pytest.approx(binomtest(only_a, only_a + only_b).pvalue)
    assert d.difference == pytest.approx((only_b - only_a) / len(rows))
    assert (round(d.rate_a, 2), round(d.rate_b, 2), one.verdict, found.paired) == (0.73, 0.43, "less", True)
    assert of_pair(found, "boat", "surfboard").verdict == "less"
    p = [f.difference.p_value for f in found.findings]
    assert [f.p_value_corrected for f in found.findings] == pytest.approx(
        [min(1, max(q * sum(r >= q for r in p) for q in p if q <= own)) for own in p]
    )


def test_real_models_on_other_images_are_recounted(shared_data):
    names, folder = ("lessismore__llava-1.5-13b", "opera__llava-1.5__greedy"), shared_data / "mllm_coco"
    found = symbal_hf.compare(*(real(folder, name) for name in names))
    assert not found.paired and found.rows_in_common == 10
    d, tables = of_pair(found, "sink", "toilet").difference, []
    for name in names:
        rows = [said for said, shown in stated(folder, name).values() if "toilet" in shown and "sink" not in shown]
        tables.append((sum(rows), len(rows)))
    assert [(d.errors_a, d.rows_a), (d.errors_b, d.rows_b)] == tables
    assert d.p_value == pytest.approx(fisher_exact([[x, n - x] for x, n in tables]).pvalue)
    assert {f.verdict for f in found.findings} == {"not shown"}  # 500 rows show no difference, and no equality


def test_two_halves_of_one_model_are_the_same(shared_data, tmp_path):
    """Most of what one half reports the other does not; that is chance, and no comparison may call it progress."""
    folder = shared_data / "mllm_coco"
    lines = (folder / "mllm_captions" / "pope__mplug-owl__instruction1.jsonl").read_text("utf-8").splitlines()
    options = {"join": folder / "objects_chair.jsonl", "vocabulary": folder / "chair_vocab.json"}
    alone = 0
    for seed in range(3):
        random.Random(seed).shuffle(lines)
        for name, half in (("a", lines[::2]), ("b", lines[1::2])):
            (tmp_path / f"{name}.jsonl").write_text("\n".join(half), "utf-8")
        found = symbal_hf.compare(*(symbal_hf.audit(tmp_path / f"{n}.jsonl", **options) for n in "ab"), match="exact")
        assert {one.verdict for one in found.findings} <= {"same", "not shown"} and not found.paired
        alone += sum(one.reported_a != one.reported_b for one in found.findings)
    assert alone >= 10


def test_all_errors_together_show_what_single_findings_do_not(shared_data):
    names, folder = ("pope__llava-v0-13b__instruction1", "pope__minigpt4__instruction1"), shared_data / "mllm_coco"
    found = symbal_hf.compare(*(real(folder, name) for name in names))
    d = found.overall
    assert found.counts == {"less": 4, "same": 0, "more": 0, "not shown": 6, "not measured": 0}
    assert (found.overall_verdict, d.paired, d.rows_a) == ("less", True, 2000) and d.p_value < 1e-39
    assert (round(d.rate_a, 3), round(d.rate_b, 3)) == (0.195, 0.07) and -0.146 < d.low < d.high < -0.105
