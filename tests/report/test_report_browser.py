"""In a real browser the page fits wide screens, phones and paper, light and dark, and anyone can use it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, find_axe
from report_case import SHAPES, everything, photo, validation_of

from symbal_hf.report.page import write_report

FULL = "document.querySelectorAll('details').forEach(part => { part.open = true; })"
SCREENS = {
    "wide": (1280, False),
    "phone": (375, False),
    "dark": (1280, True),
    "dark phone": (375, True),
    "narrow": (320, False),
}
LONG = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = everything()
    folder = tmp_path_factory.mktemp("page")
    validation = validation_of(result, independent=False)
    return write_report(result, folder / "report.html", thumbnail=photo, validation=validation)


def keep(browser: Browser, name: str, folder: Path) -> None:
    """A picture of the page, where $SYMBAL_PICTURES says, to look at."""
    pictures = Path(os.environ.get("SYMBAL_PICTURES", folder))
    pictures.mkdir(parents=True, exist_ok=True)
    browser.picture(pictures / f"report {name}.png")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_of_any_width_shows_every_picture_and_nothing_beside_it(
    screen: str, page: Path, browser: Browser, tmp_path: Path
) -> None:
    width, dark = SCREENS[screen]
    browser.open(page, width=width, dark=dark)
    for opened in (False, True):
        if opened:
            browser.run(FULL)
        assert browser.run("document.scrollingElement.scrollWidth <= innerWidth"), browser.run(
            "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 "
            "&& !e.closest('.scroll')).slice(0, 5).map(e => e.outerHTML.slice(0, 200))"
        )
    assert browser.run("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert browser.run("document.images.length") == 24
    keep(browser, screen, tmp_path)


def test_names_of_any_length_widen_no_screen(page: Path, browser: Browser, tmp_path: Path) -> None:
    hostile = page.read_text("utf-8").replace("computer monitor", LONG).replace("printer wide", LONG)
    (tmp_path / "long.html").write_text(hostile, "utf-8")
    for width in (1280, 320):
        browser.open(tmp_path / "long.html", width=width)
        browser.run(FULL)
        assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (375, True)], ids=["wide", "dark phone"])
def test_axe_finds_no_violation(width: int, dark: bool, page: Path, browser: Browser) -> None:
    axe = find_axe()
    if axe is None:
        pytest.skip("axe-core is not installed; pip install axe-playwright-python")
    browser.open(page, width=width, dark=dark)
    browser.run(FULL)
    browser.run(axe)
    told = browser.run(
        "axe.run().then(r => ({passes: r.passes.length, violations: r.violations.map(v => [v.id, v.nodes.length, "
        "v.nodes[0].html])}))"
    )
    assert told["violations"] == [] and told["passes"] > 20
    # That it looks at all: the same page without a name for its pictures.
    browser.run("document.images[0].removeAttribute('alt')")
    assert browser.run("axe.run({runOnly: ['image-alt']}).then(r => r.violations.map(v => v.id))") == ["image-alt"]


@pytest.mark.parametrize("width", [1280, 320])
def test_boxes_lie_on_what_they_frame(width: int, page: Path, browser: Browser) -> None:
    browser.open(page, width=width)
    found = browser.run(
        """[...document.querySelectorAll('#finding-1 .shot')].filter(s => s.querySelector('.box')).map(shot => {
          const image = shot.querySelector('img'), box = shot.querySelector('.box').getBoundingClientRect();
          const wide = image.naturalWidth, high = image.naturalHeight, place = image.getBoundingClientRect();
          const scale = Math.min(place.width / wide, place.height / high);
          const left = place.left + (place.width - scale * wide) / 2;
          const top = place.top + (place.height - scale * high) / 2;
          const edges = [box.left - left, box.top - top, box.right - left, box.bottom - top];
          return [image.alt, ...edges.map((edge, i) => edge / scale / [wide, high][i % 2])];
        })"""
    )
    assert {shape for shape in SHAPES for alt, *_ in found if shape in alt} == set(SHAPES)
    for alt, *edges in found:
        assert edges == pytest.approx([0.05, 0.1, 0.45, 0.6], abs=0.02), alt


def test_the_page_asks_nobody_and_would_run_no_script(page: Path, browser: Browser, tmp_path: Path) -> None:
    browser.open(page)
    asked = browser.run("performance.getEntriesByType('resource').map(e => e.name.slice(0, 5))")
    assert set(asked) <= {"data:"}
    evil = page.read_text("utf-8").replace("</main>", "<script>document.title = 'run'</script></main>")
    (tmp_path / "evil.html").write_text(evil, "utf-8")
    browser.open(tmp_path / "evil.html")
    assert browser.run("document.scripts.length") == 1 and browser.run("document.title") == "Caption audit"


def test_everything_that_scrolls_can_be_reached_by_the_keyboard(page: Path, browser: Browser) -> None:
    browser.open(page, width=320)
    browser.run(FULL)
    parts = browser.run(
        """[...document.querySelectorAll('main *')].filter(part => part.scrollWidth > part.clientWidth + 1
          && ['auto', 'scroll'].includes(getComputedStyle(part).overflowX)).map(part => [part.tabIndex, part.role,
          !!(part.ariaLabel || document.getElementById(part.getAttribute('aria-labelledby')))])"""
    )
    assert len(parts) >= 4 and all(part == [0, "region", True] for part in parts)
    reached: list[Any] = []
    for _ in range(30):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        reached.append(browser.run("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert {"A.", "DIV.scroll", "SUMMARY."} <= set(reached)


def test_each_mark_of_the_map_says_its_fact_where_it_is_pointed_at(page: Path, browser: Browser) -> None:
    browser.open(page)
    titles = browser.run(
        """[...document.querySelectorAll('.map .scroll circle, .map .scroll .wrong')].map(mark => {
          mark.scrollIntoView({block: 'center'});
          const at = mark.getBoundingClientRect();
          const hit = document.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2);
          return [hit.closest('svg') !== null, hit.querySelector('title') !== null];
        })"""
    )
    assert len(titles) == 90 and all(part == [True, True] for part in titles)


def test_on_paper_it_is_light_and_whole(page: Path, browser: Browser, tmp_path: Path) -> None:
    browser.open(page, width=800, dark=True, media="print")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("document.scrollingElement.scrollWidth <= innerWidth")
    pictures = Path(os.environ.get("SYMBAL_PICTURES", tmp_path))
    pictures.mkdir(parents=True, exist_ok=True)
    browser.pdf(pictures / "report.pdf")
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext on this machine; apt-get install poppler-utils")
    text = subprocess.run(
        ["pdftotext", pictures / "report.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    for words in ("2 systematic errors were found", "At a second look", "Map of facts", "How this was made"):
        assert words in " ".join(text.split())
