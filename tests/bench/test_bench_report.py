"""A report says what runs were right about, what has no result, and what the paper printed, in numbers of one file."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import Pair
from benchmark_builder.writing.build import build
from symbal_hf.bench.figures import Bar, draw
from symbal_hf.bench.published import best, published, published_domain
from symbal_hf.bench.report import report, write
from symbal_hf.bench.results import Results
from symbal_hf.bench.run import manifest
from symbal_hf.bench.settings import open_bench
from symbal_hf.bench.tables import markdown
from symbal_hf.cli.app import app
from symbal_hf.core.errors import BadData

PAPER = "arXiv 2607.15216, "


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Two domains over the same scenes: three pairs of "natural" and one of "scenes", both variants of each."""
    top = tmp_path_factory.mktemp("bench")
    base = scenes_base(top / "drawn", rows=150, size=64, seed=1)
    counts = Counter(name for names in base.objects for name in names)
    a, b, c, d = [name for name, _ in counts.most_common(9)[5:]]
    pairs = [Pair(a, b, ("random",)), Pair(b, c, ("popular",)), Pair(c, d, ("random", "adversarial"))]
    build(replace(base, name="natural"), top / "symbalbench", pairs=pairs, strengths=(0.3, 0.6), seed=1)
    build(base, top / "symbalbench", pairs=pairs[:1], strengths=(0.3,), seed=1)
    opened = open_bench(top / "symbalbench")
    by_group = Counter(setting.group for setting in opened.settings)
    assert by_group == {f"{d}-reference_{v}": n for d, n in (("natural", 6), ("scenes", 1)) for v in ("based", "free")}
    return opened


def line(setting, *, t=None, v=None, **more):
    """A result that is right at 1, unless other names are given."""
    row = setting.row
    said = {"textual_error": t or [row["textual_error"]], "visual_feature": v or [row["visual_feature"]]}
    calls = {"asked": 10, "cached": 2, "failed": 1, "unparsed": 0}
    return {
        "name": setting.name, "config": row["config"], "variant": setting.variant, **said, "verdict": "systematic",
        "calls": calls, "pairs": 100, "new_pairs": 5, "seconds": 2.0, **more,
    }  # fmt: skip


def made(folder, bench, settings, lines, *, method="association", revision=None):
    """A folder of results."""
    told = manifest(bench, settings, method=method, options={"preset": "lite", "seed": 0, "chat": None})
    if revision:
        told["benchmark"]["revision"] = revision
    results = Results(folder)
    results.start(told)
    for one in lines:
        results.add(one)
    return folder


@pytest.fixture(scope="module")
def runs(bench, tmp_path_factory):
    """One run of everything, in which six natural reference-free settings fare differently, and a part of it."""
    top = tmp_path_factory.mktemp("runs")
    free = [s for s in bench.settings if s.group == "natural-reference_free"]
    others = [s for s in bench.settings if s not in free]
    lines = [
        {"name": free[0].name, "error": "the model\nsaid nothing"},
        line(free[2], t=["kite", free[2].row["textual_error"]], seconds=4.0),  # at 5 only
        line(free[3], v=["nothing of the kind"], verdict="none"),
        line(free[4]), line(free[5], seconds=9.0), *map(line, others),
    ]  # fmt: skip
    whole = made(top / "whole", bench, bench.settings, lines)
    part = made(top / "part", bench, free, [line(s, t=["x"] * 5) for s in free[:5]] + [line(free[5])], method="paper")
    return whole, part


@pytest.fixture(scope="module")
def reported(bench, runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "out"
    return report(runs, bench=bench, judge="exact", out=out), out


def group(scores, run, variant, domain):
    return next(
        g for r in scores["runs"] if r["name"] == run for g in r["groups"]
        if (g["variant"], g["domain"]) == (variant, domain)
    )  # fmt: skip


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def page_table(text, title):
    """Header and rows of the table below a heading of the page."""
    body = text.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]
    lines = [[cell.strip() for cell in row.strip("|").split("|")] for row in body.splitlines() if row[:1] == "|"]
    return lines[0], lines[2:]


