"""Find the errors that a captioning model keeps making, and what in the image sets them off."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symbal_hf.huggingface.names import register_names

if TYPE_CHECKING:
    from symbal_hf.auditing.engine import audit
    from symbal_hf.bench.metrics import metric
    from symbal_hf.bench.settings import load_setting
    from symbal_hf.captioning.caption import Captioned, caption
    from symbal_hf.followup.compare import compare
    from symbal_hf.followup.repair import repair
    from symbal_hf.followup.validate import validate
    from symbal_hf.huggingface.config import SymbalConfig
    from symbal_hf.huggingface.model import SymbalModel
    from symbal_hf.huggingface.pipelines import SymbalPipeline, pipeline
    from symbal_hf.report.fact_map import FactMap, draw_fact_map
    from symbal_hf.report.page import write_report
    from symbal_hf.results.comparison import Comparison
    from symbal_hf.results.findings import AuditResult, Example, Finding, Skipped, load_result
    from symbal_hf.results.repaired import Repaired

# Importing the package costs nothing: each name brings its module along when it is first used.
_HOME = {
    "audit": "auditing.engine",
    "AuditResult": "results.findings",
    "Captioned": "captioning.caption",
    "Comparison": "results.comparison",
    "Example": "results.findings",
    "FactMap": "results.fact_map",
    "Finding": "results.findings",
    "Repaired": "results.repaired",
    "Skipped": "results.findings",
    "SymbalConfig": "huggingface.config",
    "SymbalModel": "huggingface.model",
    "SymbalPipeline": "huggingface.pipelines",
    "caption": "captioning.caption",
    "compare": "followup.compare",
    "draw_fact_map": "report.fact_map",
    "load_result": "results.findings",
    "load_setting": "bench.settings",
    "metric": "bench.metrics",
    "pipeline": "huggingface.pipelines",
    "repair": "followup.repair",
    "validate": "followup.validate",
    "write_report": "report.page",
}
__all__ = [
    "AuditResult", "Captioned", "Comparison", "Example", "FactMap", "Finding", "Repaired", "Skipped", "SymbalConfig",
    "SymbalModel", "SymbalPipeline", "audit", "caption", "compare", "draw_fact_map", "load_result", "load_setting",
    "metric", "pipeline", "repair", "validate", "write_report",
]  # fmt: skip

register_names()


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'symbal_hf' has no attribute {name!r}")
    return getattr(import_module(f"symbal_hf.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
