"""Files as their makers write them: each format is told by its structure, and what it cannot give is told by row."""

import base64
import io
import json
import pickle
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from symbal_hf.core.errors import BadData
from symbal_hf.data.table import load_data


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
    return path


def png(shade=0):
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, 0, 0)).save(out, "PNG")
    return out.getvalue()


def shade(data, row):
    return Image.open(io.BytesIO(data.images.encoded(row))).getpixel((0, 0))[0]


def asked(text):
    return {"from": "human", "value": text}


def said(text):
    return {"from": "gpt", "value": text}


SHAREGPT4V = [
    {
        "id": "000000000009",
        "image": "coco/train2017/000000000009.jpg",
        "conversations": [
            asked("What do you see in this image?\n<image>"),
            said("A cat on a mat.\n\nA dog."),
        ],
    },
    {
        "id": "sa_1",
        "image": "sam/images/sa_1.jpg",
        "conversations": [asked("<image>\nDescribe this image."), said("Zwei Hunde spielen. 🐶")],
    },
]


# ---------------------------------------------------------------------------------------------------- conversations


def test_sharegpt4v_is_its_first_answers_and_its_images_lie_below_the_root(tmp_path):
    path = write(tmp_path / "sharegpt4v" / "cap100k.json", SHAREGPT4V)
    (tmp_path / "coco" / "train2017").mkdir(parents=True)
    (tmp_path / "coco" / "train2017" / "000000000009.jpg").write_bytes(png(7))
    data = load_data(path, image_root=tmp_path)
    assert data.captions == ("A cat on a mat.\n\nA dog.", "Zwei Hunde spielen. 🐶")
    assert data.ids == ("000000000009", "sa_1") and not data.skipped
    assert data.source == "LLaVA/ShareGPT4V JSON cap100k.json"
    assert shade(data, 0) == 7
    with pytest.raises(ValueError, match="no image file"):
        data.images.encoded(1)


LLAVA_PITFALLS = [
    # no id; the stand-in stands behind the question and, in some files, in the answer too
    ({"image": "a.jpg", "conversations": [asked("Look.\n<image>"), said("<image>\nA bus.")]}, "A bus."),
    # a conversation: its first answer, and no question
    (
        {
            "id": 5,
            "image": "b.jpg",
            "conversations": [asked("<image>\nIs there a dog?"), said("A red car."), asked("Sure?"), said("Yes")],
        },
        "A red car.",
    ),
    ({"id": 6, "image": "c.jpg", "conversations": [{"from": "system", "value": "Help."}, said("A kite.")]}, "A kite."),
    ({"id": 7, "conversations": [asked("What is 2 + 2?"), said("Four.")]}, ["it has no image"]),
    ({"id": 8, "image": "", "conversations": [asked("What is 2 + 2?"), said("Four.")]}, ["it has no image"]),
    ({"id": 9, "image": ["a.jpg", "b.jpg"], "conversations": [asked("?"), said("Both.")]}, ["it is about 2 images"]),
    ({"id": 10, "image": ["d.jpg"], "conversations": [asked("<image>"), said("One.")]}, "One."),
    ({"id": 11, "image": "e.jpg", "conversations": [asked("<image>\nWhat is it?")]}, ["no answer of"]),
    ({"id": 12, "image": "e.jpg", "conversations": []}, ["it has no conversation"]),
    ({"id": 13, "image": "e.jpg", "conversations": [asked("<image>"), said(" ")]}, ["no answer of"]),
]


