"""Where the caption of a row stands: in a column, or in the first answer of a conversation, whatever holds that."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from symbal_hf.data.formats.conversations import ANSWERS, FORMS, STAND_IN
from symbal_hf.data.formats.json_edit import Key, replaced

HEAD = re.compile(rf"(?:\s|{STAND_IN.pattern})*", re.IGNORECASE)
TAIL = re.compile(rf"(?:\s|{STAND_IN.pattern})*\Z", re.IGNORECASE)
Path = tuple[Key, ...]


def places(value: Any, *, chat: bool) -> list[tuple[Path, str]]:
    """The texts that make up the caption in a column's `value`, each with the way to it; none where it has none.

    A text is its own caption. Of a conversation (`chat`) it is the first answer that says something, a text for each
    part of it.
    """
    if not chat:
        return [((), value)] if isinstance(value, str) else []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    return _in_turns(value)


def _in_turns(value: Any) -> list[tuple[Path, str]]:
    for path, content in _answers(value):
        texts = [((*path, *inner), text) for inner, text in _texts(content)]
        if any(STAND_IN.sub(" ", text).strip() for _, text in texts):
            return texts
    return []


def _answers(value: Any) -> list[tuple[Path, Any]]:
    """What the model says in each turn, with the way to it."""
    if isinstance(value, Mapping):  # the columnar form of a list of structs
        form = next((f for f in FORMS if set(f) <= value.keys()), None)
        if form is None:
            return []
        who, said = value[form[0]], value[form[1]]
        answering = [form == FORMS[2] or _answers_as(speaker) for speaker in who]
        return [((form[1], n), said[n]) for n in range(len(said)) if answering[n]]
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return []
    out: list[tuple[Path, Any]] = []
    for n, turn in enumerate(value):
        form = next((f for f in FORMS if set(f) <= turn.keys()), None) if isinstance(turn, Mapping) else None
        if form and (form == FORMS[2] or _answers_as(turn[form[0]])):
            out.append(((n, form[1]), turn[form[1]]))
    return out


def _answers_as(speaker: Any) -> bool:
    return str(speaker).strip().lower() in ANSWERS


def _texts(content: Any) -> list[tuple[Path, str]]:
    if isinstance(content, str):
        return [((), content)]
    if not isinstance(content, Sequence):
        return []
    parts = [((n, "text"), p.get("text")) if isinstance(p, Mapping) else ((n,), p) for n, p in enumerate(content)]
    return [(path, text) for path, text in parts if isinstance(text, str)]


def caption_of(texts: Sequence[str], *, chat: bool) -> str:
    """The caption that an audit reads from these texts."""
    return STAND_IN.sub(" ", "\n".join(texts)).strip() if chat else "".join(texts).strip()


def with_core(text: str, core: str) -> str:
    """`text` with another caption in it: the space and the stand-ins for images at its ends stay."""
    head, tail = HEAD.match(text), TAIL.search(text)
    assert head is not None and tail is not None
    return head[0] + core + text[max(tail.start(), head.end()) :]


def with_text(value: Any, path: Path, text: str) -> Any:
    """A column's value with another text at `path`; nothing that is shared with the old value is changed."""
    if not path:
        return text
    if isinstance(value, str):
        return replaced(value, path, text)
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, key: with_text(value[key], rest, text)}
    return [with_text(part, rest, text) if n == key else part for n, part in enumerate(value)]
