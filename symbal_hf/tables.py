"""Rows of whatever holds them: a table file, a folder, a Hub dataset, a dataset in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

IDS = ("id", "image_id", "row_id")
CAPTIONS = ("caption", "generated_caption", "text")
TABLES = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".tar")
PICTURES = frozenset((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))


class BadData(ValueError):
    """The source cannot be audited; the message says what is wrong, what was expected and what to do."""


def open_rows(source: Any) -> tuple[Any, list[str], Path | None, str]:
    """Rows, column names, the folder that image paths are relative to, and the source's name."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.is_dir():
            return _open_folder(path)
        if path.suffix.lower() in TABLES or path.exists():
            if not path.is_file():
                raise FileNotFoundError(f"no file {path}; give a {', '.join(TABLES)} file, a folder or a Hub id.")
            rows, columns = _table(path)
            return rows, columns, path.resolve().parent, path.name
        return _open_hub(str(source))
    if hasattr(source, "column_names") and isinstance(source.column_names, Mapping):
        raise BadData(f"a DatasetDict with splits {', '.join(source)}; pass one of them, such as source['test'].")
    if hasattr(source, "column_names") and hasattr(source, "features") and hasattr(source, "__getitem__"):
        return _undecoded(source), list(source.column_names), None, "the dataset"
    rows = list(source)
    if any(not isinstance(r, Mapping) for r in rows):
        raise BadData(
            f"rows of type {type(rows[0]).__name__}; expected mappings such as {{'image': .., 'caption': ..}}."
        )
    return rows, _names(rows), None, "the given rows"


def _undecoded(dataset: Any) -> Any:
    """Image columns as encoded bytes or paths: pixels are decoded where they are needed, not while reading rows."""
    from datasets import Image

    for column, feature in dataset.features.items():
        if isinstance(feature, Image):
            dataset = dataset.cast_column(column, Image(decode=False))
    return dataset


def _open_folder(path: Path) -> tuple[Any, list[str], Path | None, str]:
    tables = sorted(p for p in path.iterdir() if p.suffix.lower() in TABLES)
    best = [p for p in tables if p.stem in ("metadata", "captions", "data", path.name)] or [
        p for p in tables if any(n in _names(_head(p)) for n in CAPTIONS)
    ]
    if len(best) == 1 or (best and best[0].stem in ("metadata", "captions")):
        rows, columns = _table(best[0])
        return rows, columns, path.resolve(), f"{path.name}/{best[0].name}"
    if shards := _shards(path, best):
        rows = _sharded(shards)
        return rows, list(rows.column_names), path.resolve(), f"{len(shards)} shards in {path.name}"
    if len(best) > 1:
        raise BadData(f"{path} holds several tables ({', '.join(p.name for p in best)}); name the one to audit.")
    if any(p.suffix.lower() in PICTURES for p in path.rglob("*")):
        raise BadData(
            f"{path} holds images but no captions; add metadata.jsonl with one {{'file_name', 'caption'}} a line."
        )
    raise BadData(f"{path} holds no table ({', '.join(TABLES)}) with a caption column ({', '.join(CAPTIONS)}).")


def _shards(path: Path, tables: list[Path]) -> list[Path]:
    """The files that make up one table of this folder, or of its folder data/, in order: all parquet, or all tars."""
    found = tables or [p for p in sorted(path.glob("data/*")) if p.suffix.lower() in (".parquet", ".tar")]
    kinds = {p.suffix.lower() for p in found}
    return found if kinds in ({".parquet"}, {".tar"}) else []


def _sharded(files: list[Path]) -> Any:
    from symbal_hf.shards import ParquetRows, TarRows

    return TarRows(files) if files[0].suffix.lower() == ".tar" else ParquetRows(files)


def _open_hub(name: str) -> tuple[Any, list[str], Path | None, str]:
    from datasets import load_dataset

    rest, _, split = name.partition("@")
    repo, _, config = rest.partition(":")
    try:
        loaded = load_dataset(repo, config or None, split=split or None)
    except Exception as error:  # a dozen kinds: no such repo, no network, gated, bad config
        raise BadData(f"{name!r} is no file or folder here and no dataset that the Hub gives: {error}") from error
    if isinstance(loaded, Mapping):
        if len(loaded) > 1:
            raise BadData(f"{name} has splits {', '.join(loaded)}; choose one with '{name}@{next(iter(loaded))}'.")
        loaded = next(iter(loaded.values()))
    return _undecoded(loaded), list(loaded.column_names), None, name


def _head(path: Path) -> list[Mapping[str, Any]]:
    rows, _ = _table(path)
    return [row for _, row in zip(range(20), rows, strict=False)]


def _names(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _table(path: Path) -> tuple[Any, list[str]]:
    """Rows of one table file."""
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".tar"):
        sharded = _sharded([path])
        return sharded, list(sharded.column_names)
    if suffix in (".csv", ".tsv"):
        import csv

        csv.field_size_limit(2**31 - 1)
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows: list[Any] = list(csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ","))
        return rows, _names(rows)
    rows = []
    try:
        if suffix == ".json":
            rows = json.loads(path.read_text("utf-8-sig"))
            if not isinstance(rows, list) or any(not isinstance(r, dict) for r in rows):
                raise BadData(f"{path} must hold a JSON list of objects, one a row.")
        else:
            with path.open(encoding="utf-8-sig") as file:
                for number, line in enumerate(file, 1):  # noqa: B007 - the error below names the line
                    if line.strip():
                        rows.append(json.loads(line))
    except json.JSONDecodeError as error:
        where = f"line {number}" if suffix == ".jsonl" else f"line {error.lineno}"
        raise BadData(f"{path}, {where}: no valid JSON ({error.msg}); is the file cut off?") from error
    except UnicodeDecodeError as error:
        raise BadData(f"{path} is not UTF-8 ({error.reason} at byte {error.start}).") from error
    if any(not isinstance(r, dict) for r in rows):
        raise BadData(f"{path} must hold one JSON object a line.")
    return rows, _names(rows)


def joined(rows: Any, columns: list[str], path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows with the columns of the second table added by id; a row without a partner gets None."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} to join.")
    other, other_columns = _table(path)
    id_name = next((n for n in IDS if n in columns and n in other_columns), None)
    if id_name is None:
        raise BadData(f"{path.name} and the source share no id column ({', '.join(IDS)}); rows are paired by id only.")
    added = [c for c in other_columns if c not in columns]
    partner = {str(row[id_name]): row for row in other}
    out = []
    for row in rows:
        match = partner.get(str(row[id_name]), {})
        out.append({**row, **{c: match.get(c) for c in added}})
    if not any(str(row[id_name]) in partner for row in out):
        raise BadData(f"no {id_name} of the source occurs in {path.name}; the two files describe different images.")
    return out, [*columns, *added]
