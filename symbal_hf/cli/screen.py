"""What commands print, and how they show that work goes on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str) -> None:
    """One line on the screen."""
    typer.echo(text)


def say_by(template: str, **values: Any) -> None:
    """Print what a template of this folder makes of these values."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader("symbal_hf", "cli"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    jinja.filters |= {"n": "{:,}".format, "repr": repr, "zip": zip}
    say(jinja.get_template(f"{template}.txt.jinja").render(values).rstrip())


def screen(width: int = 120) -> Console:
    """Where tables are printed, `width` characters wide where nobody watches."""
    from rich.console import Console

    return Console(stderr=False, width=None if sys.stdout.isatty() else width)


def show_table(
    title: str, left: Sequence[str], right: Sequence[str], rows: Iterable[Sequence[str]], *, width: int = 120
) -> None:
    """Print a table whose columns are headed by `left` and, for numbers, by `right`."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(*left, title=escape(title))
    for name in right:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*map(escape, row))
    screen(width).print(table)


def progress(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """`items` with a progress bar; one line every ten seconds where nobody watches."""
    from tqdm import tqdm

    return tqdm(items, desc=label, total=total, mininterval=0.5 if sys.stderr.isatty() else 10)
