"""A result with everything that a report can show, its second look, and pictures of many shapes."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from PIL import Image
from report_page import audit, finding

from symbal_hf.data.pixels import jpeg_thumbnail
from symbal_hf.results.fact_map import FactMap, MapCluster, MapPoint
from symbal_hf.results.findings import Affected, AuditResult, Example, Finding, Skipped
from symbal_hf.results.validation import Box, HumanAgreement, Validated, Validation
from symbal_hf.stats.contingency import risk_ratio

SHAPES = {"wide": (400, 150), "tall": (120, 360), "square": (300, 300), "small": (40, 30)}
SAID = "A {t} stands on the desk."


def example_of(row_id: str, t: str, alignment: float | None) -> Example:
    return Example(row_id, f"There is a wall. {SAID.format(t=t)} It is **day** outside.", SAID.format(t=t), alignment)


def found(t: str, v: str, a: int, n1: int, b: int, n0: int, *, aligned: bool = True) -> Finding:
    """A finding whose examples are named after their shapes, each with and without v."""
    rows = [f"{t} {shape} {i}" for shape in SHAPES for i in range(3)]
    examples = tuple(example_of(row, t, 0.01 + i / 100 if aligned else None) for i, row in enumerate(rows))
    listed = tuple(
        Affected(row, (SAID.format(t=t),), i % 3 < 2, 0.01 + i / 100 if aligned else None) for i, row in enumerate(rows)
    )
    more = tuple(
        Affected(f"{t} {i}", (SAID.format(t=t), f"Beside the {t} is a lamp."), i < a, 0.2 if aligned else None)
        for i in range(a + b - len(rows))
    )
    return finding(
        a, n1, b, n0, textual_error=t, visual_feature=v, textual_error_candidates=(t, f"old {t}"),
        visual_feature_candidates=(v, f"white {v}"), examples=examples, affected=(*listed, *more),
        confirmed_by="nanodet-g" if aligned else "objects", confirmed_rows=a - 3, witness_rows=a,
        missed_with=0.8512 if aligned else None, missed_without=0.0341 if aligned else None,
    )  # fmt: skip


def fact_map_of(findings: tuple[Finding, ...], *, facts: int = 90, seed: int = 0) -> FactMap:
    """Facts in three heaps, the first of each heap wrong."""
    draw = np.random.default_rng(seed)
    names, middles = (
        ("office desk", "kitchen", "long road through a wide green valley"),
        ((0.2, 0.3), (0.8, 0.4), (0.5, 0.8)),
    )
    points = []
    for i in range(facts):
        x, y = np.clip(np.array(middles[i % 3]) + draw.normal(0, 0.07, 2), 0, 1).round(4).tolist()
        wrong = i % len(findings) if findings and i < 8 else None
        points.append(MapPoint(x, y, f"Fact <{i}> & a “quote”.", f"row {i}", i % 3, wrong))
    clusters = tuple(
        MapCluster(
            name,
            sum(p.cluster == k for p in points),
            sum(p.cluster == k and p.finding is not None for p in points),
            f"Fact <{k}> & a “quote”.",
        )
        for k, name in enumerate(names)
    )
    return FactMap(tuple(points), clusters, 54321, 600, 8, "an-encoder", "t-SNE", seed)


def everything() -> AuditResult:
    """Two findings, one of them without alignment, a map, pairs that were asked for, skipped rows."""
    findings = (
        found("printer", "computer monitor", 90, 1200, 209, 8800),
        found("cat", "sofa", 12, 40, 7, 900, aligned=False),
    )
    skipped = tuple(Skipped(f"s{i}", "no caption" if i % 4 else "image cannot be read") for i in range(40))
    unknown = finding(0, 40, 0, 900, textual_error="unicorn", visual_feature="rainbow")
    result = audit(
        *findings,
        skipped=skipped,
        provenance={
            "symbal_hf": "0.1.0", "python": "3.11", "preset": "lite", "source": "rows.jsonl", "seed": 7, "tau": 0.7,
            "models": {"text": "small"}, "read": {"source": "/data/rows.jsonl", "join": "/data/objects.jsonl"},
            "rows_sha256": "ab" * 32, "vocabulary": None, "house rule": ["one", "two"],
        },
    )  # fmt: skip
    asked = (replace(unknown, risk_ratio=1.0, risk_ratio_low=0.0, risk_ratio_high=1e9, examples=(), affected=()),)
    return replace(result, asked=asked, fact_map=fact_map_of(findings))


def validation_of(result: AuditResult, *, independent: bool = True) -> Validation:
    """A second look at every finding, a box or two in most example rows."""
    made = []
    for number, f in enumerate(result.findings):
        boxes = {
            e.row_id: (
                Box(f.visual_feature, 0.5 + i / 100, 0.05, 0.1, 0.45, 0.6),
                *([Box("a <b>second</b> & very long name of a thing", 0.31, 0.7, 0.5, 1.0, 1.0)] if i % 4 == 0 else []),
            )
            for i, e in enumerate(f.examples)
            if i % 5
        }
        a, n1, b, n0 = 40 + number, 60, 30, 700
        precise = HumanAgreement(60, 57, 0.8973, 0.7812, 0.9911, 20, 18, 0.9, 0.699, 0.9721, "confirmed")
        human = (precise, HumanAgreement(3, 3, None, None, None))[number % 2]
        counts = (a, n1, b, n0, 17 + number)
        ratio = risk_ratio(a, n1, b, n0)
        made.append(Validated(f.textual_error, f.visual_feature, *counts, *ratio, 2.5e-9, human=human, boxes=boxes))
    return Validation("owl-vit", "qwen-vl", independent, tuple(made), {"threshold": 0.25})


def photo(row_id: str) -> bytes:
    """A small JPEG of the shape that the row is named after: dark, with a bright patch where the first box is."""
    width, height = SHAPES[next((shape for shape in SHAPES if shape in row_id), "square")]
    picture = Image.new("RGB", (width, height), (30, 60, 40))
    picture.paste((230, 90, 40), (round(0.05 * width), round(0.1 * height), round(0.45 * width), round(0.6 * height)))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return jpeg_thumbnail(out.getvalue())
