"""Arrow tables: parquet files and datasets, read in place and copied batch by batch, as none need fit into memory.

What no finding is about never becomes a Python object.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import Unusable
from symbal_hf.data.formats.conversations import edited_value
from symbal_hf.data.formats.protocol import ERRORS, FLAG, Edits, Row, Table, check_columns

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = 2  # row groups of images in memory at once: rows are asked in order, or nearly
BATCH_BYTES = 64 << 20  # of rows in memory at once, about
BATCH_ROWS = 8192
AT_ONCE = 256  # rows as Python objects: who wants the first of a batch need not pay for all
DATA = "data"  # the folder of shards


# ---------------------------------------------------------------------------------------------------- parquet files


class Parquet:
    """Parquet files with the same columns, which are read from them when they are asked for."""

    name = "parquet"

    def sniff(self, path: Path) -> bool:
        return path.suffix.lower() == ".parquet"

    def rows(self, files: Sequence[Path]) -> Table:
        import pyarrow
        from pyarrow import parquet

        schemas = []
        for path in files:
            try:
                schemas.append(parquet.read_schema(path))
            except (pyarrow.ArrowException, OSError) as error:
                raise BadData(f"{path} is no whole parquet file ({error}); fetch or write it again.") from error
            if odd := sorted(set(schemas[-1].names) ^ set(schemas[0].names)):
                raise BadData(f"{path.name} and {files[0].name} differ in the column {odd[0]!r}; name one to audit.")
        heavy = frozenset(field.name for field in schemas[0] if "binary" in str(field.type))
        columns = list(schemas[0].names)
        return Table(
            columns,
            lambda without: _parquet_rows(files, [name for name in columns if name not in without]),
            lambda name: ParquetColumn(files, name),
            heavy,
        )

    def copy(self, files: Sequence[Path], folder: Path, edits: Edits) -> Path:
        """The same files with the compression that they had."""
        from pyarrow import parquet

        shards = len(files) > 1
        if shards:
            folder = folder / DATA
            folder.mkdir()
        start = 0
        for path in files:
            about, schema = parquet.read_metadata(path), parquet.read_schema(path)
            check_columns(schema.names, edits)
            whole = about.num_row_groups and about.num_columns
            packed = about.row_group(0).column(0).compression.lower() if whole else "snappy"
            packed = "none" if packed == "uncompressed" else packed
            start = write_parquet(parquet_batches(path), schema, folder / path.name, edits, start, compression=packed)
        return folder if shards else folder / files[0].name


PARQUET = Parquet()


def _parquet_rows(files: Sequence[Path], columns: list[str]) -> Iterator[Row]:
    from pyarrow import parquet

    for path in files:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=columns):
                for start in range(0, len(batch), AT_ONCE):
                    yield from batch.slice(start, AT_ONCE).to_pylist()


class ParquetColumn(Sequence[Any]):
    """One column of parquet files, row group by row group."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        from pyarrow import parquet

        self.files, self.name, self._groups, self._starts = files, name, [], [0]
        for path in files:
            with parquet.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    self._groups.append((path, group))
                    self._starts.append(self._starts[-1] + file.metadata.row_group(group).num_rows)
        self._read = lru_cache(maxsize=GROUPS)(self._group)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, row: Any) -> Any:
        if not 0 <= row < len(self):
            raise IndexError(row)
        group = bisect_right(self._starts, row) - 1
        return self._read(group)[row - self._starts[group]].as_py()

    def _group(self, number: int) -> Any:
        from pyarrow import parquet

        path, group = self._groups[number]
        with parquet.ParquetFile(path) as file:
            return file.read_row_group(group, columns=[self.name]).column(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetColumn, (self.files, self.name)


def parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The rows of one parquet file, so many at a time as fit into BATCH_BYTES."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group)
            rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(about.num_rows, 1) // max(about.total_byte_size, 1)))
            yield from file.iter_batches(batch_size=rows, row_groups=[group])


# --------------------------------------------------------------------------------------------------------- datasets


def hub_dataset(name: str) -> Any:
    """The `datasets.Dataset` of a Hub id, "ns/name:config@split#revision"; raises `BadData` for none or several."""
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


def dataset_table(dataset: Any) -> Table:
    """A `datasets.Dataset` whose images stay encoded: pixels are decoded where they are needed, not while reading."""
    from datasets import Image

    heavy = set()
    for column, feature in dataset.features.items():
        if isinstance(feature, Image):
            dataset = dataset.cast_column(column, Image(decode=False))
        elif isinstance(getattr(feature, "feature", None), Image):  # a list of images
            dataset = dataset.cast_column(column, type(feature)(Image(decode=False)))
        else:
            continue
        heavy.add(column)
    columns = list(dataset.column_names)

    def read(without: Collection[str]) -> Iterable[Row]:
        gone = [name for name in columns if name in without]
        return dataset.remove_columns(gone) if gone else dataset  # type: ignore[no-any-return]

    return Table(columns, read, lambda name: dataset[name], frozenset(heavy))


def dataset_batches(dataset: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a `datasets.Dataset` as they are stored, no image decoded."""
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(len(dataset), 1) // max(dataset.data.nbytes, 1)))
    for table in dataset.with_format("arrow").iter(batch_size=rows):
        yield from table.to_batches()


def as_dataset(rows: Sequence[Row], columns: Sequence[str]) -> Any:
    """Rows in memory as a `datasets.Dataset`; raises `BadData` for a column of several types."""
    import pyarrow as pa
    from datasets import Dataset

    if odd := [name for name in columns if not isinstance(name, str)]:
        raise BadData(f"a row has more fields than names (under {odd[0]!r}); mend it, or keep the source's own format.")
    try:
        return Dataset.from_dict({name: [_plain(row.get(name)) for row in rows] for name in columns})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise BadData(
            f"the rows have several types in a column ({error}); give --output-format jsonl (output_format='jsonl')."
        ) from error


def _plain(value: Any) -> Any:
    return None if isinstance(value, Unusable) else str(value) if isinstance(value, Path) else value


# ---------------------------------------------------------------------------------------------------- other captions


def write_parquet(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    out: Path,
    edits: Edits,
    start: int = 0,
    *,
    compression: str = "snappy",
) -> int:
    """Write rows from number `start` on to a new parquet file with `edits`; return the number after the last.

    What `schema` says of `datasets` features is kept.
    """
    import pyarrow as pa
    from pyarrow import parquet

    schema = _flagged_schema(schema) if edits.flags else schema
    with parquet.ParquetWriter(out, schema, compression=compression) as writer:
        for numbers, kept, batch in _edited(batches, edits, start):
            start = numbers.stop
            if edits.flags:
                flags = [edits.flag_of(number) for number in kept]
                added = [pa.array([flag[name] for flag in flags], schema.field(name).type) for name in (FLAG, ERRORS)]
                batch = pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)
            if len(batch):
                writer.write_batch(batch.cast(schema) if batch.schema != schema else batch)
    return start


def _edited(
    batches: Iterable[pa.RecordBatch], edits: Edits, start: int
) -> Iterator[tuple[range, list[int], pa.RecordBatch]]:
    """The numbers of the rows of each batch, of those that stay, and these with their edits."""
    import pyarrow as pa

    for batch in batches:
        numbers = range(start, start + len(batch))
        index = batch.schema.get_field_index(edits.column)
        old = {n: batch.column(index)[n - start].as_py() for n in numbers if n in edits.wrong}
        new = {n: edited_value(edits, n, value) for n, value in old.items()}
        edits.passes(len(batch))
        changed = {n - start: value for n, (keep, value) in new.items() if keep and value != old[n]}
        if changed:
            field = batch.schema.field(index)
            pieces, at = [], 0
            for row, value in sorted(changed.items()):  # all other rows stay where and as they are
                pieces += [batch.column(index).slice(at, row - at), pa.array([value], field.type)]
                at = row + 1
            column = pa.concat_arrays([*pieces, batch.column(index).slice(at)])
            batch = batch.set_column(index, field, column)
        gone = [n - start for n, (keep, _) in new.items() if not keep]
        if gone:
            stops = itertools.pairwise([-1, *gone, len(batch)])  # no kernel but this one knows every type of column
            batch = pa.concat_batches([batch.slice(a + 1, b - a - 1) for a, b in stops])
        yield numbers, [n for n in numbers if n not in new or new[n][0]], batch
        start = numbers.stop


def _flagged_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the columns of flags, in its description of `datasets` features too."""
    from datasets import Features, List, Value

    text = Value("string")
    error = {"textual_error": text, "visual_feature": text, "sentences": List(text)}
    added = Features({FLAG: Value("bool"), ERRORS: List(error)})
    metadata = schema.metadata or {}
    if b"huggingface" in metadata:
        described = Features({**Features.from_arrow_schema(schema), **added}).arrow_schema
        metadata = {**metadata, **(described.metadata or {})}
    for field in added.arrow_schema:
        schema = schema.append(field)
    return schema.with_metadata(metadata)
