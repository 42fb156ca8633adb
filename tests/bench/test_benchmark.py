"""A benchmark that was built once is at hand: as a dataset, by name, with its images, on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hub import LoopbackHub

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import pairs_for
from benchmark_builder.writing.build import build
from benchmark_builder.writing.symbalbench import SymbalBench, SymbalBenchConfig
from symbal_hf.bench.built import load_setting
from symbal_hf.core.errors import BadData
from symbal_hf.data.benchmarks import find_benchmark

SYMBAL = Path(sys.executable).with_name("symbal")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A small benchmark of drawn scenes in a folder called symbalbench."""
    top = tmp_path_factory.mktemp("top")
    base = scenes_base(top / "drawn", rows=150, size=64, seed=1)
    built = build(base, top / "symbalbench", pairs=pairs_for(base, ["adversarial"], seed=1), seed=1)
    return top / "symbalbench", built


def run(code: str, cwd: Path, home: Path, **more: str) -> str:
    env = {**os.environ, "HF_HOME": str(home), "SYMBAL_CACHE": str(home / "symbal"), **more}
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_beside_its_folder_datasets_alone_loads_it(bench, tmp_path):
    folder, built = bench
    config = built.feasible[0].config + "-reference_based"
    code = f"""
import json, sys
from datasets import load_dataset
rows = load_dataset("symbalbench", {config!r}, split="test")
settings = load_dataset("symbalbench", split="test")
assert "symbal_hf" not in sys.modules
print(json.dumps([rows.to_list(), len(settings)]))
"""
    rows, n = json.loads(run(code, folder.parent, tmp_path))
    assert rows == pq.read_table(folder / "data" / f"{config}.parquet").to_pylist()
    assert n == len(built.settings)


@pytest.mark.parametrize("imports", ["import symbal_hf, datasets", "import datasets, datasets.inspect, symbal_hf"])
def test_built_once_the_bare_name_works_from_anywhere_whatever_is_imported_first(bench, tmp_path, imports):
    folder, built = bench
    config = built.feasible[0].config + "-reference_free"
    code = f"""
from pathlib import Path
{imports}
from symbal_hf.data.benchmarks import remember
try:
    datasets.load_dataset("symbalbench", {config!r}, split="test")
except Exception as error:
    assert "symbal bench build" in error.__notes__[0], error
else:
    raise SystemExit("nothing was built yet")
remember(Path({str(folder)!r}))
print(len(datasets.load_dataset("symbalbench", {config!r})["test"]), len(datasets.load_dataset("symbalbench")["test"]))
print(len(datasets.get_dataset_config_names("symbalbench")), symbal_hf.load_setting({config!r})[3]["image"].size)
"""
    (tmp_path / "elsewhere").mkdir()
    first, second = run(code, tmp_path / "elsewhere", tmp_path).splitlines()
    assert first == f"150 {len(built.settings)}"
    assert second == f"{2 * len(built.feasible) + 2 + 4} (64, 64)"


def test_importing_the_package_brings_no_heavy_library(tmp_path):
    heavy = "{'datasets', 'torch', 'transformers', 'pyarrow', 'pandas', 'numpy', 'huggingface_hub'}"
    assert run(f"import symbal_hf, sys; print({heavy} & set(sys.modules))", tmp_path, tmp_path) == "set()\n"


def test_the_bare_name_still_means_a_folder_that_lies_here(bench, tmp_path):
    folder, built = bench
    config = built.feasible[0].config + "-reference_free"
    other = tmp_path / "here" / "symbalbench"
    other.mkdir(parents=True)
    pq.write_table(pq.read_table(folder / "data" / f"{config}.parquet").slice(0, 5), other / "rows.parquet")
    code = f"""
from pathlib import Path
import symbal_hf, datasets
from symbal_hf.data.benchmarks import remember
remember(Path({str(folder)!r}))
print(datasets.load_dataset("symbalbench", split="train").num_rows)
"""
    assert run(code, other.parent, tmp_path) == "5\n"


def test_images_are_joined_by_id(bench):
    folder, built = bench
    config = built.feasible[0].config + "-reference_free"
    data = load_setting(config, path=folder)
    assert set(data.features) == {"image_id", "caption", "image"} and len(data) == 150
    drawn = {row["image_id"]: row["image"]["bytes"] for row in pq.read_table(folder / "images").to_pylist()}
    from datasets import Image

    raw = data.cast_column("image", Image(decode=False))
    assert all(row["image"]["bytes"] == drawn[row["image_id"]] for row in raw)
    assert set(load_setting(config, path=folder, images=False).features) == {"image_id", "caption"}


def test_a_joined_setting_can_be_audited_as_it_is(bench):
    from symbal_hf.data.table import load_data

    folder, built = bench
    data = load_data(load_setting(built.feasible[0].config + "-reference_based", path=folder))
    assert data.images is not None and data.objects is None and len(data.references[0]) == 3


def test_what_is_not_there_is_named(bench, tmp_path, monkeypatch):
    folder, built = bench
    config = built.feasible[0].config
    with pytest.raises(BadData, match=rf"has no setting '{config}'; the nearest are {config}-reference_"):
        load_setting(config, path=folder)
    with pytest.raises(BadData, match="is no built benchmark"):
        load_setting(config, path=tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BadData, match="no benchmark was built here yet"):
        find_benchmark()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "symbalbench.json").write_text('{"folder": ')  # cut off
    with pytest.raises(BadData, match="no benchmark was built here yet"):
        find_benchmark()