# Copied from the paper by hand, apart from the file.
PRINTED = [
    ("4", "natural", "t", "reference_free", "Qwen3-8B, Vision-Language (Qwen-72B), Text-Only (Qwen-72B)", 92.8, 94.2),
    ("4", "natural", "t", "reference_based", "OpenCLIP, Text-Only (Qwen-72B), Text-Only (Qwen-72B)", 67.5, 71.4),
    ("4", "medical", "t", "reference_free", "XRayCLIP, Text-Only (MedGemma-27B), Text-Only (MedGemma-27B)", 51.7, 75.0),
    ("4", "medical", "t", "reference_based", "MedSigLIP, Text-Only (Qwen-72B), Text-Only (MedGemma-27B)", 86.7, 98.3),
    ("4", "medical", "t", "reference_free", "XRayCLIP, Vision-Language (MedGemma-27B), Text-Only (MedGemma-27B)",
     26.7, 48.3),
    ("5", "natural", "v", "reference_free", "OpenCLIP, Vision-Language (Qwen-72B), Text-Only (Qwen-72B)", 49.7, 69.7),
    ("5", "natural", "v", "reference_based", "DINOv2, Text-Only (Qwen-72B), Text-Only (Qwen-72B)", 41.1, 56.4),
    ("5", "medical", "v", "reference_based", "XRayCLIP, Vision-Language (MedGemma-27B), Vision-Language (MedGemma-27B)",
     43.3, 65.0),
    ("5", "medical", "v", "reference_free", "OpenCLIP, Embedding (MedSigLIP), Text-Only (Qwen-72B)", 13.3, 23.3),
    ("6", "natural", "both", "reference_free", "Symbal", 49.2, 69.7),
    ("6", "natural", "both", "reference_based", "GPT-OSS 120B", 10.8, 17.2),
    ("6", "medical", "both", "reference_free", "GPT-OSS 120B", 1.7, 21.7),
    ("6", "medical", "both", "reference_based", "Symbal", 25.0, 48.3),
    ("text", "all", "both", "reference_free", "Symbal", None, 63.8),
    ("text", "natural", "t", "reference_free", "Symbal without grouping", 41.9, 65.3),
    ("text", "natural", "v", "reference_free", "Symbal without grouping", 3.6, 16.9),
]  # fmt: skip


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: "-".join(map(str, row[:4])))
def test_the_published_rows_are_the_paper_s(row):
    table, domain, stage, variant, what, one, five = row
    places = [p for p in published() if (p.table, p.domain, p.stage, p.variant) == (table, domain, stage, variant)]
    found = [p for p in places if what in (", ".join(filter(None, (p.encoder, p.scorer, p.summarizer))), p.method)]
    assert len(found) == 1
    shares = [None if value is None else pytest.approx(value / 100) for value in (one, five)]
    assert [found[0].acc1, found[0].acc5] == shares


def test_every_row_of_the_tables_is_there_and_each_number_is_a_share_of_whole_settings():
    counts = Counter((p.table, p.domain) for p in published())
    assert counts == {
        ("4", "natural"): 8, ("4", "medical"): 20, ("5", "natural"): 20, ("5", "medical"): 20,
        ("6", "natural"): 8, ("6", "medical"): 10, ("text", "all"): 2, ("text", "natural"): 2,
    }  # fmt: skip
    for p in published():
        n = {"natural": 360, "medical": 60, "all": 420}[p.domain]
        for share in (p.acc1, p.acc5):
            assert share is None or round(100 * round(share * n) / n, 1) == pytest.approx(100 * share)
        assert p.acc1 is None or p.acc1 <= p.acc5
        assert p.source.startswith(PAPER)
    assert sum(p.acc5 is not None for p in published()) == len(published()) == 90


def test_a_published_row_stands_beside_the_same_domain_and_variant_only():
    assert best("natural", "reference_based", "t").acc1 == 0.808
    assert best("medical", "reference_free", "v").acc5 == 0.367
    assert best("all", "reference_free", "both").acc5 == 0.638
    assert best("all", "reference_based", "both") is None
    domains = [["natural"], ["medical", "natural"], ["scenes"], ["natural", "scenes"], ["openi"], []]
    assert [published_domain(names) for names in domains] == ["natural", "all", None, None, None, None]


