"""Rows of one table file, read in the format that its structure tells."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import CAPTIONS, IMAGES, URLS, SourceFormat
from symbal_hf.data.formats.conversations import as_captions, chat_column, coco, url_field, url_table
from symbal_hf.data.formats.json_stream import is_json_lines, json_parts
from symbal_hf.data.rows import find_column


def has_captions(path: Path) -> bool:
    """Whether this table has a column of captions or of conversations, by its first rows."""
    suffix = path.suffix.lower()
    if suffix == ".json" and not is_json_lines(path):
        key, first = next(json_parts(path), (None, None))
        if key is not None:  # one object: COCO's captions, or something else altogether
            first = next((value for key, value in json_parts(path) if key == "annotations"), None)
            return isinstance(first, Mapping) and "caption" in first
        if not isinstance(first, Mapping):
            return False
    if suffix == ".tsv" and url_field(path) is not None:
        return True
    if suffix in (".parquet", ".tar"):
        rows = sharded([path])
        return bool(set(rows.column_names) & set(CAPTIONS)) or chat_column(_head(rows)) is not None
    head = list(itertools.islice(plain_rows(path), 20))
    return bool(set(column_names(head)) & set(CAPTIONS)) or chat_column(head) is not None


def has_images(path: Path) -> bool:
    """Whether this table has a column of images, by its first rows."""
    suffix = path.suffix.lower()
    try:
        if suffix in (".parquet", ".tar"):
            columns = list(sharded([path]).column_names)
        elif suffix == ".tsv" and url_field(path) is not None:
            return True
        elif suffix == ".json" and not is_json_lines(path) and next(json_parts(path), ("", None))[0] is not None:
            return False  # one object
        else:
            columns = column_names(itertools.islice(plain_rows(path), 20))
    except (BadData, UnicodeDecodeError):  # whatever else lies in a folder of images
        return False
    return find_column("image", None, (*IMAGES, *URLS), columns) is not None


def sharded(files: list[Path]) -> Any:
    """The rows of parquet files, or of tars."""
    from symbal_hf.data.formats.shards import ParquetRows, TarRows

    return TarRows(files) if files[0].suffix.lower() == ".tar" else ParquetRows(files)


def captioned(
    rows: Any, columns: list[str], name: str, source_format: SourceFormat, caption: str | None
) -> tuple[Any, list[str], str]:
    """Rows with captions where these have conversations, their columns, and what the format is called ("": a table)."""
    wanted = source_format == "conversations"
    if source_format not in ("auto", "table", "conversations"):
        raise BadData(f"{name} is no source of the format {source_format!r}; leave source_format at 'auto'.")
    plain = source_format == "table" or not rows or any(n in columns for n in CAPTIONS[:2])
    if plain and not wanted and caption is None:
        return rows, columns, ""
    head = _head(rows)
    if caption is not None and source_format != "table":
        chat = chat_column([{caption: row.get(caption)} for row in head])
    else:
        chat = None if plain and not wanted else chat_column(head)
    if chat is None:
        if wanted:
            raise BadData(
                f"{name} has no column of conversations (lists of {{'from', 'value'}} or {{'role', 'content'}}) among "
                f"{', '.join(map(str, columns))}; leave source_format at 'auto'."
            )
        return rows, columns, ""
    return as_captions(rows, head, chat, caption or "caption")


def _head(rows: Any, n: int = 20) -> list[Mapping[str, Any]]:
    """The first rows, without the bytes of images."""
    if hasattr(rows, "select"):
        return list(rows.select(range(min(n, len(rows)))))
    if hasattr(rows, "files") and hasattr(rows, "without"):
        from pyarrow import parquet

        with parquet.ParquetFile(rows.files[0]) as file:
            light = [f.name for f in file.schema_arrow if f.name in rows.column_names and "binary" not in str(f.type)]
            for batch in file.iter_batches(batch_size=n, columns=light):
                return batch.to_pylist()
        return []
    return list(itertools.islice(rows, n))


def column_names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns of all rows."""
    return list(dict.fromkeys(name for row in rows for name in row))


def read_table(
    path: Path, source_format: SourceFormat = "auto", caption: str | None = None, *, joining: bool = False
) -> tuple[Any, list[str], Path | None, str]:
    """Rows of one table file, their columns, the folder of images where it is a special one, the format's name."""
    suffix = path.suffix.lower()
    if source_format == "sidecars":
        raise BadData(f"{path} is a file; the format 'sidecars' is a folder of images with text files.")
    if suffix in (".parquet", ".tar"):
        rows = sharded([path])
        rows, columns, words = captioned(rows, list(rows.column_names), path.name, source_format, caption)
        return rows, columns, None, words
    urls = suffix == ".tsv" and source_format == "auto" and url_field(path) is not None
    if urls or source_format == "url-tsv":
        table = url_table(path)
        return table.rows, table.columns, None, table.words
    if suffix == ".json" and source_format in ("auto", "coco") and not is_json_lines(path):
        parts = json_parts(path)
        first = next(parts, None)
        if first is not None and first[0] is not None:
            found = coco(path, itertools.chain([first], parts), joining=joining)
            if found is None:
                raise BadData(f"{path} must hold a JSON list of objects, one a row, or COCO's captions or instances.")
            return found.rows, found.columns, found.root, found.words
    if source_format == "coco":
        raise BadData(f"{path} is no COCO JSON ({{'images': .., 'annotations': ..}}); leave source_format at 'auto'.")
    lazy = plain_rows(path)
    head = list(itertools.islice(lazy, 20))
    # A conversation becomes its caption as it is read: what was asked is not kept.
    rows, columns, words = captioned(_Once(head, lazy), column_names(head), path.name, source_format, caption)
    if isinstance(rows, _Once):
        rows = list(rows)
        columns = column_names(rows)
    if words and suffix in (".json", ".jsonl"):
        words = words.removesuffix(" conversations") + (" JSON" if suffix == ".json" else " JSON lines")
    elif suffix == ".json" and set(columns) == {"image_id", "caption"}:
        words = "results JSON"  # of BLIP and other captioners, as COCO's evaluation takes them
    return rows, columns, None, words


class _Once:
    """Rows of which the first have been read already."""

    def __init__(self, head: Sequence[Any], rest: Iterator[Any]) -> None:
        self.head, self.rest = head, rest

    def __bool__(self) -> bool:
        return bool(self.head)

    def __iter__(self) -> Iterator[Any]:
        yield from self.head
        yield from self.rest


def plain_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Rows of a text file, one by one."""
    suffix = path.suffix.lower()
    try:
        if suffix in (".csv", ".tsv"):
            csv.field_size_limit(2**31 - 1)
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
        elif suffix == ".json" and not is_json_lines(path):
            for key, row in json_parts(path):
                if key is not None or not isinstance(row, dict):
                    raise BadData(f"{path} must hold a JSON list of objects, one a row.")
                yield row
        else:
            with path.open(encoding="utf-8-sig") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield _object(line, f"{path}, line {number}")
    except csv.Error as error:
        raise BadData(f"{path} is no table that can be read ({error}); save it as UTF-8 with quoted fields.") from error
    except UnicodeDecodeError as error:
        raise BadData(f"{path} is not UTF-8 ({error.reason} at byte {error.start}).") from error


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadData(f"{where}: no valid JSON ({error.msg}); is the file cut off?") from error
    if not isinstance(row, dict):
        raise BadData(f"{where}: a {type(row).__name__}; the file must hold one JSON object a line.")
    return row
