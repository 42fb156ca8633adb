"""A submission says what the run said, of no machine and no password, and the same run gives the same bytes."""

from __future__ import annotations

import json
import re

import pytest
from bench_case import half, right, write_results
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.bench.acc_at_k import NAMES
from symbal_hf.bench.leaderboard.strict_json import invisible, loads
from symbal_hf.bench.leaderboard.submission import build_submission, clean, dumps, public, schema
from symbal_hf.core.errors import BadData


def test_it_states_what_the_run_said_and_what_follows_from_it(bench, tmp_path):
    n = len(bench.settings)

    def answer(number, setting):
        return None if number == 0 else half(number, setting)

    folder = write_results(tmp_path / "run", bench, answer)
    made = build_submission(folder, bench=bench.folder, name="a system", judge="exact", url="https://example.org/a")
    rows = made["predictions"]
    assert [row["setting"] for row in rows] == sorted(s.name for s in bench.settings)
    of = {s.name: s.row for s in bench.settings}
    for row in rows:
        for part in NAMES:
            same = [name == of[row["setting"]][part] for name in row[part]]
            assert row["judged"][part] == ["same" if one else "different" for one in same]
    first = bench.settings[0].name
    assert [row["setting"] for row in rows if row["error"]] == [first]
    assert made["benchmark"] == {"id": None, "revision": bench.revision}
    assert made["variants"] == ["reference_based", "reference_free"]
    assert made["tasks"] == ["scenes_reference_based", "scenes_reference_free"]
    assert made["judge"] == {"name": "exact", "revision": "1", "prompt_hash": ""} and made["seeds"] == {"method": 3}
    assert made["system"]["options"] == {"preset": "lite", "seed": 3} and "numpy" in made["versions"]
    counts = made["counts"]
    assert (counts["settings"], counts["errors"], counts["asked"], counts["failed"]) == (n, 1, 3 * (n - 1), n - 1)
    for variant in made["variants"]:
        mine = [row for row in rows if row["setting"].endswith(variant)]
        for k in (1, 5):
            good = [all("same" in row["judged"][part][:k] for part in NAMES) for row in mine]
            assert made["scores"]["variants"][variant][f"acc@{k}"] == sum(good) / len(mine)
        assert made["scores"]["tasks"][f"scenes_{variant}"] == made["scores"]["variants"][variant]
    assert str(tmp_path) not in json.dumps(made)  # the reason of a failure names a place of this machine


