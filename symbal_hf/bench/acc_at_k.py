"""Acc@K: the share of settings whose planted t and v are both among the first K names of their ranked lists."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.matching.load import load_judge
from symbal_hf.matching.protocol import NameJudge, State, Verdicts
from symbal_hf.models.chat.protocol import ChatModel

NAMES = ("textual_error", "visual_feature")
STRATA = ("domain", "strength", "sampling", "feature_size", "variant")
UNKNOWN = "unknown"  # the stratum of settings that do not say, where others do
# Mean share of the image that v takes: below the number. Drawn scenes have .02 to .11, COCO's objects .08 to .5.
SIZES = (("small", 0.05), ("medium", 0.2), ("large", math.inf))
# Where a row of the benchmark's settings table has what a stratum is made of; the first column that is there counts.
# Achieved strengths differ in each setting, targets are three: so the target comes first.
COLUMNS = {
    "strength": ("strength_target", "strength"),
    "sampling": ("sampling", "strategies"),
    "feature_size": ("feature_size", "mean_feature_area"),
}
IDS = ("config", "setting", "id")
VARIANTS = ("-reference_free", "-reference_based")  # a setting's rows are called after it and one of these

# A name is right, wrong, or nobody knows. Then "or" is the largest and "and" the smallest of such values.
RIGHT, OPEN, WRONG = 1.0, 0.5, 0.0
_VALUES = {"same": RIGHT, "different": WRONG, "unparsed": OPEN, "failed": OPEN}


def acc_at_k(
    predictions: Iterable[Mapping[str, Any]],
    references: Iterable[Mapping[str, Any]],
    *,
    judge: str | NameJudge | ChatModel | Verdicts,
    k: int | Iterable[int] = (1, 5),
    strata: Sequence[str] = STRATA,
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Score ranked names against planted truth (Varma et al., arXiv 2607.15216, section 5).

    A setting is right at K when the judge finds t among the first K names given for t, and v among the first K given
    for v. A name given twice, or a blank one, takes its place like any other and cannot help; an empty list is wrong.

    Args:
        predictions: one mapping a setting: "textual_error" and "visual_feature" are lists of names, best first.
        references: one mapping a setting, in the same order: the true "textual_error" and "visual_feature", and any of
            the strata; rows of the benchmark's settings table are taken as they are.
        judge: decides whether an (answer, truth) pair names the same thing, as `symbal_hf.matching.load.load_judge`
            takes it. Each different pair is put to it once, and no name behind the largest k.
        k: one or several whole numbers of at least 1.
        strata: keys of the references to tell results apart by. A row may have several labels for one, and then
            counts in each. Numbers are named: a strength to two decimals, a feature size (mean share of the image that
            v takes, in [0, 1]) as small < 0.05 <= medium < 0.2 <= large.
        resamples: of the bootstrap; 0 leaves the intervals out.
        seed: of the bootstrap, at least 0.

    Returns:
        JSON-able. For each k, with "textual_error_" or "visual_feature_" before it for t or v alone:

        - "acc@K": share in [0, 1] of the settings that are right.
        - "acc@K_interval": [low, high], the 95 % percentile interval of a bootstrap over settings.
        - "undecided@K": settings that are not right, but would be if what the judge could not tell were the same.
        - "acc@K_if_undecided_right": what "acc@K" would be with them.

        "n": settings. "by": {stratum: {label: the same keys for its settings}}. "judge": name, revision and
        prompt_hash. "judgements": different pairs that were judged, of which "unparsed" and "failed" had no answer.

    Raises:
        BadData: nothing to score, lists of different lengths, a row of another shape, a bad option, no such
            judge, or one that does not answer pair by pair.
    """
    ks = _ks(k)
    for option, number in (("resamples", resamples), ("seed", seed)):
        if not _whole(number) or number < 0:
            raise BadData(f"{option} is {number!r}; give a whole number of at least 0.")
    given, truths = checked(predictions, references, strata=strata)
    if not given:
        raise BadData("there is nothing to score; give at least one prediction with its reference.")
    # For each setting its names of t and of v, each list with its truth; a blank name is never asked about.
    lists = [
        [([name.strip() for name in row[part][: max(ks)]], truth[part].strip()) for part in NAMES]
        for row, truth in zip(given, truths, strict=True)
    ]
    pairs = list(dict.fromkeys((name, truth) for parts in lists for names, truth in parts for name in names if name))
    asked = load_judge(judge)
    states = _verdicts(asked, pairs)
    value = {pair: _VALUES[state] for pair, state in states.items()}

    def found(names: Sequence[str], truth: str) -> float:
        return max((value[name, truth] for name in names if name), default=WRONG)

    outcomes = np.array([[[found(names[:one], truth) for names, truth in parts] for one in ks] for parts in lists])
    outcomes = np.concatenate([outcomes.min(axis=2, keepdims=True), outcomes], axis=2)  # (settings, ks, both | t | v)
    groups = {key: _groups(key, [truth[key] for truth in truths]) for key in strata}
    return {
        **_shares(outcomes, ks, resamples, seed),
        "by": {
            key: {label: _shares(outcomes[rows], ks, resamples, seed) for label, rows in of.items()}
            for key, of in groups.items()
            if of
        },
        "judge": {"name": asked.name, "revision": asked.revision, "prompt_hash": asked.prompt_hash},
        "judgements": len(pairs),
        "unparsed": list(states.values()).count("unparsed"),
        "failed": list(states.values()).count("failed"),
    }