@pytest.mark.parametrize("form", ["json", "jsonl", "json of lines", "rows"])
def test_each_sample_of_a_llava_file_is_a_row_or_a_reason(tmp_path, form):
    samples = [sample for sample, _ in LLAVA_PITFALLS]
    source = tmp_path / f"mix.{'jsonl' if form == 'jsonl' else 'json'}"
    if form == "rows":
        source = samples
    elif form == "json":
        write(source, samples)
    else:
        source.write_text("\n".join(map(json.dumps, samples)), "utf-8")
    data = load_data(source)
    assert data.captions == tuple(said for _, said in LLAVA_PITFALLS if isinstance(said, str))
    reasons = {str(sample["id"]): said[0] for sample, said in LLAVA_PITFALLS if isinstance(said, list)}
    assert {row.row_id for row in data.skipped} == reasons.keys()
    assert all(reasons[row.row_id] in row.reason for row in data.skipped)
    assert [data.images._column[row] for row in data.images._rows] == ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]


def test_text_only_samples_before_the_first_image_are_told_too(tmp_path):
    text = {"id": "t", "conversations": [asked("Hello."), said("Hi there.")]}
    data = load_data(write(tmp_path / "a.json", [text | {"id": f"t{n}"} for n in range(50)] + SHAREGPT4V))
    assert len(data) == 2 and len(data.skipped) == 50 and data.images is not None


def test_samples_of_one_image_are_rows_of_their_own_and_have_its_partner(tmp_path):
    samples = [
        {"id": "000000033471", "image": "000000033471.jpg", "conversations": [asked("<image>"), said(f"Bus {n}.")]}
        for n in range(3)
    ]
    path = write(tmp_path / "llava_instruct_150k.json", samples)
    assert load_data(path).ids == ("000000033471", "000000033471#2", "000000033471#3")
    truth = write(tmp_path / "objects.json", [{"image_id": 33471, "objects": ["bus"]}])
    assert load_data(path, join=truth).objects == (frozenset({"bus"}),) * 3
    same = write(tmp_path / "same.json", [{"id": "000000033471", "references": ["A bus."]}])
    assert load_data(path, join=same).references == (("A bus.",),) * 3


PARTS = [{"type": "image"}, {"type": "text", "text": "Describe."}]


def chat(*content, role="assistant"):
    return [{"role": "user", "content": PARTS}, *({"role": role, "content": one} for one in content)]


@pytest.mark.parametrize(
    "answers",
    [["A cat."], [[{"type": "text", "text": "A cat."}]], ["", "A cat."], [None, "A cat.", "Second."]],
    ids=["text", "parts", "empty first", "null first"],
)
@pytest.mark.parametrize("column", ["messages", "dialogue"])
def test_chat_messages_are_found_by_their_structure(answers, column):
    rows = [{column: chat(*answers), "image": "a.png", "other": [1]}]
    data = load_data(rows)
    assert data.captions == ("A cat.",) and data.source == "the given rows of chat messages"


def test_messages_that_carry_their_images(tmp_path):
    (tmp_path / "a.png").write_bytes(png(3))
    inline = "data:image/png;base64," + base64.b64encode(png(9)).decode()

    def row(*images):
        return {"messages": [{"role": "user", "content": [*images, {"type": "text", "text": "What is it?"}]},
                             {"role": "assistant", "content": "A cat."}]}  # fmt: skip

    rows = [
        row({"type": "image", "image": "a.png"}),
        row({"type": "image_url", "image_url": {"url": inline}}),
        row({"type": "image", "image": "a.png"}, {"type": "image", "image": "a.png"}),
        row(),
    ]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    data = load_data(tmp_path / "chat.jsonl")
    assert data.ids == ("0", "1") and [shade(data, n) for n in range(2)] == [3, 9]
    assert [s.reason.partition(";")[0] for s in data.skipped] == ["it is about 2 images", "it has no image"]


