"""A JSON file piece by piece: files of millions of samples need not fit into memory to be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from symbal_hf.core.errors import BadData

CHUNK = 1 << 20  # characters read at once, at least
NEXT = re.compile(r"[^ \t\n\r]")
DECODE = json.JSONDecoder().raw_decode


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
    """The characters of a file from a place on, as many as the value at hand needs."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path, self.text, self.at, self.lines = file, path, "", 0, 0

    def more(self) -> bool:
        """Read on; False, and nothing has moved, at the end of the file."""
        # As much again as is there: a long value is then tried a few times, and not once for every chunk.
        try:
            part = self.file.read(max(CHUNK, len(self.text) - self.at))
        except UnicodeDecodeError as error:
            raise BadData(f"{self.path} is not UTF-8 ({error.reason}); save it as UTF-8.") from error
        if part:
            self.lines += self.text.count("\n", 0, self.at)
            self.text, self.at = self.text[self.at :] + part, 0
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