def _verdicts(judge: NameJudge, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], State]:
    states = judge.judge(pairs) if pairs else []
    if len(states) != len(pairs):
        raise BadData(
            f"judge {judge.name} gave {len(states)} verdicts on {len(pairs)} pairs; it must give one for each."
        )
    for state in states:
        if state not in _VALUES:
            raise BadData(f"judge {judge.name} said {state!r}; it must say one of {', '.join(_VALUES)}.")
    return dict(zip(pairs, states, strict=True))


def checked(
    predictions: Any, references: Any, *, strata: Sequence[str] = STRATA, first: int = 0
) -> tuple[list[dict[str, list[str]]], list[dict[str, Any]]]:
    """The rows with nothing in them but what is scored: names, truth, and for each stratum a list of labels.

    What comes out goes in again unchanged. An error, as for `acc_at_k`, names the row, counted from `first`.
    """
    given, truths = _rows("predictions", predictions), _rows("references", references)
    if len(given) != len(truths):
        raise BadData(
            f"{len(given)} predictions for {len(truths)} references; give one prediction for each, with empty lists "
            "where nothing was found."
        )
    out: tuple[list[Any], list[Any]] = ([], [])
    for place, (row, truth) in enumerate(zip(given, truths, strict=True), first):
        for kind, one in (("predictions", row), ("references", truth)):
            if not isinstance(one, Mapping):
                raise BadData(
                    f"{kind}[{place}] is {_shown(one)}, not a mapping; give "
                    f"{{'textual_error': .., 'visual_feature': ..}} for each setting."
                )
        _check_same_setting(row, truth, place)
        out[0].append({part: _names(row, part, place) for part in NAMES})
        out[1].append(_truth(truth, place, strata))
    return out


def _rows(kind: str, rows: Any) -> list[Any]:
    if hasattr(rows, "itertuples"):  # a table of pandas, which iterates over column names
        rows = rows.to_dict("records")
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise BadData(f"{kind} are {_shown(rows)}; give a list with one mapping for each setting.")
    return list(rows)


def _check_same_setting(row: Mapping[str, Any], truth: Mapping[str, Any], place: int) -> None:
    """Where both say which setting they are of, they must agree: nothing else tells a shuffled list from a bad one."""
    for key in IDS:
        one, other = row.get(key), truth.get(key)
        if one is None or other is None:
            continue
        names = (str(one), str(other))
        if names[0] != names[1] and all(b + end != a for end in VARIANTS for a, b in (names, names[::-1])):
            raise BadData(
                f"predictions[{place}] has {key} {one!r}, but references[{place}] has {other!r}; put both in the same "
                "order, or leave the key out of one of them."
            )


def _names(row: Mapping[str, Any], part: str, place: int) -> list[str]:
    where, names = f"predictions[{place}]", row.get(part)
    if names is None:
        raise BadData(f"{where} has no {part!r}; give a list of names, best first, [] where nothing was found.")
    if not isinstance(names, (list, tuple, np.ndarray)):
        raise BadData(f"{where}[{part!r}] is {_shown(names)}; give a list of names, such as ['sink'].")
    for rank, name in enumerate(names):
        if not isinstance(name, str):
            raise BadData(f"{where}[{part!r}][{rank}] is {_shown(name)}; every name must be text.")
    return [str(name) for name in names]


