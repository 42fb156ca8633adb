"""What commands print, and how they show that work goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import typer


def say(text: str) -> None:
    """One line on the screen."""
    typer.echo(text)


def progress(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """`items` with a progress bar; one line every ten seconds where nobody watches."""
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, mininterval=0.5 if sys.stderr.isatty() else 10)
