"""The formats that people keep captions in, told by their structure and read as plain rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import IDS, IMAGES, PICTURES, Unusable
from symbal_hf.data.download import is_url

CHATS = ("conversations", "messages", "conversation")  # their usual names; others are taken where these are not
ANSWERS = frozenset(("gpt", "assistant", "chatgpt", "bard", "model", "bot"))
FORMS = (("from", "value"), ("role", "content"), ("user", "assistant"))  # of a turn: LLaVA, OpenAI, Cauldron
# Stand-ins for pictures in the text of a turn: <image>, <Image>, <image_1>, <|image_pad|>, <ImageHere>, <video>.
STAND_IN = re.compile(r"<\|?/?(?:image|img|video|vision_)[\w-]*\|?>", re.IGNORECASE)
SIDECARS = (".txt", ".caption", ".cap")


NO_IMAGE = Unusable("it has no image; a row is one caption of one image")


@dataclass(frozen=True)
class Found:
    """Rows of a recognised format.

    Attributes:
        rows: plain rows.
        columns: their names.
        words: what the format is called.
        root: the folder of the images, where the format knows a better one than that of its file.
    """

    rows: Any
    columns: list[str]
    words: str
    root: Path | None = None


class SampleRows(list[dict[str, Any]]):
    """Rows of samples whose ids come again where one image has several: these ids end in #2, #3 and so on.

    `chat` is the column of the conversations that their captions come from.
    """

    numbered = True
    chat: str


# ---------------------------------------------------------------------------------------------------- conversations


def chat_column(head: Sequence[Mapping[str, Any]]) -> str | None:
    """The column whose values are all conversations, or None."""
    names = dict.fromkeys((*CHATS, *(name for row in head for name in row)))
    for name in names:
        values = [row[name] for row in head if row.get(name)]
        if values and all(turns(value) for value in values):
            return name
    return None


def turns(value: Any) -> list[tuple[str, Any]]:
    """The (speaker, content) of each turn of a conversation; none where `value` is no conversation."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):  # a table without nested values
        try:
            value = json.loads(value)
        except ValueError:
            return []
    if isinstance(value, Mapping):  # the columnar form of a list of structs
        lists = [part for part in value.values() if isinstance(part, Sequence) and not isinstance(part, str)]
        if len(lists) < len(value) or len({len(part) for part in lists}) > 1:
            return []
        value = [dict(zip(value, one, strict=True)) for one in zip(*lists, strict=True)]
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    out: list[tuple[str, Any]] = []
    for turn in value:
        form = isinstance(turn, Mapping) and next((f for f in FORMS if set(f) <= turn.keys()), None)
        if not form:
            return []
        if form == ("user", "assistant"):
            out += [("user", turn["user"]), ("assistant", turn["assistant"])]
        else:
            out.append((str(turn[form[0]]).strip().lower(), turn[form[1]]))
    return out


def answer(value: Any) -> str | Unusable:
    """The caption of a conversation: the first answer of the model.

    Later answers belong to later questions, which are no facts, and mean nothing without them ("Yes.", "Two.").
    """
    said = turns(value)
    if not said:
        return Unusable("it has no conversation")
    for speaker, content in said:
        if speaker in ANSWERS and (text := STAND_IN.sub(" ", _text(content)).strip()):
            return text
    speakers = ", ".join(dict.fromkeys(speaker for speaker, _ in said))
    return Unusable(f"its conversation has turns of {speakers}, and no answer of {', '.join(sorted(ANSWERS))}")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(part for part in parts if isinstance(part, str))


def shown(value: Any) -> list[Any]:
    """The images that the parts of a conversation's turns carry: paths, URLs, structs."""
    found = []
    for _, content in turns(value):
        for part in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
            if isinstance(part, Mapping) and str(part.get("type", "")).startswith("image"):
                image = next((part[k] for k in ("image", "image_url", "url", "path") if part.get(k)), None)
                found.append(image.get("url", image) if isinstance(image, Mapping) else image)
    return found


Shows = Callable[[Mapping[str, Any]], tuple[str | None, list[Any] | None]]


def _rows(rows: Iterable[Mapping[str, Any]], chat: str, caption: str, shows: Shows) -> Iterator[dict[str, Any]]:
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