def test_failed_and_missing_settings_count_as_not_right_and_are_said(reported):
    scores, out = reported
    g = group(scores, "whole", "reference_free", "natural")
    assert [g[key] for key in ("listed", "finished", "failed", "missing")] == [6, 4, 1, 1]
    right = {key: round(6 * g["scores"][key]) for key in g["scores"] if key.endswith(("acc@1", "acc@5"))}
    assert right == {
        "acc@1": 2, "acc@5": 3, "textual_error_acc@1": 3, "textual_error_acc@5": 4, "visual_feature_acc@1": 3,
        "visual_feature_acc@5": 3,
    }  # fmt: skip
    text = (out / "report.md").read_text()
    assert "whole: 12 of 14 settings are finished; 1 failed and 1 have no result yet, which count as not right." in text
    reasons = {row["setting"]: row["reason"] for row in rows_of(out / "unfinished.csv")}
    assert sorted(reasons.values()) == ["no result yet", "the model said nothing"]
    assert all(name in text for name in reasons)


def test_left_out_they_are_not_counted_and_that_is_said_too(bench, runs, tmp_path):
    scores = report(runs[0], bench=bench, judge="exact", missing="left_out", out=tmp_path)
    g = group(scores, "whole", "reference_free", "natural")["scores"]
    assert (g["n"], g["acc@1"], g["acc@5"]) == (4, 0.5, 0.75)
    assert "2 settings" not in (text := (tmp_path / "report.md").read_text())
    assert "1 failed and 1 have no result yet, which are left out of all shares" in text


def test_runs_stand_side_by_side_in_both_variants_beside_the_paper(reported):
    _, out = reported
    header, rows = page_table((out / "report.md").read_text(), "End to end")
    assert [row[:4] for row in rows] == [
        ["whole", "reference-free", "all", "7"],
        ["whole", "reference-free", "natural", "6"],
        ["part", "reference-free", "natural", "6"],
        ["whole", "reference-free", "scenes", "1"],
        ["whole", "reference-based", "all", "7"],
        ["whole", "reference-based", "natural", "6"],
        ["whole", "reference-based", "scenes", "1"],
    ]
    cell = dict(zip(header, rows[1], strict=True))
    assert cell["Acc@1 (%)"].startswith("33.3 (")
    assert cell["Acc@5 (%)"].startswith("50.0 (")
    assert [cell["paper's Acc@1"], cell["paper's Acc@5"]] == ["49.2", "69.7"]
    assert rows[2][4].startswith("16.7 (")
    assert rows[5][4:8] == ["100.0 (100.0–100.0)", "100.0 (100.0–100.0)", "41.1", "51.9"]
    for row in rows:
        beside = row[2] == "natural"
        assert row[-1] == (PAPER + "Table 6" if beside else "–")
        assert (row[-2] == "–") != beside
    text = (out / "report.md").read_text()
    assert "about different settings" in text
    assert "part: 6 of 6 settings are finished (the benchmark has 14)." in text
    assert "Data, judge and models differ" in text


def test_strata_verdicts_calls_and_time_are_those_of_the_lines(reported, bench):
    scores, out = reported
    g = group(scores, "whole", "reference_free", "natural")
    by = g["scores"]["by"]
    assert {label: part["n"] for label, part in by["strength"].items()} == {"0.3": 3, "0.6": 3}
    assert {label: part["n"] for label, part in by["sampling"].items()} == {"adversarial": 2, "popular": 2, "random": 4}
    assert sum(part["n"] for part in by["feature_size"].values()) == 6
    row = next(
        r for r in rows_of(out / "verdicts_and_cost.csv")
        if (r["run"], r["variant"], r["domain"]) == ("whole", "reference_free", "natural")
    )  # fmt: skip
    told = {"n": 4, "systematic": 3, "none": 1, "systematic_share": 0.75, "asked": 40, "cached": 8, "failed": 4,
            "unparsed": 0, "asked_per_setting": 10, "seconds_median": 3, "seconds_total": 17, "pairs": 400,
            "new_pairs": 20, "new_share": 0.05}  # fmt: skip
    assert {key: float(row[key]) for key in told} == told


