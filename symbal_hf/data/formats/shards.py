"""Sources of many files read where they lie: parquet shards and WebDataset tars, whose images nobody copies."""

from __future__ import annotations

import json
import tarfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.opening import PICTURES

TEXTS = (".txt", ".caption", ".cap")
GROUPS = 2  # row groups of images in memory at once: rows are asked in order, or nearly


class ParquetRows:
    """The rows of parquet files with the same columns, batch by batch; a column by name is read when it is asked."""

    def __init__(self, files: Sequence[Path], *, without: frozenset[str] = frozenset()) -> None:
        """`files` in order; the columns `without` are left out of rows."""
        self.files, self.without = tuple(files), without
        schemas = [_schema(path) for path in self.files]
        for path, names in zip(self.files, schemas, strict=True):
            if set(names) != set(schemas[0]):
                odd = sorted(set(names) ^ set(schemas[0]))[0]
                raise BadData(f"{path.name} and {self.files[0].name} differ in the column {odd!r}; name one to audit.")
        self.column_names = [name for name in schemas[0] if name not in without]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        from pyarrow import parquet

        for path in self.files:
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=8192, columns=self.column_names):
                    yield from batch.to_pylist()

    def remove_columns(self, name: str) -> ParquetRows:
        """The same rows without a column."""
        return ParquetRows(self.files, without=self.without | {name})

    def __getitem__(self, name: str) -> ParquetColumn:
        return ParquetColumn(self.files, name)


class ParquetColumn(Sequence[Any]):
    """One column of parquet files, row group by row group."""

    def __init__(self, files: Sequence[Path], name: str) -> None:
        from pyarrow import parquet

        self.name, self._groups, self._starts = name, [], [0]
        for path in files:
            with parquet.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    self._groups.append((path, group))
                    self._starts.append(self._starts[-1] + file.metadata.row_group(group).num_rows)
        self._read = lru_cache(maxsize=GROUPS)(self._group)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, row: Any) -> Any:
        if not 0 <= row < len(self):
            raise IndexError(row)
        group = bisect_right(self._starts, row) - 1
        return self._read(group)[row - self._starts[group]].as_py()

    def _group(self, number: int) -> Any:
        from pyarrow import parquet

        path, group = self._groups[number]
        with parquet.ParquetFile(path) as file:
            return file.read_row_group(group, columns=[self.name]).column(0)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_read"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._read = lru_cache(maxsize=GROUPS)(self._group)


class TarRows:
    """The samples of WebDataset tars: files that share a name up to its first dot, such as 0001.jpg and 0001.txt.

    Texts are read once, with the places of the images; an image is read from its place when it is asked. A sample's
    `.txt` is its caption unless its `.json` has one; its name is its id unless its `.json` has one.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._rows: list[dict[str, Any]] = []
        self._images: list[tuple[Path, int, int] | None] = []
        for path in files:
            self._index(path)
        columns = dict.fromkeys(name for row in self._rows for name in row)
        self.column_names = [*columns, *(["image"] if any(self._images) else [])]

    def _index(self, path: Path) -> None:
        before, row, image = None, dict[str, Any](), None
        try:
            with tarfile.open(path, "r:") as tar:
                for member in tar:
                    if not member.isfile():
                        continue
                    folder, _, name = member.name.rpartition("/")
                    key, dot, rest = name.partition(".")
                    if (folder, key) != before:
                        self._add(row, image)
                        before, row, image = (folder, key), {"id": key}, None
                    suffix = dot + rest.lower()
                    if suffix in PICTURES:
                        image = (path, member.offset_data, member.size)
                    elif suffix in TEXTS or suffix == ".json":
                        self._read(row, tar.extractfile(member), suffix, f"{path.name}, {member.name}")
        except tarfile.ReadError as error:
            raise BadData(f"{path} is no plain tar file or is cut off ({error}); unpack or fetch it again.") from error
        self._add(row, image)

    def _add(self, row: dict[str, Any], image: tuple[Path, int, int] | None) -> None:
        if len(row) > 1 or image is not None:
            self._rows.append(row)
            self._images.append(image)

    def _read(self, row: dict[str, Any], file: Any, suffix: str, where: str) -> None:
        try:
            text = file.read().decode("utf-8-sig")
            if suffix != ".json":
                row.setdefault("caption", text)
                return
            told = json.loads(text)
            if not isinstance(told, dict):
                raise ValueError("it holds no object")
            row.update({name: value for name, value in told.items() if name != "image"})
        except ValueError as error:
            raise BadData(f"{where}: {error}; mend it or leave its sample out.") from error

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def remove_columns(self, name: str) -> TarRows:
        """The same rows: they hold no images anyway."""
        return self

    def __getitem__(self, name: str) -> TarImages:
        return TarImages(self._images)


class TarImages(Sequence[Any]):
    """Image files inside of tars, each read from its place."""

    def __init__(self, places: Sequence[tuple[Path, int, int] | None]) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: Any) -> Any:
        place = self._places[row]
        if place is None:
            return None
        path, offset, size = place
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(size)


def _schema(path: Path) -> list[str]:
    import pyarrow
    from pyarrow import parquet

    try:
        return list(parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise BadData(f"{path} is no whole parquet file ({error}); fetch or write it again.") from error
