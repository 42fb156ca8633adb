"""COCO's JSON of captions or instances, read as one row an image; it is never written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.json_files import JSON_LIST, json_parts
from symbal_hf.data.formats.protocol import Table, table_of


class Coco:
    """One JSON object, which should be COCO's."""

    name = "coco"

    def sniff(self, path: Path) -> bool:
        return JSON_LIST.sniff(path) and next(json_parts(path), (None, None))[0] is not None

    def rows(self, files: Sequence[Path], *, joining: bool = False) -> Table:
        """The images; `joining`: their captions are the references of another table, which they are joined to."""
        return _table(files[0], _read(json_parts(files[0])), joining)


COCO = Coco()


@dataclass(frozen=True)
class _Content:
    files: dict[Any, Any] = field(default_factory=dict)
    captions: dict[Any, list[str]] = field(default_factory=dict)
    marked: dict[Any, dict[Any, None]] = field(default_factory=dict)  # categories by the image
    names: dict[Any, str] = field(default_factory=dict)  # of categories by their ids, which have gaps
    keys: set[str] = field(default_factory=set)


def _read(parts: Iterable[tuple[str | None, Any]]) -> _Content:
    content = _Content()
    for key, value in parts:
        content.keys.add(str(key))
        if not isinstance(value, Mapping):
            continue
        if key == "images" and "id" in value:
            content.files[value["id"]] = value.get("file_name")
        elif key == "categories" and "id" in value:
            content.names[value["id"]] = str(value.get("name"))
        elif key == "annotations" and value.get("image_id") is not None:
            if "caption" in value:
                content.captions.setdefault(value["image_id"], []).append(value["caption"])
            elif "category_id" in value:
                content.marked.setdefault(value["image_id"], {})[value["category_id"]] = None
    return content


def _table(path: Path, content: _Content, joining: bool) -> Table:
    captions, marked = content.captions, content.marked
    if "annotations" not in content.keys or not (captions or marked):
        raise BadData(f"{path} must hold a JSON list of objects, one a row, or COCO's captions or instances.")
    if unknown := next((c for kinds in marked.values() for c in kinds if c not in content.names), None):
        raise BadData(f"{path}: an annotation has category_id {unknown}, which is none of the categories.")
    if marked and not captions and not joining:
        raise BadData(f"{path} holds COCO instances, not captions; audit captions, and give this file with --join.")
    name = "COCO captions JSON" if captions else "COCO instances JSON"
    if (several := sum(map(len, captions.values()))) > len(captions):
        name = f"COCO captions JSON ({several:,} captions of {len(captions):,} images, one row an image)"
    folder = _image_folder(path, next(filter(None, content.files.values()), None))
    return replace(table_of(_rows(content, joining), name=name), root=folder)


def _rows(content: _Content, joining: bool) -> Iterator[dict[str, Any]]:
    """A row is an image.

    Its captions are one text, one a line, since five rows with the same image would count its evidence five times.
    Instances give the names of what is annotated, groups ("iscrowd") among it. An image without annotations has none
    of these objects.
    """
    files, captions, marked = content.files, content.captions, content.marked
    shows = any(files.values())
    for image in dict.fromkeys((*files, *captions, *marked)):
        row = {"image_id": image, **({"image": files.get(image)} if shows else {})}
        texts = captions.get(image, [])
        if marked and not captions:
            row["objects"] = [content.names[kind] for kind in marked.get(image, ())]
        elif joining:
            row["references"] = [text for text in texts if isinstance(text, str)]
        else:
            row["caption"] = texts[0] if len(texts) == 1 else "\n".join(map(str, texts)) if texts else None
        yield row


def _image_folder(path: Path, first: Any) -> Path | None:
    """The folder of the images as COCO unpacks: val2017/ beside annotations/captions_val2017.json."""
    folder = path.resolve().parent
    split = folder.parent / path.stem.rpartition("_")[2]
    if folder.name != "annotations" or not isinstance(first, str) or (folder / first).is_file():
        return None
    return split if split.is_dir() else None
