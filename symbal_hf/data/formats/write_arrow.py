"""Arrow tables copied with other captions, batch by batch: what no finding is about never becomes a Python object."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import Unusable
from symbal_hf.data.formats.places import places, with_text
from symbal_hf.followup.repair_plan import ERRORS, FLAG, Plan

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_BYTES = 64 << 20  # of rows in memory at once, about
BATCH_ROWS = 8192


def parquet_batches(path: Path) -> Iterator[pa.RecordBatch]:
    """The rows of one parquet file, so many at a time as fit into BATCH_BYTES."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group)
            rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(about.num_rows, 1) // max(about.total_byte_size, 1)))
            yield from file.iter_batches(batch_size=rows, row_groups=[group])


def dataset_batches(dataset: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a `datasets.Dataset` as they are stored, no image decoded."""
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES * max(len(dataset), 1) // max(dataset.data.nbytes, 1)))
    for table in dataset.with_format("arrow").iter(batch_size=rows):
        yield from table.to_batches()


def copy_parquet(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: Path, plan: Plan, *, start: int, compression: str
) -> int:
    """Write rows to a parquet file with the edits of `plan`, and return the number of the row after the last.

    Args:
        batches: the rows, with this `schema`, whose description of `datasets` features is kept.
        out: a new file.
        start: the number of the first row in the source.
        compression: of the file.

    Raises:
        BadData: a column of the name of an added one.
    """
    from pyarrow import parquet

    schema = flagged_schema(schema) if plan.flags else schema
    with parquet.ParquetWriter(out, schema, compression=compression) as writer:
        for number, _, batch in _edited(batches, plan, start):
            start = number
            if plan.flags:
                batch = _with_flags(batch, schema, plan, number - len(batch))
            if len(batch):
                writer.write_batch(batch.cast(schema) if batch.schema != schema else batch)
    return start


def _edited(
    batches: Iterable[pa.RecordBatch], plan: Plan, start: int
) -> Iterator[tuple[int, list[int], pa.RecordBatch]]:
    """Each batch with its edits, the number of the row after it, and the numbers of its rows."""
    import pyarrow as pa

    for batch in batches:
        numbers = range(start, start + len(batch))
        edits = {n - start: _edit(batch, n, n - start, plan) for n in numbers if n in plan.wrong}
        plan.passes(len(batch))
        start = numbers.stop
        new = {row: value for row, (_, value) in edits.items() if value is not None}
        if new:
            place = batch.schema.get_field_index(plan.column)
            field = batch.schema.field(place)
            pieces, at = [], 0
            for row, (value,) in sorted(new.items()):  # all other rows stay where and as they are
                pieces += [batch.column(place).slice(at, row - at), pa.array([value], field.type)]
                at = row + 1
            column = pa.concat_arrays([*pieces, batch.column(place).slice(at)])
            batch = batch.set_column(place, field, column)
        gone = {row for row, (keep, _) in edits.items() if not keep}
        if gone:
            stops = [*sorted(gone), len(batch)]  # no kernel but this one knows every type of column
            batch = pa.concat_batches(
                [batch.slice(a + 1, b - a - 1) for a, b in itertools.pairwise([-1, *stops])]
            )  # fmt: skip
        yield start, [n for n in numbers if n - numbers.start not in gone], batch


def _edit(batch: pa.RecordBatch, number: int, row: int, plan: Plan) -> tuple[bool, tuple[Any] | None]:
    """Whether the row stays, and the new value of its caption's column, if there is one."""
    value = batch.column(batch.schema.get_field_index(plan.column))[row].as_py()
    found = places(value, chat=plan.chat)
    edit = plan.edit(number, [said for _, said in found])
    for (path, _), text in zip(found, edit.texts or (), strict=False):
        value = with_text(value, path, text)
    return edit.keep, None if edit.texts is None else (value,)


def flagged_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with the columns of the policy "flag", in its description of `datasets` features too."""
    from datasets import Features, List, Value

    added = Features({FLAG: Value("bool"), ERRORS: List(
        {"textual_error": Value("string"), "visual_feature": Value("string"), "sentences": List(Value("string"))}
    )})  # fmt: skip
    metadata = schema.metadata or {}
    if b"huggingface" in metadata:
        known = Features({**Features.from_arrow_schema(schema), **added}).arrow_schema
        metadata = {**metadata, **(known.metadata or {})}
    for field in added.arrow_schema:
        schema = schema.append(field)
    return schema.with_metadata(metadata)


def _with_flags(batch: pa.RecordBatch, schema: pa.Schema, plan: Plan, start: int) -> pa.RecordBatch:
    import pyarrow as pa

    flags = [plan.flag_of(number) for number in range(start, start + len(batch))]
    added = [pa.array([f[name] for f in flags], schema.field(name).type) for name in (FLAG, ERRORS)]
    return pa.RecordBatch.from_arrays([*batch.columns, *added], schema=schema)


def rows_of(batches: Iterable[pa.RecordBatch], plan: Plan) -> Iterator[dict[str, Any]]:
    """The edited rows as mappings, with the columns of the policy "flag"."""
    for _, numbers, batch in _edited(batches, plan, 0):
        for number, row in zip(numbers, batch.to_pylist(), strict=True):
            yield {**row, **plan.flag_of(number)} if plan.flags else row


def as_dataset(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Any:
    """Rows in memory as a `datasets.Dataset`.

    Raises:
        BadData: a column of several types.
    """
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
    if isinstance(value, Unusable):
        return None
    return str(value) if isinstance(value, Path) else value
