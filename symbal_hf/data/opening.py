"""A source of any kind as one table: a file, a folder, a Hub dataset, a dataset or rows in memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import SourceFormat
from symbal_hf.data.columns import CAPTIONS, IMAGES, PICTURES, TABLES, URLS, find_column
from symbal_hf.data.formats import format_of
from symbal_hf.data.formats.arrow import dataset_table, hub_dataset
from symbal_hf.data.formats.coco import COCO
from symbal_hf.data.formats.conversations import captioned, chat_column
from symbal_hf.data.formats.folders import sidecars
from symbal_hf.data.formats.json_files import JSON_LIST, json_parts
from symbal_hf.data.formats.protocol import Table, table_of
from symbal_hf.data.formats.text_tables import URL_LINES
from symbal_hf.data.origin import about, image_root_of


def open_table(
    source: Any, *, source_format: SourceFormat = "auto", caption_column: str | None = None, captions: bool = True
) -> Table:
    """The source, as for `symbal_hf.data.table.load_data`, as a table whose name says what was read in which format.

    Where `captions` is False images are wanted, whether they have captions or not: a folder is then its table with a
    column of images, or else all the images in it.

    Raises:
        BadData: no rows that can be read, or several tables.
        FileNotFoundError: no such file.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.exists() or path.suffix.lower() in TABLES:
            return _open_path(path, source_format, caption_column, captions)
        table, name = dataset_table(hub_dataset(str(source))), str(source)
    elif _is_from_datasets(source, "DatasetDict", "IterableDatasetDict"):
        raise BadData(f"a DatasetDict with splits {', '.join(source)}; pass one of them, such as source['test'].")
    elif is_dataset(source):
        table, name = dataset_table(source), "the dataset"
    else:
        table, name = table_of(source), "the given rows"
        if odd := next((row for row in table if not isinstance(row, Mapping)), None):
            kind = type(odd).__name__
            raise BadData(f"rows of type {kind}; expected mappings such as {{'image': .., 'caption': ..}}.")
    table = captioned(table, name, source_format, caption_column)
    words = (table.name, name) if isinstance(source, (str, Path)) else (name, table.name)
    return replace(table, name=" of ".join(filter(None, words)))


def is_dataset(source: Any) -> bool:
    """Whether it is a `datasets.Dataset`; where nobody has imported the library, nothing is."""
    return _is_from_datasets(source, "Dataset")


def _is_from_datasets(source: Any, *classes: str) -> bool:
    library = sys.modules.get("datasets")
    return library is not None and isinstance(source, tuple(getattr(library, name) for name in classes))


def _open_path(path: Path, source_format: SourceFormat, caption: str | None, captions: bool) -> Table:
    if path.is_dir():
        return _open_folder(path, source_format, caption, captions)
    if not captions and path.suffix.lower() in PICTURES and path.is_file():
        image = table_of([{"id": path.stem, "image": path.name}])
        return replace(image, name=f"image {path.name}", root=path.resolve().parent)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; give a {', '.join(TABLES)} file, a folder or a Hub id.")
    return _named(open_file(path, source_format, caption), path.name, path, path.resolve().parent)


def _named(table: Table, name: str, path: Path, folder: Path) -> Table:
    """The table of a file with its name beside that of its format, and the folder of its images."""
    return replace(table, name=f"{table.name} {name}".lstrip(), root=table.root or image_root_of(path) or folder)


def open_file(
    path: Path, source_format: SourceFormat = "auto", caption: str | None = None, *, joining: bool = False
) -> Table:
    """The table in one file, named by its format; `joining`: its columns are added to another table."""
    file_format = format_of(path, source_format)
    if file_format == COCO:
        return COCO.rows([path], joining=joining)
    if file_format == URL_LINES:
        return URL_LINES.rows([path]).in_memory()
    table = captioned(file_format.rows([path]), path.name, source_format, caption)
    if table.chat is not None:
        kind = {".json": " JSON", ".jsonl": " JSON lines"}.get(path.suffix.lower())
        return table if kind is None else replace(table, name=table.name.removesuffix(" conversations") + kind)
    if table.values is None:
        table = table.in_memory()
    if path.suffix.lower() == ".json" and set(table.columns) == {"image_id", "caption"}:
        return replace(table, name="results JSON")  # of BLIP and other captioners, as COCO's evaluation takes them
    return table


