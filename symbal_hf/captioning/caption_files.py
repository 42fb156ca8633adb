"""What `symbal caption` writes: rows with captions that an audit reads as they are, and how they were made."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.data.origin import about, provenance_of
from symbal_hf.data.table import Images

KINDS = (".jsonl", ".parquet")
# What two runs must share for the second to complete the file of the first; limit and sample may differ.
SAME = ("model", "revision", "settings", "prompt", "max_tokens", "temperature", "seed", "source")
ROWS = 100  # of one row group, so that a viewer need not hold more images


def image_names(images: Images, out: Path, source: str) -> tuple[list[str | None], Path | None]:
    """What a row of `out` calls each image (None: it has none that can be found), and the folder they are relative to.

    That is None where all lie below the folder of `out`, which then may move with them.

    Raises:
        BadData: images without files of their own, which a .jsonl file cannot hold.
    """
    files: list[Path | str | None] = []
    for row in range(len(images)):
        try:
            file = images.file(row)
        except ValueError:  # asking says so, row by row
            files.append(None)
            continue
        if file is None:
            raise BadData(
                f"the images of {source} are no files of their own, which {out.name} could name; give "
                f"--out {out.with_suffix('.parquet').name}, which holds them."
            )
        files.append(file if isinstance(file, str) else file.resolve())
    paths = [file for file in files if isinstance(file, Path)]
    here, root = out.parent.resolve(), images.root
    inside = all(path.is_relative_to(here) for path in paths)
    top = here if inside else root or Path(os.path.commonpath([path.parent for path in paths]))
    names = [file.relative_to(top).as_posix() if isinstance(file, Path) else file for file in files]
    return names, None if inside else top


def check_out(out: Path, provenance: Mapping[str, Any], ids: Sequence[str]) -> list[str]:
    """The digest of the file that is already there, if any, which rows `ids` of a run like this may replace.

    Raises `BadData`: a name of another kind, or a file that holds anything else.
    """
    if out.suffix.lower() not in KINDS:
        raise BadData(f"out={str(out)!r}; captions are written to a {' or '.join(KINDS)} file.")
    if not out.exists():
        return []
    other = "; name another --out, or remove it."
    if not out.is_file() or (before := provenance_of(out)) is None:
        raise BadData(f"{out} is there already and was not written by `symbal caption`{other}")
    digest = _digest(out)
    if digest not in before["sha256"]:
        raise BadData(f"{out} has been changed since `symbal caption` wrote it{other}")
    for name in SAME:
        if before.get(name) != provenance[name]:
            raise BadData(
                f"{out} holds captions of another run ({name} {before.get(name)!r}, not {provenance[name]!r}){other}"
            )
    if lost := len(set(_ids(out)) - set(ids)):
        raise BadData(f"{out} holds captions of {lost:,} images that are not among the {len(ids):,} of this run{other}")
    return [digest]


def _ids(out: Path) -> Iterable[str]:
    if out.suffix.lower() == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(out, columns=["id"]).column(0).to_pylist()
    with out.open(encoding="utf-8") as file:
        return [json.loads(line)["id"] for line in file]


def write_captions(
    out: Path,
    rows: Sequence[Mapping[str, Any]],
    images: Images,
    which: Sequence[int],
    provenance: dict[str, Any],
    replaces: Sequence[str] = (),
) -> None:
    """Write `out` whole, a .jsonl or .parquet file, and beside it how it was made.

    Args:
        out: the file.
        rows: id, image (a name), caption and whatever else is known of each.
        images: of which a .parquet file holds those that have a caption.
        which: for each of `rows` its row in `images`.
        provenance: must have `SAME`, and "image_root" where the names in a .jsonl file are relative to another folder.
        replaces: digest of the file that is there.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        if out.suffix.lower() == ".parquet":
            _parquet(part, rows, images, which)
        else:
            with part.open("w", encoding="utf-8") as file:
                file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        # First what is told: if nothing more happens, the file that is there is still one of those it tells of.
        digests = list(dict.fromkeys((_digest(part), *replaces)))
        whole = provenance | {"path": str(out.resolve()), "sha256": digests}
        write_whole(about(out), json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def _parquet(path: Path, rows: Sequence[Mapping[str, Any]], images: Images, which: Sequence[int]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features, Image

    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name != "image"]
    light = pa.table({name: _column(pa, [row.get(name) for row in rows]) for name in names})
    features = Features({**Features.from_arrow_schema(light.schema), "image": Image()})
    schema = features.arrow_schema
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:  # images are compressed
        for start in range(0, len(rows), ROWS):
            held = [
                {"bytes": images.encoded(which[i]), "path": rows[i].get("image") and Path(rows[i]["image"]).name}
                for i in range(start, min(start + ROWS, len(rows)))
            ]
            table = light.slice(start, ROWS).append_column("image", pa.array(held, schema.field("image").type))
            writer.write_table(table.select(schema.names).cast(schema))


def _column(pa: Any, values: list[Any]) -> Any:
    """The values as one Arrow column, as JSON text where they are of several kinds."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else json.dumps(value, ensure_ascii=False) for value in values])


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
