"""Real captions and drawn scenes: once repaired, an audit as before no longer reports what it found."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from repair_case import Rewriter, audited, pairs
from typer.testing import CliRunner

import symbal_hf
from symbal_hf.cli.app import app

POLICIES = ("drop-sentence", "drop-row", "rewrite")


def check(audit: Path, out: Path, policy: str) -> symbal_hf.Repaired:
    """Repair, run the command that is printed, and compare; every row is accounted for."""
    before = symbal_hf.load_result(audit)
    assert before.findings
    chat = Rewriter() if policy == "rewrite" else None
    done = symbal_hf.repair(audit, policy=policy, out=out, chat=chat)  # type: ignore[arg-type]
    touched = {row_id for f in before.findings for row_id in f.affected_ids}
    counts = done.counts
    assert counts.rows - counts.untouched == len(touched) and counts.not_found == 0
    assert {json.loads(line)["row_id"] for line in done.diff.open(encoding="utf-8")} == touched
    assert done.command is not None
    run = CliRunner().invoke(app, shlex.split(done.command)[1:])
    assert run.exit_code == 0, run.output
    after = symbal_hf.load_result(out.with_name(f"{out.name}-audit"))
    assert not pairs(before) & pairs(after)
    assert not {f.textual_error for f in before.findings} & {f.textual_error for f in after.findings}
    return done


MODELS = ("pope__mplug-owl__instruction1", "pope__minigpt4__instruction1")


@pytest.fixture(scope="module")
def of_mllms(shared_data: Path, tmp_path_factory) -> dict[str, Path]:
    real = shared_data / "mllm_coco"
    known = {"join": real / "objects_chair.jsonl", "vocabulary": real / "chair_vocab.json"}
    out = {model: tmp_path_factory.mktemp(model) / "audit" for model in MODELS}
    for model, folder in out.items():
        audited(real / "mllm_captions" / f"{model}.jsonl", folder, **known)
    return out


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_captions_of_real_mllms(policy: str, model: str, of_mllms, shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "mllm_coco" / "mllm_captions" / f"{model}.jsonl"
    done = check(of_mllms[model], tmp_path / "out", policy)
    old, new = source.read_bytes().splitlines(), done.table.read_bytes().splitlines()
    touched = {json.loads(line)["row_id"] for line in done.diff.open(encoding="utf-8")}
    same = [line for line in old if str(json.loads(line)["image_id"]) not in touched]
    assert [line for line in new if str(json.loads(line)["image_id"]) not in touched] == same
    if policy == "rewrite":
        refused = [line for line in map(json.loads, done.diff.open(encoding="utf-8")) if line["reason"]]
        assert done.counts.rewritten > 0.9 * len(touched), refused[:3]


@pytest.mark.parametrize("policy", POLICIES)
def test_drawn_scenes(policy: str, scene_folder, tmp_path: Path) -> None:
    folder, truth = scene_folder
    result = audited(folder / "captions.jsonl", tmp_path / "audit")
    assert (truth.textual_error, truth.visual_feature) in pairs(result)
    check(tmp_path / "audit", tmp_path / "out", policy)


def test_captions_of_a_small_captioner_with_their_photos(shared_data: Path, tmp_path: Path) -> None:
    coco = shared_data / "coco"
    told = (coco / "lstm_captions" / "nsimsiri-lstm-2-64-512.jsonl").read_text("utf-8").splitlines()
    rows = [{**row, "image": f"{row['image_id']:012d}.jpg"} for row in map(json.loads, told)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    audited(tmp_path / "rows.jsonl", tmp_path / "audit", image_root=coco / "images")
    for policy in POLICIES:
        done = check(tmp_path / "audit", tmp_path / policy, policy)
        assert f"--image-root {(coco / 'images').resolve()}" in (done.command or "")
