"""torchrun, `fabric run`, machines without a common disk and scripts without a guard give what one process gives."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symbal_hf.core.store import Store
from symbal_hf.models.encoders.embedding import embed

TEXTS = [f"{'so ' * (i * 5 % 7)}text {i}" for i in range(23)]
OWN = """
import sys
import numpy as np
class Own:
    name = fingerprint = "own"
    dim = 4
    def encode(self, texts):
        with open(sys.argv[1] + "/calls.txt", "a") as file:
            file.writelines(t + "\\n" for t in texts)
        return np.array([[len(t), *map(ord, t[-3:])] for t in texts], np.float32)
"""
SCRIPT = """
import hashlib, json, os, sys
from own import Own
from symbal_hf.core.store import Store
from symbal_hf.models.encoders.embedding import embed
folder, texts = sys.argv[1], [f"{'so ' * (i * 5 % 7)}text {i}" for i in range(23)]
def note(name, **values):  # in a file of its own: lines that processes print at once may run into each other
    with open(f"{folder}/note-{name}", "w") as file:
        json.dump(values, file)
def digest(result):
    return hashlib.sha256(result.values.tobytes()).hexdigest()
"""
IN_WORLD = """
rank = os.environ["RANK"]
own_store = Store(f"{folder}/{rank if 'alone' in sys.argv else 'all'}.sqlite")
result = embed(texts, Own(), store=own_store, batch=2, out=folder + "/out")
errors = []
for items in (texts[0], ["one", "two"]):
    try:
        embed(items, Own(), store=own_store)
    except ValueError as error:
        errors.append(str(error))
note(rank, digest=digest(result), rows=len(result.ids), errors=errors,
     stored=sum(kind.entries for kind in own_store.kinds()))
"""
NO_GUARD = """
for strategy in ("auto", "ddp_spawn"):
    result = embed(texts, Own(), store=Store(f"{folder}/{strategy}.sqlite"), batch=2, devices=2, strategy=strategy)
    note(strategy, digest=digest(result), rows=len(result.ids))
"""


class Here:
    """What `OWN` is, in this process."""

    name = fingerprint = "own"

    def encode(self, texts):
        return np.array([[len(t), *map(ord, t[-3:])] for t in texts], np.float32)


def run(tmp_path, body, *commands):
    """Run a script by each of `commands` at once, and give what its processes noted, and what they encoded."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "script.py").write_text(SCRIPT + body)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MASTER", "LT_", "SLURM"))}
    env["PYTHONPATH"] = str(Path(__file__).parents[3])
    started = [
        subprocess.Popen([str(tmp_path / "script.py") if part is None else part for part in command] , env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]  # fmt: skip
    for process in started:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said[-3000:]
        assert "distributed_backend" not in said
    notes = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("note-*"))]
    return notes, (tmp_path / "calls.txt").read_text().splitlines()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def digest(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("here") / "s.sqlite")
    return hashlib.sha256(embed(TEXTS, Here(), store=store, batch=2).values.tobytes()).hexdigest()


@pytest.mark.parametrize("launcher", ["torchrun", "fabric run"])
def test_a_launchers_world_is_used(tmp_path, digest, launcher):
    if launcher == "torchrun":
        command = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
                   "--rdzv-endpoint", "localhost:0", None, str(tmp_path))  # fmt: skip
    else:  # the module has no entry point of its own
        command = (str(Path(sys.executable).parent / "fabric"), "run", "--accelerator", "cpu", "--devices", "2",
                   "--strategy", "ddp", "--main-port", str(free_port()), None, str(tmp_path))  # fmt: skip
    notes, calls = run(tmp_path, IN_WORLD, command)
    assert [(note["digest"], note["rows"]) for note in notes] == [(digest, 23)] * 2
    assert [note["errors"] for note in notes] == [["items is one text; give a list of texts."]] * 2
    assert sorted(calls) == sorted([*TEXTS, "one", "two"])
    assert (tmp_path / "out" / "embeddings.safetensors").is_file()


def test_machines_without_a_common_disk_fill_the_store_of_the_first(tmp_path, digest):
    port = free_port()
    commands = [
        (sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(node), "--nproc-per-node",
         "1", "--master-addr", "127.0.0.1", "--master-port", str(port), None, str(tmp_path), "alone")
        for node in (0, 1)
    ]  # fmt: skip
    notes, calls = run(tmp_path, IN_WORLD, *commands)
    assert [(note["digest"], note["rows"]) for note in notes] == [(digest, 23)] * 2
    assert [note["stored"] for note in notes] == [25, 0]
    assert sorted(calls) == sorted([*TEXTS, "one", "two"])


def test_a_script_without_a_guard_can_use_several_processes(tmp_path, digest):
    notes, calls = run(tmp_path, NO_GUARD, (sys.executable, None, str(tmp_path)))
    assert [(note["digest"], note["rows"]) for note in notes] == [(digest, 23)] * 2
    assert sorted(calls) == sorted(TEXTS * 2)
