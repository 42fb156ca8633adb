"""A built benchmark by its name, from anywhere on this machine; its settings are loaded elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from symbal_hf.core.errors import BadData
from symbal_hf.core.files import cache_folder, write_whole

NAME = "symbalbench"


def remember(folder: Path) -> None:
    """Note that `folder` is the benchmark that the bare name stands for from now on."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    write_whole(cache_folder() / f"{NAME}.json", json.dumps({"folder": str(folder.resolve())}) + "\n")


def is_built(folder: Path) -> bool:
    """Whether `folder` holds a benchmark that was built to the end."""
    return (folder / "README.md").is_file() and any((folder / "settings").glob("*.parquet"))


def built_folder() -> Path | None:
    """The folder that was built last on this machine, or None."""
    try:
        folder = Path(json.loads((cache_folder() / f"{NAME}.json").read_text("utf-8"))["folder"])
    except (OSError, ValueError, KeyError):
        return None
    return folder if is_built(folder) else None


def find_benchmark(path: str | Path | None = None) -> str:
    """What to give `load_dataset`: `path` itself, else ./symbalbench, else the benchmark that was built last.

    Raises:
        BadData: none is there.
    """
    if path is not None:
        local = Path(path)
        if local.is_dir() and not is_built(local):
            raise BadData(f"{path} is no built benchmark (README.md, settings/); make one with `symbal bench build`.")
        return str(path)
    here = Path(NAME)
    folder = here if is_built(here) else built_folder()
    if folder is None:
        raise BadData("no benchmark was built here yet; run `symbal bench build`, or give its folder or Hub id.")
    return str(folder)
