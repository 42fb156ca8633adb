"""Any number of processes, started here or by a launcher, killed or not, gives the same ids, order and values."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models as tiny

import symbal_hf.models.encoders.shards as shards
from symbal_hf.core.errors import BadData, DeadRank
from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images
from symbal_hf.models.encoders.base import Place
from symbal_hf.models.encoders.embedding import embed, embed_images, embed_texts
from symbal_hf.models.encoders.fitting import fitted
from symbal_hf.models.encoders.launch import how_to_start
from symbal_hf.models.encoders.lite import LiteVision
from symbal_hf.models.encoders.load import LiteText, load_image_encoder, load_text_encoder
from symbal_hf.models.encoders.shards import MERGED, read_merged
from symbal_hf.models.encoders.world import given_world

TEXTS = [f"{'so ' * (i * 5 % 7)}text {i}" for i in range(23)]


class Counted:
    """Encodes texts by their letters, and writes down which, with the process that did it."""

    name = fingerprint = "counted"
    dim = 4

    def __init__(self, folder):
        self.log, self.killer = Path(folder) / "calls.txt", Path(folder) / "kill"

    def encode(self, texts):
        with self.log.open("a") as file:
            file.writelines(f"{text}\n" for text in texts)
        if self.killer.exists() and self.killer.read_text() in texts:
            time.sleep(0.3)  # the others get on
            os.kill(os.getpid(), signal.SIGKILL)
        if "bad" in texts:
            raise ValueError("no vector for bad")
        time.sleep(0.02)
        return np.array([[len(t), *map(ord, t[-3:])] for t in texts], np.float32)

    @property
    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    root = tmp_path_factory.mktemp("zoo")
    return SimpleNamespace(
        clip=f"transformers:{tiny.save_clip(root / 'clip')}", bert=f"st:{tiny.save_sentence_bert(root / 'bert')}"
    )


def encoded(image):
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def test_worlds_of_one_two_and_three_agree_to_the_last_bit(zoo, tmp_path):
    files = [encoded(image) for image in tiny.pictures(9)]
    rows = [*files[:2], b"no picture", *files[2:5], None, *files[5:], files[0]]
    images, ids = Images(rows, range(len(rows)), None), [f"row-{i}" for i in range(len(rows))]
    texts = [*TEXTS, TEXTS[3]]
    for kind, items, spec, load, names in (
        ("texts", texts, zoo.clip, load_text_encoder, None), ("texts", texts, zoo.bert, load_text_encoder, None),
        ("images", images, zoo.clip, load_image_encoder, ids),
    ):  # fmt: skip
        found = {}
        for world in (1, 2, 3):
            store = Store(tmp_path / f"{kind}-{Path(spec).name}-{world}-{len(found)}.sqlite")
            seen = []

            def show(finished, label, total, seen=seen):
                seen.append((label, total, os.getpid()))
                return finished

            found[world] = embed(
                items, load(spec), devices=world, store=store, batch=3, ids=names, progress=show,
                out=tmp_path / f"{kind}{world}" if names else None,
            )  # fmt: skip
            assert seen == [
                (kind, -(-len(set(items if kind == "texts" else [*files, b"no picture"])) // 3), os.getpid())
            ]
            assert found[world].ids == found[1].ids and found[world].bad == found[1].bad
            np.testing.assert_array_equal(found[world].values, found[1].values)
            assert not Path(f"{store.path}.shards").exists()
            if names:
                of_file = read_merged(tmp_path / f"{kind}{world}" / MERGED)
                assert of_file[0] == tuple(ids) and of_file[2] == found[1].bad
                np.testing.assert_array_equal(of_file[1], found[1].values)
    assert found[1].bad == {2: "unreadable image: cannot identify image file", 6: "no image in this row"}
    good = [i for i in range(len(rows)) if i not in found[1].bad]
    np.testing.assert_allclose(
        found[1].values[good], tiny.encode_images(load(spec), [decode(rows[i]) for i in good]), atol=2e-5
    )


def test_fewer_items_than_processes_and_none_at_all(tmp_path):
    encoder = Counted(tmp_path)
    two = embed(["b", "a"], encoder, devices=3, batch=1, store=Store(tmp_path / "a.sqlite"))
    np.testing.assert_array_equal(two.values[:, :2], [[1, 98], [1, 97]])
    assert sorted(encoder.calls) == ["a", "b"]
    assert embed([], encoder, devices=3, store=Store(tmp_path / "a.sqlite")).values.shape == (0, 4)
    embed(["a", "b", "a"], encoder, devices=3, batch=1, store=Store(tmp_path / "a.sqlite"))
    assert sorted(encoder.calls) == ["a", "b"]


@pytest.mark.parametrize(("first", "second", "out"), [(2, 3, False), (3, 1, True)])
def test_a_killed_rank_costs_only_what_it_had_not_finished(tmp_path, monkeypatch, first, second, out):
    monkeypatch.setattr(shards, "EVERY", 0.0)
    encoder, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    folder = tmp_path / "out" if out else None
    expected = embed(TEXTS, Counted(tmp_path / ".."), store=Store(tmp_path / "other.sqlite"), batch=2).values
    encoder.killer.write_text(sorted(TEXTS, key=lambda t: (len(t), t))[12])
    with pytest.raises(DeadRank, match=rf"rank \d of {first} was ended by SIGKILL, with \d+ of 12 batches finished"):
        embed(TEXTS, encoder, devices=first, store=store, batch=2, out=folder)
    where = folder or tmp_path / "s.sqlite.shards"
    kept = sum(shards.finished(where, "*").values())
    assert 4 <= kept < 12
    encoder.killer.unlink()
    encoder.log.unlink()
    found = embed(TEXTS, encoder, devices=second, store=store, batch=2, out=folder)
    np.testing.assert_array_equal(found.values, expected)
    assert len(encoder.calls) == len(set(encoder.calls)) and 0 < len(encoder.calls) <= len(TEXTS) - 2 * kept + 1
    encoder.log.unlink()
    again = embed(TEXTS[::-1], encoder, store=store, batch=2)
    np.testing.assert_array_equal(again.values, expected[::-1])
    assert not encoder.calls and where.exists() == out


def test_what_an_encoder_raises_is_raised_here_and_what_others_finished_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EVERY", 0.0)
    encoder, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    with pytest.raises(ValueError, match="no vector for bad"):
        embed([*TEXTS, "bad"], encoder, devices=2, store=store, batch=1)  # the shortest, so the first of rank 0
    before = set(encoder.calls)
    embed(TEXTS, encoder, devices=2, store=store, batch=1)
    assert set(TEXTS) <= before | set(encoder.calls)
    assert not (tmp_path / "s.sqlite.shards").exists()


def test_a_broken_shard_is_left_out(tmp_path, caplog):
    folder = tmp_path / "s.sqlite.shards"
    folder.mkdir()
    (folder / "shard-x-0-0-1.safetensors").write_bytes(b"half")
    found = embed(["a"], Counted(tmp_path), store=Store(tmp_path / "s.sqlite"))
    assert found.values.shape == (1, 2) and "cannot be read" in caplog.text and not folder.exists()


def test_regions_of_the_lite_encoder_by_two_processes(tmp_path, scene_folder):
    files = [path.read_bytes() for path in sorted(scene_folder[0].rglob("*.[jp][pn]g"))[:10]]
    images = Images([*files[:4], b"broken", *files[4:]], range(11), None)
    one, bad = embed_images(images, LiteVision(), store=Store(tmp_path / "1.sqlite"), batch=4)
    two, same = embed_images(images, LiteVision(), store=Store(tmp_path / "2.sqlite"), batch=4, devices=2, workers=1)
    other, _ = embed_images(images, LiteVision(), store=Store(tmp_path / "3.sqlite"), batch=11, workers=0)
    assert two.shape == (11, 65, 384) and two.dtype == np.float16 and bad == same and list(bad) == [4]
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, other)


def test_an_audit_by_two_processes_is_the_same_audit(tmp_path, scene_folder):
    import symbal_hf

    results = [
        symbal_hf.audit(
            scene_folder[0] / "captions.jsonl", scorer="embedding", limit=80, tau=0.05, alpha=0.99, min_rate=0.0,
            devices=devices, store=Store(tmp_path / f"{devices}.sqlite"),
        )
        for devices in (1, 2)
    ]  # fmt: skip
    assert results[0].findings == results[1].findings and results[0].counts == results[1].counts


OWN = """
import os, sys, hashlib
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
import hashlib, os, sys
from own import Own
from symbal_hf.models.encoders.embedding import embed
from symbal_hf.models.encoders.base import Place
from symbal_hf.data.pixels import decode
from symbal_hf.core.store import Store
folder, texts = sys.argv[1], [f"{'so ' * (i * 5 % 7)}text {i}" for i in range(23)]
def told(name, found):  # to a file of its own: lines that processes print at once may run into each other
    with open(f"{folder}/sum-{name}", "w") as file:
        file.write(f"SUM {name} {len(found.ids)} {hashlib.sha256(found.values.tobytes()).hexdigest()}")
