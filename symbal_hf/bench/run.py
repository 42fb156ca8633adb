"""Run a method over the settings of a benchmark; every result is kept as it comes, and none is made twice."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from symbal_hf.bench.methods import Method
from symbal_hf.bench.results import Results
from symbal_hf.bench.settings import Bench, Setting, choose
from symbal_hf.core.errors import BadData
from symbal_hf.language.facts import split_facts
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import without_passwords

LIBRARIES = ("symbal-hf", "torch", "transformers", "datasets", "sentence-transformers", "faiss-cpu", "numpy")


@dataclass
class Told:
    """What became of a run."""

    done: int = 0  # settings that were finished in it
    before: int = 0  # settings that were finished already
    # settings that gave no result, with the reason; the next run tries them again
    failed: dict[str, str] = field(default_factory=dict)
    pairs: int = 0  # (image, sentence) pairs of the settings that were finished
    new_pairs: int = 0  # those of them that no earlier setting of this process had


def place_of_process() -> tuple[int, int]:
    """Rank and number of the processes of this run, as torchrun, Fabric or SLURM tell them; (0, 1) elsewhere."""
    for rank, world in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if rank in os.environ and world in os.environ:
            return int(os.environ[rank]), int(os.environ[world])
    return 0, 1


def manifest(bench: Bench, settings: Iterable[Setting], *, method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the numbers of a run: equal manifests may share a folder."""
    return {
        "benchmark": {"revision": bench.revision, "settings": sorted(s.name for s in settings)},
        "method": method,
        "options": without_passwords(options),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
    }


def run_bench(
    bench: Bench,
    method: Method,
    results: Results,
    *,
    settings: Iterable[Setting] | None = None,
    progress: Progress = quiet,
) -> Told:
    """Run `method` over this process's share of `settings`, adding a line to `results` after each.

    Processes take every world-th setting, so that they need not talk to each other; one that was killed leaves its
    share to the next run of the same rank. A setting that fails is counted, and the others go on.

    Raises:
        ChatFailed: a model answers nothing any more; what was finished is kept.
    """
    chosen = list(bench.settings if settings is None else settings)
    mine = chosen[results.rank :: results.world]
    done = results.done()
    todo = [setting for setting in mine if setting.name not in done]
    told = Told(before=len(mine) - len(todo))
    seen: set[tuple[str, str, str]] = set()
    for setting in progress(todo, "settings", len(todo)) if todo else ():
        start = time.monotonic()
        try:
            data = bench.data(setting)
            said = method(data, setting.group)
        except BadData as error:
            told.failed[setting.name] = str(error)
            results.add({"name": setting.name, "error": str(error)})
            continue
        facts = split_facts(data.captions)
        pairs = {(setting.group, data.ids[row], text) for row, text in zip(facts.row, facts.text, strict=True)}
        line = {
            "name": setting.name, "config": setting.row["config"], "variant": setting.variant,
            **asdict(said), "pairs": len(facts), "new_pairs": len(pairs - seen),
            "seconds": round(time.monotonic() - start, 2),
        }  # fmt: skip
        results.add(line)
        told.done += 1
        told.pairs += len(facts)
        told.new_pairs += line["new_pairs"]
        seen |= pairs
    return told


def usable(bench: Bench, where: str | None) -> tuple[list[Setting], int]:
    """The settings that an expression chooses and that tell something to check captions by, and how many do not."""
    chosen = choose(bench.settings, where)
    able = [s for s in chosen if s.variant == "reference_based" or bench.has_images(s.base)]
    if not able:
        raise BadData(f"{bench.folder} stores no images, so its reference-free settings cannot be run; use the others.")
    return able, len(chosen) - len(able)
