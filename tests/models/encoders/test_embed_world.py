"""Any number of processes, started here, killed or not, gives the same ids, order and values."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models as tiny
from safetensors import safe_open

from symbal_hf.core.errors import BadData, DeadRank
from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images
from symbal_hf.models.encoders.base import Place, fitted
from symbal_hf.models.encoders.embedding import embed, embed_images, embed_texts
from symbal_hf.models.encoders.lite import LiteText, LiteVision
from symbal_hf.models.encoders.load import load_encoder
from symbal_hf.models.encoders.processes import given_world, how_to_start

TEXTS = [f"{'so ' * (i * 5 % 7)}text {i}" for i in range(23)]
BY_LENGTH = sorted(TEXTS, key=lambda text: (len(text), text))


class Counted:
    """Encodes texts by their letters, and writes down which; the process that is given the killer's text is killed."""

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


@pytest.fixture
def expected(tmp_path_factory):
    """The vectors of `TEXTS` by one process that nothing disturbed."""
    folder = tmp_path_factory.mktemp("expected")
    return embed(TEXTS, Counted(folder), store=Store(folder / "s.sqlite"), batch=2).values


def encoded(image):
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("kind", ["clip", "bert", "pictures"])
def test_worlds_of_one_two_and_three_agree_to_the_last_bit(zoo, tmp_path, kind):
    if kind == "pictures":
        files = [encoded(image) for image in tiny.pictures(9)]
        rows = [*files[:2], b"no picture", *files[2:5], None, *files[5:], files[0]]
        items, different, encoder = Images(rows, range(len(rows)), None), 10, load_encoder("image", zoo.clip)
    else:
        items, different, encoder = [*TEXTS, TEXTS[3]], len(TEXTS), load_encoder("text", getattr(zoo, kind))
    ids, worlds = [f"row-{i}" for i in range(len(items))], {}
    for world in (1, 2, 3):
        store, seen = Store(tmp_path / f"{world}.sqlite"), []

        def show(finished, label, total, seen=seen):
            seen.append((label, total, os.getpid()))
            for item in finished:
                seen.append(item)
                yield item

        worlds[world] = embed(
            items, encoder, devices=world, store=store, batch=3, ids=ids, progress=show, out=tmp_path / str(world)
        )
        batches = -(-different // 3)
        label = "images" if kind == "pictures" else "texts"
        assert seen[0] == (label, batches, os.getpid()) and len(seen) == 1 + batches
        assert worlds[world].ids == tuple(ids) and worlds[world].bad == worlds[1].bad
        np.testing.assert_array_equal(worlds[world].values, worlds[1].values)
        with safe_open(tmp_path / str(world) / "embeddings.safetensors", "numpy") as file:
            np.testing.assert_array_equal(file.get_tensor("values"), worlds[1].values)
            assert '"row-0", "row-1"' in file.metadata()["ids"]
            assert ("cannot identify" in file.metadata()["bad"]) == (kind == "pictures")
    if kind == "pictures":
        assert worlds[1].bad == {2: "unreadable image: cannot identify image file", 6: "no image in this row"}
        good = [i for i in range(len(rows)) if i not in worlds[1].bad]
        alone = tiny.encode_images(encoder, [decode(rows[i]) for i in good])
        np.testing.assert_allclose(worlds[1].values[good], alone, atol=2e-5)


def test_fewer_items_than_processes_and_none_at_all(tmp_path):
    encoder, store = Counted(tmp_path), Store(tmp_path / "a.sqlite")
    two = embed(["b", "a"], encoder, devices=3, batch=1, store=store)
    np.testing.assert_array_equal(two.values[:, :2], [[1, 98], [1, 97]])
    assert sorted(encoder.calls) == ["a", "b"]
    assert embed([], encoder, devices=3, store=store).values.shape == (0, 4)
    embed(["a", "b", "a"], encoder, devices=3, batch=1, store=store)
    assert sorted(encoder.calls) == ["a", "b"]


@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 1)])
def test_a_killed_rank_costs_only_what_it_had_not_finished(tmp_path, expected, first, second):
    encoder, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    encoder.killer.write_text(BY_LENGTH[12])
    with pytest.raises(DeadRank, match=rf"rank \d of {first} was ended by SIGKILL, with \d+ of 12 batches finished"):
        embed(TEXTS, encoder, devices=first, store=store, batch=2)
    kept = sum(kind.entries for kind in store.kinds())
    assert 8 <= kept < len(TEXTS)
    encoder.killer.unlink()
    encoder.log.unlink()
    resumed = embed(TEXTS, encoder, devices=second, store=store, batch=2)
    np.testing.assert_array_equal(resumed.values, expected)
    assert len(encoder.calls) == len(set(encoder.calls)) == len(TEXTS) - kept
    encoder.log.unlink()
    again = embed(TEXTS[::-1], encoder, store=store, batch=2)
    np.testing.assert_array_equal(again.values, expected[::-1])
    assert not encoder.calls