def _open_folder(path: Path, source_format: SourceFormat, caption: str | None, captions: bool) -> Table:
    files, single = table_files(path, source_format, captions=captions)
    if single:
        table = open_file(files[0], source_format, caption)
        return _named(table, f"{path.name}/{files[0].name}", files[0], path.resolve())
    if files:
        shards = f"{len(files)} shards in {path.name}"
        table = captioned(format_of(files[0]).rows(files), shards, source_format, caption)
        return replace(table, name=f"{table.name} in {shards}" if table.name else shards, root=path.resolve())
    if source_format in ("auto", "sidecars") and (loose := sidecars(path, bare=not captions)):
        return replace(loose, name=f"{loose.name} in {path.name}", root=path.resolve())
    if not captions:
        raise BadData(
            f"{path} holds no images ({', '.join(sorted(PICTURES))}) and no table with a column of them "
            f"({', '.join(IMAGES)})."
        )
    if any(p.suffix.lower() in PICTURES for p in path.rglob("*")):
        raise BadData(
            f"{path} holds images but no captions; let a model write them (`symbal caption {path} --model MODEL --out "
            "captions.jsonl`), or add metadata.jsonl with one {'file_name', 'caption'} a line, or a text file of the "
            "same name beside each image."
        )
    raise BadData(f"{path} holds no table ({', '.join(TABLES)}) with a caption column ({', '.join(CAPTIONS)}).")


def _shows_captions(path: Path) -> bool:
    """Whether this table has a column of captions or of conversations, by its first rows."""
    file_format = format_of(path)
    if file_format == COCO:
        first = next((value for key, value in json_parts(path) if key == "annotations"), None)
        return isinstance(first, Mapping) and "caption" in first
    if file_format == JSON_LIST and not isinstance(next(json_parts(path), (None, None))[1], Mapping):
        return False
    table = file_format.rows([path])
    return bool(set(table.columns) & set(CAPTIONS)) or chat_column(table.head()) is not None


def _shows_images(path: Path) -> bool:
    """Whether this table has a column of images, by its first rows."""
    try:
        file_format = format_of(path)
        columns = [] if file_format == COCO else file_format.rows([path]).columns
    except (BadData, UnicodeDecodeError):  # whatever else lies in a folder of images
        return False
    return find_column("image", None, (*IMAGES, *URLS), columns) is not None


def table_files(path: Path, source_format: SourceFormat = "auto", *, captions: bool = True) -> tuple[list[Path], bool]:
    """The files of the table in a folder, in order, and whether it is one file and not shards; none where none is.

    Shards are all parquet or all tars, here or in the folder data/. Raises `BadData` for several tables.
    """
    if source_format == "sidecars":
        return [], False
    tables = sorted(p for p in path.iterdir() if p.suffix.lower() in TABLES)
    named = [p for p in tables if p.stem in ("metadata", "captions", "data", path.name)]
    if captions:
        best = named or [p for p in tables if _shows_captions(p)]
    else:  # what was made of these images before is not what they are
        images = [p for p in tables if not about(p).is_file() and _shows_images(p)]
        best = [p for p in images if p in named] or images
    if len(best) == 1 or (best and best[0].stem in ("metadata", "captions")):
        return best[:1], True
    shards = best or [p for p in sorted(path.glob("data/*")) if p.suffix.lower() in (".parquet", ".tar")]
    if {p.suffix.lower() for p in shards} in ({".parquet"}, {".tar"}):
        return shards, False
    if len(best) > 1:
        raise BadData(f"{path} holds several tables ({', '.join(p.name for p in best)}); name one of them.")
    return [], False
