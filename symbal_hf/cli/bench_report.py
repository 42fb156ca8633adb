"""`symbal bench report`: the scores of one or several runs, as tables and figures beside the paper's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from symbal_hf.cli.screen import progress, say


def report(
    results: Annotated[list[Path], typer.Argument(help="Folders that `symbal bench run` wrote, one a run.")],
    benchmark: Annotated[
        str | None,
        typer.Option(help="Folder or Hub id of the benchmark of the runs; by default the one that was built last."),
    ] = None,
    judge: Annotated[str, typer.Option(help="exact, lite, hf:MODEL[@revision] or openai:URL#MODEL.")] = "lite",
    out: Annotated[Path, typer.Option(help="Folder for report.md, scores.json, tables and figures.")] = Path(
        "symbal-report"
    ),
    k: Annotated[list[int] | None, typer.Option("--k", help="How many names count; 1 and 5 by default.")] = None,
    missing: Annotated[
        Literal["wrong", "left_out"], typer.Option(help="What a setting without a result counts as.")
    ] = "wrong",
    resamples: Annotated[int, typer.Option(help="Of the bootstrap; 0: no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    store: Annotated[Path | None, typer.Option(help="File that keeps what a judge said; else the user's own.")] = None,
    revision: Annotated[str | None, typer.Option(help="Of the benchmark on the Hub.")] = None,
) -> None:
    """Score runs beside each other, and write the paper's tables and figures for them."""
    from symbal_hf.bench import report as bench_report
    from symbal_hf.bench.results import read_manifest
    from symbal_hf.bench.settings import open_bench
    from symbal_hf.core.store import Store

    for folder in results:
        read_manifest(folder)  # a benchmark may have to be fetched: what is wrong with a folder is said before
    scores = bench_report.report(
        results, bench=open_bench(benchmark, revision=revision), judge=judge, k=k or (1, 5), out=out, missing=missing,
        resamples=resamples, seed=seed, store=Store(store) if store else None, progress=progress,
    )  # fmt: skip
    say((out / "report.md").read_text("utf-8"))  # its tables line up on a screen
    say(f"scored {len(scores['runs'])} runs; wrote {out / 'report.md'}, with scores, tables and figures beside it")
