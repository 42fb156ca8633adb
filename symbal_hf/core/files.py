"""Where own files live, and how they are written: whole or not at all, so that a killed run leaves no half."""

from __future__ import annotations

import os
import threading
from importlib import resources
from pathlib import Path


def cache_folder() -> Path:
    """$SYMBAL_CACHE, else symbal under the user's cache folder."""
    if named := os.environ.get("SYMBAL_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "symbal"


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace `path` by `content` (text as UTF-8) in one step, whoever else is writing it at the same time."""
    part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    part.replace(path)


def packaged_lines(package: str, path: str) -> tuple[str, ...]:
    """The lines of a text file that is shipped in `package`, but blank ones and those that start with #."""
    text = resources.files(package).joinpath(path).read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))
