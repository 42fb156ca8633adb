"""Sharded sources are read where they lie, and give the rows and images that one table of them would give."""

from __future__ import annotations

import io
import json
import pickle
import random
import tarfile
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from symbal_hf.core.errors import BadData
from symbal_hf.data.table import load_data
from symbal_hf.language.facts import TextsOnDisk, split_facts


def png(number: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (8, 8), (number, 0, 0)).save(out, "PNG")
    return out.getvalue()


ROWS = [{"id": f"r{n}", "caption": f"Scene {n}.", "references": [f"A {n}."], "image": png(n)} for n in range(23)]


def write_parquet(path, rows, *, struct: bool):
    images = [{"bytes": row["image"], "path": f"{row['id']}.png"} if struct else row["image"] for row in rows]
    table = pa.table({"id": [r["id"] for r in rows], "image": images, "caption": [r["caption"] for r in rows],
                      "references": [r["references"] for r in rows]})  # fmt: skip
    pq.write_table(table, path, row_group_size=4)


@pytest.mark.parametrize("struct", [True, False], ids=["as datasets writes them", "plain bytes"])
@pytest.mark.parametrize("inside", ["", "data"])
def test_parquet_shards_are_one_table(tmp_path, struct, inside):
    (tmp_path / inside).mkdir(exist_ok=True)
    for shard, (start, end) in enumerate([(0, 10), (10, 11), (11, 23)]):
        write_parquet(tmp_path / inside / f"train-{shard}.parquet", ROWS[start:end], struct=struct)
    data = load_data(tmp_path)
    assert data.ids == tuple(row["id"] for row in ROWS) and data.captions[22] == "Scene 22."
    assert data.references[3] == ("A 3.",)
    order = random.Random(0).sample(range(23), 23)
    assert [data.images.encoded(row) for row in order] == [ROWS[row]["image"] for row in order]
    assert data.images.select([5, 1]).encoded(1) == ROWS[1]["image"]
    again = pickle.loads(pickle.dumps(data.images))  # as a worker process gets them
    assert again.encoded(12) == ROWS[12]["image"]


def test_reading_a_parquet_file_writes_no_copy_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    write_parquet(tmp_path / "one.parquet", ROWS, struct=True)
    data = load_data(tmp_path / "one.parquet")
    assert data.images.encoded(7) == ROWS[7]["image"] and not (tmp_path / "cache").exists()


def test_shards_of_different_tables_are_told_apart(tmp_path):
    write_parquet(tmp_path / "a.parquet", ROWS[:3], struct=True)
    pq.write_table(pa.table({"caption": ["A dog."], "score": [1]}), tmp_path / "b.parquet")
    with pytest.raises(BadData, match=r"b.parquet and a.parquet differ in the column"):
        load_data(tmp_path)


