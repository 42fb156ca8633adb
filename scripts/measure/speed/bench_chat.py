"""Measure, in one run and as a ratio, what many requests in flight gain over one at a time."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_json import add_json, write_json

from symbal_hf.core.store import Store
from symbal_hf.models.chat.asking import ask
from symbal_hf.models.chat.protocol import Message
from symbal_hf.models.chat.server import ServerModel

FAKE = Path(__file__).parents[3] / "tests" / "helpers" / "chat_fakes.py"


def main() -> None:
    """Ask the same kind of questions with one request in flight and with many, and print questions a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds that the server takes to answer")
    parser.add_argument("--sequential", type=int, default=100, help="questions with one request in flight")
    parser.add_argument("--parallel", type=int, default=2000, help="questions with many")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--image-bytes", type=int, default=0, help="size of the image of each question; 0 for none")
    add_json(parser)
    args = parser.parse_args()

    image = (b"\xff\xd8\xff" + bytes(args.image_bytes),) if args.image_bytes else ()
    server = subprocess.Popen(
        [sys.executable, str(FAKE), "--latency", str(args.latency)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        rates = {}
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder) / "store.sqlite")
            for concurrency, n in ((1, args.sequential), (args.concurrency, args.parallel)):
                model = ServerModel("fake", base_url=url, concurrency=concurrency)
                questions = [[Message(f"{concurrency} {i} Answer 1 or 0.", images=image)] for i in range(n)]
                ask(model, questions[:2], kind="yes", prompt_hash="", store=store)  # imports, connections
                start = time.perf_counter()
                ask(model, questions[2:], kind="yes", prompt_hash="", store=store)
                rates[concurrency] = (n - 2) / (time.perf_counter() - start)
                print(f"concurrency {concurrency:3d}: {rates[concurrency]:7.1f} questions a second")
            print(f"ratio {rates[args.concurrency] / rates[1]:.1f}")
            name = f"questions a second, {args.concurrency} in flight / one after the other"
            write_json(args.json, {name: rates[args.concurrency] / rates[1]})
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
