"""`transformers serve` on loopback for as long as a test needs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVE = Path(sys.executable).with_name("transformers")


@contextmanager
def served(model: Path, log: Path, *, patience: float = 240) -> Iterator[str]:
    """The base URL of a server of this model; its output goes to `log`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        SERVE,
        "serve",
        model,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
        "--dtype",
        "float32",
    ]
    with log.open("w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            end = time.monotonic() + patience
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    if server.poll() is not None or time.monotonic() > end:
                        raise RuntimeError(f"no server: {log.read_text()[-2000:]}") from None
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
