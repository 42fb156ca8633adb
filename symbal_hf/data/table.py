"""Any source of images and captions becomes one table: row ids, captions, references, objects, encoded images."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Chance, OnBadRow, Reading, given, take
from symbal_hf.data.columns import CAPTIONS, IDS, IMAGES, URLS, Unusable, chosen_root, find_column, sampled
from symbal_hf.data.download import fetched, inline, is_url
from symbal_hf.data.formats.protocol import Row, Table
from symbal_hf.data.join import joined
from symbal_hf.data.opening import open_table
from symbal_hf.data.pixels import decode, jpeg_thumbnail, png
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

REFERENCES = ("references", "reference", "reference_captions", "reference_caption")
OBJECTS = ("objects", "chair_objects")
NEED = "an audit needs images with captions"


class Images:
    """The encoded images of N rows, read one at a time: from files below a root, a dataset's column, or URLs."""

    def __init__(
        self, column: Sequence[Any], rows: Sequence[int], root: Path | None, *, allow_download: bool = False
    ) -> None:
        self._column, self._rows, self.root, self._download = column, rows, root, allow_download
        self.readable = False  # whether somebody has decoded all of them, so that nobody needs to try again

    def __len__(self) -> int:
        return len(self._rows)

    def select(self, keep: Sequence[int]) -> Images:
        """The images of the rows `keep`, in that order."""
        return Images(self._column, [self._rows[k] for k in keep], self.root, allow_download=self._download)

    def encoded(self, row: int) -> bytes:
        """The file's bytes.

        Raises:
            ValueError: no image in this row, or one outside the source's folder.
            OSError: a file that cannot be read.
        """
        held = self._held(row)
        if isinstance(held, Path):
            return held.read_bytes()
        if isinstance(held, bytes):
            return held
        if not isinstance(held, str):
            if not hasattr(held, "save"):
                raise ValueError(f"an image of type {type(held).__name__}; expected a path, bytes or a PIL image")
            return png(held)
        if held.startswith("data:"):
            return inline(held)
        if not self._download:
            raise ValueError(f"its image is at {held}; pass --allow-download (allow_download=True) to fetch it")
        return fetched(held)

    def named(self, row: int) -> str | None:
        """The path or URL by which the source names the image; None where it holds the image itself."""
        value = self._column[self._rows[row]]
        if isinstance(value, (list, tuple)):
            value = value[0] if len(value) == 1 else None
        if isinstance(value, Mapping):
            value = None if value.get("bytes") else value.get("path")
        return str(value) if isinstance(value, (str, Path)) and value and not str(value).startswith("data:") else None

    def file(self, row: int) -> Path | str | None:
        """The image's file, or its URL; None where the source holds the image itself. Raises as `encoded` does."""
        held = self._held(row)
        return held if isinstance(held, Path) or (isinstance(held, str) and not held.startswith("data:")) else None

    def _held(self, row: int) -> Any:
        """What stands for the image: a `Path` that is a file, text that is a URL or holds data, bytes, or an object."""
        value = self._column[self._rows[row]]
        if isinstance(value, (list, tuple)):
            if len(value) > 1:
                raise ValueError(f"{len(value)} images in this row; a row is one caption of one image")
            value = value[0] if value else None
        if isinstance(value, Mapping):
            if value.get("bytes"):
                return bytes(value["bytes"])
            value = value.get("path")
        if isinstance(value, bytes):
            return value
        if not value:
            raise ValueError("no image in this row")
        if not isinstance(value, (str, Path)):
            return value
        if is_url(value) or str(value).startswith("data:"):
            return str(value)
        path = Path(value)
        if self.root is not None:
            path = (self.root / path).resolve()
            if not path.is_relative_to(self.root):
                raise ValueError(f"image path {value!r} leaves the folder {self.root}; name another with --image-root")
        if not path.is_file():
            raise ValueError(f"no image file at {path}")
        return path


@dataclass(frozen=True)
class AuditData:
    """N rows, paired by id.

    Attributes:
        objects: what each image truly shows (None: unknown), or None where the source does not say.
        read: how to read it again: `load_data`'s source and the options that are not its defaults, with absolute paths;
            None for data that were in memory.
        told_in: the source's column of captions or conversations, and whether it is conversations.
    """

    ids: tuple[str, ...]  # row ids, all different
    captions: tuple[str, ...]  # the generated captions
    references: tuple[tuple[str, ...], ...] | None  # reference captions of each row, or None where the source has none
    objects: tuple[frozenset[str] | None, ...] | None
    images: Images | None  # the encoded images, or None for a text-only audit
    skipped: tuple[Skipped, ...]  # rows that were left out, with reasons
    source: str  # what was read, in words
    read: Mapping[str, Any] | None = None
    numbers: Sequence[int] | None = None  # of the rows in the source, from 0; None where nobody has counted them
    told_in: tuple[str, bool] | None = None
    shown: tuple[str | None, ...] | None = None  # what names the image of each row: its image_id, path or URL

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, bad: Mapping[int, str]) -> AuditData:
        """The table without the rows `bad`, which join `skipped` with their reasons."""
        if not bad:
            return self
        keep = [i for i in range(len(self)) if i not in bad]
        columns: dict[str, Any] = {}
        for name in ("ids", "captions", "references", "objects", "numbers", "shown"):
            column = getattr(self, name)
            columns[name] = None if column is None else tuple(column[i] for i in keep)
        return replace(
            self,
            **columns,
            images=None if self.images is None else self.images.select(keep),
            skipped=(*self.skipped, *(Skipped(self.ids[i], bad[i]) for i in sorted(bad))),
        )


