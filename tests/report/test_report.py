"""The report says what the result says, loads nothing, and treats captions as text."""

from __future__ import annotations

import base64
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image
from report_page import FACT, Page, agrees, audit, finding, noise, render

from symbal_hf.data.pixels import jpeg_thumbnail
from symbal_hf.report.page import MAX_IDS, write_report
from symbal_hf.results.findings import Affected, AuditResult, Example, Skipped, load_result
from symbal_hf.stats.contingency import wilson

HOSTILE = {
    "script": f"<script>alert(1)</script> {FACT}",
    "close": f"</p></figcaption></main></body><!-- {FACT} --> <img src=http://example.org/x.png onerror=alert(1)>",
    "quotes": f"\" ' ` &quot; &lt;b&gt; & {FACT}",
    "template": f"{{{{ 7 * 7 }}}} {{% raw %}} {FACT}",
    "emoji": f"🖨️👩🏽‍💻 {FACT}",
    "right to left": f"مكتب \u202e עם {FACT}",
    "long word": "W" + "o" * 5000 + " " + FACT,
    "half a surrogate pair": f"\ud83d {FACT}",
}


CASES = {
    "usual": finding(),
    "never without": finding(12, 40, 0, 900),
    "always with": finding(40, 40, 3, 900, confirmed_by=None, confirmed_rows=None, witness_rows=None, missed_with=None),
    "rare": finding(3, 90000, 1, 900000, p_value_corrected=0.0341, p_value=0.00012, cramers_v=0.00123),
    "against": finding(1, 900, 50, 900, cramers_v=-0.25, p_value=1.0, p_value_corrected=1.0),
    "many": finding(1200, 4000, 300, 50000),
}


@pytest.mark.parametrize("name", CASES)
def test_every_number_of_a_finding_is_the_results(name: str, tmp_path: Path) -> None:
    f = CASES[name]
    page = render(audit(f), tmp_path)
    expected = {k: v for k, v in f.to_dict().items() if isinstance(v, int | float)}
    if f.missed_with is None:
        del expected["missed_without"]
    for side in ("with", "without"):
        ends = wilson(expected[f"errors_{side}_feature"], expected[f"rows_{side}_feature"])
        expected[f"error_rate_{side}_low"], expected[f"error_rate_{side}_high"] = ends
    expected["affected"], expected["alignment"] = len(f.affected), 0.1234
    if len(f.affected) > MAX_IDS:
        expected["more"] = len(f.affected) - MAX_IDS
    shown = page.numbers(id="finding-1")
    assert {name for name, _, _ in shown} == set(expected)
    for field, value, text in shown:
        assert value == expected[field], field
        assert agrees(value, text), (field, value, text)


def test_no_other_number_stands_in_a_finding(tmp_path: Path) -> None:
    page = render(audit(finding()), tmp_path)
    loose = [
        text
        for around, text in page.within(id="finding-1")
        if not {name for name, _ in around} & {"data", "code", "bdi"} and "caption" not in str(around[-1][1])
    ]
    assert set(re.findall(r"\d+", " ".join(loose))) == {"95"}


def test_verdict_sentence_states_the_first_finding(tmp_path: Path) -> None:
    page = render(audit(finding()), tmp_path)
    assert page.text(cls="verdict") == (
        "One systematic error was found. Captions say “printer” where there is none; "
        "7.5 % of the time with “computer monitor” in view, 0.1 % without."
    )
    many = render(audit(finding(), finding(textual_error="cat"), finding(textual_error="dog")), tmp_path)
    assert many.text(cls="verdict").startswith("3 systematic errors were found. The strongest: captions say “printer”")
    anchors = ["#" + attrs["id"] for _, attrs in many.tags if attrs.get("class") == "finding"]
    assert [attrs["href"] for tag, attrs in many.tags if tag == "a"] == anchors


def test_suspects_table_gives_each_pair_its_own_numbers(tmp_path: Path) -> None:
    result = audit(finding())
    shown = render(result, tmp_path).numbers(id="suspects")
    names = [name for name, _, _ in shown]
    each = len(names) // len(result.suspects)
    for i, suspect in enumerate(result.suspects):
        row = suspect.to_dict()
        assert [(n, v) for n, v, _ in shown[i * each : (i + 1) * each]] == [(n, row[n]) for n in names[:each]]
    assert all(agrees(value, text) for _, value, text in shown)
    assert {"error_rate_with", "risk_ratio_low", "cramers_v", "p_value_corrected"} <= set(names)


