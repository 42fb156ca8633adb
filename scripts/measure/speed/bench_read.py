"""Read a file of conversations as ShareGPT4V's and split its captions: seconds, and the memory of a fresh process."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_json import add_json, write_json

TEXT = (
    "the image shows a woman standing beside wooden table with several plates and glasses on it while sunlight falls "
    "through large window behind her creating warm atmosphere in kitchen there are also two chairs one of which is "
    "partly hidden by potted plant near refrigerator"
)
READ = """
import json, resource, sys, time
start = time.perf_counter()
from symbal_hf.data.table import load_data
from symbal_hf.language.facts import split_facts
ready = time.perf_counter()
data = load_data(sys.argv[1])
read = time.perf_counter()
facts = split_facts(data.captions)
end = time.perf_counter()
print(json.dumps({
    "rows": len(data), "facts": len(facts), "seconds importing": ready - start, "seconds reading": read - ready,
    "seconds splitting": end - read, "seconds": end - start,
    "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


def written(path: Path, rows: int, length: int) -> None:
    """A list of `rows` samples, of answers of about `length` characters; a few are not in Latin letters."""
    draw, words = random.Random(0), TEXT.split()
    with path.open("w", encoding="utf-8") as file:
        for row in range(rows):
            said, size = [], 0
            while size < length:
                sentence = " ".join(draw.choices(words, k=draw.randint(9, 22))).capitalize() + "."
                said.append(sentence + ("\n\n" if draw.random() < 0.2 else " "))
                size += len(sentence) + 1
            if row % 1000 == 999:
                said.append("图中有一只猫。🐈")
            name = f"{row:012d}"
            sample = {
                "id": name,
                "image": f"coco/train2017/{name}.jpg",
                "conversations": [
                    {"from": "human", "value": "What do you see happening in this image?\n<image>"},
                    {"from": "gpt", "value": "".join(said).strip()},
                ],
            }
            file.write(("[\n" if row == 0 else ",\n") + json.dumps(sample, ensure_ascii=False, indent=2))
        file.write("\n]")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--length", type=int, default=940, help="characters of an answer, as in ShareGPT4V")
    add_json(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sharegpt4v.json"
        written(path, args.rows, args.length)
        size = path.stat().st_size / 2**20
        done = subprocess.run([sys.executable, "-c", READ, str(path)], check=True, text=True, stdout=subprocess.PIPE)
    figures = {**json.loads(done.stdout), "MiB of the file": size}
    for name, value in figures.items():
        print(f"{name}: {value:,.2f}")
    write_json(args.json, figures)


if __name__ == "__main__":
    main()
