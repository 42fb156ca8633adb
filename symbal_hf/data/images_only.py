"""The images of any source, whether it has captions or not, with their ids and whatever else its rows tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Chance, Reading, refuse_idle, take
from symbal_hf.data.columns import IMAGES, URLS, chosen_root, find_column
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import Images, usable
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

NEED = "there is nothing to caption"
OLD_CAPTION = "source_caption"  # what a source's own column `caption` is called beside a new one


@dataclass(frozen=True)
class ImageRows:
    """N images, paired by id.

    Attributes:
        others: of each row the other columns whose values JSON can hold; its caption is called `source_caption`.
    """

    ids: tuple[str, ...]  # as `symbal_hf.data.table.load_data` gives them, all different
    images: Images  # the encoded images
    others: tuple[Mapping[str, Any], ...]
    skipped: tuple[Skipped, ...]  # rows that were left out, with reasons
    source: str  # what was read, in words
    read: str | None = None  # the absolute path or the name of the source; None for one that was in memory

    def __len__(self) -> int:
        return len(self.ids)


def load_images(source: Dataset | Iterable[Mapping[str, Any]] | str | Path, **options: Any) -> ImageRows:
    """Read the images of a source.

    Args:
        source: what `symbal_hf.data.table.load_data` reads, captions or none; a folder of images, at any depth, in
            the order of their names; or one image.
        options: as for `load_data`, without those of captions, references and objects.

    Raises:
        BadData: no images, or (on_bad_row "error") a bad row.
        FileNotFoundError: no such file or folder.
    """
    reading, chance = take(options, Reading, Chance, by="load_images")
    unread = ("caption_column", "reference_column", "objects_column", "join")
    refuse_idle("images are read without them", **{name: getattr(reading, name) for name in unread})
    table = open_table(source, source_format=reading.source_format, captions=False)
    root = chosen_root(reading.image_root, table.root)
    if not table.columns:
        raise BadData(f"{table.name} has no rows; {NEED}.")
    image = find_column("image", reading.image_column, (*IMAGES, *URLS), table.columns, required=True)
    assert image is not None
    rows = usable(table, image, lambda row: _others(row, image), reading, chance.seed, need=NEED)
    images = Images(table.column(image), list(rows.ids.values()), root, allow_download=reading.allow_download)
    read = None
    if isinstance(source, (str, Path)):
        read = str(Path(source).resolve()) if Path(source).exists() else str(source)
    return ImageRows(tuple(rows.ids), images, tuple(rows.values), tuple(rows.skipped), table.name, read)


def _others(row: Mapping[str, Any], image_name: str) -> dict[str, Any]:
    """The columns that a row of captions keeps, as JSON can hold them."""
    out = {}
    for name, value in row.items():
        if name in (image_name, "id", "image") or (name == "caption" and value is None):
            continue
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            continue
        out[OLD_CAPTION if name == "caption" else str(name)] = value
    return out
