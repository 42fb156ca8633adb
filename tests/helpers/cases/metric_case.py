"""Three predictions with their truth, and the score that they have."""

from __future__ import annotations

from symbal_hf.bench.acc_at_k import acc_at_k

PREDICTIONS = [
    {"textual_error": ["sink", "tap"], "visual_feature": ["bathroom", "toilet"]},
    {"textual_error": ["Fernseher", "テレビ"], "visual_feature": ["a couch"]},
    {"textual_error": [], "visual_feature": ["dog"]},
]
TRUTH = [
    {"textual_error": "sink", "visual_feature": "toilet"},
    {"textual_error": "テレビ", "visual_feature": "couch"},
    {"textual_error": "cat", "visual_feature": "dog"},
]


def rows_of_settings(base: str = "scenes") -> list[dict]:
    """Rows as the settings table of a benchmark has them, the last one infeasible."""
    rows = []
    for n, truth in enumerate([*TRUTH, {"textual_error": "bed", "visual_feature": "cat"}]):
        feasible = n < len(TRUTH)
        rows.append(
            {
                "config": f"{base}-{truth['visual_feature']}-{n}-0.3", "domain": base, "base": base, **truth,
                "strength_target": 0.3 * (n + 1), "feasible": feasible, "strength": 0.2987 if feasible else None,
                "largest_strength": 0.7, "strategies": ["random", "popular"][: n % 2 + 1], "n_rows": 400,
                "n_feature": 40, "n_error_present": 7, "free_with": 39, "free_without": 354,
                "with_feature": 20 if feasible else None,
                "without_feature": 20 if feasible else None, "mean_feature_area": [0.03, None, 0.5, 0.1][n], "seed": 0,
            }
        )  # fmt: skip
    return rows


def exact(predictions=PREDICTIONS, references=TRUTH, **options):
    return acc_at_k(predictions, references, judge="exact", **options)
