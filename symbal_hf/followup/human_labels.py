"""A person's labels of erroneous references: the table to fill in, the filled-in table, and what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.units import Units
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.data.columns import IDS
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import AuditData
from symbal_hf.followup.options import refuse_existing
from symbal_hf.matching.agreement import agreement
from symbal_hf.results.findings import Finding
from symbal_hf.results.validation import HumanAgreement, PersonSays
from symbal_hf.stats.contingency import fisher_greater, wilson

FIRST = 20  # rejected rows with v that a person is asked about before any other; so many already settle most findings
TRUE_MOSTLY, ALPHA = 0.5, 0.05
LABEL = "erroneous"
LABELS = (LABEL, "label")
ANSWERS = {"1": True, "yes": True, "y": True, "true": True, "0": False, "no": False, "n": False, "false": False}
TEMPLATE = ("id", "image", "textual_error", "visual_feature", "caption", "sentence", LABEL)


@dataclass(frozen=True)
class Labels:
    """What a person said."""

    # (textual error, row id) -> the caption refers to it erroneously
    of: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    blank: int = 0  # rows without a label
    strange: tuple[str, ...] = field(default=())  # ids and textual errors in the table that the audit does not have

    def to_dict(self, file: str) -> dict[str, Any]:
        """What validation.json says of them."""
        return {"file": file, "labels": len(self.of), "blank": self.blank, "strange": list(self.strange[:20])}


def read_labels(path: str | Path, *, errors: Sequence[str], ids: Sequence[str]) -> Labels:
    """The labels of a table with an id column (id, image_id), `erroneous` or `label` (1/0, yes/no; empty: no label).

    A column `textual_error` says which of the findings' `errors` is meant; without it, or where it is empty, it is the
    first. Rows that were not audited are counted as strange.

    Raises:
        BadData: a column is missing, a label is none of these, a row is labelled twice in two ways, or no label is of
            an audited row.
        FileNotFoundError: no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} of labels; `symbal validate DIR --human-template FILE` makes one.")
    rows = open_table(path, source_format="table")
    columns = rows.columns
    id_name = next((name for name in IDS if name in columns), None)
    label_name = next((name for name in LABELS if name in columns), None)
    if id_name is None or label_name is None:
        need = f"an id ({', '.join(IDS)})" if id_name is None else f"a label ({' or '.join(LABELS)})"
        raise BadData(f"{path.name} has the columns {', '.join(columns) or 'none'}; labels need {need}.")

    def text(row: Mapping[str, Any], column: str) -> str:
        value = row.get(column)
        return "" if value is None else str(value).strip()

    known = {error.lower(): error for error in errors}
    audited, of, strange, blank = set(ids), dict[tuple[str, str], bool](), list[str](), 0
    for number, row in enumerate(rows, 1):
        where, told = f"{path.name}, row {number}", text(row, label_name).lower()
        if not told:
            blank += 1
            continue
        answer = ANSWERS.get(told.removesuffix(".0"))
        if answer is None:
            raise BadData(f"{where}: {label_name} is {told!r}; give 1 or 0, yes or no, or leave it empty.")
        error, row_id = text(row, "textual_error") or errors[0], text(row, id_name)
        if error.lower() not in known or row_id not in audited:
            strange.append(row_id if error.lower() in known else error)
            continue
        if of.setdefault((known[error.lower()], row_id), answer) != answer:
            raise BadData(f"{where}: row {row_id} is labelled 1 and 0 for {error!r}; leave one of them.")
    if not of:
        first = f"; the first of {len(strange)} is {strange[0]!r}" if strange else f"; {blank} are empty"
        raise BadData(f"{path.name} has no label of an audited row and a finding{first}; give the audit's own ids.")
    return Labels(of, blank, tuple(dict.fromkeys(strange)))


def person_on(
    labels: Mapping[tuple[str, str], bool],
    finding: Finding,
    ids: Sequence[str],
    erroneous: NDArray[np.floating],
    rejected: NDArray[np.bool_],
    *,
    units: Units,
    seed: int = 0,
) -> HumanAgreement | None:
    """What a person says of one finding; None without labels of its t.

    Args:
        labels: by textual error and row id, as in `Labels`.
        ids: of N rows.
        erroneous: (N,) 1, 0 and NaN (undecided) of the second look, which is held against the labels.
        rejected: (N,) `rejected_with_feature`.
        units: which rows show one image; it counts once.
    """
    said = [labels.get((finding.textual_error, row_id)) for row_id in ids]
    labelled = np.array([one is not None for one in said])
    if not labelled.any():
        return None
    machine = [None if np.isnan(one) else bool(one) for one in erroneous[labelled].tolist()]
    found = agreement([one for one in said if one is not None], machine, seed=seed)
    rows = np.flatnonzero(units.first(labelled & rejected))
    asked, confirmed = len(rows), sum(bool(said[row]) for row in rows)
    interval = wilson(confirmed, asked) if asked else (None, None)
    return HumanAgreement(
        *(found.n, found.both_same + found.both_different, found.kappa, found.low, found.high),
        rejected=asked,
        confirmed=confirmed,
        precision=confirmed / asked if asked else None,
        precision_low=interval[0],
        precision_high=interval[1],
        says=verdict_of(finding, confirmed, asked),
    )


