"""Acc@K of SymbalBench for the `evaluate` library; the mathematics is in `symbal_hf.bench.acc_at_k`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# evaluate reads these lines itself: one module on each, and no import of one of its own classes.
import datasets
import evaluate

from symbal_hf.bench.acc_at_k import STRATA, acc_at_k, checked

_DESCRIPTION = """\
The share of SymbalBench's settings in which a method names both what captions keep getting wrong (the textual error t)
and what in the image goes with it (the visual feature v) among its first K guesses, as a judge of names sees it.
"""

_INPUTS = """
Args:
    predictions: one mapping a setting, {"textual_error": [names], "visual_feature": [names]}, best first.
    references: one mapping a setting, {"textual_error": name, "visual_feature": name} and, where results are to be told
        apart by them, "domain", "strength", "sampling", "feature_size", "variant" (each text, a number or a list).
        Rows of the benchmark's settings table are taken as they are.
    k: one or several whole numbers of at least 1; (1, 5) by default.
    judge: "lite" (offline, the default), "exact", "hf:MODEL", "openai:URL#MODEL", or a function from a list of
        (answer, truth) pairs to a list of True, False or None.
    resamples, seed: of the bootstrap behind the 95 % intervals; 1000 and 0.
    store: file that keeps what a language model answered.
    prompts, concurrency, device, dtype, device_map: of a language model as judge; see
    `symbal_hf.matching.load.load_judge`.
Returns:
    acc@K (both), textual_error_acc@K, visual_feature_acc@K in [0, 1], each with acc@K_interval, undecided@K and
    acc@K_if_undecided_right; n, by (the same for each stratum), judge, judgements, unparsed, failed.
Examples:
    >>> import symbal_hf
    >>> metric = symbal_hf.metric()
    >>> said = [{"textual_error": ["sink", "tap"], "visual_feature": ["bathroom", "toilet"]}]
    >>> truth = [{"textual_error": "sink", "visual_feature": "toilet"}]
    >>> scores = metric.compute(predictions=said, references=truth, judge="exact")
    >>> scores["acc@1"], scores["acc@5"]
    (0.0, 1.0)
"""

_CITATION = """\
@article{varma2026symbal,
  title = {Symbal: Detecting Systematic Misalignments in Model-Generated Captions},
  author = {Varma, Maya and Delbrouck, Jean-Benoit and Ostmeier, Sophie and Chaudhari, Akshay and Langlotz, Curtis},
  journal = {arXiv preprint arXiv:2607.15216},
  year = {2026}
}
"""


class SymbalAccAtK(evaluate.Metric):
    """Acc@K over ranked names for t and for v; `compute` has the details."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        names = datasets.List(text)
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(
                predictions={"textual_error": names, "visual_feature": names},
                references={"textual_error": text, "visual_feature": text, **dict.fromkeys(STRATA, names)},
            ),
            reference_urls=["https://arxiv.org/abs/2607.15216"],
        )

    # evaluate knows fixed columns only: a key too few or too many is a KeyError in the first row, and in later ones is
    # made up or dropped; what is not text there becomes text. So rows are checked, and given their columns, before.
    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add the predictions and references of several settings."""
        predictions, references = checked(predictions, references, first=len(self))
        super().add_batch(predictions=predictions, references=references, **kwargs)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add the prediction and the reference of one setting."""
        # evaluate.combine calls them by the names that they have in `compute`.
        given, truth = kwargs.pop("predictions", prediction), kwargs.pop("references", reference)
        self.add_batch(predictions=[given], references=[truth], **kwargs)

    def _compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        k: Any = (1, 5),
        judge: Any = "lite",
        resamples: int = 1000,
        seed: int = 0,
        store: Any = None,
        **options: Any,
    ) -> dict[str, Any]:
        from symbal_hf.core.store import Store
        from symbal_hf.matching.load import load_judge

        asked = load_judge(judge, store=Store(store) if isinstance(store, (str, Path)) else store, **options)
        return acc_at_k(predictions, references, judge=asked, k=k, resamples=resamples, seed=seed)
