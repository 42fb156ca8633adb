"""Conversations in a column of any table: rows whose caption is the first answer, and how another takes its place."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import SourceFormat
from symbal_hf.data.columns import CAPTIONS, IDS, IMAGES, Unusable
from symbal_hf.data.formats.plain_text import literal
from symbal_hf.data.formats.protocol import Edits, Row, Table, table_of

CHATS = ("conversations", "messages", "conversation")  # their usual names; others are taken where these are not
ANSWERS = frozenset(("gpt", "assistant", "chatgpt", "bard", "model", "bot"))
FORMS = (("from", "value"), ("role", "content"), ("user", "assistant"))  # of a turn: LLaVA, OpenAI, Cauldron
# Stand-ins for pictures in the text of a turn: <image>, <Image>, <image_1>, <|image_pad|>, <ImageHere>, <video>.
STAND_IN = re.compile(r"<\|?/?(?:image|img|video|vision_)[\w-]*\|?>", re.IGNORECASE)
EDGE = rf"(?:\s|{STAND_IN.pattern})*"
LEADING, TRAILING = re.compile(EDGE, re.IGNORECASE), re.compile(rf"{EDGE}\Z", re.IGNORECASE)
NO_IMAGE = Unusable("it has no image; a row is one caption of one image")

Keys = tuple[str | int, ...]  # the way to a value within nested ones
Turn = tuple[str, Any, Keys]  # who speaks, what is said, and the way to it
Shows = Callable[[Row], tuple[str | None, list[Any] | None]]


# ------------------------------------------------------------------------------------------------- one conversation


def chat_column(head: Sequence[Row]) -> str | None:
    """The column whose values are all conversations, or None."""
    names = dict.fromkeys((*CHATS, *(name for row in head for name in row)))
    for name in names:
        values = [row[name] for row in head if row.get(name)]
        if values and all(turns(value) for value in values):
            return name
    return None


def turns(value: Any) -> list[Turn]:
    """The turns of a conversation; none where `value` is no conversation."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):  # a table without nested values
        try:
            value = json.loads(value)
        except ValueError:
            return []
    columnar = isinstance(value, Mapping)  # the columnar form of a list of structs
    if columnar:
        lists = [members for members in value.values() if _is_list(members)]
        if len(lists) < len(value) or len({len(members) for members in lists}) > 1:
            return []
        value = [dict(zip(value, turn, strict=True)) for turn in zip(*lists, strict=True)]
    if not _is_list(value):
        return []
    out: list[Turn] = []
    for index, turn in enumerate(value):
        form = isinstance(turn, Mapping) and next((f for f in FORMS if set(f) <= turn.keys()), None)
        if not form:
            return []
        for speaker, name in (form,) if form != FORMS[2] else (("", "user"), ("", "assistant")):
            who = str(turn[speaker]).strip().lower() if speaker else name
            out.append((who, turn[name], (name, index) if columnar else (index, name)))
    return out


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def answer(value: Any) -> str | Unusable:
    """The caption of a conversation: the first answer of the model.

    Later answers belong to later questions, which are no facts, and mean nothing without them ("Yes.", "Two.").
    """
    if texts := caption_texts(value, chat=True):
        return caption_of([text for _, text in texts], chat=True)
    speakers = ", ".join(dict.fromkeys(speaker for speaker, *_ in turns(value)))
    if not speakers:
        return Unusable("it has no conversation")
    return Unusable(f"its conversation has turns of {speakers}, and no answer of {', '.join(sorted(ANSWERS))}")


def caption_of(texts: Sequence[str], *, chat: bool) -> str:
    """The caption that an audit reads from these texts."""
    return STAND_IN.sub(" ", "\n".join(texts)).strip() if chat else "".join(texts).strip()


def _texts(content: Any) -> list[tuple[Keys, str]]:
    """The texts of one turn, each with the way to it."""
    if isinstance(content, str):
        return [((), content)]
    if not isinstance(content, Sequence):
        return []
    parts = [((n, "text"), p.get("text")) if isinstance(p, Mapping) else ((n,), p) for n, p in enumerate(content)]
    return [(keys, text) for keys, text in parts if isinstance(text, str)]


