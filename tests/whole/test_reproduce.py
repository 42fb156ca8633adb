"""The script that makes the paper's tables on GPUs runs commands that exist, each with a folder of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from symbal_hf.cli.app import app

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_paper.sh"
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the script needs bash")


def script(*steps, cwd, **env):
    return subprocess.run(
        ["bash", SCRIPT, *steps], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=60
    )


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    done = script(cwd=tmp_path_factory.mktemp("nothing"), DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    return [shlex.split(line) for line in done.stdout.splitlines()]


def test_every_command_and_option_exists(commands):
    command = typer.main.get_command(app)
    ours = [words[1:] for words in commands if words[0] == "symbal"]
    assert len(ours) > 60 and {words[0] for words in ours} == {"bench", "estimate", "serve-command", "judge"}
    for words in ours:
        found, rest = command, words
        while hasattr(found, "commands"):
            found, rest = found.commands[rest[0]], rest[1:]
        found.make_context(found.name, rest)  # raises for an option, a choice or an argument that is not there


def test_every_row_of_the_paper_s_tables_has_a_run_of_its_own(commands):
    runs = [dict(zip(words[4::2], words[5::2], strict=True)) for words in commands if words[1:3] == ["bench", "run"]]
    assert len({run["--out"] for run in runs}) == len(runs)
    paper = [run for run in runs if run["--method"] == "paper"]
    assert len({tuple(sorted(run.items() - {("--out", run["--out"])})) for run in paper}) == len(paper)

    def parts(runs, *names):
        return {tuple(run[name] for name in names) for run in runs}

    natural = [run for run in paper if run["--where"] == "domain=natural"]
    medical = [run for run in paper if run["--where"] == "domain=medical"]
    assert len(natural) == 4 + 11 and len(medical) == 1 + 17 + 29
    assert len(parts(natural, "--text-encoder", "--scorer-1", "--summarizer-1")) == 4  # Table 4, photos
    assert len(parts(natural, "--image-encoder", "--scorer-2", "--summarizer-2")) == 12  # Table 5 has ten
    direct = {run["--chat"].partition("#")[2] for run in runs if run["--method"] == "direct"}
    assert len(direct) == 4  # Table 6


def test_a_step_that_does_not_exist_is_named(tmp_path):
    done = script("everything", cwd=tmp_path, DRY_RUN="1")
    assert done.returncode == 2 and "no step everything; the steps are build" in done.stderr


def test_a_step_that_fails_stops_the_script(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = script("build", "estimate", cwd=tmp_path, PATH=path, COCO="gone")
    assert done.returncode != 0 and "gone" in done.stderr and "symbal estimate" not in done.stdout
