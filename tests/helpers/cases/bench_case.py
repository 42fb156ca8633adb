"""A small benchmark of drawn scenes, and results of runs over it."""

from __future__ import annotations

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import pairs_for
from benchmark_builder.writing.build import build
from symbal_hf.bench.results import Results
from symbal_hf.bench.run import manifest
from symbal_hf.bench.settings import open_bench

OPTIONS = {"preset": "lite", "seed": 3, "chat": None, "prompts": None}


def make_bench(top):
    """A benchmark of drawn scenes: four pairs at two strengths, both variants."""
    base = scenes_base(top / "drawn", rows=150, size=64, seed=1)
    pairs = pairs_for(base, ["adversarial"], seed=1)[:4]
    build(base, top / "symbalbench", pairs=pairs, strengths=[0.3, 0.6], seed=1)
    return open_bench(top / "symbalbench")


def write_results(folder, bench, answer, *, options=OPTIONS, settings=None):
    """Results as `symbal bench run` leaves them: `answer` gives a setting's names for t and v, or None: no result."""
    settings = list(bench.settings if settings is None else settings)
    results = Results(folder)
    results.start(manifest(bench, settings, method="association", options=options))
    calls = {"asked": 3, "cached": 1, "failed": 1, "unparsed": 0}
    for number, setting in enumerate(settings):
        said = answer(number, setting)
        if said is None:
            results.add({"name": setting.name, "error": f"cannot read {folder}"})
            continue
        t, v = said
        results.add(
            {"name": setting.name, "textual_error": t, "visual_feature": v, "verdict": "systematic", "calls": calls}
        )
    return folder


def right(number, setting):
    return [setting.row["textual_error"]], [setting.row["visual_feature"]]


def half(number, setting):
    """Right in every other setting, second at every fourth."""
    t, v = right(number, setting)
    return [t, ["teapot"], ["teapot", *t], t][number % 4], v
