"""What chest reports speak of: five diseases, five devices, and the patterns by which words say so or deny it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml

DISEASES = ("cardiomegaly", "pneumothorax", "atelectasis", "pleural effusion", "edema")
DEVICES = ("pacemaker", "chest tube", "endotracheal tube", "surgical clips", "sternotomy wires")
CONCEPTS = DISEASES + DEVICES


def _read(file: str) -> dict[str, Any]:
    """The table of patterns with its pieces filled in and each block joined to one pattern."""
    table = yaml.safe_load(resources.files("benchmark_builder.reports").joinpath(file).read_text("utf-8"))
    pieces: dict[str, str] = {}

    def joined(block: str) -> str:
        return re.sub("<([A-Z]+)>", lambda name: pieces[name[1]], "|".join(block.splitlines()))

    for name, block in table.pop("pieces").items():
        pieces[name] = f"(?:{joined(block)})"
    return {kind: {name: joined(block) for name, block in group.items()} for kind, group in table.items()}


_TERMS, _CUES = _read("radiology_terms.yaml"), _read("radiology_cues.yaml")
MENTIONS: Mapping[str, Mapping[str, str]] = {kind: _TERMS[kind] for kind in ("named", "near", "opposite")}
CUES = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _CUES["cues"].items()))
PATTERNS = {name: re.compile(pattern) for name, pattern in (_TERMS["patterns"] | _CUES["patterns"]).items()}
