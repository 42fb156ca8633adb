"""A repaired dataset is the source, in its own format, but for the captions that an audit found wrong."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from repair_case import KINDS, audited, captions, pairs, records, rows, units, write
from typer.testing import CliRunner

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.results.repaired import ACTIONS

POLICIES = ("flag", "drop-sentence", "drop-row")
WRONG = {row["id"] for row in rows() if row["objects"] == ["toilet"]}


def diff_of(done: symbal_hf.Repaired) -> dict[str, dict]:
    return {line["row_id"]: line for line in map(json.loads, done.diff.read_text("utf-8").splitlines())}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_only_what_is_wrong_changes(kind: str, policy: str, tmp_path: Path) -> None:
    source = write(kind, tmp_path, rows())
    before, bytes_before = captions(source), source.read_bytes()
    result = audited(source, tmp_path / "audit")
    assert pairs(result) == {("sink", "toilet")}
    done = symbal_hf.repair(tmp_path / "audit", policy=policy, out=tmp_path / "out")

    assert source.read_bytes() == bytes_before and done.table == tmp_path / "out" / source.name
    after, diff, counts = captions(done.table), diff_of(done), done.counts
    assert set(diff) == WRONG and counts.untouched == 120
    assert sum(getattr(counts, name) for name in (*ACTIONS.values(), "untouched")) == counts.rows == 160
    assert list(after) == [row_id for row_id in before if row_id in after] and len(after) == counts.written
    for row_id, change in diff.items():
        assert change["before"].strip() == before[row_id].strip()
        assert change["after"] == (after[row_id].strip() if row_id in after else None)
    if policy == "flag":
        assert after == before and counts.flagged == 40
        flags = {r["id"]: (r["symbal_flag"], r["symbal_errors"]) for r in records(done.table)}
        read = json.loads if source.suffix in (".csv", ".tsv") else (lambda value: value)
        assert {i for i, (flag, _) in flags.items() if read(flag)} == WRONG
        error = {"textual_error": "sink", "visual_feature": "toilet", "sentences": ["A sink shines!"]}
        assert read(flags["r160"][1]) == [error] and read(flags["r159"][1]) == []
        return
    old, new = units(kind, source), units(kind, done.table)
    touched = [row_id in WRONG for row_id in before]
    assert [u for u, t in zip(old, touched, strict=True) if not t] == [
        u for u, i in zip(new, after, strict=True) if i not in WRONG
    ]
    assert pairs(symbal_hf.audit(done.table)) == set()
    if policy == "drop-sentence":
        assert (counts.sentences_dropped, counts.emptied) == (30, 10)
        assert after["r160"] == "There is a toilet. It is white."
        assert after["r156"].strip() == "Here is a toilet.\n\n- A tub."
        assert after["r152"] == "Zoë's toilet is “new”, 日本. Fin."
        kept = [{k: v for k, v in r.items() if k not in ("caption", "conversations", "messages")}
                for r in records(done.table)]  # fmt: skip
        assert kept == [{k: v for k, v in r.items() if k in kept[0]} for r in records(source) if r["id"] in after]
    else:
        assert counts.rows_dropped == 40 and not WRONG & set(after)


@pytest.mark.parametrize("wanted", ["jsonl", "json", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "llava.json", "chat.parquet"])
def test_another_format_holds_the_same_rows(kind: str, wanted: str, tmp_path: Path) -> None:
    source = write(kind, tmp_path, rows())
    audited(source, tmp_path / "audit")
    own = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "own")
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out", output_format=wanted)
    assert done.table.suffix == f".{wanted}" and done.counts == own.counts
    assert captions(done.table) == captions(own.table)
    assert pairs(symbal_hf.audit(done.table)) == set()
    flagged = symbal_hf.repair(tmp_path / "audit", policy="flag", out=tmp_path / "flag", output_format=wanted)
    assert sum(str(r["symbal_flag"]).lower() == "true" for r in records(flagged.table)) == 40


def test_rows_pair_by_id_and_those_not_audited_stay(tmp_path: Path) -> None:
    given = rows(400)
    given[4:4] = [{"id": "bad", "caption": "  ", "objects": [], "note": "bad"}]
    source = write("jsonl", tmp_path, given)
    result = audited(source, tmp_path / "audit", sample=200, seed=5)
    affected = set(result.findings[0].affected_ids)
    assert 20 < len(affected) < 80  # the others were not drawn
    done = symbal_hf.repair(tmp_path / "audit", policy="flag", out=tmp_path / "out")
    flags = records(done.table)
    assert [r["id"] for r in flags if r["symbal_flag"]] == [r["id"] for r in given if r["id"] in affected]
    assert sum(r["symbal_flag"] is None for r in flags) == done.counts.not_audited == 401 - result.counts["rows"]
    assert done.notes and "draws other rows" in done.notes[0] and "--sample 200" in (done.command or "")


def test_of_a_limited_audit_the_command_reads_the_same_rows(tmp_path: Path) -> None:
    source = write("jsonl", tmp_path, rows())
    audited(source, tmp_path / "audit", limit=100)
    moved = source.rename(tmp_path / "moved.jsonl")
    with pytest.raises(FileNotFoundError):
        symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "out")
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "out", source=moved)
    assert (done.counts.rows, done.counts.rows_dropped, done.counts.not_audited) == (160, 25, 60)
    assert "--limit 75" in (done.command or "") and done.table.name == "moved.jsonl"
    assert pairs(symbal_hf.audit(done.table, limit=75)) == set()
    assert pairs(symbal_hf.audit(done.table)) == {("sink", "toilet")}  # the others still are as they were


def test_of_two_rows_with_one_id_the_one_that_was_audited_changes(tmp_path: Path) -> None:
    given = rows()
    given[8:8] = [{**given[0], "note": "again"}]
    audited(write("jsonl", tmp_path, given), tmp_path / "audit")
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out")
    after = {r["note"]: r["caption"] for r in records(done.table)}
    assert after["n0, é"] == "There is a toilet. It is white." and after["again"] == given[0]["caption"]


def test_rows_in_memory_are_given_again(tmp_path: Path) -> None:
    result = symbal_hf.audit(rows())
    with pytest.raises(BadData, match="in memory"):
        symbal_hf.repair(result, policy="drop-sentence", out=tmp_path / "out")
    done = symbal_hf.repair(result, policy="drop-sentence", out=tmp_path / "out", source=iter(rows()))
    assert done.table.name == "data.parquet" and pq.read_table(done.table).num_rows == 150
    with pytest.raises(BadData, match="not those that were audited"):  # never by position
        symbal_hf.repair(result, policy="drop-row", out=tmp_path / "other", source=rows()[::-1])
    assert not (tmp_path / "other").exists()


def test_half_a_surrogate_pair_goes_through(tmp_path: Path) -> None:
    given = rows()
    given[0]["caption"], given[1]["caption"] = "A toilet \ud83d. A sink shines!", "A dog \udc00."
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in given), "utf-8")
    result = symbal_hf.audit(source)
    done = symbal_hf.repair(result, policy="drop-sentence", out=tmp_path / "out")
    after = captions(done.table)
    assert after["r160"] == "A toilet \ud83d." and after["r159"] == "A dog \udc00."
    assert diff_of(done)["r160"]["after"] == "A toilet \ud83d."


def test_where_nothing_was_found_the_copy_is_the_source(tmp_path: Path) -> None:
    for kind in ("jsonl", "csv", "json"):
        source = write(kind, tmp_path, [r for r in rows() if r["objects"] != ["toilet"]])
        assert audited(source, tmp_path / f"audit-{kind}").verdict == "none"
        done = symbal_hf.repair(tmp_path / f"audit-{kind}", policy="drop-sentence", out=tmp_path / f"out-{kind}")
        assert done.table.read_bytes() == source.read_bytes()
        assert done.counts.untouched == done.counts.rows == 120 and done.diff.read_bytes() == b""


def test_only_the_chosen_findings_are_repaired(tmp_path: Path) -> None:
    source = write("jsonl", tmp_path, rows())
    result = audited(source, tmp_path / "audit")
    other = replace(result.findings[0], textual_error="tub", affected=result.findings[0].affected[:3])
    two = replace(result, findings=(*result.findings, other))
    assert symbal_hf.repair(two, policy="drop-row", out=tmp_path / "a", findings=[1]).counts.rows_dropped == 3
    assert symbal_hf.repair(two, policy="drop-row", out=tmp_path / "b").counts.rows_dropped == 40
    assert symbal_hf.repair(two, policy="drop-row", out=tmp_path / "c", findings=[]).counts.rows_dropped == 0
    with pytest.raises(ValueError, match=r"no finding 2; the audit has findings 0 to 1\."):
        symbal_hf.repair(two, policy="drop-row", out=tmp_path / "d", findings=[2])


def test_what_is_only_suspected_is_repaired_if_told_so_and_never_else(tmp_path: Path) -> None:
    result = audited(write("jsonl", tmp_path, rows()), tmp_path / "audit")
    (found,) = result.findings
    suspect = replace(found, textual_error="tub", affected=found.affected[:3], state="suspected")
    candidate = replace(suspect, textual_error="cup", state="candidate")
    mixed = replace(result, suspects=(suspect, candidate))
    alone = replace(mixed, findings=(), verdict="none")

    def dropped(audit: symbal_hf.AuditResult, name: str, **options: object) -> symbal_hf.Repaired:
        return symbal_hf.repair(audit, policy="drop-row", out=tmp_path / name, **options)

    left = dropped(alone, "a")
    assert left.counts.changed == 0 and any("'tub' with 'toilet': only suspected" in note for note in left.notes)
    for audit, number, name in ((alone, 0, "b"), (mixed, 1, "c")):
        with pytest.raises(
            BadData, match=rf"finding {number}, 'tub' with 'toilet', .* give suspected \(--suspected\)\."
        ):
            dropped(audit, name, findings=[number])
        done = dropped(audit, name, findings=[number], suspected=True)
        assert done.counts.rows_dropped == 3 and not any("suspected" in note for note in done.notes)
        assert [f["state"] for f in json.loads(done.summary.read_text("utf-8"))["findings"]] == ["suspected"]
    assert dropped(mixed, "d").counts.rows_dropped == dropped(mixed, "e", suspected=True).counts.rows_dropped == 40
    with pytest.raises(ValueError, match=r"no finding 2; the audit has findings 0 to 1\."):
        dropped(mixed, "f", findings=[2], suspected=True)  # a candidate failed a test
    for audit, options in ((result, {}), (mixed, {"findings": [0]})):
        with pytest.raises(BadData, match="suspected=True changes nothing"):
            dropped(audit, "g", suspected=True, **options)


def test_a_sentence_that_is_not_found_is_a_third_state(tmp_path: Path) -> None:
    result = audited(write("jsonl", tmp_path, rows()), tmp_path / "audit")
    first = result.findings[0]
    odd = replace(first.affected[0], sentences=("A sink that nobody wrote.",))
    broken = replace(result, findings=(replace(first, affected=(odd, *first.affected[1:])),))
    done = symbal_hf.repair(broken, policy="drop-sentence", out=tmp_path / "out")
    change = diff_of(done)[odd.row_id]
    assert done.counts.not_found == 1 and change["action"] == "not found" and change["before"] == change["after"]
    assert "does not stand in the caption" in change["reason"]


# ------------------------------------------------------------------------------------------- whole or not at all


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    source = write("jsonl", tmp_path, rows())
    audited(source, tmp_path / "audit")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "full", source):
        with pytest.raises(BadData, match="nothing is overwritten"):
            symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=out)
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine.txt"]
    assert symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "empty").table.is_file()
    folder = tmp_path / "set"
    folder.mkdir()
    audited(write("jsonl", folder, rows()).parent, tmp_path / "audit-2")
    with pytest.raises(BadData, match="is never written"):
        symbal_hf.repair(tmp_path / "audit-2", policy="drop-row", out=folder / "out")


def test_a_failed_repair_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symbal_hf.followup import repair as repairing

    audited(write("jsonl", tmp_path, rows()), tmp_path / "audit")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    before = set(tmp_path.iterdir())
    monkeypatch.setattr(repairing.Path, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "out")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("at", ["_summary", "Path.replace", "write_table"])
def test_a_killed_repair_leaves_no_half_output(at: str, tmp_path: Path) -> None:
    audited(write("jsonl", tmp_path, rows()), tmp_path / "audit")
    code = (
        "import os, signal, sys\nfrom symbal_hf.followup import repair as repairing\n"
        f"repairing.{at} = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "repairing.repair(sys.argv[1], policy='drop-row', out=sys.argv[2])"
    )
    died = subprocess.run([sys.executable, "-c", code, tmp_path / "audit", tmp_path / "out"], env=os.environ)
    assert died.returncode == -signal.SIGKILL and not (tmp_path / "out").exists()
    assert symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "out").counts.rows_dropped == 40


def test_a_source_that_changes_meanwhile_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symbal_hf.followup import repair as repairing

    source = write("jsonl", tmp_path, rows())
    audited(source, tmp_path / "audit")
    real = repairing.write_table

    def changed(*given: object) -> Path:
        source.write_text("\n".join(source.read_text("utf-8").split("\n")[1:]), "utf-8")
        return real(*given)

    monkeypatch.setattr(repairing, "write_table", changed)
    with pytest.raises(BadData, match="leave the source alone"):
        symbal_hf.repair(tmp_path / "audit", policy="drop-row", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------------ the command


def test_the_command_says_what_it_did_and_how_to_look_again(tmp_path: Path) -> None:
    from symbal_hf.cli.app import app

    source = write("jsonl", tmp_path, [{k: v for k, v in r.items() if k != "objects"} for r in rows()])
    truth, words = tmp_path / "truth.csv", tmp_path / "words.json"
    truth.write_text("id,objects\n" + "".join(f'{r["id"]},"{",".join(r["objects"])}"\n' for r in rows()), "utf-8")
    words.write_text('{"sink": ["basin"], "toilet": [], "dog": []}', "utf-8")
    run = CliRunner().invoke
    given = [str(source), "--join", str(truth), "--vocabulary", str(words), "--min-rate", "0.2"]
    assert run(app, ["audit", *given, "--out", str(tmp_path / "a")]).exit_code == 0
    said = run(app, ["repair", str(tmp_path / "a"), "--policy", "drop-sentence", "--out", str(tmp_path / "out")])
    assert said.exit_code == 0, said.output
    assert "160 rows: 30 had wrong sentences taken out, 10 left out" in said.output and "120 untouched" in said.output
    command = next(line for line in said.output.splitlines() if line.startswith("  symbal audit"))
    assert "--min-rate 0.2" in command and command.strip() == json.loads(
        (tmp_path / "out" / "repair.json").read_text("utf-8")
    )["command"]  # fmt: skip
    again = run(app, shlex.split(command)[1:])
    assert again.exit_code == 0 and "Nothing systematic" in again.output, again.output
