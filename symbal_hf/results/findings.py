"""What an audit says: the verdict, the findings with their statistics, and the files they are written to."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from symbal_hf.results.fact_map import FactMap
from symbal_hf.results.json import Told, load_json

Verdict = Literal["systematic", "none"]
State = Literal["found", "suspected", "candidate", "asked"]
CSV_COLUMNS = (
    "textual_error", "visual_feature", "cramers_v", "risk_ratio", "risk_ratio_low", "risk_ratio_high", "p_value",
    "p_value_corrected", "error_rate_with", "error_rate_without", "confirmed_by", "confirmed_rows", "witness_rows",
    "confirmed_share", "errors_with_feature", "rows_with_feature", "errors_without_feature", "rows_without_feature",
)  # fmt: skip


@dataclass(frozen=True)
class Skipped:
    """A row that was left out, and why.

    >>> Skipped("7", "unreadable image").reason
    'unreadable image'
    """

    row_id: str
    reason: str


@dataclass(frozen=True)
class Example:
    """One affected row: its caption, the sentence in it that states the error, and how well that fits the image.

    `alignment` is in [0, 1], low is misaligned; None where the truth was given and nothing had to be judged.

    >>> example = Example("7", "A toilet. A sink.", "A sink.", alignment=0.02)
    >>> example.fact in example.caption
    True
    """

    row_id: str
    caption: str
    fact: str
    alignment: float | None = None


@dataclass(frozen=True)
class Affected:
    """One row whose caption states t wrongly.

    Attributes:
        row_id: its id.
        sentences: the sentences of its caption that state t, as they were split (marks of markdown are dropped).
        has_feature: the image shows v.
        alignment: how well t fits the image, in [0, 1]; None where the truth was given.
    """

    row_id: str
    sentences: tuple[str, ...]
    has_feature: bool
    alignment: float | None = None


class Rates(Told):
    """The error rates of a table of counts, with the feature and without."""

    errors_with_feature: int
    rows_with_feature: int
    errors_without_feature: int
    rows_without_feature: int
    computed = ("error_rate_with", "error_rate_without")

    @property
    def error_rate_with(self) -> float:
        """Share in [0, 1]; 0 when no row has the feature."""
        return self.errors_with_feature / max(self.rows_with_feature, 1)

    @property
    def error_rate_without(self) -> float:
        """Share in [0, 1]; 0 when every row has the feature."""
        return self.errors_without_feature / max(self.rows_without_feature, 1)


@dataclass(frozen=True)
class Finding(Rates):
    """One (textual error t, visual feature v) with its statistics over the rows in which t is truly absent.

    Attributes:
        textual_error: t, a noun phrase.
        visual_feature: v, a noun phrase.
        textual_error_candidates: up to five candidates for t, best first, of which `textual_error` is the first; the
            others are the next suspects, as benchmarks score ranked guesses.
        visual_feature_candidates: up to five candidates for v, best first.
        cramers_v: signed phi of (error, feature), in [-1, 1].
        risk_ratio: error rate with v over error rate without, with its 95 % interval.
        p_value: one-sided p, exact of the 2x2 table, or where a calibrated judge looked at pixels, by likelihood over
            its presence of t; `p_value_corrected` counts every pair that was looked at.
        error_rate_with: share of the rows with v, t absent, whose caption states t; `error_rate_without` likewise.
        confirmed_share: estimated share of the rejected statements that are really false, in [0, 1], with the lower
            end of its 95 % interval; None where truth is given or nothing is rejected, so that nothing is estimated.
        affected: all rows whose caption states t wrongly, those with v first.
        state: "found", as far as a witness beside the accusing judge confirms it; "suspected", one judge's word;
            "candidate", a pair that failed a gate; "asked", measured since somebody asked.
        confirmed_by: the witness: "objects", "references", the name of a second judge, or "competence" (the judge
            rejects more than it was measured to miss); None where nobody confirms it.
        confirmed_rows: rejected rows with v that the witness holds to be false, of `witness_rows` that it looked at;
            for "competence" images in which the judge rejects t, of those whose captions state it.
        missed_with: and `missed_without`: the finding would be explained away if t were in all rejected images, which
            the judge would then have missed in these shares of the images with v, and without, whose captions state t;
            None where the truth was given.
        reason: why it is not found, and what would settle it; "" of a finding.
        other_feature: the strongest feature beside v, which images with v may show as well; None where there is none.
        p_beside_other: exact one-sided p of v among images that are alike in that one (Gart 1970): where it is not
            small, the error may go with the other feature instead.

    >>> finding = Finding(
    ...     "sink", "toilet", ("sink",), ("toilet",), 0.5, 9.0, 4.0, 20.0, 1e-6, 1e-4, 30, 40, 10, 120
    ... )
    >>> finding.error_rate_with, round(finding.error_rate_without, 3)
    (0.75, 0.083)
    """

    textual_error: str
    visual_feature: str
    textual_error_candidates: tuple[str, ...]
    visual_feature_candidates: tuple[str, ...]
    cramers_v: float
    risk_ratio: float
    risk_ratio_low: float
    risk_ratio_high: float
    p_value: float
    p_value_corrected: float
    errors_with_feature: int
    rows_with_feature: int
    errors_without_feature: int
    rows_without_feature: int
    confirmed_share: float | None = None
    confirmed_share_low: float | None = None
    examples: tuple[Example, ...] = ()
    affected: tuple[Affected, ...] = ()
    state: State = "found"
    confirmed_by: str | None = None
    confirmed_rows: int | None = None
    witness_rows: int | None = None
    missed_with: float | None = None
    missed_without: float | None = None
    reason: str = ""
    other_feature: str | None = None
    p_beside_other: float | None = None

    @property
    def confirmation(self) -> str:
        """Who confirms it, in a few words; "" where nobody does."""
        if self.confirmed_by is None:
            return ""
        return f"{self.confirmed_by}, {self.confirmed_rows:,} of {self.witness_rows:,}"

    @property
    def affected_ids(self) -> tuple[str, ...]:
        """Ids of the affected rows, in their order."""
        return tuple(row.row_id for row in self.affected)


@dataclass(frozen=True)
class AuditResult(Told):
    """The answer of one audit.

    Attributes:
        verdict: "systematic" when at least one finding passed every gate, else "none".
        findings: the pairs that passed, strongest evidence first.
        suspects: what is suspected, and then the best-ranked candidates; each says why it is not found. Examples and
            affected rows are told of what is suspected alone.
        counts: rows, facts, claims; with a budget how many of the facts a model was asked about.
        skipped: rows left out, with reasons.
        provenance: versions, preset, models, options, seed.
        why_none: what the strongest suspect failed on, when the verdict is "none".
        asked: the pairs that were asked for (`audit(pairs=...)`), in their order, whether or not they were found.
        budget: where it was limited, about how many statements a chat model was asked, and how sure the first place is.
        fact_map: a sample of the facts on a plane, where one was drawn (`symbal_hf.draw_fact_map`).

    >>> result = AuditResult("none", (), (), {"rows": 40}, why_none="no pair is frequent enough")
    >>> result.prediction()
    {'textual_error': [], 'visual_feature': []}
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    suspects: tuple[Finding, ...]
    counts: dict[str, int]
    skipped: tuple[Skipped, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    why_none: str | None = None
    asked: tuple[Finding, ...] = ()
    fact_map: FactMap | None = None
    budget: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The content of findings.json, what one looks for first at its top."""
        told = super().to_dict()
        first = ("verdict", "findings", "suspects", "why_none", "asked")
        return {**{name: told[name] for name in first}, **told}

    @property
    def suspected(self) -> tuple[Finding, ...]:
        """Pairs that rest on one judge's word."""
        return tuple(finding for finding in self.suspects if finding.state == "suspected")

    def prediction(self, k: int = 5) -> dict[str, list[str]]:
        """Up to `k` ranked names for t and for v of the top-ranked pair, found or only suspected (paper section 5)."""
        top = (*self.findings, *self.suspects)[:1]
        return {
            "textual_error": [name for f in top for name in f.textual_error_candidates][:k],
            "visual_feature": [name for f in top for name in f.visual_feature_candidates][:k],
        }

    def write(self, folder: str | Path) -> dict[str, Path]:
        """Write findings.json and findings.csv (UTF-8) into `folder`, and return their paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {"json": folder / "findings.json", "csv": folder / "findings.csv"}
        self.write_json(paths["json"])
        with paths["csv"].open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, CSV_COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(f.to_dict() for f in self.findings)
        return paths


def load_result(folder: str | Path) -> AuditResult:
    """Read the findings.json that `AuditResult.write` wrote.

    Raises:
        FileNotFoundError: no findings.json in `folder`.
        BadData: the file is broken; its first broken field is named.

    >>> import tempfile
    >>> result = AuditResult("none", (), (), {"rows": 40})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = result.write(folder)
    ...     load_result(folder) == result
    True
    """
    path = Path(folder) / "findings.json"
    if not path.is_file():
        raise FileNotFoundError(f"no findings.json in {folder}; run `symbal audit SOURCE --out {folder}` first.")
    result = load_json(AuditResult, path)
    # Files of version 0.1 say nothing of states: their suspects had failed a gate, or are findings once more.
    suspects = (replace(one, state="candidate") if one.state == "found" else one for one in result.suspects)
    return replace(result, suspects=tuple(suspects))
