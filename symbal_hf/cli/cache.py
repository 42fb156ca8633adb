"""`symbal cache`: what the result store holds, and how to make it smaller."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from symbal_hf.cli.options import Commands, StoreOption
from symbal_hf.cli.screen import say
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store, default_path

cache = Commands("See and prune the store of results.")

DAY = 86400.0
MB = 1_000_000


@cache.command()
def info(store: StoreOption = None) -> None:
    """Show the store's place and size, and its entries by kind and age."""
    if (path := _there(store)) is None:
        return
    opened = Store(path)
    kinds = opened.kinds()
    opened.close()
    say(f"{path}: {_mb(_size(path))} on disk, {sum(kind.entries for kind in kinds):,} entries")
    for kind in kinds:
        say(
            f"  {kind.kind or '(no kind)'}: {kind.entries:,} entries, {_mb(kind.size)}, "
            f"put {_ago(kind.oldest)} to {_ago(kind.newest)}"
        )


@cache.command()
def prune(
    store: StoreOption = None,
    older_than: Annotated[
        float | None, typer.Option(min=0, help="Forget entries put more than this many days ago, or nobody knows when.")
    ] = None,
    keep_newest_mb: Annotated[
        float | None, typer.Option(min=0, help="Forget the oldest entries until this many MB are left.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Forget results, which are computed again when they are needed. Not while a run is using the store."""
    if older_than is None and keep_newest_mb is None:
        raise BadData("nothing says what to forget; give --older-than DAYS, --keep-newest-mb N or both.")
    if (path := _there(store)) is None:
        return
    opened = Store(path)
    entries, freed = opened.prune(
        before=None if older_than is None else time.time() - older_than * DAY,
        keep_bytes=None if keep_newest_mb is None else int(keep_newest_mb * MB),
        dry_run=dry_run,
    )
    opened.close()
    say(f"{'would forget' if dry_run else 'forgot'} {entries:,} entries, {_mb(freed)}; {path} has {_mb(_size(path))}")


def _there(store: Path | None) -> Path | None:
    path = store or default_path()
    if not path.is_file():
        say(f"no store at {path} yet")
        return None
    return path


def _size(path: Path) -> int:
    parts = (Path(f"{path}{end}") for end in ("", "-wal", "-shm"))
    return sum(part.stat().st_size for part in parts if part.is_file())


def _mb(size: int) -> str:
    return f"{size / MB:,.1f} MB"


def _ago(at: float) -> str:
    return f"{max(0.0, time.time() - at) / DAY:,.1f} days ago" if at else "nobody knows when"
