"""Plant an error into a table on disk: captions in a new table, the truth in a file that audits never read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.data.columns import IMAGES
from symbal_hf.data.table import OBJECTS, load_data, read_rows
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary


def plant_file(
    source: Path,
    out: Path,
    *,
    textual_error: str,
    visual_feature: str,
    strength: float,
    seed: int = 0,
    vocabulary: Path | None = None,
    caption_column: str | None = None,
    objects_column: str | None = None,
    image_root: Path | None = None,
    join: Path | None = None,
) -> Planted:
    """Read a table with captions and objects, plant (t, v), write `out` (.jsonl) and NAME.truth.json beside it.

    The new table keeps every column but the objects, which would give the truth away; image paths stay
    relative where the images lie inside its folder and become absolute elsewhere (audit with `--image-root` then).

    Raises:
        BadData: no objects column, names that no row has, or a strength that cannot be reached.
    """
    data = load_data(source, caption_column=caption_column, objects_column=objects_column, join=join)
    if data.objects is None:
        raise BadData(f"{source} has no objects column ({', '.join(OBJECTS)}); planting needs to know what is there.")
    known = Vocabulary(load_vocabulary(vocabulary)) if vocabulary else None
    objects = [present or frozenset() for present in data.objects]
    if not any(textual_error in present for present in objects) and (
        known is None or textual_error not in known.classes
    ):
        raise BadData(f"no row of {source} has the object {textual_error!r}; its absence elsewhere would mean nothing.")
    ground = Ground.of(data.captions, objects, seed=seed, ids=data.ids, vocabulary=known)
    planted = ground.plant(textual_error, visual_feature, strength)
    if isinstance(planted, Infeasible):
        raise BadData(
            f"Cramér's V {strength} cannot be reached for ({textual_error}, {visual_feature}) in {source}: "
            f"the largest is {planted.largest:.3f}."
        )
    caption_of = dict(zip(data.ids, planted.captions, strict=True))
    rows, id_name, caption_name = read_rows(source, caption_column=caption_column, join=join)
    root = (image_root or (source.parent if source.is_file() else source)).resolve()
    lines = []
    for place, row in enumerate(rows):
        row_id = str(row[id_name]) if id_name else str(place)
        if row_id in caption_of:
            kept = {k: v for k, v in row.items() if k not in OBJECTS and k not in ("captions", "boxes", objects_column)}
            lines.append({**kept, **_moved(row, root, out), "id": row_id, caption_name: caption_of.pop(row_id)})
    out.parent.mkdir(parents=True, exist_ok=True)
    truth = {
        "textual_error": textual_error, "visual_feature": visual_feature, "strength_target": strength,
        "strength": planted.plan.achieved, "with_feature": planted.plan.with_feature,
        "without_feature": planted.plan.without_feature, "seed": seed,
        "rows": [data.ids[row] for row in planted.rows], "sentences": list(planted.sentences),
    }  # fmt: skip
    write_whole(out.with_suffix(".truth.json"), json.dumps(truth, ensure_ascii=False, indent=1) + "\n")
    write_whole(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return planted


def _moved(row: Mapping[str, Any], root: Path, out: Path) -> dict[str, str]:
    """Image paths of `row`, relative to the folder of `out` where they lie inside it, else absolute."""
    here = out.parent.resolve()
    moved = {}
    for name in IMAGES:
        if isinstance(row.get(name), str):
            path = (root / row[name]).resolve()
            moved[name] = str(path.relative_to(here) if path.is_relative_to(here) else path)
    return moved
