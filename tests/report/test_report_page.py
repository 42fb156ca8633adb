"""What a team lead reads on the page is what the files beside it say: numbers, rows, boxes, map and second look."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_case import SHAPES, everything, fact_map_of, found, photo, validation_of
from report_page import Page, agrees, audit, noise

from symbal_hf.data.pixels import jpeg_thumbnail
from symbal_hf.report.map_shapes import HEIGHT, MARGIN, WIDTH, groups
from symbal_hf.report.map_shapes import SHAPES as MARKS
from symbal_hf.report.map_shapes import place as place_of
from symbal_hf.report.page import MAX_IDS, write_report
from symbal_hf.results.findings import Example, load_result
from symbal_hf.results.validation import Validation, load_validation
from symbal_hf.stats.contingency import wilson


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as an audit and a validation leave it."""
    folder = tmp_path_factory.mktemp("audit")
    result = everything()
    result.write(folder)
    validation_of(result).write(folder)
    write_report(load_result(folder), folder / "report.html", thumbnail=photo, validation=load_validation(folder))
    return folder


def html_of(result: Any, folder: Path, **options: Any) -> str:
    return write_report(result, folder / "page.html", **options).read_text("utf-8")


def rates(table: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """What a chart shows of a 2x2 table."""
    out = []
    for side in ("with", "without"):
        errors, rows = table[f"errors_{side}_feature"], table[f"rows_{side}_feature"]
        low, high = wilson(errors, rows)
        out += [
            (f"errors_{side}_feature", errors), (f"rows_{side}_feature", rows), (f"error_rate_{side}", errors / rows),
            (f"error_rate_{side}_low", low), (f"error_rate_{side}_high", high),
        ]  # fmt: skip
    return [(prefix + name, value) for name, value in out]


def numbers_of(findings: dict[str, Any], validation: dict[str, Any]) -> Counter[tuple[str, float]]:
    """Every number that a page of these two files has to show, and no other."""
    found_, shown = findings["findings"], Counter[tuple[str, float]]()
    first = [("error_rate_with", found_[0]["error_rate_with"]), ("error_rate_without", found_[0]["error_rate_without"])]
    shown.update([("findings", len(found_)), *first])
    for f in found_:
        ratio = [(name, f[name]) for name in ("risk_ratio", "risk_ratio_low", "risk_ratio_high")]
        tests = [(name, f[name]) for name in ("cramers_v", "p_value", "p_value_corrected")]
        who = ("confirmed_rows", "witness_rows", "missed_with", "missed_without")
        confirmed = [(name, f[name]) for name in who if f[name] is not None]
        shown.update([*rates(f), *ratio, *tests, *confirmed, ("affected", len(f["affected"]))])
        shown.update([(n, f[n]) for n in ("error_rate_with", "error_rate_without")])  # in the list of findings
        rows = [*f["examples"], *f["affected"][:MAX_IDS]]
        shown.update(("alignment", row["alignment"]) for row in rows if row["alignment"] is not None)
        if len(f["affected"]) > MAX_IDS:
            shown["more", len(f["affected"]) - MAX_IDS] += 1
    for v in validation["findings"]:
        ratio = [(name, v[name]) for name in ("risk_ratio", "risk_ratio_low", "risk_ratio_high")]
        also = [(name, v[name]) for name in ("p_value", "undecided")]
        shown.update([*rates(v, "second_"), *((f"second_{name}", value) for name, value in [*ratio, *also])])
        human = {name: value for name, value in v["human"].items() if value is not None and name != "says"}
        if not human["rejected"]:
            del human["rejected"], human["confirmed"]
        shown.update((f"human_{name}", value) for name, value in human.items())
        shown.update(("score", box["score"]) for boxes in v["boxes"].values() for box in boxes)
    names = (
        "error_rate_with", "errors_with_feature", "rows_with_feature", "error_rate_without", "errors_without_feature",
        "rows_without_feature", "risk_ratio", "risk_ratio_low", "risk_ratio_high", "cramers_v", "p_value_corrected",
    )  # fmt: skip
    for f in (*findings["suspects"], *findings["asked"]):
        shown.update((name, f[name]) for name in names)
    drawn = findings["fact_map"]
    wrong = Counter(point["finding"] for point in drawn["points"])
    shown.update([("points", len(drawn["points"])), ("facts", drawn["facts"]), ("wrong_drawn", drawn["wrong_drawn"])])
    shown.update([("right", wrong.pop(None)), *(("wrong_of_finding", n) for n in wrong.values())])
    shown.update(("group_facts", cluster["facts"]) for cluster in drawn["clusters"])
    shown.update((f"cluster_{name}", cluster[name]) for cluster in drawn["clusters"] for name in ("facts", "wrong"))
    shown.update(("count", value) for value in findings["counts"].values())
    reasons = Counter(row["reason"] for row in findings["skipped"])
    shown.update([("skipped", len(findings["skipped"])), *(("rows", n) for n in reasons.values())])
    return shown


def test_the_numbers_on_the_page_are_those_of_the_two_files(folder: Path) -> None:
    findings, validation = (json.loads((folder / name).read_text()) for name in ("findings.json", "validation.json"))
    shown = Page((folder / "report.html").read_text("utf-8")).numbers()
    assert Counter((name, value) for name, value, _ in shown) == numbers_of(findings, validation)
    assert len(shown) > 300
    assert [text for _, value, text in shown if not ((text == "∞" and value == 1e9) or agrees(value, text))] == []


def test_no_number_stands_on_the_page_that_is_not_told_by_name(folder: Path) -> None:
    page = Page((folder / "report.html").read_text("utf-8"))
    told = {"data", "code", "bdi", "svg", "style", "mark"}
    loose = [text for around, text in page.texts if not told & {name for name, _ in around}]
    captions = [text for around, text in page.texts if around and around[-1][1].get("class") == "caption"]
    assert captions and set(re.findall(r"\d+", " ".join(loose))) == {"95"}


def test_bars_and_whiskers_are_as_long_as_the_rates(folder: Path) -> None:
    findings, validation = (json.loads((folder / name).read_text()) for name in ("findings.json", "validation.json"))
    tags = Page((folder / "report.html").read_text("utf-8")).tags
    widths = [float(a["width"]) for tag, a in tags if tag == "rect" and a.get("height") == "8"]
    whiskers = [(float(a["x1"]), float(a["x2"])) for tag, a in tags if tag == "line" and a["y1"] == a["y2"] == "5"]
    tables = [t for pair in zip(findings["findings"], validation["findings"], strict=True) for t in pair]
    assert len(widths) == len(whiskers) == 2 * len(tables) == 8
    for i, table in enumerate(tables):
        each = dict(rates(table))
        ends = [(each[f"error_rate_{s}_low"], each[f"error_rate_{s}_high"]) for s in ("with", "without")]
        unit = 100 / max(high for _, high in ends)
        wanted = [each["error_rate_with"] * unit, each["error_rate_without"] * unit]
        assert widths[2 * i : 2 * i + 2] == pytest.approx(wanted, abs=1e-3)
        for whisker, (low, high) in zip(whiskers[2 * i :], ends, strict=False):
            assert whisker == pytest.approx((low * unit, high * unit), abs=1e-3)


def test_every_fact_of_the_map_has_its_mark_at_its_place_with_its_words(folder: Path) -> None:
    drawn = json.loads((folder / "findings.json").read_text())["fact_map"]
    html = (folder / "report.html").read_text("utf-8")
    picture = html[html.index('aria-labelledby="map-title map-note"') : html.index('<ul class="keys">')]
    marks = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4.5"><title>([^<]*)', picture)
    path = r'<path class="wrong" d="([^"]+)" transform="translate\(([\d.]+) ([\d.]+)\)"><title>([^<]*)'
    others = re.findall(path, picture)

    def place(point: dict[str, Any]) -> tuple[float, float]:
        return (
            pytest.approx(MARGIN + point["x"] * (WIDTH - 2 * MARGIN), abs=0.06),
            pytest.approx(MARGIN + (1 - point["y"]) * (HEIGHT - 2 * MARGIN), abs=0.06),
        )

    right = [point for point in drawn["points"] if point["finding"] is None]
    wrong = [point for point in drawn["points"] if point["finding"] is not None]
    assert len(right) == len(marks) == 82 and len(wrong) == len(others) == 8
    for point, (x, y, title) in zip(right, marks, strict=True):
        number = point["row_id"].split()[1]
        assert (float(x), float(y)) == place(point) and title.startswith(f"Fact &lt;{number}&gt; &amp; a “quote”.")
        assert "wrong" not in title
    for point, (shape, x, y, title) in zip(wrong, others, strict=True):
        assert shape == MARKS[point["finding"]] and (float(x), float(y)) == place(point)
        assert f"wrong: “{('printer', 'cat')[point['finding']]}” when" in title
    assert re.findall(r'dominant-baseline="central">([^<]+)', picture) == ["1", "2", "3"]
    legend = re.findall(r'<li value="(\d)">“<bdi>([^<]+)</bdi>” \(<data class="group_facts" value="(\d+)"', picture)
    assert legend == [(str(i), c["name"], str(c["facts"])) for i, c in enumerate(drawn["clusters"], 1)]


def test_the_number_of_a_group_stands_at_a_fact_of_it_and_covers_no_other() -> None:
    drawn = everything().fact_map
    assert drawn is not None
    heap = tuple(replace(point, x=0.5 + point.x / 8, y=0.9 + point.y / 10) for point in drawn.points)  # in one corner
    for one in (drawn, replace(drawn, points=heap)):
        found = groups(one)
        assert [number for number, _, _ in found] == [1, 2, 3]
        for i, (_, cluster, at) in enumerate(found):
            there = [point for point in one.points if place_of(point) == pytest.approx(at, abs=0.051)]
            assert cluster in [one.clusters[point.cluster] for point in there]
            assert all(math.dist(at, other) > 20 for _, _, other in found[:i])


def test_a_box_covers_the_same_part_of_a_picture_of_any_shape(folder: Path) -> None:
    html = (folder / "report.html").read_text("utf-8")
    first = html[html.index('id="finding-1"') : html.index('id="finding-2"')]
    cards = re.findall(r'<figure class="card">.*?</figure>', first, re.DOTALL)
    seen = set()
    for card in cards:
        view = re.search(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"', card)
        shape = next(name for name in SHAPES if f"printer {name} " in card)
        if view is None:
            continue
        width, height = float(view[1]), float(view[2])
        box = re.search(r'class="box" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"', card)
        assert box is not None
        x, y, w, h = map(float, box.groups())
        # The picture is fitted into its place with its shape kept, and so is a drawing of this shape over it.
        assert width / height == pytest.approx(SHAPES[shape][0] / SHAPES[shape][1], rel=0.02)
        assert (x / width, y / height) == pytest.approx((0.05, 0.1), abs=0.001)
        assert (w / width, h / height) == pytest.approx((0.4, 0.5), abs=0.001)
        assert ">computer monitor</text>" in card
        seen.add(shape)
    assert seen == set(SHAPES)
    assert "&lt;b&gt;second&lt;/b&gt;" in html and "<b>second" not in html


def test_cards_and_rows_tell_whether_the_feature_is_in_view(folder: Path) -> None:
    result = load_result(folder)
    page = Page((folder / "report.html").read_text("utf-8"))
    for number, f in enumerate(result.findings, 1):
        has = {row.row_id: row.has_feature for row in f.affected}
        within = [(a, t) for a, t in page.within(id=f"finding-{number}") if ("p", {"class": "view"}) in a]
        said = "".join(t for _, t in within)
        wanted = "".join(f"“{f.visual_feature}” in view: {'yes' if has[e.row_id] else 'no'}" for e in f.examples)
        assert said == wanted and "yes" in said and "no" in said
        cells = [t for a, t in page.within(id=f"finding-{number}") if a[-1][0] == "td" and t in ("yes", "no")]
        assert cells == ["yes" if row.has_feature else "no" for row in f.affected[:MAX_IDS]]
        ids = [t for a, t in page.within(id=f"finding-{number}") if ("th", {"scope": "row", "class": "ids"}) in a]
        assert ids == [row.row_id for row in f.affected[:MAX_IDS]]
        within = page.within(id=f"finding-{number}")
        table = [t for a, t in within if "td" in dict(a) and [name for name, _ in a[-2:]] == ["p", "bdi"]]
        assert table == [sentence for row in f.affected[:MAX_IDS] for sentence in row.sentences]
    headings = [t for a, t in page.texts if a and a[-1] == ("th", {"scope": "col", "class": "num"})]
    assert headings.count("Alignment") == 1  # the second finding knows none
    assert len(result.findings[0].affected) > MAX_IDS and "and 99 more, see findings.json" in page.text(id="finding-1")


def test_the_second_look_is_said_in_a_sentence_with_its_makers(folder: Path) -> None:
    page = Page((folder / "report.html").read_text("utf-8"))
    v = load_validation(folder)
    assert v is not None
    said = page.text(cls="second")
    assert said.startswith("At a second look (owl-vit, qwen-vl)")
    sentence = (
        "Erroneous references to “printer” are 15.6 times as likely when “computer monitor” is in view "
        "(95 % CI 10.5 to 23.0)."
    )
    assert (v.findings[0].risk_ratio, v.findings[0].risk_ratio_low) == pytest.approx((15.56, 10.5), abs=0.05)
    assert sentence in said
    assert "A person agrees on 57 of 60 rows that both looked at; Cohen’s kappa is 0.90 (95 % CI 0.78 to 0.99)." in said
    assert "A person agrees on 3 of 3 rows that both looked at; Cohen’s kappa is not defined." in said
    assert "Not independent" not in said and not page.within(cls="warning")


def test_a_second_look_that_is_not_independent_is_warned_of(tmp_path: Path) -> None:
    result = everything()
    page = Page(html_of(result, tmp_path, validation=validation_of(result, independent=False)))
    assert page.text(cls="warning").count("Not independent. The second look judged by what the audit") == 2
    assert "independent" in page.text(id="made")


def test_a_second_look_at_other_pairs_is_not_taken_for_one_at_these(tmp_path: Path) -> None:
    result = everything()
    whole = validation_of(result)
    renamed = Validation("owl", "qwen", True, (replace(whole.findings[0], textual_error="copier"), whole.findings[1]))
    page = Page(html_of(result, tmp_path, validation=renamed, thumbnail=photo))
    assert not [1 for around, _ in page.within(id="finding-1") if ("div", {"class": "second"}) in around]
    assert "did not take up this finding" in page.text(id="finding-1")
    assert not [1 for name, _, _ in page.numbers(id="finding-1") if name == "score"]
    assert [1 for name, _, _ in page.numbers(id="finding-2") if name == "score"]


def test_a_ratio_that_cannot_be_told_is_not_given_as_a_number(tmp_path: Path) -> None:
    result = everything()
    whole = validation_of(result)
    counts = {"errors_with_feature": 0, "errors_without_feature": 0}
    nothing = replace(whole.findings[0], **counts, risk_ratio=1.0, risk_ratio_low=0.0, risk_ratio_high=1e9)
    page = Page(html_of(result, tmp_path, validation=replace(whole, findings=(nothing, whole.findings[1]))))
    assert "cannot be told" in page.text(id="finding-1") and "times as likely" not in page.text(id="finding-1")
    assert "1,000,000,000" not in page.text(tag="main") and "0.00 to ∞" in page.text(id="asked")


def test_nothing_that_is_known_of_the_making_is_left_out(folder: Path) -> None:
    page = Page((folder / "report.html").read_text("utf-8"))
    told = page.text(id="made")
    pairs = (
        "SHA-256 of the rows" + "ab" * 32, "join/data/objects.jsonl", "vocabularynot given", "textsmall",
        "symbal-hf0.1.0", "house rule one two", "detectorowl-vit", "threshold0.25", "independentyes", "tau0.7",
    )  # fmt: skip
    assert [pair for pair in pairs if pair not in told] == []


def test_a_page_without_map_validation_or_pictures_shows_none_and_says_why(tmp_path: Path) -> None:
    page = Page(html_of(audit(found("cat", "sofa", 12, 40, 7, 900)), tmp_path, note="No pictures: the rows <moved>."))
    assert not page.within(id="map") and not page.within(cls="second") and not page.within(id="asked")
    assert "No pictures: the rows <moved>." in page.text(tag="header")
    empty = replace(fact_map_of(()), points=(), clusters=())
    assert not Page(html_of(replace(audit(), fact_map=empty), tmp_path)).within(id="map")


def test_boxes_over_what_is_no_picture_are_told_but_not_drawn(tmp_path: Path) -> None:
    result = everything()
    page = Page(html_of(result, tmp_path, thumbnail=lambda _: b"jpeg", validation=validation_of(result)))
    assert [a for t, a in page.tags if t == "img"] and not [a for t, a in page.tags if a.get("class") == "box"]
    assert [1 for name, _, _ in page.numbers(id="finding-1") if name == "score"]


def test_five_findings_with_sixty_noisy_pictures_stay_under_5_mb(tmp_path: Path) -> None:
    findings = []
    for k in range(5):
        examples = tuple(Example(f"row-{12 * k + i}", "A desk. " * 40, "A desk.") for i in range(12))
        findings.append(replace(found(f"thing {k}", f"other {k}", 300, 1000, 200, 9000), examples=examples))
    result = replace(audit(*findings), fact_map=fact_map_of(tuple(findings), facts=600))
    path = write_report(
        result, tmp_path / "r.html", thumbnail=lambda row: jpeg_thumbnail(noise(int(row.removeprefix("row-")), 400))
    )
    assert path.read_text("utf-8").count("data:image/jpeg") == 60
    assert path.stat().st_size < 5_000_000
