"""What a comparison of two audits says, and the files that it is written to."""

from __future__ import annotations

import csv
import io
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.results.findings import Finding, Verdict
from symbal_hf.results.json import Told

Change = Literal["less", "same", "more", "not shown", "not measured"]
CHANGES: tuple[Change, ...] = get_args(Change)
SAME = (
    '"Not shown" is not "same": neither a difference is shown nor that there is none. "Same" says that two one-sided '
    "tests hold the rates to be less than {margin:.3g} points apart. p-values are corrected by Holm for all findings "
    "compared; more images can settle what is not shown."
)
FILES = ("comparison.json", "comparison.csv", "comparison.md")


@dataclass(frozen=True)
class Difference(Told):
    """An error rate in B minus the same rate in A, of images: several captions of one count once.

    Attributes:
        errors_a: of the `rows_a` images that count in A; `errors_b` of `rows_b` likewise. Paired, they are the same.
        errors_both: images with the error in A and in B; None where they are not paired.
        difference: in [-1, 1], negative where B errs less, with its 95 % interval (Newcombe 1998).
        p_value: two-sided and exact: McNemar's over the same images, else Fisher's.
        p_value_same: of two one-sided score tests, against the rates being the margin or more apart
            (`symbal_hf.stats.equivalence`).
    """

    errors_a: int
    rows_a: int
    errors_b: int
    rows_b: int
    errors_both: int | None
    difference: float
    low: float
    high: float
    p_value: float
    p_value_same: float = 1.0
    computed = ("rate_a", "rate_b", "paired")

    @property
    def paired(self) -> bool:
        """Whether the same images were looked at in A and in B."""
        return self.errors_both is not None

    @property
    def rate_a(self) -> float:
        """Share in [0, 1]."""
        return self.errors_a / max(self.rows_a, 1)

    @property
    def rate_b(self) -> float:
        """Share in [0, 1]."""
        return self.errors_b / max(self.rows_b, 1)


@dataclass(frozen=True)
class Compared(Told):
    """One finding of A, of B or of both.

    Attributes:
        textual_error: t, as A calls it where A reports it, else as B does.
        visual_feature: v likewise.
        reported_a: A reports it; `reported_b` B does.
        verdict: "less" or "more", "same" (shown to be less than the margin apart), "not shown" (neither), or "not
            measured".
        a: its statistics in A, or None; `b` in B. They have no examples and affected rows.
        names_a: what else counts as t in A's captions; `names_b` in B's.
        difference: of the error rates with v among images without t.
        p_value_corrected: of the difference, by Holm for all findings compared; `p_value_same_corrected` of the
            equivalence likewise.
        reason: why it was not measured.
    """

    textual_error: str
    visual_feature: str
    reported_a: bool
    reported_b: bool
    verdict: Change
    a: Finding | None
    b: Finding | None
    names_a: tuple[str, ...] = ()
    names_b: tuple[str, ...] = ()
    difference: Difference | None = None
    p_value_corrected: float | None = None
    p_value_same_corrected: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Side:
    """One of the two audits.

    Attributes:
        folder: where it lies, or None where it was in memory.
        source: what was audited.
        scorer: what captions were checked against.
        verdict: of the audit; `findings` how many it reports.
        rows: that were audited; `rows_skipped` were left out.
        problem: why its rows could not be read and judged again; None where they were.
    """

    folder: str | None
    source: str
    scorer: str
    verdict: Verdict
    findings: int
    rows: int
    rows_skipped: int
    problem: str | None = None