def load_data(source: Dataset | Table | Iterable[Row] | str | Path, **options: Any) -> AuditData:
    """Read a source.

    Args:
        source: a `datasets.Dataset`, rows as mappings, a table file (.jsonl, .json, .csv, .tsv, .parquet), a
            WebDataset tar, a folder (a table with image paths, images with a metadata file or with a text file beside
            each, or shards of parquet or tar), or a Hub dataset id ("ns/name", with ":config", "@split" and
            "#revision", in this order, where needed).
        options: `symbal_hf.core.options.Reading` and `seed`. Columns are found by their usual names when not given; a
            caption column may hold conversations. Of COCO's captions JSON `join` adds the references, of its
            instances JSON the objects. `sample` is drawn from the first `limit` rows, and the source is read once.
            `source_format` "auto" tells it by the structure: conversations (LLaVA, ShareGPT4V, chat messages: the
            first answer is the caption) where there is no `caption` column; COCO's captions JSON ("coco": the captions
            of an image are one row); a headerless TSV of captions and URLs ("url-tsv"); a folder of images with text
            files ("sidecars"). "table" takes columns as they stand. With `allow_download` images that are URLs are
            fetched when one is needed, into the cache folder.

    Raises:
        BadData: nothing to audit, a missing column, or (on_bad_row "error") a bad row.
        FileNotFoundError: no such file or folder.
        TypeError: an option that is not there.
        ValueError: a value outside its range.
    """
    reading, chance = take(options, Reading, Chance, by="load_data")
    table = open_table(source, source_format=reading.source_format, caption_column=reading.caption_column)
    root = chosen_root(reading.image_root, table.root)
    if reading.join is not None:
        table = joined(table, Path(reading.join))
    if not table.columns:
        raise BadData(f"{table.name} has no rows; {NEED}.")
    caption = find_column("caption", reading.caption_column, CAPTIONS, table.columns, required=True)
    image = find_column("image", reading.image_column, (*IMAGES, *URLS), table.columns)
    reference = find_column("reference", reading.reference_column, REFERENCES, table.columns)
    objects = find_column("objects", reading.objects_column, OBJECTS, table.columns)

    def look(row: Row) -> tuple[str, tuple[str, ...], frozenset[str] | None, str | None]:
        text = _caption(row.get(str(caption)))
        told = _texts(row.get(reference)) if reference else ()
        shown = row.get("image_id")
        return text, told, object_names(row.get(objects)) if objects else None, None if shown is None else str(shown)

    rows = usable(table, image, look, reading, chance.seed, need=NEED)
    captions, references, kinds, shown = zip(*rows.values, strict=True)
    numbers, images = list(rows.ids.values()), None
    if image is not None:
        images = Images(table.column(image), numbers, root, allow_download=reading.allow_download)
        # A column of files is not read through for names that it does not have.
        if image not in table.heavy or images.named(0) is not None:
            shown = tuple(images.named(row) if name is None else name for row, name in enumerate(shown))
    return AuditData(
        ids=tuple(rows.ids),
        captions=captions,
        references=references if reference else None,
        objects=kinds if objects else None,
        images=images,
        skipped=tuple(rows.skipped),
        source=table.name,
        read=_read(source, given(reading, chance)) if isinstance(source, (str, Path)) else None,
        numbers=numbers,
        told_in=(str(table.chat or caption), table.chat is not None),
        shown=shown if any(shown) else None,
    )


@dataclass(frozen=True)
class Usable:
    """Rows that can be used, and the others with reasons."""

    ids: dict[str, int]  # with their numbers in the source, from 0
    values: list[Any]  # what is taken of each
    skipped: list[Skipped]