def images_in(value: Any) -> list[Any]:
    """The images that the parts of a conversation's turns carry: paths, URLs, structs."""
    images = []
    for _, content, _ in turns(value):
        for part in content if _is_list(content) else ():
            if isinstance(part, Mapping) and str(part.get("type", "")).startswith("image"):
                image = next((part[k] for k in ("image", "image_url", "url", "path") if part.get(k)), None)
                images.append(image.get("url", image) if isinstance(image, Mapping) else image)
    return images


# ------------------------------------------------------------------------------------------- tables of conversations


def captioned(table: Table, name: str, source_format: SourceFormat, caption: str | None) -> Table:
    """The table of the source `name` with captions where it has conversations; any other as it is."""
    wanted = source_format == "conversations"
    if source_format not in ("auto", "table", "conversations"):
        raise BadData(f"{name} is no source of the format {source_format!r}; leave source_format at 'auto'.")
    plain = not wanted and (source_format == "table" or any(column in table.columns for column in CAPTIONS[:2]))
    if plain and caption is None:
        return table
    head = table.head()
    if caption is not None and source_format != "table":
        chat = chat_column([{caption: row.get(caption)} for row in head])
    else:
        chat = None if plain else chat_column(head)
    if chat is None and wanted:
        raise BadData(
            f"{name} has no column of conversations (lists of {{'from', 'value'}} or {{'role', 'content'}}) among "
            f"{', '.join(map(str, table.columns))}; leave source_format at 'auto'."
        )
    if chat is None:
        return table
    caption = caption or "caption"
    first = next(row[chat] for row in head if row.get(chat))
    llava = isinstance(first, Sequence) and isinstance(first[0], Mapping) and "from" in first[0]
    kind = "LLaVA/ShareGPT4V conversations" if llava else "chat messages"
    if table.values is None:
        return replace(table_of(_samples(table, chat, caption), name=kind), chat=chat)
    in_turns = not any(n in table.columns for n in IMAGES) and any(
        image is not None for row in head for image in images_in(row.get(chat))
    )
    return _read_in_place(table, chat, caption, in_turns=in_turns, name=kind)


def _rows(rows: Iterable[Row], chat: str, caption: str, shows: Shows) -> Iterator[dict[str, Any]]:
    """Each row with a caption for its conversation, and an id of its own.

    `shows` tells the column of a row's images and the images, or None where nothing says how many there are.
    """
    met: Counter[str] = Counter()
    for row in rows:
        out = {name: value for name, value in row.items() if name != chat}
        id_name = next((name for name in IDS if out.get(name) is not None), None)
        if id_name is not None:
            met[str(out[id_name])] += 1
            if (times := met[str(out[id_name])]) > 1:
                out[id_name] = f"{out[id_name]}#{times}"
        out[caption] = answer(row.get(chat))
        column, images = shows(row)
        if images is not None and len(images) > 1:
            out[caption] = Unusable(f"it is about {len(images)} images; a row is one caption of one image")
        elif images is not None and column is not None:
            out[column] = images[0] if images else None
            if not images:
                out[caption] = NO_IMAGE
        yield out


def _samples(rows: Iterable[Row], chat: str, caption: str) -> list[dict[str, Any]]:
    """The rows of a file: columns may be absent from any of them, and images lie in a column or in the turns.

    A conversation becomes its caption as it is read: what was asked is not kept.
    """

    def shows(row: Row) -> tuple[str | None, list[Any] | None]:
        column = next((name for name in IMAGES if name in row), None)
        images = _several(row[column]) if column is not None else images_in(row.get(chat))
        return column or "image", images or _counted(row.get(chat))

    out = list(_rows(rows, chat, caption, shows))
    images = [next((image for name in IMAGES for image in _several(row.get(name))), None) for row in out]
    some = any(image is not None for image in images)  # where no row has an image, this is an audit without images
    for row, image in zip(out, images, strict=True):
        # An id that is the image's name, as for COCO's images, pairs the row with other tables of images.
        if "id" in row and "image_id" not in row and isinstance(image, str):
            row["image_id"] = stem if (stem := PurePath(image).stem) == str(row["id"]).partition("#")[0] else None
        if some and image is None and isinstance(row[caption], str):
            row[caption] = NO_IMAGE
    return out


