"""`symbal estimate` and `symbal serve-command`: what a composition will ask and need, and how its models are served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from symbal_hf.cli.screen import say

if TYPE_CHECKING:
    from symbal_hf.models.estimate import Estimate

Part = Annotated[str | None, typer.Option(help="In place of the preset's; see `symbal audit --help`.")]


def estimate(
    source: Annotated[
        str,
        typer.Argument(help="A table file, a folder, a Hub dataset id (ns/name[:config][@split]), or a benchmark."),
    ],
    preset: Annotated[str, typer.Option(help="Named composition, or a YAML file.")],
    method: Annotated[Literal["association", "paper"], typer.Option(help="Detection method.")] = "association",
    text_encoder: Part = None,
    image_encoder: Part = None,
    scorer_1: Part = None,
    scorer_2: Part = None,
    summarizer_1: Part = None,
    summarizer_2: Part = None,
    captioner: Part = None,
    chat: Part = None,
    limit: Annotated[int | None, typer.Option(help="Read at most this many rows.")] = None,
    image_tokens: Annotated[int, typer.Option(help="Tokens that one image costs.")] = 400,
    tflops: Annotated[float, typer.Option(help="Useful teraflops a second over all GPUs.")] = 400.0,
) -> None:
    """Calls, tokens, memory and hours of an audit, or of a run over a whole benchmark; no model is loaded."""
    from symbal_hf.bench.estimate import sources
    from symbal_hf.bench.settings import open_bench
    from symbal_hf.data.benchmarks import is_built
    from symbal_hf.data.table import load_data
    from symbal_hf.models.composition import load_preset
    from symbal_hf.models.estimate import estimate as count

    parts_given = (text_encoder, image_encoder, scorer_1, scorer_2, summarizer_1, summarizer_2, captioner, chat)
    if preset == "lite" and not any(parts_given) and not is_built(Path(source)):
        data = load_data(source, limit=limit)
        say(
            f"{data.source}: {len(data):,} rows. lite asks no chat model and needs no GPU: where captions are checked "
            f"against images it embeds each once, some 50 a second on one core ({len(data) / 3000:,.0f} minutes); with "
            "objects or references it reads no image."
        )
        return
    chosen = load_preset(preset)
    composition = chosen.composition.with_parts(
        text_encoder=text_encoder, image_encoder=image_encoder, scorer_1=scorer_1, scorer_2=scorer_2,
        summarizer_1=summarizer_1, summarizer_2=summarizer_2, captioner=captioner, chat=chat,
    )  # fmt: skip
    if is_built(Path(source)):
        bench = open_bench(source)
        parts = [(data, n) for _, n, data in sources(bench, bench.settings)]
    else:
        parts = [(load_data(source, limit=limit), 1)]
    hours: list[float | None] = []
    for data, n in parts:
        found = count(
            data, composition, method=method, models=chosen.models, settings=n, image_tokens=image_tokens,
            tflops=tflops,
        )  # fmt: skip
        _show(found, f"{data.source}: {found.rows:,} rows, {found.facts:,} different (image, fact) pairs, {method}")
        hours.append(found.hours)
    for model in chosen.models:
        say(
            f"{model.name}: {model.gpu_gb:g} GB of GPU memory, {model.disk_gb:g} GB to download, licence "
            f"{model.licence}{'. ' + model.note if model.note else ''}"
        )
    known = [one for one in hours if one is not None]
    if len(known) < len(hours):
        say("hours: unknown, since the preset does not say how large one of the chat models is")
    else:
        say(f"hours: {sum(known):.1f} at {tflops:g} useful teraflops a second (2 x parameters x tokens)")


def _show(found: Estimate, title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for name in ("part", "model", "calls at most", "tokens in", "tokens out"):
        table.add_column(name, justify="left" if name in ("part", "model") else "right")
    for one in found.asked:
        table.add_row(one.part, one.model, f"{one.calls:,}", f"{one.tokens_in:,}", f"{one.tokens_out:,}")
    for part, encoder, n in found.embedded:
        table.add_row(part, encoder, f"{n:,} embedded", "", "")
    Console(width=140).print(table)


def serve_command(
    preset: Annotated[str, typer.Option(help="Named composition, or a YAML file.")],
    port: Annotated[int, typer.Option(help="Port of the first server; further ones take the next.")] = 8000,
) -> None:
    """Print the line that serves each model of a preset by vLLM, and the option that makes an audit use it."""
    from symbal_hf.models.composition import load_preset

    if preset == "lite":
        say("# lite needs no server: it asks no chat model.")
        return
    chosen = load_preset(preset)
    say("# vLLM pins an older transformers: give it an environment of its own (pip install vllm).")
    for model in chosen.models:
        if model.serve is None:
            say(f"# {model.name}: {model.note or 'runs in the process of the audit.'}")
            continue
        say(f"{model.serve} --port {port}")
        if model.parameters_b:
            say(f"#   symbal audit ... --preset {preset} --chat openai:http://localhost:{port}/v1#{model.name}")
        port += 1
