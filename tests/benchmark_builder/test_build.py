"""A built benchmark holds what its settings say, byte for byte again when built again, and loads like any dataset."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmark_builder.bases.base import Base
from benchmark_builder.bases.open_bases import custom_base, scenes_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.pairs import Cooccurrence, Pair, pairs_for, paper_pairs
from benchmark_builder.writing.build import build
from symbal_hf.core.errors import BadData
from symbal_hf.language.facts import sentences


def table(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """240 drawn scenes, and a benchmark of them: every object as v, three strategies, three strengths."""
    base = scenes_base(tmp_path_factory.mktemp("drawn"), rows=240, size=64, seed=5)
    folder = tmp_path_factory.mktemp("bench") / "symbalbench"
    return base, build(base, folder, pairs=pairs_for(base, seed=5), seed=5), folder


@pytest.fixture(scope="module")
def real(shared_data, tmp_path_factory):
    """All 5,000 captions of COCO val2017, planted with the paper's list at full size."""
    base = custom_base(shared_data / "coco" / "text" / "captions_val2017_all5000.jsonl", name="natural")
    folder = tmp_path_factory.mktemp("real") / "symbalbench"
    return base, build(base, folder, pairs=paper_pairs("natural", Cooccurrence(base.objects))), folder


def check_tables(folder: Path, name: str, keep: int = 10**9) -> int:
    """Recompute every setting from the written captions and objects alone; returns how many there were."""
    objects = {row["image_id"]: row for row in table(folder / "objects" / f"{name}.parquet")}
    clean = table(folder / "data" / f"{name}-clean-reference_free.parquet")
    written = [row for row in table(folder / "settings" / f"{name}.parquet") if row["feasible"]]
    injected: dict[str, dict[str, dict]] = {}
    for row in table(folder / "injections" / f"{name}.parquet"):
        injected.setdefault(row["config"], {})[row["image_id"]] = row
    for setting in written[:: max(1, len(written) // keep)]:
        rows = table(folder / "data" / f"{setting['config']}-reference_free.parquet")
        assert [row["image_id"] for row in rows] == [row["image_id"] for row in clean]
        t, v = setting["textual_error"], setting["visual_feature"]
        error = np.array([row["caption"] != before["caption"] for row, before in zip(rows, clean, strict=True)])
        feature = np.array([v in objects[row["image_id"]]["objects"] for row in rows])
        a, c = int((error & feature).sum()), int((error & ~feature).sum())
        assert (a, c, int(feature.sum()), len(rows)) == (
            setting["with_feature"], setting["without_feature"], setting["n_feature"], setting["n_rows"],
        )  # fmt: skip
        assert np.corrcoef(error, feature)[0, 1] == pytest.approx(setting["strength"], abs=1e-9)
        told = injected[setting["config"]]
        assert set(told) == {row["image_id"] for row, wrong in zip(rows, error, strict=True) if wrong}
        for row, before, wrong, has in zip(rows, clean, error, feature, strict=True):
            if wrong:
                present = objects[row["image_id"]]
                assert t not in present["objects"] and t not in present["also_present"]
                assert told[row["image_id"]]["with_feature"] == has
                added = Counter(s.rstrip(".") for s in sentences(row["caption"]))
                added -= Counter(s.rstrip(".") for s in sentences(before["caption"]))
                assert list(added) == [told[row["image_id"]]["sentence"].rstrip(".")]
    return len(written)


def test_every_setting_of_the_scenes_is_what_its_row_says(scenes):
    _, built, folder = scenes
    assert check_tables(folder, "scenes") == len(built.feasible) > 100
    assert len(list((folder / "data").iterdir())) == 2 * (len(built.feasible) + 1)


def test_real_settings_are_what_their_rows_say_and_reach_their_strength(real):
    base, built, folder = real
    assert check_tables(folder, "natural", keep=25) == len(built.feasible)
    gaps = [abs(s.plan.achieved - s.strength) for s in built.feasible]
    assert max(gaps) <= 0.04 and np.mean([gap <= 0.01 for gap in gaps]) >= 0.99
    assert len(built.settings) == 393 and 300 <= len(built.feasible) <= 360
    for setting in built.settings:
        assert setting.feasible == (setting.strength <= setting.largest)
    # 3.2 million captions need far fewer scores: sentences repeat from setting to setting.
    unique = {(row["image_id"], row["sentence"]) for row in table(folder / "injections" / "natural.parquet")}
    own = sum(len(sentences(caption)) for caption in base.captions)
    planted = sum(s.plan.with_feature + s.plan.without_feature for s in built.feasible)
    assert (own + len(unique)) / (own * len(built.feasible) + planted) <= 0.02
    assert sum(path.stat().st_size for path in folder.rglob("*.parquet")) < 250e6


def test_infeasible_settings_are_recorded_with_what_can_be_reached_and_never_written(real):
    _, built, folder = real
    rows = {row["config"]: row for row in table(folder / "settings" / "natural.parquet")}
    for setting in built.settings:
        row = rows[setting.config]
        assert row["feasible"] == (folder / "data" / f"{setting.config}-reference_free.parquet").exists()
        if isinstance(setting.plan, Infeasible):
            assert row["strength"] is row["with_feature"] is row["without_feature"] is None
            assert row["largest_strength"] < row["strength_target"]


def test_a_strength_that_small_numbers_cannot_come_near_is_infeasible(tmp_path):
    objects = [frozenset({"dog"})] * 3 + [frozenset()] * 5 + [frozenset({"cat"})] * 2
    base = Base(tuple("abcdefghij"), ("A view.",) * 10, tuple(objects))
    built = build(base, tmp_path / "b", pairs=[Pair("cat", "dog")], strengths=[s / 100 for s in range(1, 101)],
                  min_images=3)  # fmt: skip
    assert 0 < len(built.feasible) < 100
    assert all(abs(s.plan.achieved - s.strength) <= 0.04 for s in built.feasible)


def test_an_error_with_a_handful_of_images_is_called_no_setting(tmp_path):
    objects = [frozenset({"dog"})] * 9 + [frozenset({"owl"})] * 10 + [frozenset({"cat"})] * 30
    base = Base(tuple(map(str, range(49))), ("A view.",) * 49, tuple(objects))
    built = build(base, tmp_path / "b", pairs=[Pair("cat", "dog"), Pair("cat", "owl")])
    assert {s.visual_feature for s in built.feasible} == {"owl"} and len(built.settings) == 6


def test_the_reference_based_variant_differs_in_the_references_only(scenes):
    base, built, folder = scenes
    config = built.feasible[0].config
    free, based = (table(folder / "data" / f"{config}-reference_{kind}.parquet") for kind in ("free", "based"))
    assert [{k: v for k, v in row.items() if k != "references"} for row in based] == free
    assert [tuple(row["references"]) for row in based] == list(base.references)
    assert set(free[0]) == {"image_id", "caption"}  # nothing in a row tells the truth


def test_images_are_stored_once_as_they_are_in_small_row_groups(scenes):
    base, _, folder = scenes
    (path,) = (folder / "images").iterdir()
    rows = table(path)
    assert [row["image_id"] for row in rows] == list(base.ids)
    assert all(row["image"]["bytes"] == base.encoded(n) for n, row in enumerate(rows))
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [100, 100, 40]


def test_areas_of_v_are_the_mean_over_images_that_show_it(scenes):
    *_, folder = scenes
    objects = table(folder / "objects" / "scenes.parquet")
    for row in table(folder / "settings" / "scenes.parquet")[::17]:
        v = row["visual_feature"]
        shares = [o["areas"][o["objects"].index(v)] for o in objects if v in o["objects"]]
        assert row["mean_feature_area"] == pytest.approx(np.mean(shares), rel=1e-5)
        assert row["n_error_present"] == sum(row["textual_error"] in o["objects"] for o in objects)
        assert 0.01 <= row["mean_feature_area"] <= 1


BUILD = """
import sys
from pathlib import Path
from benchmark_builder.writing.build import build
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import pairs_for
base = scenes_base(Path(sys.argv[1]) / "drawn", rows=120, size=64, seed=2)
build(base, Path(sys.argv[1]) / "symbalbench", pairs=pairs_for(base, seed=2), seed=2)
"""


def test_another_process_with_another_hash_seed_writes_the_same_bytes(tmp_path):
    found = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        subprocess.run([sys.executable, "-c", BUILD, folder], env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
        found.append(digests(folder / "symbalbench"))
    assert found[0] == found[1] and len(found[0]) > 150


def small(folder: Path, *, seed: int = 0, n: int = 60, name: str = "custom") -> Base:
    rows = [{"id": f"r{i}", "caption": f"View number {i}.", "objects": ["dog"] * (i % 3 == 0) + ["cat"] * (i % 4 == 0)}
            for i in range(n)]  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return custom_base(folder / "rows.jsonl", name=name, seed=seed)


def test_a_build_that_was_stopped_goes_on_and_ends_the_same(tmp_path):
    base = small(tmp_path / "src")
    pairs = [Pair("cat", "dog"), Pair("dog", "cat"), Pair("cat", "view")]
    build(base, tmp_path / "whole", pairs=pairs[:2])

    class Stopped(Exception):
        pass

    def stop(items, label, total):
        for n, item in enumerate(items):
            if n == 3:
                raise Stopped
            yield item

    out = tmp_path / "part"
    with pytest.raises(Stopped):
        build(base, out, pairs=pairs[:2], progress=stop)
    assert not list((out / "settings").iterdir())  # nothing that calls it complete
    kept = {path.name: path.stat().st_mtime_ns for path in (out / "data").iterdir()}
    assert len(kept) >= 2
    build(base, out, pairs=pairs[:2])
    assert all((out / "data" / name).stat().st_mtime_ns == time for name, time in kept.items())
    assert digests(out) == digests(tmp_path / "whole")


def test_other_arguments_replace_what_a_base_had_and_other_bases_stay(tmp_path):
    out = tmp_path / "bench"
    build(small(tmp_path / "a", name="first"), out, pairs=[Pair("cat", "dog")])
    build(small(tmp_path / "b", name="first_two"), out, pairs=[Pair("cat", "dog")])
    others = {name: value for name, value in digests(out).items() if "first_two" in name}
    build(small(tmp_path / "a", name="first"), out, pairs=[Pair("dog", "cat")], strengths=[0.5])
    now = digests(out)
    assert {name: value for name, value in now.items() if "first_two" in name} == others and len(others) == 7
    assert sorted(name for name in now if name.startswith("data/first-")) == [
        "data/first-cat-dog-0.5-reference_free.parquet", "data/first-clean-reference_free.parquet",
    ]  # fmt: skip


def test_a_folder_that_is_no_benchmark_is_left_alone(tmp_path):
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "beach.jpg").write_bytes(b"sand")
    with pytest.raises(BadData, match=r"holiday holds 'beach\.jpg'"):
        build(small(tmp_path / "src"), tmp_path / "holiday", pairs=[Pair("cat", "dog")])
    assert [path.name for path in (tmp_path / "holiday").iterdir()] == ["beach.jpg"]
    with pytest.raises(BadData, match=r"beach\.jpg is a file"):
        build(small(tmp_path / "src"), tmp_path / "holiday" / "beach.jpg", pairs=[Pair("cat", "dog")])


@pytest.mark.parametrize(
    ("row", "complaint"),
    [({"objects": None}, "the objects of row r7 are unknown"), ({"caption": " "}, "row r7 .*its caption is empty"),
     ({"id": "r3"}, "row r3 .*its id is the same"), ({"objects": [3]}, "row r7 .*its objects are no names")],
)  # fmt: skip
def test_a_custom_row_that_cannot_be_used_stops_the_build(tmp_path, row, complaint):
    rows = [{"id": f"r{i}", "caption": "A view.", "objects": ["dog"]} for i in range(10)]
    rows[7].update(row)
    with pytest.raises(BadData, match=complaint):
        custom_base(rows)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BadData, match=rf"rows\.jsonl.*{complaint.split(' .*')[-1]}|{complaint}.*rows\.jsonl"):
        custom_base(tmp_path / "rows.jsonl")


def test_custom_rows_may_have_a_list_of_captions_or_no_objects_at_all():
    rows = [{"id": i, "captions": ["one dog ", "a dog", "dog here"], "objects": ["dog"]} for i in range(3)]
    base = custom_base(rows)
    assert all(len(sentences(caption)) == 2 and len(others) == 1
               for caption, others in zip(base.captions, base.references, strict=True))  # fmt: skip
    rows[1]["captions"] = ["one", " "]
    with pytest.raises(BadData, match="row 1 has 1 captions with text"):
        custom_base(rows)
    with pytest.raises(BadData, match="no objects column"):
        custom_base([{"id": 1, "caption": "A view."}])


def test_a_base_name_that_would_break_config_names_is_refused():
    with pytest.raises(ValueError, match="base name 'My-Base'"):
        custom_base([{"id": 1, "caption": "A view.", "objects": []}], name="My-Base")


def test_two_settings_never_share_a_name(tmp_path):
    objects = [frozenset({"t shirt"}), frozenset({"t_shirt"}), frozenset({"dog"})] * 30
    base = Base(tuple(map(str, range(90))), ("A view.",) * 90, tuple(objects))
    with pytest.raises(ValueError, match=r"two settings would be called custom-dog-t_shirt-0\.3"):
        build(base, tmp_path / "b", pairs=[Pair("t shirt", "dog"), Pair("t_shirt", "dog")])
