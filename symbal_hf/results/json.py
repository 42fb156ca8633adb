"""Dataclasses written as JSON and read by their type hints: everything that an audit and what follows it write."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole

Record = TypeVar("Record")


class Told:
    """A dataclass that is written as JSON: its attributes, and the properties that `computed` names."""

    computed: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """All attributes and what is computed from them, JSON-able."""
        return _told(self)

    def write_json(self, path: Path) -> None:
        """Write `to_dict` as a file (UTF-8), whole or not at all."""
        write_whole(path, json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def _told(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        names = (*(field.name for field in fields(value)), *getattr(value, "computed", ()))
        return {name: _told(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: _told(item) for key, item in value.items()}
    return [_told(item) for item in value] if isinstance(value, (tuple, list)) else value


def from_dict(cls: type[Record], data: Any, *, prefix: str = "") -> Record:
    """The dataclass that `Told.to_dict` made `data` of, and with it those within.

    Keys that are no attribute (rates that are computed, what a later version adds) are passed over; an attribute that
    is lacking has its default. Nothing is converted but lists to tuples and strings to paths.

    Args:
        cls: a dataclass whose attributes are strings, numbers, booleans, None, literals, paths, lists, tuples, mappings
            and dataclasses of these.
        data: a mapping of JSON values.
        prefix: what stands before the names of attributes in errors, such as the name of the file.

    Raises:
        BadData: an attribute is lacking, or has a value of another kind; its path is named.

    >>> from symbal_hf.results.findings import Skipped
    >>> from_dict(Skipped, {"row_id": "7", "reason": "no image"})
    Skipped(row_id='7', reason='no image')
    """
    if not isinstance(data, Mapping):
        name = prefix.rstrip(".: ") or cls.__name__
        raise BadData(f"{name} is {_shown(data)}; it must be an object with the attributes of {cls.__name__}.")
    values = {}
    for name, hint, needed in _attributes(cast(type, cls)):
        if name in data:
            values[name] = _value(hint, data[name], prefix + name)
        elif needed:
            raise BadData(f"{prefix}{name} is lacking; write the file anew, or take it from where it was written.")
    return cls(**values)


def load_json(cls: type[Record], path: Path) -> Record:
    """The dataclass that a JSON file holds.

    Raises:
        BadData: the file is no JSON, or a field of it has no value of its kind; the file and the field are named.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BadData(f"{path} is no JSON file ({error}); write it anew.") from error
    return from_dict(cls, data, prefix=f"{path}: ")


@cache
def _attributes(cls: type) -> tuple[tuple[str, Any, bool], ...]:
    """Of each attribute its name, its type, and whether it must be given."""
    hints = get_type_hints(cls)
    return tuple(
        (f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING) for f in fields(cls) if f.init
    )


def _value(hint: Any, data: Any, path: str) -> Any:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return data
    if kind in (Union, types.UnionType):
        if data is None and type(None) in inner:
            return None
        (hint,) = (one for one in inner if one is not type(None))
        return _value(hint, data, path)
    if kind is Literal and data in inner:
        return data
    if is_dataclass(kind) and isinstance(kind, type):
        return from_dict(kind, data, prefix=f"{path}.")
    if kind is tuple and isinstance(data, (list, tuple)):
        return tuple(_value(inner[0], item, f"{path}[{n}]") for n, item in enumerate(data))
    if kind in (dict, Mapping) and isinstance(data, Mapping):
        return {key: _value(inner[1], item, f"{path}[{key!r}]") for key, item in data.items()}
    if kind is Path and isinstance(data, str):
        return Path(data)
    plain = (int, float) if kind is float else kind
    if isinstance(kind, type) and isinstance(data, plain) and (kind is bool or not isinstance(data, bool)):
        return data
    wanted = f"one of {', '.join(map(repr, inner))}" if kind is Literal else getattr(kind, "__name__", str(kind))
    raise BadData(f"{path} is {_shown(data)}; it must be {wanted}.")


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."
