"""What holds the captions stays what it was: features and images of parquet, parts of messages, shards, tars."""

from __future__ import annotations

import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, Image, Value, load_dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from repair_case import audited, captions, pairs, png, records, rows, talk, write

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.data.formats.conversations import answer
from symbal_hf.data.formats.json_edit import extended, item_texts, replaced
from symbal_hf.data.formats.places import caption_of, places, with_text


def truth_of(folder: Path) -> Path:
    path = folder / "truth.jsonl"
    path.write_text("".join(json.dumps({"id": r["id"], "objects": r["objects"]}) + "\n" for r in rows()), "utf-8")
    return path


# ------------------------------------------------------------------------------------------------------------ arrow


def with_images() -> Dataset:
    given = [{**r, "image": {"bytes": png(i), "path": f"{i}.png"}} for i, r in enumerate(rows())]
    features = Features({
        "id": Value("string"), "image": Image(), "caption": Value("large_string"), "note": Value("string"),
        "objects": [Value("string")],
    })  # fmt: skip
    return Dataset.from_list([{k: r[k] for k in features} for r in given], features=features)


@pytest.mark.parametrize("policy", ["flag", "drop-sentence", "drop-row"])
def test_images_and_features_of_parquet_come_through(policy: str, tmp_path: Path) -> None:
    (tmp_path / "set" / "data").mkdir(parents=True)
    dataset = with_images()
    for n in range(3):
        dataset.shard(3, n, contiguous=True).to_parquet(tmp_path / "set" / "data" / f"train-{n}.parquet", batch_size=20)
    audited(tmp_path / "set", tmp_path / "audit")
    done = symbal_hf.repair(tmp_path / "audit", policy=policy, out=tmp_path / "out")
    assert sorted(p.name for p in done.table.iterdir()) == [f"train-{n}.parquet" for n in range(3)]
    read = load_dataset("parquet", data_dir=str(done.table), split="train", cache_dir=str(tmp_path / "hf"))
    assert {k: read.features[k] for k in dataset.features} == dict(dataset.features)
    assert read[3]["image"].size == (4, 4)
    images = {r["id"]: r["image"] for r in pq.read_table(done.table).to_pylist()}
    for row in dataset.cast_column("image", Image(decode=False)):
        assert row["id"] not in images or images[row["id"]] == row["image"]
    assert len(images) == done.counts.written
    if policy == "flag":
        errors = {r["id"]: r["symbal_errors"] for r in read}
        assert errors["r160"][0]["sentences"] == ["A sink shines!"] and errors["r159"] == []
    else:
        assert pairs(symbal_hf.audit(done.table)) == set()


