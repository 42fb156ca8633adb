"""The page of the Space: predictions and references go in as JSON lines, Acc@K comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from symbal_hf.bench.acc_at_k import acc_at_k
from symbal_hf.core.errors import BadData

JUDGES = ("lite", "exact")  # a page for everybody asks no server and loads no large model
MOST = 2000  # settings; the page is for a look, the library for a benchmark
PREDICTIONS = """\
{"textual_error": ["sink", "tap"], "visual_feature": ["bathroom", "toilet"]}
{"textual_error": ["television"], "visual_feature": ["couch"]}"""
REFERENCES = """\
{"textual_error": "sink", "visual_feature": "toilet", "strength": 0.6}
{"textual_error": "tv", "visual_feature": "couch", "strength": 0.9}"""


def compute(predictions: str, references: str, k: list[int] | None = None, judge: str = "lite") -> dict[str, Any]:
    """Acc@K of two texts with one JSON object a line.

    Raises `BadData`: a line that is no JSON object, a judge that the page does not have, or what `acc_at_k` refuses.
    """
    if judge not in JUDGES:
        raise BadData(f"judge {judge!r}; this page has {' and '.join(JUDGES)}.")
    rows = _rows("predictions", predictions), _rows("references", references)
    return acc_at_k(*rows, judge=judge, k=(1, 5) if k is None else k)


def _rows(kind: str, text: str) -> list[Any]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise BadData(f"line {number} of the {kind} is no JSON ({error.msg}); give one object a line.") from error
    if len(rows) > MOST:
        raise BadData(f"{len(rows)} {kind}; this page takes {MOST}, `pip install symbal-hf` takes any number.")
    return rows


def interface() -> Any:
    """The page."""
    import gradio

    def score(predictions: str, references: str, k: list[int], judge: str) -> dict[str, Any]:
        try:
            return compute(predictions, references, k, judge)
        except BadData as error:
            raise gradio.Error(str(error)) from error

    card = Path(__file__).with_name("README.md").read_text("utf-8")
    return gradio.Interface(
        fn=score,
        inputs=[
            gradio.Textbox(PREDICTIONS, lines=6, label="Predictions, one JSON object a setting"),
            gradio.Textbox(REFERENCES, lines=6, label="References, in the same order"),
            gradio.CheckboxGroup([1, 2, 3, 4, 5, 10], value=[1, 5], label="K"),
            gradio.Dropdown(list(JUDGES), value=JUDGES[0], label="Judge"),
        ],
        outputs=gradio.JSON(label="Scores"),
        title="Symbal Acc@K",
        description="Does a method name what captions keep getting wrong, and what in the image sets it off?",
        article=card.split("---\n", 2)[-1],
    )


if __name__ == "__main__":
    interface().launch()
