"""Classes of objects with their synonyms, from a file."""

from __future__ import annotations

import json
from pathlib import Path

from symbal_hf.core.errors import BadData


def load_vocabulary(path: str | Path) -> dict[str, list[str]]:
    """Classes with synonyms from a JSON object {class: [synonym, ...]}, or a text file with one class a line.

    The JSON of the CHAIR metric ({"inverse_synonym_dict": {synonym: class}}) and a flat {synonym: class} are read too;
    a file of another shape raises `BadData`.
    """
    path = Path(path)
    text = path.read_text("utf-8")
    if path.suffix != ".json":
        return {line.strip(): [] for line in text.splitlines() if line.strip()}
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadData(f"vocabulary {path} is no valid JSON: {error}.") from error
    if isinstance(data, dict):
        data = data.get("inverse_synonym_dict", data)
        out: dict[str, list[str]] = {}
        if all(isinstance(v, str) for v in data.values()):
            for synonym, name in data.items():
                out.setdefault(name.strip(), []).append(synonym.strip())
            return out
        if all(isinstance(v, list) and all(isinstance(s, str) for s in v) for v in data.values()):
            return {k: list(v) for k, v in data.items()}
    raise BadData(f"vocabulary {path} must be a JSON object that maps each class to a list of synonyms.")
