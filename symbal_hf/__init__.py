"""Find the errors that a captioning model keeps making, and what in the image sets them off."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symbal_hf.names import register_names

if TYPE_CHECKING:
    from symbal_hf.benchmark import load_setting
    from symbal_hf.captioning import Captioned, caption
    from symbal_hf.comparing import compare
    from symbal_hf.comparison import Comparison
    from symbal_hf.engine import audit
    from symbal_hf.fact_map import FactMap, draw_fact_map
    from symbal_hf.findings import AuditResult, Example, Finding, Skipped, load_result
    from symbal_hf.metrics import metric
    from symbal_hf.pipelines import SymbalConfig, SymbalModel, SymbalPipeline, pipeline
    from symbal_hf.repaired import Repaired
    from symbal_hf.repairing import repair
    from symbal_hf.report import write_report
    from symbal_hf.validation_run import validate

# Importing the package costs nothing: each name brings its module along when it is first used.
_HOME = {
    "audit": "engine",
    "AuditResult": "findings",
    "Captioned": "captioning",
    "Comparison": "comparison",
    "Example": "findings",
    "FactMap": "fact_points",
    "Finding": "findings",
    "Repaired": "repaired",
    "Skipped": "findings",
    "SymbalConfig": "pipelines",
    "SymbalModel": "pipelines",
    "SymbalPipeline": "pipelines",
    "caption": "captioning",
    "compare": "comparing",
    "draw_fact_map": "fact_map",
    "load_result": "findings",
    "load_setting": "benchmark",
    "metric": "metrics",
    "pipeline": "pipelines",
    "repair": "repairing",
    "validate": "validation_run",
    "write_report": "report",
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
