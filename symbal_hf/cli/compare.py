"""`symbal compare`: what became of the findings of one audit in another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from symbal_hf.cli.screen import progress, say, screen

if TYPE_CHECKING:
    from symbal_hf.results.comparison import Comparison


def compare(
    a: Annotated[Path, typer.Argument(help="Folder of the audit from before, with its findings.json.")],
    b: Annotated[Path, typer.Argument(help="Folder of the audit from after.")],
    out: Annotated[
        Path, typer.Option(help="New or empty folder for comparison.json, comparison.csv and comparison.md.")
    ] = Path("symbal-comparison"),
    match: Annotated[
        Literal["lite", "exact"], typer.Option(help="Who says that two names mean one thing; exact needs no model.")
    ] = "lite",
    measure: Annotated[
        bool, typer.Option(help="Read and judge the rows again, so that each finding is measured on both sides.")
    ] = True,
    source_a: Annotated[Path | None, typer.Option(help="Where the rows of A lie now, if they were moved.")] = None,
    source_b: Annotated[Path | None, typer.Option(help="Where the rows of B lie now, if they were moved.")] = None,
) -> None:
    """Compare two audits: which errors are gone, less, the same, more or new."""
    from symbal_hf.followup.compare import compare as run_compare
    from symbal_hf.results.comparison import check_new

    check_new(out)
    found = run_compare(
        a, b, match=match, measure=measure, source_a=source_a, source_b=source_b, progress=progress
    )  # fmt: skip
    _show(found)
    for note in found.notes:
        say(f"note: {note}")
    say(found.sentence)
    say("wrote " + ", ".join(str(path) for path in found.write(out).values()))


def _show(found: Comparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    from symbal_hf.results.comparison import SAME, cells

    if not found.findings:
        return
    how = "the same images" if found.paired else f"not paired: {found.why_unpaired}"
    table = Table(title=f"A: {escape(found.a.source)}, B: {escape(found.b.source)} ({escape(how)})")
    for name in ("captions wrongly say", "when the image shows", "in B"):
        table.add_column(name)
    for name in ("A: with / without", "B: with / without", "points (95 %)", "p (Holm)"):
        table.add_column(name, justify="right")
    for one in found.findings:
        table.add_row(*map(escape, cells(one)))
    screen().print(table)
    if found.counts["same"]:
        say(SAME)
    for one in found.findings:
        if one.reason is not None:
            say(f"{one.textual_error} with {one.visual_feature} was not measured: {one.reason}")
