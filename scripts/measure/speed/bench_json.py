"""Figures of a measurement as a JSON file, for the command that gathers them all."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option that names the file."""
    parser.add_argument("--json", type=Path, help="write the figures here too")


def write_json(path: Path | None, figures: Mapping[str, float]) -> None:
    """Write them, where a file was named."""
    if path is not None:
        path.write_text(json.dumps(dict(figures), indent=1) + "\n", "utf-8")
