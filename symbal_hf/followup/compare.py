"""Two audits become a comparison, which tells whether the new model or the new decoding got better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle
from symbal_hf.core.store import Store
from symbal_hf.data.again import check_same_rows, reread
from symbal_hf.data.table import AuditData
from symbal_hf.followup.remeasure import Remeasured, measure_again
from symbal_hf.matching.judge import Remembering
from symbal_hf.matching.load import load_judge
from symbal_hf.matching.protocol import NameJudge, Verdicts
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.comparison import Change, Compared, Comparison, Difference, Side
from symbal_hf.results.findings import AuditResult, Finding, load_result
from symbal_hf.stats.contingency import corrected, difference_interval, fisher_two_sided, mcnemar, paired_interval

if TYPE_CHECKING:
    from symbal_hf.models.chat.protocol import ChatModel

ALPHA = 0.05
IN_BOTH = 0.9  # share of the rows that must be on both sides: those that one lacks may have been dropped for the error
LOOKED_AT = 20  # images that are held against each other to see whether equal ids mean equal images
Source = AuditData | str | Path


@dataclass
class _Audit:
    """One side while it is worked on: `statistics` and `again` have an entry for each finding compared."""

    result: AuditResult
    folder: str | None
    data: AuditData | None = None
    problem: str | None = None
    reported: list[Finding | None] = field(default_factory=list)
    again: list[Remeasured | str] = field(default_factory=list)
    statistics: list[Finding | None] = field(default_factory=list)


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
) -> Comparison:
    """Hold the findings of two audits against each other, such as of two models, or of one before and after a change.

    Findings are one where both t and v mean the same. The rows of both audits are read and judged again, as each audit
    judged them, so that what only one side reports is measured on the other, and, where both are of the same images,
    rows are compared one by one: over the images that both judge to show v and to lack t.

    Args:
        a: the audit from before, or the folder that it was written to.
        b: the audit from after.
        match: who says that two names mean one thing; see `symbal_hf.matching.load.load_judge`.
        measure: read and judge rows again. Without it the audits' own counts are compared, as if their rows were
            different ones, and what one of them has no count for is not measured.
        source_a: where the rows of A lie now, or the rows themselves; `source_b` those of B.
        store: where embeddings and answers are kept; by default one file under the user's cache folder.
        progress: wraps long loops.

    Raises:
        FileNotFoundError: no findings.json in a folder.
        BadData: no such judge.

    >>> import symbal_hf
    >>> toilet = {"caption": "A toilet. A sink.", "objects": ["toilet"]}
    >>> others = [{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A sink.", "objects": ["sink"]}]
    >>> before = symbal_hf.audit([toilet, *others] * 20, scorer="objects")
    >>> from symbal_hf.data.table import load_data
    >>> rows = load_data([{**toilet, "caption": "A toilet."}, *others] * 20)
    >>> after = symbal_hf.audit(rows, scorer="objects")
    >>> symbal_hf.compare(before, after, source_a=load_data([toilet, *others] * 20), source_b=rows).counts["gone"]
    1
    """
    if not measure:
        refuse_idle("without measure no rows are read", source_a=source_a, source_b=source_b)
    store = store or Store()
    judge = Remembering(load_judge(match, store=store, progress=progress))
    sides = [_opened(audited) for audited in (a, b)]
    names = _matched(sides, judge)
    for side, source in zip(sides, (source_a, source_b), strict=True):
        side.problem = "its rows were not judged again (--no-measure)"
        if measure:
            wanted = [
                (own.textual_error, own.visual_feature) if own is not None else name
                for own, name in zip(side.reported, names, strict=True)
            ]
            side.problem = _measure(side, source, wanted, judge, store, progress)
        for index, name in enumerate(names):
            again = side.again[index] if side.again else None
            counted = side.reported[index] or _same_pair((*side.result.asked, *side.result.suspects), name, judge)
            side.statistics.append(again.finding if isinstance(again, Remeasured) else counted)
    common, why_unpaired = _common(*sides)
    differences = [_difference(sides, index, common) for index in range(len(names))]
    measured = [d for d in differences if isinstance(d, Difference)]
    p = iter(corrected([d.p_value for d in measured], method="holm").tolist())
    findings = tuple(
        _compared(sides, index, name, d, next(p) if isinstance(d, Difference) else None)
        for index, (name, d) in enumerate(zip(names, differences, strict=True))
    )
    return Comparison(
        a=_side(sides[0]),
        b=_side(sides[1]),
        findings=findings,
        overall=_overall(sides, differences, common),
        paired=common is not None,
        rows_in_common=_shared(*sides),
        why_unpaired=why_unpaired,
        match=judge.name,
        alpha=ALPHA,
        notes=_notes(sides),
        provenance={"symbal_hf": version("symbal-hf"), "judge": judge.revision},
    )


def _opened(audited: AuditResult | str | Path) -> _Audit:
    return _Audit(audited, None) if isinstance(audited, AuditResult) else _Audit(load_result(audited), str(audited))


def _matched(sides: Sequence[_Audit], judge: NameJudge) -> list[tuple[str, str]]:
    """The names of each finding to compare; fills in who reports it."""
    a, b = (list(side.result.findings) for side in sides)
    left = list(b)
    names = []
    for finding in a:
        other = _same_pair(left, (finding.textual_error, finding.visual_feature), judge)
        if other is not None:
            left.remove(other)
        names.append((finding.textual_error, finding.visual_feature))
        sides[0].reported.append(finding)
        sides[1].reported.append(other)
    for finding in left:
        names.append((finding.textual_error, finding.visual_feature))
        sides[0].reported.append(None)
        sides[1].reported.append(finding)
    return names


def _same_pair(findings: Sequence[Finding], name: tuple[str, str], judge: NameJudge) -> Finding | None:
    """The first of `findings` whose t and v mean the same as these two names."""
    for finding in findings:
        pairs = [(finding.textual_error, name[0]), (finding.visual_feature, name[1])]
        if all(state == "same" for state in judge.judge(pairs)):
            return finding
    return None


def _measure(
    side: _Audit,
    source: Source | None,
    wanted: Sequence[tuple[str, str]],
    judge: NameJudge,
    store: Store,
    progress: Progress,
) -> str | None:
    """Judge the side's rows again; why not, where that is not possible."""
    from symbal_hf.core.errors import ChatFailed, MissingModel

    try:
        data = _rows(side.result, source)
        side.data, side.again = measure_again(side.result, data, wanted, judge=judge, store=store, progress=progress)
    except (BadData, ChatFailed, MissingModel, OSError) as error:
        side.data, side.again = None, []
        return str(error)
    return None


def _rows(result: AuditResult, source: Source | None) -> AuditData:
    if not isinstance(source, AuditData):
        return reread(result, source=source)
    check_same_rows(result, source)
    return source


def _shared(a: _Audit, b: _Audit) -> int | None:
    return None if a.data is None or b.data is None else len(set(a.data.ids) & set(b.data.ids))


def _common(a: _Audit, b: _Audit) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]] | None, str | None]:
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
    return (here, there), None


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


