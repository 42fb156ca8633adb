"""The rows of a finished audit, read again as it read them, and the proof that they are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.results.findings import AuditResult


def fingerprint(data: AuditData) -> str:
    """SHA-256 over the ids and captions of the rows, in their order."""
    digest = hashlib.sha256()
    for row_id, caption in zip(data.ids, data.captions, strict=True):
        for text in (row_id, caption):
            known = text.encode("utf-8", "surrogatepass")
            digest.update(len(known).to_bytes(8, "little") + known)
    return digest.hexdigest()


def reread(result: AuditResult, *, source: str | Path | None = None, **changed: Any) -> AuditData:
    """The rows that `result` of an audit of a file, a folder or a Hub dataset is about.

    Rows that the audit left out for an image that cannot be read are among them: they are told by `result.skipped`.

    Args:
        source: where the same rows lie now, when they have been moved.
        changed: options of `load_data` that take the place of the audit's, such as `image_root` or `join`.

    Raises:
        BadData: the audit was of data in memory, or the rows are no longer the ones that were audited.
        FileNotFoundError: the source is gone.
    """
    read = result.provenance.get("read")
    if read is None and source is None:
        raise BadData(
            "this audit was of data in memory, so its rows cannot be read again; pass the rows themselves (data=) or "
            "a file with them (--source)."
        )
    options = {**(read or {}), **{name: value for name, value in changed.items() if value is not None}}
    if source is not None:
        options["source"] = source
    data = load_data(**options)
    check_same_rows(result, data)
    return data


def check_same_rows(result: AuditResult, data: AuditData) -> None:
    """Raise `BadData` where the ids or captions of `data` are not those that were audited."""
    known = result.provenance.get("rows_sha256")
    if known is not None and fingerprint(data) != known:
        raise BadData(
            f"the rows of {data.source} are not those that were audited (their ids or captions differ); audit them "
            "again, or name the file that was audited with --source."
        )


def audited_vocabulary(result: AuditResult) -> Mapping[str, list[str]] | None:
    """The classes with synonyms that the audit was limited to, read again; None where it had none or they are gone."""
    path = result.provenance.get("vocabulary")
    return load_vocabulary(path) if path is not None and Path(path).is_file() else None
