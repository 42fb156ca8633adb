"""Nobody is believed: what a file holds is refused in sentences or scored from its predictions, and nothing breaks."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hub import LoopbackHub, Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_submission import half, make_bench, right, write_results

from symbal_hf.bench.acc_at_k import acc_at_k
from symbal_hf.bench.leaderboard.board import submit, validate
from symbal_hf.bench.leaderboard.strict_json import MOST_BYTES, MOST_VALUES, invisible, loads
from symbal_hf.bench.leaderboard.submission import build_submission, dumps
from symbal_hf.core.errors import BadData

pytest.importorskip("jsonschema", reason="checks the form of submissions")
SYMBAL = Path(sys.executable).with_name("symbal")
COMMAND = """
from symbal_hf.cli.app import main
sys.argv[0] = "symbal"
main()
"""
PUBLISH = """
from benchmark_builder.writing.publish import publish
print(publish(sys.argv[1], "lab/symbalbench"))
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return make_bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def results(bench, tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results") / "run", bench, half)


@pytest.fixture(scope="module")
def made(bench, results):
    return build_submission(results, bench=bench, name="a system", judge="exact")


def refusals(bench, content) -> tuple[str, ...]:
    report = validate(content if isinstance(content, bytes) else dumps(content), bench=bench)
    for sentence in report.errors:
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 700, sentence
        assert invisible(sentence) is None
    assert report.ok == (not report.errors) == (report.submission is not None) == (report.scores is not None)
    return report.errors


def test_what_was_built_is_taken_and_scored_as_the_metric_scores_it(bench, made):
    report = validate(dumps(made), bench=bench)
    assert report.ok and report.verified and report.notes == () and report.submission == made
    assert report.judge == made["judge"]
    of = {s.name: s for s in bench.settings}
    for variant in made["variants"]:
        rows = [row for row in made["predictions"] if of[row["setting"]].variant == variant]
        rows.sort(key=lambda row: list(of).index(row["setting"]))
        truth = [{**of[row["setting"]].row, "variant": variant} for row in rows]
        assert report.scores["variants"][variant] == acc_at_k(rows, truth, judge="exact")
    low, high = report.scores["variants"]["reference_free"]["acc@1_interval"]
    assert low < report.scores["variants"]["reference_free"]["acc@1"] < high


def test_a_file_is_read_as_its_content_is(bench, made, tmp_path):
    path = tmp_path / "made.json"
    path.write_bytes(dumps(made))
    assert validate(path, bench=bench.folder) == validate(dumps(made), bench=bench)
    with pytest.raises(FileNotFoundError, match="give the JSON file of a submission"):
        validate(tmp_path / "none.json", bench=bench)
    assert "is no regular file" in validate(tmp_path, bench=bench).errors[0]
    assert "is no regular file" in validate("/dev/zero", bench=bench).errors[0]
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert "more than 20 MB" in validate(path, bench=bench).errors[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "line 1 is no valid JSON"),
        (b'{"a": 1', "the file may be cut off"),
        (b"\xff\xfe{}", "is not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a": "\ud83d"}'.encode("utf-8", "surrogatepass"), "is not UTF-8"),
        (b'{"a": "\\ud83d"}', "U+D83D"),
        (b'{"schema_version": 1, "schema_version": 1}', "the key 'schema_version' is there twice"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": 1e999}', "is no double"),
        (b'{"a": 0.' + b"1" * 5000 + b"}", "is no double"),
        (b'{"a": ' + b"9" * 100_000 + b"}", "beyond 2^53"),
        (b'{"a": 9007199254740993}', "beyond 2^53"),
        (b"[" * 300_000, "nested deeper than 12"),
        (b'{"a":' * 500 + b"1" + b"}" * 500, "nested deeper than 12"),
        (b"[" * 14 + b"]" * 14, "nested deeper than 12"),
        (b"[" + b"[]," * MOST_VALUES + b"[]]", "more than 500,000 values"),
        (b" " * (MOST_BYTES + 1), "more than 20 MB"),
        ('{"a\u202e": 1}'.encode(), "the invisible character U+202E"),
        (b'{"a": ["b", {"c d": "x\\u0000y"}]}', "$.a[1]['c d'] has the invisible character U+0000"),
        ('{"a": "x\u2028y"}'.encode(), "U+2028"),
        (b'{"a": "z' + "\u0301".encode() * 5 + b'"}', "combining marks"),
        (b"[]", "$ is a list; give object"),
        (b"null", "$ is null; give object"),
        (b'"text"', "$ is 'text'; give object"),
        (b"{}", "$ lacks 'schema_version'"),
    ],
)  # fmt: skip
def test_json_that_is_no_plain_json_is_refused_in_one_sentence(bench, content, says):
    (sentence,) = refusals(bench, content)
    assert says in sentence


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
QUICK = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=150, **QUICK)
@given(st.binary(max_size=200) | values.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_and_any_json_are_refused(bench, content):
    assert refusals(bench, content)


def places(value, path=()):
    """Each place in a JSON value, lists by their first two items."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value[:2]):
            yield from places(item, (*path, number))


def put(value, path, new):
    value = copy.deepcopy(value)
    at = value
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return value


@settings(max_examples=300, **QUICK)
@given(st.data())
def test_a_submission_with_one_value_changed_is_refused_or_means_what_it_says(bench, made, data):
    path = data.draw(st.sampled_from([place for place in places(made) if place]))
    changed = put(made, path, data.draw(values))
    if refusals(bench, json.dumps(changed).encode()):
        return
    # What may be anything: how a system is called and made. All else is decided by the benchmark and the predictions.
    free = {"system", "versions", "seeds", "counts", "benchmark", "predictions", "judge"}
    assert path[0] in free or changed == made
    if path[0] == "judge":
        assert changed["judge"] == made["judge"] or not validate(dumps(changed), bench=bench).verified
    if path[0] == "counts":
        assert path[1] in ("asked", "cached", "failed", "unparsed", "cleaned") or changed == made
    if path[0] == "predictions":
        assert path[2:] == ("verdict",) or changed["scores"] == made["scores"]


@settings(max_examples=60, **QUICK)
@given(st.data())
def test_a_submission_with_a_part_left_out_or_added_is_refused(bench, made, data):
    path = data.draw(st.sampled_from([p for p in places(made) if p and not {"options", "versions"} & set(p)]))
    changed = copy.deepcopy(made)
    at = changed
    for key in path[:-1]:
        at = at[key]
    if data.draw(st.booleans()):
        del at[path[-1]]
    elif isinstance(at, dict):
        at["extra"] = data.draw(values)
    else:
        at.append(copy.deepcopy(at[path[-1]]))
    assert refusals(bench, json.dumps(changed).encode())


def edit(**changes):
    """A change of values by dotted path."""

    def change(made):
        for path, new in changes.items():
            keys = [int(key) if key.isdigit() else key for key in path.split("__")]
            made = put(made, keys, new)
        return made

    return change


def drop(made):
    made["predictions"] = made["predictions"][1:]
    return made


def twice(made):
    made["predictions"][1] = copy.deepcopy(made["predictions"][0])
    return made


def lie(made):
    """Every name is said to be right, in verdicts, counts and scores alike."""
    for row in made["predictions"]:
        for part, states in row["judged"].items():
            row["judged"][part] = ["same"] * len(states)
    for labels in made["scores"].values():
        for one in labels.values():
            one.update({key: 1 for key in one if "acc@" in key})
    return made


def contradict(made):
    rows = [row for row in made["predictions"] if row["judged"]["visual_feature"] == ["same"]]
    rows[0]["judged"]["visual_feature"] = ["failed"]
    return made


REFUSED = {
    "another revision": (edit(benchmark__revision="0" * 16), r"\$\.benchmark\.revision is 0+, and this benchmark is"),
    "a later form": (edit(schema_version=2), r"\$\.schema_version is 2; give 1"),
    "a missing setting": (drop, r"1 of 8 settings of scenes_\w+ have no answer, such as 'scenes-"),
    "a setting twice": (twice, r"the setting 'scenes-[^']+' is there twice"),
    "an unknown setting": (edit(predictions__0__setting="scenes-x"), r"'scenes-x' is none of the benchmark's 16"),
    "other variants": (edit(variants=["reference_free"]), r"\$\.variants has 'reference_free', and its predictions"),
    "a task twice": (edit(tasks=["scenes_reference_free"] * 2), r"\$\.tasks has 'scenes_reference_free', "),
    "a variant twice": (edit(variants=["reference_free"] * 2), r"\$\.variants has"),
    "scores of another task": (edit(scores__tasks={}), r"\$\.scores\.tasks has nothing"),
    "a score too high": (
        edit(**{"scores__variants__reference_free__acc@1": 1}),
        r"\$\.scores\.variants\.reference_free\['acc@1'\] is 1, and its judge gives its predictions 0\.5",
    ),
    "a task's score too low": (edit(**{"scores__tasks__scenes_reference_based__acc@5": 0}), r"is 0, and its judge"),
    "a false verdict": (lie, r"'exact' \(1\) says 'different' of 'teapot' where the truth is '\w+', and the file"),
    "two verdicts on one name": (contradict, r"of the same name and truth before it said otherwise"),
    "six names": (edit(predictions__0__textual_error=["a"] * 6), r"textual_error has a length of 6; at most 5"),
    "a long name": (edit(predictions__0__textual_error=["a" * 201]), r"textual_error\[0\] has a length of 201"),
    "a name that is no text": (edit(predictions__0__textual_error=[1]), r"textual_error\[0\] is 1; give string"),
    "names without verdicts": (edit(predictions__0__textual_error=["a", "b", "c"]), r"has 1 verdicts on 3 names"),
    "names of no result": (edit(predictions__0__error=True, counts__errors=1), r"has names and an error"),
    "a verdict on nothing": (
        edit(predictions__0__textual_error=[" "], predictions__0__judged__textual_error=["same"]),
        r"is 'same' of a blank name",
    ),
    "a direction mark": (edit(predictions__0__textual_error=["a\u202eb"]), r"textual_error\[0\] has .* U\+202E"),
    "a huge text": (edit(system__name="x" * 10_000), r"\$\.system\.name has a length of 10000; at most 100"),
    "a blank name of the system": (edit(system__name=" "), r"\$\.system\.name is ' ', which does not look like"),
    "an address that runs": (edit(system__url="javascript:alert(1)"), r"\$\.system\.url is 'javascript:alert\(1\)'"),
    "a password": (edit(system__options={"chat": "openai:http://u:p@h/v1#m"}), r"options\.chat has a password"),
    "a folder": (edit(system__options={"chat": "hf:/home/me/m"}), r"options\.chat has a password, or a folder"),
    "an option that is a list": (edit(system__options={"chat": [1]}), r"options\.chat is a list, which is not"),
    "false errors": (edit(counts__errors=3), r"\$\.counts\.errors is 3, and its predictions have 0"),
    "false judgements": (edit(counts__judgements=3), r"\$\.counts\.judgements is 3, and"),
    "a negative count": (edit(counts__asked=-1), r"\$\.counts\.asked is -1; give a number of at least 0"),
    "a count that is true": (edit(counts__asked=True), r"\$\.counts\.asked is true; give integer"),
    "a share above one": (edit(**{"scores__variants__reference_free__acc@1": 2}), r"is 2; give a number of at most 1"),
    "a field of its own": (edit(system__rank=1), r"\$\.system has 'rank', which a submission has no place for"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_each_false_submission_is_refused_with_its_reason(bench, made, case):
    change, says = REFUSED[case]
    sentences = refusals(bench, change(copy.deepcopy(made)))
    assert any(re.search(says, sentence) for sentence in sentences), sentences


def test_all_reasons_are_told_and_no_more_than_can_be_read(bench, made):
    sentences = refusals(bench, edit(counts__asked=-1, system__name="x" * 101, variants=[])(made))
    assert len(sentences) == 3
    many = copy.deepcopy(made)
    for row in many["predictions"]:
        row.update(verdict=1, error=1)
    sentences = refusals(bench, many)
    assert len(sentences) == 21 and sentences[-1] == "there is more, which is not listed."


def strict(pairs):
    return [answer == truth or None for answer, truth in pairs]


def test_another_judge_s_scores_are_unverified_until_it_is_given(bench, results):
    made = build_submission(results, bench=bench, name="x", judge=strict)
    assert made["judge"]["name"] == "strict" and made["counts"]["judge_unparsed"] > 0
    alone = validate(dumps(made), bench=bench)
    assert alone.ok and not alone.verified and "unverified: 'strict' (no revision) is asked only" in alone.notes[0]
    assert alone.scores["variants"]["reference_free"]["undecided@1"] > 0
    asked = validate(dumps(made), bench=bench, judge=strict)
    assert asked.ok and asked.verified and asked.scores == alone.scores
    other = validate(dumps(made), bench=bench, judge="exact")
    assert other.ok and other.verified and other.judge["name"] == "exact"
    assert "judged again by 'exact' (1); those that it states are of 'strict'" in other.notes[0]
    assert other.scores["variants"]["reference_free"]["undecided@1"] == 0

    def opposite(pairs):
        return [not one for one in strict(pairs)]

    opposite.__name__ = "strict"
    assert any("says 'same' of 'teapot'" in one for one in validate(dumps(made), bench=bench, judge=opposite).errors)
    # The arithmetic is checked even where the verdicts cannot be.
    wrong = put(made, ("scores", "variants", "reference_free", "acc@1"), 1.0)
    for judge in (None, "exact"):
        (sentence,) = validate(dumps(wrong), bench=bench, judge=judge).errors
        assert "is 1, and its predictions and verdicts give 0.5" in sentence


def test_an_offline_judge_of_another_version_is_not_taken_for_ours(bench, made):
    old = put(made, ("judge", "revision"), "0")
    report = validate(dumps(old), bench=bench)
    assert report.ok and not report.verified and "judged by 'exact' (0), and this is 'exact' (1)" in report.notes[0]


def test_the_lite_judge_is_asked_again(bench, tmp_path):
    words = {"tv": "television", "airplane": "aeroplane", "bike": "bicycle"}

    def answer(number, setting):
        t, v = right(number, setting)
        return [words.get(t[0], f"a {t[0]}")], v

    folder = write_results(tmp_path / "run", bench, answer)
    made = build_submission(folder, bench=bench, name="x")
    assert made["judge"]["name"] == "lite" and made["scores"]["variants"]["reference_free"]["acc@1"] == 1
    assert validate(dumps(made), bench=bench).verified
    answered = made["predictions"][0]["textual_error"]
    for row in made["predictions"]:
        row["textual_error"] = ["something else"] if row["textual_error"] == answered else row["textual_error"]
    assert any("says 'different' of 'something else'" in one for one in validate(dumps(made), bench=bench).errors)


def test_a_dry_run_writes_nothing_asks_nobody_and_shows_what_would_be_written(bench, results, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", None)
    done = submit(results, "lab/system", bench=bench.folder, judge="exact", dry_run=True)
    (path,) = [path for path in done.files if path.startswith("symbalbench/")]
    assert re.fullmatch(rf"symbalbench/{bench.revision}-[0-9a-f]{{8}}\.json", path) and done.url is None
    assert loads(done.files[path])["system"]["name"] == "lab/system"
    assert set(done.files) == {path, *(f".eval_results/symbalbench-reference_{v}.yaml" for v in ("free", "based"))}
    again = submit(results, "lab/system", bench=bench, judge="exact", dry_run=True)
    assert again == done
    with pytest.raises(BadData, match="give its benchmark_id, such as lab/symbalbench"):
        submit(results, "lab/system", bench=bench, judge="exact")


@pytest.mark.parametrize("repo", ["system", "a/b/c", "lab/a b", "datasets/lab/x", ""])
def test_a_repo_that_is_none_is_refused(bench, results, repo):
    with pytest.raises(BadData, match="is no Hub repo; give namespace/name"):
        submit(results, repo, bench=bench, judge="exact", dry_run=True)


def test_results_travel_to_a_pull_request_and_back_and_are_valid(bench, results, tmp_path):
    with LoopbackHub() as hub:
        home = tmp_path / "home"
        hub.run(PUBLISH, home, bench.folder)
        theirs = hub.repos["model", "lab/system"] = Repo("model", "lab/system")
        before = theirs.at("main")
        said = hub.run(
            COMMAND, home, "submit", results, "--repo", "lab/system", "--benchmark", "lab/symbalbench",
            "--judge", "exact", "--url", "https://example.org/system",
        )  # fmt: skip
        assert f"submitted: {hub.url}/lab/system/discussions/1" in said and theirs.at("main") == before
        sent = hub.files("lab/system", "refs/pr/1", kind="model")
        (path,) = [path for path in sent if path.endswith(".json")]
        report = validate(sent[path], bench=bench)
        assert report.ok and report.verified and report.submission["benchmark"]["id"] == "lab/symbalbench"
        tasks = {task["id"] for task in yaml.safe_load((bench.folder / "eval.yaml").read_text())["tasks"]}
        for variant in ("reference_free", "reference_based"):
            (entry,) = yaml.safe_load(sent[f".eval_results/symbalbench-{variant}.yaml"])
            assert entry["dataset"] == {
                "id": "lab/symbalbench", "task_id": f"scenes_{variant}",
                "revision": hub.repos["dataset", "lab/symbalbench"].at("main").sha,
            }  # fmt: skip
            assert entry["dataset"]["task_id"] in tasks
            assert entry["value"] == report.scores["tasks"][f"scenes_{variant}"]["acc@1"]
            assert entry["source"] == {
                "url": f"{hub.url}/lab/system/blob/main/{path}",
                "name": "per-setting predictions",
            }
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["date"]) and "exact 1" in entry["notes"]
        assert set(sent) == {path, *(f".eval_results/symbalbench-reference_{v}.yaml" for v in ("free", "based"))}
        assert hub.unknown == []


HUB = """
import json
from symbal_hf.bench.leaderboard.board import submit
results, bench, *repos = sys.argv[1:]
for repo in repos:
    try:
        print(submit(results, repo, bench=bench, judge="exact", benchmark_id="lab/b", create_pr=False).url)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_what_the_hub_does_not_take_is_one_sentence(bench, results, tmp_path):
    with LoopbackHub() as hub:
        hub.repos["model", "lab/system"] = Repo("model", "lab/system")
        hub.repos["model", "lab/locked"] = Repo("model", "lab/locked")
        hub.deny = lambda request: "not yours" if "locked/commit" in request else None
        arguments = (HUB, results, bench.folder, "lab/system", "lab/none", "lab/locked")
        taken, none, locked = hub.run(arguments[0], tmp_path / "home", *arguments[1:]).splitlines()
        assert taken == f"{hub.url}/lab/system/commit/{hub.repos['model', 'lab/system'].at('main').sha}"
        assert none.startswith("BadData: the Hub has no model repo lab/none; push the composition there first")
        assert locked.startswith("BadData: nothing was submitted to lab/locked: not yours; check the connection")
    # The server is gone now.
    env = hub.env(tmp_path / "home")
    command = [sys.executable, "-c", "import sys\n" + HUB, str(results), str(bench.folder), "lab/system"]
    (said,) = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120).stdout.splitlines()
    assert said.startswith("BadData: nothing was submitted to lab/system: ") and said.endswith("then run it again.")


def test_the_command_says_valid_or_all_reasons_with_exit_code_2(bench, made, tmp_path):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(dumps(made))
    bad.write_bytes(dumps(edit(counts__asked=-1, system__name="x" * 101)(made)))

    def run(path):
        command = [SYMBAL, "leaderboard", "validate", path, "--benchmark", bench.folder]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    done = run(good)
    assert done.returncode == 0 and "valid, judged here by exact 1" in done.stdout, done.stderr
    assert re.search(r"reference_free: Acc@1 0\.500 \(0\.\d\d-\d\.\d\d\), Acc@5 0\.750, 8 settings", done.stdout)
    done = run(bad)
    assert done.returncode == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 2 and all(x.startswith("refused: $.") for x in done.stderr.splitlines())