def _truth(row: Mapping[str, Any], place: int, strata: Sequence[str]) -> dict[str, Any]:
    where, out = f"references[{place}]", {}
    if str(row.get("feasible")).lower() == "false":
        raise BadData(f"{where} has feasible=False, so nothing was planted there; leave rows like it out.")
    for part in NAMES:
        name = row.get(part)
        if name is None or (isinstance(name, str) and not name.strip()):
            raise BadData(f"{where} has no {part!r}; give the name that was planted.")
        if not isinstance(name, str):
            raise BadData(f"{where}[{part!r}] is {_shown(name)}; the truth must be text.")
        out[part] = str(name)
    labels = {}
    for key in strata:
        column = next((name for name in COLUMNS.get(key, (key,)) if row.get(name) is not None), key)
        labels[key] = _labels(key, row.get(column), f"{where}[{column!r}]")
    return {**out, **labels}


def _labels(key: str, value: Any, where: str) -> list[str]:
    """What a setting is called in one stratum: nothing, one label or several."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return list(dict.fromkeys(label for one in value for label in _labels(key, one, where)))
    if value is None or (isinstance(value, str) and not value.strip()):
        return []
    if isinstance(value, str):
        return [value.strip()]
    if not isinstance(value, Real) or isinstance(value, bool):
        raise BadData(f"{where} is {_shown(value)}; give text, a number or a list of them.")
    number = float(value)
    if math.isnan(number):  # what a missing number becomes in pandas
        return []
    if key != "feature_size":
        return [f"{round(number, 2):g}"]
    if not 0 <= number <= 1:
        raise BadData(f"{where} is {number:g}; give the share of the image that v takes, in [0, 1].")
    return [next(name for name, end in SIZES if number < end)]


def _groups(key: str, labels: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Rows by label, in a fixed order; nothing where no row says."""
    if not any(labels):
        return {}
    found: dict[str, list[int]] = {}
    for row, names in enumerate(labels):
        for name in names or (UNKNOWN,):
            found.setdefault(name, []).append(row)
    rank = {name: place for place, (name, _) in enumerate(SIZES)} if key == "feature_size" else {}
    return {name: found[name] for name in sorted(found, key=lambda n: (n == UNKNOWN, rank.get(n, len(rank)), n))}


def _shares(outcomes: NDArray[np.float64], ks: Sequence[int], resamples: int, seed: int) -> dict[str, Any]:
    """Accuracies over settings, from outcomes of shape (settings, ks, both | t | v)."""
    n = len(outcomes)
    out: dict[str, Any] = {"n": n}
    for place, k in enumerate(ks):
        for part, kind in enumerate(("", *(f"{name}_" for name in NAMES))):
            column = outcomes[:, place, part]
            right, undecided = int((column == RIGHT).sum()), int((column == OPEN).sum())
            share: dict[str, Any] = {f"{kind}acc@{k}": right / n}
            if resamples:
                share[f"{kind}acc@{k}_interval"] = _interval(right, n, resamples, seed)
            share[f"{kind}undecided@{k}"] = undecided
            share[f"{kind}acc@{k}_if_undecided_right"] = (right + undecided) / n
            out.update(share)
    return out


def _interval(right: int, n: int, resamples: int, seed: int) -> list[float]:
    """The 95 % percentile interval of a share.

    n settings drawn with replacement, each right or not, hold a binomial number of right ones: drawing that number is
    the bootstrap itself, and does not depend on the order of the rows.
    """
    drawn = np.random.default_rng(seed).binomial(n, right / n, resamples) / n
    return [float(end) for end in np.percentile(drawn, (2.5, 97.5))]


def _ks(k: Any) -> tuple[int, ...]:
    given = tuple(k) if isinstance(k, Iterable) and not isinstance(k, str) else (k,)
    if not given:
        raise BadData("k is empty; give whole numbers of at least 1, such as k=(1, 5).")
    for one in given:
        if not _whole(one) or one < 1:
            raise BadData(f"k has {one!r}; give whole numbers of at least 1, such as k=(1, 5).")
    return tuple(sorted({int(one) for one in given}))


def _whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text[:60]}{'...' if len(text) > 60 else ''} ({type(value).__name__})"
