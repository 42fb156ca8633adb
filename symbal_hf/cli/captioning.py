"""`symbal caption`, `estimate` and `serve-command`: captions by a model, what models need, how they are served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symbal_hf.captioning.options import Captioning
from symbal_hf.cli.options import MethodOption, Only, PresetOption, SourceArgument, like, warn_left_out
from symbal_hf.cli.screen import progress, say, show_table
from symbal_hf.core.options import Asking, Chance, Parts, Placing, Reading, given, refuse_idle

if TYPE_CHECKING:
    from symbal_hf.data.images_only import ImageRows
    from symbal_hf.data.table import AuditData
    from symbal_hf.models.estimate import Estimate

ImageReading = Only("image_column", "image_root", "limit", "sample", "on_bad_row", "source_format", "allow_download")

PresetParts = Only(
    "text_encoder", "image_encoder", "scorer_1", "scorer_2", "summarizer_1", "summarizer_2", "captioner", "chat"
)


def caption(
    images: Annotated[
        str,
        typer.Argument(
            help="A folder of images, a table with a column of them, parquet or tar shards, or a Hub dataset id."
        ),
    ],
    *,
    model: Annotated[
        str,
        typer.Option(
            help="hf:MODEL[@revision], openai:URL#MODEL, llava-1.5-7b, llava-1.5-13b, llava-onevision-7b, or "
            "aya-vision-8b (gated: accept its licence on the Hub first)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="A .jsonl file, which names the images, or .parquet, which holds them.")],
    captioning: Captioning,
    reading: Annotated[Reading, ImageReading],
    asking: Annotated[Asking, Only(prompts="Folder whose describe_image.jinja replaces the packaged prompt.")],
    placing: Placing,
    chance: Chance,
) -> None:
    """Caption images with a model, into a file for `symbal audit`; a killed run goes on where it was."""
    from symbal_hf.captioning.caption import caption as run_caption
    from symbal_hf.data.images_only import load_images
    from symbal_hf.models.captioner import ASKED, captioner_spec
    from symbal_hf.models.chat.prompting import Prompts

    captioner_spec(model)
    rows = load_images(images, **given(reading, chance))
    _announce(rows, model, captioning.prompt or Prompts(asking.prompts).source(ASKED), captioning.max_tokens)
    # Of the options of reading, those that do not tell how rows are read still count.
    how = given(captioning, reading, asking, placing, chance)
    done = run_caption(rows, model=model, out=out, progress=progress, **how)
    if reading.on_bad_row == "warn":
        warn_left_out(done.skipped, f"{done.path.name}.meta.json")
    left = f"; {len(done.skipped):,} rows are left out, {done.failed:,} of them by the model" if done.skipped else ""
    say(f"wrote {done.path}: {done.captioned:,} captions, {done.cached:,} known from before{left}")
    say(f"next: symbal audit {done.path} --out audit{' --allow-download' if reading.allow_download else ''}")


def _announce(rows: ImageRows, model: str, question: str, max_tokens: int) -> None:
    """What was read, what it will cost, and what the captioner needs where that is known."""
    from symbal_hf.models.captioner import CAPTIONERS
    from symbal_hf.models.estimate import estimate_captions

    known = CAPTIONERS.get(model)
    image_tokens = 400 if known is None else known.image_tokens
    cost = estimate_captions(len(rows), model, question, max_tokens=max_tokens, image_tokens=image_tokens)
    each = f"about {cost.tokens_in // len(rows):,} tokens each to read and at most {max_tokens:,} to write"
    say(f"read {rows.source}: {len(rows):,} images, {each}")
    if known is not None:
        size = f"{known.gpu_gb:g} GB of GPU memory, {known.disk_gb:g} GB to download"
        say(f"{known.name}: {size}, licence {known.licence}")


def estimate(
    source: SourceArgument,
    *,
    preset: PresetOption,
    method: MethodOption = "association",
    limit: Annotated[int | None, like(Reading, "limit")] = None,
    budget: Annotated[
        int | None, typer.Option(min=1, help="Questions about statements at most; see symbal audit --budget.")
    ] = None,
    image_tokens: Annotated[
        int | None, typer.Option(min=1, help="Tokens that one image costs.", show_default="400")
    ] = None,
    tflops: Annotated[
        float | None, typer.Option(min=1e-6, help="Useful teraflops a second over all GPUs.", show_default="400")
    ] = None,
    parts: Annotated[Parts, PresetParts],
) -> None:
    """Calls, tokens, memory and hours of an audit, or of a run over a whole benchmark; no model is loaded."""
    from symbal_hf.models.composition import load_preset
    from symbal_hf.models.estimate import estimate as count

    sources = _sources(source, limit)
    if preset == "lite" and not given(parts):
        refuse_idle("lite asks no chat model", method=None if method == "association" else method)
        refuse_idle("lite asks no chat model", budget=budget, image_tokens=image_tokens, tflops=tflops)
        for data, _ in sources:
            say(
                f"{data.source}: {len(data):,} rows. lite asks no chat model and needs no GPU: where captions are "
                f"checked against images it embeds each once, some 50 a second on one core ({len(data) / 3000:,.0f} "
                "minutes); with objects or references it reads no image."
            )
        return
    chosen = load_preset(preset)
    composition = chosen.composition.with_parts(**given(parts))
    costs = [
        count(
            data, composition, method=method, models=chosen.models, settings=n, budget=budget,
            image_tokens=image_tokens or 400, tflops=tflops or 400.0,
        ) for data, n in sources
    ]  # fmt: skip
    hours = [cost.hours for cost in costs if cost.hours is not None]
    if len(hours) < len(costs):
        refuse_idle("the preset does not say how large one of the chat models is, so hours are unknown", tflops=tflops)
    for cost, (data, _) in zip(costs, sources, strict=True):
        _show(cost, f"{data.source}: {cost.rows:,} rows, {cost.facts:,} different (image, fact) pairs, {method}")
    for model in chosen.models:
        say(
            f"{model.name}: {model.gpu_gb:g} GB of GPU memory, {model.disk_gb:g} GB to download, licence "
            f"{model.licence}{'. ' + model.note if model.note else ''}"
        )
    if len(hours) < len(costs):
        say("hours: unknown, since the preset does not say how large one of the chat models is")
    else:
        say(f"hours: {sum(hours):.1f} at {tflops or 400:g} useful teraflops a second (2 x parameters x tokens)")


def _sources(source: str, limit: int | None) -> list[tuple[AuditData, int]]:
    """The rows of a source, or of each group of a benchmark's settings, and how many datasets they stand for."""
    from symbal_hf.bench.estimate import sources
    from symbal_hf.bench.settings import open_bench
    from symbal_hf.data.benchmarks import is_built
    from symbal_hf.data.table import load_data

    if not is_built(Path(source)):
        return [(load_data(source, limit=limit), 1)]
    refuse_idle("a benchmark is counted whole", limit=limit)
    bench = open_bench(source)
    return [(data, n) for _, n, data in sources(bench, bench.settings)]


