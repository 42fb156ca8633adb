"""Plant known errors into real photos and captions, audit each dataset, and print how often (t, v) is named."""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmark_builder.bases.base import Base
from benchmark_builder.bases.photos import photo_base, text_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import Ground, Planted, plant
from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import Kept, gather
from symbal_hf.auditing.two_stages import two_stages
from symbal_hf.auditing.verdict import conclude
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, Images
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts
from symbal_hf.results.findings import AuditResult

HEADS = ("t@1", "t@5", "v@1", "v@5", "both@1", "both@5", "found@1")
STRENGTHS = (0.3, 0.6, 0.9)


def pairs_of(base: Base, table: Path, *, which: str, least: int = 30) -> list[tuple[str, str]]:
    """(t, v) to plant: "table" takes the paper's Table 3; "random" others, on which every choice was made."""
    count = Counter(o for present in base.objects for o in present)
    with table.open(encoding="utf-8", newline="") as file:
        paper = [(row["t"], row["v"]) for row in csv.DictReader(file) if row["domain"] == "natural"]
    rng = random.Random(11)
    if which == "table":
        pairs = [p for p in paper if count[p[1]] >= least and count[p[0]]]
        rng.shuffle(pairs)
        return pairs
    features = sorted(c for c in count if count[c] >= least)
    errors, popular = sorted(c for c in count if count[c] >= 10), [c for c, _ in count.most_common(25)]
    pairs = []
    while len(pairs) < 150:
        pair = rng.choice(errors if rng.random() < 0.5 else popular), rng.choice(features)
        if pair[0] != pair[1] and pair not in paper and pair not in pairs:
            pairs.append(pair)
    return pairs


def settings(
    base: Base, pairs: list[tuple[str, str]], vocabulary: Vocabulary, n: int
) -> Iterator[tuple[str, str, float, Planted]]:
    """Up to n feasible settings, strengths .3, .6 and .9 in turn."""
    made = 0
    for turn, (t, v) in enumerate(pairs):
        for strength in (*STRENGTHS[turn % 3 :], *STRENGTHS[: turn % 3]):
            planted = plant(
                base.captions,
                base.objects,
                textual_error=t,
                visual_feature=v,
                strength=strength,
                seed=turn,
                ids=base.ids,
                vocabulary=vocabulary,
            )
            if not isinstance(planted, Infeasible):
                yield t, v, strength, planted
                made += 1
                break
        if made == n:
            return


class Bench:
    """One base with one scorer: audits many captionings of the same images, sharing what does not change."""

    def __init__(self, data: Path, scorer: str) -> None:
        self.data, self.scorer, self.store = data, scorer, Store()
        self.classes = load_vocabulary(data / "mllm_coco" / "chair_vocab.json")
        self.vocabulary = Vocabulary(self.classes)
        self.parts = Parts(Composition(scorer_1=scorer, scorer_2=scorer), self.store)
        self.base, self.kept = self.draw(0), Kept()

    def draw(self, seed: int) -> Base:
        """The base with other captions of the same images."""
        if self.scorer == "embedding":
            return photo_base(self.data / "coco", seed=seed)
        return text_base(self.data / "coco" / "text" / "captions_val2017_all5000.jsonl", seed=seed)

    def kept_of(self, base: Base) -> Kept:
        """What audits of `base` share: with references another draw shares nothing but the store."""
        return self.kept if base is self.base or self.scorer == "embedding" else Kept()

    def audit(self, base: Base, captions: tuple[str, ...], method: str, kept: Kept) -> AuditResult:
        """Audit `captions` with only that at hand by which the scorer may check them."""
        paths = [str(path) for path in base.images or ()]
        data = AuditData(
            ids=base.ids,
            captions=captions,
            references=base.references if self.scorer == "reference" else None,
            objects=base.objects if self.scorer == "objects" else None,
            images=Images(paths, range(len(base.ids)), None) if self.scorer == "embedding" else None,
            skipped=(),
            source="planted",
        )
        vocabulary = self.classes if self.scorer == "objects" else None
        evidence = gather(data, self.parts, vocabulary=vocabulary, on_bad_row="error", kept=kept)
        if method == "association":
            return conclude(evidence, association_pairs(evidence))
        return conclude(*two_stages(evidence, self.parts))

    def named(self, names: list[str], truth: str, k: int) -> bool:
        """True when one of the first k names is the true class, by the vocabulary's synonyms, as whole words."""
        return any(truth == name or truth in self.vocabulary.find(name) for name in names[:k])


