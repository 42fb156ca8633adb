"""The images of any source, whether it has captions or not, with their ids and whatever else its rows tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import OnBadRow, SourceFormat
from symbal_hf.data.columns import IDS, IMAGES, URLS, chosen_root, find_column, limited, sampled
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import Images
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

OLD_CAPTION = "source_caption"  # what a source's own column `caption` is called beside a new one


@dataclass(frozen=True)
class ImageRows:
    """N images, paired by id.

    Attributes:
        ids: as `symbal_hf.data.table.load_data` gives them, all different.
        images: the encoded images.
        others: of each row the other columns whose values JSON can hold; its caption is called `source_caption`.
        skipped: rows that were left out, with reasons.
        source: what was read, in words.
        read: the absolute path or the name of the source; None for one that was in memory.
    """

    ids: tuple[str, ...]
    images: Images
    others: tuple[Mapping[str, Any], ...]
    skipped: tuple[Skipped, ...]
    source: str
    read: str | None = None

    def __len__(self) -> int:
        return len(self.ids)


def load_images(
    source: Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    image_column: str | None = None,
    image_root: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    on_bad_row: OnBadRow = "warn",
    source_format: SourceFormat = "auto",
    allow_download: bool = False,
) -> ImageRows:
    """Read the images of a source.

    Args:
        source: what `symbal_hf.data.table.load_data` reads, captions or none; a folder of images, at any depth, in
            the order of their names; or one image.
        image_column: found by its usual names when not given.
        image_root: and the other options: as for `symbal_hf.data.table.load_data`.

    Raises:
        BadData: no images, or (policy "error") a bad row.
        FileNotFoundError: no such file or folder.
    """
    table = open_table(source, source_format=source_format, captions=False)
    root = chosen_root(image_root, table.root)
    if not table.columns:
        raise BadData(f"{table.name} has no rows; there is nothing to caption.")
    image_name = find_column("image", image_column, (*IMAGES, *URLS), table.columns, required=True)
    assert image_name is not None
    id_name = next((n for n in IDS if n in table.columns and n != image_name), None)
    ids: dict[str, int] = {}
    others, numbers = [], []
    skipped: list[Skipped] = []
    # Rows are read without their image bytes, which stay where they are until a model wants them.
    for number, row in sampled(enumerate(limited(table.read((image_name,)), limit)), sample, seed):
        row_id = str(row[id_name]) if id_name and row.get(id_name) is not None else str(number)
        if row_id in ids:
            problem = f"its id is the same as that of row {ids[row_id]}"
            if on_bad_row == "error":
                raise BadData(f"row {row_id} of {table.name}: {problem}; mend it or pass on_bad_row='warn'.")
            skipped.append(Skipped(row_id, problem))
            continue
        ids[row_id] = number
        numbers.append(number)
        others.append(_others(row, image_name))
    if not ids:
        raise BadData(f"{table.name} has no rows; there is nothing to caption.")
    images = Images(table.column(image_name), numbers, root, allow_download=allow_download)
    read = None
    if isinstance(source, (str, Path)):
        read = str(Path(source).resolve()) if Path(source).exists() else str(source)
    return ImageRows(tuple(ids), images, tuple(others), tuple(skipped), table.name, read)


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
