"""A file is written whole or not at all: a killed run leaves the old one, never half of a new one."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace `path` by `content` (text as UTF-8) in one step."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    part.replace(path)
