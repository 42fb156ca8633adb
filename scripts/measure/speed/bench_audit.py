"""Time a whole audit of real photos from an empty cache and again from a full one: seconds, ratio, peak memory."""

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

from benchmark_builder.bases.photos import photo_base
from benchmark_builder.scenes.compose import compose_captions
from symbal_hf.language.facts import split_facts


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/")
    parser.add_argument("--rows", type=int, default=4349)
    add_json(parser)
    args = parser.parse_args()
    base = photo_base(args.data / "coco", part="all")
    with tempfile.TemporaryDirectory() as folder:
        table, captions = Path(folder) / "captions.jsonl", []
        with table.open("w", encoding="utf-8") as file:
            for row in range(args.rows):
                rng = random.Random(row)
                more = compose_captions(sorted(base.objects[row]), rng=rng, n=1)
                captions.append(" ".join([base.captions[row], *more]))
                line = {"id": base.ids[row], "image": str((base.images or ())[row].resolve()), "caption": captions[-1]}
                file.write(json.dumps(line) + "\n")
        print(f"{args.rows:,} photos, {len(split_facts(captions)):,} facts")
        env = {**os.environ, "SYMBAL_CACHE": str(Path(folder) / "cache")}
        times = []
        for label in ("empty cache", "full cache"):
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "symbal_hf.cli", "audit", table, "--image-root", "/", "--out", f"{folder}/out"],
                env=env,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            times.append(time.perf_counter() - start)
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            print(f"{label}: {times[-1]:.0f} s, peak memory so far {peak:.2f} GiB")
        print(f"second / first: {times[1] / times[0]:.3f}")
        write_json(args.json, {f"audit of {args.rows} photos, full cache / empty cache": times[1] / times[0]})


if __name__ == "__main__":
    main()