def score(bench: Bench, result: AuditResult, t: str, v: str) -> dict:
    """The hits of one setting."""
    got = result.prediction()
    row: dict = {"verdict": result.verdict, **got}
    for k in (1, 5):
        row[f"t@{k}"] = bench.named(got["textual_error"], t, k)
        row[f"v@{k}"] = bench.named(got["visual_feature"], v, k)
        row[f"both@{k}"] = row[f"t@{k}"] and row[f"v@{k}"]
    row["found@1"] = row["both@1"] and result.verdict == "systematic"
    return row


def table(results: list[dict], title: str) -> str:
    """A Markdown table of the shares of settings."""
    lines = [f"\n**{title}**\n", "| method | strength | settings | " + " | ".join(HEADS) + " |"]
    lines.append("|---|---|---|" + "---|" * len(HEADS))
    for method in dict.fromkeys(r["method"] for r in results):
        for label, strengths in (("all", STRENGTHS), *((str(s), (s,)) for s in STRENGTHS)):
            part = [r for r in results if r["method"] == method and r["strength"] in strengths]
            if part:
                shares = " | ".join(f"{np.mean([r[h] for r in part]):.2f}" for h in HEADS)
                lines.append(f"| {method} | {label} | {len(part)} | {shares} |")
    return "\n".join(lines)


def clean_rates(bench: Bench, seeds: int, *, verbose: bool) -> str:
    """How often captions without a systematic error get the verdict "none"."""
    verdicts: dict[str, list[str]] = {"no planted error": [], "errors at random rows": []}
    for seed in tqdm(range(1, seeds + 1), desc="clean", mininterval=10):
        base = bench.draw(seed)
        kept = bench.kept_of(base)
        names = [c for c, _ in Counter(o for present in base.objects for o in present).most_common(60)]
        t = random.Random(seed).choice(names)
        free = sum(t not in present for present in base.objects)
        ground = Ground.of(base.captions, base.objects, seed=seed, ids=base.ids, vocabulary=bench.vocabulary)
        spoilt = ground.plant_at_random(t, min(100, free // 3))
        for kind, captions in (("no planted error", base.captions), ("errors at random rows", spoilt.captions)):
            result = bench.audit(base, captions, "association", kept)
            verdicts[kind].append(result.verdict)
            if verbose and result.findings:
                said = [(f.textual_error, f.visual_feature, f.p_value_corrected) for f in result.findings]
                print(f"  {kind}, seed {seed} ({t}): {said}", flush=True)
    return "\n".join(f'{k}: verdict "none" in {v.count("none")} of {len(v)} seeds' for k, v in verdicts.items())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/, mllm_coco/ and symbalbench_table3.csv")
    parser.add_argument("--scorer", choices=("embedding", "reference", "objects"), default="embedding")
    parser.add_argument("--pairs", choices=("table", "random"), default="table")
    parser.add_argument("--settings", type=int, default=60)
    parser.add_argument("--clean-seeds", type=int, default=20)
    parser.add_argument("--methods", nargs="*", default=["association", "paper"])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--out", type=Path, help="JSON of every setting")
    args = parser.parse_args()
    bench = Bench(args.data, args.scorer)
    pairs = pairs_of(bench.base, args.data / "symbalbench_table3.csv", which=args.pairs)
    results: list[dict] = []
    planted_all = list(settings(bench.base, pairs, bench.vocabulary, args.settings)) if args.settings else []
    for t, v, strength, planted in tqdm(planted_all, desc="settings", mininterval=10):
        for method in args.methods:
            result = bench.audit(bench.base, planted.captions, method, bench.kept)
            row = {"method": method, "t": t, "v": v, "strength": strength, **score(bench, result, t, v)}
            results.append(row)
            if args.verbose:
                mark = "ok" if row["both@1"] else "5 " if row["both@5"] else "- "
                print(mark, method, t, "|", v, strength, result.prediction(), result.why_none or "", flush=True)
    if results:
        print(table(results, f"{args.scorer}, {args.pairs} pairs, {len(bench.base.ids):,} rows"))
    if args.clean_seeds:
        print(clean_rates(bench, args.clean_seeds, verbose=args.verbose))
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