"""
IN_WORLD = """
found = embed(texts, Own(), store=Store(folder + "/s.sqlite"), batch=2)
told(os.environ["RANK"], found)
try:
    embed(texts[0], Own(), store=Store(folder + "/s.sqlite"))
except ValueError as error:
    assert "one text" in str(error)
"""
NO_GUARD = """
for strategy in ("auto", "ddp_spawn"):
    found = embed(texts, Own(), store=Store(f"{folder}/{strategy}.sqlite"), batch=2, devices=2, strategy=strategy)
    told(strategy, found)
"""


def run(tmp_path, body, *launcher):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "script.py").write_text(SCRIPT + body)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MASTER", "LT_", "SLURM"))}
    done = subprocess.run(
        [*launcher, tmp_path / "script.py", tmp_path], env=env | {"PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "distributed_backend" not in done.stdout + done.stderr
    sums = [path.read_text().split() for path in sorted(tmp_path.glob("sum-*"))]
    return sums, (tmp_path / "calls.txt").read_text().splitlines()


@pytest.mark.parametrize(
    "launcher",
    [
        ("torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"),
        ("lightning.fabric.cli", "run", "--accelerator", "cpu", "--devices", "2", "--strategy", "ddp"),
    ],
    ids=["torchrun", "fabric run"],
)
def test_a_launchers_world_is_used(tmp_path, launcher):
    command = [sys.executable, "-m", *launcher]
    if "fabric" in launcher[0]:  # the module has no entry point of its own
        command = [str(Path(sys.executable).parent / "fabric"), *launcher[1:], "--main-port", str(free_port())]
    sums, calls = run(tmp_path, IN_WORLD, *command)
    assert [s[1:3] for s in sums] == [["0", "23"], ["1", "23"]] and sums[0][3] == sums[1][3]
    assert sorted(calls) == sorted(TEXTS)
    here = embed(TEXTS, Counted(tmp_path / ".."), store=Store(tmp_path / "here.sqlite"), batch=2).values
    assert hashlib.sha256(here.tobytes()).hexdigest() == sums[0][3]
    assert not (tmp_path / "s.sqlite.shards").exists()


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_script_without_a_guard_can_use_several_processes(tmp_path):
    sums, calls = run(tmp_path, NO_GUARD, sys.executable)
    assert [s[1] for s in sums] == ["auto", "ddp_spawn"] and sums[0][3] == sums[1][3]
    assert sorted(calls) == sorted(TEXTS * 2)


def test_worlds_are_recognised(tmp_path, monkeypatch):
    for name in ("TORCHELASTIC_RUN_ID", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    assert given_world() is None
    slurm = {"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURM_NNODES": "2", "SLURM_JOB_NAME": "x"}
    for name, value in slurm.items():
        monkeypatch.setenv(name, value)
    assert given_world() is None  # a batch script that starts one process, without srun
    monkeypatch.setenv("SLURM_STEP_ID", "0")
    world = given_world()
    assert (world.rank, world.size, world.local_rank, world.nodes) == (3, 4, 1, 2)
    with pytest.raises(BadData, match="not the 4 processes"):
        embed(["a"], LiteText(), devices=3)
    store = Store(tmp_path / "s.sqlite")  # what one of the processes does alone must not wait for the others
    assert embed_texts(["a"], Counted(tmp_path), store=store).shape == (1, 2)
    assert embed(["b"], Counted(tmp_path), store=store, strategy="in_place").values.shape == (1, 2)
    monkeypatch.setenv("SLURM_JOB_NAME", "interactive")
    assert given_world() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "r")
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert given_world().nodes == 1
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert given_world() is None


def test_what_cannot_be_started_is_refused_in_a_sentence(tmp_path, monkeypatch):
    import torch

    place = Place("cuda", torch.float32, None)
    gpu = SimpleNamespace(name="gpu", place=place, encode=None, fingerprint="gpu")
    counted, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    for options, message in (
        ({"strategy": "ddp"}, "strategy='ddp'"), ({"devices": 0}, "devices=0"),
        ({"num_nodes": 2}, "num_nodes=2: processes on other machines"), ({"precision": "int8"}, "precision='int8'"),
        ({"precision": "bf16-true"}, "none that counted can be given"), ({"batch": 0}, "batch=0"),
        ({"ids": ["x"]}, "1 ids"), ({"strategy": "in_place", "devices": 2}, "which is one process"),
    ):  # fmt: skip
        with pytest.raises(BadData, match=message):
            embed(["a", "b"], counted, store=store, **options)
    with pytest.raises(BadData, match="one text"):
        embed("ab", counted, store=store)
    with pytest.raises(BadData, match="encodes no images"):
        embed(Images([b""], [0], None), counted, store=store)
    with pytest.raises(BadData, match="encodes no texts"):
        embed(["a"], LiteVision(), store=store)
    with pytest.raises(BadData, match="has 0 GPUs"):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        embed(["a"], gpu, store=store, devices=2)
    with pytest.raises(BadData, match="spreads one model"):
        embed(["a"], SimpleNamespace(place=replace(place, device_map="auto"), encode=None), store=store, devices=2)
    tied = Counted(tmp_path)
    tied.hook = lambda: None
    with pytest.raises(BadData, match="cannot be sent to other processes"):
        embed(["a", "b"], tied, store=store, devices=2, batch=1, strategy="ddp_spawn")
    # How each kind of program starts processes.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert how_to_start(counted, 2, "auto").method == "fork" and how_to_start(gpu, 2, "auto").method == "spawn"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # a forked process that computed with four threads would hang
    assert how_to_start(counted, 2, "auto").method == "spawn"
    assert how_to_start(counted, 2, "ddp_fork").threads == 1
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert how_to_start(counted, 2, "auto").method == "fork"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert how_to_start(counted, 2, "auto").method == "fork"
    with pytest.raises(BadData, match="CUDA is in use in this process"):
        how_to_start(gpu, 2, "auto")
    with pytest.raises(BadData, match="does not work in a notebook"):
        how_to_start(gpu, 2, "ddp_spawn")
    monkeypatch.setattr(multiprocessing.current_process(), "_config", {"daemon": True})
    with pytest.raises(BadData, match="is a daemon"):
        how_to_start(counted, 2, "auto")


def test_a_forked_process_lives_after_its_parent_computed_with_threads(zoo, tmp_path):
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (torch.randn(500, 500) @ torch.randn(500, 500)).sum()
        encoder = load_text_encoder(zoo.clip)
        found = embed(TEXTS, encoder, devices=2, batch=4, store=Store(tmp_path / "s"), strategy="ddp_fork")
    finally:
        torch.set_num_threads(threads)
    assert found.values.shape == (23, 24) and threading.active_count() < 20


def test_each_process_has_its_own_gpu_and_numbers(zoo):
    import torch

    encoder = load_text_encoder(zoo.clip, device="cpu")
    other = fitted(encoder, device="cuda:1", precision="bf16-true")
    assert (other.place.device, other.place.dtype, encoder.place.device) == ("cuda:1", torch.bfloat16, "cpu")
    assert other is fitted(encoder, device="cuda:1", precision="bf16-true")
    assert fitted(encoder) is encoder and fitted(encoder, precision="32-true") is encoder
    assert other.fingerprint != encoder.fingerprint
