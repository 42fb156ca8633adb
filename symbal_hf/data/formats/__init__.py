"""Which format reads and writes what: each is one file here, and knows its own files."""

from __future__ import annotations

from pathlib import Path

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import SourceFormat
from symbal_hf.data.formats.arrow import PARQUET
from symbal_hf.data.formats.coco import COCO
from symbal_hf.data.formats.json_files import JSON_LINES, JSON_LIST
from symbal_hf.data.formats.protocol import CopiedFormat, Format
from symbal_hf.data.formats.tars import TAR
from symbal_hf.data.formats.text_tables import CSV, TSV, URL_LINES

FORMATS: tuple[Format, ...] = (PARQUET, TAR, URL_LINES, COCO, JSON_LIST, CSV, TSV, JSON_LINES)  # the first that knows
COPIED: dict[str, CopiedFormat] = {f.name: f for f in (PARQUET, URL_LINES, JSON_LIST, CSV, TSV, JSON_LINES)}
WRITERS = {f.name: f.write for f in (JSON_LIST, CSV, TSV, JSON_LINES)}  # of rows that come from another format


def format_of(path: Path, source_format: SourceFormat = "auto") -> Format:
    """The format of one file; raises `BadData` where it is not the one that is asked for."""
    if source_format == "sidecars":
        raise BadData(f"{path} is a file; the format 'sidecars' is a folder of images with text files.")
    found = next(f for f in FORMATS if f.sniff(path))
    if source_format == "auto" or found in (PARQUET, TAR):
        return found
    if source_format == "url-tsv":
        return URL_LINES
    if source_format == "coco" and found != COCO:
        raise BadData(f"{path} is no COCO JSON ({{'images': .., 'annotations': ..}}); leave source_format at 'auto'.")
    if source_format != "coco":  # a table of columns, whatever it looks like
        return JSON_LIST if found == COCO else TSV if found == URL_LINES else found
    return found
