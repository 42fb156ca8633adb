"""Renders an audit as one HTML file that needs nothing else: no script, no network, no second file."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.associate import wilson
from symbal_hf.files import write_whole
from symbal_hf.findings import AuditResult, Example, Finding, Skipped
from symbal_hf.spans import span_of

if TYPE_CHECKING:
    from markupsafe import Markup

Thumbnail = Callable[[str], bytes | None]
MAX_IDS = 200  # listed per finding; the rest is in findings.json
MAX_REASONS = 50
MAX_IDS_PER_REASON = 5
_NBSP = "\u00a0"
_MINUS = "\u2212"


@dataclass(frozen=True)
class _Bar:
    """One rate with its interval; `errors`, `rows` and `rate` are the fields of `Finding` that it shows.

    The three widths are per cent of the longest interval among the bars of one chart.
    """

    label: str
    kind: str
    errors: int
    rows: int
    rate: float
    low: float
    high: float
    width: float = 0.0
    low_at: float = 0.0
    high_at: float = 0.0


@dataclass(frozen=True)
class _Card:
    """One example, its caption split around the sentence to highlight (empty `fact`: it is not in the caption)."""

    example: Example
    before: str
    fact: str
    after: str
    image: str | None


@dataclass(frozen=True)
class _Section:
    """One finding, prepared for the page."""

    finding: Finding
    bars: tuple[_Bar, ...]
    cards: tuple[_Card, ...]
    ids: tuple[str, ...]
    more: int


def write_report(
    result: AuditResult, path: str | Path, *, thumbnail: Thumbnail | None = None, title: str = "Caption audit"
) -> Path:
    """Write `result` as one self-contained HTML file, and return its path.

    Args:
        result: what is shown; every number on the page is taken or computed from it.
        path: the file to write; its folder is made when missing. An interrupted call leaves the old file as it was.
        thumbnail: JPEG bytes (at most about 256 pixels a side) of a row id, or None when the row has no picture. It is
            called once per row that appears as an example, and what it raises is not caught.
        title: heading of the page and name of the browser tab.

    Raises:
        OSError: the file cannot be written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,  # by name it would be off: the template does not end in .html
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=_percent, p_value=_p_value, number=_number, integer=_integer, as_data=_as_data)
    images = _images(result, thumbnail)
    found = {(f.textual_error, f.visual_feature) for f in result.findings}
    html = environment.get_template("report.html.jinja").render(
        title=title,
        result=result,
        sections=[_section(f, images) for f in result.findings],
        suspects=[(f, (f.textual_error, f.visual_feature) in found) for f in result.suspects],
        reasons=_reasons(result.skipped),
        max_reasons=MAX_REASONS,
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Half a surrogate pair cannot be stored as UTF-8; as a character reference it shows as the replacement character.
    write_whole(path, html.encode("utf-8", "xmlcharrefreplace"))
    return path


def _images(result: AuditResult, thumbnail: Thumbnail | None) -> dict[str, str]:
    """Data URIs of the rows that appear as examples, by row id."""
    if thumbnail is None:
        return {}
    rows = dict.fromkeys(e.row_id for f in result.findings for e in f.examples)
    jpegs = {row: thumbnail(row) for row in rows}
    return {row: "data:image/jpeg;base64," + b64encode(jpeg).decode("ascii") for row, jpeg in jpegs.items() if jpeg}


def _section(finding: Finding, images: dict[str, str]) -> _Section:
    ids = finding.affected_ids[:MAX_IDS]
    cards = tuple(_card(e, images.get(e.row_id)) for e in finding.examples)
    return _Section(finding, _bars(finding), cards, ids, len(finding.affected) - len(ids))


def _bars(f: Finding) -> tuple[_Bar, ...]:
    bars = [
        _Bar(label, kind, errors, rows, rate, *wilson(errors, rows))
        for label, kind, errors, rows, rate in (
            ("With", "with", f.errors_with_feature, f.rows_with_feature, f.error_rate_with),
            ("Without", "without", f.errors_without_feature, f.rows_without_feature, f.error_rate_without),
        )
    ]
    unit = 100 / max(bar.high for bar in bars)  # an upper end is never 0
    return tuple(
        _Bar(b.label, b.kind, b.errors, b.rows, b.rate, b.low, b.high, b.rate * unit, b.low * unit, b.high * unit)
        for b in bars
    )


def _card(example: Example, image: str | None) -> _Card:
    start, end = span_of(example.fact, example.caption) or (len(example.caption), len(example.caption))
    return _Card(example, example.caption[:start], example.caption[start:end], example.caption[end:], image)


def _reasons(skipped: tuple[Skipped, ...]) -> list[tuple[str, int, list[str]]]:
    """(reason, number of rows, first row ids), most frequent first."""
    rows: dict[str, list[str]] = {}
    for row in skipped:
        rows.setdefault(row.reason, []).append(row.row_id)
    return [(r, len(i), i[:MAX_IDS_PER_REASON]) for r, i in sorted(rows.items(), key=lambda item: -len(item[1]))]


def _as_data(text: str, value: float, name: str) -> Markup:
    """`text` inside <data>, which keeps the exact value beside the rounded one."""
    from markupsafe import Markup

    return Markup('<data class="{}" value="{}">{}</data>').format(name, repr(value), text)


def _percent(share: float) -> str:
    """A share in [0, 1] in per cent: one decimal, or two digits within 1 % of either end (0.24 %, 99.76 %)."""
    value = 100 * share
    edge = min(abs(value), abs(100 - value))
    if edge < 1e-9:  # rounding noise of an interval's end
        return f"{value:.0f}{_NBSP}%"
    if edge >= 0.995:
        return f"{value:.1f}{_NBSP}%"
    return f"{value:.{1 - math.floor(math.log10(edge))}f}".rstrip("0") + f"{_NBSP}%"


def _p_value(p: float) -> str:
    """Two digits, as in 0.034 or 3.1e-12; a value that underflowed to 0 is given as a bound."""
    if p <= 0:
        return f"<{_NBSP}1e-300"
    if p >= 0.001:
        return f"{p:.2g}"
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _number(value: float) -> str:
    """About three digits, with a thousands comma and a real minus sign."""
    if math.isnan(value):
        return "not defined"
    size = abs(value)
    if math.isinf(value):
        text = "∞"
    elif size >= 99.95:
        text = f"{size:,.0f}"
    elif size >= 9.995:
        text = f"{size:.1f}"
    elif size >= 0.01 or size == 0:
        text = f"{size:.2f}"
    else:
        text = f"{size:.1g}"
    return _MINUS + text if value < 0 else text


def _integer(value: Any) -> str:
    """A whole number with thousands commas; anything else as it is written."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
