"""The settings of a benchmark: each candidate (t, v, strength) with its counts, and the tables written for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmark_builder.bases.base import Base
from benchmark_builder.planting.inject import Infeasible, Plan, largest_v
from benchmark_builder.planting.pairs import MIN_IMAGES, Pair
from benchmark_builder.planting.plant import Ground, Planted

if TYPE_CHECKING:
    import pyarrow as pa

Variant = Literal["reference_free", "reference_based"]
VARIANTS: tuple[Variant, ...] = ("reference_free", "reference_based")
STRENGTHS = (0.3, 0.6, 0.9)


@dataclass(frozen=True)
class Setting:
    """One candidate dataset of the benchmark.

    Attributes:
        config: name without the variant, such as "natural-cat-person-0.6" (base, v, t, strength).
        strategies: how the pair was drawn.
        strength: target Cramér's V.
        plan: the counts, or why there are none.
        largest: the largest Cramér's V that this pair can reach.
        n_feature: rows with v.
        n_error_present: rows whose image may truly show t.
        free_with: rows with v where t can be planted.
        free_without: the same without v.
        mean_feature_area: mean share of the image that v takes where it is, or None where unknown.
    """

    config: str
    textual_error: str
    visual_feature: str
    strategies: tuple[str, ...]
    strength: float
    plan: Plan | Infeasible
    largest: float
    n_feature: int
    n_error_present: int
    free_with: int
    free_without: int
    mean_feature_area: float | None

    @property
    def feasible(self) -> bool:
        """Whether the strength can be reached."""
        return isinstance(self.plan, Plan)


def config_name(base: str, visual_feature: str, textual_error: str, strength: float) -> str:
    """The name of a setting: base, v, t and strength, joined by hyphens."""
    v, t = (re.sub(r"[^\w]+", "_", name).strip("_") for name in (visual_feature, textual_error))
    return f"{base}-{v}-{t}-{strength:g}"


def variants(base: Base) -> tuple[Variant, ...]:
    """What is written of each setting: with references only where the base has some."""
    return VARIANTS if base.references is not None else VARIANTS[:1]


def candidates(
    ground: Ground, pairs: Iterable[Pair], strengths: Sequence[float] = STRENGTHS, *, min_images: int = MIN_IMAGES
) -> Iterator[Setting]:
    """Every pair at every strength, sorted by name, feasible or not.

    A v in fewer than `min_images` images makes no setting: an error there is a handful of accidents, whatever its V.
    """
    base = ground.base
    named: dict[str, tuple[Pair, float]] = {}
    for case in product(pairs, strengths):
        name = config_name(base.name, case[0].visual_feature, case[0].textual_error, case[1])
        if named.setdefault(name, case) != case:
            raise ValueError(f"two settings would be called {name}; rename one of the objects.")
    for name, (pair, strength) in sorted(named.items()):
        has, free = ground.has(pair.visual_feature), ground.free(pair.textual_error)
        plan = ground.plan(pair.textual_error, pair.visual_feature, strength)
        if base.statements is not None and not base.statements.get(pair.textual_error):
            plan = Infeasible(strength, 0.0)  # nothing in the reports states it
        n, n_feature, free_with = len(base), int(has.sum()), int((free & has).sum())
        areas = [area[pair.visual_feature] for area in base.areas or () if pair.visual_feature in area]
        if n_feature < min_images and isinstance(plan, Plan):
            plan = Infeasible(strength, largest_v(n, n_feature, free_with))
        yield Setting(
            config=name,
            textual_error=pair.textual_error,
            visual_feature=pair.visual_feature,
            strategies=pair.strategies,
            strength=strength,
            plan=plan,
            largest=plan.largest if isinstance(plan, Infeasible) else largest_v(n, n_feature, free_with),
            n_feature=n_feature,
            n_error_present=sum(pair.textual_error in base.present(row) for row in range(n)),
            free_with=free_with,
            free_without=int((free & ~has).sum()),
            mean_feature_area=float(np.mean(areas)) if areas else None,
        )


def features(kind: str, *, references: bool = False) -> Any:
    """The `datasets.Features` of one kind of table: rows, objects, images, injections or settings."""
    from datasets import Features, Image, List, Value

    text, whole, number, truth = Value("string"), Value("int32"), Value("float64"), Value("bool")
    names = List(text)
    return {
        "rows": Features(image_id=text, caption=text, **({"references": names} if references else {})),
        "objects": Features(image_id=text, objects=names, areas=List(Value("float32")), also_present=names),
        "images": Features(image_id=text, image=Image()),
        "injections": Features(config=text, image_id=text, sentence=text, with_feature=truth),
        "settings": Features(
            config=text,
            domain=text,
            base=text,
            textual_error=text,
            visual_feature=text,
            strength_target=number,
            feasible=truth,
            strength=number,
            largest_strength=number,
            strategies=names,
            n_rows=whole,
            n_feature=whole,
            n_error_present=whole,
            free_with=whole,
            free_without=whole,
            with_feature=whole,
            without_feature=whole,
            mean_feature_area=number,
            seed=Value("int64"),
        ),
    }[kind]


def settings_table(base: Base, settings: Sequence[Setting], *, seed: int) -> pa.Table:
    """One row per candidate setting; counts and achieved strength are null where it is infeasible."""
    import pyarrow as pa

    rows = []
    for s in settings:
        plan = s.plan if isinstance(s.plan, Plan) else None
        rows.append(
            {
                **vars(s),  # what the schema does not have is passed over
                "domain": base.name,
                "base": base.origin,
                "strength_target": s.strength,
                "feasible": s.feasible,
                "strength": plan and plan.achieved,
                "largest_strength": s.largest,
                "n_rows": len(base),
                "with_feature": plan and plan.with_feature,
                "without_feature": plan and plan.without_feature,
                "seed": seed,
            }
        )
    return pa.Table.from_pylist(rows, schema=features("settings").arrow_schema)


class RowTables:
    """The tables of rows of one base, which differ between settings in the caption column alone."""

    def __init__(self, base: Base) -> None:
        import pyarrow as pa

        self._ids = pa.array(base.ids, pa.string())
        self._references = (
            None if base.references is None else pa.array(map(list, base.references), pa.list_(pa.string()))
        )

    def table(self, captions: Sequence[str], variant: Variant) -> pa.Table:
        """N rows: image_id, caption and, in the reference-based variant, references."""
        import pyarrow as pa

        referenced = variant == "reference_based"
        columns = [self._ids, pa.array(captions, pa.string())]
        if referenced:
            if self._references is None:
                raise ValueError("the base has no references; take the reference_free variant.")
            columns.append(self._references)
        return pa.Table.from_arrays(columns, schema=features("rows", references=referenced).arrow_schema)


def injections_table(base: Base, setting: Setting, planted: Planted, has: NDArray[np.bool_]) -> pa.Table:
    """The rows that got a sentence, in order: config, image_id, sentence, whether v is there."""
    import pyarrow as pa

    return pa.table(
        {
            "config": [setting.config] * len(planted.rows),
            "image_id": [base.ids[row] for row in planted.rows],
            "sentence": list(planted.sentences),
            "with_feature": [bool(has[row]) for row in planted.rows],
        },
        schema=features("injections").arrow_schema,
    )


def objects_table(base: Base) -> pa.Table:
    """What each image shows; areas go with objects, null where unknown."""
    import pyarrow as pa

    names = [sorted(present) for present in base.objects]
    areas: Sequence[Any] = [None] * len(base)
    if base.areas is not None:
        areas = [list(map(area.get, own)) for area, own in zip(base.areas, names, strict=True)]
    return pa.table(
        {
            "image_id": base.ids,
            "objects": names,
            "areas": areas,
            "also_present": [sorted(besides) for besides in base.also_present or [()] * len(base)],
        },
        schema=features("objects").arrow_schema,
    )
