"""What commands print, and how they show that work goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str) -> None:
    """One line on the screen."""
    typer.echo(text)


def screen() -> Console:
    """Where tables are printed, 120 characters wide where nobody watches."""
    from rich.console import Console

    return Console(stderr=False, width=None if sys.stdout.isatty() else 120)


def progress(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """`items` with a progress bar; one line every ten seconds where nobody watches."""
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, mininterval=0.5 if sys.stderr.isatty() else 10)
