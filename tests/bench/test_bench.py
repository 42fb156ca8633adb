"""The runner: what is finished stays and is not done twice, whoever is killed; and no method is shown the truth."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from chat_fakes import FakeServer
from command import symbal

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import pairs_for
from benchmark_builder.writing.build import build
from symbal_hf.bench.methods import Answer
from symbal_hf.bench.results import Results, read_lines, read_manifest
from symbal_hf.bench.run import manifest, place_of_process, run_bench, usable
from symbal_hf.bench.settings import choose, open_bench
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.files import write_whole

SYMBAL = Path(sys.executable).with_name("symbal")
WHERE = "variant=reference_based"  # by references alone nothing has to look at images


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("top")
    base = scenes_base(top / "drawn", rows=100, size=64, seed=1)
    build(base, top / "symbalbench", pairs=pairs_for(base, ["adversarial", "popular"], seed=1), seed=1)
    return top / "symbalbench"


@pytest.fixture(scope="module")
def bench(folder):
    return open_bench(folder)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def command(folder, cache, out, *more):
    env = {**os.environ, "SYMBAL_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    args = [SYMBAL, "bench", "run", folder, "--out", out, "--where", WHERE, *more]
    return subprocess.Popen(args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(folder, cache, out, *more):
    """The same in this process."""
    arguments = ("bench", "run", folder, "--out", out, "--where", WHERE, *more)
    done = symbal(*arguments, env={"SYMBAL_CACHE": str(cache)})
    return done.returncode, done.stdout, done.stderr


def finish(process):
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def kill_after(process, file, lines):
    """Kills it with no warning once it has finished so many settings; how many there were then."""
    end = time.monotonic() + 120
    while not file.is_file() or file.read_bytes().count(b"\n") < lines:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return file.read_bytes().count(b"\n")


def predictions(folder):
    """What was said of each setting, without how long it took and what was new to the process."""
    return {name: {k: v for k, v in line.items() if k not in ("seconds", "new_pairs")}
            for name, line in read_lines(folder).items()}  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(folder, cache, tmp_path_factory):
    """The results of one process that nobody stops."""
    out = tmp_path_factory.mktemp("undisturbed")
    code, told, err = finish(command(folder, cache, out))
    assert code == 0, err
    names = {s.name for s in choose(open_bench(folder).settings, WHERE)}
    assert set(read_lines(out)) == names and len(names) >= 12
    assert f"{len(names)} settings done, 0 were before, 0 failed" in told
    return out


def test_killed_in_the_middle_a_run_goes_on_where_it_was(folder, cache, undisturbed, tmp_path):
    out = tmp_path / "out"
    file, whole = out / "results-000-of-001.jsonl", predictions(undisturbed)
    before = kill_after(command(folder, cache, out), file, 3)
    assert 3 <= before < len(whole)
    kept = file.read_bytes()
    with file.open("ab") as half:
        half.write(b'{"name": "scenes-')  # as a process leaves it that is killed while it writes
    assert len(read_lines(out)) == before
    code, told, err = run(folder, cache, out)
    assert code == 0 and f"{len(whole) - before} settings done, {before} were before" in told, err
    assert predictions(out) == whole
    assert file.read_bytes().startswith(kept)
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_many_may_write_the_same_file_at_once(tmp_path):
    file, contents = tmp_path / "run.json", [f"{n}" * 10_000 for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            list(pool.map(lambda content: write_whole(file, content), contents))
            assert file.read_text() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_two_processes_one_of_them_killed_say_what_one_says(folder, cache, undisturbed, tmp_path):
    out, whole = tmp_path / "out", predictions(undisturbed)
    ranks = [command(folder, cache, out, "--rank", str(rank), "--world", "2") for rank in range(2)]
    files = [out / f"results-{rank:03d}-of-002.jsonl" for rank in range(2)]
    before = kill_after(ranks[0], files[0], 2)
    code, _, err = finish(ranks[1])
    assert code == 0, err
    assert len(read_lines(out)) < len(whole)
    code, told, err = run(folder, cache, out, "--rank", "0", "--world", "2")
    assert code == 0 and f", {before} were before" in told, err
    assert predictions(out) == whole
    names = [{json.loads(line)["name"] for line in file.read_text().splitlines()} for file in files]
    assert not names[0] & names[1] and abs(len(names[0]) - len(names[1])) <= 1
    # What ranks have finished is finished for any number of processes.
    assert Results(out, 2, 3).done() == whole.keys()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [(["--method", "chair"], "holds a run with method='association', and this one has 'chair'"),
     (["--seed", "3"], "seed=3 changes nothing: the method association draws nothing"),
     (["--scorer", "reference"], "scorer='auto', and this one has 'reference'"),
     (["--limit", "3"], "), and this one has 3; choose another folder"),
     (["--method", "direct"], "asks a chat model; name it with chat"),
     (["--context-tokens", "9000"], "context_tokens=9000 is an option of the method direct"),
     (["--where", "strength=7"], "holds for none of")],
)  # fmt: skip
def test_what_does_not_belong_into_a_folder_is_refused(folder, cache, undisturbed, more, complaint):
    before = {path.name: path.read_bytes() for path in undisturbed.iterdir()}
    code, _, err = run(folder, cache, undisturbed, *more)
    assert code == 2 and complaint in " ".join(err.split()) and "Traceback" not in err
    assert {path.name: path.read_bytes() for path in undisturbed.iterdir()} == before


def test_a_method_that_cannot_work_leaves_no_folder_and_what_decides_is_on_record(folder, cache, tmp_path):
    code, _, err = run(folder, cache, tmp_path / "out", "--method", "direct")
    assert code == 2 and not (tmp_path / "out").exists(), err
    with FakeServer() as server:  # says neither t nor v
        more = ("--method", "direct", "--chat", f"openai:{server.url}#some-model", "--limit", "2")
        code, told, err = run(folder, cache, tmp_path / "out", *more, "--context-tokens", "2000")
        assert code == 0 and "2 settings done, 0 were before, 0 failed" in told, err
    lines = read_lines(tmp_path / "out").values()
    assert [(line["textual_error"], line["visual_feature"], line["calls"]["unparsed"]) for line in lines] == [
        ([], [], 1)
    ] * 2
    options = read_manifest(tmp_path / "out")["options"]
    assert options["context_tokens"] == 2000
    code, _, err = run(folder, cache, tmp_path / "out", *more)
    assert code == 2 and "context_tokens=2000, and this one has 16384" in err


def guess(data, group):
    """A method that needs no models."""
    return Answer((data.captions[0],), (data.ids[0],), None, {"asked": 1})


def start(bench, out, method="guess", **place):
    results = Results(out, **place)
    results.start(manifest(bench, bench.settings, method=method, options={}))
    return results


def test_a_second_run_does_nothing(bench, tmp_path):
    calls = []

    def method(data, group):
        calls.append(data.source)
        return guess(data, group)

    first = run_bench(bench, method, start(bench, tmp_path))
    assert first.done == len(bench.settings) == len(calls) and first.before == 0
    lines = (tmp_path / "results-000-of-001.jsonl").read_bytes()
    second = run_bench(bench, method, start(bench, tmp_path))
    assert (second.done, second.before, len(calls)) == (0, len(bench.settings), first.done)
    assert (tmp_path / "results-000-of-001.jsonl").read_bytes() == lines
    assert read_lines(tmp_path).keys() == {s.name for s in bench.settings}


def test_a_setting_that_fails_is_counted_and_tried_again(bench, tmp_path):
    bad = {s.name for s in bench.settings[::5]}

    def method(data, group):
        if data.source in bad:
            raise BadData("these captions cannot be read.")
        return guess(data, group)

    told = run_bench(bench, method, start(bench, tmp_path))
    assert told.failed == dict.fromkeys(bad, "these captions cannot be read.")
    assert read_lines(tmp_path).keys() == {s.name for s in bench.settings} - bad
    assert read_lines(tmp_path, failed=True).keys() == bad
    again = run_bench(bench, guess, start(bench, tmp_path))
    assert (again.done, again.before, again.failed) == (len(bad), len(bench.settings) - len(bad), {})
    assert read_lines(tmp_path, failed=True) == {} and len(read_lines(tmp_path)) == len(bench.settings)


def test_when_a_model_is_down_the_run_stops_and_keeps_what_it_has(bench, tmp_path):
    left = [3]

    def method(data, group):
        left[0] -= 1
        if left[0] < 0:
            raise ChatFailed("nobody answers.")
        return guess(data, group)

    with pytest.raises(ChatFailed):
        run_bench(bench, method, start(bench, tmp_path))
    assert len(read_lines(tmp_path)) == 3
    left[0] = 10**9
    assert run_bench(bench, method, start(bench, tmp_path)).before == 3


@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_processes_share_the_settings_without_gap_or_overlap(bench, tmp_path, world):
    done = [run_bench(bench, guess, start(bench, tmp_path, rank=rank, world=world)).done for rank in range(world)]
    assert sum(done) == len(bench.settings) and max(done) - min(done) <= 1
    one = tmp_path / "one"
    run_bench(bench, guess, start(bench, one))
    assert predictions(tmp_path) == predictions(one)


def test_half_a_line_is_dropped_and_a_broken_one_is_named(bench, tmp_path):
    run_bench(bench, guess, start(bench, tmp_path), settings=bench.settings[:3])
    file = tmp_path / "results-000-of-001.jsonl"
    whole = file.read_bytes()
    for cut in (1, 20, len(whole.splitlines()[-1])):
        file.write_bytes(whole[:-cut])
        assert len(read_lines(tmp_path)) == 2
        assert run_bench(bench, guess, start(bench, tmp_path), settings=bench.settings[:3]).done == 1
        assert len(file.read_bytes().splitlines()) == 3 and len(read_lines(tmp_path)) == 3
    file.write_bytes(whole.replace(b'"config"', b"config", 1))
    with pytest.raises(BadData, match=r"results-000-of-001\.jsonl, line 1: .*remove the line"):
        read_lines(tmp_path)


def test_another_benchmark_or_method_needs_another_folder(bench, tmp_path):
    start(bench, tmp_path)
    with pytest.raises(BadData, match="holds a run with method='guess', and this one has 'paper'; choose another"):
        start(bench, tmp_path, method="paper")
    other = manifest(bench, bench.settings[1:], method="guess", options={})
    with pytest.raises(BadData, match="choose another folder"):
        Results(tmp_path).start(other)
    newer = manifest(bench, bench.settings, method="guess", options={})
    newer["versions"]["torch"] = "99"
    Results(tmp_path).start(newer)  # is on record, and no reason to begin anew
    with pytest.raises(BadData, match=r"rank=2 of world=2; ranks are 0 to world - 1"):
        Results(tmp_path, 2, 2)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(BadData, match="is no valid JSON"):
        start(bench, tmp_path)
    with pytest.raises(FileNotFoundError, match="symbal bench run"):
        read_manifest(tmp_path / "nowhere")


def test_no_method_is_shown_what_was_planted(bench, folder):
    planted = pq.read_table(folder / "injections" / "scenes.parquet").to_pylist()
    assert planted and bench.settings
    for setting in bench.settings:
        data = bench.data(setting)
        assert data.objects is None and data.skipped == () and data.images is not None
        assert (data.references is None) == (setting.variant == "reference_free")
        rows = pq.read_table(folder / "data" / f"{setting.name}.parquet")
        assert set(rows.column_names) <= {"image_id", "caption", "references"}
        # Only the source, which messages name, tells which setting it is.
        told = {name for name, value in vars(data).items() if setting.row["config"] in repr(value)}
        assert told <= {"source"}
        assert setting.group == f"scenes-{setting.variant}"


def test_settings_of_a_base_share_its_images(bench):
    one, other = (bench.data(setting) for setting in bench.settings[:2])
    assert one.images is other.images and one.ids == other.ids and one.captions != other.captions


def satisfying(bench, test):
    return [s.name for s in bench.settings if test(s)]


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("strength=.6", lambda s: s.row["strength_target"] == 0.6),
        ("strength==0.60", lambda s: s.row["strength_target"] == 0.6),
        ("strength!=.6", lambda s: s.row["strength_target"] != 0.6),
        ("strength<.6", lambda s: s.row["strength_target"] < 0.6),
        ("strength<=.6", lambda s: s.row["strength_target"] <= 0.6),
        ("strength > .6", lambda s: s.row["strength_target"] > 0.6),
        ("strength>=.6", lambda s: s.row["strength_target"] >= 0.6),
        ("variant=reference_free", lambda s: s.variant == "reference_free"),
        ("variant='reference_free' and strength<.5",
         lambda s: s.variant == "reference_free" and s.row["strength_target"] < 0.5),
        ("textual_error!=person", lambda s: s.row["textual_error"] != "person"),
        ("textual_error=PERSON", lambda s: s.row["textual_error"] == "person"),
        ("sampling=popular", lambda s: "popular" in s.row["strategies"]),
        ("sampling!=popular", lambda s: "popular" not in s.row["strategies"]),
        ("feature_size<.05", lambda s: s.row["mean_feature_area"] < 0.05),
    ],
)  # fmt: skip
def test_an_expression_chooses_what_it_says(bench, where, test):
    chosen = [s.name for s in choose(bench.settings, where)]
    assert chosen == satisfying(bench, test)
    assert 0 < len(chosen) < len(bench.settings)


@pytest.mark.parametrize(
    ("where", "complaint"),
    [("strngth>.5", r"no column 'strngth'; there are .*strength"),
     ("strength>2", r"'strength>2' holds for none of \d+ settings"),
     ("strength>strong", "strength is a number, and 'strong' is none"),
     ("sampling>popular", "sampling has names, which are = or != 'popular', not >"),
     ("strength", "write COLUMN OPERATOR VALUE"),
     ("strength>.5 or strength<.4", "strength is a number"),
     ("strength>.5 and", "strength is a number, and '.5 and' is none"),
     ("", "write COLUMN OPERATOR VALUE")],
)  # fmt: skip
def test_an_expression_that_makes_no_sense_is_named(bench, where, complaint):
    with pytest.raises(BadData, match=complaint):
        choose(bench.settings, where)


def test_without_images_only_references_can_be_checked(bench, folder, tmp_path):
    assert usable(bench, None) == (list(bench.settings), 0)
    for part in ("README.md", "settings", "data", "injections"):
        (tmp_path / part).symlink_to(folder / part)
    blind = open_bench(tmp_path)
    able, left = usable(blind, None)
    assert {s.variant for s in able} == {"reference_based"} and left == len(bench.settings) - len(able) > 0
    assert blind.data(able[0]).images is None and blind.revision == bench.revision
    with pytest.raises(BadData, match="stores no images"):
        usable(blind, "variant=reference_free")


def test_a_benchmark_built_anew_with_another_seed_is_another_one(bench, folder, tmp_path):
    base = scenes_base(folder.parent / "drawn", rows=100, size=64, seed=1)
    pairs = pairs_for(base, ["adversarial", "popular"], seed=1)
    revisions = [open_bench(build(base, tmp_path / str(seed) / "symbalbench", pairs=pairs, seed=seed).folder).revision
                 for seed in (1, 2)]  # fmt: skip
    assert revisions[0] == bench.revision != revisions[1]


@pytest.mark.parametrize(
    ("told", "place"),
    [({}, (0, 1)), ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)), ({"SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, (1, 4)),
     ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "1", "SLURM_NTASKS": "4"}, (0, 2)), ({"RANK": "3"}, (0, 1))],
)  # fmt: skip
def test_launchers_tell_a_process_its_place(monkeypatch, told, place):
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert place_of_process() == place
