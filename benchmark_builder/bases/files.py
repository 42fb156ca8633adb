"""Files of a download: tables, JSON lines and images, with one sentence about what is wrong with a bad one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    import pandas as pd

Row = TypeVar("Row")


def read_csv(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The named columns (all by default) of a CSV or CSV.GZ file; every value is text without blanks around it.

    Raises:
        BadData: no such file, an empty or cut off one, or a missing column.
    """
    import pandas as pd

    if not path.is_file():
        raise BadData(f"no file {path}; download it, and give the folder that holds it.")
    try:
        table = pd.read_csv(path, dtype=str, na_filter=False, index_col=False, encoding="utf-8-sig")
    except pd.errors.EmptyDataError as error:
        raise BadData(f"{path} is empty; download it again.") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise BadData(f"{path} cannot be read ({error}); it seems cut off, download it again.") from error
    absent = [column for column in columns or () if column not in table.columns]
    if absent:
        raise BadData(f"{path} has no column {', '.join(absent)}; its columns are {', '.join(table.columns)}.")
    return table[list(columns or table.columns)].apply(lambda column: column.fillna("").str.strip())


def read_json_lines(path: Path, row: Callable[[Any], Row], holding: str) -> list[Row]:
    """What `row` makes of each line of a file; lines of blanks are passed over.

    Raises:
        BadData: no such file, or a line that `row` fails on; each should be an object `holding` so and so.
    """
    if not path.is_file():
        raise BadData(f"no file {path}; give JSON lines, one object a line with {holding}.")
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise BadData(f"{path} is not UTF-8 ({error.reason} at byte {error.start}); write it anew.") from error
    out = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                out.append(row(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise BadData(
                f"{path}, line {number}: {error!r}; each line must be one whole JSON object with {holding}."
            ) from error
    return out


def image_files(paths: Iterable[Path], remedy: str) -> tuple[Path, ...]:
    """The paths, all of which are files.

    Raises:
        BadData: one is not.
    """
    paths = tuple(paths)
    if missing := [path for path in paths if not path.is_file()]:
        raise BadData(f"no image file {missing[0]} ({len(missing)} of {len(paths)} are missing); {remedy}.")
    return paths