def _several(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [] if value is None or (isinstance(value, (str, bytes)) and not value) else [value]


def _counted(value: Any) -> list[Any] | None:
    """As many as the stand-ins in the turns, where these tell of several images."""
    many = sum("\n".join(text for _, text in _texts(content)).count("<image>") for _, content, _ in turns(value))
    return [None] * many if many > 1 else None


def _read_in_place(table: Table, chat: str, caption: str, *, in_turns: bool, name: str) -> Table:
    """A table whose columns are read when they are asked for; `in_turns`: the turns carry the images, and no column."""
    kept = [column for column in table.columns if column not in (chat, caption)]
    image_column = None if in_turns else next((column for column in IMAGES if column in kept), None)

    def shows(row: Row) -> tuple[str | None, list[Any] | None]:
        if in_turns:
            return "image", images_in(row.get(chat))
        # Without the column, which nobody reads to count images, the text alone tells how many there are.
        if image_column is not None and image_column in row:
            return image_column, _several(row[image_column])
        return None, _counted(row.get(chat))

    def values(column: str) -> Sequence[Any]:
        if in_turns and column == "image":
            return [images[0] if len(images := images_in(value)) == 1 else None for value in table.column(chat)]
        return table.column(column)

    return Table(
        [*kept, *(["image"] if in_turns else []), caption],
        lambda without: _rows(table.read(without), chat, caption, shows),
        values,
        heavy=table.heavy,
        name=name,
        chat=chat,
    )


# ------------------------------------------------------------------------------------- another caption in its place


def caption_texts(value: Any, *, chat: bool) -> list[tuple[Keys, str]]:
    """The texts that make up the caption in a column's `value`, each with the way to it; none where it has none.

    A text is its own caption. Of a conversation (`chat`) it is the first answer that says something, in its parts.
    """
    if not chat:
        return [((), value)] if isinstance(value, str) else []
    for speaker, content, keys in turns(value):
        if speaker in ANSWERS:
            texts = [((*keys, *inner), text) for inner, text in _texts(content)]
            if caption_of([text for _, text in texts], chat=True):
                return texts
    return []


def edited_value(edits: Edits, number: int, value: Any) -> tuple[bool, Any]:
    """Whether row `number` stays, and what the column of its caption holds in the place of `value`."""
    texts = caption_texts(value, chat=edits.chat)
    edit = edits.edit(number, [text for _, text in texts])
    for (keys, _), text in zip(texts, edit.texts or (), strict=False):
        value = with_text(value, keys, text)
    return edit.keep, value


def with_caption(text: str, caption: str) -> str:
    """`text` with another caption in it: the space and the stand-ins for images at its ends stay."""
    leading, trailing = LEADING.match(text), TRAILING.search(text)
    assert leading is not None and trailing is not None
    return leading[0] + caption + text[max(trailing.start(), leading.end()) :]


def with_text(value: Any, keys: Keys, text: str) -> Any:
    """A column's value with another text at `keys`; nothing that is shared with the old value is changed.

    Of a string that holds JSON, as in tables without nested values, the JSON is written anew.
    """
    if not keys:
        return text
    if isinstance(value, str):
        return literal(with_text(json.loads(value), keys, text), ascii_only=value.isascii())
    key, rest = keys[0], keys[1:]
    if isinstance(value, Mapping):
        return {**value, key: with_text(value[key], rest, text)}
    return [with_text(part, rest, text) if index == key else part for index, part in enumerate(value)]