def _samples(rows: Iterable[Mapping[str, Any]], chat: str, caption: str) -> SampleRows:
    """The rows of a file: columns may be absent from any of them, and images lie in a column or in the turns."""
    bare, some = [], False

    def shows(row: Mapping[str, Any]) -> tuple[str | None, list[Any] | None]:
        column = next((name for name in IMAGES if name in row), None)
        images = _several(row[column]) if column is not None else shown(row.get(chat))
        return column or "image", images or _counted(row.get(chat))

    out = SampleRows()
    out.chat = chat
    for place, row in enumerate(_rows(rows, chat, caption, shows)):
        image = next((one for name in IMAGES for one in _several(row.get(name))), None)
        if image is None:
            bare.append(place)
        some = some or image is not None
        # An id that is the image's name, as for COCO's images, pairs the row with other tables of images.
        if "id" in row and "image_id" not in row and isinstance(image, str):
            row["image_id"] = stem if (stem := Path(image).stem) == str(row["id"]).partition("#")[0] else None
        out.append(row)
    for place in bare if some else ():  # where no row has an image, this is an audit without images
        if isinstance(out[place][caption], str):
            out[place][caption] = NO_IMAGE
    return out


def _several(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [] if value is None or (isinstance(value, (str, bytes)) and not value) else [value]


def _counted(value: Any) -> list[Any] | None:
    """As many as the stand-ins in the turns, where these tell of several images."""
    many = sum(_text(content).count("<image>") for _, content in turns(value))
    return [None] * many if many > 1 else None


class ChatRows:
    """Rows of a dataset or of parquet files with a conversation in one column, as rows with a caption in its place."""

    numbered = True

    def __init__(self, rows: Any, chat: str, caption: str, *, parts: bool) -> None:
        """`parts`: whether the turns carry the images, and not a column."""
        self._rows, self._chat, self._caption, self._parts = rows, chat, caption, parts
        self.chat = chat
        own = [name for name in rows.column_names if name not in (chat, caption)]
        self.column_names = [*own, *(["image"] if parts else []), caption]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        column = None if self._parts else next((name for name in IMAGES if name in self.column_names), None)

        def shows(row: Mapping[str, Any]) -> tuple[str | None, list[Any] | None]:
            if self._parts:
                return "image", shown(row.get(self._chat))
            # Without the column, which nobody reads to count images, the text alone tells how many there are.
            if column is not None and column in row:
                return column, _several(row[column])
            return None, _counted(row.get(self._chat))

        return _rows(self._rows, self._chat, self._caption, shows)

    def remove_columns(self, name: str) -> ChatRows:
        """The same rows without a column."""
        if name not in self._rows.column_names:
            return self
        return ChatRows(self._rows.remove_columns(name), self._chat, self._caption, parts=self._parts)

    def __getitem__(self, name: str) -> Any:
        if self._parts and name == "image":
            return [images[0] if len(images := shown(value)) == 1 else None for value in self._rows[self._chat]]
        return self._rows[name]


def as_captions(rows: Any, head: Sequence[Mapping[str, Any]], chat: str, caption: str) -> tuple[Any, list[str], str]:
    """Rows with the column `chat` as rows with the column `caption`, their columns, and what the format is called."""
    first = next(row[chat] for row in head if row.get(chat))
    llava = isinstance(first, Sequence) and isinstance(first[0], Mapping) and "from" in first[0]
    words = "LLaVA/ShareGPT4V conversations" if llava else "chat messages"
    if hasattr(rows, "remove_columns"):
        parts = not any(n in rows.column_names for n in IMAGES) and any(
            image is not None for row in head for image in shown(row.get(chat))
        )
        made = ChatRows(rows, chat, caption, parts=parts)
        return made, made.column_names, words
    samples = _samples(rows, chat, caption)
    return samples, list(dict.fromkeys(name for row in samples for name in row)), words


# ------------------------------------------------------------------------------------------------------------- COCO


def coco(path: Path, parts: Iterable[tuple[str | None, Any]], *, joining: bool = False) -> Found | None:
    """COCO's captions or instances, or None where it is neither.

    A row is an image. Its captions are one text, one a line, since five rows with the same image would count its
    evidence five times; where the file is joined to another, they are that one's references.
    Instances give the names of what is annotated, groups ("iscrowd") among it, by the ids of the categories, which
    have gaps. An image without annotations has none of these objects.
    """
    files: dict[Any, Any] = {}
    captions: dict[Any, list[str]] = {}
    marked: dict[Any, dict[Any, None]] = {}
    names: dict[Any, str] = {}
    keys: dict[str, None] = {}
    for key, value in parts:
        keys[str(key)] = None
        if not isinstance(value, Mapping):
            continue
        if key == "images" and "id" in value:
            files[value["id"]] = value.get("file_name")
        elif key == "categories" and "id" in value:
            names[value["id"]] = str(value.get("name"))
        elif key == "annotations" and value.get("image_id") is not None:
            if "caption" in value:
                captions.setdefault(value["image_id"], []).append(value["caption"])
            elif "category_id" in value:
                marked.setdefault(value["image_id"], {})[value["category_id"]] = None
    if "annotations" not in keys or not (captions or marked):
        return None
    shows = any(files.values())
    if unknown := next((c for kinds in marked.values() for c in kinds if c not in names), None):
        raise BadData(f"{path}: an annotation has category_id {unknown}, which is none of the categories.")
    rows: list[dict[str, Any]] = []
    for image in dict.fromkeys((*files, *captions, *marked)):
        row = {"image_id": image, **({"image": files.get(image)} if shows else {})}
        if marked and not captions:
            row["objects"] = [names[kind] for kind in marked.get(image, ())]
        elif joining:
            row["references"] = [c for c in captions.get(image, ()) if isinstance(c, str)]
        else:
            said = captions.get(image, [])
            row["caption"] = said[0] if len(said) == 1 else "\n".join(map(str, said)) if said else None
        rows.append(row)
    if marked and not captions and not joining:
        raise BadData(f"{path} holds COCO instances, not captions; audit captions, and give this file with --join.")
    what = "COCO instances JSON" if not captions else "COCO captions JSON"
    if (several := sum(map(len, captions.values()))) > len(captions):
        what = f"COCO captions JSON ({several:,} captions of {len(captions):,} images, one row an image)"
    return Found(rows, list(rows[0]), what, _coco_images(path, next(filter(None, files.values()), None)))


def _coco_images(path: Path, first: Any) -> Path | None:
    """The folder of the images as COCO unpacks: val2017/ beside annotations/captions_val2017.json."""
    folder = path.resolve().parent
    split = folder.parent / path.stem.rpartition("_")[2]
    if folder.name != "annotations" or not isinstance(first, str) or (folder / first).is_file():
        return None
    return split if split.is_dir() else None


# ------------------------------------------------------------------------------------------- captions beside images


def url_field(path: Path) -> int | None:
    """Which of the two fields of a line is a URL, where the first line has no header but a caption and a URL."""
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        first = file.readline(1 << 20).rstrip("\r\n").split("\t")
    where = [place for place, field in enumerate(first) if is_url(field.strip())]
    return where[0] if len(first) == 2 and len(where) == 1 else None


def url_table(path: Path) -> Found:
    """Conceptual Captions and its like: a caption and a URL a line, in either order, without a header."""
    if (where := url_field(path)) is None:
        raise BadData(f"{path}: the first line is not a caption, a tab and a URL; leave source_format at 'auto'.")
    rows: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig", newline="\n") as file:
        for line in file:  # no csv: quotes in these files are part of the captions
            fields = line.rstrip("\r\n").split("\t")
            if fields == [""]:
                continue
            if len(fields) == 2:
                rows.append({"image": fields[where].strip(), "caption": fields[1 - where]})
            else:
                problem = f"its line has {len(fields)} fields; expected a caption, a tab and a URL"
                rows.append({"image": None, "caption": Unusable(problem)})
    return Found(rows, ["image", "caption"], "captions with URLs")


def sidecars(folder: Path, *, bare: bool = False) -> Found | None:
    """Images with a text file of the same name beside each (cat.jpg, cat.txt), at any depth, or None.

    Where images alone will do (`bare`), none of them needs one.
    """
    images = sorted(p for p in folder.rglob("*") if p.suffix.lower() in PICTURES and p.is_file())
    rows: list[dict[str, Any]] = []
    shared = Counter(image.with_suffix("") for image in images)
    for image in images:
        # cat.png and cat.jpg with one cat.txt are two rows, with ids of their own.
        name = image.relative_to(folder)
        text = next((t for end in SIDECARS if (t := image.with_suffix(end)).is_file()), None)
        row_id = str(name.with_suffix("") if shared[image.with_suffix("")] == 1 else name)
        try:
            caption: Any = None if text is None else text.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            caption = Unusable(f"{text} is not UTF-8 ({error.reason} at byte {error.start})")
        rows.append({"id": row_id, "image": str(name), "caption": caption})
    if all(row["caption"] is None for row in rows):
        return Found(rows, ["id", "image"], "images") if bare and rows else None
    return Found(rows, ["id", "image", "caption"], "images with text files")