def test_what_an_encoder_raises_is_raised_here_and_what_others_finished_stays(tmp_path):
    encoder, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    with pytest.raises(ValueError, match="no vector for bad"):
        embed([*TEXTS, "bad"], encoder, devices=2, store=store, batch=1)  # the shortest, so the first of rank 0
    before = set(encoder.calls)
    embed(TEXTS, encoder, devices=2, store=store, batch=1)
    assert set(TEXTS) <= before | set(encoder.calls)


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
    gpu = SimpleNamespace(name="gpu", place=place, encode=lambda texts: texts, fingerprint="gpu")
    counted, store = Counted(tmp_path), Store(tmp_path / "s.sqlite")
    for options, message in (
        ({"strategy": "ddp"}, "strategy='ddp'"), ({"devices": 0}, "devices=0"),
        ({"num_nodes": 2}, "num_nodes=2: processes on other machines"), ({"precision": "int8"}, "precision='int8'"),
        ({"precision": "bf16-true"}, "none that counted can be given"), ({"batch": 0}, "batch=0"),
        ({"compiled": "inductor"}, "compiled='inductor' is none that counted can be given"),
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
        spread = SimpleNamespace(place=replace(place, device_map="auto"), encode=gpu.encode)
        embed(["a"], spread, store=store, devices=2)
    tied = Counted(tmp_path)
    tied.hook = lambda: None
    with pytest.raises(BadData, match="cannot be sent to other processes"):
        embed(["a", "b"], tied, store=store, devices=2, batch=1, strategy="ddp_spawn")
    assert embed(["a", "b"], tied, store=store).values.shape == (2, 2)  # and the store goes on
    # How each kind of program starts processes.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert how_to_start(counted, 2, "auto") == ("fork", 1) and how_to_start(gpu, 2, "auto") == ("spawn", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # a forked process that computed with four threads would hang
    assert how_to_start(counted, 2, "auto") == ("spawn", None)
    assert how_to_start(counted, 2, "ddp_fork") == ("fork", 1)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert how_to_start(counted, 2, "auto") == ("fork", 1)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert how_to_start(counted, 2, "auto") == ("fork", 1)
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
        encoder = load_encoder("text", zoo.clip)
        embedded = embed(TEXTS, encoder, devices=2, batch=4, store=Store(tmp_path / "s"), strategy="ddp_fork")
    finally:
        torch.set_num_threads(threads)
    assert embedded.values.shape == (23, 24) and threading.active_count() < 20


def test_each_process_has_its_own_gpu_and_numbers(zoo):
    import torch

    encoder = load_encoder("text", zoo.clip, device="cpu")
    other = fitted(encoder, device="cuda:1", precision="bf16-true")
    assert (other.place.device, other.place.dtype, encoder.place.device) == ("cuda:1", torch.bfloat16, "cpu")
    assert other is fitted(encoder, device="cuda:1", precision="bf16-true")
    assert fitted(encoder) is encoder and fitted(encoder, precision="32-true") is encoder
    assert other.fingerprint != encoder.fingerprint