def test_the_builder_lists_the_paper_s_settings_by_readable_names():
    names = set(SymbalBench.builder_configs)
    assert {"natural-cat-person-0.6-reference_free", "medical-pacemaker-edema-0.9-reference_based",
            "natural-dining_table-person-0.3-reference_free", "natural-clean-reference_free"} <= names  # fmt: skip
    assert len(names) == 2 * (3 * (131 + 25) + 2)


def test_the_builder_makes_what_the_folder_holds(bench, tmp_path):
    folder, built = bench
    setting = built.feasible[0]
    for variant in ("reference_free", "reference_based"):
        builder = SymbalBench(
            cache_dir=tmp_path, base="scenes", data_dir=str(folder.parent / "drawn"), seed=1,
            options={"rows": 150, "size": 64}, textual_error=setting.textual_error,
            visual_feature=setting.visual_feature, strength=setting.strength, variant=variant,
        )  # fmt: skip
        assert builder.config.name == f"{setting.config}-{variant}"
        builder.download_and_prepare()
        stored = pq.read_table(folder / "data" / f"{setting.config}-{variant}.parquet").to_pylist()
        assert builder.as_dataset(split="test").to_list() == stored


def test_the_builder_says_why_it_cannot(bench, tmp_path):
    folder, built = bench
    far = next(s for s in built.settings if not s.feasible)
    builder = SymbalBench(
        cache_dir=tmp_path, base="scenes", data_dir=str(folder.parent / "drawn"), seed=1,
        options={"rows": 150, "size": 64}, textual_error=far.textual_error, visual_feature=far.visual_feature,
        strength=far.strength,
    )  # fmt: skip
    with pytest.raises(BadData, match=f"out of reach in these 150 rows; the largest is {far.largest:.3f}"):
        builder.download_and_prepare()
    builder = SymbalBench(
        cache_dir=tmp_path, config_name="natural-cat-person-0.6-reference_free", data_dir=str(tmp_path)
    )
    with pytest.raises(BadData, match=r"no file .*instances_val2017\.json"):
        builder.download_and_prepare()
    with pytest.raises(ValueError, match="both textual_error and visual_feature"):
        SymbalBenchConfig(base="scenes", textual_error="dog")
    with pytest.raises(ValueError, match="variant 'best'"):
        SymbalBenchConfig(base="scenes", variant="best")


def symbal(*args: str | Path, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SYMBAL_CACHE": str(cwd / "cache"), **more}
    return subprocess.run([SYMBAL, *args], cwd=cwd, env=env, capture_output=True, text=True)


def test_build_stats_and_publish_as_a_person_runs_them(tmp_path):
    done = symbal("bench", "build", "--base", "scenes", "--rows", "80", "--size", "64", "--sampling", "adversarial",
                  "--strengths", "0.5", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "80 scenes of 64 x 64 pixels" in done.stdout and "candidate settings" in done.stdout
    names = {path.name for path in (tmp_path / "symbalbench").iterdir()}
    assert {"README.md", "eval.yaml", "data", "images", "settings", "statistics"} <= names
    done = symbal("bench", "stats", "symbalbench", "--out", "figures", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in (tmp_path / "figures").iterdir()} == {".png", ".csv"}
    with LoopbackHub() as hub:
        online = {k: v for k, v in hub.env(tmp_path / "home").items() if k.startswith("HF_")} | {"HF_HUB_OFFLINE": "0"}
        done = symbal("bench", "publish", "symbalbench", "--repo", "lab/symbalbench", cwd=tmp_path, **online)
        assert done.returncode == 0, done.stderr
        assert "data/scenes-clean-reference_free.parquet" in hub.files("lab/symbalbench")
        code = """
import symbal_hf
data = symbal_hf.load_setting("scenes-clean-reference_free", path="lab/symbalbench")
print(len(data), data[0]["image"].size)
"""
        assert hub.run(code, tmp_path / "another") == "80 (64, 64)\n"


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--base", "coco"], "the base coco is read from your own copy; give its folder or file with --source"),
        (["--base", "coco", "--source", "."], "instances_val2017.json"),
        (["--base", "coco", "--source", ".", "--rows", "7"], "the base coco takes no rows"),
        (["--base", "scenes", "--rows", "40", "--size", "64", "--strengths", "much"], "strengths='much'"),
        (["--base", "scenes", "--rows", "40", "--size", "64", "--strengths", "3"], "strength=3.0 is outside (0, 1]"),
        (["--base", "scenes", "--rows", "40", "--size", "64", "--sampling", "rare"], "sampling 'rare'; choose among"),
        (["--base", "scenes", "--rows", "0"], "rows=0"),
        (["--base", "scenes", "--rows", "40", "--size", "64", "--min-images", "99"], "nothing to plant into scenes"),
        (["--base", "custom", "--source", "gone.jsonl"], "no file gone.jsonl"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path, args, complaint):
    done = symbal("bench", "build", *args, cwd=tmp_path)
    assert done.returncode == 2 and complaint in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()[-1]) < 300
