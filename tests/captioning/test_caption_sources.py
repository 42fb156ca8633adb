"""What is captioned and where it goes: sources keep their ids and columns, and no file of somebody else's is lost."""

from __future__ import annotations

import io
import json
import shutil
import tarfile

import pytest
from chat_fakes import essay, picture
from typer.testing import CliRunner

import symbal_hf
from symbal_hf.cli.app import app
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.images_only import load_images
from symbal_hf.data.origin import about
from symbal_hf.data.table import load_data
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer

PROMPT = Prompts().render("describe_image")
PICTURES = {name: picture("PNG", number) for number, name in enumerate("cab")}  # not in the order of their names
OBJECTS = {"a": ["dog"], "b": [], "c": ["cat", "car"]}


class Model:
    """Says of every image what only that image makes it say; counts what it is asked."""

    revision = "1"

    def __init__(self, name="hf:tiny"):
        self.name, self.asked = name, 0

    def generate(self, conversations, *, max_new_tokens, temperature=0.0, seed=0):
        for place, (message,) in enumerate(conversations):
            self.asked += 1
            yield place, Answer(text=essay(message.text, message.images) + f" {temperature} {seed}" * (temperature > 0))

    def probability_of_yes(self, conversations):
        raise NotImplementedError


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store" / "s.sqlite")


def files(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, encoded in PICTURES.items():
        (folder / f"{name}.png").write_bytes(encoded)
    return folder


def as_folder(tmp_path):
    return files(tmp_path / "photos"), [*"abc"]


def as_table(tmp_path):
    rows = [{"id": n, "file_name": f"photos/{n}.png", "objects": OBJECTS[n], "when": 1.5} for n in PICTURES]
    files(tmp_path / "photos")
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return tmp_path / "table.jsonl", [*"cab"]


def as_folder_with_table(tmp_path):
    rows = [{"image_id": n, "file_name": f"{n}.png", "objects": OBJECTS[n]} for n in PICTURES]
    folder = files(tmp_path / "photos")
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "odd.json").write_text('{"not": "a table"}')
    (folder / "notes.csv").write_bytes(b"\xff\xfe\x00")
    return folder, [*"cab"]


def rows_of_bytes():
    return [{"id": n, "image": {"bytes": PICTURES[n], "path": None}, "objects": OBJECTS[n]} for n in PICTURES]


def as_parquet(tmp_path):
    from datasets import Dataset

    Dataset.from_list(rows_of_bytes()).to_parquet(str(tmp_path / "rows.parquet"))
    return tmp_path / "rows.parquet", [*"cab"]


def as_shards(tmp_path):
    from datasets import Dataset

    (tmp_path / "set" / "data").mkdir(parents=True)
    for i, row in enumerate(rows_of_bytes()):
        Dataset.from_list([row]).to_parquet(str(tmp_path / "set" / "data" / f"part-{i}.parquet"))
    return tmp_path / "set", [*"cab"]