def test_a_dataset_in_memory_keeps_its_features_and_paths(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{i}.png") for i in range(160)]
    for i, path in enumerate(paths):
        Path(path).write_bytes(png(i))
    given = [{k: v for k, v in r.items() if k != "note"} for r in rows()]
    dataset = Dataset.from_list([{**r, "image": p} for r, p in zip(given, paths, strict=True)]).cast_column(
        "image", Image()
    )  # fmt: skip
    result = symbal_hf.audit(dataset, scorer="objects")
    done = symbal_hf.repair(result, policy="drop-sentence", out=tmp_path / "out", source=dataset)
    table = pq.read_table(done.table)
    assert Features.from_arrow_schema(table.schema) == dataset.features
    assert all(i["bytes"] is None and i["path"] in paths for i in table["image"].to_pylist())  # nothing is copied


@pytest.mark.parametrize("kind", ["string", "large_string", "dictionary", "string_view"])
def test_every_kind_of_text_column_stays_what_it_is(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(rows())
    told = pa.dictionary(pa.int32(), pa.string()) if kind == "dictionary" else getattr(pa, kind)()
    place = table.schema.get_field_index("caption")
    column = table["caption"].combine_chunks()
    column = column.dictionary_encode() if kind == "dictionary" else column.cast(told)
    table = table.set_column(place, pa.field("caption", told, metadata={"a": "b"}), column)
    pq.write_table(table, tmp_path / "t.parquet", compression="none")
    audited(tmp_path / "t.parquet", tmp_path / "audit")
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out")
    assert pq.read_schema(done.table).equals(pq.read_schema(tmp_path / "t.parquet"), check_metadata=True)
    assert pq.read_metadata(done.table).row_group(0).column(0).compression == "UNCOMPRESSED"
    assert captions(done.table)["r160"] == "There is a toilet. It is white."


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_flags_are_not_written_twice(kind: str, tmp_path: Path) -> None:
    audited(write(kind, tmp_path, rows()), tmp_path / "audit")
    flagged = symbal_hf.repair(tmp_path / "audit", policy="flag", out=tmp_path / "flag")
    with pytest.raises(BadData, match="has a column 'symbal_errors' already"):
        symbal_hf.repair(symbal_hf.audit(flagged.table), policy="flag", out=tmp_path / "twice")


def test_bytes_need_parquet(tmp_path: Path) -> None:
    result = symbal_hf.audit(with_images(), scorer="objects")
    with pytest.raises(BadData, match="column 'image' holds what jsonl cannot hold"):
        symbal_hf.repair(
            result, policy="drop-row", out=tmp_path / "out", source=with_images(), output_format="jsonl"
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_images_are_not_all_in_memory(tmp_path: Path) -> None:
    pq.write_table(
        pa.Table.from_pylist([{**r, "image": {"bytes": bytes(1 << 20), "path": None}} for r in rows()]),
        tmp_path / "t.parquet", row_group_size=20, use_dictionary=False, compression="none",
    )  # fmt: skip
    result = audited(tmp_path / "t.parquet", tmp_path / "audit", scorer="objects")
    pa.default_memory_pool().release_unused()
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    most = []
    from symbal_hf.data.formats import write_arrow as repair_arrow

    real = repair_arrow.parquet_batches

    def watched(path: Path):
        for batch in real(path):
            most.append(pa.total_allocated_bytes() - before)
            yield batch

    from symbal_hf.data.formats import writing as repair_sources

    repair_sources.parquet_batches = watched
    try:
        symbal_hf.repair(result, policy="drop-row", out=tmp_path / "out")
    finally:
        repair_sources.parquet_batches = real
    assert max(most) < 100 << 20 and tracemalloc.get_traced_memory()[1] < 40 << 20  # of 160 MiB
    tracemalloc.stop()


# ------------------------------------------------------------------------------------------- tars, folders, others


def test_a_webdataset_becomes_a_table_with_its_images(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "t.tar", "w") as tar:
        for i, row in enumerate(rows()):
            for end, data in (("txt", row["caption"].encode()), ("png", png(i))):
                info = tarfile.TarInfo(f"{row['id']}.{end}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    audited(tmp_path / "t.tar", tmp_path / "audit", join=truth_of(tmp_path))
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out")
    read = Dataset.from_parquet(str(done.table), cache_dir=str(tmp_path / "hf"))
    assert isinstance(read.features["image"], Image) and len(read) == 150
    told = dict(zip(read["id"], read.cast_column("image", Image(decode=False))["image"], strict=True))
    assert told["r155"]["bytes"] == png(5)
    assert pairs(symbal_hf.audit(done.table, join=truth_of(tmp_path))) == set()


def test_images_with_text_files_and_a_folder_with_metadata(tmp_path: Path) -> None:
    for i, row in enumerate(rows()):
        for folder in ("loose", "table"):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{row['id']}.png").write_bytes(png(i))
        (tmp_path / "loose" / f"{row['id']}.txt").write_text(row["caption"], "utf-8")
    (tmp_path / "table" / "metadata.jsonl").write_text(
        "".join(json.dumps({**r, "file_name": f"{r['id']}.png"}) + "\n" for r in rows()), "utf-8"
    )
    truth = truth_of(tmp_path)
    audited(tmp_path / "loose", tmp_path / "a", join=truth)
    done = symbal_hf.repair(tmp_path / "a", policy="drop-row", out=tmp_path / "out-a")
    assert done.table.name == "captions.parquet" and f"--image-root {tmp_path / 'loose'}" in done.command
    audited(tmp_path / "table", tmp_path / "b")
    done = symbal_hf.repair(tmp_path / "b", policy="drop-row", out=tmp_path / "out-b")
    assert done.table.name == "metadata.jsonl" and f"--image-root {tmp_path / 'table'}" in done.command
    again = symbal_hf.audit(done.table, image_root=tmp_path / "table")
    assert pairs(again) == set() and again.counts["rows"] == 120


def test_captions_with_urls_keep_their_lines(tmp_path: Path) -> None:
    lines = [f"{r['caption'].replace(chr(10), ' ')}\thttp://x.y/{r['id']}.jpg" for r in rows()]
    lines[5] = 'A "quoted\tline\tof four\tfields'
    source = tmp_path / "cc.tsv"
    source.write_text("\n".join(lines) + "\n", "utf-8")
    truth = tmp_path / "truth.jsonl"
    truth.write_text("".join(json.dumps({"id": str(i), "objects": r["objects"]}) + "\n" for i, r in enumerate(rows())))
    result = symbal_hf.audit([
        {"id": str(i), "caption": line.split("\t")[0], "image": line.split("\t")[-1], "objects": r["objects"]}
        for i, (line, r) in enumerate(zip(lines, rows(), strict=True)) if i != 5
    ], scorer="objects")  # fmt: skip
    result.provenance["rows_sha256"] = None  # the same rows, told without objects
    done = symbal_hf.repair(result, policy="drop-sentence", out=tmp_path / "out", source=source)
    after = done.table.read_text("utf-8").splitlines()
    assert after[0] == "There is a toilet. It is white.\thttp://x.y/r160.jpg"
    assert [a for a in lines if "toilet" not in a] == [a for a in after if "toilet" not in a]
    with pytest.raises(BadData, match=r"row 5 of cc\.tsv cannot be kept in another format"):
        symbal_hf.repair(result, policy="flag", out=tmp_path / "flag", source=source)


def test_coco_captions_become_a_table(tmp_path: Path) -> None:
    made = {
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in range(160)],
        "annotations": [{"id": i, "image_id": i, "caption": r["caption"]} for i, r in enumerate(rows())],
    }
    (tmp_path / "captions.json").write_text(json.dumps(made), "utf-8")
    truth = tmp_path / "truth.jsonl"
    truth.write_text("".join(json.dumps({"image_id": i, "objects": r["objects"]}) + "\n" for i, r in enumerate(rows())))
    audited(tmp_path / "captions.json", tmp_path / "audit", join=truth, scorer="objects")
    done = symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out")
    assert [r["image_id"] for r in records(done.table)][:3] == [0, 1, 2] and done.counts.written == 150
    assert pairs(symbal_hf.audit(done.table, join=truth, scorer="objects")) == set()


def test_captions_of_the_joined_table_are_not_the_sources(tmp_path: Path) -> None:
    bare, said = tmp_path / "bare.jsonl", tmp_path / "said.jsonl"
    bare.write_text("".join(json.dumps({"id": r["id"], "objects": r["objects"]}) + "\n" for r in rows()), "utf-8")
    said.write_text("".join(json.dumps({"id": r["id"], "caption": r["caption"]}) + "\n" for r in rows()), "utf-8")
    audited(bare, tmp_path / "audit", join=said)
    with pytest.raises(BadData, match="where the joined table has"):
        symbal_hf.repair(tmp_path / "audit", policy="drop-sentence", out=tmp_path / "out")


# ------------------------------------------------------------------------------------- a caption within its row

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
PARTS = st.one_of(
    TEXT,
    st.lists(st.one_of(
        st.builds(lambda t: {"type": "text", "text": t}, TEXT), st.just({"type": "image", "image": "a.jpg"}),
    ), max_size=3),
    st.none(),
)  # fmt: skip
FORM = st.sampled_from([("from", "value", "gpt"), ("role", "content", "assistant")])
CHAT = st.builds(
    lambda form, turns: [{form[0]: form[2] if model else "user", form[1]: content} for model, content in turns],
    FORM, st.lists(st.tuples(st.booleans(), PARTS), min_size=1, max_size=4),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(CHAT, st.sampled_from(["list", "text", "columns"]), TEXT)
def test_the_caption_of_a_conversation_is_where_an_audit_reads_it(chat, held, new) -> None:
    value = {"list": chat, "text": json.dumps(chat), "columns": {k: [t[k] for t in chat] for k in chat[0]}}[held]
    found = places(value, chat=True)
    read = answer(value)
    assert bool(found) == isinstance(read, str)
    assert not found or caption_of([text for _, text in found], chat=True) == read
    for path, old in found:
        other = with_text(value, path, new)
        assert with_text(other, path, old) == value or held == "text"
        assert next((text for p, text in places(other, chat=True) if p == path), new) == new


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.one_of(TEXT, st.integers(), st.floats(allow_nan=False), st.booleans(), st.none()),
                    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
                    max_leaves=8), TEXT, st.sampled_from([None, 1, "\t"]), st.booleans())  # fmt: skip
def test_only_the_value_at_its_place_changes_in_json(value, new, indent, ascii_only) -> None:
    row = {"a": value, "caption": "old", "z": [value, {"caption": "inner"}]}
    text = json.dumps(row, indent=indent, ensure_ascii=ascii_only)
    for path, expected in (
        (("caption",), {**row, "caption": new}),
        (("z", 1, "caption"), {**row, "z": [value, {"caption": new}]}),
    ):
        after = replaced(text, path, new)
        assert json.loads(after) == expected
        assert after.replace(json.dumps(new, ensure_ascii=text.isascii()), "", 1) != text
    assert json.loads(extended(text, {"f": None, "e": [new]})) == {**row, "f": None, "e": [new]}
    assert replaced(replaced(text, ("caption",), new), ("caption",), "old") == text


@given(st.lists(st.dictionaries(TEXT, TEXT, max_size=3), max_size=6), st.sampled_from([None, 0, 2]))
@settings(deadline=None)
def test_the_pieces_of_a_list_are_the_file(tmp_path_factory, items, indent) -> None:
    path = tmp_path_factory.mktemp("json") / "list.json"
    path.write_text(json.dumps(items, indent=indent) + "\n", "utf-8")
    pieces = list(item_texts(path))
    assert "".join(a + b for a, b in pieces) == path.read_text("utf-8")
    assert [json.loads(item) for _, item in pieces if item] == items


def test_long_lists_are_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from symbal_hf.data.formats import json_edit

    monkeypatch.setattr(json_edit, "CHUNK", 7)
    items = [{"id": i, "conversations": talk("é" * i + ' "a", ]}')} for i in range(40)]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(items, ensure_ascii=False, indent=3), "utf-8")
    pieces = list(item_texts(path))
    assert "".join(a + b for a, b in pieces) == path.read_text("utf-8") and len(pieces) == 41
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")
    with pytest.raises(BadData, match="cut off"):
        list(item_texts(path))
