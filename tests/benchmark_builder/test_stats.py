"""The statistics of a benchmark say what its settings tables say: in CSV, in bars and in the summary."""

from __future__ import annotations

import csv
import math
import random
import sys
from io import BytesIO

import pandas as pd
import pytest
from PIL import Image
from settings_case import settings_rows, write_settings

from benchmark_builder.writing.figures import composition, features
from benchmark_builder.writing.stats import statistics, summary_rows, table, write_statistics
from symbal_hf.core.errors import BadData


def a_setting(k, **values):
    given = {
        "config": f"x-{k}", "domain": "x", "textual_error": "t", "visual_feature": "v", "size": 10, "target": 0.3,
        "strength": 0.3, "error_share": 0.1, "feature_share": 0.1, "feature_area": 0.1, "strategies": ("random",),
    }  # fmt: skip
    return {**given, **values}


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def bars(monkeypatch):
    """Height of all bars of each panel drawn, by the panel's title, then by place."""
    from matplotlib.axes import Axes

    drawn = {}
    bar, put = Axes.bar, Axes.set

    def spy(axes, places, heights, *args, **kwargs):
        total = drawn.setdefault(axes, dict.fromkeys(places, 0))
        for place, height in zip(places, heights, strict=True):
            total[place] += height
        return bar(axes, places, heights, *args, **kwargs)

    def titled(axes, **kwargs):
        if "title" in kwargs:
            drawn[kwargs["title"]] = drawn.pop(axes)
        return put(axes, **kwargs)

    monkeypatch.setattr(Axes, "bar", spy)
    monkeypatch.setattr(Axes, "set", titled)
    return drawn


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A folder with photos and radiographs, its settings, and what was written about it."""
    folder = tmp_path_factory.mktemp("two")
    rows = write_settings(folder, settings_rows())
    rows += write_settings(folder, settings_rows("medical", "mimic_cxr", n=300, areas=False, tags=False, seed=5))
    return folder, rows, write_statistics(folder, folder / "out")


def test_every_feasible_setting_is_one_row_of_each_csv_with_its_own_values(two):
    _, rows, written = two
    made = {row["config"]: row for row in rows if row["feasible"]}
    assert 0 < len(made) < len(rows)
    for name in ("composition_data", "features_data"):
        assert sorted(row["config"] for row in read(written[name])) == sorted(made)
    for row in read(written["composition_data"]):
        truth = made[row["config"]]
        share = (truth["with_feature"] + truth["without_feature"]) / truth["n_rows"]
        assert float(row["strength"]) == truth["strength"] and float(row["target"]) == truth["strength_target"]
        assert float(row["error_share"]) == share and int(row["size"]) == truth["n_rows"]
        assert float(row["feature_share"]) == truth["n_feature"] / truth["n_rows"]
        assert (row["textual_error"], row["visual_feature"]) == (truth["textual_error"], truth["visual_feature"])
    for row in read(written["features_data"]):
        truth = made[row["config"]]
        assert row["strategies"] == ";".join(truth["strategies"])
        assert (float(row["feature_area"]) if row["feature_area"] else None) == truth["mean_feature_area"]


def test_the_summary_counts_what_the_tables_hold(two):
    _, rows, written = two
    summary = {row["domain"]: row for row in read(written["summary"])}
    assert list(summary) == ["medical", "natural", "all"]
    for domain, own in summary.items():
        mine = [row for row in rows if domain in ("all", row["domain"])]
        made = [row for row in mine if row["feasible"]]
        gaps = [abs(row["strength"] - row["strength_target"]) for row in made]
        assert int(own["candidates"]) == len(mine)
        assert int(own["feasible"]) == len(made) and int(own["infeasible"]) == len(mine) - len(made)
        assert int(own["images"]) == {"natural": 400, "medical": 300, "all": 700}[domain]
        assert int(own["pairs"]) == sum(row["n_rows"] for row in made)
        assert int(own["textual_errors"]) == len({row["textual_error"] for row in made})
        assert int(own["visual_features"]) == len({row["visual_feature"] for row in made})
        assert math.isclose(float(own["gap_mean"]), sum(gaps) / len(gaps)) and float(own["gap_max"]) == max(gaps)
        assert math.isclose(float(own["gap_within"]), sum(gap <= 0.01 for gap in gaps) / len(gaps))


def test_each_setting_stands_once_in_every_panel_and_in_each_of_its_categories(bars):
    settings = [
        a_setting(0, strategies=("random", "adversarial")),
        a_setting(1, strategies=("adversarial",), feature_area=None),
        a_setting(2, strategies=(), domain="y", size=20),
        a_setting(3, strategies=("adversarial", "popular", "random"), domain="y"),
    ]
    composition(pd.DataFrame(settings))
    features(pd.DataFrame(settings))
    assert list(bars["Sampling category"].values()) == [2, 1, 3]  # random, popular, adversarial
    assert sum(bars["Size of the visual feature"].values()) == 3
    assert list(bars["Dataset size"].values()) == [3, 1]
    for panel in ("Strength of the association", "Frequency of the textual error", "Frequency of the visual feature"):
        assert sum(bars[panel].values()) == 4


@pytest.mark.parametrize("seed", range(5))
def test_no_value_falls_off_the_axes(bars, seed):
    rng = random.Random(seed)
    top = 10.0 ** rng.randint(-4, 0)

    def share():
        return rng.choice([0.0, top, top / 2, top / 30, rng.uniform(0, top)])

    settings = [
        a_setting(
            k, size=rng.randint(1, 10**rng.randint(1, 5)), strength=rng.choice([0.01, 0.9, 1.0, rng.random()]),
            error_share=share(), feature_share=share(), feature_area=share(),
        )
        for k in range(40)
    ]  # fmt: skip
    composition(pd.DataFrame(settings))
    features(pd.DataFrame(settings))
    assert {title: sum(heights.values()) for title, heights in bars.items()} == {
        "Dataset size": 40, "Strength of the association": 40, "Frequency of the textual error": 40,
        "Frequency of the visual feature": 40, "Size of the visual feature": 40, "Sampling category": 40,
    }  # fmt: skip


def test_strengths_on_target_share_one_bar_even_when_they_miss_by_the_tolerance(bars):
    near = [(k, v, gap) for k, (v, gap) in enumerate((v, gap) for v in (0.3, 0.6, 0.9) for gap in (-0.01, 0, 0.01))]
    composition(pd.DataFrame([a_setting(k, strength=v + gap) for k, v, gap in near]))
    filled = {place: height for place, height in bars["Strength of the association"].items() if height}
    assert list(filled.values()) == [3, 3, 3]
    assert all(math.isclose(place, v) for place, v in zip(filled, (0.3, 0.6, 0.9), strict=True))


def test_what_has_no_data_is_left_out_with_a_reason(tmp_path, bars):
    write_settings(tmp_path, settings_rows("medical", "mimic_cxr", areas=False, tags=False))
    written = write_statistics(tmp_path, tmp_path / "out")
    reasons = statistics(tmp_path).left_out
    assert "features" not in written and not (tmp_path / "out" / "features.png").exists()
    assert len(reasons) == 2 and all("medical" in reason for reason in reasons)
    write_settings(tmp_path, settings_rows("photos", tags=False))
    written = write_statistics(tmp_path, tmp_path / "out")
    assert "features" in written and "Sampling category" not in bars and "Size of the visual feature" in bars
    assert [sum(name in reason for reason in statistics(tmp_path).left_out) for name in ("medical", "photos")] == [2, 1]


def test_a_figure_goes_when_its_data_does(tmp_path):
    write_settings(tmp_path, settings_rows())
    assert "features" in write_statistics(tmp_path, tmp_path / "out")
    write_settings(tmp_path, settings_rows(areas=False, tags=False))
    write_statistics(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / "features.png").exists()


def test_settings_that_are_all_infeasible_are_counted_and_not_drawn(tmp_path):
    none = {"feasible": False, "strength": None, "with_feature": None, "without_feature": None}
    rows = write_settings(tmp_path, [{**row, **none} for row in settings_rows()])
    written = write_statistics(tmp_path, tmp_path / "out")
    assert set(written) == {"summary", "composition_data", "features_data"}
    (summary,) = read(written["summary"])
    assert (summary["candidates"], summary["feasible"], summary["gap_max"]) == (str(len(rows)), "0", "")


def test_pictures_are_sharp_on_white_and_the_same_whatever_the_reader_has_set(two):
    import matplotlib

    folder, _, written = two
    first = {name: path.read_bytes() for name, path in written.items()}
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "savefig.dpi": 20}):
        before = dict(matplotlib.rcParams)
        again = write_statistics(folder, folder / "again")
        assert dict(matplotlib.rcParams) == before
    assert {name: path.read_bytes() for name, path in again.items()} == first
    for name in ("composition", "features"):
        image = Image.open(BytesIO(first[name]))
        assert round(image.info["dpi"][0]) == 150 and image.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
        assert image.width >= 1200 and "Software" not in image.info


def test_the_printed_table_names_every_domain_and_every_number(two):
    from rich.console import Console

    folder, rows, _ = two
    stats = statistics(folder)
    console = Console(width=100, record=True, file=sys.stderr)
    console.print(table(stats))
    text = console.export_text()
    assert all(cell in text for row in summary_rows(stats) for cell in row)
    assert f"{len(rows)}" in text and stats.left_out[0][:40] in text


def test_without_matplotlib_the_message_says_what_to_install(two, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BadData, match=r"pip install 'symbal-hf\[report\]'"):
        write_statistics(two[0], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(statistics(two[0]).settings)  # numbers need no drawing


def test_a_folder_without_a_benchmark_is_refused(tmp_path):
    with pytest.raises(BadData, match="build a benchmark"):
        statistics(tmp_path)
