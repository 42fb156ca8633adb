"""WebDataset tars read where they lie, whose images nobody copies."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.columns import PICTURES, TEXTS
from symbal_hf.data.formats.arrow import as_dataset, dataset_batches
from symbal_hf.data.formats.protocol import Table, column_names

if TYPE_CHECKING:
    import pyarrow as pa

Position = tuple[Path, int, int]  # of an image: its tar, where it starts there, and its bytes
IMAGES_AT_ONCE = 100


class Tar:
    """Samples are files that share a name up to its first dot, such as 0001.jpg and 0001.txt.

    Texts are read once, with the positions of the images; an image is read from there when it is asked. A sample's
    `.txt` is its caption unless its `.json` has one; its name is its id unless its `.json` has one.
    """

    name = "tar"

    def sniff(self, path: Path) -> bool:
        return path.suffix.lower() == ".tar"

    def rows(self, files: Sequence[Path]) -> Table:
        samples = [sample for path in files for sample in _samples(path)]
        rows, images = [row for row, _ in samples], TarImages([image for _, image in samples])
        columns = [*column_names(rows), *(["image"] if any(image is not None for _, image in samples) else [])]
        return Table(
            columns, lambda _: rows, lambda name: images if name == "image" else [row.get(name) for row in rows]
        )


TAR = Tar()


class TarImages(Sequence[Any]):
    """Image files inside of tars, each read from its position."""

    def __init__(self, positions: Sequence[Position | None]) -> None:
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, row: Any) -> Any:
        position = self._positions[row]
        if position is None:
            return None
        path, offset, size = position
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)


def _samples(path: Path) -> Iterator[tuple[dict[str, Any], Position | None]]:
    """The rows of one tar, and where their images are."""
    before: tuple[str, str] | None = None
    row, image = dict[str, Any](), None
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if not member.isfile():
                    continue
                folder, _, name = member.name.rpartition("/")
                key, dot, rest = name.partition(".")
                if (folder, key) != before:
                    if len(row) > 1 or image is not None:
                        yield row, image
                    before, row, image = (folder, key), {"id": key}, None
                suffix = dot + rest.lower()
                if suffix in PICTURES:
                    image = (path, member.offset_data, member.size)
                elif suffix in TEXTS or suffix == ".json":
                    _add(row, tar.extractfile(member), suffix, f"{path.name}, {member.name}")
    except tarfile.ReadError as error:
        raise BadData(f"{path} is no plain tar file or is cut off ({error}); unpack or fetch it again.") from error
    if len(row) > 1 or image is not None:
        yield row, image


def _add(row: dict[str, Any], file: Any, suffix: str, where: str) -> None:
    """What a file of text or JSON says of its sample."""
    try:
        text = file.read().decode("utf-8-sig")
        if suffix != ".json":
            row.setdefault("caption", text)
            return
        members = json.loads(text)
        if not isinstance(members, dict):
            raise ValueError("it holds no object")
        row.update({name: value for name, value in members.items() if name != "image"})
    except ValueError as error:
        raise BadData(f"{where}: {error}; mend it or leave its sample out.") from error


def tar_batches(table: Table) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Samples with their images in the way that `datasets` keeps them, a few at a time."""
    import pyarrow as pa
    from datasets import Features, Image

    dataset = as_dataset(list(table), [name for name in table.columns if name != "image"])
    if "image" not in table.columns:
        return dataset.features.arrow_schema, dataset_batches(dataset)
    schema = Features({**dataset.features, "image": Image()}).arrow_schema
    images = table.column("image")

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        for texts in dataset.with_format("arrow").iter(batch_size=IMAGES_AT_ONCE):
            held = [images[n] for n in range(start, start + len(texts))]
            start += len(texts)
            column = pa.array(
                [None if b is None else {"bytes": b, "path": None} for b in held], schema.field("image").type
            )
            yield from pa.table([*texts.columns, column], schema=schema).to_batches()

    return schema, batches()
