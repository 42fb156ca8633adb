"""`symbal ARGUMENTS` in this process: 5 s of imports less than a process of its own, the same exit code and words."""

import contextlib
import io
import os
import subprocess
import traceback
import warnings
from pathlib import Path
from unittest import mock


def symbal(
    *arguments: object, cwd: str | Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run(["symbal", *arguments], capture_output=True, text=True)` gives.

    `env` is added to the environment; the environment, the folder, the streams and the warnings are as before
    afterwards. An exception that the program would die of is a traceback on stderr and exit code 1.
    """
    from symbal_hf.cli.app import run

    words, out, err = [str(a) for a in arguments], io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, env or {}))
        stack.enter_context(contextlib.chdir(cwd or Path.cwd()))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            code = run(words)
        except Exception:
            traceback.print_exc()
            code = 1
    return subprocess.CompletedProcess(["symbal", *words], code, out.getvalue(), err.getvalue())
