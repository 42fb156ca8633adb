"""What columns and files of captions are usually called, and what is said where they cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SourceFormat = Literal["auto", "table", "conversations", "coco", "url-tsv", "sidecars"]
IDS = ("id", "image_id", "row_id")
CAPTIONS = ("caption", "generated_caption", "text")
IMAGES = ("image", "image_path", "images", "file_name", "file", "path")
URLS = ("image_url", "url")
TABLES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".tar")
PICTURES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))


@dataclass(frozen=True)
class Unusable:
    """In the place of a caption: why this row has none that can be audited."""

    reason: str