def test_equal_runs_give_equal_bytes_whatever_order_they_finished_in(bench, tmp_path):
    one = write_results(tmp_path / "one", bench, half)
    other = write_results(tmp_path / "other", bench, half)
    for path in other.glob("results-*.jsonl"):
        path.write_text("".join(reversed(path.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    made = [dumps(build_submission(folder, bench=bench, name="x", judge="exact")) for folder in (one, other)]
    assert made[0] == made[1] and loads(made[0]) == json.loads(made[0])


def test_its_form_is_the_schema_s(bench, tmp_path):
    validator = pytest.importorskip("jsonschema", reason="checks the form").Draft202012Validator
    validator.check_schema(schema())
    folder = write_results(tmp_path / "run", bench, half)
    validator(schema()).validate(build_submission(folder, bench=bench, name="x", judge="exact"))

    def closed(node):
        """Every object is closed, and every text, list and open object bounded."""
        if isinstance(node, list):
            return all(map(closed, node))
        if not isinstance(node, dict):
            return True
        types = node.get("type")
        needs = {"object": ["additionalProperties"], "array": ["maxItems"], "string": ["maxLength"]}.get(str(types), [])
        if node.get("additionalProperties"):
            needs = [*needs, "maxProperties"]
        assert all(key in node for key in needs), node
        return all(map(closed, node.values()))

    assert closed(schema())


def test_one_variant_is_enough_and_half_a_task_is_not(bench, tmp_path):
    free = [s for s in bench.settings if s.variant == "reference_free"]
    whole = write_results(tmp_path / "whole", bench, half, settings=free)
    made = build_submission(whole, bench=bench, name="x", judge="exact")
    assert made["tasks"] == ["scenes_reference_free"] and made["variants"] == ["reference_free"]
    part = write_results(tmp_path / "part", bench, half, settings=free[1:])
    with pytest.raises(BadData, match=rf"1 of {len(free)} settings of scenes_reference_free have no answer, such as"):
        build_submission(part, bench=bench, name="x", judge="exact")


def test_an_unfinished_run_another_benchmark_and_no_run_are_refused(bench, tmp_path):
    folder = write_results(tmp_path / "run", bench, half)
    (path,) = folder.glob("results-*.jsonl")
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
    with pytest.raises(BadData, match=r"have no result yet, such as .*run `symbal bench run` again"):
        build_submission(folder, bench=bench, name="x", judge="exact")
    about = json.loads((folder / "run.json").read_text())
    about["benchmark"]["revision"] = "0" * 16
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(BadData, match=f"revision '0+', and .* has '{bench.revision}'; give the one"):
        build_submission(folder, bench=bench, name="x", judge="exact")
    (folder / "run.json").write_text("{}")
    with pytest.raises(BadData, match="holds no run over a benchmark"):
        build_submission(folder, bench=bench, name="x", judge="exact")
    with pytest.raises(FileNotFoundError):
        build_submission(tmp_path, bench=bench, name="x", judge="exact")


@pytest.mark.parametrize("name", ["", " ", "x" * 101, "a\u202eb", "a\nb", "\ud83d"])
def test_a_name_that_cannot_be_shown_is_refused(bench, tmp_path, name):
    folder = write_results(tmp_path / "run", bench, half)
    with pytest.raises(BadData, match="of the system; give 1 to 100 visible characters") as refused:
        build_submission(folder, bench=bench, name=name, judge="exact")
    assert invisible(str(refused.value)) is None


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://u:p@example.org", "https://a b", "ftp://x", "https://'"]
)
def test_an_address_that_is_no_page_is_refused(bench, tmp_path, url):
    folder = write_results(tmp_path / "run", bench, half)
    with pytest.raises(BadData, match="with http:// or https://"):
        build_submission(folder, bench=bench, name="x", judge="exact", url=url)


def test_names_lose_what_nobody_sees_and_what_is_too_long_and_that_is_counted(bench, tmp_path):
    odd = ["tea\u202epot", "bell\u0007", "two\nlines", "x" * 300, "e" + "\u0301" * 9, "sixth"]
    folder = write_results(tmp_path / "run", bench, lambda number, s: (odd, right(number, s)[1]))
    made = build_submission(folder, bench=bench, name="x", judge="exact")
    kept = made["predictions"][0]["textual_error"]
    assert kept == ["teapot", "bell", "two lines", "x" * 200, "e" + "\u0301" * 4]
    assert made["counts"]["cleaned"] == 5 * len(bench.settings)
    loads(dumps(made))


@given(st.text(max_size=400))
def test_what_is_cleaned_is_visible_short_and_clean(name):
    kept = clean(name)
    assert invisible(kept) is None and len(kept) <= 200 and clean(kept) == kept
    json.dumps(kept, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("lite", "lite"),
        ("Qwen/Qwen3-VL-8B", "Qwen/Qwen3-VL-8B"),
        ("vision-language:hf:org/model@main", "vision-language:hf:org/model@main"),
        ("hf:/home/me/models/llama@main", "hf:llama@main"),
        ("embedding:open_clip:local-dir:/data/clip", "embedding:open_clip:local-dir:clip"),
        ("file:/home/me/captions.jsonl", "file:captions.jsonl"),
        ("file:///home/me/captions.jsonl", "file:captions.jsonl"),
        (r"C:\Users\me\preset.yaml", "preset.yaml"),
        ("../mine/preset.yaml", "preset.yaml"),
        ("~/preset.yaml", "preset.yaml"),
        ("/", "local"),
        ("openai:http://127.0.0.1:8000/v1#org/model", "openai:http://127.0.0.1:8000/v1#org/model"),
        ("openai:https://me:secret@host/v1?key=secret#/home/me/llama", "openai:https://host/v1#llama"),
        ("text-only:openai:https://secret@host/v1#m", "text-only:openai:https://host/v1#m"),
    ],
)
def test_passwords_and_places_of_one_machine_are_left_out(spec, told):
    assert public(spec) == told and public(told) == told


def test_options_of_a_run_are_told_so(bench, tmp_path, monkeypatch):
    (tmp_path / "models/llama").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    options = {"chat": "hf:models/llama", "captioner": "openai:http://u:secret@h/v1#m", "preset": f"{tmp_path}/my.yaml"}
    folder = write_results(tmp_path / "run", bench, half, options=options)
    made = build_submission(folder, bench=bench, name="x", judge="exact")
    said = {"chat": "hf:llama", "captioner": "openai:http://h/v1#m", "preset": "my.yaml"}
    assert made["system"]["options"] == said
    assert not re.search(rf"secret|{tmp_path}", dumps(made).decode())
