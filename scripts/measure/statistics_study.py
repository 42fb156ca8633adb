"""How often audits find what was planted, and what is not there, by objects, references and simulated judges.

Rows with objects or references are COCO's val2017 with people's captions, errors planted by `benchmark_builder`. Judges
are simulated only where a line is about them: things of M images in topics, and a judge that sees each with noise.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from eval_planted import pairs_of
from numpy.typing import NDArray
from simulated_judges import (
    LOOKS,
    SCENARIOS,
    SECOND,
    STATED,
    World,
    measured,
    random_errors,
    run_of,
    second_look,
    simulated,
    verdict,
)

from benchmark_builder.bases.base import Base, sentence
from benchmark_builder.bases.photos import text_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import Ground
from symbal_hf.auditing.evidence import gather
from symbal_hf.auditing.judges.protocol import UNMEASURED, Measured
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts
from symbal_hf.results.findings import AuditResult
from symbal_hf.stats.contingency import wilson


def share(hits: Sequence[bool]) -> str:
    """A share with its 95 % interval."""
    low, high = wilson(sum(hits), len(hits))
    return f"{sum(hits)} of {len(hits)}: {np.mean(hits):.3f} [{low:.3f}, {high:.3f}]"


# A judge of pixels alone is the dearest, and its faults are plain in a fifth of the runs.
JUDGES: Mapping[str, dict[str, Any]] = {
    "lite, second judge": {"second": True},
    "lite alone": {"every": 5},
    "another judge alone": {"scorer": "vision-language"},
}


def _given(how: Mapping[str, Any], second: NDArray[np.float64], table: Measured) -> dict[str, Any]:
    """Who looks on, as keywords of `simulated`."""
    scorer = how.get("scorer", "embedding")
    return {
        "scorer": scorer,
        "second": second if "second" in how else None,
        "table": table if scorer == "embedding" else UNMEASURED,
    }


def blind_spots(runs: int, first: int, only: str) -> Iterator[str]:
    """Shares of audits with anything found, and with anything suspected, of every scenario."""
    yield "| scenario | judge | found | suspected |\n|---|---|---|---|"
    for name, case in SCENARIOS.items():
        if only and name.split()[0] not in only.split(","):
            continue
        hits: dict[str, list[tuple[bool, bool]]] = {judge: [] for judge in JUDGES}
        for seed in range(first, first + runs):
            run = run_of(case, seed)
            if run.pair is None and (case.blind or case.real):
                continue
            image = np.repeat(np.arange(len(run.told)), case.copies)
            rows = run.told[image]
            if case.errors:  # at single rows: copies of one image do not all err
                lacks = ~run.world.shows[image]
                rows = random_errors(rows, lacks, case.errors, run.world.rng, np.arange(len(image)))
            for judge, how in JUDGES.items():
                if seed % how.get("every", 1):
                    continue
                shown = image if case.copies > 1 else None
                told = simulated(rows, run.presence[image], image=shown, **_given(how, run.second[image], run.table))
                result = verdict(told)
                hits[judge].append((bool(result.findings), bool(result.suspected)))
        for judge, some in hits.items():
            yield f"| {name} | {judge} | {share([f for f, _ in some])} | {np.mean([s for _, s in some]):.2f} |"


def second_looks(runs: int, first: int) -> Iterator[str]:
    """Shares of accusations by one judge alone that a second look confirms."""
    yield "| accused | second look | confirmed | contradicted |\n|---|---|---|---|"
    for name, case in SCENARIOS.items():
        if name[0] not in "CDr":
            continue
        for look in LOOKS:
            said = [one for seed in range(first, first + runs) if (one := second_look(case, seed, look)) is not None]
            if said:
                contradicted = np.mean([word == "contradicted" for word in said])
                yield f"| {name} | {look} | {share([word == 'confirmed' for word in said])} | {contradicted:.2f} |"


class Rows:
    """COCO's val2017 with people's captions, and audits of parts of it with the truth given."""

    def __init__(self, data: Path, store: Path) -> None:
        self.text = data / "coco" / "text" / "captions_val2017_all5000.jsonl"
        self.classes = load_vocabulary(data / "mllm_coco" / "chair_vocab.json")
        self.vocabulary, self.whole = Vocabulary(self.classes), text_base(self.text)
        named = [
            self.vocabulary.find(" ".join((text, *others)))
            for text, others in zip(self.whole.captions, self.whole.references or (), strict=True)
        ]
        self.shows = tuple(own | more for own, more in zip(self.whole.objects, named, strict=True))
        drawn = [pair for which in ("table", "random") for pair in self._pairs(data, which)]
        self.pairs = list(dict.fromkeys(drawn))
        self.parts = {
            kind: Parts(Composition(scorer_1=kind, scorer_2=kind), Store(store)) for kind in ("objects", "reference")
        }

    def _pairs(self, data: Path, which: str) -> list[tuple[str, str]]:
        return pairs_of(self.whole, data / "symbalbench_table3.csv", which=which)

    def part(self, seed: int, n: int, *, rare: tuple[str, int] | None = None, kind: str = "objects") -> Base:
        """Rows at random, n of them, with captions by the seed; of rows that show the thing of `rare` only so many.

        What any of an image's five captions names counts as there, so that people's captions are true.
        """
        rng, base = random.Random(seed), text_base(self.text, seed=seed if kind == "objects" else 0)
        rows = list(range(len(base)))
        if rare is not None:
            t, images = rare
            some = [row for row in rows if t in self.shows[row]]
            rows = sorted(set(rows) - set(some))
            kept = rng.sample(some, min(images, len(some)))
        rows = sorted([*rng.sample(rows, min(n, len(rows))), *(kept if rare is not None else ())])
        ids, captions, objects = ([column[row] for row in rows] for column in (base.ids, base.captions, self.shows))
        references = tuple((base.references or ())[row] for row in rows)
        return Base(tuple(ids), tuple(captions), tuple(objects), references=references, vocabulary=self.vocabulary)

    def audit(
        self, base: Base, captions: Sequence[str], kind: str, shown: tuple[str, ...] | None = None
    ) -> AuditResult:
        """An audit of these captions by the objects, or references, of the base."""
        objects, references = (base.objects, None) if kind == "objects" else (None, base.references)
        data = AuditData(base.ids, tuple(captions), references, objects, None, (), "study", shown=shown)
        return verdict(gather(data, self.parts[kind], vocabulary=self.classes if kind == "objects" else None))

    def named(self, result: AuditResult) -> list[tuple[str, ...]]:
        """The t of each finding, and the candidates for its v, by the classes that their names stand for."""
        names = [(f.textual_error, *f.visual_feature_candidates) for f in result.findings]
        return [tuple(self.vocabulary.class_of(name) or name for name in some) for some in names]


def planted(base: Base, pairs: Sequence[tuple[str, str]], strengths: Sequence[float], seed: int) -> list[str] | None:
    """The captions with all these errors; None where one of them cannot be that strong."""
    captions = list(base.captions)
    for (t, v), strength in zip(pairs, strengths, strict=True):
        out = Ground(replace(base, captions=tuple(captions)), seed=seed).plant(t, v, strength)
        if isinstance(out, Infeasible):
            return None
        captions = list(out.captions)
    return captions


def strong_pairs(rows: Rows, kind: str, seed: int) -> Iterator[str]:
    """Of 14 pairs whose t few images or none show, and of 35 others, how many are found."""
    yield "| truth | t in | pairs found | other findings |\n|---|---|---|---|"
    for images in (0, 1, 5, 50, None):
        hits, strange, missed, n = list[bool](), 0, list[Any](), 2000
        for turn, (t, v) in enumerate(rows.pairs):
            if len(hits) == (35 if images is None else 14) or (kind == "reference" and images != 0):
                break
            base = rows.part(seed + turn, n, rare=None if images is None else (t, images), kind=kind)
            if sum(v in shown for shown in base.objects) < 30:
                continue
            captions = planted(base, [(t, v)], [(0.3, 0.6, 0.9)[turn % 3]], seed + turn)
            if captions is None:
                continue
            found = rows.named(rows.audit(base, captions, kind))
            # Concepts of references are their own words: a bathroom may come before its toilet.
            hits.append(any(f[0] == t and v in (f[1:] if kind == "reference" else f[1:2]) for f in found))
            missed += [] if hits[-1] else [(t, v, (0.3, 0.6, 0.9)[turn % 3])]
            strange += sum(f[0] != t for f in found)
        if hits:
            where = "any images" if images is None else f"{images} images"
            yield f"| {kind} | {where} | {share(hits)} | {strange} |" + "".join(f"\n  missed: {m}" for m in missed)


def clean(rows: Rows, kind: str, runs: int, seed: int) -> Iterator[str]:
    """People's captions as they are, with errors of one thing and of ten at random: every finding is false."""
    yield "| truth | captions | audits with a finding |\n|---|---|---|"
    for things, errors in ((0, 0), (1, 60), (10, 30)):
        hits = []
        for run in range(seed, seed + runs):
            base = rows.part(run, 1000 if kind == "objects" else 2000, kind=kind)
            usual = [c for c, n in Counter(o for row in base.objects for o in row).items() if n < len(base) / 2]
            captions = base.captions
            for t in random.Random(run).sample(sorted(usual), things):
                captions = Ground(replace(base, captions=captions), seed=run).plant_at_random(t, errors).captions
            hits.append(bool(rows.audit(base, captions, kind).findings))
        yield f"| {kind} | {f'{errors} random errors of {things} things' if things else 'clean'} | {share(hits)} |"


