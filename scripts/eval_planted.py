"""Plant known errors into real photos and captions, audit each dataset, and print how often (t, v) is named."""

from __future__ import annotations

import argparse
import csv
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmark_builder.inject import Infeasible
from benchmark_builder.photos import Base, photo_base, text_base
from benchmark_builder.plant import Planted, plant, plant_at_random
from symbal_hf.engine import association_pairs, conclude, two_stage_pairs, weigh
from symbal_hf.data import AuditData, Images, load_vocabulary
from symbal_hf.embed import embed_images, embed_texts
from symbal_hf.encode import LiteVision, MiniLM
from symbal_hf.phrases import Vocabulary
from symbal_hf.references import ReferenceJudge
from symbal_hf.store import Store


def pairs_of(base: Base, table: Path, *, which: str, least: int) -> list[tuple[str, str]]:
    """(t, v) to plant: "table" takes the paper's Table 3, "random" as many others, on which options were chosen."""
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
        for strength in ((0.3, 0.6, 0.9), (0.6, 0.3, 0.9), (0.9, 0.3, 0.6))[turn % 3]:
            planted = plant(
                base.captions, base.objects, textual_error=t, visual_feature=v, strength=strength, seed=turn,
                ids=base.ids, vocabulary=vocabulary,
            )  # fmt: skip
            if not isinstance(planted, Infeasible):
                yield t, v, strength, planted
                made += 1
                break
        if made == n:
            return


def as_data(base: Base, captions: tuple[str, ...], *, scorer: str) -> AuditData:
    """The rows with new captions, and only that by which the scorer may check them."""
    images = None if base.images is None else Images([str(p) for p in base.images], range(len(base.ids)), None)
    return AuditData(
        ids=base.ids,
        captions=captions,
        references=base.references if scorer == "reference" else None,
        objects=base.objects if scorer == "objects" else None,
        images=images if scorer == "embedding" else None,
        skipped=(),
        source="planted",
    )


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
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()

    classes = load_vocabulary(args.data / "mllm_coco" / "chair_vocab.json")
    vocabulary = Vocabulary(classes)
    store, columns, regions, text = Store(), {}, None, MiniLM()
    if args.scorer == "reference":
        base = text_base(args.data / "coco" / "text" / "captions_val2017_all5000.jsonl")
    else:
        base = photo_base(args.data / "coco")
    if args.scorer == "embedding":
        images = as_data(base, base.captions, scorer="embedding").images
        assert images is not None
        regions, bad = embed_images(images, LiteVision(), store=store)
        assert not bad, bad
    text = MiniLM()

    judge = None
    if args.scorer == "reference":
        judge = ReferenceJudge(base.references, lambda texts: embed_texts(texts, text, store=store))

    def look(captions: tuple[str, ...], method: str):  # noqa: ANN202
        data = as_data(base, captions, scorer=args.scorer)
        words = classes if args.scorer == "objects" else None
        evidence = weigh(data, regions, scorer=args.scorer, vocabulary=words, store=store, columns=columns, reference_judge=judge)
        pairs = association_pairs(evidence) if method == "association" else two_stage_pairs(evidence, store=store)
        return conclude(evidence, pairs)

    def named(names: list[str], truth: str, k: int) -> bool:
        return any(truth in vocabulary.find(name) or name == truth for name in names[:k])

    results: list[dict] = []
    pairs = pairs_of(base, args.data / "symbalbench_table3.csv", which=args.pairs, least=30)
    for t, v, strength, planted in settings(base, pairs, vocabulary, args.settings):
        for method in args.methods:
            start = time.time()
            result = look(planted.captions, method)
            got = result.prediction()
            row = {"method": method, "t": t, "v": v, "strength": strength, "verdict": result.verdict, **got}
            for k in (1, 5):
                row[f"t@{k}"] = named(got["textual_error"], t, k)
                row[f"v@{k}"] = named(got["visual_feature"], v, k)
                row[f"both@{k}"] = row[f"t@{k}"] and row[f"v@{k}"]
            row["found@1"] = result.verdict == "systematic" and row["both@1"]
            results.append(row)
            if args.verbose:
                mark = "ok " if row["both@1"] else "5  " if row["both@5"] else "-  "
                print(mark, t, "|", v, strength, len(planted.rows), "->", got, result.why_none or "", f"{time.time() - start:.1f}s", flush=True)
    for method in args.methods:
        rows = [r for r in results if r["method"] == method]
        head = ["t@1", "t@5", "v@1", "v@5", "both@1", "both@5", "found@1"]
        print(f"\n{method}, {args.scorer}, {args.pairs} pairs: {len(rows)} settings over {len(base.ids)} rows")
        for name, part in [("all", rows), *((f"V={s}", [r for r in rows if r["strength"] == s]) for s in (0.3, 0.6, 0.9))]:
            if part:
                print(f"  {name:6}", len(part), "  ".join(f"{h} {np.mean([r[h] for r in part]):.2f}" for h in head))
    clean: dict[str, list[str]] = {"clean": [], "random errors": []}
    frequent = [c for c, _ in Counter(o for present in base.objects for o in present).most_common(60)]
    for seed in range(args.clean_seeds):
        rng = random.Random(seed)
        keep = sorted(rng.sample(range(len(base.ids)), int(0.8 * len(base.ids))))
        for kind in clean:
            part, columns_part = Base(
                *(tuple(getattr(base, f)[i] for i in keep) if getattr(base, f) else None for f in ("ids", "captions", "objects", "images", "references"))
            ), {k: c[keep] for k, c in columns.items()} if False else {}
            captions = part.captions
            if kind == "random errors":
                t = rng.choice(frequent)
                n = min(100, sum(t not in o for o in part.objects) // 3)
                captions = plant_at_random(part.captions, part.objects, textual_error=t, n=n, seed=seed, ids=part.ids, vocabulary=vocabulary).captions
            data = as_data(part, captions, scorer=args.scorer)
            evidence = weigh(data, None if regions is None else regions[keep], scorer=args.scorer, vocabulary=classes if args.scorer == "objects" else None, store=store, columns=columns_part)
            result = conclude(evidence, association_pairs(evidence))
            clean[kind].append(result.verdict)
            if args.verbose and result.findings:
                print(kind, seed, [(f.textual_error, f.visual_feature, f.p_value_corrected, f.confirmed_share_low, f.errors_with_feature, f.rows_with_feature, f.errors_without_feature) for f in result.findings], flush=True)
    for kind, verdicts in clean.items():
        if verdicts:
            print(f"{kind}: verdict none in {verdicts.count('none')} of {len(verdicts)} seeds")
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
