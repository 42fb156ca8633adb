"""How many questions `--budget auto` asks, and whether the first finding is that of an audit that asks all of them.

The chat model is simulated: a script that knows which objects are there, and of whose answers a stated share is wrong.
What tells of each image names its objects, of which a share is left out. Captions are people's, with a planted error or
without, and those of real captioners.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import symbal_hf
from benchmark_builder.bases.photos import text_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import plant
from symbal_hf.core.store import Store
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.chat.protocol import Answer, Messages

STRENGTHS, FLIPPED, LEFT_OUT = (0.3, 0.6, 0.9), (0.05, 0.15), 0.15
REAL = ("pope__mplug-owl__instruction1", "pope__minigpt4__instruction1", "pope__llava-v0-13b__instruction1")


class Row(NamedTuple):
    """A caption, and what is there."""

    name: str
    caption: str
    objects: frozenset[str]


class Scripted:
    """A chat model by script: a sentence is true whose objects are all there; `flipped` of its answers are wrong."""

    revision = "1"

    def __init__(self, rows: Sequence[Row], vocabulary: Vocabulary, *, flipped: float, name: str) -> None:
        self.name, self.flipped, self.vocabulary = f"scripted:{name}", flipped, vocabulary
        self.objects = {row.name: row.objects for row in rows}

    def probability_of_yes(self, conversations: Sequence[Messages]) -> Iterator[tuple[int, Answer]]:
        """The same answer to the same question, whoever asks."""
        for place, messages in enumerate(conversations):
            text = messages[-1].text
            row, fact = re.findall(r"\[A\] Photo (\d+)|\[B\] (.*)\n", text)
            draw = random.Random(f"{self.flipped} {row[0]} {fact[1]}")
            true = (self.vocabulary.find(fact[1]) <= self.objects[row[0]]) != (draw.random() < self.flipped)
            sure = draw.uniform(0.8, 0.99)
            yield place, Answer(text=str(int(true)), yes=sure if true else 1 - sure)

    def generate(self, conversations: Sequence[Messages], **_: object) -> Iterator[tuple[int, Answer]]:
        """It writes nothing."""
        yield from ((place, Answer(error="it only judges")) for place in range(len(conversations)))


class Bench:
    """The data, and audits with and without a budget."""

    def __init__(self, data: Path, store: Path) -> None:
        self.data, self.store = data, Store(store)
        self.base = text_base(data / "coco" / "text" / "captions_val2017_all5000.jsonl", seed=0)
        self.vocabulary = Vocabulary(load_vocabulary(data / "mllm_coco" / "chair_vocab.json"))

    def real(self, seed: int, n: int) -> list[Row]:
        """Captions of a real captioner."""
        folder = self.data / "mllm_coco"
        with (folder / "objects_chair.jsonl").open(encoding="utf-8") as file:
            objects = {row["image_id"]: frozenset(row["objects"]) for row in map(json.loads, file)}
        with (folder / "mllm_captions" / f"{REAL[seed % 3]}.jsonl").open(encoding="utf-8") as file:
            rows = [row for row in map(json.loads, file) if row["image_id"] in objects]
        drawn = random.Random(seed).sample(rows, n)
        return [Row(str(r["image_id"]), r["caption"], objects[r["image_id"]]) for r in drawn]

    def people(self, seed: int, n: int, *, planted: bool) -> list[Row]:
        """Captions by people, into which an error is planted where asked for."""
        base, rng = self.base, random.Random(seed)
        chosen = sorted(rng.sample(range(len(base)), n))
        rows = [Row(base.ids[i], base.captions[i], base.objects[i]) for i in chosen]
        count = Counter(name for row in rows for name in row.objects)
        errors, features = (sorted(c for c in count if count[c] >= least) for least in (10, 30))
        while planted:
            t, v = rng.choice(errors), rng.choice(features)
            names = {"textual_error": t, "visual_feature": v, "strength": STRENGTHS[seed % 3], "seed": seed}
            given = ([row.caption for row in rows], [row.objects for row in rows])
            found = None if t == v else plant(
                *given, ids=[row.name for row in rows], vocabulary=self.vocabulary, **names
            )  # fmt: skip
            if found is not None and not isinstance(found, Infeasible):
                return [row._replace(caption=caption) for row, caption in zip(rows, found.captions, strict=True)]
        return rows

    def first(
        self, rows: Sequence[Row], seed: int, method: str, budget: str | None, *, kind: str
    ) -> tuple[tuple[str, str], int]:
        """The first finding, two blanks where there is none, and how many questions that took."""
        drop = random.Random(seed)
        source = [
            {"id": row.name, "caption": row.caption, "references": [f"Photo {row.name} shows {', '.join(told)}."]}
            for row in rows
            for told in [[f"a {o}" for o in sorted(row.objects) if drop.random() >= LEFT_OUT] or ["nothing"]]
        ]
        chat = Scripted(rows, self.vocabulary, flipped=FLIPPED[seed % 2], name=f"{kind} {seed} {method} {budget}")
        options = {} if budget is None else {"budget": budget}
        result = symbal_hf.audit(
            source, scorer="text-only", chat=chat, method=method, store=self.store, seed=seed, **options
        )
        calls = sum(count["asked"] + count["cached"] for count in result.provenance["models"]["calls"])
        for finding in result.findings[:1]:
            return (finding.textual_error, finding.visual_feature), calls
        return ("", ""), calls


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/ and mllm_coco/")
    parser.add_argument("--kinds", nargs="*", default=["planted", "clean", "real"])
    parser.add_argument("--methods", nargs="*", default=["paper", "association"])
    parser.add_argument("--seeds", type=int, nargs=2, default=[500, 548])
    parser.add_argument("--rows", type=int, default=1500, help="of captions by people; of captioners 600")
    parser.add_argument("--store", type=Path, default=Path("budget.sqlite"))
    args = parser.parse_args()
    bench = Bench(args.data, args.store)
    out: dict[tuple[str, str], list[tuple[float, bool, bool, bool]]] = {}
    for seed in range(*args.seeds):
        for kind in args.kinds:
            rows = bench.real(seed, 600) if kind == "real" else bench.people(seed, args.rows, planted=kind == "planted")
            for method in args.methods:
                full, calls = bench.first(rows, seed, method, None, kind=kind)
                sparing, fewer = bench.first(rows, seed, method, "auto", kind=kind)
                none = full == sparing == ("", "")
                out.setdefault((kind, method), []).append((fewer / calls, sparing == full, sparing[0] == full[0], none))
                print(kind, method, seed, f"{fewer / calls:.2f} of {calls:,}", full, sparing, flush=True)
    print("\nSimulated answers, of which 5 % and 15 % are wrong in turn.\n")
    print("| captions | method | audits | share of the calls | same first finding | same t | none in both |")
    print("|---|---|---|---|---|---|---|")
    for (kind, method), found in out.items():
        share, same, same_t, none = zip(*found, strict=True)
        n = len(found)
        print(f"| {kind} | {method} | {n} | {sum(share) / n:.2f} | {sum(same) / n:.2f} | {sum(same_t) / n:.2f} | "
              f"{sum(none)} |")  # fmt: skip


if __name__ == "__main__":
    main()
