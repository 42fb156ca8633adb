"""`symbal metric` pairs each prediction with its setting, or says that it took them in order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import command
import pytest
from metric_case import PREDICTIONS, TRUTH, exact, rows_of_settings
from typer.testing import CliRunner

from symbal_hf.core.errors import BadData
from symbal_hf.huggingface import publish as publishing


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def write_table(path: Path, rows: list[dict]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    from benchmark_builder.planting.settings import features

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows, schema=features("settings").arrow_schema), path)
    return path


def symbal(*arguments: object) -> str:
    from symbal_hf.cli.app import app as commands

    done = CliRunner().invoke(commands, ["metric", *map(str, arguments)])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_a_person_scores_a_file_against_a_built_benchmark(tmp_path):
    folder = tmp_path / "symbalbench"
    write_table(folder / "settings/scenes.parquet", rows_of_settings())
    (folder / "README.md").write_text("# A benchmark\n")
    given = [{"config": row["config"], **said} for row, said in zip(rows_of_settings(), PREDICTIONS, strict=False)]
    answers, out = write(tmp_path / "predictions.jsonl", given[::-1]), tmp_path / "scores.json"
    program = [sys.executable, "-m", "symbal_hf.cli", "metric", "compute", answers, folder]
    done = subprocess.run(
        [*program, "--judge", "exact", "--out", out], capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text("utf-8")) == exact(references=rows_of_settings()[:3])
    first, head, both, *rest = done.stdout.splitlines()
    assert first == "3 settings, paired by config; judge exact, 8 pairs of names"
    assert head.split() == ["n", "Acc@1", "Acc@5"] and both.startswith("t and v")
    assert both.split()[3:5] == ["3", "0.000"] and "0.667 (" in both
    assert any(line.startswith("sampling popular ") for line in rest) and rest[-1] == f"wrote {out}"
    done = command.symbal("metric", "compute", answers, folder, "--judge", "best")
    assert done.returncode == 2 and done.stderr.startswith("symbal: judge 'best'; available are")


def test_predictions_for_both_variants_meet_their_setting_and_each_variant_must_be_whole(tmp_path):
    references = write_table(tmp_path / "scenes.parquet", rows_of_settings())
    given = [
        {"setting": row["config"] + end, **said}
        for end in ("-reference_free", "-reference_based")
        for row, said in zip(rows_of_settings(), PREDICTIONS, strict=False)
    ]
    out = tmp_path / "scores.json"
    text = symbal("compute", write(tmp_path / "p.jsonl", given), references, "--judge", "exact", "--k", 5, "--out", out)
    assert text.startswith("6 settings, paired by setting and config;") and "Acc@1" not in text
    scores = json.loads(out.read_text("utf-8"))
    assert {label: part["n"] for label, part in scores["by"]["variant"].items()} == {
        "reference_based": 3, "reference_free": 3,
    }  # fmt: skip
    with pytest.raises(BadData, match=r"1 references, such as config .*-reference_based', have no prediction"):
        symbal("compute", write(tmp_path / "p.jsonl", given[:-1]), references)


def test_without_ids_the_order_counts_and_that_is_said(tmp_path):
    files = write(tmp_path / "p.jsonl", PREDICTIONS), write(tmp_path / "r.jsonl", TRUTH)
    text = symbal("compute", *files, "--judge", "exact", "--resamples", 0)
    assert text.startswith("3 settings, taken in the order of the rows, since not both files have ids; judge exact")
    assert "(" not in text
    write(files[1], [{**truth, "id": n} for n, truth in enumerate(TRUTH)])
    assert symbal("compute", *files, "--judge", "exact", "--resamples", 0) == text
    write(files[1], TRUTH[:2])
    with pytest.raises(BadData, match="3 predictions for 2 references"):
        symbal("compute", *files)


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        ([1, 2, 3], [1, 2, 4], "1 predictions, such as id '3', have no reference"),
        ([1, 2], [1, 2, 3], "1 references, such as id '3', have no prediction; give one to each"),
        ([1, 1, 3], [1, 2, 3], r"predictions\[1\] has id '1' like a row before it"),
        ([1, 2, 3], [1, 3, 3], r"references\[2\] has id '3' like a row before it"),
        ([1, None, 3], [1, 2, 3], r"predictions\[1\] has no id, but other rows have"),
    ],
)
def test_ids_must_match(tmp_path, left, right, sentence):
    predictions, references = (
        write(tmp_path / f"{name}.jsonl", [{"id": i, **row} for i, row in zip(ids, rows, strict=False)])
        for name, ids, rows in (("p", left, PREDICTIONS), ("r", right, TRUTH))
    )
    with pytest.raises(BadData, match=sentence):
        symbal("compute", predictions, references)


def test_what_is_undecided_is_said(tmp_path, monkeypatch):
    class Unsure:
        name, revision, prompt_hash = "unsure", "", ""

        def judge(self, pairs):
            return ["unparsed" if answer == "tap" else "same" if answer == truth else "different"
                    for answer, truth in pairs]  # fmt: skip

    monkeypatch.setattr("symbal_hf.matching.load.load_judge", lambda judge, **options: Unsure())
    row = {"textual_error": ["tap"], "visual_feature": ["toilet"]}
    text = symbal("compute", write(tmp_path / "p.jsonl", [row]), write(tmp_path / "r.jsonl", TRUTH[:1]))
    assert "undecided at 5: 1, for the judge could not tell; Acc@5 is at most 1.000" in text


def test_the_command_publishes(monkeypatch):
    seen = []
    monkeypatch.setattr(
        publishing, "publish_metric", lambda folder, repo, **options: seen.append((repo, options)) or "http://x"
    )
    assert symbal("publish", "--repo", "lab/symbal_acc_at_k", "--create-pr") == "published to http://x\n"
    assert seen == [("lab/symbal_acc_at_k", {"create_pr": True, "private": False})]
