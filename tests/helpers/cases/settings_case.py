"""Settings tables as the planter writes them, with counts that its solver gives."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq

from benchmark_builder.planting.inject import Plan, largest_v, solve

SCHEMA = pa.schema(
    {
        **dict.fromkeys(("config", "domain", "base", "textual_error", "visual_feature"), pa.string()),
        "strength_target": pa.float64(), "feasible": pa.bool_(), "strength": pa.float64(),
        "largest_strength": pa.float64(), "strategies": pa.list_(pa.string()),
        **dict.fromkeys(("n_rows", "n_feature", "n_error_present", "free_with", "free_without"), pa.int32()),
        "with_feature": pa.int32(), "without_feature": pa.int32(), "mean_feature_area": pa.float64(),
        "seed": pa.int64(),
    }
)  # fmt: skip
THINGS = ("cat", "dog", "bench", "oven", "kite", "clock")


def settings_rows(domain="natural", base="coco", *, n=400, pairs=8, areas=True, tags=True, seed=0):
    """Candidate settings with the counts that the solver gives; some cannot be reached."""
    rng = random.Random(seed)
    prevalence = {name: rng.randint(6, n // 3) for name in THINGS}
    rows = []
    for t, v in rng.sample([(t, v) for t in THINGS for v in THINGS if t != v], pairs):
        n_feature, n_error = prevalence[v], prevalence[t]
        both = rng.randint(max(0, n_feature + n_error - n), min(n_feature, n_error))
        free = n_feature - both, n - n_feature - (n_error - both)
        own = rng.sample(("random", "popular", "adversarial"), rng.randint(1, 2)) if tags else []
        area = rng.uniform(0.05, 0.6)
        for strength in (0.3, 0.6, 0.9):
            plan = solve(n, n_feature, *free, strength)
            made = plan if isinstance(plan, Plan) else None
            rows.append(
                {
                    "config": f"{domain}-{v}-{t}-{strength}", "domain": domain, "base": base, "textual_error": t,
                    "visual_feature": v, "strength_target": strength, "feasible": made is not None,
                    "strength": made and made.achieved, "largest_strength": largest_v(n, n_feature, free[0]),
                    "strategies": own, "n_rows": n, "n_feature": n_feature, "n_error_present": n_error,
                    "free_with": free[0], "free_without": free[1], "with_feature": made and made.with_feature,
                    "without_feature": made and made.without_feature, "mean_feature_area": area if areas else None,
                    "seed": seed,
                }
            )  # fmt: skip
    return sorted(rows, key=lambda row: row["config"])


def write_settings(folder, rows):
    (folder / "settings").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "settings" / f"{rows[0]['domain']}.parquet")
    return rows