@dataclass(frozen=True)
class Comparison(Told):
    """Whether the captions of B err less than those of A.

    Attributes:
        a: the audit from before; `b` the one from after.
        findings: of both, those of A first.
        overall: share of images with a caption that makes any of the errors that were measured on both sides, with v
            or without; None where it cannot be told.
        paired: the rows of both are the same images, and are compared one by one.
        rows_in_common: ids that are in both; None where rows could not be read again.
        why_unpaired: why rows are not paired, where they are not.
        match: who says that two names mean the same.
        alpha: level of the verdicts.
        notes: what makes the two audits differ besides their captions.
        overall_verdict: of `overall`, as of a finding; one test, so nothing is corrected.
        margin: what is less than this apart is the same, in (0, 1).

    >>> a = Side(None, "a.csv", "objects", "none", findings=0, rows=40, rows_skipped=0)
    >>> Comparison(a, a, (), None, True, 40, None, match="lite", alpha=0.05).sentence
    'Neither audit reports anything systematic, so there is nothing to compare.'
    """

    a: Side
    b: Side
    findings: tuple[Compared, ...]
    overall: Difference | None
    paired: bool
    rows_in_common: int | None
    why_unpaired: str | None
    match: str
    alpha: float
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    overall_verdict: Change = "not measured"
    margin: float | None = None
    computed = ("sentence", "counts")

    @property
    def counts(self) -> dict[str, int]:
        """How many findings have each verdict."""
        count = Counter(found.verdict for found in self.findings)
        return {change: count[change] for change in CHANGES}

    @property
    def about_same(self) -> str:
        """What "same" and "not shown" say."""
        return SAME.format(margin=100 * (self.margin or 0))

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        if not self.findings:
            return "Neither audit reports anything systematic, so there is nothing to compare."
        counts = ", ".join(f"{n} {change}" for change, n in self.counts.items() if n)
        total = len(self.findings)
        out = f"Of {total} {'finding' if total == 1 else 'findings'} of A or B: {counts} in B"
        if self.overall is not None:
            d = self.overall
            of = f"{d.rows_a:,} images of both" if d.paired else f"{d.rows_a:,} and {d.rows_b:,} images"
            out += f"; images with any of these errors in a caption: {d.rate_a:.1%} in A, {d.rate_b:.1%} in B, "
            out += f"{self.overall_verdict} (difference {_points(d)} points, p {d.p_value:.1e}, {of})"
        return f"{out}."

    def write(self, folder: str | Path) -> dict[str, Path]:
        """Write comparison.json, comparison.csv and comparison.md into a new or empty folder, and return their paths.

        Raises:
            BadData: something is in the folder.
        """
        folder = check_new(folder)
        folder.mkdir(parents=True, exist_ok=True)
        text = io.StringIO(newline="")
        rows = [_row(found) for found in self.findings]
        writer = csv.DictWriter(text, list(_row(None)))
        writer.writeheader()
        writer.writerows(rows)
        self.write_json(folder / FILES[0])
        write_whole(folder / FILES[1], text.getvalue())
        write_whole(folder / FILES[2], self.markdown())
        return {name.rpartition(".")[2]: folder / name for name in FILES}

    def markdown(self) -> str:
        """The page: the sentence, the table, and what to know about it."""
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        files = FileSystemLoader(Path(__file__).parent)
        environment = Environment(loader=files, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        environment.filters.update(cell=_cell, cells=cells)  # no autoescape: this is Markdown
        page = environment.get_template("comparison.md.jinja")
        return page.render(vars(self), sentence=self.sentence, same=self.about_same).rstrip() + "\n"


def check_new(folder: str | Path) -> Path:
    """The folder, which does not exist or is empty.

    Raises:
        BadData: something is in it, or it is a file.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadData(f"{folder} is not empty, and a comparison overwrites nothing; name a new folder with --out.")
    return folder


def cells(finding: Compared) -> tuple[str, ...]:
    """The row of a finding in a table for people: t, v, verdict, rates in A, rates in B, difference, corrected p."""
    rates = (
        "" if side is None else f"{side.error_rate_with:.1%} / {side.error_rate_without:.1%}"
        for side in (finding.a, finding.b)
    )
    points = "" if finding.difference is None else _points(finding.difference)
    p = "" if finding.p_value_corrected is None else f"{finding.p_value_corrected:.1e}"
    return finding.textual_error, finding.visual_feature, finding.verdict, *rates, points, p


def _points(d: Difference) -> str:
    return f"{100 * d.difference:+.1f} [{100 * d.low:+.1f} to {100 * d.high:+.1f}]"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _row(finding: Compared | None) -> dict[str, Any]:
    """The row of a finding in comparison.csv; of none for its columns."""

    def of(value: object, names: str, form: str = "{}") -> dict[str, Any]:
        return {form.format(name): getattr(value, name, None) for name in names.split()}

    d = finding and finding.difference
    rates = "error_rate_with error_rate_without errors_with_feature rows_with_feature errors_without_feature"
    return {
        **of(finding, "textual_error visual_feature verdict reported_a reported_b"),
        **of(finding and finding.a, f"{rates} rows_without_feature", "{}_a"),
        **of(finding and finding.b, f"{rates} rows_without_feature", "{}_b"),
        **of(d, "difference low high p_value p_value_same paired"),
        **of(d, "errors_a rows_a errors_b rows_b", "compared_{}"),
        **of(finding, "p_value_corrected p_value_same_corrected reason"),
    }