def test_a_shard_that_is_cut_off_is_named(tmp_path):
    write_parquet(tmp_path / "a.parquet", ROWS, struct=True)
    (tmp_path / "a.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-50])
    with pytest.raises(BadData, match=r"a.parquet is no whole parquet file"):
        load_data(tmp_path / "a.parquet")


def add(tar, name, content: bytes):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def write_tar(path, rows, *, folder="", caption="txt"):
    with tarfile.open(path, "w") as tar:
        for row in rows:
            told = {"key": row["id"], "references": row["references"], "width": 8}
            if caption == "json":
                told["caption"] = row["caption"]
            else:
                add(tar, f"{folder}{row['id']}.{caption}", row["caption"].encode())
            add(tar, f"{folder}{row['id']}.png", row["image"])
            add(tar, f"{folder}{row['id']}.json", json.dumps(told).encode())


@pytest.mark.parametrize("caption", ["txt", "json", "caption"])
def test_webdataset_tars_are_one_table_and_their_images_stay_inside(tmp_path, caption):
    write_tar(tmp_path / "00000.tar", ROWS[:9], caption=caption)
    write_tar(tmp_path / "00001.tar", ROWS[9:], caption=caption, folder="part/")
    data = load_data(tmp_path)
    assert data.ids == tuple(row["id"] for row in ROWS)
    assert data.captions == tuple(row["caption"] for row in ROWS) and data.references[4] == ("A 4.",)
    assert all(pickle.loads(pickle.dumps(data.images)).encoded(n) == row["image"] for n, row in enumerate(ROWS))
    assert load_data(tmp_path / "00000.tar").ids == data.ids[:9]


def test_a_sample_without_an_image_or_a_caption_is_told_when_it_is_used(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        add(tar, "1.png", png(1))
        add(tar, "2.txt", b"No image.")
        add(tar, "3.png", png(3))
        add(tar, "3.txt", b"Both.")
        add(tar, "README", b"what this is")
    data = load_data(tmp_path / "a.tar")
    assert data.ids == ("2", "3") and [(s.row_id, s.reason) for s in data.skipped] == [("1", "it has no caption")]
    assert data.images.encoded(1) == png(3)
    with pytest.raises(ValueError, match="no image in this row"):
        data.images.encoded(0)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [(b"\x1f\x8bzipped", "no plain tar file"), (None, "bad.tar, 1.json"), (b"", "bad.tar")],
    ids=["compressed", "broken json", "empty"],
)
def test_a_bad_tar_is_one_sentence(tmp_path, content, complaint):
    path = tmp_path / "bad.tar"
    if content is None:
        with tarfile.open(path, "w") as tar:
            add(tar, "1.json", b'{"caption": ')
    else:
        path.write_bytes(content)
    with pytest.raises(BadData, match=complaint):
        load_data(path)


def test_a_sample_is_drawn_evenly_by_seed_and_keeps_the_order():
    rows = [{"id": n, "caption": f"Scene {n}."} for n in range(20)]
    one, same = (load_data(rows, sample=6, seed=4).ids for _ in range(2))
    assert one == same and list(map(int, one)) == sorted(map(int, one)) and len(one) == 6
    count = Counter(row for seed in range(600) for row in load_data(rows, sample=6, seed=seed).ids)
    assert len(count) == 20 and all(130 < n < 235 for n in count.values())  # 180 expected, 4 sigma is 45
    assert load_data(rows, sample=50).ids == load_data(rows).ids
    assert set(load_data(rows, limit=8, sample=5).ids) <= {str(n) for n in range(8)}
    assert load_data((row for row in rows), sample=6, seed=4).ids == one  # read once
    with pytest.raises(ValueError, match="sample=0"):
        load_data(rows, sample=0)


def test_images_of_a_sample_are_its_own(tmp_path):
    write_parquet(tmp_path / "one.parquet", ROWS, struct=True)
    data = load_data(tmp_path / "one.parquet", sample=7, seed=2)
    by_id = {row["id"]: row["image"] for row in ROWS}
    assert [data.images.encoded(n) for n in range(7)] == [by_id[row_id] for row_id in data.ids]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(st.lists(TEXT, max_size=30), st.integers(0, 12))
def test_facts_on_disk_are_the_facts(captions, in_memory):
    here, there = split_facts(captions), split_facts(captions, in_memory=in_memory)
    assert (len(here.text) > in_memory) == isinstance(there.text, TextsOnDisk)
    assert list(there.text) == list(here.text) == [there.text[n] for n in range(len(there))]
    assert there.row.tolist() == here.row.tolist()
    assert there.n_rows == len(captions)


def test_texts_on_disk_are_a_sequence_and_leave_nothing_behind(tmp_path):
    texts = TextsOnDisk([["a", "b"], [], ["ü", "d" * 5000]], tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert (texts[-1], texts[1:3], next(reversed(texts))) == ("d" * 5000, ["b", "ü"], "d" * 5000)
    for place in (4, -5):
        with pytest.raises(IndexError):
            texts[place]
    del texts
    assert list(tmp_path.iterdir()) == []
