"""A page read as a reader does, and small results to show on one."""

from __future__ import annotations

import io
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image

from symbal_hf.report.page import write_report
from symbal_hf.results.findings import Affected, AuditResult, Example, Finding
from symbal_hf.stats.contingency import risk_ratio

VOID = {"meta", "img", "br"}
FACT = "A white printer stands on the desk."


class Page(HTMLParser):
    """Tags in order, texts with the elements around them, and the <data> elements by section; refuses crossed tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[list[tuple[str, dict[str, str]]], str]] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self.open.append(self.tags[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((list(self.open), data))

    def within(self, **wanted: str) -> list[tuple[list[tuple[str, dict[str, str]]], str]]:
        """Texts inside an element that has all these attributes (`tag` is its name, `cls` one of its classes)."""
        tag, cls = wanted.pop("tag", None), wanted.pop("cls", None)
        return [
            (around, text)
            for around, text in self.texts
            if any(
                tag in (None, name)
                and (cls is None or cls in attrs.get("class", "").split())
                and all(attrs.get(k) == v for k, v in wanted.items())
                for name, attrs in around
            )
        ]

    def text(self, **wanted: str) -> str:
        return " ".join("".join(text for _, text in self.within(**wanted)).split())

    def numbers(self, **wanted: str) -> list[tuple[str, float, str]]:
        """(name, exact value, text) of each <data>."""
        return [
            (around[-1][1]["class"], float(around[-1][1]["value"]), text)
            for around, text in self.within(**wanted)
            if around[-1][0] == "data"
        ]


def finding(a: int = 90, n1: int = 1200, b: int = 9, n0: int = 8800, **changes: object) -> Finding:
    ratio, low, high = risk_ratio(a, n1, b, n0)
    made = Finding(
        textual_error="printer",
        visual_feature="computer monitor",
        textual_error_candidates=("printer", "office printer", "copier"),
        visual_feature_candidates=("computer monitor", "screen"),
        cramers_v=0.2137,
        risk_ratio=ratio,
        risk_ratio_low=low,
        risk_ratio_high=high,
        p_value=2.04e-15,
        p_value_corrected=3.14e-12,
        errors_with_feature=a,
        rows_with_feature=n1,
        errors_without_feature=b,
        rows_without_feature=n0,
        confirmed_by="nanodet-g",
        confirmed_rows=71,
        witness_rows=90,
        missed_with=0.8512,
        missed_without=0.0341,
        examples=(Example("row-a", f"A desk. {FACT} A wall.", FACT, 0.1234), Example("row-b", f"{FACT} A cup.", FACT)),
        affected=tuple(Affected(f"id{i}", (FACT,), i < a) for i in range(a + b)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def audit(*findings: Finding, **changes: object) -> AuditResult:
    result = AuditResult(
        verdict="systematic" if findings else "none",
        findings=findings,
        suspects=(finding(2, 30, 0, 700, textual_error="cat", p_value_corrected=0.212, state="candidate"),),
        counts={"rows": 10000, "model_calls": 12},
        provenance={"version": "0.1.0", "models": {"text": "small"}, "splits": ["train", "test"], "seed": 7},
    )
    return replace(result, **changes)  # type: ignore[arg-type]


def render(result: AuditResult, folder: Path, **options: object) -> Page:
    return Page(write_report(result, folder / "report.html", **options).read_text("utf-8"))  # type: ignore[arg-type]


def noise(seed: int = 0, size: int = 256) -> bytes:
    """A picture that compresses as badly as any."""
    out = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def agrees(value: float, text: str) -> bool:
    """Is `text` the value, rounded to the digits it shows?"""
    text = text.replace("\u00a0", " ").replace(",", "").replace("\u2212", "-")
    if text == "One":
        return value == 1
    shown, percent = text.removesuffix(" %"), text.endswith(" %")
    digits, _, exponent = shown.partition("e")
    step = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(shown) - value * (100 if percent else 1)) <= 0.5001 * step + 1e-9 * percent
