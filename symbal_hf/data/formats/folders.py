"""A folder of images with a text file of the same name beside each (cat.jpg, cat.txt), at any depth."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from symbal_hf.data.columns import PICTURES, TEXTS, Unusable
from symbal_hf.data.formats.protocol import Table, table_of


def sidecars(folder: Path, *, bare: bool = False) -> Table | None:
    """Images with their texts, or None where there are none.

    Where images alone will do (`bare`), none of them needs one.
    """
    images = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and p.is_file())
    rows: list[dict[str, Any]] = []
    shared = Counter(image.with_suffix("") for image in images)
    for image in images:
        # cat.png and cat.jpg with one cat.txt are two rows, with ids of their own.
        name = image.relative_to(folder)
        text = next((t for end in TEXTS if (t := image.with_suffix(end)).is_file()), None)
        row_id = str(name.with_suffix("") if shared[image.with_suffix("")] == 1 else name)
        try:
            caption: Any = None if text is None else text.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            caption = Unusable(f"{text} is not UTF-8 ({error.reason} at byte {error.start})")
        rows.append({"id": row_id, "image": str(name), "caption": caption})
    if all(row["caption"] is None for row in rows):
        return table_of(rows, ["id", "image"], name="images") if bare and rows else None
    return table_of(rows, ["id", "image", "caption"], name="images with text files")
