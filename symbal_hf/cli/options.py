"""Options that mean the same in several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SeedOption = Annotated[int, typer.Option(help="Seed of every random choice.")]
PromptsOption = Annotated[Path | None, typer.Option(help="Folder whose NAME.jinja replace the packaged prompts.")]
ConcurrencyOption = Annotated[int, typer.Option(help="Questions in flight to one server.")]
DeviceOption = Annotated[str, typer.Option(help="Where models of this process run: auto, cpu, cuda, cuda:1, mps.")]
DtypeOption = Annotated[str, typer.Option(help="Their numbers: auto, float32, bfloat16, float16.")]
DeviceMapOption = Annotated[
    str | None, typer.Option(help="auto: spread a model that fits no single GPU over all of them.")
]
