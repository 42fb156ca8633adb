"""Time, memory and bytes of building a benchmark against the plain way: a pandas copy of the base for each setting."""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_json import add_json, write_json

from benchmark_builder.bases.base import Base
from benchmark_builder.bases.open_bases import custom_base, scenes_base
from benchmark_builder.planting.inject import Plan, solve
from benchmark_builder.planting.pairs import Pair, pairs_for
from benchmark_builder.planting.plant import mentions, natural_templates, state
from benchmark_builder.writing.build import build
from symbal_hf.language.facts import sentences

STRENGTHS = (0.3, 0.6, 0.9)


def read(kind: str, source: str) -> tuple[Base, list[Pair]]:
    """The base and its pairs: 5,000 rows of text, or fewer with images, which the plain way stores again and again."""
    if kind == "text":
        base = custom_base(source, name="natural")
        return base, pairs_for(base, ["table"])
    base = scenes_base(rows=400)
    return base, pairs_for(base, ["adversarial"])


def plainly(base: Base, pairs: list[Pair], out: Path) -> int:
    """What one writes first: copy the frame, look up rows, change captions, save; for every setting and variant."""
    import pandas as pd

    out.mkdir(parents=True)
    frame = pd.DataFrame({"image_id": base.ids, "caption": base.captions, "objects": base.objects})
    frame["references"] = [list(texts) for texts in base.references or ()]
    if base.images is not None:
        frame["image"] = [base.encoded(row) for row in range(len(base))]
    written = 0
    for pair in pairs:
        for strength in STRENGTHS:
            copy, rng = frame.copy(), random.Random(written)
            t, v = pair.textual_error, pair.visual_feature
            has = copy["objects"].map(lambda present, v=v: v in present)
            named = copy["caption"].map(lambda text, t=t: mentions(text, t, base.vocabulary))
            free = ~copy["objects"].map(lambda present, t=t: t in present) & ~named
            plan = solve(len(copy), int(has.sum()), int((free & has).sum()), int((free & ~has).sum()), strength)
            if not isinstance(plan, Plan):
                continue
            rows = rng.sample(list(copy.index[free & has]), plan.with_feature)
            rows += rng.sample(list(copy.index[free & ~has]), plan.without_feature)
            for row in rows:
                parts = sentences(copy.loc[row, "caption"])
                parts.insert(rng.randint(0, len(parts)), state(t, rng.choice(natural_templates())))
                copy.loc[row, "caption"] = " ".join(parts)
            plain = copy.drop(columns=["objects"])
            plain.drop(columns=["references"]).to_parquet(out / f"{written}-free.parquet")
            plain.to_parquet(out / f"{written}-based.parquet")
            written += 1
    return written


def measure(way: str, kind: str, source: str) -> dict[str, float]:
    """One way in a process of its own: seconds after reading the base, megabytes at most, bytes on disk, settings."""
    done = subprocess.run(
        [sys.executable, __file__, source, "--way", way, "--kind", kind], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def one_way(way: str, kind: str, source: str) -> dict[str, float]:
    """Build once, in this process."""
    base, pairs = read(kind, source)
    with tempfile.TemporaryDirectory() as folder:
        out, start = Path(folder) / "symbalbench", time.perf_counter()
        if way == "ours":
            n = len(build(base, out, pairs=pairs, strengths=STRENGTHS).feasible)
        else:
            n = plainly(base, pairs, out)
        seconds = time.perf_counter() - start
        size = sum(path.stat().st_size for path in out.rglob("*.parquet"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "peak_mb": peak, "disk_mb": size / 1e6, "settings": n, "rows": len(base)}


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="captions_val2017_all5000.jsonl: captions and objects of 5,000 images")
    parser.add_argument("--way", choices=("ours", "plain"), help=argparse.SUPPRESS)
    parser.add_argument("--kind", choices=("text", "images"), default="text", help=argparse.SUPPRESS)
    add_json(parser)
    args = parser.parse_args()
    if args.way:
        print(json.dumps(one_way(args.way, args.kind, args.source)))
        return
    scenes_base(rows=400)  # drawn before the clock starts
    print(
        "| base | settings | rows written | time, plain / ours | disk, plain / ours | ours: s | peak MB | MB on disk |"
    )
    print("|---|---|---|---|---|---|---|---|")
    figures = {}
    for kind in ("text", "images"):
        ours, plain = (measure(way, kind, args.source) for way in ("ours", "plain"))
        assert ours["settings"] == plain["settings"], "both ways must write the same settings"
        rows = 2 * ours["settings"] * ours["rows"]
        figures[f"benchmark of {kind}, time, pandas copies / ours"] = plain["seconds"] / ours["seconds"]
        figures[f"benchmark of {kind}, disk, pandas copies / ours"] = plain["disk_mb"] / ours["disk_mb"]
        print(
            f"| {kind}, {ours['rows']:,} rows | {ours['settings']} x 2 | {rows:,} | "
            f"{plain['seconds'] / ours['seconds']:.1f} | {plain['disk_mb'] / ours['disk_mb']:.1f} | "
            f"{ours['seconds']:.0f} | {ours['peak_mb']:.0f} | {ours['disk_mb']:.0f} |"
        )
    write_json(args.json, figures)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
