"""A shell whose `symbal` is answered by this process: blocks of a page run as written, without five seconds each."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import threading
from multiprocessing.connection import Client, Listener
from pathlib import Path

from command import symbal

SYMBAL = """#!{python}
import os, sys
from multiprocessing.connection import Client
with Client({address!r}) as line:
    line.send((sys.argv[1:], os.getcwd(), dict(os.environ)))
    code, out, err = line.recv()
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


def bash(code: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What bash makes of `code`, stopping at the first command that fails."""
    done: list[subprocess.CompletedProcess[str]] = []
    with Listener(family="AF_UNIX") as listener:
        address = str(listener.address)
        program = cwd.parent / f"{cwd.name}-bin" / "symbal"
        program.parent.mkdir(exist_ok=True)
        program.write_text(SYMBAL.format(python=sys.executable, address=address), "utf-8")
        program.chmod(0o755)
        path = os.pathsep.join([str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]])

        def run() -> None:
            command = ["bash", "-euo", "pipefail", "-c", code]
            try:
                there = {**os.environ, **env, "PATH": path}
                done.append(subprocess.run(command, cwd=cwd, env=there, capture_output=True, text=True))
            finally:
                with Client(address) as line:
                    line.send(None)

        thread = threading.Thread(target=run)
        thread.start()
        while True:
            with listener.accept() as line:
                if (asked := line.recv()) is None:
                    break
                words, folder, environment = asked
                said = symbal(*words, cwd=folder, env=environment)
                line.send((said.returncode, said.stdout, said.stderr))
        thread.join()
    return done[0]


def python(code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a program of these lines prints."""
    out = io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out):
        exec(compile(code, "<page>", "exec"), {"__name__": "__main__"})
    return subprocess.CompletedProcess(["python"], 0, out.getvalue(), "")
