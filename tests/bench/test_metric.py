"""The metric is the same wherever it is had from: the package, a folder, a Space, a page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from hub import LoopbackHub, Repo
from metric_case import PREDICTIONS, TRUTH, exact, rows_of_settings

import symbal_hf
from symbal_hf.bench.acc_at_k import acc_at_k
from symbal_hf.bench.metrics.symbal_acc_at_k import app, tests
from symbal_hf.core.errors import BadData
from symbal_hf.huggingface.publish import METRIC_FILES as FILES
from symbal_hf.huggingface.publish import publish_metric

ROOT = Path(__file__).parents[2]
FOLDER = Path(app.__file__).parent
COMPUTE = """
import json
import evaluate
metric = evaluate.load(sys.argv[1])
predictions, references = map(json.loads, sys.argv[2:])
print(json.dumps(metric.compute(predictions=predictions, references=references, judge="exact")))
"""


COMMAND = """
from symbal_hf.cli.app import main
sys.argv[0] = "symbal"
main()
"""


@pytest.fixture
def hub():
    with LoopbackHub() as hub:
        yield hub


@pytest.fixture
def space(hub, monkeypatch):
    """The hub, reached by this process too."""
    import huggingface_hub
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub.url, token="hf_loopback")
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda token=None: api)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    return hub


def test_the_metric_is_had_without_a_network_and_says_what_the_mathematics_says():
    metric = symbal_hf.metric()
    assert metric.compute(predictions=PREDICTIONS, references=TRUTH, judge="exact") == exact()
    assert metric.name == "symbal_acc_at_k" and "2607.15216" in metric.citation
    lite = metric.compute(predictions=PREDICTIONS[:1], references=TRUTH[:1])
    assert lite["judge"]["name"] == "lite" and lite["acc@5"] == 1


def test_a_fresh_process_loads_it_from_the_folder_offline(tmp_path):
    env = {**os.environ, "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}
    arguments = [str(FOLDER), json.dumps(PREDICTIONS), json.dumps(rows_of_settings()[:3])]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{COMPUTE}", *arguments], cwd=tmp_path, env=env, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == exact(references=rows_of_settings()[:3])


def test_references_may_be_the_truth_alone_or_with_some_strata_or_whole_settings_rows():
    some = [{**truth, "strength": 0.3} for truth in TRUTH]
    mixed = [TRUTH[0], {**TRUTH[1], "domain": "natural", "sampling": "random"}, {**rows_of_settings()[2]}]
    extra = [{**row, "config": n, "note": "x"} for n, row in enumerate(PREDICTIONS)]
    for references, strata in (
        (TRUTH, set()),
        (some, {"strength"}),
        (mixed, {"domain", "strength", "sampling", "feature_size"}),
        (mixed[::-1], {"domain", "strength", "sampling", "feature_size"}),
        (rows_of_settings()[:3], {"domain", "strength", "sampling", "feature_size"}),
    ):
        scores = symbal_hf.metric().compute(predictions=PREDICTIONS, references=references, judge="exact")
        assert scores == exact(references=references) and set(scores["by"]) == strata
    assert symbal_hf.metric().compute(predictions=extra, references=TRUTH, judge="exact") == exact()


def test_settings_may_come_one_by_one_in_batches_or_as_a_dataset_and_leave_nothing_behind():
    from datasets import Dataset

    metric, wanted = symbal_hf.metric(), exact(references=rows_of_settings()[:3])
    for given, truth in zip(PREDICTIONS, rows_of_settings(), strict=False):
        metric.add(prediction=given, reference=truth)
    assert metric.compute(judge="exact") == wanted
    metric.add_batch(predictions=PREDICTIONS[:1], references=rows_of_settings()[:1])
    metric.add_batch(predictions=PREDICTIONS[1:], references=rows_of_settings()[1:3])
    assert metric.compute(judge="exact") == wanted
    tables = Dataset.from_list(PREDICTIONS), Dataset.from_list(rows_of_settings()[:3])
    assert metric.compute(predictions=tables[0], references=tables[1], judge="exact") == wanted
    in_memory = symbal_hf.metric(keep_in_memory=True)
    assert in_memory.compute(predictions=PREDICTIONS, references=TRUTH, judge="exact") == exact()


def test_options_reach_the_mathematics_and_the_judge(tmp_path):
    def all_alike(pairs):
        return [True] * len(pairs)

    metric = symbal_hf.metric()
    options = {"k": [2], "resamples": 10, "seed": 4}
    wanted = acc_at_k(PREDICTIONS, TRUTH, judge=all_alike, **options)
    assert metric.compute(predictions=PREDICTIONS, references=TRUTH, judge=all_alike, **options) == wanted
    assert "acc@2" in wanted and "acc@1" not in wanted
    metric.compute(predictions=PREDICTIONS, references=TRUTH, judge="lite", store=tmp_path / "own.sqlite")
    assert (tmp_path / "own.sqlite").is_file()


def test_it_combines_with_other_metrics():
    import evaluate

    both = evaluate.combine({"a": symbal_hf.metric(), "b": symbal_hf.metric()}, force_prefix=True)
    for given, truth in zip(PREDICTIONS, TRUTH, strict=True):
        both.add(prediction=given, reference=truth)
    added = both.compute(judge="exact")
    both.add_batch(predictions=PREDICTIONS, references=TRUTH)
    assert both.compute(judge="exact") == added and added["a_acc@5"] == added["b_acc@5"] == exact()["acc@5"]


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    [
        (PREDICTIONS, TRUTH[:2], {}, "3 predictions for 2 references"),
        ([*PREDICTIONS[:2], {"textual_error": ["a"]}], TRUTH, {}, r"predictions\[2\] has no 'visual_feature'"),
        ([PREDICTIONS[0], {**PREDICTIONS[1], "textual_error": ["a", 3]}, PREDICTIONS[2]], TRUTH, {},
         r"predictions\[1\]\['textual_error'\]\[1\] is 3 \(int\)"),
        ([PREDICTIONS[0], {**PREDICTIONS[1], "textual_error": "abc"}, PREDICTIONS[2]], TRUTH, {},
         "'abc' .* give a list"),
        (PREDICTIONS, [*TRUTH[:2], {"textual_error": "cat"}], {}, r"references\[2\] has no 'visual_feature'"),
        (PREDICTIONS, rows_of_settings()[1:], {}, r"references\[2\] has feasible=False"),
        (PREDICTIONS, TRUTH, {"k": 0}, "k has 0"),
        (PREDICTIONS, TRUTH, {"judge": "gpt"}, "judge 'gpt'; available are"),
        ([], [], {}, "nothing to score"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused_and_the_next_computation_is_right(predictions, references, options, sentence):
    metric = symbal_hf.metric()
    with pytest.raises(BadData, match=sentence):
        metric.compute(predictions=predictions, references=references, **{"judge": "exact", **options})
    assert metric.compute(predictions=PREDICTIONS, references=TRUTH, judge="exact") == exact()


def test_a_bad_row_that_is_added_later_is_named_by_its_place_among_all():
    metric = symbal_hf.metric()
    metric.add_batch(predictions=PREDICTIONS, references=TRUTH)
    with pytest.raises(BadData, match=r"predictions\[3\] is None"):
        metric.add(reference=TRUTH[0])
    assert metric.compute(judge="exact") == exact()


def test_the_cases_of_the_space_hold():
    for case in tests.test_cases:
        scores = symbal_hf.metric().compute(
            predictions=case["predictions"], references=case["references"], judge="exact"
        )
        assert {key: scores[key] for key in case["result"]} == case["result"]


def test_the_example_of_the_card_prints_what_the_card_says(capsys):
    card = (FOLDER / "README.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    (printed,) = re.findall(r"```text\n(.*?)```", card, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_the_card_has_what_the_hub_asks_of_a_metric_and_names_every_key():
    card = (FOLDER / "README.md").read_text("utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert (head["sdk"], head["app_file"], set(head["tags"])) == ("gradio", "app.py", {"evaluate", "metric"})
    assert head["title"] and head["description"] and re.fullmatch(r"\d+\.\d+\.\d+", head["sdk_version"])
    for key in exact():
        told = re.sub("^(textual_error|visual_feature)_", "", key).replace("@1", "@K").replace("@5", "@K")
        assert f"`{told}`" in card, key


def test_the_documentation_in_the_code_is_executed():
    import doctest

    from symbal_hf.bench.metrics.symbal_acc_at_k import symbal_acc_at_k as module

    case = doctest.DocTestParser().get_doctest(module._INPUTS, {}, "inputs", None, 0)
    assert case.examples and doctest.DocTestRunner().run(case).failed == 0


def test_the_page_scores_its_own_example_and_refuses_in_sentences():
    scores = app.compute(app.PREDICTIONS, app.REFERENCES, [1, 5], "lite")
    assert (scores["acc@1"], scores["acc@5"], scores["n"]) == (0.5, 1.0, 2)
    assert app.compute(app.PREDICTIONS, app.REFERENCES, None, "exact")["judge"]["name"] == "exact"
    with pytest.raises(BadData, match="line 2 of the predictions is no JSON"):
        app.compute('{"a": 1}\n{oops', "")
    with pytest.raises(BadData, match="judge 'openai:http://x#y'; this page has lite and exact"):
        app.compute(app.PREDICTIONS, app.REFERENCES, [1], "openai:http://x#y")
    with pytest.raises(BadData, match="2001 predictions; this page takes 2000"):
        app.compute("{}\n" * 2001, "")
    with pytest.raises(BadData, match="nothing to score"):
        app.compute("", " \n")


def test_the_page_is_built_of_parts_that_gradio_has(monkeypatch):
    made = []

    class Parts:
        class Error(Exception):
            pass

        def __getattr__(self, name):
            return lambda *args, **options: made.append((name, options)) or options

    monkeypatch.setitem(sys.modules, "gradio", Parts())
    page = app.interface()
    assert [name for name, _ in made] == ["Textbox", "Textbox", "CheckboxGroup", "Dropdown", "JSON", "Interface"]
    assert page["fn"](app.PREDICTIONS, app.REFERENCES, [1], "exact")["n"] == 2
    assert page["article"].lstrip().startswith("# Symbal Acc@K")
    with pytest.raises(Parts.Error, match="no JSON"):
        page["fn"]("{", "", [1], "exact")


def test_what_is_published_is_loaded_by_evaluate_in_a_process_that_has_nothing(hub, tmp_path):
    publish = (COMMAND, tmp_path / "home", "metric", "publish", "--repo", "lab/symbal_acc_at_k")
    address = hub.run(*publish).removeprefix("published to ").strip()
    head = hub.repos["space", "lab/symbal_acc_at_k"].at("main")
    assert address == f"{hub.url}/spaces/lab/symbal_acc_at_k/commit/{head.sha}"
    sent = hub.files("lab/symbal_acc_at_k", kind="space")
    assert set(sent) == set(FILES) == {p.name for p in FOLDER.iterdir() if p.is_file()} - {"__init__.py"}
    assert sent["app.py"] == (FOLDER / "app.py").read_bytes()
    card = sent["README.md"].decode()
    assert 'evaluate.load("lab/symbal_acc_at_k")' in card and "YOUR_NAMESPACE" not in card
    arguments = ("lab/symbal_acc_at_k", json.dumps(PREDICTIONS), json.dumps(rows_of_settings()[:3]))
    out = hub.run(COMPUTE, tmp_path / "reader", *arguments)
    assert json.loads(out) == exact(references=rows_of_settings()[:3]) and hub.unknown == []
    hub.run(*publish)  # again, over what is there
    assert hub.files("lab/symbal_acc_at_k", kind="space") == sent


def test_a_pull_request_leaves_the_space_as_it_was_and_makes_none(hub, space):
    theirs = hub.repos["space", "else/symbal_acc_at_k"] = Repo("space", "else/symbal_acc_at_k")
    before = theirs.at("main")
    assert publish_metric(FOLDER, "else/symbal_acc_at_k", create_pr=True).endswith("/discussions/1")
    assert theirs.at("main") == before and "POST /api/repos/create" not in hub.requests
    assert set(hub.files("else/symbal_acc_at_k", "refs/pr/1", kind="space")) == set(FILES)


def test_private_is_private_or_refused(hub, space):
    publish_metric(FOLDER, "lab/symbal_acc_at_k", private=True)
    assert hub.repos["space", "lab/symbal_acc_at_k"].private
    hub.repos["space", "open/symbal_acc_at_k"] = Repo("space", "open/symbal_acc_at_k")
    with pytest.raises(BadData, match="open/symbal_acc_at_k is public already"):
        publish_metric(FOLDER, "open/symbal_acc_at_k", private=True)


@pytest.mark.parametrize("repo", ["symbal_acc_at_k", "lab/acc", "a/b/symbal_acc_at_k", "lab /symbal_acc_at_k", ""])
def test_a_space_that_evaluate_would_not_find_is_refused(repo):
    with pytest.raises(BadData, match="is no name for the Space; evaluate finds the metric in NAMESPACE/symbal_acc"):
        publish_metric(FOLDER, repo)


def test_what_the_hub_says_is_passed_on(hub, space):
    hub.deny = lambda request: "the quota is used up" if "/commit/" in request else None
    with pytest.raises(BadData, match="was not published: the quota is used up; check the connection and `hf auth"):
        publish_metric(FOLDER, "lab/symbal_acc_at_k")


def test_the_wheel_holds_the_whole_space(tmp_path):
    pytest.importorskip("setuptools", reason="builds a wheel without a network")
    source, ignore = tmp_path / "source", shutil.ignore_patterns("__pycache__")
    for part in ("symbal_hf", "benchmark_builder", "hub_cards"):
        shutil.copytree(ROOT / part, source / part, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path, source],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    drawings = [path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmark_builder/scenes").rglob("*.jinja")]
    assert len(drawings) > 40 and set(drawings) <= set(names)
    held = [name for name in names if name.startswith("symbal_hf/bench/metrics/")]
    folder = "symbal_hf/bench/metrics/symbal_acc_at_k/"
    assert set(held) == {
        "symbal_hf/bench/metrics/__init__.py",
        f"{folder}__init__.py",
        *(f"{folder}{n}" for n in FILES),
    }