def test_each_pair_of_names_is_judged_once_for_all_runs(bench, runs):
    asked = []

    def judge(pairs):
        asked.append(list(pairs))
        return [a == b for a, b in pairs]

    scores = report(runs, bench=bench, judge=judge)
    assert len(asked) == 1
    assert len(asked[0]) == len(set(asked[0])) == scores["judgements"] > 3
    assert scores["judge"]["name"] == "judge"


def test_what_the_judge_cannot_tell_is_neither_right_nor_hidden(bench, runs, tmp_path):
    scores = report(
        runs[1], bench=bench, judge=lambda pairs: [None if a == "x" else a == b for a, b in pairs], out=tmp_path
    )
    own = group(scores, "part", "reference_free", "natural")["scores"]
    assert (own["acc@5"], own["undecided@5"]) == (pytest.approx(1 / 6), 5)
    assert scores["unparsed"] == 3  # "x" for each true t
    text = (tmp_path / "report.md").read_text()
    assert "part, reference-free, natural: 5 at 1 (Acc@1 is at most 100.0)" in text


def test_the_page_and_the_tables_come_from_scores_json_alone(reported, tmp_path):
    scores, out = reported
    kept = json.loads((out / "scores.json").read_text())
    assert kept == scores
    again = write(kept, tmp_path)
    assert set(again) == {path.name for path in out.iterdir()}
    assert all(path.read_bytes() == (out / name).read_bytes() for name, path in again.items())
    # Every accuracy on the page is one of the file, and follows it.
    known = {f"{100 * value:.1f}" for value in numbers(kept)}
    for title in ("End to end: ", "Stage 1", "Stage 2", "By strength", "By size", "By sampling"):
        _, rows = page_table((out / "report.md").read_text(), title)
        for row in rows:
            assert set(re.findall(r"\d+\.\d(?=[ –)]|$)", " ".join(row[5:8]))) <= known
    group(kept, "part", "reference_free", "natural")["scores"]["textual_error_acc@1"] = 0.123
    assert "12.3 (" in markdown(kept)
    assert {kept["judge"]["name"], kept["judge"]["revision"]} == {"exact", "1"}


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    return [value] if isinstance(value, float | int) else []


def test_figures_show_the_series_of_their_csv(reported):
    scores, out = reported
    three = rows_of(out / "figure_3.csv")
    natural = [r for r in three if (r["variant"], r["domain"], r["k"]) == ("reference_free", "natural", "5")]
    assert {r["series"]: float(r["acc"]) for r in natural} == {
        "whole": 0.5, "part": pytest.approx(1 / 6), "paper: Llama3.3 70B": 0.003, "paper: Qwen2.5-VL 72B": 0.019,
        "paper: GPT-OSS 120B": 0.139, "paper: Symbal": 0.697,
    }  # fmt: skip
    assert {r["series"] for r in three if r["domain"] != "natural"} == {"whole"}
    assert all(float(r["low"]) <= float(r["acc"]) <= float(r["high"]) for r in three if not r["source"])
    four, eight = rows_of(out / "figure_4.csv"), rows_of(out / "figure_8.csv")
    assert {r["panel"] for r in four} == {"strength", "feature_size"}
    assert {r["label"] for r in eight} == {"random", "popular", "adversarial"}
    for rows in (four, eight):
        assert {r["domain"] for r in rows} == {"natural", "scenes"}
        assert {r["variant"] for r in rows} == {"reference_free", "reference_based"}
        assert {r["series"] for r in rows} == {"whole", "part"}
    by = group(scores, "part", "reference_free", "natural")["scores"]["by"]["strength"]
    shown = {
        r["label"]: float(r["acc"]) for r in four if (r["series"], r["panel"], r["k"]) == ("part", "strength", "5")
    }
    assert shown == {label: part["acc@5"] for label, part in by.items()}
    for name in ("figure_3", "figure_4", "figure_8"):
        assert f"({name}.png)" in (out / "report.md").read_text()
        pixels = np.asarray(Image.open(out / f"{name}.png").convert("RGB"))
        assert pixels.shape[0] > 500 and pixels.shape[1] > 800
        for colour in ((0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)):  # of the two runs
            assert (pixels == colour).all(-1).sum() > 500


