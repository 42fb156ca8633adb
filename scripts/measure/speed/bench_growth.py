"""Time whole audits of drawn scenes at several sizes, from an empty cache: how fast seconds and memory grow."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_json import add_json, write_json

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.language.facts import split_facts

AUDIT = """
import resource
from symbal_hf.cli.app import main
try:
    main()
finally:
    print("PEAK", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def drawn(folder: Path, rows: int, size: int) -> Path:
    """A table of `rows` scenes with their images on disk and one planted error; three facts a row and more."""
    base = scenes_base(folder / "scenes", rows=rows, size=size, seed=5)
    planted = Ground(base, seed=5).plant("bench", "car", 0.6)
    assert isinstance(planted, Planted)
    # A scene's caption has two sentences; another true one makes three facts a row.
    captions = [f"{said} {others[0]}" for said, others in zip(planted.captions, base.references or (), strict=True)]
    table = folder / "captions.jsonl"
    with table.open("w", encoding="utf-8") as file:
        for row_id, image, caption in zip(base.ids, base.images or (), captions, strict=True):
            file.write(json.dumps({"id": row_id, "image": str(image), "caption": caption}) + "\n")
    print(f"{rows:,} scenes of {size} x {size} pixels, {len(split_facts(captions)):,} facts", flush=True)
    return table


def processor_seconds() -> float:
    """Of all processes that were started and have ended, user and system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,4000,16000,64000", help="rows of each audit")
    parser.add_argument("--size", type=int, default=96, help="pixels of a side; the encoder scales them to 256")
    parser.add_argument("--devices", type=int, default=1, help="processes that embed")
    parser.add_argument("--folder", type=Path, help="where scenes and caches go; by default a temporary folder")
    add_json(parser)
    args = parser.parse_args()
    sizes = [int(n) for n in args.sizes.split(",")]
    seconds, again, peaks = [], [], []
    work: list[float] = []  # processor seconds from an empty cache, which other programs on the machine change least
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=args.folder) as name:
            folder = Path(name)
            table = drawn(folder, n, args.size)
            env = {**os.environ, "SYMBAL_CACHE": str(folder / "cache")}
            arguments = ["audit", table, "--image-root", "/", "--out", folder / "out", "--devices", args.devices]
            for times in (seconds, again):
                start, before = time.perf_counter(), processor_seconds()
                done = subprocess.run(
                    [sys.executable, "-c", AUDIT, *map(str, arguments)],
                    env=env,
                    check=True,
                    text=True,
                    stdout=subprocess.PIPE,
                )
                times.append(time.perf_counter() - start)
                if times is seconds:
                    work.append(processor_seconds() - before)
                peaks.append(int(done.stdout.split("PEAK")[1]) / 2**20)
            workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            print(
                f"{n:,} rows: {seconds[-1]:.0f} s from an empty cache ({work[-1]:.0f} processor seconds), "
                f"{again[-1]:.0f} s from a full one, peak memory "
                f"{max(peaks[-2:]):.2f} GiB (any process so far {workers:.2f})",
                flush=True,
            )
    figures = {f"peak GiB at {n}": max(peaks[2 * i : 2 * i + 2]) for i, n in enumerate(sizes)}
    late = [i for i, n in enumerate(sizes) if n >= 4000]
    for label, times in (("empty cache", seconds), ("empty cache, processor", work), ("full cache", again)):
        if len(late) > 1:
            slope = np.polyfit(np.log([sizes[i] for i in late]), np.log([times[i] for i in late]), 1)[0]
            figures[f"growth exponent from {sizes[late[0]]} rows, {label}"] = float(slope)
            print(f"growth exponent from {sizes[late[0]]:,} to {sizes[-1]:,} rows, {label}: {slope:.2f}")
    write_json(args.json, figures)


if __name__ == "__main__":
    main()
