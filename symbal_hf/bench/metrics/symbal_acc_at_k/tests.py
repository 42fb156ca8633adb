"""Cases for the metric: what goes in, and some of the keys that come out (judge "exact")."""

from __future__ import annotations

from typing import Any

test_cases: list[dict[str, Any]] = [
    {
        "predictions": [{"textual_error": ["sink"], "visual_feature": ["toilet"]}],
        "references": [{"textual_error": "sink", "visual_feature": "toilet"}],
        "result": {"acc@1": 1.0, "acc@5": 1.0, "n": 1, "judgements": 2},
    },
    {
        "predictions": [
            {"textual_error": ["sink"], "visual_feature": ["bathroom", "a toilet"]},
            {"textual_error": ["cup", "Television"], "visual_feature": []},
        ],
        "references": [
            {"textual_error": "sink", "visual_feature": "toilet", "domain": "natural"},
            {"textual_error": "television", "visual_feature": "couch", "domain": "natural"},
        ],
        "result": {
            "textual_error_acc@1": 0.5, "textual_error_acc@5": 1.0, "visual_feature_acc@1": 0.0,
            "visual_feature_acc@5": 0.5, "acc@1": 0.0, "acc@5": 0.5,
        },
    },
]  # fmt: skip