def usable(
    table: Table, image: str | None, look: Callable[[Row], Any], reading: Reading, seed: int, *, need: str
) -> Usable:
    """The rows that are asked for, each as `look` has it, which raises `BadData` where it cannot be used.

    Raises:
        BadData: none that can be used, which `need` tells what for, or (on_bad_row "error") one that cannot.
    """
    id_name = next((name for name in IDS if name in table.columns and name != image), None)
    out = Usable({}, [], [])
    # Rows are read without their image bytes, which stay where they are until a model wants them.
    rows = enumerate(itertools.islice(table.read(() if image is None else (image,)), reading.limit))
    for number, row in sampled(rows, reading.sample, seed):
        row_id = str(row[id_name]) if id_name and row.get(id_name) is not None else str(number)
        try:
            value = look(row)
            if out.ids.setdefault(row_id, number) != number:
                raise BadData(f"its id is the same as that of row {out.ids[row_id]}")
        except BadData as problem:
            if reading.on_bad_row == "error":
                raise BadData(f"row {row_id} of {table.name}: {problem}; mend it or pass on_bad_row='warn'.") from None
            out.skipped.append(Skipped(row_id, str(problem)))
            continue
        out.values.append(value)
    if out.skipped and not out.ids:
        few = f"none of the {len(out.skipped)} rows of {table.name} can be used"
        raise BadData(f"{few}; the first: {out.skipped[0].reason}.")
    if not out.ids:
        raise BadData(f"{table.name} has no rows; {need}.")
    return out


def _read(source: str | Path, options: dict[str, Any]) -> dict[str, Any]:
    """`AuditData.read`: JSON-able."""
    whole = {"source": source, **options}
    paths = [name for name in ("source", "join", "image_root") if name in whole]
    if not Path(source).exists():
        paths.remove("source")  # the name of a dataset
    return {**whole, "source": str(source), **{name: str(Path(whole[name]).absolute()) for name in paths}}


def read_rows(
    source: str | Path, *, caption_column: str | None = None, join: str | Path | None = None
) -> tuple[Iterable[Mapping[str, Any]], str | None, str]:
    """All rows of a table as they stand, the name of its id column, and the name of its caption column."""
    table = open_table(source, caption_column=caption_column)
    if join is not None:
        table = joined(table, Path(join))
    caption = find_column("caption", caption_column, CAPTIONS, table.columns, required=True)
    assert caption is not None
    return table, next((name for name in IDS if name in table.columns), None), caption


def _caption(value: Any) -> str:
    """The caption; raises `BadData` where it is none."""
    if isinstance(value, Unusable):
        raise BadData(value.reason)
    if not isinstance(value, str):
        raise BadData("it has no caption" if value is None else f"its caption is {type(value).__name__}, not text")
    if not any(c.isalnum() for c in value):
        raise BadData("its caption is empty")
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,) if value.strip() else ()
    if isinstance(value, Sequence) and all(isinstance(v, str) for v in value):
        return tuple(v for v in value if v.strip())
    raise BadData(f"its reference is {type(value).__name__}; expected text or a list of texts")


def object_names(value: Any) -> frozenset[str] | None:
    """Object names from a list of names, of {"category"|"name"|"label": ...}, or a comma-separated text."""
    if value is None:
        return None
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            return object_names(json.loads(value))
        value = value.split(",")
    if isinstance(value, Mapping):  # the columnar form of a list of structs
        value = value.get("category", value.get("name", value.get("label", [])))
    if not isinstance(value, Iterable):
        value = [value]
    kinds = ("category", "name", "label")
    names = [next((v[k] for k in kinds if k in v), None) if isinstance(v, Mapping) else v for v in value]
    if any(not isinstance(n, str) for n in names):
        raise BadData("its objects are no names; expected a list of names or of {'category': name}")
    return frozenset(n.strip() for n in names if n and n.strip())


def thumbnails_of(data: AuditData) -> Callable[[str], bytes | None]:
    """`jpeg_thumbnail` by row id; None for a row without a picture that can be read."""
    row_of, images = {row_id: row for row, row_id in enumerate(data.ids)}, data.images

    def thumbnail(row_id: str) -> bytes | None:
        try:
            return None if images is None else jpeg_thumbnail(images.encoded(row_of[row_id]))
        except (OSError, ValueError, KeyError):  # a scorer of texts never looked at it; a report does without
            return None

    return thumbnail


def readable(data: AuditData, on_bad_row: OnBadRow) -> AuditData:
    """The data without rows whose image cannot be decoded."""
    if data.images is None or data.images.readable:
        return data
    bad: dict[int, str] = {}
    for row in range(len(data)):
        try:
            decode(data.images.encoded(row))
        except (OSError, SyntaxError, ValueError) as error:
            bad[row] = f"unreadable image: {error}"
    kept = left_out(data, bad, on_bad_row)
    data.images.readable = not bad
    return kept


def left_out(data: AuditData, bad: Mapping[int, str], on_bad_row: OnBadRow) -> AuditData:
    """The data without the rows of `bad`, by the policy for bad rows."""
    if bad and on_bad_row == "error":
        row = min(bad)
        raise BadData(f"row {data.ids[row]}: {bad[row]}; mend it or pass on_bad_row='warn'.")
    if bad and len(bad) == len(data):
        raise BadData(f"none of the {len(data)} images can be read; the first: {bad[0]}.")
    return data.without(dict(bad)) if bad else data
