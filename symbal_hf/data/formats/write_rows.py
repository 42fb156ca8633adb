"""Rows in memory written as a table of another format, with other captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import Unusable
from symbal_hf.data.formats.json_edit import literal
from symbal_hf.data.formats.places import places, with_text
from symbal_hf.data.formats.write_text import cell, record
from symbal_hf.followup.repair_plan import ERRORS, FLAG, Plan

RowFormat = Literal["jsonl", "json", "csv", "tsv"]


def edited(rows: Iterable[Mapping[str, Any]], plan: Plan) -> Iterator[dict[str, Any]]:
    """The rows with the edits of `plan` and the columns of the policy "flag"."""
    for number, row in enumerate(rows):
        plan.passes(1)
        out = {name: None if isinstance(value, Unusable) else value for name, value in row.items()}
        if number in plan.wrong:
            found = places(out[plan.column], chat=plan.chat)
            edit = plan.edit(number, [said for _, said in found])
            for (path, _), text in zip(found, edit.texts or (), strict=False):
                out[plan.column] = with_text(out[plan.column], path, text)
            if not edit.keep:
                continue
        yield {**out, **plan.flag_of(number)} if plan.flags else out


def write_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], out: Path, output_format: RowFormat, plan: Plan
) -> None:
    """Write rows that have been edited as JSON lines, JSON, CSV or TSV.

    Raises:
        BadData: a value that such a file cannot hold.
    """
    names = [*columns, *((FLAG, ERRORS) if plan.flags else ())]
    with out.open("w", encoding="utf-8", newline="") as file:
        if output_format in ("csv", "tsv"):
            comma = "\t" if output_format == "tsv" else ","
            file.write(record(names, comma) + "\n")
            for row in rows:
                file.write(record([_written(row.get(name), name, output_format) for name in names], comma) + "\n")
        elif output_format == "jsonl":
            file.writelines(_object(row, output_format) + "\n" for row in rows)
        else:
            written = False
            for row in rows:
                file.write((",\n" if written else "[\n") + _object(row, output_format))
                written = True
            file.write("\n]\n" if written else "[]\n")


def _object(row: Mapping[str, Any], output_format: RowFormat) -> str:
    try:
        return literal(dict(row))
    except (TypeError, ValueError):
        for name, value in row.items():
            _written(value, name, output_format)  # says which column it is
        raise


def _written(value: Any, column: str, output_format: RowFormat) -> str:
    try:
        text = cell(literal(value) if isinstance(value, (bytes, dict, list)) else value)
        text.encode("utf-8")
        literal(value)
    except (TypeError, ValueError) as error:  # among them half a surrogate pair, which only JSON can hold
        raise BadData(
            f"the column {column!r} holds what {output_format} cannot hold ({error}); give --output-format parquet "
            "(output_format='parquet'), or jsonl for text."
        ) from error
    return text
