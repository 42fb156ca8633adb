"""Write the report of a large audit anew, map and pictures included: the seconds of each stage in a fresh process."""

from __future__ import annotations

import argparse
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench_json import add_json, write_json
from PIL import Image

from symbal_hf.data.again import fingerprint
from symbal_hf.data.table import load_data
from symbal_hf.results.findings import Affected, AuditResult, Example, Finding

THINGS = ("printer", "fork", "umbrella", "kite", "clock", "teapot", "ladder", "guitar", "candle", "suitcase")
PLACES = ("desk", "table", "beach", "lawn", "wall", "kitchen", "garage", "stage", "shelf", "platform")
WORDS = "old new large small white brown wooden bright quiet busy round narrow open empty clean strange".split()  # noqa: SIM905
WRITE = """
import json, resource, sys, time
laps = [("", time.perf_counter(), time.process_time())]
def lap(name):
    laps.append((name, time.perf_counter(), time.process_time()))
from symbal_hf.data.table import thumbnails_of
from symbal_hf.results.findings import load_result
from symbal_hf.report.page import write_report
from symbal_hf.report.folder import with_map
from symbal_hf.data.again import reread
from symbal_hf.core.store import Store
result = load_result(sys.argv[1])
lap("reading findings.json")
data = reread(result)
lap("reading the rows")
import faiss, sentence_transformers, sklearn.manifold
lap("importing the models' libraries")
result, missing = with_map(result, data, store=Store(sys.argv[1] + "/store.sqlite"))
assert missing is None, missing
lap("drawing the map")
result.write(sys.argv[1])
lap("writing findings.json")
path = write_report(result, sys.argv[1] + "/report.html", thumbnail=thumbnails_of(data))
lap("writing the page")
figures = {f"seconds {name}": end[0] - start[0] for (_, *start), (name, *end) in zip(laps, laps[1:])}
figures |= {f"CPU seconds {name}": end[1] - start[1] for (_, *start), (name, *end) in zip(laps, laps[1:])}
figures["seconds"], figures["CPU seconds"] = (laps[-1][i] - laps[0][i] for i in (1, 2))
figures["MB of the page"] = path.stat().st_size / 1e6
figures["points"] = len(result.fact_map.points)
figures["peak GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps(figures))
"""


def sentence(draw: random.Random, thing: str) -> str:
    """A fact of some ten words."""
    a, b, c = draw.sample(WORDS, 3)
    return f"A {a} {thing} stands beside the {b} {draw.choice(PLACES)} in a {c} place."


def written(folder: Path, rows: int, sentences: int, findings: int) -> None:
    """Rows with captions of so many sentences, 60 photos of noise, and an audit that finds a fifth of them wrong."""
    draw = random.Random(0)
    captions = [[sentence(draw, draw.choice(THINGS)) for _ in range(sentences)] for _ in range(rows)]
    (folder / "images").mkdir()
    pictures = [f"images/{i}.jpg" for i in range(12 * findings)]
    for i, name in enumerate(pictures):
        pixels = np.random.default_rng(i).integers(0, 256, (480, 640, 3), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=85)
        (folder / name).write_bytes(out.getvalue())
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for i, caption in enumerate(captions):
            row = {"id": f"row-{i}", "image": pictures[i % len(pictures)], "caption": " ".join(caption)}
            file.write(json.dumps(row) + "\n")
    data = load_data(folder / "rows.jsonl")
    found = []
    for k in range(findings):
        mine = range(k, rows, findings)
        affected = tuple(Affected(data.ids[i], (captions[i][0],), i % 2 == 0, 0.25) for i in mine)
        examples = tuple(Example(data.ids[i], data.captions[i], captions[i][0], 0.25) for i in mine[:12])
        n = len(affected)
        numbers = (0.5, 9.0, 8.0, 10.0, 1e-300, 1e-300, n // 2, n, n // 2, rows - n, 0.9, 0.8)
        found.append(Finding(THINGS[k], PLACES[k], (THINGS[k],), (PLACES[k],), *numbers, examples, affected))
    provenance = {"source": data.source, "read": data.read, "rows_sha256": fingerprint(data)}
    result = AuditResult("systematic", tuple(found), (), {"rows": rows, "facts": rows * sentences}, (), provenance)
    result.write(folder)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--sentences", type=int, default=10, help="of a caption")
    parser.add_argument("--findings", type=int, default=5, help="which share all rows among them")
    add_json(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), args.rows, args.sentences, args.findings)
        done = subprocess.run([sys.executable, "-c", WRITE, folder], check=True, text=True, stdout=subprocess.PIPE)
    figures = json.loads(done.stdout)
    for name, value in figures.items():
        print(f"{name}: {value:,.2f}")
    write_json(args.json, figures)


if __name__ == "__main__":
    main()
