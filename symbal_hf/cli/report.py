"""`symbal report`: the page of a finished audit, written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symbal_hf.cli.screen import progress, say


def report_command(
    folder: Annotated[Path, typer.Argument(help="Folder that `symbal audit --out` wrote.", metavar="DIR")],
    source: Annotated[str | None, typer.Option(help="Where the audited rows lie now, when they were moved.")] = None,
    image_root: Annotated[
        Path | None, typer.Option(help="Folder that image paths are relative to, when it is another now.")
    ] = None,
    join: Annotated[Path | None, typer.Option(help="The second table, when it is elsewhere now.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Caption audit",
) -> None:
    """Write report.html anew, with the second look of `symbal validate` where there is one."""
    from symbal_hf.report.folder import write_report_of

    done = write_report_of(folder, source=source, image_root=image_root, join=join, title=title, progress=progress)
    if done.no_pictures is not None:
        say(f"no pictures: {done.no_pictures}")
    if done.no_map is not None:
        say(f"no map of facts: {done.no_map}")
    say(f"wrote {done.path}")