@pytest.mark.parametrize("kind", ["dataset", "parquet", "shards"])
def test_chats_of_a_dataset_keep_their_images_where_they_are(tmp_path, kind):
    from datasets import Dataset

    pictures = [Image.new("RGB", (4, 4), (value, 0, 0)) for value in (10, 20, 30)]
    rows = Dataset.from_dict(
        {
            "images": [[pictures[0]], [pictures[1], pictures[1]], [pictures[2]]],
            "messages": [chat([{"type": "text", "text": f"Cat {n}."}]) for n in range(3)],
        }
    )
    source = rows
    if kind != "dataset":
        for shard in range(2 if kind == "shards" else 1):
            rows.to_parquet(str(tmp_path / f"train-{shard}.parquet"))
        source = tmp_path if kind == "shards" else tmp_path / "train-0.parquet"
    data = load_data(source)
    assert data.captions[:3] == ("Cat 0.", "Cat 1.", "Cat 2.") and "chat messages" in data.source
    again = pickle.loads(pickle.dumps(data.images)) if kind != "dataset" else data.images
    assert Image.open(io.BytesIO(again.encoded(2))).getpixel((0, 0))[0] == 30
    with pytest.raises(ValueError, match="2 images in this row"):
        again.encoded(1)


def test_conversations_of_a_parquet_file_of_structs_may_be_joined_and_lack_images(tmp_path):
    rows = [
        {"id": f"r{n}", "image": None if n == 1 else {"bytes": png(n), "path": None}, "data_source": "x",
         "conversations": [asked("<image>\n" * n + "What?"), said(f"Cat {n}.")]} for n in range(3)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    data = load_data(tmp_path / "a.parquet")
    assert data.ids == ("r0", "r1") and data.source == "LLaVA/ShareGPT4V conversations a.parquet"
    assert [s.reason.partition(";")[0] for s in data.skipped] == ["it is about 2 images"]  # as its text tells
    assert shade(data, 0) == 0
    with pytest.raises(ValueError, match="no image in this row"):
        data.images.encoded(1)
    truth = write(tmp_path / "truth.json", [{"id": "r2", "objects": ["cat"]}, {"id": "r0", "objects": []}])
    joined = load_data(tmp_path / "a.parquet", join=truth)
    assert dict(zip(joined.ids, joined.objects, strict=True)) == {"r0": frozenset(), "r2": {"cat"}}
    assert [(s.row_id, "no image" in s.reason) for s in joined.skipped] == [("r1", True)]


def test_conversations_inside_of_tars(tmp_path):
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for n in range(2):
            told = json.dumps({"conversations": [asked("<image>"), said(f"Cat {n}.")]}).encode()
            for name, content in ((f"{n}.png", png(n + 4)), (f"{n}.json", told)):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    data = load_data(tmp_path / "0.tar")
    assert data.captions == ("Cat 0.", "Cat 1.") and [shade(data, n) for n in range(2)] == [4, 5]


def test_other_forms_of_turns_are_understood():
    columnar = {"from": ["human", "gpt"], "value": ["<image>\nWhat?", "A cat."]}
    cauldron = [{"user": "What?", "assistant": "A cat.", "source": "x"}]
    as_text = json.dumps([asked("What?"), said("A cat.")])
    for value in (columnar, cauldron, as_text):
        assert load_data([{"conversations": value}]).captions == ("A cat.",)


def test_a_caption_column_wins_and_formats_can_be_forced(tmp_path):
    rows = [{"caption": "A dog.", "conversations": [asked("?"), said("A cat.")], "image": "a.png"}]
    path = write(tmp_path / "both.json", rows)
    assert load_data(path).captions == ("A dog.",)
    assert load_data(path, source_format="conversations").captions == ("A cat.",)
    assert load_data(path, caption_column="conversations").captions == ("A cat.",)
    plain = write(tmp_path / "plain.json", [{"text": "A bus.", "image": "a.png"}])
    for name, complaint in (("conversations", "no column of conversations"), ("coco", "no COCO JSON"),
                            ("url-tsv", "not a caption, a tab and a URL"), ("sidecars", "is a file")):  # fmt: skip
        with pytest.raises(BadData, match=complaint):
            load_data(plain, source_format=name)
    with pytest.raises(BadData, match="no caption column"):
        load_data(write(tmp_path / "chat.json", SHAREGPT4V), source_format="table")


# ------------------------------------------------------------------------------------------------------------- COCO

IMAGES = [{"id": 139, "file_name": "000000000139.jpg", "width": 640, "height": 426, "license": 2},
          {"id": 285, "file_name": "000000000285.jpg", "width": 586, "height": 640, "license": 4},
          {"id": 632, "file_name": "000000000632.jpg", "width": 640, "height": 483, "license": 3}]  # fmt: skip


def coco(*captions):
    annotations = [{"image_id": image, "id": 900 + n, "caption": text} for n, (image, text) in enumerate(captions)]
    return {"info": {"year": 2017}, "licenses": [{"id": 1}], "images": IMAGES, "annotations": annotations}


def test_coco_s_captions_are_one_row_an_image_with_the_folder_that_coco_unpacks(tmp_path):
    path = write(tmp_path / "annotations" / "captions_val2017.json",
                 coco((285, "A bear."), (139, "A room."), (285, "A grizzly.")))  # fmt: skip
    (tmp_path / "val2017").mkdir()
    (tmp_path / "val2017" / "000000000285.jpg").write_bytes(png(5))
    data = load_data(path)
    assert dict(zip(data.ids, data.captions, strict=True)) == {"139": "A room.", "285": "A bear.\nA grizzly."}
    assert data.source.startswith("COCO captions JSON (3 captions of 2 images, one row an image)")
    assert [(s.row_id, s.reason) for s in data.skipped] == [("632", "it has no caption")]
    assert shade(data, data.ids.index("285")) == 5


def test_results_are_joined_with_coco_s_captions_and_instances(tmp_path):
    results = write(tmp_path / "results.json", [{"image_id": n, "caption": f"Scene {n}."} for n in (632, 139, 285)])
    assert load_data(results).source == "results JSON results.json"
    told = write(tmp_path / "captions.json", coco((139, "A room."), (139, "A TV."), (285, "A bear.")))
    data = load_data(results, join=told)
    assert data.references == ((), ("A room.", "A TV."), ("A bear.",)) and data.ids == ("632", "139", "285")
    assert data.images._column[1] == "000000000139.jpg"  # the results name no images, and the annotations do
    # the ids of the classes have gaps: 90 is the 80th; groups count, and an image without any has none of them
    instances = {
        "images": IMAGES,
        "categories": [{"id": 1, "name": "person"}, {"id": 90, "name": "toothbrush"}],
        "annotations": [
            {"id": 1, "image_id": 139, "category_id": 90, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 0},
            {"id": 2, "image_id": 139, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 1},
            {"id": 3, "image_id": 139, "category_id": 1, "bbox": [1, 2, 3, 4], "area": 9.5, "iscrowd": 0},
        ],
    }
    path = write(tmp_path / "instances.json", instances)
    assert load_data(results, join=path).objects == (frozenset(), {"person", "toothbrush"}, frozenset())
    with pytest.raises(BadData, match="instances, not captions"):
        load_data(path)
    instances["categories"].pop()
    with pytest.raises(BadData, match="category_id 90"):
        load_data(results, join=write(tmp_path / "odd.json", instances))


def test_an_image_column_of_the_source_is_kept_when_another_table_is_joined(tmp_path):
    rows = [{"image_id": 139, "image_path": "mine.png", "caption": "A room."}]
    told = write(tmp_path / "captions.json", coco((139, "A room.")))
    assert load_data(write(tmp_path / "mine.json", rows), join=told).images._column == ["mine.png"]


def test_the_real_captions_of_coco_become_coco_s_own_format_and_come_back(shared_data, tmp_path):
    rows = [json.loads(line) for line in (shared_data / "coco/text/captions_val2017_all5000.jsonl").open()]
    images = [{"id": row["image_id"], "file_name": f"{row['image_id']:012d}.jpg"} for row in rows]
    annotations = [{"image_id": row["image_id"], "id": 10 * n + k, "caption": text}
                   for n, row in enumerate(rows) for k, text in enumerate(row["captions"])]  # fmt: skip
    told = write(tmp_path / "captions_val2017.json", {"images": images, "annotations": annotations})
    model = shared_data / "mllm_coco/mllm_captions/lessismore__llava-1.5-13b.jsonl"
    captions = {row["image_id"]: row["caption"] for row in map(json.loads, model.open())}
    known = {row["image_id"]: tuple(row["captions"]) for row in rows}
    data = load_data(model, join=told) if captions.keys() & known.keys() else load_data(told)
    assert len(load_data(told)) == 5000
    for row_id, references in zip(data.ids, data.references or (), strict=True):
        assert references == known.get(int(row_id), ())


def test_real_answers_of_a_model_come_back_from_a_file_of_conversations(shared_data, tmp_path):
    model = shared_data / "mllm_coco/mllm_captions/pope__minigpt4__instruction1.jsonl"
    rows = [json.loads(line) for line in model.open()]
    samples = [{"id": f"{r['image_id']:012d}", "image": f"coco/val2014/COCO_val2014_{r['image_id']:012d}.jpg",
                "conversations": [asked("<image>\nDescribe."), said(r["caption"])]} for r in rows]  # fmt: skip
    for sample in samples[::2]:  # as in files whose images are called by the id alone
        sample["image"] = f"coco/val2017/{sample['id']}.jpg"
    data = load_data(write(tmp_path / "llava.json", samples), join=shared_data / "mllm_coco/objects_chair.jsonl")
    plain = load_data(model, join=shared_data / "mllm_coco/objects_chair.jsonl")
    assert data.captions == plain.captions and data.objects[::2] == plain.objects[::2]


# ------------------------------------------------------------------------------------------ where it all comes from


def test_a_hub_name_carries_configuration_split_and_revision(monkeypatch):
    import datasets

    calls = []

    def load(*args, **options):
        calls.append((args, options))
        return datasets.Dataset.from_list(
            [{"id": "a", "image": "a.png", "conversations": [asked("?"), said("A cat.")]}]
        )

    monkeypatch.setattr(datasets, "load_dataset", load)
    data = load_data("ns/name:cfg@test[:10]#refs/pr/3")
    assert calls == [(("ns/name", "cfg"), {"split": "test[:10]", "revision": "refs/pr/3"})]
    assert data.captions == ("A cat.",)
    assert data.source == "LLaVA/ShareGPT4V conversations of ns/name:cfg@test[:10]#refs/pr/3"
    load_data("ns/name#v1.0")
    assert calls[1] == (("ns/name", None), {"split": None, "revision": "v1.0"})


def test_the_command_and_the_findings_say_what_was_read(tmp_path):
    from symbal_hf.auditing.engine import audit
    from symbal_hf.cli.app import app

    samples = [{"id": f"s{n}", "image": f"{n}.jpg", "conversations": [asked("<image>"), said("A cat sits. A dog.")]}
               for n in range(12)]  # fmt: skip
    path = write(tmp_path / "llava.json", samples)
    truth = write(tmp_path / "truth.json", [{"id": f"s{n}", "objects": ["cat"]} for n in range(12)])
    told = f"LLaVA/ShareGPT4V JSON llava.json: 12 rows, 0 left out, images under {tmp_path}"
    done = CliRunner().invoke(app, ["audit", str(path), "--join", str(truth), "--out", str(tmp_path / "out"),
                                    "--source-format", "conversations", "--allow-download"])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert told in done.output.replace("\n", " ")
    findings = json.loads((tmp_path / "out" / "findings.json").read_text())
    assert findings["provenance"]["source"] == "LLaVA/ShareGPT4V JSON llava.json"
    result = audit(path, join=truth, source_format="conversations", allow_download=False)
    assert result.provenance["source"] == findings["provenance"]["source"]
