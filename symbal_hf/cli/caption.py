"""`symbal caption`: let a model caption images, for an audit of what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from symbal_hf.cli.options import ConcurrencyOption, DeviceMapOption, SeedOption
from symbal_hf.cli.screen import progress, say
from symbal_hf.data.columns import SourceFormat


def caption(
    images: Annotated[
        str,
        typer.Argument(
            help="A folder of images, a table with a column of them, parquet or tar shards, or a Hub dataset id."
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="hf:MODEL[@revision], openai:URL#MODEL, llava-1.5-7b, llava-1.5-13b, llava-onevision-7b, or "
            "aya-vision-8b (gated: accept its licence on the Hub first)."
        ),
    ],
    out: Annotated[Path, typer.Option(help="A .jsonl file, which names the images, or .parquet, which holds them.")],
    prompt: Annotated[str | None, typer.Option(help="What the model is asked, word for word.")] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Folder whose describe_image.jinja replaces the packaged prompt.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(help="Tokens of a caption, at most.")] = 512,
    temperature: Annotated[float, typer.Option(help="0: the likeliest caption; above, captions are drawn.")] = 0.0,
    seed: SeedOption = 0,
    batch_size: Annotated[int, typer.Option(help="Images at once in this process.")] = 8,
    concurrency: ConcurrencyOption = 32,
    device: Annotated[str, typer.Option(help="Where a model of this process runs: auto, cpu, cuda, cuda:1, mps.")] = (
        "auto"
    ),
    dtype: Annotated[str, typer.Option(help="Its numbers: auto, float32, bfloat16, float16.")] = "auto",
    device_map: DeviceMapOption = None,
    image_column: Annotated[str | None, typer.Option(help="Column of images or image paths.")] = None,
    image_root: Annotated[
        Path | None, typer.Option(help="Folder that image paths are relative to and must stay inside.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Read at most this many rows.")] = None,
    sample: Annotated[int | None, typer.Option(help="Caption this many of them, drawn at random.")] = None,
    on_bad_row: Annotated[
        Literal["error", "warn", "skip"], typer.Option(help="Stop at a bad row, or leave it out and count it.")
    ] = "warn",
    source_format: Annotated[
        SourceFormat, typer.Option(help="How the source is read. auto: as its structure says.")
    ] = "auto",
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Fetch images that are URLs.")] = False,
) -> None:
    """Caption images with a model, into a file for `symbal audit`; a killed run goes on where it was."""
    from symbal_hf.captioning.caption import caption as run_caption
    from symbal_hf.data.images_only import load_images
    from symbal_hf.models.captioner import ASKED, CAPTIONERS, captioner_spec
    from symbal_hf.models.chat.prompting import Prompts
    from symbal_hf.models.estimate import estimate_captions

    captioner_spec(model)
    rows = load_images(
        images, image_column=image_column, image_root=image_root, limit=limit, sample=sample, seed=seed,
        on_bad_row=on_bad_row, source_format=source_format, allow_download=allow_download,
    )  # fmt: skip
    known = CAPTIONERS.get(model)
    cost = estimate_captions(
        len(rows), model, prompt or Prompts(prompts).source(ASKED), max_tokens=max_tokens,
        image_tokens=400 if known is None else known.image_tokens,
    )  # fmt: skip
    each = f"about {cost.tokens_in // len(rows):,} tokens each to read and at most {max_tokens:,} to write"
    say(f"read {rows.source}: {len(rows):,} images, {each}")
    if known is not None:
        size = f"{known.gpu_gb:g} GB of GPU memory, {known.disk_gb:g} GB to download"
        say(f"{known.name}: {size}, licence {known.licence}")
    done = run_caption(
        rows, model=model, out=out, prompt=prompt, prompts=prompts, max_tokens=max_tokens, temperature=temperature,
        seed=seed, batch_size=batch_size, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map,
        limit=limit, sample=sample, on_bad_row=on_bad_row, progress=progress,
    )  # fmt: skip
    if on_bad_row == "warn":
        for row in done.skipped[:10]:
            typer.echo(f"left out {row.row_id}: {row.reason}", err=True)
        if len(done.skipped) > 10:
            typer.echo(f"... and {len(done.skipped) - 10:,} more, see {done.path.name}.meta.json", err=True)
    left = f"; {len(done.skipped):,} rows are left out, {done.failed:,} of them by the model" if done.skipped else ""
    say(f"wrote {done.path}: {done.captioned:,} captions, {done.cached:,} known from before{left}")
    say(f"next: symbal audit {done.path} --out audit{' --allow-download' if allow_download else ''}")
