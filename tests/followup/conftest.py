"""What a second look is taken at."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from kitchen_case import kitchen

import symbal_hf


@pytest.fixture
def table(tmp_path):
    """The rows as a file with pictures: the red of a picture tells a toilet, its green a sink."""
    from PIL import Image

    rows = list(kitchen())
    (tmp_path / "images").mkdir()
    for i, row in enumerate(rows):
        there = row["objects"]
        colour = (200 if "toilet" in there else 20, 200 if "sink" in there else 20, i)
        Image.new("RGB", (8, 6), colour).save(tmp_path / "images" / f"{row['id']}.png")
        row["image"] = f"images/{row['id']}.png"
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def audited(table, tmp_path):
    """The folder of an audit by objects whose first finding is (sink, toilet)."""
    result = symbal_hf.audit(table)
    first = result.findings[0]
    assert (first.textual_error, first.visual_feature) == ("sink", "toilet")
    replace(result, findings=(first,)).write(tmp_path / "out")
    return tmp_path / "out"
