"""Results are proposed to their system's repo as files that the Hub reads, and come back valid."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml
from hub import LoopbackHub, Repo

from symbal_hf.bench.leaderboard.board import submit, validate
from symbal_hf.bench.leaderboard.strict_json import loads
from symbal_hf.core.errors import BadData

pytest.importorskip("jsonschema", reason="checks the form of submissions")
COMMAND = """
from symbal_hf.cli.app import main
sys.argv[0] = "symbal"
main()
"""
PUBLISH = """
from benchmark_builder.writing.publish import publish
print(publish(sys.argv[1], "lab/symbalbench"))
"""


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
