"""Pairs (t, v) that are measured over all rows because somebody asks for them, whether or not they are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.association import Pair, error_share, judge_rows, make_pair
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.verdict import finding_of
from symbal_hf.core.errors import BadData
from symbal_hf.results.findings import Finding


@dataclass(frozen=True)
class Asked:
    """One pair that was asked for.

    Attributes:
        pair: its statistics, the p-value corrected for all pairs that were asked for.
        lacking: (N,) the image lacks t; these rows are counted.
    """

    pair: Pair
    lacking: NDArray[np.bool_]


def check_pairs(pairs: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    """Pairs as they were given, each two names.

    Raises:
        ValueError: something that is no pair of names, or a name that is blank.
    """
    if isinstance(pairs, str):
        raise ValueError(
            f"pairs={pairs!r}; give a list of (textual error, visual feature), such as ('sink', 'toilet')."
        )
    out = []
    for pair in pairs:
        names = () if isinstance(pair, str) else tuple(pair)
        if len(names) != 2 or not all(isinstance(name, str) and any(c.isalnum() for c in name) for name in names):
            raise ValueError(
                f"pair {pair!r}; give two names, the textual error and the visual feature, such as ('sink', 'toilet')."
            )
        out.append((names[0].strip(), names[1].strip()))
    return tuple(out)


def read_pairs(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs as the command line has them, "sink|toilet".

    Raises:
        ValueError: a text without exactly one bar between two names.
    """
    pairs = [tuple(text.split("|")) for text in texts]
    for text, pair in zip(texts, pairs, strict=True):
        if len(pair) != 2 or not all(name.strip() for name in pair):
            raise ValueError(f"pair {text!r}; give the textual error and the visual feature as 'sink|toilet'.")
    return check_pairs(pairs)


def measured(evidence: Evidence) -> list[Asked]:
    """The pairs whose names the evidence was asked for, in their order, over all images that lack t."""
    concepts, beliefs, units = evidence.concepts, evidence.beliefs, evidence.units
    places = list(zip(concepts.asked[::2], concepts.asked[1::2], strict=True))
    out = []
    for t, v in places:
        error = error_share(t, beliefs.log_ratio[units.first(concepts.stated(t)), t])
        rows = judge_rows(concepts, beliefs, error, wholes=evidence.wholes.get(t, ()))
        tried = len(set(places))
        pair = make_pair(concepts, beliefs, error, rows, [v], scores=np.zeros(1), tried=tried, units=units)
        out.append(Asked(pair, rows.lacking))
    return out


def asked_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """`measured` as findings under the names of the concepts; they need to pass no gate.

    Raises:
        BadData: both names of a pair mean one concept.
    """
    out = []
    for asked in measured(evidence):
        t, v = asked.pair.error, asked.pair.feature
        if t == v:
            raise BadData(f"both names of a pair mean {evidence.concepts.names[t]!r}; give two different things.")
        out.append(finding_of(evidence, asked.pair, [t], [v]))
    return tuple(out)
