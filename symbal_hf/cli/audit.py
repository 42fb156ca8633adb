"""`symbal audit` and `symbal demo`: from captions to findings, a table on the screen and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symbal_hf.cli.options import MethodOption, PresetOption, SourceArgument, VocabularyOption, like, warn_left_out
from symbal_hf.cli.screen import progress, say, screen, show_table
from symbal_hf.core.options import Asking, Chance, Gates, Parts, Placing, Processes, Reading, Spending, Summing, given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from symbal_hf.data.table import AuditData
    from symbal_hf.results.findings import AuditResult, Finding

OutOption = Annotated[Path, typer.Option(help="Folder for findings.json, findings.csv and report.html.")]


def audit(
    source: SourceArgument,
    *,
    out: OutOption = Path("symbal-out"),
    preset: PresetOption = "lite",
    method: MethodOption = "association",
    vocabulary: VocabularyOption = None,
    pair: Annotated[
        list[str] | None, typer.Option(help="'sink|toilet': a t and a v to measure whether or not found; repeatable.")
    ] = None,
    reading: Reading,
    parts: Parts,
    gates: Gates,
    summing: Summing,
    asking: Asking,
    spending: Spending,
    placing: Placing,
    processes: Processes,
    chance: Chance,
) -> None:
    """Audit captions: which error recurs, and what in the image goes with it."""
    from symbal_hf.auditing.asked import read_pairs
    from symbal_hf.auditing.engine import audit as run_audit
    from symbal_hf.data.table import load_data

    pairs = read_pairs(pair or [])
    data = load_data(source, **given(reading, chance))
    root = "" if data.images is None or data.images.root is None else f", images under {data.images.root}"
    say(f"read {data.source}: {len(data):,} rows, {len(data.skipped):,} left out{root}")
    result = run_audit(
        data,
        preset=preset,
        method=method,
        vocabulary=vocabulary,
        pairs=pairs,
        progress=progress,
        **given(reading, parts, gates, summing, asking, spending, placing, processes, chance),
    )
    if reading.on_bad_row == "warn":
        warn_left_out(result.skipped, "findings.json")
    _finish(result, out, data)


def demo(
    out: OutOption = Path("symbal-demo"),
    rows: Annotated[int, typer.Option(min=1, help="How many scenes to draw.")] = 600,
    seed: Annotated[int, like(Chance, "seed")] = 7,
) -> None:
    """Draw scenes, plant an error into their captions, and let an audit that does not know it find it."""
    from benchmark_builder.demo import plant_demo
    from symbal_hf.auditing.engine import audit as run_audit
    from symbal_hf.data.table import load_data

    folder, truth = plant_demo(out / "scenes", rows=rows, seed=seed)
    say(
        f"drew {rows} scenes under {folder} and planted one error: captions speak of a {truth.textual_error} "
        f"where there is none, mostly with a {truth.visual_feature} in view (Cramér's V {truth.strength:.2f})"
    )
    data = load_data(folder / "captions.jsonl")
    result = run_audit(data, seed=seed, progress=progress)
    _finish(result, out, data)


def _finish(result: AuditResult, out: Path, data: AuditData) -> None:
    from symbal_hf.data.table import thumbnails_of
    from symbal_hf.report.folder import with_map
    from symbal_hf.report.page import write_report

    result, no_map = with_map(result, data, progress=progress)
    if no_map is not None:
        say(f"no map of facts: {no_map}")
    paths = result.write(out)
    paths["html"] = write_report(result, out / "report.html", thumbnail=thumbnails_of(data))
    n = result.counts["rows"]
    if result.findings:
        _show(f"Systematic misalignments in {n:,} captions", result.findings)
        for f in result.findings:
            say(f"({f.textual_error}, {f.visual_feature}): confirmed by {f.confirmation}")
    else:
        screen().print(f"[bold]Nothing systematic was found[/bold] in {n:,} rows: {result.why_none}.")
    if result.budget:
        say(result.budget)
    if result.suspected:
        _show("Suspected, on one judge's word alone", result.suspected)
        for f in result.suspected:
            say(f"({f.textual_error}, {f.visual_feature}): {f.reason}")
    if result.asked:
        _show("Pairs that were asked for", result.asked)
    say("wrote " + ", ".join(str(p) for p in paths.values()))


def _show(title: str, findings: Sequence[Finding]) -> None:
    rows = []
    for f in findings:
        times = f"{f.risk_ratio:.1f} ({f.risk_ratio_low:.1f}-{f.risk_ratio_high:.1f})"
        rows.append(
            (
                f.textual_error,
                f.visual_feature,
                f"{f.error_rate_with:.1%} / {f.error_rate_without:.1%}",
                times if f.risk_ratio_low or f.risk_ratio_high < 1e9 else "unknown",
                f"{f.cramers_v:.2f}",
                f"{f.p_value_corrected:.1e}",
            )
        )
    names = ("captions wrongly say", "when the image shows")
    show_table(title, names, ("error rate with / without", "times as often", "V", "p"), rows)
