"""The `symbal` command: audit a captioned dataset, see the demo; `symbal bench` is in cli_bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from symbal_hf.cli.bench import bench
from symbal_hf.cli.bench_report import report
from symbal_hf.cli.bench_run import run as bench_run
from symbal_hf.cli.cache import cache
from symbal_hf.cli.caption import caption
from symbal_hf.cli.compare import compare
from symbal_hf.cli.judge import judge
from symbal_hf.cli.leaderboard import leaderboard, submit
from symbal_hf.cli.metric import metric
from symbal_hf.cli.models import estimate, serve_command
from symbal_hf.cli.options import (
    ConcurrencyOption,
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    PromptsOption,
    SeedOption,
)
from symbal_hf.cli.repair import repair
from symbal_hf.cli.report import report_command
from symbal_hf.cli.screen import progress, say, screen
from symbal_hf.cli.validate import validate_command
from symbal_hf.data.columns import SourceFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from symbal_hf.data.table import AuditData
    from symbal_hf.results.findings import AuditResult, Finding

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # brackets in help texts are brackets
    pretty_exceptions_enable=False,
    help="Find the errors that a captioning model keeps making, and what in the image sets them off.",
)
bench.command("run")(bench_run)
bench.command()(report)
app.add_typer(bench, name="bench")
app.add_typer(cache, name="cache")
app.add_typer(judge, name="judge")
app.add_typer(leaderboard, name="leaderboard")
app.add_typer(metric, name="metric")
app.command()(compare)
app.command()(caption)
app.command()(estimate)
app.command()(repair)
app.command()(submit)
app.command("serve-command")(serve_command)
app.command("report")(report_command)
app.command("validate")(validate_command)

OutOption = Annotated[Path, typer.Option(help="Folder for findings.json, findings.csv and report.html.")]


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; an expected failure is one sentence on stderr and exit code 2."""
    from symbal_hf.core.errors import BadData, ChatFailed, DeadRank, MissingModel

    try:
        app(arguments, prog_name="symbal")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (BadData, ChatFailed, DeadRank, MissingModel, FileNotFoundError, ValueError) as error:
        typer.echo(f"symbal: {error}", err=True)
        return 2
    return 0


def main() -> None:
    """The `symbal` program."""
    sys.exit(run())