def verdict_of(finding: Finding, confirmed: int, asked: int) -> PersonSays:
    """What follows for a finding where a person confirms so many of the rejected rows with v.

    "confirmed" where the low end of the precision (Wilson, 95 %) is .5 or more: the judge's rejections are surely right
    more often than wrong, so that what is done about them mends more captions than it spoils (15 of 20 are enough, 14
    are not). And the error must still go with v (Fisher, p < .05) when of the rejected rows with v only that share
    counts and of the others all: else the judge may be blind beside v to a t that is now and then wrong anywhere.
    "contradicted" where the high end is below .5. Else "open": more labels may settle it.

    >>> finding = Finding("sink", "toilet", ("sink",), ("toilet",), 0.5, 9, 4, 20, 1e-6, 1e-4, 30, 40, 10, 120)
    >>> [verdict_of(finding, confirmed, 20) for confirmed in (20, 15, 14, 6, 5)]
    ['confirmed', 'confirmed', 'open', 'open', 'contradicted']
    """
    low, high = wilson(confirmed, asked)
    if high < TRUE_MOSTLY:
        return "contradicted"
    if low < TRUE_MOSTLY:
        return "open"
    n1, b, n0 = finding.rows_with_feature, finding.errors_without_feature, finding.rows_without_feature
    a = int(finding.errors_with_feature * confirmed / asked)
    return "confirmed" if fisher_greater(a, n1, a + b, n1 + n0) < ALPHA else "open"


def second_look_on(
    finding: Finding, ids: Sequence[str], erroneous: NDArray[np.floating], stated: NDArray[np.bool_], *, units: Units
) -> dict[str, Any]:
    """Of the rejected rows with v how many a second look confirms, and what follows, as fields of `Validated`.

    A second look misses t as well, and what the audit misses more often than other things. How often at most is told by
    the statements that the audit accepts (upper end, Wilson 95 %); so many are taken off (Rogan and Gladen 1978), and
    what is left is held to what people's answers are.

    Args:
        finding: the finding.
        ids: of N rows.
        erroneous: (N,) 1, 0 and NaN (undecided) of the second look.
        stated: (N,) the caption states t.
        units: which rows show one image; it counts once.
    """
    decided, wrong = ~np.isnan(erroneous), erroneous > 0
    looked_at = units.first(decided & rejected_with_feature(finding, ids))
    accepted = units.first(decided & stated & ~np.isin(np.array(ids, object), finding.affected_ids))
    confirmed, asked = int((wrong & looked_at).sum()), int(looked_at.sum())
    missed = min(wilson(int((wrong & accepted).sum()), int(accepted.sum()))[1], 1 - 1e-9)
    says: PersonSays = "open"
    if asked and wilson(confirmed, asked)[1] < TRUE_MOSTLY:
        says = "contradicted"
    elif asked and verdict_of(finding, int(max(0, confirmed - missed * asked) / (1 - missed)), asked) == "confirmed":
        says = "confirmed"
    return {"rejected_confirmed": confirmed, "rejected_rows": asked, "says": says}


def rejected_with_feature(finding: Finding, ids: Sequence[str]) -> NDArray[np.bool_]:
    """(N,) of these rows, whether the audit rejects the caption's statement of t and sees v in the image."""
    return np.isin(np.array(ids, object), [row.row_id for row in finding.affected if row.has_feature])


def rows_to_label(
    said: NDArray[np.bool_],
    feature: NDArray[np.floating],
    rejected: NDArray[np.bool_] | None = None,
    *,
    rows: int = 100,
    seed: int = 0,
) -> NDArray[np.int64]:
    """At most `rows` rows that a person should look at: `FIRST` of those `rejected` (N,), then the rest, at random.

    Of the rest as many show v (`feature` (N,) is 1, NaN where nobody knows, which is not drawn) as do not, as many name
    t (`said` (N,)) as do not; what one quarter lacks, the others give.
    """
    rng = np.random.default_rng(seed)
    first = rng.permutation(np.flatnonzero(np.zeros_like(said) if rejected is None else rejected))[: min(FIRST, rows)]
    left = ~np.isin(np.arange(len(said)), first)
    quarters = [left & (said == a) & (feature == b) for a in (1, 0) for b in (1, 0)]
    cells = [rng.permutation(np.flatnonzero(of)).tolist() for of in quarters]
    drawn: list[int] = []
    while len(first) + len(drawn) < rows and any(cells):
        for cell in cells:
            if cell and len(first) + len(drawn) < rows:
                drawn.append(cell.pop())
    return np.concatenate([first, rng.permutation(np.array(drawn, np.int64))])


def write_template(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV with the columns of `TEMPLATE`, to be labelled; an existing file is never overwritten.

    Raises `BadData`: the file exists.
    """
    from pandas import DataFrame

    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, DataFrame(lines, columns=list(TEMPLATE)).to_csv(index=False, lineterminator="\r\n"))


def template_rows(
    data: AuditData, error: str, feature: str, rows: NDArray[np.int64], sentences: Mapping[int, Sequence[str]]
) -> list[dict[str, str]]:
    """Lines of the template for these rows, whose `sentences` name t; nothing in them says what the machine thinks."""
    lines = []
    for row in rows.tolist():
        image: Any = None
        with suppress(ValueError):  # a person may still have the image, by its id
            image = data.images and data.images.file(row)
        sentence = " ".join(sentences.get(row, ()))
        values = (data.ids[row], str(image or ""), error, feature, data.captions[row], sentence, "")
        lines.append(dict(zip(TEMPLATE, values, strict=True)))
    return lines
