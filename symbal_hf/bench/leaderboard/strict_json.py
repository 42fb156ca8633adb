"""JSON of strangers, read strictly: bounded in every direction, one meaning only, and nothing invisible in it."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from symbal_hf.core.errors import BadData

MOST_BYTES = 20_000_000
MOST_VALUES = 500_000  # a few bytes of "[],[],.." become a hundred in memory
DEEPEST = 12
LONGEST_NUMBER = 25  # characters; a double has 17 digits, and a whole number that is counted has fewer
LARGEST = 2**53  # whole numbers up to it are the same in every reader of JSON
MOST_MARKS = 4  # combining marks on one letter; stacks of them cover the lines above
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}")


def read_bytes(source: str | Path | bytes, *, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file, or `source` itself, of which no more than `most` bytes are ever held.

    Raises:
        FileNotFoundError: no such file.
        BadData: too large, or a folder, a pipe or a device.
    """
    if isinstance(source, bytes):
        data = source
    else:
        path = Path(source)
        if not path.exists():
            raise FileNotFoundError(f"no file {path}; give the JSON file of a submission.")
        if not path.is_file():
            raise BadData(f"{path} is no regular file; give the JSON file of a submission.")
        with path.open("rb") as file:
            data = file.read(most + 1)
    if len(data) > most:
        raise BadData(
            f"the file has more than {most / 1e6:,.0f} MB, the most that is read; leave out what is no result."
        )
    return data


def loads(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        BadData: no UTF-8, no JSON, a key that is there twice, NaN, Infinity or a number that readers take differently,
            too many or too deeply nested values, or text with characters that nobody sees.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadData(f"the file is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8.") from None
    if text.startswith("\ufeff"):
        raise BadData("the file begins with a byte order mark; save it as UTF-8 without one.")
    if sum(map(text.count, "[{,")) > MOST_VALUES:
        raise BadData(f"the file has more than {MOST_VALUES:,} values; a submission of any benchmark has fewer.")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_number, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise BadData(f"line {error.lineno} is no valid JSON ({error.msg}); the file may be cut off.") from None
    except RecursionError:
        raise BadData(f"the file is nested deeper than {DEEPEST} levels; a submission is not.") from None
    for keys, found in _strings(value):
        if problem := invisible(found):
            path = "$"
            for key in keys:
                path = child(path, key)
            raise BadData(f"{path} has {problem}; write text that everybody sees as it is.")
    return value


def invisible(text: str) -> str | None:
    """What in a text is not seen as it is: a control or direction character, half a character, a stack of marks."""
    if text.isascii() and text.isprintable():
        return None
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        if category in _INVISIBLE:
            return f"the invisible character U+{ord(character):04X}"
        marks = marks + 1 if category[0] == "M" else 0
        if marks > MOST_MARKS:
            return f"more than {MOST_MARKS} combining marks in a row"
    return None


def shown(value: Any) -> str:
    """A value in a message: one short line in which nothing is invisible."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = repr(value[:80] if isinstance(value, str) else value)
    text = text if invisible(text) is None else ascii(text)[1:-1]
    return text if len(text) <= 60 else f"{text[:57]}..."


def child(path: str, key: str | int) -> str:
    """The JSON path of one value in another."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{shown(key)}]"


def _strings(value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each text, and each key, with the path of where it is."""
    todo: list[tuple[Any, tuple[str | int, ...]]] = [(value, ())]
    while todo:
        found, keys = todo.pop()
        if len(keys) > DEEPEST:
            raise BadData(f"the file is nested deeper than {DEEPEST} levels; a submission is not.")
        if isinstance(found, str):
            yield keys, found
        elif isinstance(found, list):
            todo += [(item, (*keys, place)) for place, item in enumerate(found)]
        elif isinstance(found, dict):
            yield from (((*keys, key), key) for key in found)
            todo += [(item, (*keys, key)) for key, item in found.items()]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise BadData(f"the key {shown(key)} is there twice in one object; keep the one that is meant.")
        found[key] = value
    return found


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER or abs(int(text)) > LARGEST:
        raise BadData(
            f"the number {shown(text)[1:-1]} is beyond 2^53, where readers of JSON differ; give a smaller one."
        )
    return int(text)


def _number(text: str) -> float:
    number = float(text) if len(text) <= LONGEST_NUMBER else math.inf
    if not math.isfinite(number):
        raise BadData(f"the number {shown(text)[1:-1]} is no double; give at most 17 digits and a smaller exponent.")
    return number


def _constant(text: str) -> NoReturn:
    raise BadData(f"{text} is no JSON number; give a finite one, or null.")
