"""CSV files as text, packed or not, with one sentence about what is wrong with a bad one."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    import pandas as pd


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