def as_tar(tmp_path):
    with tarfile.open(tmp_path / "rows.tar", "w") as tar:
        for n, encoded in PICTURES.items():
            for name, content in ((f"{n}.png", encoded), (f"{n}.json", json.dumps({"objects": OBJECTS[n]}).encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return tmp_path / "rows.tar", [*"cab"]


def as_dataset(tmp_path):
    from datasets import Dataset, Features, Image, List, Value

    features = Features(id=Value("string"), image=Image(), objects=List(Value("string")))
    return Dataset.from_list(rows_of_bytes(), features=features), [*"cab"]


def as_rows(tmp_path):
    return iter(rows_of_bytes()), [*"cab"]


ON_DISK = [as_folder, as_table, as_folder_with_table]
INSIDE = [as_parquet, as_shards, as_tar, as_dataset, as_rows]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("make", [*ON_DISK, *INSIDE])
def test_an_audit_gets_the_same_ids_images_and_columns(tmp_path, model, store, make, form):
    source, ids = make(tmp_path)
    out = tmp_path / "out" / f"captions.{form}"
    if form == "jsonl" and make in INSIDE:
        with pytest.raises(BadData, match=r"no files of their own.*give --out captions.parquet, which holds them"):
            symbal_hf.caption(source, model=model, out=out, store=store)
        assert model.asked == 0 and not out.exists()
        return
    done = symbal_hf.caption(source, model=model, out=out, store=store)
    assert (done.captioned, done.rows, model.asked) == (3, 3, 3)
    data = load_data(out)
    assert list(data.ids) == ids
    assert data.captions == tuple(essay(PROMPT, (PICTURES[n],)) for n in ids)
    assert [data.images.encoded(i) for i in range(3)] == [PICTURES[n] for n in ids]
    if make is not as_folder:
        assert data.objects == tuple(frozenset(OBJECTS[n]) for n in ids)
    if form == "parquet":
        from datasets import load_dataset

        rows = load_dataset("parquet", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
        assert [row["image"].size for row in rows] == [(8, 8)] * 3 and rows["id"] == ids


def test_ids_are_paths_below_the_folder_and_all_different(tmp_path, model, store):
    folder = files(tmp_path / "photos")
    files(folder / "more" / "deep")
    (folder / "a.jpg").write_bytes(picture("JPEG", 9))
    done = symbal_hf.caption(folder, model=model, out=tmp_path / "c.jsonl", store=store)
    data = load_data(done.path)
    deep = [f"more/deep/{n}" for n in "abc"]
    assert list(data.ids) == ["a.jpg", "a.png", "b", "c", *deep]
    assert model.asked == 4 and done.captioned == 7  # equal images are asked about once
    with_texts = folder / "a.txt"
    with_texts.write_text("x")  # an image with a text has the id that it has without
    assert load_images(folder).ids == load_data(folder, on_bad_row="skip").ids + data.ids[2:]


def test_a_caption_of_the_source_is_kept_beside_the_new_one(tmp_path, model, store):
    files(tmp_path)
    rows = [{"id": n, "image": f"{n}.png", "caption": f"old {n}", "references": ["true"], "odd": None} for n in "ab"]
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, [*rows, rows[0]])))
    done = symbal_hf.caption(tmp_path / "old.jsonl", model=model, out=tmp_path / "new.jsonl", store=store)
    first = json.loads(done.path.read_text().splitlines()[0])
    assert (first["source_caption"], first["references"]) == ("old a", ["true"])
    assert [(row.row_id, row.reason) for row in done.skipped] == [("a", "its id is the same as that of row 0")]
    data = load_data(done.path)
    assert data.captions[0] == first["caption"] != "old a" and data.references == (("true",), ("true",))
    again = symbal_hf.caption(done.path, model=Model("hf:other"), out=tmp_path / "newer.jsonl", store=store)
    assert load_data(again.path).ids == data.ids


def test_values_that_no_file_can_hold_as_they_are(tmp_path, model, store):
    rows = [dict(row, mixed=[1, "two"][i % 2], raw=b"x", nan=float("nan")) for i, row in enumerate(rows_of_bytes())]
    done = symbal_hf.caption(rows, model=model, out=tmp_path / "c.parquet", store=store)
    from pyarrow import parquet

    table = parquet.read_table(done.path)
    assert table.column_names[:2] == ["id", "caption"] and table["mixed"].to_pylist() == ["1", '"two"', "1"]
    assert not {"raw", "nan"} & set(table.column_names)


def test_images_elsewhere_are_found_while_the_file_is_where_it_was_written(tmp_path, model, store):
    folder, out = files(tmp_path / "photos"), tmp_path / "results" / "captions.jsonl"
    done = symbal_hf.caption(folder, model=model, out=out, store=store)
    data = load_data(done.path)
    assert data.images.root == folder and data.images.encoded(0) == PICTURES["a"]
    moved = shutil.copytree(out.parent, tmp_path / "moved") / out.name
    with pytest.raises(ValueError, match="no image file"):  # a file from elsewhere names no folders of this machine
        load_data(moved).images.encoded(0)
    assert load_data(moved, image_root=folder).images.encoded(0) == PICTURES["a"]
    beside = symbal_hf.caption(folder, model=model, out=tmp_path / "c.jsonl", store=store)
    assert beside.provenance["image_root"] is None  # and so it can move together with its images


