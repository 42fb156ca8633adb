"""Text tables copied with other captions: untouched rows keep every byte, changed ones all but the caption."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.conversations import url_field
from symbal_hf.data.formats.json_edit import extended, item_texts, literal, replaced
from symbal_hf.data.formats.places import places, with_text
from symbal_hf.followup.repair_plan import AS_IT_IS, ERRORS, FLAG, Plan

TextKind = Literal["jsonl", "json", "csv", "tsv", "url-tsv"]
BOM = b"\xef\xbb\xbf"


def copy_text(source: Path, out: Path, kind: TextKind, plan: Plan) -> None:
    """Write the table `source` to `out` in its own format, with the edits of `plan`.

    Raises:
        BadData: columns are to be added where there is no room for them.
    """
    with source.open("rb") as file:
        mark = BOM.decode() if file.read(3) == BOM else ""
    with out.open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        for piece in COPIES[kind](source, plan):
            file.write(piece)


def _lines(source: Path, newline: str = "") -> Iterator[str]:
    with source.open(encoding="utf-8-sig", newline=newline) as file:
        yield from file


def _json_lines(source: Path, plan: Plan) -> Iterator[str]:
    number = 0
    for line in _lines(source):
        if not line.strip():
            yield line
            continue
        new = _edited_json(line, number, plan)
        yield "" if new is None else new
        number += 1
    plan.passes(number)


def _json_list(source: Path, plan: Plan) -> Iterator[str]:
    number, head, written = 0, "", False
    for before, item in item_texts(source):
        if not item:
            yield before if written else head + before.lstrip(", \t\r\n") if number else before
            continue
        head = before if number == 0 else head
        new = _edited_json(item, number, plan)
        if new is not None:  # the first that stays opens the list
            yield (before if written else head) + new
            written = True
        number += 1
    plan.passes(number)


def _edited_json(text: str, number: int, plan: Plan) -> str | None:
    """A row as JSON with its edits; None where it goes."""
    edit = AS_IT_IS
    if number in plan.wrong:
        found = places(json.loads(text).get(plan.column), chat=plan.chat)
        edit = plan.edit(number, [said for _, said in found])
        for (path, _), new in zip(found, edit.texts or (), strict=False):
            text = replaced(text, (plan.column, *path), new)
    if not edit.keep:
        return None
    return extended(text, plan.flag_of(number)) if plan.flags else text


def _records(source: Path, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Each record as it is written, and its fields; no fields for an empty line."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        for line in _lines(source):
            taken.append(line)
            yield line

    csv.field_size_limit(2**31 - 1)
    for fields in csv.reader(lines(), delimiter=delimiter):
        yield "".join(taken), fields
        taken.clear()


def _delimited(source: Path, plan: Plan, delimiter: str) -> Iterator[str]:
    header: list[str] | None = None
    number = 0
    for raw, fields in _records(source, delimiter):
        body = raw.rstrip("\r\n")
        end = raw[len(body) :]
        if not fields:
            yield raw
        elif header is None:
            header = fields
            place = len(header) - 1 - header[::-1].index(plan.column)  # of equal names the last counts
            yield body + delimiter + record([FLAG, ERRORS], delimiter) + end if plan.flags else raw
        else:
            edit = AS_IT_IS
            if number in plan.wrong:
                found = places(fields[place], chat=plan.chat)
                edit = plan.edit(number, [said for _, said in found])
                for (path, _), new in zip(found, edit.texts or (), strict=False):
                    fields[place] = with_text(fields[place], path, new)
                body = record(fields, delimiter) if edit.texts else body
            if plan.flags:
                if len(fields) > len(header):
                    raise BadData(
                        f"row {number} of {source.name} has {len(fields)} fields under {len(header)} names, so that no "
                        "column can be added; mend it or give --output-format jsonl (output_format='jsonl')."
                    )
                body += delimiter * (len(header) - len(fields)) + delimiter
                body += record([cell(value) for value in plan.flag_of(number).values()], delimiter)
            if edit.keep:
                yield body + end
            number += 1
    plan.passes(number)


def cell(value: Any) -> str:
    """A value as the text of a CSV cell: nothing for None, JSON for what is nested."""
    if value is None or isinstance(value, str):
        return value or ""
    return literal(value) if isinstance(value, (dict, list, bool)) else str(value)


def record(fields: Sequence[str], delimiter: str) -> str:
    """The fields as one line of CSV, without its end."""
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(fields)  # quotes both signs where they occur
    return out.getvalue().removesuffix("\r\n")


def _urls(source: Path, plan: Plan) -> Iterator[str]:
    """A caption and a URL a line: there is no header, and quotes are part of the captions."""
    if plan.flags:
        raise BadData(f"{source.name} has no header, so that no column can be added; give another output format.")
    where, number = url_field(source) or 0, 0
    for line in _lines(source, "\n"):
        body = line.rstrip("\r\n")
        if not body:
            yield line
            continue
        if number in plan.wrong:
            fields = body.split("\t")
            edit = plan.edit(number, [fields[1 - where]])
            if edit.texts:
                fields[1 - where] = " ".join(edit.texts[0].split())
            line = "\t".join(fields) + line[len(body) :] if edit.keep else ""
        yield line
        number += 1
    plan.passes(number)


COPIES: dict[TextKind, Callable[[Path, Plan], Iterator[str]]] = {
    "jsonl": _json_lines,
    "json": _json_list,
    "csv": lambda source, plan: _delimited(source, plan, ","),
    "tsv": lambda source, plan: _delimited(source, plan, "\t"),
    "url-tsv": _urls,
}
