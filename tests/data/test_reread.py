"""An audit knows what it read, so that its rows can be read again, and it is told when they are others."""

import json
from pathlib import Path

import pytest

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.data.again import audited_vocabulary, reread
from symbal_hf.results.findings import load_result

ROWS = [{"id": f"r{i}", "caption": f"A cat sits. Number {i}.", "objects": ["cat"] if i % 2 else []} for i in range(30)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"id": "bad", "caption": " "}]), "utf-8")
    return path


def audited(source: object, folder: Path, **options: object) -> symbal_hf.AuditResult:
    symbal_hf.audit(source, **options).write(folder)  # type: ignore[arg-type]
    return load_result(folder)


def test_rows_are_read_again_with_the_audits_own_options(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = tmp_path / "words.json"
    words.write_text('{"cat": ["kitty"]}', "utf-8")
    monkeypatch.chdir(tmp_path)
    result = audited("rows.jsonl", tmp_path / "out", sample=12, seed=3, vocabulary="words.json")
    monkeypatch.chdir("/")  # paths hold from anywhere
    again = reread(result)
    assert len(again) + len(again.skipped) == 12 and again.ids != tuple(row["id"] for row in ROWS[:12])
    assert audited_vocabulary(result) == {"cat": ["kitty"]}


def test_a_file_that_was_moved_is_named_anew(table: Path, tmp_path: Path) -> None:
    result = audited(table, tmp_path / "out")
    moved = table.rename(tmp_path / "moved.jsonl")
    with pytest.raises(FileNotFoundError):
        reread(result)
    assert len(reread(result, source=moved)) == 30


def test_other_rows_are_not_taken_for_those_that_were_audited(table: Path, tmp_path: Path) -> None:
    result = audited(table, tmp_path / "out")
    table.write_text(table.read_text("utf-8").replace("Number 7", "Number 70"), "utf-8")
    with pytest.raises(BadData, match="not those that were audited"):
        reread(result)


def test_rows_in_memory_cannot_be_read_again(tmp_path: Path) -> None:
    result = audited(ROWS, tmp_path / "out")
    with pytest.raises(BadData, match="in memory"):
        reread(result)
    path = tmp_path / "same.json"
    path.write_text(json.dumps(ROWS), "utf-8")
    assert len(reread(result, source=path)) == 30


def test_affected_rows_carry_the_sentences_that_state_the_error(tmp_path: Path) -> None:
    rows = [
        {
            "id": str(i),
            "caption": "There is a toilet. A **sink** shines! It is white." if i < 40 else "A dog. It runs.",
            "objects": ["toilet"] if i < 40 else ["dog"] if i < 200 else ["sink"],
        }
        for i in range(240)
    ]
    result = audited(rows, tmp_path / "out")
    first = result.findings[0]
    assert (first.textual_error, first.visual_feature) == ("sink", "toilet")
    assert {row.sentences for row in first.affected} == {("A sink shines!",)}
    assert all(row.has_feature and row.alignment is None for row in first.affected)
    assert first.affected_ids == tuple(str(i) for i in range(40))
