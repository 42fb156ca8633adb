"""Bases that need no download: scenes that are drawn here, and any table with captions and known objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark_builder.bases.base import Base, caption_and_references
from benchmark_builder.bases.coco_names import natural_vocabulary
from benchmark_builder.scenes.draw import DRAWING_VERSION, write_scenes
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import cache_folder
from symbal_hf.data.columns import CAPTIONS, IDS
from symbal_hf.data.join import joined
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import OBJECTS, AuditData, load_data
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary


def scenes_base(
    folder: Path | None = None, *, rows: int = 4349, size: int = 256, seed: int = 0, captions: int | None = None
) -> Base:
    """Drawn scenes whose objects, boxes and areas are known exactly.

    Args:
        folder: where they are drawn, or were drawn before; by default below the user's cache folder.
        rows: how many; the paper's natural base has 4,349.
        size: pixels of a side, >= 64.
        seed: which scenes, and which two of a scene's captions form the caption.
        captions: another seed for the captions alone.
    """
    if rows < 1 or size < 64:
        raise ValueError(f"rows={rows}, size={size}; scenes need at least 1 row and 64 pixels.")
    folder = folder or cache_folder() / "scenes" / f"v{DRAWING_VERSION}-{rows}-{size}-{seed}"
    with write_scenes(folder, rows, seed=seed, size=size).open(encoding="utf-8") as file:
        scenes = [json.loads(line) for line in file]
    told = seed if captions is None else captions
    texts = [caption_and_references(s["captions"], seed=told, row_id=str(s["image_id"])) for s in scenes]
    areas = []
    for scene in scenes:
        area: dict[str, float] = {}
        for box in scene["boxes"]:
            area[box["name"]] = area.get(box["name"], 0.0) + box["area_fraction"]
        areas.append(area)
    return Base(
        ids=tuple(str(scene["image_id"]) for scene in scenes),
        captions=tuple(caption for caption, _ in texts),
        objects=tuple(frozenset(scene["objects"]) for scene in scenes),
        images=tuple(folder / scene["image"] for scene in scenes),
        references=tuple(others for _, others in texts),
        areas=tuple(areas),
        vocabulary=natural_vocabulary(name for scene in scenes for name in scene["objects"]),
        name="scenes",
        origin="scenes",
        licence="CC0 1.0: drawn by this package, free for any use.",
        notes=(f"{rows:,} scenes of {size} x {size} pixels, drawn with seed {seed}.",),
    )


def custom_base(
    source: Any,
    *,
    name: str = "custom",
    image_column: str | None = None,
    caption_column: str | None = None,
    reference_column: str | None = None,
    objects_column: str | None = None,
    image_root: Path | None = None,
    join: Path | None = None,
    vocabulary: Path | None = None,
    images: bool = True,
    licence: str = "unknown",
    seed: int = 0,
) -> Base:
    """Any table, folder or dataset whose captions are true and whose objects are known.

    Args:
        source: as for `symbal_hf.load_data`. Where it has a `captions` column with several captions an image and no
            single caption, two of them form the caption and the others the references.
        name: first part of the config names.
        vocabulary: synonyms of the objects; by default those of COCO's classes, and a name's own words elsewhere.
        images: False leaves the images out.
        licence: the terms of the data, for the card.

    Raises:
        BadData: no objects, a row without them, or a caption that is empty.
    """
    options = {
        "image_column": image_column, "caption_column": caption_column, "reference_column": reference_column,
        "objects_column": objects_column, "image_root": image_root,
    }  # fmt: skip
    data = _load(source, join, seed, options)
    read = data.source
    if data.objects is None:
        raise BadData(f"{read} has no objects column ({', '.join(OBJECTS)}); planting needs to know what is there.")
    for row_id, present in zip(data.ids, data.objects, strict=True):
        if present is None:
            raise BadData(f"{read}: the objects of row {row_id} are unknown (null); give a list, empty where none is.")
    objects = tuple(present or frozenset() for present in data.objects)
    names = frozenset[str]().union(*objects)
    return Base(
        ids=data.ids,
        captions=data.captions,
        objects=objects,
        images=data.images if images else None,
        references=data.references,
        vocabulary=Vocabulary(load_vocabulary(vocabulary)) if vocabulary else natural_vocabulary(names),
        name=name,
        origin="custom",
        licence=licence,
        notes=(f"{len(data):,} rows of {read} with {len(names):,} different objects.",),
    )


def _load(source: Any, join: Path | None, seed: int, options: dict[str, Any]) -> AuditData:
    """The rows, with a caption and references made from a `captions` column where there is one."""
    table = open_table(source)
    if join is not None:
        table = joined(table, Path(join))
    columns = table.columns
    if options["caption_column"] or "captions" not in columns or any(column in columns for column in CAPTIONS):
        return load_data(source, join=join, on_bad_row="error", **options)
    id_name = next((column for column in IDS if column in columns), None)

    def split(row: Mapping[str, Any], place: int) -> dict[str, Any]:
        known = [text for text in row["captions"] or () if isinstance(text, str) and any(map(str.isalnum, text))]
        row_id = str(row[id_name]) if id_name else str(place)
        if len(known) < 2:
            raise BadData(f"{table.name}: row {row_id} has {len(known)} captions with text; at least 2 are needed.")
        caption, others = caption_and_references(known, seed=seed, row_id=row_id)
        kept = {column: value for column, value in row.items() if column != "captions"}
        return {**kept, "caption": caption, "references": list(others)}

    captioned = replace(
        table,
        columns=[*(column for column in columns if column != "captions"), "caption", "references"],
        read=lambda without: (split(row, place) for place, row in enumerate(table.read(without))),
    )
    return load_data(captioned, on_bad_row="error", **options)
