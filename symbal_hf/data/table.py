"""Any source of images and captions becomes one table: row ids, captions, references, objects, encoded images."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import OnBadRow, SourceFormat
from symbal_hf.data.columns import CAPTIONS, IDS, IMAGES, URLS, Unusable, chosen_root, find_column, limited, sampled
from symbal_hf.data.download import fetched, inline, is_url
from symbal_hf.data.formats.protocol import Row, Table
from symbal_hf.data.join import joined
from symbal_hf.data.opening import open_table
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

REFERENCES = ("references", "reference", "reference_captions", "reference_caption")
OBJECTS = ("objects", "chair_objects")


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
        if not isinstance(held, str):
            return held if isinstance(held, bytes) else _png(held)
        if held.startswith("data:"):
            return inline(held)
        if not self._download:
            raise ValueError(f"its image is at {held}; pass --allow-download (allow_download=True) to fetch it")
        return fetched(held)

    def file(self, row: int) -> Path | str | None:
        """The image's file, or its URL; None where the source holds the image itself.

        Raises:
            ValueError: as for `encoded`.
        """
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


def _png(image: Any) -> bytes:
    import io

    if not hasattr(image, "save"):
        raise ValueError(f"an image of type {type(image).__name__}; expected a path, bytes or a PIL image")
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@dataclass(frozen=True)
class AuditData:
    """N rows, paired by id.

    Attributes:
        ids: row ids, all different.
        captions: the generated captions.
        references: reference captions of each row, or None where the source has none.
        objects: what each image truly shows (None: unknown), or None where the source does not say.
        images: the encoded images, or None for a text-only audit.
        skipped: rows that were left out, with reasons.
        source: what was read, in words.
        read: how to read it again: `load_data`'s source and the options that are not its defaults, with absolute paths;
            None for data that were in memory.
        numbers: of the rows in the source, from 0; None where nobody has counted them.
        told_in: the source's column of captions or conversations, and whether it is conversations.
    """

    ids: tuple[str, ...]
    captions: tuple[str, ...]
    references: tuple[tuple[str, ...], ...] | None
    objects: tuple[frozenset[str] | None, ...] | None
    images: Images | None
    skipped: tuple[Skipped, ...]
    source: str
    read: Mapping[str, Any] | None = None
    numbers: Sequence[int] | None = None
    told_in: tuple[str, bool] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def without(self, bad: Mapping[int, str]) -> AuditData:
        """The table without the rows `bad`, which join `skipped` with their reasons."""
        if not bad:
            return self
        keep = [i for i in range(len(self)) if i not in bad]
        return replace(
            self,
            ids=tuple(self.ids[i] for i in keep),
            captions=tuple(self.captions[i] for i in keep),
            references=None if self.references is None else tuple(self.references[i] for i in keep),
            objects=None if self.objects is None else tuple(self.objects[i] for i in keep),
            images=None if self.images is None else self.images.select(keep),
            skipped=(*self.skipped, *(Skipped(self.ids[i], bad[i]) for i in sorted(bad))),
            numbers=None if self.numbers is None else [self.numbers[i] for i in keep],
        )


def load_data(
    source: Dataset | Table | Iterable[Mapping[str, Any]] | str | Path,
    *,
    image_column: str | None = None,
    caption_column: str | None = None,
    reference_column: str | None = None,
    objects_column: str | None = None,
    image_root: str | Path | None = None,
    join: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    on_bad_row: OnBadRow = "warn",
    source_format: SourceFormat = "auto",
    allow_download: bool = False,
) -> AuditData:
    """Read a source.

    Args:
        source: a `datasets.Dataset`, rows as mappings, a table file (.jsonl, .json, .csv, .tsv, .parquet), a
            WebDataset tar, a folder (a table with image paths, images with a metadata file or with a text file beside
            each, or shards of parquet or tar), or a Hub dataset id ("ns/name", with ":config", "@split" and
            "#revision", in this order, where needed).
        image_column: and the other columns: found by their usual names when not given; a caption column may hold
            conversations.
        image_root: the folder that image paths are relative to and must stay inside; the source's own by default.
        join: a second table whose columns are added to the rows with the same id; of COCO's captions JSON these are
            the references, of its instances JSON the objects.
        limit: read at most this many rows.
        sample: of these keep this many, drawn with `seed`, in their order; the source is read once.
        on_bad_row: "error" raises at the first bad row; "warn" and "skip" leave bad rows out and count them.
        source_format: "auto" tells it by the structure: conversations (LLaVA, ShareGPT4V, chat messages: the first
            answer is the caption) where there is no `caption` column; COCO's captions JSON ("coco": the captions of an
            image are one row); a headerless TSV of captions and URLs ("url-tsv"); a folder of images with text files
            ("sidecars"). "table" takes columns as they stand.
        allow_download: fetch images that are URLs, when one is needed, into the cache folder.

    Raises:
        BadData: nothing to audit, a missing column, or (policy "error") a bad row.
        FileNotFoundError: no such file or folder.
    """
    given = {name: value for name, value in locals().items() if name != "source"}
    table = open_table(source, source_format=source_format, caption_column=caption_column)
    root = chosen_root(image_root, table.root)
    if join is not None:
        table = joined(table, Path(join))
    if not table.columns:
        raise BadData(f"{table.name} has no rows; an audit needs images with captions.")
    roles = _Roles.of(table.columns, caption_column, image_column, reference_column, objects_column)
    # Rows are read without their image bytes, which stay where they are until a model wants them.
    rows = enumerate(limited(table.read(() if roles.image is None else (roles.image,)), limit))
    usable = _usable(sampled(rows, sample, seed), roles, table.name, on_bad_row)
    images = None
    if roles.image is not None:
        images = Images(table.column(roles.image), usable.numbers, root, allow_download=allow_download)
    return AuditData(
        ids=tuple(usable.ids),
        captions=tuple(usable.captions),
        references=tuple(usable.references) if roles.references else None,
        objects=tuple(usable.objects) if roles.objects else None,
        images=images,
        skipped=tuple(usable.skipped),
        source=table.name,
        read=_read(source, given) if isinstance(source, (str, Path)) else None,
        numbers=usable.numbers,
        told_in=(str(table.chat or roles.caption), table.chat is not None),
    )


@dataclass(frozen=True)
class _Roles:
    """Which column is what."""

    caption: str
    image: str | None
    references: str | None
    objects: str | None
    id: str | None

    @classmethod
    def of(
        cls, columns: list[str], caption: str | None, image: str | None, references: str | None, objects: str | None
    ) -> _Roles:
        captions = find_column("caption", caption, CAPTIONS, columns, required=True)
        assert captions is not None
        images = find_column("image", image, (*IMAGES, *URLS), columns)
        return cls(
            captions,
            images,
            find_column("reference", references, REFERENCES, columns),
            find_column("objects", objects, OBJECTS, columns),
            next((name for name in IDS if name in columns and name != images), None),
        )


@dataclass(frozen=True)
class _Usable:
    """What an audit takes from the rows that it can use, and the others with reasons."""

    ids: dict[str, int] = field(default_factory=dict)
    captions: list[str] = field(default_factory=list)
    references: list[tuple[str, ...]] = field(default_factory=list)
    objects: list[frozenset[str] | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def _usable(rows: Iterable[tuple[int, Row]], roles: _Roles, source: str, on_bad_row: OnBadRow) -> _Usable:
    """The numbered rows, checked one by one.

    Raises:
        BadData: none that can be used, or (policy "error") one that cannot.
    """
    out = _Usable()
    for number, row in rows:
        row_id = str(row[roles.id]) if roles.id and row.get(roles.id) is not None else str(number)
        caption: Any = row.get(roles.caption)
        problem = _problem(caption)
        if problem is None and row_id in out.ids:
            problem = f"its id is the same as that of row {out.ids[row_id]}"
        if problem is None:
            try:
                references, objects = _texts(_cell(row, roles.references)), object_names(_cell(row, roles.objects))
            except BadData as error:
                problem = str(error)
        if problem is not None:
            if on_bad_row == "error":
                raise BadData(f"row {row_id} of {source}: {problem}; mend it or pass on_bad_row='warn'.")
            out.skipped.append(Skipped(row_id, problem))
            continue
        out.ids[row_id] = number
        out.captions.append(caption.strip())
        out.references.append(references)
        out.objects.append(objects)
        out.numbers.append(number)
    if not out.ids and not out.skipped:
        raise BadData(f"{source} has no rows; an audit needs images with captions.")
    if not out.ids:
        raise BadData(
            f"none of the {len(out.skipped)} rows of {source} can be used; the first: {out.skipped[0].reason}."
        )
    return out


def _read(source: str | Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """`AuditData.read`: JSON-able."""
    usual = {name: option.default for name, option in inspect.signature(load_data).parameters.items()}
    out = {"source": str(Path(source).absolute()) if Path(source).exists() else str(source)}
    for name, value in given.items():
        if value != usual[name]:
            out[name] = str(Path(value).absolute()) if name in ("join", "image_root") else value
    return out


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


def _cell(row: Row, column: str | None) -> Any:
    return None if column is None else row.get(column)


def _problem(caption: Any) -> str | None:
    if isinstance(caption, Unusable):
        return caption.reason
    if not isinstance(caption, str):
        return f"its caption is {type(caption).__name__}, not text" if caption is not None else "it has no caption"
    return None if any(c.isalnum() for c in caption) else "its caption is empty"


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