SEVERAL = {
    "two pairs": lambda a, b: (a, b),
    "three pairs": lambda a, b, c: (a, b, c),
    "one t with two v": lambda a, b: (a, (a[0], b[1])),
    "two t with one v": lambda a, b: (a, (b[0], a[1])),
}


def several(rows: Rows, runs: int, seed: int) -> Iterator[str]:
    """Several errors in one dataset: of all that were planted, how many are found."""
    yield "| planted | pairs found | audits with all | other findings |\n|---|---|---|---|"
    for name, together in SEVERAL.items():
        pairs_found, whole, strange, run = list[bool](), list[bool](), 0, seed
        while len(whole) < runs:
            run += 1
            rng = random.Random(f"{name} {run}")
            some = rng.sample(rows.pairs, 3 if name == "three pairs" else 2)
            pairs = together(*some)
            if len({n for pair in some for n in pair}) < 2 * len(some):
                continue
            base = rows.part(run, 2500)
            if any(sum(v in shown for shown in base.objects) < 30 for _, v in pairs):
                continue
            captions = planted(base, pairs, [rng.choice((0.3, 0.5)) for _ in pairs], run)
            if captions is None:
                continue
            found = {(t, v) for t, v, *_ in rows.named(rows.audit(base, captions, "objects"))}
            pairs_found += [pair in found for pair in pairs]
            whole.append(set(pairs) <= found)
            strange += len(found - set(pairs))
            if not whole[-1]:
                yield f"  missed in run {run}: {sorted(set(pairs) - found)}, found {sorted(found)}"
        yield f"| {name} | {share(pairs_found)} | {share(whole)} | {strange} |"


