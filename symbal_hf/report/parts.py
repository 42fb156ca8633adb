"""What a report's page shows of each finding: bars, cards with boxes, affected rows, and the second look."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from symbal_hf.language.sentences import split
from symbal_hf.report.numbers import cut
from symbal_hf.results.findings import Example, Finding, Skipped
from symbal_hf.results.validation import Box, Validated, Validation
from symbal_hf.stats.contingency import wilson

MAX_IDS_PER_REASON = 5
CARD = (240, 208)  # a picture's place on a card in CSS pixels, about: names of boxes are sized for it
SHORTEST_LABEL, LETTER = 6, 7.5  # letters of a name at least; the width of one
PROVENANCE = {  # what is told together, in this order; anything else comes last
    "Data": ("source", "read", "rows_sha256", "vocabulary", "limit", "sample", "on_bad_row"),
    "Method": ("preset", "method", "scorer", "top_k", "tau", "alpha", "min_rate", "budget", "seed"),
    "Models": ("models",),
    "Versions": ("symbal_hf", "python"),
}
NAMES = {"read": "read with", "rows_sha256": "SHA-256 of the rows", "symbal_hf": "symbal-hf", "python": "Python"}


@dataclass(frozen=True)
class RateBar:
    """One rate with its interval; `errors`, `rows` and `rate` are the fields of the table that it shows."""

    name: str
    errors: int
    rows: int
    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class Frame:
    """One box over a picture, in units of about a CSS pixel; the name stands at (`text_x`, `text_y`)."""

    label: str
    x: float
    y: float
    width: float
    height: float
    text_x: float
    text_y: float
    anchor: str


@dataclass(frozen=True)
class Picture:
    """A thumbnail as a data URI, `width` to `height` in shape, and the boxes over it."""

    uri: str
    width: float
    height: float
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Card:
    """One example, its caption split around the sentence to highlight (empty `fact`: it is not in the caption).

    `has_feature` is None where the finding does not list the row.
    """

    example: Example
    before: str
    fact: str
    after: str
    has_feature: bool | None
    picture: Picture | None
    boxes: tuple[Box, ...]


def cards(finding: Finding, images: Mapping[str, bytes], validated: Validated | None) -> list[Card]:
    """The examples of a finding, with the JPEGs of their rows and the boxes of a second look."""
    has = {row.row_id: row.has_feature for row in finding.affected}
    boxes = {} if validated is None else validated.boxes
    return [_card(e, has.get(e.row_id), images.get(e.row_id), tuple(boxes.get(e.row_id, ()))) for e in finding.examples]


def bars(table: Finding | Validated) -> list[RateBar]:
    """The two rates with their Wilson intervals."""
    rates = (
        ("with", table.errors_with_feature, table.rows_with_feature, table.error_rate_with),
        ("without", table.errors_without_feature, table.rows_without_feature, table.error_rate_without),
    )
    return [RateBar(name, errors, rows, rate, *wilson(errors, rows)) for name, errors, rows, rate in rates]


def _card(example: Example, has_feature: bool | None, jpeg: bytes | None, boxes: tuple[Box, ...]) -> Card:
    verbatim = example.caption.find(example.fact)  # of an example that somebody wrote, which no splitting gave
    at = (verbatim, verbatim + len(example.fact)) if verbatim >= 0 else (len(example.caption), len(example.caption))
    start, end = next((s[:2] for s in split(example.caption) if s.text == example.fact), at)
    before, fact, after = example.caption[:start], example.caption[start:end], example.caption[end:]
    picture = _picture(jpeg, boxes) if jpeg else None
    return Card(example, before, fact, after, has_feature, picture, boxes)


def _picture(jpeg: bytes, boxes: Sequence[Box]) -> Picture:
    """A picture on the page, with its boxes where its shape can be told."""
    uri = "data:image/jpeg;base64," + b64encode(jpeg).decode("ascii")
    size = _size(jpeg) if boxes else None
    if size is None:
        return Picture(uri, 0, 0, ())
    scale = min(CARD[0] / size[0], CARD[1] / size[1])
    width, height = size[0] * scale, size[1] * scale
    return Picture(uri, width, height, tuple(_frame(box, width, height) for box in boxes))


def _size(jpeg: bytes) -> tuple[int, int] | None:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(jpeg)) as image:
            return image.size
    except OSError:
        return None


def _frame(box: Box, width: float, height: float) -> Frame:
    x0, x1 = sorted(min(max(x, 0.0), 1.0) * width for x in (box.x0, box.x1))
    y0, y1 = sorted(min(max(y, 0.0), 1.0) * height for y in (box.y0, box.y1))
    left = x0 < width * 0.6  # else the name would leave the picture on the right
    text_x, text_y = x0 + 4 if left else x1 - 4, min(y0 + 14, height - 4)
    beside = max(0.0, CARD[0] - width) / 2
    room = (width - text_x if left else text_x) + beside
    label = cut(box.label, max(SHORTEST_LABEL, int(room / LETTER)))
    return Frame(label, x0, y0, x1 - x0, y1 - y0, text_x, text_y, "start" if left else "end")


def reasons(skipped: tuple[Skipped, ...]) -> list[tuple[str, int, list[str]]]:
    """(reason, number of rows, first row ids), most frequent first."""
    rows: dict[str, list[str]] = {}
    for row in skipped:
        rows.setdefault(row.reason, []).append(row.row_id)
    return [(r, len(i), i[:MAX_IDS_PER_REASON]) for r, i in sorted(rows.items(), key=lambda item: -len(item[1]))]


def provenance(told: Mapping[str, Any], validation: Validation | None = None) -> list[tuple[str, dict[str, Any]]]:
    """What a result and a second look tell of their making, in groups: (heading, {name: value})."""
    left, out = dict(told), []
    for heading, keys in PROVENANCE.items():
        if group := {NAMES.get(key, key): left.pop(key) for key in keys if key in left}:
            models = group.get("models")
            out.append((heading, dict(models) if heading == "Models" and isinstance(models, Mapping) else group))
    if left:
        out.append(("Other", left))
    if validation is not None:
        said = {name: getattr(validation, name) for name in ("detector", "scorer", "independent")}
        out.append(("Second look", {**said, **validation.provenance}))
    return out
