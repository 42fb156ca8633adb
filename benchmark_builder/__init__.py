"""Benchmarks whose errors are known: bases with true captions, errors planted in them, and what is written of it.

>>> import benchmark_builder
>>> benchmark_builder.SymbalBench.__name__
'SymbalBench'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark_builder.bases.load import read_base
    from benchmark_builder.planting.plant import plant
    from benchmark_builder.planting.plant_file import plant_file
    from benchmark_builder.writing.build import build
    from benchmark_builder.writing.symbalbench import SymbalBench

# Importing the package costs nothing: each name brings its module along when it is first used.
_HOME = {
    "SymbalBench": "writing.symbalbench",
    "build": "writing.build",
    "plant": "planting.plant",
    "plant_file": "planting.plant_file",
    "read_base": "bases.load",
}
__all__ = ["SymbalBench", "build", "plant", "plant_file", "read_base"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'benchmark_builder' has no attribute {name!r}")
    return getattr(import_module(f"benchmark_builder.{_HOME[name]}"), name)