@pytest.mark.parametrize(("p", "text"), [(3.14e-12, "3.1e-12"), (0.0341, "0.034"), (0.0, "<\u00a01e-300"), (1.0, "1")])
def test_p_values_read_naturally(p: float, text: str, tmp_path: Path) -> None:
    shown = render(audit(finding(p_value_corrected=p)), tmp_path).numbers(id="finding-1")
    assert [t for name, _, t in shown if name == "p_value_corrected"] == [text]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_shown_as_text_and_changes_no_structure(name: str, tmp_path: Path) -> None:
    def result(text: str) -> AuditResult:
        example = Example(f"r {text}", text, FACT)
        f = finding(
            textual_error=text,
            visual_feature_candidates=(text, text),
            examples=(example,),
            affected=(Affected(text, (text,), True),),
        )
        skipped, provenance = (Skipped(text, text),), {f"key {text}": text, "list": [text]}
        return audit(f, suspects=(f,), skipped=skipped, provenance=provenance)

    calm = render(result(f"A desk. {FACT}"), tmp_path, thumbnail=lambda _: b"jpeg")
    text = HOSTILE[name]
    page = render(result(text), tmp_path, thumbnail=lambda _: b"jpeg", title=text)
    assert [(tag, sorted(attrs)) for tag, attrs in page.tags] == [(tag, sorted(attrs)) for tag, attrs in calm.tags]
    shown = " ".join(text.replace("\ud83d", "\ufffd").split())
    assert page.text(cls="caption") == page.text(tag="h1") == page.text(tag="title") == shown
    assert page.text(tag="mark") == FACT


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    hostile = tuple(Example(name, text, FACT) for name, text in HOSTILE.items())
    path = write_report(
        audit(finding(examples=hostile)), tmp_path / "r.html", thumbnail=lambda _: jpeg_thumbnail(noise())
    )
    page = Page(path.read_text("utf-8"))
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form", "video"}
    sources = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "srcset", "poster")]
    assert len(sources) == len(hostile)
    for source in sources:
        assert source.startswith("data:image/jpeg;base64,")
        with Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))) as image:
            assert image.format == "JPEG"
    assert all(attrs["href"].startswith("#") for _, attrs in page.tags if "href" in attrs)
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]
    assert not re.search(r"url\(|@import", page.text(tag="style"))


def test_fifty_thumbnails_stay_under_5_mb_and_have_alt_text(tmp_path: Path) -> None:
    ids = [f"row-{i}" for i in range(50)]
    asked: list[str] = []

    def thumbnail(row: str) -> bytes:
        asked.append(row)
        return jpeg_thumbnail(noise(int(row.removeprefix("row-"))))

    examples = tuple(Example(i, f"A desk. {FACT}", FACT) for i in ids)
    path = write_report(audit(finding(examples=examples)), tmp_path / "r.html", thumbnail=thumbnail)
    assert path.stat().st_size < 5_000_000
    images = [attrs for tag, attrs in Page(path.read_text("utf-8")).tags if tag == "img"]
    assert len(images) == 50 and asked == ids
    assert all(row in attrs["alt"] for row, attrs in zip(ids, images, strict=True))


@pytest.mark.parametrize("thumbnail", [None, lambda _: None])
def test_report_without_pictures_has_all_cards(thumbnail: object, tmp_path: Path) -> None:
    page = render(audit(finding()), tmp_path, thumbnail=thumbnail)
    tags = [tag for tag, _ in page.tags]
    assert "img" not in tags and [a.get("class") for t, a in page.tags if t == "figure"].count("card") == 2
    assert page.text(cls="row") == "Row row-a · alignment 0.12Row row-b"


def test_none_says_so_and_why(tmp_path: Path) -> None:
    page = render(audit(why_none="'cat' when 'screen' failed: p is 0.212."), tmp_path)
    assert page.text(cls="verdict") == "Nothing systematic was found. 'cat' when 'screen' failed: p is 0.212."
    assert not page.within(cls="finding") and page.numbers(id="suspects")
    bare = render(AuditResult("none", (), (), {}), tmp_path)
    assert bare.text(cls="verdict") == "Nothing systematic was found."
    assert "No pair was ranked." in bare.text(tag="main")


