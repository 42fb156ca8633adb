"""Rows of whatever holds them: a table file, a folder, a Hub dataset, a dataset in memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import CAPTIONS, IDS, IMAGES, PICTURES, TABLES, SourceFormat
from symbal_hf.data.formats.conversations import sidecars
from symbal_hf.data.formats.text_tables import captioned, column_names, has_captions, has_images, read_table, sharded
from symbal_hf.data.origin import about, image_root_of

__all__ = ["CAPTIONS", "IDS", "IMAGES", "PICTURES", "TABLES", "joined", "open_rows"]
NUMBER = re.compile(r"#\d+$")


def open_rows(
    source: Any, *, source_format: SourceFormat = "auto", caption_column: str | None = None, captions: bool = True
) -> tuple[Any, list[str], Path | None, str]:
    """Rows, column names, the folder that image paths are relative to, and the source's name with its format.

    Args:
        source: as for `symbal_hf.data.table.load_data`.
        source_format: as there.
        caption_column: a column of texts or of conversations; found by name or by structure where none is named.
        captions: False where images are wanted, whether they have captions or not: a folder is then its table with
            a column of images, or else all the images in it.
    """
    asked = (source_format, caption_column)
    if isinstance(source, (str, Path)):
        path = Path(source)
        if path.is_dir():
            return _open_folder(path, *asked, captions)
        if not captions and path.suffix.lower() in PICTURES and path.is_file():
            return [{"id": path.stem, "image": path.name}], ["id", "image"], path.resolve().parent, f"image {path.name}"
        if path.suffix.lower() in TABLES or path.exists():
            if not path.is_file():
                raise FileNotFoundError(f"no file {path}; give a {', '.join(TABLES)} file, a folder or a Hub id.")
            rows, columns, root, words = read_table(path, *asked)
            return rows, columns, root or image_root_of(path) or path.resolve().parent, f"{words} {path.name}".lstrip()
        return _open_hub(str(source), *asked)
    if hasattr(source, "column_names") and isinstance(source.column_names, Mapping):
        raise BadData(f"a DatasetDict with splits {', '.join(source)}; pass one of them, such as source['test'].")
    if hasattr(source, "column_names") and hasattr(source, "features") and hasattr(source, "__getitem__"):
        rows, columns, words = captioned(_undecoded(source), list(source.column_names), "the dataset", *asked)
        return rows, columns, None, f"the dataset of {words}" if words else "the dataset"
    rows = list(source)
    if any(not isinstance(r, Mapping) for r in rows):
        raise BadData(
            f"rows of type {type(rows[0]).__name__}; expected mappings such as {{'image': .., 'caption': ..}}."
        )
    rows, columns, words = captioned(rows, column_names(rows), "the given rows", *asked)
    return rows, columns, None, f"the given rows of {words}" if words else "the given rows"


def _undecoded(dataset: Any) -> Any:
    """Image columns as encoded bytes or paths: pixels are decoded where they are needed, not while reading rows."""
    from datasets import Image

    for column, feature in dataset.features.items():
        if isinstance(feature, Image):
            dataset = dataset.cast_column(column, Image(decode=False))
        elif isinstance(getattr(feature, "feature", None), Image):  # a list of images
            dataset = dataset.cast_column(column, type(feature)(Image(decode=False)))
    return dataset


def _open_folder(
    path: Path, source_format: SourceFormat, caption: str | None, captions: bool
) -> tuple[Any, list[str], Path | None, str]:
    files, one = table_files(path, source_format, captions=captions)
    if one:
        rows, columns, root, words = read_table(files[0], source_format, caption)
        root = root or image_root_of(files[0]) or path.resolve()
        return rows, columns, root, f"{words} {path.name}/{files[0].name}".lstrip()
    if files:
        rows = sharded(files)
        where = f"{len(files)} shards in {path.name}"
        rows, columns, words = captioned(rows, list(rows.column_names), where, source_format, caption)
        return rows, columns, path.resolve(), f"{words} in {where}" if words else where
    if source_format in ("auto", "sidecars") and (loose := sidecars(path, bare=not captions)):
        return loose.rows, loose.columns, path.resolve(), f"{loose.words} in {path.name}"
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


def table_files(path: Path, source_format: SourceFormat = "auto", *, captions: bool = True) -> tuple[list[Path], bool]:
    """The files of the table in a folder, and whether it is one file and not shards; none where there is no table.

    Raises:
        BadData: several tables.
    """
    if source_format == "sidecars":
        return [], False
    tables = sorted(p for p in path.iterdir() if p.suffix.lower() in TABLES)
    named = [p for p in tables if p.stem in ("metadata", "captions", "data", path.name)]
    if captions:
        best = named or [p for p in tables if has_captions(p)]
    else:  # what was made of these images before is not what they are
        found = [p for p in tables if not about(p).is_file() and has_images(p)]
        best = [p for p in found if p in named] or found
    if len(best) == 1 or (best and best[0].stem in ("metadata", "captions")):
        return best[:1], True
    shards = _shards(path, best)
    if len(best) > 1 and not shards:
        raise BadData(f"{path} holds several tables ({', '.join(p.name for p in best)}); name one of them.")
    return shards, False


def _shards(path: Path, tables: list[Path]) -> list[Path]:
    """The files that make up one table of this folder, or of its folder data/, in order: all parquet, or all tars."""
    found = tables or [p for p in sorted(path.glob("data/*")) if p.suffix.lower() in (".parquet", ".tar")]
    kinds = {p.suffix.lower() for p in found}
    return found if kinds in ({".parquet"}, {".tar"}) else []


def _open_hub(name: str, source_format: SourceFormat, caption: str | None) -> tuple[Any, list[str], Path | None, str]:
    loaded = hub_dataset(name)
    rows, columns, words = captioned(_undecoded(loaded), list(loaded.column_names), name, source_format, caption)
    return rows, columns, None, f"{words} of {name}" if words else name


def hub_dataset(name: str) -> Any:
    """The `datasets.Dataset` of a Hub id, "ns/name:config@split#revision".

    Raises:
        BadData: the Hub gives none, or several splits.
    """
    from datasets import load_dataset

    rest, _, revision = name.partition("#")
    rest, _, split = rest.partition("@")
    repo, _, config = rest.partition(":")
    try:
        loaded = load_dataset(repo, config or None, split=split or None, revision=revision or None)
    except Exception as error:  # a dozen kinds: no such repo, no network, gated, bad config
        raise BadData(f"{name!r} is no file or folder here and no dataset that the Hub gives: {error}") from error
    if isinstance(loaded, Mapping):
        if len(loaded) > 1:
            one = f"{rest}@{next(iter(loaded))}{'#' * bool(revision)}{revision}"
            raise BadData(f"{name} has splits {', '.join(loaded)}; choose one with '{one}'.")
        loaded = next(iter(loaded.values()))
    return loaded


def joined(rows: Any, columns: list[str], path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows with the columns of the second table added by id; a row without a partner gets None.

    Of COCO's captions come the references, of its instances the objects. Images come only where there were none. Where
    no id column has the same name in both, those that they have are compared, and must have most ids in common.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} to join.")
    other, other_columns, *_ = read_table(path, joining=True)
    own, theirs = [n for n in IDS if n in columns], [n for n in IDS if n in other_columns]
    if not own or not theirs:
        raise BadData(f"{path.name} and the source share no id column ({', '.join(IDS)}); rows are paired by id only.")
    id_name = next((n for n in own if n in theirs), own[0])
    other_name = id_name if id_name in theirs else theirs[0]
    has_images = any(name in columns for name in IMAGES)
    added = [c for c in other_columns if c not in columns and not (has_images and c in IMAGES)]
    numbered = hasattr(rows, "numbered")  # several samples of one image have the partner of that image
    rows = list(rows)
    for number in (False, True):  # 000000000139 is COCO's 139, where no id is the same as it stands
        partner = {_key(row.get(other_name), number): row for row in other if row.get(other_name) is not None}
        found = [partner.get(_key(row.get(id_name), number)) for row in rows]
        if numbered:
            again = (_key(NUMBER.sub("", str(row.get(id_name))), number) for row in rows)
            found = [match or partner.get(key) for match, key in zip(found, again, strict=True)]
        matched = sum(match is not None for match in found)
        if matched and (id_name == other_name or matched > len(rows) / 2):
            break
    else:
        few = f"no {id_name}" if id_name == other_name else f"not even half of the {id_name}s"
        raise BadData(
            f"{few} of the source occur{'s' if id_name == other_name else ''} in {path.name} ({other_name}); the two "
            "files describe different images."
        )
    out = [{**row, **{c: (match or {}).get(c) for c in added}} for row, match in zip(rows, found, strict=True)]
    return out, [*columns, *added]


def _key(value: Any, number: bool) -> str | None:
    key = None if value is None else str(value)
    return key.lstrip("0") or "0" if number and key is not None and key.isdecimal() else key