def test_a_file_among_the_images_is_no_source_and_is_completed(tmp_path, model, store):
    folder = files(tmp_path / "photos")
    out = folder / "captions.jsonl"
    symbal_hf.caption(folder, model=model, out=out, limit=2, store=store)
    assert len(out.read_text().splitlines()) == 2
    done = symbal_hf.caption(folder, model=model, out=out, store=store)
    assert (done.captioned, done.cached, model.asked) == (3, 2, 3)
    other = symbal_hf.caption(folder, model=Model("hf:other"), out=folder / "other.jsonl", store=store)
    assert other.captioned == 3 and load_data(out).ids == load_data(other.path).ids == ("a", "b", "c")
    assert load_data(folder).captions == load_data(out).captions


def test_a_file_of_anything_else_is_left_alone(tmp_path, model, store):
    folder, out = files(tmp_path / "photos"), tmp_path / "c.jsonl"

    def refused(said, **options):
        before = out.read_bytes()
        with pytest.raises(BadData, match=said) as caught:
            symbal_hf.caption(**({"images": folder, "model": model, "out": out, "store": store} | options))
        assert out.read_bytes() == before and str(out) in str(caught.value) and "\n" not in str(caught.value)

    out.write_text('{"id": "a"}\n')
    refused("was not written by `symbal caption`")
    out.unlink()
    symbal_hf.caption(folder, model=model, out=out, store=store)
    asked = model.asked
    refused(r"another run \(model 'hf:tiny', not 'hf:other'\)", model=Model("hf:other"))
    refused("another run .prompt", prompt="What is here?")
    refused("another run .max_tokens 512, not 5", max_tokens=5)
    refused("another run .temperature", temperature=0.5)
    refused("captions of 1 images that are not among the 2", limit=2)
    out.write_text(out.read_text().replace("Answer", "answer"))
    refused("has been changed since")
    assert model.asked == asked
    with pytest.raises(BadData, match=r"c\.csv'; captions are written to a .jsonl or .parquet file"):
        symbal_hf.caption(folder, model=model, out=tmp_path / "c.csv", store=store)


def test_a_run_that_dies_between_its_two_files_is_taken_up(tmp_path, model, store, monkeypatch):
    folder, out = files(tmp_path / "photos"), tmp_path / "c.jsonl"
    symbal_hf.caption(folder, model=model, out=out, limit=1, store=store)
    from pathlib import Path

    real = Path.replace

    def dies(self, target):
        if target == out:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        symbal_hf.caption(folder, model=model, out=out, store=store)
    monkeypatch.setattr(Path, "replace", real)
    assert len(out.read_text().splitlines()) == 1 and about(out).is_file()
    assert symbal_hf.caption(folder, model=model, out=out, store=store).captioned == 3


