"""Drawings as templates of shapes, one file an object or a place: chance fills them in, and a pen draws what they give.

A line of a template is a shape of `Pen`, its colour and its numbers; what stands in braces is computed, and lines that
start with % are statements.
"""

from __future__ import annotations

import math
import random
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmark_builder.scenes.pen import COLOURS, Pen, blend, channels, shade, vary

FOLDER = Path(__file__).parent / "drawings"
PLAIN = {"BLACK": "#18181c", "WHITE": "#f8f8f6", "METAL": "#969aa0", "GLASS": "#b0d0e2", "RUBBER": "#26262a"}


def draw(name: str, pen: Pen, rng: random.Random, **known: Any) -> None:
    """Draw the template ``name`` ("objects/car"), which is told what is ``known``, and chance by ``rng`` alone."""

    def several(n: int, low: float, high: float) -> list[float]:
        return [rng.uniform(low, high) for _ in range(n)]

    chance = {method: getattr(rng, method) for method in ("choice", "randint", "random", "randrange", "uniform")}
    template = _templates().get_template(f"{name.replace(' ', '_')}.jinja")
    pen.draw(template.render(chance | known, several=several, vary=partial(vary, rng=rng)))


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        line_statement_prefix="%",
        variable_start_string="{",
        variable_end_string="}",
    )
    mathematics = {name: getattr(math, name) for name in ("cos", "hypot", "pi", "radians", "sin")}
    environment.globals.update(PLAIN | mathematics, abs=abs, max=max, min=min, round=round)
    environment.globals.update(
        COLOURS=COLOURS,
        shade=shade,
        blend=blend,
        brightness=lambda colour: sum(channels(colour)),
        xy=lambda *points: " ".join(f"{x} {y}" for x, y in points),
    )
    return environment
