"""A source of any kind, opened as it stands, and written with other captions in its own format or another."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import SourceFormat, Unusable
from symbal_hf.data.formats.conversations import coco, sidecars, url_field, url_table
from symbal_hf.data.formats.json_stream import is_json_lines, json_parts
from symbal_hf.data.formats.text_tables import column_names, plain_rows
from symbal_hf.data.formats.write_arrow import as_dataset, copy_parquet, dataset_batches, parquet_batches, rows_of
from symbal_hf.data.formats.write_rows import edited, write_rows
from symbal_hf.data.formats.write_text import TextKind, copy_text
from symbal_hf.data.opening import hub_dataset, table_files
from symbal_hf.followup.repair_plan import ERRORS, FLAG, Plan
from symbal_hf.results.repaired import OutputFormat

if TYPE_CHECKING:
    import pyarrow as pa

    from symbal_hf.data.formats.shards import TarRows

Kind = Literal["jsonl", "json", "csv", "tsv", "url-tsv", "parquet", "dataset", "rows", "tar"]
TEXT: tuple[TextKind, ...] = get_args(TextKind)
DATA = "data"  # the folder of shards, and the name of a table that had none
IMAGES_AT_ONCE = 100


@dataclass(frozen=True)
class Source:
    """What is repaired.

    Attributes:
        kind: a text table, parquet files, a `datasets.Dataset`, rows in memory, or WebDataset tars.
        name: of its table, without an ending.
        files: of a text table one, else its shards in order.
        held: the dataset or the rows, where they are no files that are copied.
    """

    kind: Kind
    name: str
    files: tuple[Path, ...] = ()
    held: Any = None


def open_source(source: Any, source_format: SourceFormat = "auto") -> Source:
    """The source as it stands, with all its columns and rows; `symbal_hf.data.table.load_data` says what it may be."""
    if not isinstance(source, (str, Path)):
        if hasattr(source, "features") and hasattr(source, "data"):
            return Source("dataset", DATA, held=source)
        return Source("rows", DATA, held=list(source))
    path = Path(source)
    if path.is_dir():
        files, one = table_files(path, source_format)
        if not files:
            found = sidecars(path)
            assert found is not None  # it has been audited
            return Source("rows", "captions", held=found.rows)
        if not one:
            return Source("tar" if files[0].suffix.lower() == ".tar" else "parquet", path.name, tuple(files))
        path = files[0]
    if not path.is_file():
        return Source("dataset", DATA, held=hub_dataset(str(source)))
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".tar"):
        return Source("tar" if suffix == ".tar" else "parquet", path.stem, (path,))
    if suffix == ".json" and not is_json_lines(path):
        parts = json_parts(path)
        first = next(parts, None)
        if first is not None and first[0] is not None:
            found = coco(path, itertools.chain([first], parts))
            assert found is not None
            return Source("rows", path.stem, held=found.rows)
        return Source("json", path.stem, (path,))
    if source_format == "url-tsv" or (suffix == ".tsv" and source_format == "auto" and url_field(path) is not None):
        return Source("url-tsv", path.stem, (path,))
    kinds: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv"}
    return Source(kinds.get(suffix, "jsonl"), path.stem, (path,))


def write_table(source: Source, folder: Path, output_format: OutputFormat, plan: Plan) -> Path:
    """Write the source into `folder` with the edits of `plan`, and return the table: a file, or the folder of shards.

    Raises:
        BadData: captions that are not in the source, or rows that the format cannot hold.
    """
    own = source.kind in TEXT and output_format in ("auto", source.kind, source.kind.removeprefix("url-"))
    if own and not (source.kind == "url-tsv" and plan.flags):
        table = folder / source.files[0].name
        if source.kind != "url-tsv":
            first = list(next(plain_rows(source.files[0]), {}))
            # A row of JSON may lack what the next one has.
            _check_columns([*first, plan.column] if source.kind in ("json", "jsonl") else first, plan)
        copy_text(source.files[0], table, cast(TextKind, source.kind), plan)
        return table
    wanted = "parquet" if output_format == "auto" else output_format
    table = folder / f"{source.name}.{wanted}"
    if wanted != "parquet":
        columns, rows = _edited_rows(source, plan)
        _check_columns(columns, plan)
        write_rows(rows, columns, table, wanted, plan)
        return table
    if source.kind != "parquet":
        schema, batches = _batches(source)
        _check_columns(schema.names, plan)
        copy_parquet(batches, schema, table, plan, start=0, compression="snappy")
        return table
    from pyarrow import parquet

    shards = len(source.files) > 1
    if shards:
        (folder / DATA).mkdir()
    start = 0
    for path in source.files:
        schema, about = parquet.read_schema(path), parquet.read_metadata(path)
        _check_columns(schema.names, plan)
        packed = about.row_group(0).column(0).compression if about.num_row_groups and about.num_columns else "SNAPPY"
        out = folder / DATA / path.name if shards else folder / path.name
        start = copy_parquet(parquet_batches(path), schema, out, plan, start=start, compression=_packing(packed))
    return folder / DATA if shards else folder / source.files[0].name


def _packing(name: str) -> str:
    return "none" if name == "UNCOMPRESSED" else name.lower()


def _check_columns(columns: Sequence[str], plan: Plan) -> None:
    if plan.flags and (taken := {FLAG, ERRORS} & set(columns)):
        raise BadData(f"the source has a column {min(taken)!r} already; repair what it was made from.")
    if columns and plan.column not in columns:
        raise BadData(
            f"the source has no column {plan.column!r} but {', '.join(map(str, columns))}; where the joined table has "
            "the captions, audit that table and join the other."
        )


def _edited_rows(source: Source, plan: Plan) -> tuple[list[str], Iterator[Mapping[str, Any]]]:
    if source.kind in ("parquet", "dataset"):
        schema, batches = _batches(source)
        return list(schema.names), rows_of(batches, plan)
    rows = _rows(source)
    columns = column_names(rows)
    return columns, edited(rows, plan)


def _rows(source: Source) -> Sequence[Mapping[str, Any]]:
    """The rows of a text table, of tars with their images, or those in memory."""
    if source.kind == "url-tsv":
        rows = url_table(source.files[0]).rows
        bad = next((n for n, row in enumerate(rows) if isinstance(row["caption"], Unusable)), None)
        if bad is not None:
            why = rows[bad]["caption"].reason
            raise BadData(
                f"row {bad} of {source.files[0].name} cannot be kept in another format ({why}); mend it or keep the "
                "source's own."
            )
        return rows
    if source.kind == "tar":
        tars = _tars(source)
        images = tars["image"] if "image" in tars.column_names else [None] * len(tars)
        return [{**row, "image": images[n]} for n, row in enumerate(tars)]
    return list(plain_rows(source.files[0])) if source.files else source.held


def _tars(source: Source) -> TarRows:
    from symbal_hf.data.formats.shards import TarRows

    return TarRows(source.files)


def _batches(source: Source) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Schema and rows of any source but shards, which keep their files."""
    if source.kind == "parquet":
        from pyarrow import parquet

        batches = itertools.chain.from_iterable(map(parquet_batches, source.files))
        return parquet.read_schema(source.files[0]), batches
    if source.kind == "tar":
        return _with_images(_tars(source))
    if source.kind == "dataset":
        dataset = source.held
    else:
        rows = _rows(source)
        dataset = as_dataset(rows, column_names(rows))
    return dataset.features.arrow_schema, dataset_batches(dataset)


def _with_images(tars: TarRows) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Samples of tars with their images in the way that `datasets` keeps them, a few at a time."""
    import pyarrow as pa
    from datasets import Features, Image

    texts = [name for name in tars.column_names if name != "image"]
    dataset = as_dataset(list(tars), texts)
    if "image" not in tars.column_names:
        return dataset.features.arrow_schema, dataset_batches(dataset)
    schema = Features({**dataset.features, "image": Image()}).arrow_schema
    images = tars["image"]

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for table in dataset.with_format("arrow").iter(batch_size=IMAGES_AT_ONCE):
            held = [images[n] for n in range(start, start + len(table))]
            start += len(table)
            column = pa.array(
                [None if b is None else {"bytes": b, "path": None} for b in held], schema.field("image").type
            )
            yield from pa.table([*table.columns, column], schema=schema).to_batches()

    return schema, batches()
