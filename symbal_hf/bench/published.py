"""What the paper published (Varma et al., arXiv 2607.15216), row by row, and which rows belong beside a run."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

Stage = Literal["both", "t", "v"]
METHOD = "Symbal"  # what the table calls the paper's own method
EVERYTHING = frozenset(("natural", "medical"))  # the domains that the paper's "all" means


@dataclass(frozen=True)
class Published:
    """One row of the paper for one variant."""

    table: str  # its number, or "text"
    domain: str  # "natural", "medical" or "all" (both of them)
    stage: Stage  # "t", "v" or "both"
    variant: str  # "reference_free", "reference_based", or "either" where the paper names the better of them only
    encoder: str  # of texts in stage t, of images in stage v; "" where none is named
    scorer: str  # of alignment
    summarizer: str  # of clusters
    method: str  # "Symbal", or the baseline's name
    acc1: float | None  # share in [0, 1] that is right at 1, or None where it is not printed
    acc5: float | None  # the same at 5
    source: str  # where it is printed


@cache
def published() -> tuple[Published, ...]:
    """Every row, in the paper's order."""
    text = resources.files("symbal_hf.bench").joinpath("tables_paper/published.csv").read_text("utf-8")
    rows = []
    for row in csv.DictReader(text.splitlines()):
        shares = {name: round(float(row[name]) / 100, 4) if row[name] else None for name in ("acc1", "acc5")}
        rows.append(Published(**{**row, **shares}))  # type: ignore[arg-type]
    return tuple(rows)


def published_domain(domains: Iterable[str]) -> str | None:
    """What the paper calls settings of these domains, or None where it has no such settings."""
    found = frozenset(domains)
    if found == EVERYTHING:
        return "all"
    return next(iter(found)) if len(found) == 1 and found < EVERYTHING else None


def best(domain: str | None, variant: str, stage: Stage) -> Published | None:
    """The paper's own method there, in the composition that it chose, which its tables name first."""
    wanted = (domain, variant, stage, METHOD)
    return next((row for row in published() if (row.domain, row.variant, row.stage, row.method) == wanted), None)
