"""The `symbal` command: all its commands, and what it does with what goes wrong."""

from __future__ import annotations

import sys

import typer

from symbal_hf.cli.audit import audit, demo
from symbal_hf.cli.bench import bench
from symbal_hf.cli.cache import cache
from symbal_hf.cli.captioning import caption, estimate, serve_command
from symbal_hf.cli.followup import compare, repair, report, validate
from symbal_hf.cli.hub import leaderboard, submit
from symbal_hf.cli.options import Commands
from symbal_hf.cli.scoring import judge, metric
from symbal_hf.core.errors import BadData, ChatFailed, DeadRank, MissingModel, UnknownOption

EXPECTED = (BadData, ChatFailed, DeadRank, MissingModel, UnknownOption, FileNotFoundError, ValueError)

app = Commands("Find the errors that a captioning model keeps making, and what in the image sets them off.")
for command in (audit, demo, caption, validate, compare, repair, report, estimate, serve_command, submit):
    app.command()(command)
for name, commands in (
    ("bench", bench), ("cache", cache), ("judge", judge), ("leaderboard", leaderboard), ("metric", metric)
):  # fmt: skip
    app.add_typer(commands, name=name)


def run(arguments: list[str]) -> int:
    """Run a command in this process; its exit code, where an expected failure is one sentence on stderr and code 2."""
    try:
        app(arguments, prog_name="symbal")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except EXPECTED as error:
        typer.echo(f"symbal: {error}", err=True)
        return 2
    return 0


def main() -> None:
    """Run the command that was called."""
    sys.exit(run(sys.argv[1:]))
