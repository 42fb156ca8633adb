"""The auditor's day on real files, by the command line: audit, look again, repair, audit again, compare, report."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import command
import pytest

import symbal_hf


def symbal(*words: object, cwd: Path) -> str:
    """Run the command as a user would; what it prints."""
    done = command.symbal(*words, cwd=cwd, env={"COLUMNS": "120"})
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def part(source: Path, folder: Path, rows: int) -> Path:
    """The first rows of a file of JSON lines."""
    out = folder / source.name
    with source.open(encoding="utf-8") as file:
        out.write_text("".join(line for _, line in zip(range(rows), file, strict=False)), "utf-8")
    return out


def pairs(folder: Path) -> list[tuple[str, str]]:
    return [(f.textual_error, f.visual_feature) for f in symbal_hf.load_result(folder).findings]


@pytest.mark.parametrize("policy", ["drop-sentence", "drop-row"])
def test_captions_of_a_real_mllm_go_the_whole_road(shared_data: Path, tmp_path: Path, policy: str) -> None:
    real = shared_data / "mllm_coco"
    captions = part(real / "mllm_captions" / "pope__mplug-owl__instruction1.jsonl", tmp_path, 1200)
    truth = ["--join", real / "objects_chair.jsonl", "--vocabulary", real / "chair_vocab.json"]

    assert "1,200 rows, 0 left out" in symbal("audit", captions, *truth, "--out", "audit", cwd=tmp_path)
    result = symbal_hf.load_result(tmp_path / "audit")
    assert pairs(tmp_path / "audit")[0] == ("sink", "toilet")

    said = symbal("validate", "audit", "--detector", "objects", cwd=tmp_path)
    assert 'Erroneous references to "sink" are' in said and "proves nothing new" in said
    looked = json.loads((tmp_path / "audit" / "validation.json").read_text("utf-8"))["findings"][0]
    assert looked["errors_with_feature"] == result.findings[0].errors_with_feature  # judged by the same objects
    assert looked["risk_ratio"] > 10 and looked["undecided"] == 0

    before = captions.read_bytes()
    said = symbal("repair", "audit", "--policy", policy, "--out", "repaired", cwd=tmp_path)
    assert captions.read_bytes() == before
    hit = {row for finding in result.findings for row in finding.affected_ids}
    changed = (tmp_path / "repaired" / "diff.jsonl").read_text("utf-8").splitlines()
    assert {json.loads(line)["row_id"] for line in changed} == hit

    printed = shlex.split(said.strip().splitlines()[-1])
    assert printed[:2] == ["symbal", "audit"]
    symbal(*printed[1:], cwd=tmp_path)
    assert not set(pairs(tmp_path / "audit")) & set(pairs(tmp_path / "repaired-audit"))

    said = symbal("compare", "audit", "repaired-audit", "--out", "compared", cwd=tmp_path)
    (sink,) = [line for line in said.splitlines() if "sink" in line and "toilet" in line][:1]
    assert "less" in sink
    symbal("report", "audit", "--title", "The road", cwd=tmp_path)
    page = (tmp_path / "audit" / "report.html").read_text("utf-8")
    assert "The road" in page and "At a second look" in page


def test_captions_with_their_photos_go_the_whole_road(shared_data: Path, tmp_path: Path) -> None:
    """A captioner is judged by its photos; what really is in them gives the second look."""
    real = shared_data / "coco"
    captions = part(real / "lstm_captions" / "nsimsiri-lstm-2-64-512.jsonl", tmp_path, 600)
    photos = ["--join", real / "objects.jsonl", "--objects-column", "chair_objects", "--image-root", real]
    words = ["--vocabulary", shared_data / "mllm_coco" / "chair_vocab.json"]

    symbal(
        "audit", captions, *photos, *words, "--scorer", "embedding", "--pair", "sink|toilet", "--out", "a", cwd=tmp_path
    )
    result = symbal_hf.load_result(tmp_path / "a")
    assert result.provenance["scorer"] == "embedding" and result.counts["rows"] == 600
    (asked,) = result.asked
    assert (asked.textual_error, asked.visual_feature) == ("sink", "toilet")

    said = symbal("validate", "a", "--detector", "objects", cwd=tmp_path)
    assert 'Erroneous references to "sink" are' in said and "proves nothing new" not in said
    looked = json.loads((tmp_path / "a" / "validation.json").read_text("utf-8"))
    (sink,) = [f for f in looked["findings"] if f["textual_error"] == "sink"]
    assert looked["independent"] and sink["risk_ratio_low"] > 3  # objects see what the photos alone did not prove
    page = (tmp_path / "a" / "report.html").read_text("utf-8")
    assert page.count("data:image/jpeg") == sum(
        [len(f.examples) for f in result.findings] + [len(f.examples[:6]) for f in result.suspected]
    )

    other = part(real / "lstm_captions" / "nsimsiri-lstm-a.jsonl", tmp_path, 600)
    symbal("audit", other, *photos, *words, "--scorer", "objects", "--out", "b", cwd=tmp_path)
    symbal("audit", captions, *photos, *words, "--scorer", "objects", "--out", "c", cwd=tmp_path)
    said = symbal("compare", "b", "c", "--out", "compared", cwd=tmp_path)
    assert "the same images" in said
    told = json.loads((tmp_path / "compared" / "comparison.json").read_text("utf-8"))
    assert {f["verdict"] for f in told["findings"]} <= {"less", "same", "more", "not shown"}
