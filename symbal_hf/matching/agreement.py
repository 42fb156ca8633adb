"""How far two judges of names agree: the share of pairs, and Cohen's kappa, which leaves out what chance would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np

from symbal_hf.core.errors import BadData
from symbal_hf.matching.protocol import State

RELATIONS = ("equivalent", "modifier", "narrower", "broader", "sibling", "part", "unrelated")
SAME = RELATIONS[:2]  # of these the names are the same; of the others they are different
DOMAINS = ("natural", "medical")


@dataclass(frozen=True)
class LabelledPair:
    """Two names and what a person says of them.

    Attributes:
        answer: the predicted name.
        truth: the true one.
        same: whether both point at the same visual feature.
        relation: how they are related, one of `RELATIONS`; "" where a file does not say.
        domain: "natural" or "medical"; "" where a file does not say.
    """

    answer: str
    truth: str
    same: bool
    relation: str = ""
    domain: str = ""


def read_pairs(path: str | Path | None = None) -> list[LabelledPair]:
    """Labelled pairs of a table with columns answer, truth, same (1 or 0), and where it has them relation and domain.

    Args:
        path: a CSV, TSV, JSON, JSON lines or parquet file; the hand-written pairs of this package where none is given.

    Raises:
        BadData: a column is missing, a value is out of its range, a pair comes twice, or there is none.
        FileNotFoundError: no such file.
    """
    from symbal_hf.data.opening import open_table

    if path is None:
        with resources.as_file(resources.files("symbal_hf.matching").joinpath("judge_data/pairs.csv")) as shipped:
            return read_pairs(shipped)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} with pairs; give a table with columns answer, truth and same.")
    rows = open_table(path)
    columns, name = rows.columns, rows.name
    if lacking := [column for column in ("answer", "truth", "same") if column not in columns]:
        raise BadData(f"{name} has no column {lacking[0]!r}; pairs have answer, truth and same (1 or 0).")
    out: list[LabelledPair] = []
    seen: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows, 1):
        pair = _pair(row, f"{name}, row {number}")
        before = seen.setdefault((pair.answer, pair.truth), number)
        if before != number:
            raise BadData(f"{name}, row {number}: {pair.answer!r} and {pair.truth!r} are in row {before} already.")
        out.append(pair)
    if not out:
        raise BadData(f"{name} holds no pair; give one a row.")
    return out


def _pair(row: Mapping[str, object], where: str) -> LabelledPair:
    columns = ("answer", "truth", "same", "relation", "domain")
    value = {column: "" if row.get(column) is None else str(row[column]).strip() for column in columns}
    for column in ("answer", "truth"):
        if not value[column]:
            raise BadData(f"{where}: {column} is blank; give a name.")
    same = {"1": True, "0": False, "True": True, "False": False}.get(value["same"])
    if same is None:
        raise BadData(f"{where}: same is {value['same']!r}; give 1 or 0.")
    relation, domain = value["relation"], value["domain"]
    if relation not in (*RELATIONS, ""):
        raise BadData(f"{where}: relation is {relation!r}; give one of {', '.join(RELATIONS)}.")
    if domain not in (*DOMAINS, ""):
        raise BadData(f"{where}: domain is {domain!r}; give one of {', '.join(DOMAINS)}.")
    if relation and same != (relation in SAME):
        raise BadData(f"{where}: same is {value['same']} for {relation!r}; it is 1 for {' and '.join(SAME)} only.")
    return LabelledPair(value["answer"], value["truth"], same, relation, domain)


@dataclass(frozen=True)
class Agreement:
    """How far two judges agree on the pairs of which both say "same" or "different".

    Attributes:
        n: such pairs.
        left_out: pairs on which one of them is unparsed or failed.
        both_same, only_one_same, only_other_same, both_different: of the n, by what the one and the other say.
        share: of the n on which they agree, in [0, 1]; None where n is 0.
        kappa: Cohen's kappa in [-1, 1]; None where it is undefined.
        low, high: its 95 % percentile bootstrap interval over pairs; None where kappa is.
        undefined: why kappa is undefined; "" where it is not.
    """

    n: int
    left_out: int
    both_same: int
    only_one_same: int
    only_other_same: int
    both_different: int
    share: float | None
    kappa: float | None
    low: float | None
    high: float | None
    undefined: str = ""


def agreement(
    one: Sequence[State | bool | None], other: Sequence[State | bool | None], *, seed: int = 0, resamples: int = 2000
) -> Agreement:
    """How far two judges agree on the same pairs; the order of the pairs plays no part.

    Args:
        one: what one judge says of each pair: a state, or True, False and None for what it could not say.
        other: what the other says, in the same order.
        seed: of the resampling.
        resamples: of pairs with replacement, at least 1. Those in which kappa is undefined are left out.

    Raises:
        ValueError: lists of different lengths, another value, or no resample.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} and {len(other)} verdicts; both judges must be asked about the same pairs.")
    if resamples < 1:
        raise ValueError(f"resamples={resamples} gives no interval; give at least 1.")
    said = [(_said(a), _said(b)) for a, b in zip(one, other, strict=True)]
    both = [(a, b) for a, b in said if a is not None and b is not None]
    yes, no = True, False
    counts = both.count((yes, yes)), both.count((yes, no)), both.count((no, yes)), both.count((no, no))
    n, left_out = len(both), len(said) - len(both)
    if not n:
        return Agreement(0, left_out, *counts, None, None, None, None, "no pair is left on which both judges speak")
    share = (counts[0] + counts[3]) / n
    kappa = _kappa(counts)
    if kappa is None:
        word = "same" if counts[0] else "different"
        why = f"both judges say {word!r} of all {n} pairs, as chance would have it too"
        return Agreement(n, left_out, *counts, share, None, None, None, why)
    # Pairs are alike but for their cell, so that to draw pairs is to draw the four counts.
    drawn = np.random.default_rng(seed).multinomial(n, np.array(counts) / n, size=resamples)
    again = [k for row in drawn.tolist() if (k := _kappa(tuple(row))) is not None]
    low, high = np.quantile(again, (0.025, 0.975)) if again else (kappa, kappa)
    return Agreement(n, left_out, *counts, share, kappa, float(low), float(high))


def _said(verdict: State | bool | None) -> bool | None:
    if verdict in ("same", "different"):
        return verdict == "same"
    if verdict in ("unparsed", "failed") or verdict is None:
        return None
    if isinstance(verdict, (bool, np.bool_)):
        return bool(verdict)
    raise ValueError(f"verdict {verdict!r}; give same, different, unparsed or failed, or True, False and None.")


@lru_cache(maxsize=65_536)
def _kappa(counts: tuple[int, ...]) -> float | None:
    """Cohen's kappa of the four counts; None where both judges say one and the same thing of all pairs."""
    from sklearn.metrics import cohen_kappa_score

    if sum(counts) in (counts[0], counts[3]):
        return None
    return float(cohen_kappa_score((1, 1, 0, 0), (1, 0, 1, 0), sample_weight=counts))
