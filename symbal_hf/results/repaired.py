"""What a repair did: counts of rows, one record for each row that it touched, and where it all lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from symbal_hf.results.json import Told

Policy = Literal["flag", "drop-sentence", "drop-row", "rewrite"]
OutputFormat = Literal["auto", "jsonl", "json", "csv", "tsv", "parquet"]
Action = Literal["flagged", "sentences dropped", "rewritten", "row dropped", "emptied", "not found"]


@dataclass(frozen=True)
class RowError:
    """What is wrong in one row by one finding: its t and v, and the sentences of the caption that state t."""

    textual_error: str
    visual_feature: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Change(Told):
    """One row that a finding is about: a line of diff.jsonl.

    Attributes:
        row_id: its id, as the audit has it.
        findings: what is wrong.
        before: the caption as it was.
        after: the caption as it is now; None where the row has been dropped.
        action: what was done. "not found" is a third state: a wrong sentence does not stand in the caption as the
            audit split it, so that the row was left as it was.
        reason: why it was done so and not otherwise; None where there is nothing to say.
    """

    row_id: str
    findings: tuple[RowError, ...]
    before: str
    after: str | None
    action: Action
    reason: str | None = None


@dataclass(frozen=True)
class Counts:
    """Rows by what became of them; `rows` is the sum of those up to `untouched`.

    Attributes:
        rows: of the source, whether the audit looked at them or not.
        flagged: marked by the policy "flag".
        sentences_dropped: their caption has lost its wrong sentences.
        rewritten: their caption has been rewritten by a chat model.
        rows_dropped: left out by the policy "drop-row".
        emptied: left out since nothing of their caption would remain.
        not_found: left as they were, since a wrong sentence was not found in the caption.
        untouched: the others, which are as they were.
        rewrite_refused: rows whose rewritten caption failed a check; they are counted above by what was done instead.
        unchecked: of those rewritten, rows whose new sentences no scorer could check.
        not_audited: of those untouched, rows that the audit left out or did not draw, of which nothing is known.
    """

    rows: int = 0
    flagged: int = 0
    sentences_dropped: int = 0
    rewritten: int = 0
    rows_dropped: int = 0
    emptied: int = 0
    not_found: int = 0
    untouched: int = 0
    rewrite_refused: int = 0
    unchecked: int = 0
    not_audited: int = 0

    @property
    def changed(self) -> int:
        """Rows whose caption is another."""
        return self.sentences_dropped + self.rewritten

    @property
    def written(self) -> int:
        """Rows of the repaired table."""
        return self.rows - self.rows_dropped - self.emptied


@dataclass(frozen=True)
class Repaired:
    """A repaired dataset.

    Attributes:
        policy: how it was repaired.
        counts: rows by what became of them.
        folder: where everything lies.
        table: the repaired table: a file, or the folder of its shards.
        diff: diff.jsonl, a `Change` a line.
        summary: repair.json: policy, counts, findings, provenance and command.
        command: the command that audits the repaired data as before; None where only a program could give the source
            or a model again.
        notes: what to know of that audit.
        provenance: of this repair: what was asked of chat models, and how rewritten captions were checked.

    >>> counts = Counts(rows=40, sentences_dropped=3, emptied=1, untouched=36)
    >>> paths = [Path("clean") / name for name in ("", "data.csv", "diff.jsonl", "repair.json")]
    >>> done = Repaired("drop-sentence", counts, *paths, command="symbal audit clean/data.csv")
    >>> done.counts.changed, done.counts.written
    (3, 39)
    """

    policy: Policy
    counts: Counts
    folder: Path
    table: Path
    diff: Path
    summary: Path
    command: str | None
    notes: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)


ACTIONS: Mapping[Action, str] = {
    "flagged": "flagged",
    "sentences dropped": "sentences_dropped",
    "rewritten": "rewritten",
    "row dropped": "rows_dropped",
    "emptied": "emptied",
    "not found": "not_found",
}
