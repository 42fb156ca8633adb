"""The metrics of the benchmark, each a folder that is ready to be a Space on the Hub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symbal_hf.bench.metrics.symbal_acc_at_k.symbal_acc_at_k import SymbalAccAtK


def metric(**options: Any) -> SymbalAccAtK:
    """The `evaluate` metric of the benchmark, without asking the Hub for it.

    Args:
        options: as of `evaluate.load`, such as cache_dir, keep_in_memory, num_process, process_id, experiment_id.

    Examples:
        >>> import symbal_hf
        >>> said = [{"textual_error": ["sofa", "lamp"], "visual_feature": ["cat", "a dog"]}]
        >>> truth = [{"textual_error": "couch", "visual_feature": "dog"}]
        >>> scores = symbal_hf.metric().compute(predictions=said, references=truth, judge="lite", k=(1, 2))
        >>> scores["acc@1"], scores["acc@2"], scores["textual_error_acc@1"]
        (0.0, 1.0, 1.0)
    """
    from symbal_hf.bench.metrics.symbal_acc_at_k.symbal_acc_at_k import SymbalAccAtK

    return SymbalAccAtK(**options)
