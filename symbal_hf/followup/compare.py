"""Two audits become a comparison, which tells whether the new model or the new decoding got better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.units import Units
from symbal_hf.core.errors import BadData, ChatFailed, MissingModel
from symbal_hf.core.options import refuse_idle, take
from symbal_hf.core.store import Store
from symbal_hf.data.again import check_same_rows, reread
from symbal_hf.data.table import AuditData
from symbal_hf.followup.options import Comparing
from symbal_hf.followup.remeasure import Remeasured, measure_again
from symbal_hf.matching.judge import Remembering
from symbal_hf.matching.load import load_judge
from symbal_hf.matching.protocol import NameJudge, Verdicts
from symbal_hf.models.chat.protocol import ChatModel
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.comparison import Change, Compared, Comparison, Difference, Side
from symbal_hf.results.findings import AuditResult, Finding, load_result
from symbal_hf.stats.contingency import corrected, difference_interval, fisher_two_sided, mcnemar, paired_interval
from symbal_hf.stats.equivalence import equivalent, equivalent_paired

ALPHA = 0.05
IN_BOTH = 0.9  # share of the rows that must be on both sides: those that one lacks may have been dropped for the error
LOOKED_AT = 20  # images that are held against each other to see whether equal ids mean equal images
Source = AuditData | str | Path
Common = tuple[NDArray[np.int64], NDArray[np.int64], Units]  # where the same rows stand in A and in B; their images
Name = tuple[str, str]  # of t and of v
Matched = tuple[Name, tuple[Finding | None, Finding | None]]  # and what A and B report of them


@dataclass(frozen=True)
class _Entry:
    """One finding on one side: what its audit reports, what rows judged again show, and what is counted, or why not."""

    reported: Finding | None
    again: Remeasured | None
    counted: Finding | None
    problem: str | None


@dataclass(frozen=True)
class _Audit:
    """One side: `data` are its rows judged again, or `problem` says why there are none; an entry for each finding."""

    result: AuditResult
    data: AuditData | None
    units: Units  # of these rows
    problem: str | None
    entries: tuple[_Entry, ...]
    folder: str | None = None


def compare(
    a: AuditResult | str | Path,
    b: AuditResult | str | Path,
    *,
    match: str | NameJudge | ChatModel | Verdicts = "lite",
    measure: bool = True,
    source_a: Source | None = None,
    source_b: Source | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> Comparison:
    """Hold the findings of two audits against each other, such as of two models, or of one before and after a change.

    Findings are one where both t and v mean the same. The rows of both audits are read and judged again, as each audit
    judged them, so that what only one side reports is measured on the other, and, where both are of the same images,
    they are compared one by one: over the images that both judge to show v and to lack t. Several captions of an image
    count once, as wrong where one of them is.

    A finding is "less" or "more" where a two-sided exact test and the interval say so; "same" only where two one-sided
    tests show the rates to be less than the margin apart (`symbal_hf.stats.equivalence`); else "not shown". Each of the
    two questions is corrected by Holm for all findings compared. The same is said once of all findings together.

    Args:
        a: the audit from before, or the folder that it was written to.
        b: the audit from after.
        match: who says that two names mean one thing; see `symbal_hf.matching.load.load_judge`.
        measure: read and judge rows again. Without it the audits' own counts are compared, as if their rows were
            different ones, and what one of them has no count for is not measured.
        source_a: where the rows of A lie now, or the rows themselves; `source_b` those of B.
        store: where embeddings and answers are kept; by default one file under the user's cache folder.
        progress: wraps long loops.
        options: `margin` of `symbal_hf.followup.options.Comparing`, by default .05: the least rate that an audit calls
            an error (`min_rate`).

    Raises:
        FileNotFoundError: no findings.json in a folder.
        BadData: no such judge.
        TypeError: an option that is not there.
        ValueError: a margin outside its range.

    >>> import symbal_hf
    >>> toilet = {"caption": "A toilet. A sink.", "objects": ["toilet"]}
    >>> others = [{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A sink.", "objects": ["sink"]}]
    >>> before = symbal_hf.audit([toilet, *others] * 20, scorer="objects")
    >>> from symbal_hf.data.table import load_data
    >>> rows = load_data([{**toilet, "caption": "A toilet."}, *others] * 20)
    >>> after = symbal_hf.audit(rows, scorer="objects")
    >>> symbal_hf.compare(before, after, source_a=load_data([toilet, *others] * 20), source_b=rows).counts["less"]
    1
    """
    (comparing,) = take(options, Comparing, by="compare")
    if not measure:
        refuse_idle("without measure no rows are read", source_a=source_a, source_b=source_b)
    store = store or Store()
    judge = Remembering(load_judge(match, store=store, progress=progress))
    results = [one if isinstance(one, AuditResult) else load_result(one) for one in (a, b)]
    folders = [None if isinstance(one, AuditResult) else str(one) for one in (a, b)]
    matched = _matched(results[0].findings, results[1].findings, judge)
    sides: list[_Audit] = []
    for place, source in enumerate((source_a, source_b)):
        reported = [(name, found[place]) for name, found in matched]
        side = _worked_out(results[place], reported, source, judge, measure=measure, store=store, progress=progress)
        sides.append(replace(side, folder=folders[place]))
    common, why_unpaired = _common(*sides)
    pairs = list(zip(sides[0].entries, sides[1].entries, strict=True))
    differences = [_difference(one, other, common, comparing.margin) for one, other in pairs]
    tests = iter(_tests([d for d in differences if isinstance(d, Difference)]))
    findings = tuple(
        _compared(name, pair, d, next(tests) if isinstance(d, Difference) else (None, None))
        for (name, _), pair, d in zip(matched, pairs, differences, strict=True)
    )
    overall = _overall(sides, differences, common, comparing.margin)
    read = [side.data for side in sides if side.data is not None]
    return Comparison(
        a=_side(sides[0]),
        b=_side(sides[1]),
        findings=findings,
        overall=overall,
        overall_verdict="not measured" if overall is None else _verdict(overall, *_tests([overall])[0]),
        margin=comparing.margin,
        paired=common is not None,
        rows_in_common=len(set(read[0].ids) & set(read[1].ids)) if len(read) == 2 else None,
        why_unpaired=why_unpaired,
        match=judge.name,
        alpha=ALPHA,
        notes=_notes(sides),
        provenance={"symbal_hf": version("symbal-hf"), "judge": judge.revision},
    )


def _matched(a: Sequence[Finding], b: Sequence[Finding], judge: NameJudge) -> list[Matched]:
    """The names of each finding to compare, with what A and what B reports of it."""
    left, out = list(b), list[Matched]()
    for finding in a:
        name = (finding.textual_error, finding.visual_feature)
        if (other := _same_pair(left, name, judge)) is not None:
            left.remove(other)
        out.append((name, (finding, other)))
    return out + [((finding.textual_error, finding.visual_feature), (None, finding)) for finding in left]


def _same_pair(findings: Sequence[Finding], name: tuple[str, str], judge: NameJudge) -> Finding | None:
    """The first of `findings` whose t and v mean the same as these two names."""
    for finding in findings:
        pairs = [(finding.textual_error, name[0]), (finding.visual_feature, name[1])]
        if all(state == "same" for state in judge.judge(pairs)):
            return finding
    return None


def _worked_out(
    result: AuditResult,
    reported: Sequence[tuple[Name, Finding | None]],
    source: Source | None,
    judge: NameJudge,
    *,
    measure: bool,
    store: Store,
    progress: Progress,
) -> _Audit:
    """One side with what it reports under each name; its rows are judged again where that is possible."""
    wanted = [name if own is None else (own.textual_error, own.visual_feature) for name, own in reported]
    problem = "its rows were not judged again (--no-measure)"
    data, units, again = None, Units(), list[Remeasured | str]()
    if measure:
        try:
            if isinstance(source, AuditData):
                check_same_rows(result, source)
            rows = source if isinstance(source, AuditData) else reread(result, source=source)
            data, units, again = measure_again(result, rows, wanted, judge=judge, store=store, progress=progress)
        except (BadData, ChatFailed, MissingModel, OSError) as error:
            problem = str(error)
    entries = []
    for (name, own), found in zip(reported, again or [problem] * len(reported), strict=True):
        if isinstance(found, Remeasured):
            entries.append(_Entry(own, found, found.finding, None))
        else:
            counted = own or _same_pair((*result.asked, *result.suspects), name, judge)
            entries.append(_Entry(own, None, counted, found))
    return _Audit(result, data, units, problem if data is None else None, tuple(entries))


def _common(a: _Audit, b: _Audit) -> tuple[Common | None, str | None]:
    """Where the rows of the same images stand in A and in B, or why there are none to pair."""
    if a.data is None or b.data is None:
        name, reason = ("A", a.problem) if a.data is None else ("B", b.problem)
        return None, f"{name}: {reason}"
    row_of = {row_id: row for row, row_id in enumerate(b.data.ids)}
    rows = [(row, row_of[row_id]) for row, row_id in enumerate(a.data.ids) if row_id in row_of]
    more = max(len(a.data), len(b.data))
    if len(rows) < IN_BOTH * more:
        return None, f"{len(rows):,} ids are in both, of {more:,} in the larger; {IN_BOTH:.0%} of them are needed"
    if unlike := _unlike(a.data, b.data, rows):
        return None, f"the rows have ids in common and are of different images: {unlike}"
    here, there = np.array(rows, np.int64).T
    units = Units()
    for side, places in ((a, here), (b, there)):
        if side.units.image is not None:
            units = Units(np.unique(side.units.image[places], return_inverse=True)[1])
    return (here, there, units), None


def _unlike(a: AuditData, b: AuditData, rows: Sequence[tuple[int, int]]) -> str | None:
    """What differs in most rows of equal id, so that their ids say nothing, as those of rows counted from zero."""
    for what in ("objects", "references"):
        one, other = getattr(a, what), getattr(b, what)
        if one is not None and other is not None:
            both = [(one[i], other[j]) for i, j in rows if one[i] and other[j]]
            if both and 2 * sum(x == y for x, y in both) < len(both):
                return f"their {what} differ"
    if a.images is None or b.images is None:
        return None
    equal = []
    for i, j in rows[:: max(len(rows) // LOOKED_AT, 1)][:LOOKED_AT]:
        try:
            equal.append(a.images.encoded(i) == b.images.encoded(j))
        except (OSError, ValueError):
            continue
    return "their image files differ" if equal and 2 * sum(equal) < len(equal) else None


def _difference(a: _Entry, b: _Entry, common: Common | None, margin: float) -> Difference | str:
    """The difference of the error rates with v, or why there is none."""
    for name, entry in (("A", a), ("B", b)):
        if entry.counted is None:
            return f"in {name}: {entry.problem}"
    if common is not None and a.again is not None and b.again is not None:
        *places, units = common
        asked = [(entry.again.asked, rows) for entry, rows in zip((a, b), places, strict=True) if entry.again]
        wrong = [units.any(one.pair.wrong[rows]) for one, rows in asked]
        inside = [units.any(one.lacking[rows]) & units.any(one.pair.has_feature[rows]) for one, rows in asked]
        both = inside[0] & inside[1]
        return _paired(wrong[0][both], wrong[1][both], margin)
    assert a.counted is not None and b.counted is not None
    counts = [(one.errors_with_feature, one.rows_with_feature) for one in (a.counted, b.counted)]
    return _unpaired(*counts[0], *counts[1], margin)


def _paired(a: NDArray[np.bool_], b: NDArray[np.bool_], margin: float) -> Difference | str:
    """Of the same images: B minus A."""
    if not len(a):
        return "no image that both audits judge shows v and lacks t"
    both, only_a, only_b = int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum())
    neither, n = len(a) - both - only_a - only_b, len(a)
    low, high = paired_interval(both, only_b, only_a, neither)
    tests = mcnemar(only_a, only_b), equivalent_paired(only_a, only_b, n, margin)
    return Difference(both + only_a, n, both + only_b, n, both, (only_b - only_a) / n, low, high, *tests)


def _unpaired(errors_a: int, rows_a: int, errors_b: int, rows_b: int, margin: float) -> Difference | str:
    """Of different images: B minus A."""
    if not rows_a or not rows_b:
        return f"no image of {'A' if not rows_a else 'B'} shows v and lacks t"
    low, high = difference_interval(errors_b, rows_b, errors_a, rows_a)
    gap = errors_b / rows_b - errors_a / rows_a
    counts = (errors_a, rows_a, errors_b, rows_b)
    return Difference(*counts, None, gap, low, high, fisher_two_sided(*counts), equivalent(*counts, margin))


def _tests(of: Sequence[Difference]) -> list[tuple[float, float]]:
    """For each difference the p-values that the rates are one, and that they are the margin or more apart, by Holm."""
    differ = corrected([d.p_value for d in of], method="holm").tolist()
    return list(zip(differ, corrected([d.p_value_same for d in of], method="holm").tolist(), strict=True))


def _verdict(d: Difference, p: float, p_same: float) -> Change:
    """What the two corrected p-values and the interval show."""
    if p < ALPHA and not d.low <= 0 <= d.high:
        return "less" if d.difference < 0 else "more"
    return "same" if p_same < ALPHA else "not shown"


def _compared(
    name: Name, pair: Sequence[_Entry], d: Difference | str, tests: tuple[float, float] | tuple[None, None]
) -> Compared:
    a, b = pair
    p, p_same = tests
    return Compared(
        *name,
        a.reported is not None,
        b.reported is not None,
        "not measured" if isinstance(d, str) or p is None or p_same is None else _verdict(d, p, p_same),
        a.counted and replace(a.counted, examples=(), affected=()),
        b.counted and replace(b.counted, examples=(), affected=()),
        a.again.names if a.again else (),
        b.again.names if b.again else (),
        d if isinstance(d, Difference) else None,
        p,
        p_same,
        d if isinstance(d, str) else None,
    )


def _overall(
    sides: Sequence[_Audit], differences: Sequence[Difference | str], common: Common | None, margin: float
) -> Difference | None:
    """Of the share of images with a caption that states wrongly what any finding that has a difference is about."""
    entries = [
        [entry for entry, d in zip(side.entries, differences, strict=True) if isinstance(d, Difference)]
        for side in sides
    ]
    if not entries[0]:
        return None
    masks = []
    for of in entries:
        again = [one.again for one in of if one.again is not None]
        masks.append(np.any([one.asked.pair.wrong for one in again], axis=0) if len(again) == len(of) else None)
    if common is not None and masks[0] is not None and masks[1] is not None:
        a, b, units = common
        d = _paired(units.any(masks[0][a]), units.any(masks[1][b]), margin)
        return d if isinstance(d, Difference) else None
    counts = list(map(_images_affected, sides, entries, masks))
    if counts[0] is None or counts[1] is None:
        return None
    d = _unpaired(*counts[0], *counts[1], margin)
    return d if isinstance(d, Difference) else None


def _images_affected(side: _Audit, entries: Sequence[_Entry], mask: NDArray[np.bool_] | None) -> tuple[int, int] | None:
    """How many images are affected, of how many; None where the audit does not list the images of each finding."""
    if mask is not None:
        return int(side.units.any(mask).sum()), side.units.count(len(mask))
    ids, rows = set[str](), side.result.counts["rows"]
    if side.result.counts.get("images", rows) < rows:  # rows are listed, and not which of them show one image
        return None
    for finding in (entry.counted for entry in entries):
        if finding is None or len(finding.affected) != finding.errors_with_feature + finding.errors_without_feature:
            return None
        ids.update(finding.affected_ids)
    return len(ids), rows


def _side(side: _Audit) -> Side:
    result, provenance = side.result, side.result.provenance
    source, scorer = str(provenance.get("source", "")), str(provenance.get("scorer", ""))
    rows, skipped = result.counts["rows"], result.counts["rows_skipped"]
    return Side(side.folder, source, scorer, result.verdict, len(result.findings), rows, skipped, side.problem)


def _notes(sides: Sequence[_Audit]) -> tuple[str, ...]:
    """What differs between the audits besides the captions."""
    described: dict[str, Callable[[dict], object]] = {
        "scorer": lambda p: p.get("scorer"),
        "preset": lambda p: p.get("preset"),
        "vocabulary": lambda p: Path(p["vocabulary"]).name if p.get("vocabulary") else p.get("classes"),
        "models": lambda p: {k: v for k, v in p.get("models", {}).items() if k not in ("calls", "servers")},
    }
    out = []
    for what, of in described.items():
        in_a, in_b = (of(side.result.provenance) for side in sides)
        if in_a != in_b:
            both = "" if what == "models" else f" ({in_a} and {in_b})"
            out.append(
                f"the {what} of A and B differ{both}, so that a difference may be the judge's and not the captions'"
            )
    return tuple(out)