def _show(found: Estimate, title: str) -> None:
    rows = [(o.part, o.model, f"{o.calls:,}", f"{o.tokens_in:,}", f"{o.tokens_out:,}") for o in found.asked]
    rows += [(part, encoder, f"{n:,} embedded", "", "") for part, encoder, n in found.embedded]
    show_table(title, ("part", "model"), ("calls at most", "tokens in", "tokens out"), rows, width=140)


def serve_command(
    preset: PresetOption,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Of the first server; further ones take the next.", show_default="8000"),
    ] = None,
) -> None:
    """Print the line that serves each model of a preset by vLLM, and the option that makes an audit use it."""
    from symbal_hf.models.composition import load_preset

    models = () if preset == "lite" else load_preset(preset).models
    if all(model.serve is None for model in models):
        refuse_idle(f"the preset {preset} has no model to serve", port=port)
    if preset == "lite":
        say("# lite needs no server: it asks no chat model.")
        return
    free = port or 8000
    say("# vLLM pins an older transformers: give it an environment of its own (pip install vllm).")
    for model in models:
        if model.serve is None:
            say(f"# {model.name}: {model.note or 'runs in the process of the audit.'}")
            continue
        say(f"{model.serve} --port {free}")
        if model.parameters_b:
            say(f"#   symbal audit ... --preset {preset} --chat openai:http://localhost:{free}/v1#{model.name}")
        free += 1