def random_images(rows: Rows, runs: int, seed: int) -> Iterator[str]:
    """Errors at random images, in all captions of each: every finding is false."""
    yield "| judge | captions an image | audits with a finding | suspected |\n|---|---|---|---|"
    for copies in (1, 2, 5):
        hits: dict[str, list[tuple[bool, bool]]] = {"true objects": [], **{judge: [] for judge in JUDGES}}
        for run in range(seed, seed + runs):
            base = rows.part(run, 300)
            texts = [
                (*map(sentence, base.captions[i].split(". ")), *(base.references or ())[i]) for i in range(len(base))
            ]
            chosen = random.Random(run)
            t = chosen.choice([c for c, n in Counter(o for row in base.objects for o in row).items() if 9 < n < 100])
            # One statement an image, in every caption of it.
            spoilt = Ground(base, seed=run).plant_at_random(t, 45)
            stated = dict(zip(spoilt.rows, spoilt.sentences, strict=True))
            told = [(i, text) for i, some in enumerate(texts) for text in some[:copies]]
            captions = [f"{text} {stated[i]}" if i in stated else text for i, text in told]
            each = replace(
                base,
                ids=tuple(map(str, range(len(told)))),
                captions=tuple(captions),
                objects=tuple(base.objects[i] for i, _ in told),
                references=None,
            )
            result = rows.audit(each, captions, "objects", tuple(base.ids[i] for i, _ in told))
            hits["true objects"].append((bool(result.findings), bool(result.suspected)))
            world = World.of(run, 400)
            image = np.repeat(np.arange(400), copies)
            told_rows = world.shows[image] & (world.rng.random((len(image), world.shows.shape[1])) < STATED)
            wrong = random_errors(told_rows, ~world.shows, 60, world.rng, image)
            presence, second = world.presence()[image], world.presence(sharpness=SECOND)[image]
            table = measured(world.told(), world.presence())
            for judge, how in JUDGES.items():
                if run % how.get("every", 1):
                    continue
                result = verdict(simulated(wrong, presence, image=image, **_given(how, second, table)))
                hits[judge].append((bool(result.findings), bool(result.suspected)))
        for judge, some in hits.items():
            yield f"| {judge} | {copies} | {share([f for f, _ in some])} | {np.mean([s for _, s in some]):.2f} |"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/, mllm_coco/ and symbalbench_table3.csv")
    parser.add_argument(
        "--line", nargs="*", choices=("strong", "clean", "several", "images", "blind", "looks"), default=None
    )
    parser.add_argument("--truth", nargs="*", choices=("objects", "reference"), default=["objects", "reference"])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1000, help="runs with others were used for choosing")
    parser.add_argument("--scenario", default="", help="of blind spots, such as C2,D3; all by default")
    options = parser.parse_args()
    runs, seed = options.runs, options.first_seed
    rows = Rows(options.data, Path(mkdtemp()) / "store.sqlite")
    lines: dict[str, list[Callable[[], Iterator[str]]]] = {
        "strong": [partial(strong_pairs, rows, kind, seed) for kind in options.truth],
        "clean": [partial(clean, rows, kind, runs, seed) for kind in options.truth],
        "several": [partial(several, rows, min(runs, 40), seed)],
        "images": [partial(random_images, rows, runs, seed)],
        "blind": [partial(blind_spots, runs, seed, options.scenario)],
        "looks": [partial(second_looks, runs, seed)],
    }
    for name in options.line or lines:
        for table in lines[name]:
            start = time.process_time()
            for line in table():
                print(line, flush=True)
            print(f"({time.process_time() - start:.0f} s of processor time)\n", flush=True)


if __name__ == "__main__":
    main()