def _difference(
    sides: Sequence[_Audit], index: int, common: tuple[NDArray[np.int64], NDArray[np.int64]] | None
) -> Difference | str:
    """The difference of the error rates with v, or why there is none."""
    a, b = sides
    one, other = a.statistics[index], b.statistics[index]
    for name, side, found in (("A", a, one), ("B", b, other)):
        if found is None:
            return f"in {name}: {side.again[index] if side.again else side.problem}"
    assert one is not None and other is not None
    again = [side.again[index] for side in sides if side.again]
    asked = [one.asked for one in again if isinstance(one, Remeasured)]
    if common is not None and len(asked) == 2:
        wrong = [one.pair.wrong[rows] for one, rows in zip(asked, common, strict=True)]
        counted = [(one.lacking & one.pair.has_feature)[rows] for one, rows in zip(asked, common, strict=True)]
        inside = counted[0] & counted[1]
        return _paired(wrong[0][inside], wrong[1][inside])
    return _unpaired(one.errors_with_feature, one.rows_with_feature, other.errors_with_feature, other.rows_with_feature)


def _paired(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> Difference | str:
    """Of the same rows: B minus A."""
    if not len(a):
        return "no image that both audits judge shows v and lacks t"
    both, only_a, only_b = int((a & b).sum()), int((a & ~b).sum()), int((b & ~a).sum())
    neither, n = len(a) - both - only_a - only_b, len(a)
    low, high = paired_interval(both, only_b, only_a, neither)
    return Difference(
        both + only_a, n, both + only_b, n, both, (only_b - only_a) / n, low, high, mcnemar(only_a, only_b)
    )


def _unpaired(errors_a: int, rows_a: int, errors_b: int, rows_b: int) -> Difference | str:
    """Of different rows: B minus A."""
    if not rows_a or not rows_b:
        return f"no image of {'A' if not rows_a else 'B'} shows v and lacks t"
    low, high = difference_interval(errors_b, rows_b, errors_a, rows_a)
    gap = errors_b / rows_b - errors_a / rows_a
    return Difference(
        errors_a, rows_a, errors_b, rows_b, None, gap, low, high, fisher_two_sided(errors_a, rows_a, errors_b, rows_b)
    )


def _compared(
    sides: Sequence[_Audit], index: int, name: tuple[str, str], d: Difference | str, p: float | None
) -> Compared:
    verdict: Change = "not measured"
    if isinstance(d, Difference):
        assert p is not None
        verdict = _verdict(d, p, *(_makes_error(side, index) for side in sides))
    difference, reason = (d, None) if isinstance(d, Difference) else (None, d)
    a, b = sides
    return Compared(
        *name,
        reported_a=a.reported[index] is not None,
        reported_b=b.reported[index] is not None,
        verdict=verdict,
        a=_bare(a.statistics[index]),
        b=_bare(b.statistics[index]),
        names_a=_names(a, index),
        names_b=_names(b, index),
        difference=difference,
        p_value_corrected=p,
        reason=reason,
    )


def _names(side: _Audit, index: int) -> tuple[str, ...]:
    again = side.again[index] if side.again else None
    return again.names if isinstance(again, Remeasured) else ()


def _bare(finding: Finding | None) -> Finding | None:
    return None if finding is None else replace(finding, examples=(), affected=())


def _makes_error(side: _Audit, index: int) -> bool:
    """Whether the captions of this side make the error: it is reported, or goes with v, and often enough to be."""
    finding, options = side.statistics[index], side.result.provenance
    if side.reported[index] is not None or finding is None:
        return side.reported[index] is not None
    return finding.p_value < options.get("alpha", ALPHA) and finding.error_rate_with >= options.get("min_rate", 0.05)


def _verdict(d: Difference, p: float, made_a: bool, made_b: bool) -> Change:
    if p >= ALPHA or d.low <= 0 <= d.high:
        return "same"
    if d.difference < 0:
        return "less" if made_b else "gone"
    return "more" if made_a else "new"


def _overall(
    sides: Sequence[_Audit],
    differences: Sequence[Difference | str],
    common: tuple[NDArray[np.int64], NDArray[np.int64]] | None,
) -> Difference | None:
    """Of the share of rows in which any finding that has a difference is stated wrongly."""
    indices = [index for index, d in enumerate(differences) if isinstance(d, Difference)]
    if not indices:
        return None
    masks = [_any_wrong(side, indices) for side in sides]
    if common is not None and masks[0] is not None and masks[1] is not None:
        d = _paired(masks[0][common[0]], masks[1][common[1]])
        return d if isinstance(d, Difference) else None
    counts = [_rows_affected(side, indices, mask) for side, mask in zip(sides, masks, strict=True)]
    if counts[0] is None or counts[1] is None:
        return None
    d = _unpaired(*counts[0], *counts[1])
    return d if isinstance(d, Difference) else None


def _any_wrong(side: _Audit, indices: Sequence[int]) -> NDArray[np.bool_] | None:
    """(N,) Rows in which any of these findings is stated wrongly, where all were judged again."""
    again = [side.again[index] for index in indices] if side.again else []
    wrong = [one.asked.pair.wrong for one in again if isinstance(one, Remeasured)]
    return np.any(wrong, axis=0) if wrong and len(wrong) == len(again) else None


def _rows_affected(side: _Audit, indices: Sequence[int], mask: NDArray[np.bool_] | None) -> tuple[int, int] | None:
    """How many rows are affected, of how many; None where the audit lists no rows for one of the findings."""
    if mask is not None:
        return int(mask.sum()), len(mask)
    ids: set[str] = set()
    for index in indices:
        finding = side.statistics[index]
        if finding is None or len(finding.affected) != finding.errors_with_feature + finding.errors_without_feature:
            return None
        ids.update(finding.affected_ids)
    return len(ids), side.result.counts["rows"]


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
