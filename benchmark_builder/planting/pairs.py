"""Which (t, v) to plant: the paper's list, or drawn from how often objects go together (paper appendix B; POPE)."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal

from benchmark_builder.bases.base import Base
from symbal_hf.core.errors import BadData
from symbal_hf.data.opening import open_table
from symbal_hf.data.table import OBJECTS, object_names

Strategy = Literal["random", "popular", "adversarial"]
STRATEGIES: tuple[Strategy, ...] = ("random", "popular", "adversarial")
N_POPULAR = 10
MIN_IMAGES = 10  # that show v, for an error with v to be called systematic


@dataclass(frozen=True)
class Pair:
    """An error t to plant with a feature v, and the sampling strategies that lead to it."""

    textual_error: str
    visual_feature: str
    strategies: tuple[Strategy, ...] = ()


class Cooccurrence:
    """How often objects are there, and there together, over the rows of a base or of another set of images."""

    def __init__(self, objects: Iterable[frozenset[str]]) -> None:
        self.count: Counter[str] = Counter()
        self._together: dict[str, Counter[str]] = {}
        for present in objects:
            self.count.update(present)
            for one in present:
                self._together.setdefault(one, Counter()).update(present - {one})

    def popular(self) -> list[str]:
        """The ten most frequent objects, the most frequent first."""
        return [name for name, _ in _ranked(self.count)[:N_POPULAR]]

    def companion(self, name: str) -> str | None:
        """The object most often there together with `name`."""
        ranked = _ranked(self._together.get(name, Counter()))
        return ranked[0][0] if ranked else None


def _ranked(count: Counter[str]) -> list[tuple[str, int]]:
    return sorted(count.items(), key=lambda item: (-item[1], item[0]))


def paper_pairs(domain: Literal["natural", "medical"], statistics: Cooccurrence | None = None) -> list[Pair]:
    """The paper's Table 3: 131 natural or 25 medical pairs.

    The table does not say which strategy gave a pair. With `statistics` the natural ones are tagged by what they are
    there: adversarial where t is v's most frequent companion, popular where t is among the ten most frequent objects
    (for an adversarial one only if no other pair of v is popular), else random.
    """
    text = resources.files("benchmark_builder.planting").joinpath("tables/paper_pairs.csv").read_text("utf-8")
    pairs = [
        Pair(row["textual_error"], row["visual_feature"])
        for row in csv.DictReader(text.splitlines())
        if row["domain"] == domain
    ]
    return pairs if statistics is None or domain == "medical" else tagged(pairs, statistics)


def tagged(pairs: Sequence[Pair], statistics: Cooccurrence) -> list[Pair]:
    """The pairs with the strategies that could have drawn them."""
    popular = set(statistics.popular())
    closest = {pair for pair in pairs if pair.textual_error == statistics.companion(pair.visual_feature)}
    plain = {pair.visual_feature for pair in pairs if pair.textual_error in popular and pair not in closest}
    out = []
    for pair in pairs:
        tags: list[Strategy] = []
        if pair.textual_error in popular and not (pair in closest and pair.visual_feature in plain):
            tags.append("popular")
        if pair in closest:
            tags.append("adversarial")
        out.append(replace(pair, strategies=tuple(tags) or ("random",)))
    return out


def drawn_pairs(
    statistics: Cooccurrence,
    *,
    features: Sequence[str],
    errors: Sequence[str],
    strategies: Sequence[Strategy] = STRATEGIES,
    seed: int = 0,
) -> list[Pair]:
    """One pair per feature and strategy; a pair that several strategies draw is listed once with all their names.

    Args:
        statistics: the counts that "popular" and "adversarial" go by.
        features: what may be v.
        errors: what may be t.
        strategies: random: any error; popular: one of the ten most frequent objects; adversarial: v's most frequent
            companion.
        seed: fixes the draws; each depends on its v and strategy alone.
    """
    allowed = sorted(set(errors))
    popular = [name for name in statistics.popular() if name in set(allowed)]
    found: dict[tuple[str, str], list[Strategy]] = {}
    for v in sorted(set(features)):
        companion = statistics.companion(v)
        for strategy in strategies:
            choices = {"random": allowed, "popular": popular, "adversarial": [companion] if companion else []}[strategy]
            if choices := [t for t in choices if t != v and t in allowed]:
                t = random.Random(f"pair {seed} {strategy} {v}").choice(choices)
                found.setdefault((v, t), []).append(strategy)
    return [Pair(t, v, tuple(tags)) for (v, t), tags in sorted(found.items())]


def pairs_for(
    base: Base,
    sampling: Sequence[str] = (),
    *,
    statistics: Cooccurrence | None = None,
    min_images: int = MIN_IMAGES,
    seed: int = 0,
) -> list[Pair]:
    """The pairs to plant into `base`.

    Args:
        base: its objects are what v is drawn from, and t too where no mined sentences say what can be stated.
        sampling: "table" for the paper's list, and any of "random", "popular", "adversarial". Nothing given: the list
            for photos and radiographs of the paper's kind, else all three strategies.
        statistics: the counts that strategies go by; those of the base itself by default.
        min_images: features drawn are in at least this many images.
        seed: fixes the draws.
    """
    if unknown := [s for s in sampling if s not in (*STRATEGIES, "table")]:
        raise ValueError(f"sampling {unknown[0]!r}; choose among table, {', '.join(STRATEGIES)}.")
    known = statistics or Cooccurrence(base.objects)
    medical = base.statements is not None
    if not sampling:
        sampling = ("table",) if base.origin in ("coco", "mimic_cxr", "openi") else STRATEGIES
    count = Cooccurrence(base.objects).count
    # A disease is what reports state wrongly, a device what sets it off; objects of photos can be either.
    features = [v for v, n in count.items() if n >= min_images and not (base.statements and v in base.statements)]
    errors = sorted(base.statements or count)
    strategies = [s for s in STRATEGIES if s in sampling]
    drawn = drawn_pairs(known, features=features, errors=errors, strategies=strategies, seed=seed)
    listed = paper_pairs("medical" if medical else "natural", known) if "table" in sampling else []
    merged: dict[tuple[str, str], Pair] = {}
    for pair in [*listed, *drawn]:
        key = pair.visual_feature, pair.textual_error
        tags = {*pair.strategies, *(merged[key].strategies if key in merged else ())}
        merged[key] = Pair(key[1], key[0], tuple(s for s in STRATEGIES if s in tags))
    return [merged[key] for key in sorted(merged)]


def read_statistics(path: Path) -> Cooccurrence:
    """Object counts from a table with an objects column, or from COCO's instances JSON (such as of train2017).

    Raises:
        BadData: a file that is neither.
    """
    if path.name.startswith("instances_") and path.suffix == ".json":
        from benchmark_builder.bases.coco import read_json

        data = read_json(path, ("annotations", "categories"))
        names = {category["id"]: category["name"] for category in data["categories"]}
        present: dict[int, set[str]] = {}
        for one in data["annotations"]:
            present.setdefault(one["image_id"], set()).add(names[one["category_id"]])
        return Cooccurrence(frozenset(objects) for objects in present.values())
    rows = open_table(path)
    columns = rows.columns
    name = next((column for column in OBJECTS if column in columns), None)
    if name is None:
        raise BadData(f"{path} has no objects column ({', '.join(OBJECTS)}) to count.")
    return Cooccurrence(object_names(row[name]) or frozenset() for row in rows)


def read_pairs(path: Path) -> list[Pair]:
    """Pairs from a CSV with the columns textual_error and visual_feature (or t and v).

    Raises:
        BadData: a file without these columns, or a line without one of the two names.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} with pairs.")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        names = rows.fieldnames or ()
        wanted = next((n for n in (("textual_error", "visual_feature"), ("t", "v")) if set(n) <= set(names)), None)
        if wanted is None:
            raise BadData(
                f"{path} has the columns {', '.join(names) or 'none'}; expected textual_error,visual_feature."
            )
        pairs = []
        for number, row in enumerate(rows, 2):
            t, v = ((row[name] or "").strip() for name in wanted)
            if not t or not v or t == v:
                raise BadData(f"{path}, line {number}: t={t!r}, v={v!r}; a pair needs two different names.")
            pairs.append(Pair(t, v))
    return list(dict.fromkeys(pairs))
