"""JSON lines, and JSON files that hold one list: read and copied piece by piece, as they need not fit into memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.conversations import edited_value
from symbal_hf.data.formats.plain_text import TextFile, lines, literal, written
from symbal_hf.data.formats.protocol import Edits, Row, check_columns

CHUNK = 1 << 20  # characters read at once, at least
NEXT = re.compile(r"[^ \t\n\r]")
DECODE = json.JSONDecoder().raw_decode


class JsonLines(TextFile):
    """One object a line; any file that is nothing else is read so."""

    name = "jsonl"

    def sniff(self, path: Path) -> bool:
        return True

    def read(self, path: Path) -> Iterator[Row]:
        for number, line in enumerate(lines(path), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                why = f"no valid JSON ({error.msg})"
                raise BadData(f"{path}, line {number}: {why}; is the file cut off?") from error
            if not isinstance(row, dict):
                kind = type(row).__name__
                raise BadData(f"{path}, line {number}: a {kind}; the file must hold one JSON object a line.")
            yield row

    def edited(self, source: Path, edits: Edits) -> Iterator[str]:
        _check_first(self.read(source), edits)
        number = 0
        for line in lines(source):
            if not line.strip():
                yield line
                continue
            yield _edited_row(line, number, edits) or ""
            number += 1
        edits.passes(number)

    def write(self, rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
        for row in rows:
            yield _written_row(row, self.name) + "\n"


class JsonList(TextFile):
    """One list of objects."""

    name = "json"

    def sniff(self, path: Path) -> bool:
        """Whether it is JSON, and not JSON lines under that name."""
        return path.suffix.lower() == ".json" and not is_json_lines(path)

    def read(self, path: Path) -> Iterator[Row]:
        for key, row in json_parts(path):
            if key is not None or not isinstance(row, dict):
                raise BadData(f"{path} must hold a JSON list of objects, one a row.")
            yield row

    def edited(self, source: Path, edits: Edits) -> Iterator[str]:
        _check_first(self.read(source), edits)
        number, head, begun = 0, "", False
        for before, item in item_texts(source):
            if not item:
                yield before if begun else head + before.lstrip(", \t\r\n") if number else before
                continue
            head = before if number == 0 else head
            row = _edited_row(item, number, edits)
            if row is not None:  # the first that stays opens the list
                yield (before if begun else head) + row
                begun = True
            number += 1
        edits.passes(number)

    def write(self, rows: Iterable[Row], columns: Sequence[str]) -> Iterator[str]:
        begun = False
        for row in rows:
            yield (",\n" if begun else "[\n") + _written_row(row, self.name)
            begun = True
        yield "\n]\n" if begun else "[]\n"


JSON_LINES, JSON_LIST = JsonLines(), JsonList()


def _check_first(rows: Iterator[Row], edits: Edits) -> None:
    # A row of JSON may lack what the next one has.
    check_columns([*next(rows, {}), edits.column], edits)


def _edited_row(text: str, number: int, edits: Edits) -> str | None:
    """A row as JSON with its edits; None where it goes."""
    if number in edits.wrong:
        row = json.loads(text)
        caption = row.get(edits.column)
        keep, changed = edited_value(edits, number, caption)
        if not keep:
            return None
        if changed != caption:
            text = _like(text, {**row, edits.column: changed})
    if not edits.flags:
        return text
    body = text[: text.rindex("}")].rstrip()
    new = [f"{json.dumps(k)}: {literal(v, ascii_only=text.isascii())}" for k, v in edits.flag_of(number).items()]
    return body + ("" if body.endswith("{") else ", ") + ", ".join(new) + text[len(body) :]


def _like(text: str, row: Row) -> str:
    """The row written anew, indented as `text` is, escaping what is not ASCII where that does, and with its end."""
    body = text.rstrip()
    outer, inner = re.search(r"\n([ \t]*)\}\Z", body), re.match(r"\s*\{\s*\n([ \t]*)", body)
    if outer is None or inner is None:
        return literal(row, ascii_only=text.isascii()) + text[len(body) :]
    new = literal(row, ascii_only=text.isascii(), indent=inner[1].removeprefix(outer[1]))
    return new.replace("\n", "\n" + outer[1]) + text[len(body) :]


def _written_row(row: Row, output_format: str) -> str:
    try:
        return literal(dict(row))
    except (TypeError, ValueError):
        for name, value in row.items():
            written(value, name, output_format)  # says which column it is
        raise


def item_texts(path: Path) -> Iterator[tuple[str, str]]:
    """What stands before each item of the JSON list in this file, and the item, as they are written.

    The last pair has the end of the file and no item.

    Raises:
        BadData: the list is cut off.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        text = _Text(file, path)
        text.peek()
        text.kept = 0
        for _ in text.items():
            yield text.text[text.kept : text.start], text.text[text.start : text.at]
            text.kept = text.at
        yield text.text[text.kept :] + file.read(), ""