def test_prompts_of_ones_own(tmp_path, model, store):
    folder = files(tmp_path / "photos")
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "describe_image.jinja").write_text("What is {{ 'here' }}?\n")
    done = symbal_hf.caption(folder, model=model, out=tmp_path / "a.jsonl", prompts=own, store=store)
    assert done.provenance["prompt"] == "What is here?"
    word = symbal_hf.caption(folder, model=model, out=tmp_path / "b.jsonl", prompt="Say {{ x }} {%", store=store)
    assert word.provenance["prompt"] == "Say {{ x }} {%"  # word for word
    drawn = symbal_hf.caption(folder, model=model, out=tmp_path / "d.jsonl", temperature=0.7, seed=4, store=store)
    assert load_data(drawn.path).captions[0].endswith(" 0.7 4")
    shutil.move(own / "describe_image.jinja", own / "caption_of_image.jinja")
    for options, said in (
        ({"prompts": own}, "holds no describe_image.jinja"), ({"prompts": own, "prompt": "a"}, "not both"),
        ({"prompt": " "}, "asks nothing"), ({"max_tokens": 0}, "max_tokens=0"), ({"temperature": -1}, "temperature=-1"),
        ({"image_column": "photo"}, "no column 'photo' for the image"), ({"sample": 0}, "sample=0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            symbal_hf.caption(folder, model=model, out=tmp_path / "e.jsonl", store=store, **options)


SERVER = "openai:http://127.0.0.1:9/v1#m"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"concurrency": 0}, "concurrency=0; it must be >= 1"),
        ({"concurrency": -5, "model": SERVER}, "concurrency=-5; it must"),
        ({"batch_size": 0, "model": SERVER}, "batch_size=0; it must"),
        ({"device": "banana", "model": "hf:a/b"}, "no device 'banana'; give 'auto', 'cpu'"),
        ({"device": "banana", "model": SERVER}, "no device 'banana'"),
        ({"dtype": "float7", "model": "hf:a/b"}, "no dtype 'float7'"),
        ({"device_map": "banana", "model": "hf:a/b"}, "no device 'banana'"),
        ({"device": "cpu", "model": SERVER}, "device='cpu' changes nothing: a model at a server runs there"),
        ({"dtype": "float16", "model": SERVER}, "dtype='float16' changes nothing: a model at a server"),
        ({"device_map": "auto"}, "device_map='auto' changes nothing: a model given as an object"),
        ({"prompts": "/no/such/folder"}, "no folder /no/such/folder with prompts"),
        ({"model": "blip"}, "model='blip'; give hf:MODEL"),
    ],
)
def test_an_option_that_could_have_no_effect_is_refused(tmp_path, model, store, options, said):
    with pytest.raises(ValueError, match=said) as caught:
        symbal_hf.caption(**{"images": files(tmp_path), "model": model, "out": tmp_path / "c.jsonl"} | options)
    assert "\n" not in str(caught.value) and model.asked == 0 and not (tmp_path / "c.jsonl").exists()


def test_the_command_refuses_a_folder_without_prompts(tmp_path):
    folder, empty = files(tmp_path / "photos"), tmp_path / "empty"
    empty.mkdir()
    for prompts, said in ((empty, "holds no prompt"), (folder, "holds no prompt"), (tmp_path / "none", "no folder")):
        command = ["caption", str(folder), "--model", SERVER, "--out", str(tmp_path / "c.jsonl"), "--prompts", prompts]
        failed = CliRunner().invoke(app, list(map(str, command)))
        assert failed.exit_code and said in str(failed.exception)


def test_the_command_says_what_it_will_cost_and_what_comes_next(tmp_path, monkeypatch):
    folder = files(tmp_path / "photos")
    (folder / "b.png").write_bytes(b"no picture")
    monkeypatch.setattr("symbal_hf.captioning.caption.load_chat", lambda spec, **options: Model(spec))
    monkeypatch.setenv("SYMBAL_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "c.jsonl"
    done = CliRunner().invoke(app, ["caption", str(folder), "--model", "llava-1.5-7b", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "read images in photos: 3 images, about 587 tokens each to read and at most 512 to write" in done.output
    assert "16 GB of GPU memory, 14.1 GB to download, licence Llama 2" in done.output
    assert (
        "left out row b: unreadable image" in done.output and "2 captions, 0 known from before; 1 rows" in done.output
    )
    assert f"next: symbal audit {out} --out audit" in done.output
    empty = tmp_path / "empty"
    empty.mkdir()
    for source, said in ((empty, "holds no images"), (tmp_path / "none.jsonl", "no file")):
        failed = CliRunner().invoke(app, ["caption", str(source), "--model", "hf:a/b", "--out", str(out)])
        assert said in str(failed.exception)
