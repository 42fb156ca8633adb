"""What goes in: every kind of source gives the same rows, and bad input gives a sentence, never a shift of rows."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from symbal_hf.core.errors import BadData
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images, load_data
from symbal_hf.data.vocabulary import load_vocabulary

ROWS = [
    {"id": "a", "caption": "A dog on a mat.", "objects": ["dog"]},
    {"id": "b", "caption": "A cat on a chair.", "objects": ["cat", "chair"]},
    {"id": "c", "caption": "Zwei Hunde spielen. 🐶🐶", "objects": None},
]


def write(path, rows):
    path.write_text("\n".join(json.dumps(r) for r in rows), "utf-8")
    return path


def picture(folder, name, size=(20, 10), mode="RGB", **options):
    folder.mkdir(exist_ok=True)
    Image.new(mode, size).save(folder / name, **options)
    return name


def as_jsonl(tmp_path):
    return write(tmp_path / "rows.jsonl", ROWS)


def as_json(tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps(ROWS), "utf-8")
    return tmp_path / "rows.json"


def as_parquet(tmp_path):
    from datasets import Dataset

    Dataset.from_list(ROWS).to_parquet(str(tmp_path / "rows.parquet"))
    return tmp_path / "rows.parquet"


def as_csv(tmp_path):
    lines = ["id,caption,objects"] + [f'{r["id"]},"{r["caption"]}","{",".join(r["objects"] or [])}"' for r in ROWS]
    (tmp_path / "rows.csv").write_text("\n".join(lines), "utf-8-sig")
    return tmp_path / "rows.csv"


def as_folder(tmp_path):
    write(tmp_path / "captions.jsonl", ROWS)
    return tmp_path


def as_dataset(tmp_path):
    from datasets import Dataset

    return Dataset.from_list(ROWS)


def as_rows(tmp_path):
    return ROWS


@pytest.mark.parametrize("make", [as_jsonl, as_json, as_parquet, as_csv, as_folder, as_dataset, as_rows])
def test_every_source_gives_the_same_rows(make, tmp_path):
    data = load_data(make(tmp_path))
    assert data.ids == ("a", "b", "c")
    assert data.captions == tuple(r["caption"] for r in ROWS)
    assert data.objects[:2] == (frozenset({"dog"}), frozenset({"cat", "chair"}))
    assert not data.skipped


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"id": "x", "caption": ""}, "empty"),
        ({"id": "x", "caption": " 🐶 !! "}, "empty"),
        ({"id": "x", "caption": None}, "no caption"),
        ({"id": "x", "caption": 7}, "int, not text"),
        ({"id": "x", "caption": ["a", "b"]}, "list, not text"),
        ({"id": "x"}, "no caption"),
        ({"id": "a", "caption": "Again."}, "same as that of row"),
    ],
)
def test_a_bad_row_is_counted_by_id_and_moves_no_other_row(bad, reason, tmp_path):
    path = write(tmp_path / "rows.jsonl", [ROWS[0], bad, *ROWS[1:]])
    data = load_data(path)
    assert dict(zip(data.ids, data.captions, strict=True)) == {r["id"]: r["caption"] for r in ROWS}
    assert [(s.row_id, reason in s.reason) for s in data.skipped] == [(bad["id"], True)]
    with pytest.raises(BadData, match=f"row {bad['id']} of rows.jsonl"):
        load_data(path, on_bad_row="error")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no rows"),
        ('{"id": 1, "caption": ""}', "none of the 1 rows"),
        ('{"id": 1, "title": "x"}', "no caption column"),
        ('{"id": 1, "caption": "A dog."', "line 1: no valid JSON"),
        ("[1, 2]", "one JSON object a line"),
    ],
)
def test_a_source_without_usable_rows_says_why(content, says, tmp_path):
    (tmp_path / "rows.jsonl").write_text(content, "utf-8")
    with pytest.raises(BadData, match=says):
        load_data(tmp_path / "rows.jsonl")


def test_a_missing_column_is_named_with_those_there_are(tmp_path):
    with pytest.raises(BadData, match=r"no column 'text2' for the caption; the source has 'id', 'caption', 'objects'"):
        load_data(as_jsonl(tmp_path), caption_column="text2")


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing\.jsonl"):
        load_data(tmp_path / "nothing.jsonl")
    with pytest.raises(BadData, match="holds no table"):
        load_data(tmp_path)
    picture(tmp_path, "a.png")
    with pytest.raises(BadData, match="holds images but no captions"):
        load_data(tmp_path)


def test_an_unknown_name_is_no_file_and_no_hub_dataset():
    with pytest.raises(BadData, match="no file or folder here and no dataset"):
        load_data("nobody/nothing-like-this")


def test_a_dataset_dict_asks_for_a_split():
    from datasets import Dataset, DatasetDict

    with pytest.raises(BadData, match="splits train, test"):
        load_data(DatasetDict(train=Dataset.from_list(ROWS), test=Dataset.from_list(ROWS)))


def test_joined_tables_are_paired_by_id_not_by_position(tmp_path):
    plain = write(tmp_path / "captions.jsonl", [{"id": r["id"], "caption": r["caption"]} for r in ROWS])
    other = write(tmp_path / "objects.jsonl", [{"id": r["id"], "objects": r["objects"]} for r in reversed(ROWS[:2])])
    data = load_data(plain, join=other)
    assert data.objects == (frozenset({"dog"}), frozenset({"cat", "chair"}), None)
    stranger = write(tmp_path / "stranger.jsonl", [{"id": "z", "objects": []}])
    with pytest.raises(BadData, match="no id of the source occurs"):
        load_data(plain, join=stranger)


def test_id_columns_of_different_names_pair_where_their_ids_do(tmp_path):
    plain = write(tmp_path / "captions.jsonl", [{"id": str(i), "caption": "A dog."} for i in range(6)])
    objects = [{"image_id": i, "objects": [f"thing {i}"]} for i in reversed(range(5))]
    data = load_data(plain, join=write(tmp_path / "objects.jsonl", objects))
    assert data.objects == (*(frozenset({f"thing {i}"}) for i in range(5)), None)
    stray = write(tmp_path / "stray.jsonl", [{"image_id": i, "objects": []} for i in range(4, 90)])
    with pytest.raises(BadData, match="not even half of the ids of the source occur"):
        load_data(plain, join=stray)
    nameless = write(tmp_path / "nameless.jsonl", [{"number": 1, "objects": []}])
    with pytest.raises(BadData, match="share no id column"):
        load_data(plain, join=nameless)


def test_images_stay_inside_the_source_folder(tmp_path):
    picture(tmp_path, "secret.png")
    inside = tmp_path / "data"
    picture(inside, "in.png")
    rows = [{"id": 1, "image": "in.png", "caption": "A dog."}, {"id": 2, "image": "../secret.png", "caption": "A cat."}]
    images = load_data(write(inside / "rows.jsonl", rows)).images
    assert decode(images.encoded(0)).size == (20, 10)
    with pytest.raises(ValueError, match="leaves the folder"):
        images.encoded(1)
    wider = [{"id": 2, "image": "secret.png", "caption": "A cat."}]
    assert decode(load_data(write(inside / "wider.jsonl", wider), image_root=tmp_path).images.encoded(0))


def test_images_of_a_dataset_follow_their_rows():
    from datasets import Dataset

    pixels = [Image.new("RGB", (4, 4), (value, 0, 0)) for value in (10, 20, 30)]
    rows = Dataset.from_dict({"image": pixels, "caption": ["A dog.", "", "A cat."]})
    data = load_data(rows)
    assert [decode(data.images.encoded(i)).getpixel((0, 0))[0] for i in range(2)] == [10, 30]


def test_an_image_folder_with_a_metadata_file_is_read(tmp_path):
    for name in ("one.png", "two.png"):
        picture(tmp_path / "images", name)
    lines = ["file_name,caption", "images/one.png,A dog.", "images/two.png,A cat."]
    (tmp_path / "metadata.csv").write_text("\n".join(lines), "utf-8")
    data = load_data(tmp_path)
    assert data.captions == ("A dog.", "A cat.")
    assert [decode(data.images.encoded(i)).size for i in range(2)] == [(20, 10)] * 2


def test_images_inside_a_parquet_file_are_read(tmp_path):
    from datasets import Dataset

    rows = {"image": [Image.new("RGB", (4, 4), (shade, 0, 0)) for shade in (10, 30)], "caption": ["A dog.", "A cat."]}
    Dataset.from_dict(rows).to_parquet(str(tmp_path / "rows.parquet"))
    data = load_data(tmp_path / "rows.parquet")
    assert [decode(data.images.encoded(i)).getpixel((0, 0))[0] for i in range(2)] == [10, 30]


def saved(image, form="PNG", **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "1", "I;16"])
def test_every_mode_becomes_rgb(mode):
    image = decode(saved(Image.new(mode, (6, 3))))
    assert (image.mode, image.size) == ("RGB", (6, 3))


def test_cmyk_becomes_rgb_and_transparency_becomes_white():
    assert decode(saved(Image.new("CMYK", (6, 3)), "JPEG")).mode == "RGB"
    assert decode(saved(Image.new("RGBA", (2, 2), (255, 0, 0, 0)))).getpixel((0, 0)) == (255, 255, 255)


def test_sixteen_bit_grey_keeps_its_shades():
    ramp = Image.fromarray(np.linspace(0, 65535, 256).astype(np.uint16).reshape(16, 16))
    shades = np.asarray(decode(saved(ramp)))[..., 0]
    assert shades.min() == 0 and shades.max() == 255 and len(np.unique(shades)) > 200


def test_the_exif_orientation_is_applied():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode(saved(Image.new("RGB", (40, 10)), "JPEG", exif=exif)).size == (10, 40)


def test_a_vocabulary_is_read_in_each_of_its_forms(tmp_path):
    (tmp_path / "v.txt").write_text("dog\n\nhot dog\n", "utf-8")
    assert load_vocabulary(tmp_path / "v.txt") == {"dog": [], "hot dog": []}
    (tmp_path / "v.json").write_text('{"dog": ["puppy"]}', "utf-8")
    assert load_vocabulary(tmp_path / "v.json") == {"dog": ["puppy"]}
    (tmp_path / "chair.json").write_text('{"inverse_synonym_dict": {"puppy": "dog", "dog": "dog"}}', "utf-8")
    assert load_vocabulary(tmp_path / "chair.json") == {"dog": ["puppy", "dog"]}
    (tmp_path / "bad.json").write_text("[1]", "utf-8")
    with pytest.raises(BadData, match="must be a JSON object"):
        load_vocabulary(tmp_path / "bad.json")


@pytest.mark.parametrize("kind", ["dataset", "parquet"])
def test_images_that_a_source_holds_itself_are_not_read_for_names_that_they_lack(tmp_path, monkeypatch, kind):
    from datasets import Dataset, Features, Value
    from datasets import Image as ImageFeature

    features = Features({"image": ImageFeature(), "caption": Value("string")})
    rows = [{"image": {"bytes": bytes([n]), "path": None}, "caption": "A dog."} for n in range(40)]
    source = Dataset.from_list(rows, features=features)
    if kind == "parquet":
        source.to_parquet(tmp_path / "rows.parquet")
        source = tmp_path / "rows.parquet"
    asked, named = [], Images.named
    monkeypatch.setattr(Images, "named", lambda self, row: asked.append(row) or named(self, row))
    data = load_data(source)
    assert asked == [0] and data.shown is None and data.images.encoded(7) == bytes([7])