def height(acc):
    """Pixels of colour in a picture of one bar."""
    png = draw("figure_3", [Bar("reference_free", "natural", "accuracy", "Acc@1", "run", 1, acc, None, None, 9)])
    return (np.asarray(Image.open(BytesIO(png)).convert("RGB")) == (0x00, 0x72, 0xB2)).all(-1).sum()


def test_bars_are_as_high_as_their_share_of_a_hundred():
    none, half, whole = height(0.0), height(0.5), height(1.0)
    assert half - none == pytest.approx((whole - none) / 2, rel=0.02)


def test_another_benchmark_than_the_runs_is_refused(bench, runs, tmp_path):
    other = made(tmp_path / "other", bench, bench.settings[:1], [], revision="0123456789abcdef")
    with pytest.raises(BadData, match=f"'0123456789abcdef', and .* has '{bench.revision}'; give the one"):
        report([runs[0], other], bench=bench, judge="exact")


def test_folders_without_a_run_or_without_a_result(bench, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no run\.json in .*empty; make results with `symbal bench run"):
        report(tmp_path / "empty", bench=bench)
    with pytest.raises(BadData, match="no folder of results"):
        report([], bench=bench)
    started = made(tmp_path / "started", bench, bench.settings, [])
    with pytest.raises(BadData, match="given twice"):
        report([started, tmp_path / "." / "started"], bench=bench)
    scores = report(started, bench=bench, judge="exact", out=tmp_path / "out")
    assert {g["scores"]["acc@5"] for g in scores["runs"][0]["groups"]} == {0}
    assert "started: 0 of 14 settings are finished; 0 failed and 14" in (tmp_path / "out" / "report.md").read_text()
    # With nothing to score no figure is left that an earlier report drew.
    assert (tmp_path / "out" / "figure_3.png").is_file()
    scores = report(started, bench=bench, judge="exact", out=tmp_path / "out", missing="left_out")
    assert {g["scores"] for g in scores["runs"][0]["groups"]} == {None}
    assert not list((tmp_path / "out").glob("figure*"))


def test_runs_in_folders_of_one_name_are_told_apart(bench, tmp_path):
    folders = [made(tmp_path / name / "run", bench, bench.settings[:1], [line(bench.settings[0])]) for name in "ab"]
    assert [run["name"] for run in report(folders, bench=bench, judge="exact")["runs"]] == ["a/run", "b/run"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"textual_error": "cat"}, "has textual_error 'cat', which is no list of names; remove the line"),
        ({"visual_feature": [1]}, "has visual_feature .1., which is no list of names"),
    ],
)
def test_a_line_of_another_form_is_refused_by_its_setting(bench, tmp_path, change, said):
    folder = made(tmp_path / "run", bench, bench.settings[:1], [{**line(bench.settings[0]), **change}])
    with pytest.raises(BadData, match=f"{bench.settings[0].name} {said}"):
        report(folder, bench=bench, judge="exact")


def test_results_that_the_manifest_does_not_list_are_said_and_not_used(bench, tmp_path):
    folder = made(tmp_path / "run", bench, bench.settings[:1], [line(s) for s in bench.settings[:3]])
    scores = report(folder, bench=bench, judge="exact", out=tmp_path / "out")
    assert [g["listed"] for g in scores["runs"][0]["groups"]] == [1]
    assert "2 results of settings that run.json does not list are not used" in (tmp_path / "out/report.md").read_text()


def test_an_unknown_rule_for_missing_settings_is_refused(bench, runs):
    with pytest.raises(BadData, match="missing='drop'; choose among wrong, left_out"):
        report(runs, bench=bench, judge="exact", missing="drop")


def test_the_command_prints_the_page_it_writes(bench, runs, tmp_path):
    args = ["bench", "report", *map(str, runs), "--benchmark", str(bench.folder), "--judge", "exact", "--k", "1"]
    done = CliRunner().invoke(app, [*args, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.md").read_text()
    assert page in done.stdout
    assert "Acc@5 (%)" not in page.split("## What the paper published")[0]
    assert json.loads((tmp_path / "out" / "scores.json").read_text())["k"] == [1]
