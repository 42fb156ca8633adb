"""Every performance figure in one run, as ratios where there is something to compare with, as JSON and Markdown."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
LIBRARIES = ("symbal-hf", "torch", "faiss-cpu", "scikit-learn", "scipy", "datasets", "openai")


def commands(data: Path | None, quick: bool) -> dict[str, list[str]]:
    """The measurements by name; `quick` takes sizes that end in minutes, to see that all of them run."""
    small = {
        "embed": ["--images", "40", "--texts", "200", "--rounds", "1"], "reading": ["--rows", "2000"],
        "silhouette and sweep": ["--n", "2000"], "clusters of many facts": ["--n", "60000"],
        "growth of an audit": ["--sizes", "500,1000"], "audit of photos": ["--rows", "300"],
        "association": ["--features", "1000", "--sample", "100"], "chat": ["--parallel", "400"],
        "report": ["--rows", "2000"],
    }  # fmt: skip
    found = {
        "reading": ["bench_read.py"],
        "report": ["bench_report.py"],
        "silhouette and sweep": ["bench_cluster.py"],
        "clusters of many facts": ["bench_scale.py", "cluster"],
        "association": ["bench_scale.py", "association"],
        "chat": ["bench_chat.py"],
        "growth of an audit": ["bench_growth.py"],
    }
    if data is not None:
        found["embed"] = ["bench_embed.py", str(data / "coco" / "images")]
        found["audit of photos"] = ["bench_audit.py", str(data)]
        found["benchmark"] = ["bench_build.py", str(data / "coco" / "text" / "captions_val2017_all5000.jsonl")]
    return {name: [*words, *(small.get(name, []) if quick else [])] for name, words in found.items()}


def cold_import() -> dict[str, float]:
    """Importing the package and answering --help, against importing torch."""

    def seconds(*words: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
            times.append(time.perf_counter() - start)
        return sorted(times)[2]

    torch = seconds("-c", "import torch")
    return {
        "import torch / import symbal_hf": torch / seconds("-c", "import symbal_hf"),
        "import torch / symbal --help": torch / seconds("-m", "symbal_hf.cli", "--help"),
    }


def main() -> None:
    """Run them one after the other; one that fails is told and does not stop the rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with coco/: for photos and captions")
    parser.add_argument("--only", nargs="*", help="some of them, by name")
    parser.add_argument("--quick", action="store_true", help="small sizes: the figures mean little")
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder of bench.json and bench.md")
    args = parser.parse_args()
    chosen = commands(args.data, args.quick)
    if args.only and (strange := [name for name in args.only if name not in (*chosen, "import")]):
        parser.error(f"no measurement {strange[0]!r}; there are {', '.join((*chosen, 'import'))}.")
    figures: dict[str, dict[str, float]] = {}
    failed = []
    if not args.only or "import" in args.only:
        figures["import"] = cold_import()
    for name, words in chosen.items():
        if args.only and name not in args.only:
            continue
        print(f"== {name}: {' '.join(words)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            told = Path(folder) / "figures.json"
            done = subprocess.run([sys.executable, str(HERE / words[0]), *words[1:], "--json", str(told)], cwd=HERE)
            if done.returncode or not told.is_file():
                failed.append(name)
                continue
            figures[name] = json.loads(told.read_text("utf-8"))
    machine = {
        "processors": os.cpu_count(), "threads": os.environ.get("OMP_NUM_THREADS", "all"),
        "python": platform.python_version(), **{name: version(name) for name in LIBRARIES},
    }  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    whole = {"machine": machine, "quick": args.quick, "figures": figures, "failed": failed}
    (args.out / "bench.json").write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    lines = ["| measurement | figure | value |", "|---|---|---:|"]
    lines += [f"| {name} | {what} | {value:.3g} |" for name, part in figures.items() for what, value in part.items()]
    lines += [f"| {name} | failed | |" for name in failed]
    table = "\n".join(lines) + "\n"
    (args.out / "bench.md").write_text(table, "utf-8")
    print(f"\n{table}\n{', '.join(f'{key} {value}' for key, value in machine.items())}")
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