def test_what_a_budget_left_unasked_is_told(tmp_path: Path) -> None:
    told = "asked about 12 of 40 statements, the others are unknown; the first place is sure at 95%"
    assert told in render(audit(finding(20, 100, 20, 400), budget=told), tmp_path).text(tag="main")
    assert told in render(audit(budget=told), tmp_path).text(tag="main")


def test_a_sentence_that_is_not_in_the_caption_stands_beside_it(tmp_path: Path) -> None:
    page = render(audit(finding(examples=(Example("a", "A desk and a printer.", FACT),))), tmp_path)
    assert page.text(cls="caption") == "A desk and a printer." and page.text(cls="fact") == FACT
    without = render(audit(finding(examples=(Example("a", "A desk.", ""),))), tmp_path)
    assert not without.within(tag="mark") and not without.within(cls="fact")


def test_long_lists_of_ids_are_cut_and_say_so(tmp_path: Path) -> None:
    f = finding(1200, 4000, 300, 50000)
    page = render(audit(f), tmp_path)
    assert tuple(t for _, t in page.within(cls="ids") if t.strip()) == f.affected_ids[:200]
    assert "1,500 affected rows" in page.text(tag="summary")
    assert "and 1,300 more, see findings.json" in page.text(tag="details")
    assert "more, see" not in render(audit(finding()), tmp_path).text(tag="details")


def test_skipped_rows_are_counted_by_reason_and_the_making_is_told(tmp_path: Path) -> None:
    skipped = tuple(Skipped(f"s{i}", "no caption" if i % 4 else "image cannot be read") for i in range(40))
    page = render(audit(finding(), skipped=skipped), tmp_path)
    assert [(n, v) for n, v, _ in page.numbers(cls="skipped")] == [("skipped", 40), ("rows", 30), ("rows", 10)]
    reasons = [text for around, text in page.within(cls="skipped") if around[-1][0] == "bdi" and around[-2][0] == "th"]
    assert reasons == ["no caption", "image cannot be read"]
    assert [v for _, v, _ in page.numbers(cls="counts")] == [10000, 12]
    assert all(word in page.text(id="made") for word in ("model calls", "version", "0.1.0", "small", "train", "seed"))
    varied = tuple(Skipped(f"s{i}", f"bad byte {i}") for i in range(60))
    assert "and 10 more reasons, see findings.json" in render(audit(skipped=varied), tmp_path).text(cls="skipped")


def test_the_page_is_named_ordered_and_has_labels(tmp_path: Path) -> None:
    page = render(audit(finding()), tmp_path, title="Audit of a shop")
    tags = dict(page.tags)
    assert tags["html"]["lang"] == "en" and page.text(tag="title") == page.text(tag="h1") == "Audit of a shop"
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in page.tags
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {a["aria-labelledby"] for _, a in page.tags if "aria-labelledby" in a} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert [t for t, _ in page.tags if t in ("table", "caption")] == ["table", "caption"] * 2


def test_colours_keep_aa_contrast_in_light_dark_and_print(tmp_path: Path) -> None:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    style = render(audit(finding()), tmp_path).text(tag="style")
    themes = [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", style)]
    assert len(themes) == 3 and "prefers-color-scheme: dark" in style
    pairs = [(ink, ground, 4.5) for ink in ("ink", "soft", "link") for ground in ("page", "card")]
    pairs += [("mark-ink", "mark", 4.5), ("with", "page", 3.0), ("without", "page", 3.0)]
    pairs += [("whisker", ground, 3.0) for ground in ("page", "with", "without")]
    for theme in themes:
        for a, b, least in pairs:
            low, high = sorted((luminance(theme[a]), luminance(theme[b])))
            assert (high + 0.05) / (low + 0.05) >= least, (a, b, theme)


def test_a_failing_run_leaves_the_old_report(tmp_path: Path) -> None:
    def broken(row: str) -> bytes:
        raise OSError(row)

    path = write_report(audit(finding()), tmp_path / "new" / "report.html")
    before = path.read_bytes()
    with pytest.raises(OSError, match="row-a"):
        write_report(audit(finding(1, 10, 1, 10)), path, thumbnail=broken)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def test_the_report_of_a_stored_result_is_the_same(tmp_path: Path) -> None:
    result = audit(finding(), skipped=(Skipped("s", "no caption"),))
    result.write(tmp_path)
    first = write_report(result, tmp_path / "a.html").read_bytes()
    assert write_report(load_result(tmp_path), tmp_path / "b.html").read_bytes() == first
