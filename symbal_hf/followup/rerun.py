"""The command that audits rows again, elsewhere, as they were audited before."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from symbal_hf.core.options import AUDIT, defaults_of
from symbal_hf.data.table import AuditData
from symbal_hf.models.composition import audited_composition, choose_composition
from symbal_hf.results.findings import AuditResult

GATES = ("top_k", "tau", "alpha", "min_rate", "budget", "seed")
LOOKED_AT = 100  # rows, to tell whether images are files


def audit_command(
    result: AuditResult,
    data: AuditData,
    table: Path,
    *,
    out: Path,
    kind: str,
    join: str | Path | None = None,
    dropped: int = 0,
    vocabulary: str | Path | Mapping[str, Any] | None = None,
) -> tuple[str | None, tuple[str, ...]]:
    """The `symbal audit` line for `table`, read as far as is known as the source was read, and what to know of it.

    Args:
        result: of the audit before.
        data: its rows, and how they were read.
        table: what to audit now.
        out: its folder.
        kind: of the source, as `symbal_hf.data.copying.open_source` calls it.
        join: the joined table, where rows in memory were joined with one.
        dropped: rows that have been left out of those that the audit read.
        vocabulary: classes that were given anew, or their file.

    Returns:
        None in the place of a command where a model or classes were objects of a program.
    """
    made, notes = result.provenance, list[str]()
    read = data.read or ({} if join is None else {"join": str(Path(join).absolute())})
    left = {"source", "image_root", "seed", "on_bad_row"}
    if kind in ("rows", "url-tsv", "tar"):  # a table now, whatever it was
        left.add("source_format")
    options: dict[str, Any] = {k: v for k, v in read.items() if k not in left}
    if (root := _root(data)) is not None:
        options["image_root"] = root
    if "limit" in options and dropped:
        options["limit"] = max(int(options["limit"]) - dropped, 1)
    if "sample" in options:
        notes.append("it draws other rows, and those that this audit did not draw have not been repaired")
    words_file = made.get("vocabulary") if vocabulary is None else None
    if isinstance(vocabulary, (str, Path)):
        words_file = str(Path(vocabulary).absolute())
    options["vocabulary"] = words_file
    usual = {"preset": "lite", "method": "association", **defaults_of(*AUDIT)}
    for name in ("preset", "method", "on_bad_row", *GATES):
        if made.get(name) is not None and made[name] != usual[name]:
            options[name] = made[name]
    audited, preset = audited_composition(made), choose_composition(made["preset"])
    changed = {part: spec for part, spec in asdict(audited).items() if spec not in (None, getattr(preset, part))}
    if audited.scorer_1 == audited.scorer_2 and "scorer_1" in changed:
        changed = {"scorer": changed.pop("scorer_1"), **changed}
        changed.pop("scorer_2", None)
    if any("object:" in str(spec) for spec in asdict(audited).values()):
        return None, (*notes, "models of that audit were objects of a program; give them to symbal_hf.audit again")
    options |= changed
    if words_file is None and (vocabulary is not None or made.get("classes") is not None):
        return None, (*notes, "the vocabulary of that audit lies in no file; give it to symbal_hf.audit again")
    words = ["symbal", "audit", str(table)]
    for name, value in options.items():
        if value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    for pair in made.get("pairs") or ():
        words += ["--pair", "|".join(pair)]
    return shlex.join([*words, "--out", str(out)]), tuple(notes)


def _root(data: AuditData) -> Path | None:
    """The folder of the images where rows name them by paths, which the repaired table does not lie beside."""
    images = data.images
    if images is None or images.root is None:
        return None
    for row in range(min(len(data), LOOKED_AT)):
        with suppress(ValueError):
            if isinstance(images.file(row), Path):
                return images.root
    return None