def json_parts(path: Path) -> Iterator[tuple[str | None, Any]]:
    """The items of a list as (None, item), or the entries of an object as (key, value), lists among them item by item.

    Raises:
        BadData: no valid JSON, no UTF-8, or neither a list nor an object.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = _Text(file, path)
        opening = text.peek()
        if opening == "[":
            for item in text.items():
                yield None, item
        elif opening == "{":
            for key in text.keys():  # noqa: SIM118 - no mapping
                if text.peek() == "[":
                    for item in text.items():
                        yield key, item
                else:
                    yield key, text.value()
        else:
            text.value()
            raise BadData(f"{path} holds a single JSON value; expected a list of objects, one a row.")
        if text.peek():
            raise text.broken("Extra data", text.at)


def is_json_lines(path: Path) -> bool:
    """Whether the first two lines with text are an object each, as in JSON lines under another name."""
    with path.open("rb") as file:
        line = file.readline(CHUNK).removeprefix(b"\xef\xbb\xbf")
        while line and not line.strip():
            line = file.readline(CHUNK)
        if not line.endswith(b"\n"):
            return False
        try:
            return isinstance(json.loads(line), dict) and next(filter(None, map(bytes.strip, file)), b"")[:1] == b"{"
        except ValueError:
            return False


class _Text:
    """The characters of a file from a place on, as many as the value at hand needs, or all from `kept` on."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path, self.text, self.lines = file, path, "", 0
        self.at = self.start = 0  # the next character, and the first of the last value
        self.kept: int | None = None

    def more(self) -> bool:
        """Read on; False, and nothing has moved, at the end of the file."""
        gone = self.at if self.kept is None else self.kept
        # As much again as is there: a long value is then tried a few times, and not once for every chunk.
        try:
            part = self.file.read(max(CHUNK, len(self.text) - gone))
        except UnicodeDecodeError as error:
            raise BadData(f"{self.path} is not UTF-8 ({error.reason}); save it as UTF-8.") from error
        if part:
            self.lines += self.text.count("\n", 0, gone)
            self.text, self.at, self.start = self.text[gone:] + part, self.at - gone, self.start - gone
            self.kept = None if self.kept is None else 0
        return bool(part)

    def peek(self) -> str:
        """The next character that is no space; "" at the end of the file."""
        while (found := NEXT.search(self.text, self.at)) is None:
            self.at = len(self.text)
            if not self.more():
                return ""
        self.at = found.start()
        return found.group()

    def value(self) -> Any:
        self.peek()
        self.start = self.at
        while True:
            try:
                value, end = DECODE(self.text, self.at)
            except json.JSONDecodeError as error:
                if not self.more():
                    raise self.broken(error.msg, max(error.pos, 0)) from error
                continue
            if end + len("e-1") > len(self.text) and self.more():
                continue  # a number may go on, with as many characters until its next digit
            self.at = end
            return value

    def items(self) -> Iterator[Any]:
        yield from self._between("]", self.value)

    def keys(self) -> Iterator[str]:
        """Each key of an object; the caller then takes its value."""
        yield from self._between("}", self._key)

    def _key(self) -> str:
        if self.peek() != '"':
            raise self.broken("Expecting a name in double quotes", self.at)
        key: str = self.value()
        self._take(":")
        return key

    def _between(self, closing: str, read: Any) -> Iterator[Any]:
        self.at += 1
        if self.peek() == closing:
            self.at += 1
            return
        while True:
            yield read()
            if self._take(f",{closing}") == closing:
                return

    def _take(self, expected: str) -> str:
        found = self.peek()
        if not found or found not in expected:
            raise self.broken(f"Expecting {' or '.join(map(repr, expected))}", self.at)
        self.at += 1
        return found

    def broken(self, what: str, at: int) -> BadData:
        line = self.lines + self.text.count("\n", 0, at) + 1
        return BadData(f"{self.path}, line {line}: no valid JSON ({what}); is the file cut off?")
