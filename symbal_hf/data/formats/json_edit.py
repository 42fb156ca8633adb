"""One value of a JSON text is replaced, and every other character of it stays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData

Key = str | int
SPACE = re.compile(r"[ \t\n\r]*")
BETWEEN = re.compile(r"[ \t\n\r,\[]*")
DECODE = json.JSONDecoder().raw_decode
CHUNK = 1 << 20  # characters read at once, at least


def literal(value: Any, *, ascii_only: bool = False) -> str:
    """The value as JSON; what UTF-8 cannot hold (half a surrogate pair) is escaped in any case."""
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def replaced(text: str, path: Sequence[Key], value: str) -> str:
    """The JSON `text` with the string `value` at `path`, keys and places from its outermost value inwards.

    A string on the way that holds JSON itself, as in tables without nested values, is gone into.

    Raises:
        KeyError: nothing at `path`.
    """
    start, end, rest = _at(text, path)
    if rest:
        value = replaced(json.loads(text[start:end]), rest, value)
    # A file that escapes all that is not ASCII goes on doing so.
    return text[:start] + literal(value, ascii_only=text.isascii()) + text[end:]


def extended(text: str, members: Mapping[str, Any]) -> str:
    """The JSON object `text` with these members at its end."""
    close = text.rindex("}")
    body = text[:close].rstrip()
    new = ", ".join(f"{json.dumps(k)}: {literal(v, ascii_only=text.isascii())}" for k, v in members.items())
    return body + ("" if body.endswith("{") else ", ") + new + text[len(body) :]


def _at(text: str, path: Sequence[Key]) -> tuple[int, int, Sequence[Key]]:
    """Start and end of the value at `path`, or of the string that the rest of the path leads into."""
    at = SPACE.match(text, 0).end()  # type: ignore[union-attr]
    for depth, key in enumerate(path):
        if text[at] == '"':
            return at, DECODE(text, at)[1], path[depth:]
        found = [start for name, start in _inside(text, at) if name == key]
        if not found:
            raise KeyError(key)
        at = found[-1]  # of equal names the last counts
    return at, DECODE(text, at)[1], ()


def _inside(text: str, at: int) -> Iterator[tuple[Key, int]]:
    """Name or place of each member of the object or list at `at`, and where its value starts."""
    listed, place = text[at] == "[", 0
    at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    while text[at] not in "]}":
        name: Key = place
        if not listed:
            name, at = scanstring(text, at + 1)
            at = SPACE.match(text, SPACE.match(text, at).end() + 1).end()  # type: ignore[union-attr]
        yield name, at
        place, at = place + 1, SPACE.match(text, DECODE(text, at)[1]).end()  # type: ignore[union-attr]
        if text[at] == ",":
            at = SPACE.match(text, at + 1).end()  # type: ignore[union-attr]


def item_texts(path: Path) -> Iterator[tuple[str, str]]:
    """What stands before each item of the JSON list in this file, and the item, as they are written.

    The last pair has the end of the file and no item. The file is read piece by piece.

    Raises:
        BadData: the list is cut off.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        text, at = file.read(CHUNK), 0
        while True:
            start = BETWEEN.match(text, at).end()  # type: ignore[union-attr]
            value: Any = None
            try:
                if start < len(text):
                    value, end = ("]", len(text)) if text[start] == "]" else DECODE(text, start)
            except json.JSONDecodeError:
                value = None
            if value == "]":
                yield text[at:] + file.read(), ""
                return
            if value is None:
                # As much again as is there: a long item is then tried a few times, and not once for every chunk.
                more = file.read(max(CHUNK, len(text) - at))
                if not more:
                    raise BadData(f"{path}: no whole JSON list of objects; is the file cut off?")
                text, at = text[at:] + more, 0
                continue
            yield text[at:start], text[start:end]
            at = end
