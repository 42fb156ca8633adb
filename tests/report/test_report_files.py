"""The page of a finished audit is written anew from what lies in its folder, with as much as can still be read."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from command import symbal
from report_case import validation_of

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.report.folder import write_report_of
from symbal_hf.results.findings import load_result


@pytest.fixture(scope="module")
def scenes(scene_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Drawn scenes in a folder that may be moved."""
    source, _ = scene_folder
    folder = tmp_path_factory.mktemp("moving") / "scenes"
    (folder / "images").mkdir(parents=True)
    for path in [source / "captions.jsonl", *(source / "images").iterdir()]:
        (folder / path.relative_to(source)).write_bytes(path.read_bytes())
    return folder


@pytest.fixture
def audited(scenes: Path, tmp_path: Path) -> Path:
    """The folder of an audit in Python, which draws no map."""
    result = symbal_hf.audit(scenes / "captions.jsonl")
    assert result.findings and result.fact_map is None
    result.write(tmp_path / "out")
    return tmp_path / "out"


def test_a_map_that_is_missing_is_drawn_once_and_kept(audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = write_report_of(audited, title="Of a shop")
    html = done.path.read_text("utf-8")
    assert done.no_pictures is None and done.no_map is None and done.path == audited / "report.html"
    assert html.count("data:image/jpeg") >= 4 and "<h1>Of a shop</h1>" in html and 'id="map"' in html
    drawn = load_result(audited).fact_map
    assert drawn is not None and drawn == done.result.fact_map and any(p.finding == 0 for p in drawn.points)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a map that is there was drawn again")

    monkeypatch.setattr("symbal_hf.report.fact_map.draw_fact_map", never)
    assert write_report_of(audited, title="Of a shop").path.read_text("utf-8") == html


def test_a_second_look_in_the_folder_comes_onto_the_page(audited: Path) -> None:
    assert "At a second look" not in write_report_of(audited).path.read_text("utf-8")
    validation_of(load_result(audited)).write(audited)
    html = write_report_of(audited).path.read_text("utf-8")
    assert "At a second look (<bdi>owl-vit</bdi>" in html and 'class="box"' in html
    of_others = replace(validation_of(load_result(audited)), provenance={"rows_sha256": "of other rows"})
    of_others.write(audited)  # as the audit that was in this folder before may leave it
    assert "At a second look" not in write_report_of(audited).path.read_text("utf-8")


def test_rows_that_are_gone_cost_the_pictures_and_no_more(audited: Path, scenes: Path) -> None:
    moved = scenes.rename(scenes.with_name("moved"))
    try:
        done = write_report_of(audited)
        html = done.path.read_text("utf-8")
        assert done.no_pictures is not None and done.no_map is not None
        assert (
            "<img" not in html
            and f"No pictures: {done.no_pictures}" in unescape(html)
            and 'class="card"' in html
            and 'id="map"' not in html
        )
        found = write_report_of(audited, source=moved / "captions.jsonl")
        assert found.no_pictures is None and "<img" in found.path.read_text("utf-8")
        said = symbal("report", audited, "--source", moved / "captions.jsonl", "--title", "Moved")
        assert said.returncode == 0 and said.stdout == f"wrote {audited / 'report.html'}\n"
        assert "<title>Moved</title>" in (audited / "report.html").read_text("utf-8")
        said = symbal("report", audited)
        assert said.returncode == 0 and said.stdout.startswith(f"no pictures: {done.no_pictures}\n")
    finally:
        moved.rename(scenes)


def test_other_rows_named_by_the_caller_are_an_error_and_change_nothing(audited: Path, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"id": 1, "caption": "A dog."}\n', "utf-8")
    write_report_of(audited)
    before = (audited / "report.html").read_bytes()
    with pytest.raises(BadData, match="not those that were audited"):
        write_report_of(audited, source=tmp_path / "other.jsonl")
    said = symbal("report", audited, "--source", tmp_path / "none.jsonl")
    assert said.returncode == 2 and said.stderr.startswith("symbal: ") and said.stderr.count("\n") == 1
    said = symbal("report", tmp_path)
    assert said.returncode == 2 and "no findings.json" in said.stderr
    assert (audited / "report.html").read_bytes() == before


def test_rows_at_hand_are_not_read_again(tmp_path: Path) -> None:
    rows = [{"id": i, "caption": "A dog runs. It is day.", "objects": ["dog"]} for i in range(30)]
    symbal_hf.audit(rows).write(tmp_path)
    assert "in memory" in str(write_report_of(tmp_path).no_pictures)
    done = write_report_of(tmp_path, data=symbal_hf.data.table.load_data(rows))
    assert done.no_pictures is None and done.result.fact_map is not None and len(done.result.fact_map.points) == 60


def test_without_a_text_encoder_there_is_a_page_without_a_map(audited: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symbal_hf.core.errors import MissingModel
    from symbal_hf.models.encoders.lite import MiniLM

    def missing(*_: object, **__: object) -> None:
        raise MissingModel("the text encoder is not installed.")

    monkeypatch.setattr(MiniLM, "encode", missing)
    monkeypatch.setenv("SYMBAL_CACHE", str(audited / "empty cache"))
    done = write_report_of(audited)
    assert done.no_map == "the text encoder is not installed." and done.result.fact_map is None
    assert "<img" in done.path.read_text("utf-8")


def test_the_command_that_audits_draws_the_map(scenes: Path, tmp_path: Path) -> None:
    said = symbal("audit", scenes / "captions.jsonl", "--out", tmp_path)
    assert said.returncode == 0, said.stderr
    stored = json.loads((tmp_path / "findings.json").read_text("utf-8"))["fact_map"]
    html = (tmp_path / "report.html").read_text("utf-8")
    assert len(stored["points"]) == 400 and stored["encoder"].endswith("MiniLM-L6-v2")
    picture = html[html.index('aria-labelledby="map-title map-note"') : html.index('<ul class="keys">')]
    assert picture.count("<title>") == 400
