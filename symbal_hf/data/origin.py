"""What a file of captions says of where it came from: the account that `symbal caption` writes beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def about(out: Path) -> Path:
    """The file beside `out` that tells how it was made."""
    return out.with_name(f"{out.name}.meta.json")


def provenance_of(out: Path) -> dict[str, Any] | None:
    """What the file beside `out` tells, or None where there is none or one of somebody else's."""
    try:
        provenance = json.loads(about(out).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return provenance if isinstance(provenance, dict) and isinstance(provenance.get("sha256"), list) else None


def image_root_of(out: Path) -> Path | None:
    """The folder of the images that the rows of `out` name, where it is not the file's own.

    It counts only while the file lies where it was written: one that came from elsewhere must not name folders here.
    """
    provenance = provenance_of(out)
    if provenance is None or provenance.get("path") != str(out.resolve()):
        return None
    root = provenance.get("image_root")
    return Path(root) if isinstance(root, str) and Path(root).is_dir() else None
