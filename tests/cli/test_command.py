"""The command as a program, once for each of its groups; and what tests call in its place says the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import symbal

PROGRAM = Path(sys.executable).with_name("symbal")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("cache info --store none.sqlite", 0),
        ("judge agreement none.csv", 2),
        ("bench run", 2),
        ("audit none.jsonl --tau much", 2),
        ("report .", 2),
        ("--help", 0),
    ],
)
def test_the_program_and_the_call_say_the_same(words: str, code: int, tmp_path: Path) -> None:
    program = subprocess.run(
        [PROGRAM, *words.split()], cwd=tmp_path, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True
    )
    called = symbal(*words.split(), cwd=tmp_path, env={"COLUMNS": "100"})
    assert program.returncode == code, program.stderr
    assert (called.returncode, called.stdout, called.stderr) == (program.returncode, program.stdout, program.stderr)


def test_the_module_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "symbal_hf.cli", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("Usage: symbal ")
