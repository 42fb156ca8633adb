"""A source of any kind written anew with other captions, in its own format or another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import SourceFormat
from symbal_hf.data.columns import Unusable
from symbal_hf.data.formats import COPIED, WRITERS, format_of
from symbal_hf.data.formats.arrow import as_dataset, dataset_batches, hub_dataset, parquet_batches, write_parquet
from symbal_hf.data.formats.conversations import edited_value
from symbal_hf.data.formats.folders import sidecars
from symbal_hf.data.formats.protocol import ERRORS, FLAG, Edits, Row, Table, check_columns, table_of
from symbal_hf.data.formats.tars import TAR, tar_batches
from symbal_hf.data.opening import is_dataset, table_files
from symbal_hf.results.repaired import OutputFormat

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Source:
    """What is copied."""

    kind: str  # the format of its files; "dataset" or "rows" where it has none that is copied
    name: str  # of its table, without an ending
    files: tuple[Path, ...] = ()  # a table's file, or its shards in order
    dataset: Any = None  # a `datasets.Dataset`
    rows: Table | None = None  # in memory


def open_source(source: Any, source_format: SourceFormat = "auto") -> Source:
    """The source as it stands, with all its columns and rows; `symbal_hf.data.table.load_data` says what it may be."""
    if not isinstance(source, (str, Path)):
        if is_dataset(source):
            return Source("dataset", "data", dataset=source)
        return Source("rows", "data", rows=table_of(source))
    path = Path(source)
    if path.is_dir():
        files, single = table_files(path, source_format)
        if not files:
            return Source("rows", "captions", rows=sidecars(path))
        if not single:
            return Source(format_of(files[0]).name, path.name, tuple(files))
        path = files[0]
    if not path.is_file():
        return Source("dataset", "data", dataset=hub_dataset(str(source)))
    file_format = format_of(path, source_format)
    if file_format.name == "coco":
        return Source("rows", path.stem, rows=file_format.rows([path]))
    return Source(file_format.name, path.stem, (path,))


def write_table(source: Source, folder: Path, output_format: OutputFormat, edits: Edits) -> Path:
    """Write the source into `folder` with `edits`, and return the table: a file, or the folder of shards."""
    same = output_format in ("auto", source.kind, source.kind.removeprefix("url-"))
    if same and source.kind in COPIED and not (source.kind == "url-tsv" and edits.flags):
        return COPIED[source.kind].copy(source.files, folder, edits)
    wanted = "parquet" if output_format == "auto" else output_format
    out = folder / f"{source.name}.{wanted}"
    if wanted == "parquet":
        schema, batches = _batches(source)
        check_columns(schema.names, edits)
        write_parquet(batches, schema, out, edits)
        return out
    table = _table(source)
    check_columns(table.columns, edits)
    columns = [*table.columns, *((FLAG, ERRORS) if edits.flags else ())]
    with out.open("w", encoding="utf-8", newline="") as file:
        file.writelines(WRITERS[wanted](_edited_rows(table, edits), columns))
    return out


def _edited_rows(rows: Iterable[Row], edits: Edits) -> Iterator[Row]:
    for number, row in enumerate(rows):
        edits.passes(1)
        out = {name: None if isinstance(value, Unusable) else value for name, value in row.items()}
        keep = True
        if number in edits.wrong:
            keep, out[edits.column] = edited_value(edits, number, out[edits.column])
        if keep:
            yield {**out, **edits.flag_of(number)} if edits.flags else out


def _table(source: Source) -> Table:
    """All rows of a source with all their columns."""
    if source.rows is not None:
        return source.rows
    if source.kind in ("parquet", "dataset"):
        schema, batches = _batches(source)
        return Table(list(schema.names), lambda _: (row for batch in batches for row in batch.to_pylist()))
    table = format_of(source.files[0], "url-tsv" if source.kind == "url-tsv" else "table").rows(source.files)
    if source.kind == "url-tsv":
        bad = next(((n, row["caption"]) for n, row in enumerate(table) if isinstance(row["caption"], Unusable)), None)
        if bad is not None:
            raise BadData(
                f"row {bad[0]} of {source.files[0].name} cannot be kept in another format ({bad[1].reason}); mend it "
                "or keep the source's own."
            )
    if source.kind == "tar":
        images = table.column("image") if "image" in table.columns else itertools.repeat(None)
        return table_of(({**row, "image": image} for row, image in zip(table, images, strict=False)))
    return table.in_memory()


def _batches(source: Source) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Schema and rows of any source as one table of Arrow."""
    if source.kind == "parquet":
        from pyarrow import parquet

        batches = itertools.chain.from_iterable(map(parquet_batches, source.files))
        return parquet.read_schema(source.files[0]), batches
    if source.kind == "tar":
        return tar_batches(TAR.rows(source.files))
    dataset = source.dataset
    if dataset is None:
        table = _table(source)
        dataset = as_dataset(list(table), table.columns)
    return dataset.features.arrow_schema, dataset_batches(dataset)
