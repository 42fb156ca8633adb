"""Renders an audit as one HTML file that needs nothing else: no script, no network, no second file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from symbal_hf.core.files import write_whole
from symbal_hf.report.map_shapes import HEIGHT, SHAPES, WIDTH, groups, place
from symbal_hf.report.numbers import as_data, cut, integer, number, p_value, percent
from symbal_hf.report.parts import bars, cards, provenance, reasons
from symbal_hf.results.findings import AuditResult, Finding
from symbal_hf.results.validation import Validated, Validation

Thumbnail = Callable[[str], bytes | None]
MAX_IDS = 200  # listed per finding; the rest is in findings.json
MAX_REASONS = 50
SUSPECTED_CARDS = 6  # examples of a pair that is only suspected


def write_report(
    result: AuditResult,
    path: str | Path,
    *,
    thumbnail: Thumbnail | None = None,
    title: str = "Caption audit",
    validation: Validation | None = None,
    note: str | None = None,
) -> Path:
    """Write `result` as one self-contained HTML file, and return its path.

    Args:
        result: what is shown; every number on the page is taken or computed from it and from `validation`.
        path: the file to write; its folder is made when missing. An interrupted call leaves the old file as it was.
        thumbnail: JPEG bytes (at most about 256 pixels a side) of a row id, or None when the row has no picture. It is
            called once per row that appears as an example, and what it raises is not caught.
        title: heading of the page and name of the browser tab.
        validation: a second look at the findings (`symbal_hf.results.validation`), told by the names of t and v.
        note: a sentence above the findings, such as why there are no pictures.

    Raises:
        OSError: the file cannot be written.

    Examples:
        >>> import symbal_hf
        >>> result = symbal_hf.AuditResult("none", (), (), {"rows": 2}, why_none="2 rows are too few")
        >>> symbal_hf.write_report(result, "report.html", title="Two captions").name
        'report.html'
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,  # by name it would be off: the template does not end in .html
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=percent, p_value=p_value, number=number, integer=integer, as_data=as_data)
    environment.filters.update(bars=bars, cut=cut, place=place, groups=groups)
    images = _images(result, thumbnail)

    def section(finding: Finding, most: int | None = None) -> dict[str, Any]:
        second = _validated(validation, finding)
        return {"finding": finding, "second": second, "cards": cards(finding, images, second)[:most]}

    found = {(f.textual_error, f.visual_feature) for f in result.findings}
    html = environment.get_template("report.html.jinja").render(
        title=title,
        note=note,
        result=result,
        validation=validation,
        sections=[section(f) for f in result.findings],
        suspected=[section(f, SUSPECTED_CARDS) for f in result.suspected],
        suspects=[(f, f.state) for f in result.suspects],
        asked=[(f, "found" if (f.textual_error, f.visual_feature) in found else "not found") for f in result.asked],
        map=result.fact_map,
        map_size=(WIDTH, HEIGHT),
        shapes=SHAPES,
        provenance=provenance(result.provenance, validation),
        reasons=reasons(result.skipped),
        max_ids=MAX_IDS,
        max_reasons=MAX_REASONS,
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Half a surrogate pair cannot be stored as UTF-8; as a character reference it shows as the replacement character.
    write_whole(path, html.encode("utf-8", "xmlcharrefreplace"))
    return path


def _images(result: AuditResult, thumbnail: Thumbnail | None) -> dict[str, bytes]:
    """JPEGs of the rows that appear as examples, by row id."""
    if thumbnail is None:
        return {}
    rows = dict.fromkeys(e.row_id for f in result.findings for e in f.examples)
    rows |= dict.fromkeys(e.row_id for f in result.suspected for e in f.examples[:SUSPECTED_CARDS])
    jpegs: dict[str, Any] = {row: thumbnail(row) for row in rows}
    return {row: jpeg for row, jpeg in jpegs.items() if jpeg}


def _validated(validation: Validation | None, finding: Finding) -> Validated | None:
    pair = (finding.textual_error, finding.visual_feature)
    found = () if validation is None else validation.findings
    return next((f for f in found if (f.textual_error, f.visual_feature) == pair), None)