@app.command()
def audit(
    source: Annotated[
        str, typer.Argument(help="A table file, a folder, or a Hub dataset id (ns/name[:config][@split]).")
    ],
    out: OutOption = Path("symbal-out"),
    preset: Annotated[str, typer.Option(help="Named composition of models.")] = "lite",
    method: Annotated[Literal["association", "paper"], typer.Option(help="Detection method.")] = "association",
    scorer: Annotated[
        Literal["auto", "embedding", "reference", "objects"],
        typer.Option(help="What captions are checked against: the image, references, or objects. auto: the surest."),
    ] = "auto",
    image_column: Annotated[str | None, typer.Option(help="Column of images or image paths.")] = None,
    caption_column: Annotated[str | None, typer.Option(help="Column of generated captions.")] = None,
    reference_column: Annotated[str | None, typer.Option(help="Column of reference captions.")] = None,
    objects_column: Annotated[str | None, typer.Option(help="Column of the objects that are truly there.")] = None,
    image_root: Annotated[
        Path | None, typer.Option(help="Folder that image paths are relative to and must stay inside.")
    ] = None,
    join: Annotated[Path | None, typer.Option(help="A second table, paired by id, such as objects.jsonl.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="JSON {class: [synonyms]} or a text file with one class a line.")
    ] = None,
    source_format: Annotated[
        SourceFormat, typer.Option(help="How the source is read. auto: as its structure says.")
    ] = "auto",
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Fetch images that are URLs.")] = False,
    limit: Annotated[int | None, typer.Option(help="Read at most this many rows.")] = None,
    sample: Annotated[int | None, typer.Option(help="Audit this many of them, drawn at random.")] = None,
    top_k: Annotated[int, typer.Option(help="At most this many findings.")] = 5,
    tau: Annotated[float, typer.Option(help="Least confirmed share of a finding, in [0, 1].")] = 0.7,
    alpha: Annotated[float, typer.Option(help="Largest corrected p-value of a finding, in (0, 1).")] = 0.05,
    min_rate: Annotated[float, typer.Option(help="Least error rate of a finding where v is shown, in [0, 1].")] = 0.05,
    text_encoder: Annotated[
        str | None, typer.Option(help="open_clip:NAME/TAG, transformers:MODEL, st:MODEL, or lite.")
    ] = None,
    image_encoder: Annotated[str | None, typer.Option(help="open_clip:NAME/TAG, transformers:MODEL, or lite.")] = None,
    scorer_1: Annotated[
        str | None, typer.Option(help="embedding[:ENCODER], text-only[:CHAT] or vision-language[:CHAT], in stage 1.")
    ] = None,
    scorer_2: Annotated[str | None, typer.Option(help="The same in stage 2 of the paper's method.")] = None,
    summarizer_1: Annotated[
        str | None, typer.Option(help="Names t in the paper's method: phrases (no language model) or text-only[:CHAT].")
    ] = None,
    summarizer_2: Annotated[
        str | None, typer.Option(help="Names v there: phrases, text-only[:CHAT] or vision-language[:CHAT].")
    ] = None,
    captioner: Annotated[
        str | None, typer.Option(help="Captions images where no references are: a CHAT, or file:captions.jsonl.")
    ] = None,
    chat: Annotated[
        str | None, typer.Option(help="CHAT of parts that name none: hf:MODEL[@revision] or openai:URL#MODEL.")
    ] = None,
    prompts: PromptsOption = None,
    concurrency: ConcurrencyOption = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    device_map: DeviceMapOption = None,
    devices: Annotated[
        int, typer.Option(help="Processes that embed on this machine, of one GPU each where the encoder is on one.")
    ] = 1,
    num_nodes: Annotated[
        int, typer.Option(help="Machines, where torchrun, fabric run or srun has started this on each of them.")
    ] = 1,
    members: Annotated[int, typer.Option(help="Members of a cluster that a summarizer looks at, at most.")] = 60,
    pair: Annotated[
        list[str] | None, typer.Option(help="'sink|toilet': a t and a v to measure whether or not found; repeatable.")
    ] = None,
    seed: SeedOption = 0,
    on_bad_row: Annotated[
        Literal["error", "warn", "skip"], typer.Option(help="Stop at a bad row, or leave it out and count it.")
    ] = "warn",
) -> None:
    """Audit captions: which error recurs, and what in the image goes with it."""
    from symbal_hf.auditing.asked import read_pairs
    from symbal_hf.auditing.engine import audit as run_audit
    from symbal_hf.data.table import load_data

    pairs = read_pairs(pair or [])
    data = load_data(
        source, image_column=image_column, caption_column=caption_column, reference_column=reference_column,
        objects_column=objects_column, image_root=image_root, join=join, limit=limit, sample=sample,
        seed=seed, on_bad_row=on_bad_row, source_format=source_format, allow_download=allow_download,
    )  # fmt: skip
    place = "" if data.images is None or data.images.root is None else f", images under {data.images.root}"
    say(f"read {data.source}: {len(data):,} rows, {len(data.skipped):,} left out{place}")
    result = run_audit(
        data, preset=preset, method=method, scorer=scorer, top_k=top_k, tau=tau, alpha=alpha, min_rate=min_rate,
        seed=seed, on_bad_row=on_bad_row, progress=progress, vocabulary=vocabulary, limit=limit, sample=sample,
        text_encoder=text_encoder, image_encoder=image_encoder, scorer_1=scorer_1, scorer_2=scorer_2,
        summarizer_1=summarizer_1, summarizer_2=summarizer_2, captioner=captioner, chat=chat, prompts=prompts,
        concurrency=concurrency, members=members, device=device, dtype=dtype, device_map=device_map,
        devices=devices, num_nodes=num_nodes, pairs=pairs,
    )  # fmt: skip
    if on_bad_row == "warn":
        for row in result.skipped[:10]:
            typer.echo(f"left out row {row.row_id}: {row.reason}", err=True)
        if len(result.skipped) > 10:
            typer.echo(f"... and {len(result.skipped) - 10:,} more, see findings.json", err=True)
    _finish(result, out, data)


@app.command()
def demo(
    out: OutOption = Path("symbal-demo"),
    rows: Annotated[int, typer.Option(help="How many scenes to draw.")] = 600,
    seed: SeedOption = 7,
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
    from symbal_hf.data.pixels import thumbnails_of
    from symbal_hf.report.folder import with_map
    from symbal_hf.report.page import write_report

    result, no_map = with_map(result, data, progress=progress)
    if no_map is not None:
        say(f"no map of facts: {no_map}")
    paths = result.write(out)
    paths["html"] = write_report(result, out / "report.html", thumbnail=thumbnails_of(data))
    _table(result)
    say("wrote " + ", ".join(str(p) for p in paths.values()))


def _table(result: AuditResult) -> None:
    console = screen()
    if not result.findings:
        console.print(
            f"[bold]Nothing systematic was found[/bold] in {result.counts['rows']:,} rows: {result.why_none}."
        )
    else:
        console.print(_findings(f"Systematic misalignments in {result.counts['rows']:,} captions", result.findings))
    if result.asked:
        console.print(_findings("Pairs that were asked for", result.asked))


def _findings(title: str, findings: Sequence[Finding]) -> Table:
    from rich.table import Table

    table = Table(title=title)
    for name in (
        "captions wrongly say",
        "when the image shows",
        "error rate with / without",
        "times as often",
        "V",
        "p",
    ):
        table.add_column(name, justify="left" if name.startswith(("captions", "when")) else "right")
    for f in findings:
        times = f"{f.risk_ratio:.1f} ({f.risk_ratio_low:.1f}-{f.risk_ratio_high:.1f})"
        table.add_row(
            f.textual_error, f.visual_feature, f"{f.error_rate_with:.1%} / {f.error_rate_without:.1%}",
            times if f.risk_ratio_low or f.risk_ratio_high < 1e9 else "unknown", f"{f.cramers_v:.2f}",
            f"{f.p_value_corrected:.1e}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    main()
