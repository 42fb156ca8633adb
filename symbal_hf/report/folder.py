"""The report of an audit that lies in a folder, written anew from what is there now: findings, second look, rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import MissingModel
from symbal_hf.core.store import Store
from symbal_hf.data.again import reread
from symbal_hf.data.table import AuditData, thumbnails_of
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.report.page import write_report
from symbal_hf.results.findings import AuditResult, load_result
from symbal_hf.results.validation import load_validation

FILE = "report.html"


@dataclass(frozen=True)
class Written:
    """A report that was written.

    Attributes:
        path: of the page.
        result: what it shows; its map may be new, and is in findings.json too.
        no_pictures: why the rows could not be read again, so that the page has no pictures; None where they could.
        no_map: why no map of facts was drawn; None where there is one.
    """

    path: Path
    result: AuditResult
    no_pictures: str | None
    no_map: str | None


def write_report_of(
    folder: str | Path,
    *,
    data: AuditData | None = None,
    source: str | Path | None = None,
    title: str = "Caption audit",
    store: Store | None = None,
    progress: Progress = quiet,
    **changed: Any,
) -> Written:
    """Write report.html into an audit's folder from its findings.json and, where there is one, its validation.json.

    A map of facts that findings.json lacks is drawn and added to it. Where the rows cannot be read again, the page goes
    without pictures and says why; where the caller names how to read them, that is an error.

    Args:
        folder: what `symbal audit --out` wrote.
        data: the rows, where they are at hand; by default they are read again.
        source: where the same rows lie now, when they have been moved.
        title: heading of the page.
        store: where embeddings are kept; by default the user's.
        progress: wraps the loop that embeds facts for the map.
        changed: options of `symbal_hf.load_data` in the place of the audit's, such as `image_root` or `join`.

    Raises:
        FileNotFoundError: no findings.json in `folder`, or a `source` that is not there.
        BadData: rows, named by the caller, that are not those that were audited.
    """
    folder = Path(folder)
    result, no_pictures, no_map = load_result(folder), None, None
    named = source is not None or any(value is not None for value in changed.values())
    if data is None:
        try:
            data = reread(result, source=source, **changed)
        except (OSError, ValueError) as error:  # of a Hub that cannot be reached, too
            if named:
                raise
            no_pictures = str(error)
    if result.fact_map is None:
        if data is None:
            no_map = "the rows cannot be read"
        else:
            result, no_map = with_map(result, data, store=store, progress=progress)
            if result.fact_map is not None:
                result.write(folder)
    validation = load_validation(folder)
    rows = None if validation is None else validation.provenance.get("rows_sha256")
    if rows not in (None, result.provenance.get("rows_sha256")):
        validation = None  # of an audit of other rows that was in this folder before
    note = None if no_pictures is None else f"No pictures: {no_pictures}"
    pictures = None if data is None else thumbnails_of(data)
    path = write_report(result, folder / FILE, thumbnail=pictures, title=title, validation=validation, note=note)
    return Written(path, result, no_pictures, no_map)


def with_map(
    result: AuditResult, data: AuditData, *, store: Store | None = None, progress: Progress = quiet
) -> tuple[AuditResult, str | None]:
    """The result with a map of facts; or as it was, and why there is none: an audit needs no text encoder."""
    from symbal_hf.report.fact_map import draw_fact_map

    try:
        return replace(result, fact_map=draw_fact_map(result, data, store=store, progress=progress)), None
    except MissingModel as error:
        return result, str(error)
