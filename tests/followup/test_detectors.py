"""What a detector sees is what transformers itself sees of that name in that image, and is looked for once."""

import json

import numpy as np
import pytest
import torch
from tiny_detectors import save_grounding_dino, save_owl
from tiny_models import as_if_downloaded, pictures, save_clip
from torchvision.ops import box_iou, clip_boxes_to_image

from symbal_hf.core.errors import BadData, MissingModel
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.followup.detectors import FunctionDetector, ObjectsDetector
from symbal_hf.followup.load_detector import load_detector
from symbal_hf.followup.open_vocabulary import OpenVocabulary
from symbal_hf.language.phrases import Vocabulary

NAMES = ("cat", "red bus", "old clock")
WORDS = Vocabulary({"couch": ["sofa"], "cat": []})


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("detectors")
    return {
        "owlv2": save_owl(root / "owlv2"), "owlvit": save_owl(root / "owlvit", kind="owlvit"),
        "grounding-dino": save_grounding_dino(root / "dino"),
    }  # fmt: skip


def photos(folder, n=7):
    """Rows with pictures of many shapes, and the pictures."""
    shapes = pictures(n)
    for i, picture in enumerate(shapes):
        picture.save(folder / f"{i}.png")
    return load_data(
        [{"id": f"r{i}", "image": str(folder / f"{i}.png"), "caption": "A cat."} for i in range(n)]
    ), shapes


@pytest.fixture
def rows(tmp_path):
    return photos(tmp_path)[0]


def detector(folder, tmp_path, **options):
    return OpenVocabulary(str(folder), store=Store(tmp_path / "store.sqlite"), **options)


def direct(folder, image, text, kind):
    """(boxes, scores) of plain transformers for one name in one image, inside the image."""
    import transformers as hf

    processor = hf.AutoProcessor.from_pretrained(folder)
    model = hf.AutoModelForZeroShotObjectDetection.from_pretrained(folder).eval()
    inputs = processor(images=image, text=[[text]], return_tensors="pt")
    with torch.inference_mode():
        told = model(**inputs)
    size = image.size[::-1]
    if kind == "grounding-dino":
        found = processor.post_process_grounded_object_detection(told, inputs["input_ids"], 0.0, 0.0, [size])[0]
    else:
        found = processor.post_process_grounded_object_detection(
            told, threshold=0.0, target_sizes=[size], text_labels=[[text]]
        )[0]
    boxes = clip_boxes_to_image(found["boxes"], size)
    inside = ((boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])).numpy()
    return boxes.numpy()[inside] / np.array([*image.size, *image.size]), found["scores"].numpy()[inside]


@pytest.mark.parametrize("kind", ["owlv2", "owlvit", "grounding-dino"])
def test_it_sees_what_transformers_sees_in_images_of_any_shape(kind, folders, tmp_path):
    data, shapes = photos(tmp_path, 4)
    assert len({picture.size[0] > picture.size[1] for picture in shapes}) == 2  # wide and high ones
    own = detector(folders[kind], tmp_path)
    seen = own.detect(data, NAMES, boxes_of=range(len(data)))
    for row, picture in enumerate(shapes):
        for column, name in enumerate(NAMES):
            boxes, scores = direct(folders[kind], picture, own.prompt.format(name), kind)
            assert seen.scores[row, column] == pytest.approx(scores.max(), abs=1e-4)
            kept = [box for box in seen.boxes[row] if box.label == name]
            assert kept and kept[0].score == pytest.approx(seen.scores[row, column])
            for box in kept:
                far = np.abs(boxes - (box.x0, box.y0, box.x1, box.y1)).max(1) + np.abs(scores - box.score)
                assert far.min() < 1e-3


def test_boxes_lie_inside_the_image_and_none_over_a_surer_one_of_its_name(folders, tmp_path, rows):
    seen = detector(folders["owlv2"], tmp_path).detect(rows, NAMES, boxes_of=range(len(rows)))
    for boxes in seen.boxes.values():
        scores = [box.score for box in boxes]
        assert scores == sorted(scores, reverse=True) and all(0 < score <= 1 for score in scores)
        assert all(0 <= box.x0 < box.x1 <= 1 and 0 <= box.y0 < box.y1 <= 1 for box in boxes)
    _, shapes = photos(tmp_path)
    for row, picture in enumerate(shapes):
        own = torch.tensor([[b.x0, b.y0, b.x1, b.y1] for b in seen.boxes[row] if b.label == NAMES[0]])
        pixels = own * torch.tensor([*picture.size, *picture.size])
        assert (box_iou(pixels, pixels) - torch.eye(len(own))).max() <= 0.5 + 1e-6


def test_neither_other_names_nor_other_images_change_what_is_seen(folders, tmp_path, rows):
    for folder in ("0", "1"):
        (tmp_path / folder).mkdir()
    together = detector(folders["owlv2"], tmp_path / "0", batch_size=5).detect(rows, NAMES).scores
    one = detector(folders["owlv2"], tmp_path / "1", batch_size=1)
    alone = np.stack([one.detect(rows, [name]).scores[:, 0] for name in NAMES], 1)
    np.testing.assert_allclose(together, alone, atol=1e-4)


def looked(monkeypatch):
    """What is put to the network from now on, as (images, names)."""
    seen, own = [], OpenVocabulary.look
    monkeypatch.setattr(
        OpenVocabulary,
        "look",
        lambda self, pixels, names: (seen.append((len(pixels), tuple(names))), own(self, pixels, names))[1],
    )
    return seen


def test_a_second_run_looks_at_nothing_again(folders, tmp_path, monkeypatch):
    data, shapes = photos(tmp_path)
    first = detector(folders["owlv2"], tmp_path).detect(data, NAMES[:2], boxes_of=[3])
    seen = looked(monkeypatch)
    again = detector(folders["owlv2"], tmp_path).detect(data, NAMES[:2], boxes_of=[3])
    np.testing.assert_array_equal(first.scores, again.scores)
    assert first.boxes == again.boxes and not seen
    wanted = np.zeros((7, 3), bool)
    wanted[2, 2] = wanted[2, 0] = wanted[5, 2] = True
    part = detector(folders["owlv2"], tmp_path).detect(data, NAMES, where=wanted)
    assert seen == [(2, ("old clock",))]  # the new name, in the rows where it is wanted
    assert (np.isnan(part.scores) == ~wanted).all() and part.scores[2, 0] == first.scores[2, 0]
    shapes[3].rotate(180).save(tmp_path / "3.png")  # another image in its place
    detector(folders["owlv2"], tmp_path).detect(data, NAMES[:2])
    detector(folders["owlv2"], tmp_path, prompt="{}").detect(data, NAMES[:1])
    assert seen[1:] == [(1, ("cat", "red bus")), (7, ("cat",))]


def test_a_run_that_is_stopped_leaves_only_the_rest_to_the_next(folders, tmp_path, rows, monkeypatch):
    def stopped(items, label, total):
        for i, item in enumerate(items):
            if i == 2:
                raise KeyboardInterrupt
            yield item

    seen = looked(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        detector(folders["owlv2"], tmp_path, batch_size=2).detect(rows, NAMES, progress=stopped)
    done = sum(n for n, _ in seen)
    assert done == 4
    whole = detector(folders["owlv2"], tmp_path, batch_size=2).detect(rows, NAMES)
    assert sum(n for n, _ in seen) == len(rows) and not np.isnan(whole.scores).any()


def test_an_image_that_cannot_be_read_is_told_and_not_tried_again(folders, tmp_path, monkeypatch):
    data, _ = photos(tmp_path)
    (tmp_path / "2.png").write_bytes(b"no picture")
    (tmp_path / "4.png").unlink()
    first = detector(folders["owlv2"], tmp_path).detect(data, NAMES)
    seen = looked(monkeypatch)
    again = detector(folders["owlv2"], tmp_path).detect(data, NAMES)
    assert not seen and first.bad == again.bad and set(first.bad) == {2, 4}
    assert np.isnan(again.scores[[2, 4]]).all() and not np.isnan(np.delete(again.scores, [2, 4], 0)).any()


def test_a_name_longer_than_the_model_reads_is_cut(folders, tmp_path, rows):
    long = " ".join(["red"] * 60)
    seen = detector(folders["owlv2"], tmp_path).detect(rows, [long, long + " bus"])
    assert (seen.scores[:, 0] == seen.scores[:, 1]).all()


def test_weights_that_are_missing_are_told_in_one_sentence():
    for spec, model in (("owlv2", "google/owlv2-large-patch14-ensemble"), ("hf:nobody/nothing@v1", "nobody/nothing")):
        with pytest.raises(MissingModel, match=f"run `hf download {model}") as told:
            load_detector(spec, vocabulary=WORDS)
        assert "\n" not in str(told.value)


def test_a_model_of_the_hub_is_called_by_its_commit(folders, tmp_path):
    as_if_downloaded(folders["owlv2"], "me/tiny-owl", commit="c" * 40)
    found = load_detector("hf:me/tiny-owl", vocabulary=WORDS, store=Store(tmp_path / "s.sqlite"))
    assert found.name == f"hf:me/tiny-owl@{'c' * 40}" and found.threshold == 0.1


def test_a_model_that_detects_nothing_by_name_is_refused(tmp_path):
    with pytest.raises(BadData, match="of type 'clip', which detects nothing"):
        load_detector(f"hf:{save_clip(tmp_path / 'clip')}", vocabulary=WORDS)


def test_the_default_threshold_is_where_transformers_cuts(folders, tmp_path):
    import inspect

    import transformers as hf

    for kind, processor in (
        ("owlv2", hf.Owlv2Processor), ("owlvit", hf.OwlViTProcessor), ("grounding-dino", hf.GroundingDinoProcessor)
    ):  # fmt: skip
        usual = inspect.signature(processor.post_process_grounded_object_detection).parameters["threshold"].default
        assert detector(folders[kind], tmp_path).threshold == usual


@pytest.mark.parametrize("spec", ["owl", "hf:", "openai:http://x/v1#m", 7])
def test_an_unknown_detector_is_told_with_those_there_are(spec):
    with pytest.raises(BadData, match="detector"):
        load_detector(spec, vocabulary=WORDS)


def test_objects_are_known_by_their_synonyms_and_null_is_no_answer():
    data = load_data(
        [
            {"id": "a", "caption": "A cat.", "objects": ["sofa"]},
            {"id": "b", "caption": "A cat.", "objects": []},
            {"id": "c", "caption": "A cat.", "objects": None},
        ]
    )
    seen = ObjectsDetector(WORDS).detect(data, ["couch", "sofas", "white sofa", "cat"]).scores
    expected = [[1, 1, np.nan, 0], [0, 0, np.nan, 0], [np.nan] * 4]
    np.testing.assert_array_equal(seen, np.array(expected, np.float32))


def test_a_source_without_what_a_detector_looks_at_is_told(folders, tmp_path):
    data = load_data([{"id": "a", "caption": "A cat."}])
    with pytest.raises(BadData, match="no column of objects"):
        ObjectsDetector(WORDS).detect(data, ["cat"])
    for one in (FunctionDetector(lambda images, names: []), detector(folders["owlv2"], tmp_path)):
        with pytest.raises(BadData, match="has none"):
            one.detect(data, ["cat"])


def test_a_function_is_asked_of_pictures_and_held_to_its_word(tmp_path):
    data, shapes = photos(tmp_path, 20)
    (tmp_path / "5.png").write_bytes(b"no picture")
    seen = load_detector(lambda images, names: [[im.width / 100, None] for im in images], vocabulary=WORDS).detect(
        data, ["a", "b"]
    )
    expected = [np.nan if i == 5 else picture.width / 100 for i, picture in enumerate(shapes)]
    np.testing.assert_allclose(seen.scores[:, 0], expected, rtol=1e-6)
    assert np.isnan(seen.scores[:, 1]).all() and set(seen.bad) == {5}
    for wrong in ([[0.5]], [[2.0, 0.5]] * 16, "x", [["a", "b"]] * 16):
        with pytest.raises(BadData, match=r"it must give a score|gave no table"):
            FunctionDetector(lambda images, names, wrong=wrong: wrong).detect(data, ["a", "b"])


def test_what_is_stored_has_a_kind_of_its_own(folders, tmp_path, rows):
    detector(folders["owlv2"], tmp_path).detect(rows, NAMES)
    kinds = {kind.kind: kind.entries for kind in Store(tmp_path / "store.sqlite").kinds()}
    assert kinds == {"detection": len(rows) * len(NAMES)}
    assert json.dumps(kinds)


def test_the_packaged_detector_tells_what_it_sees_what_it_does_not_and_what_it_cannot_tell(shared_data, tmp_path):
    folder = shared_data / "coco"
    rows = [row for row in map(json.loads, (folder / "objects.jsonl").open()) if row["chair_objects"]][:150]
    table = [{"id": row["image_id"], "image": str(folder / row["file"]), "caption": "A view."} for row in rows]
    data = load_data(table)
    names = ("person", "dog", "surf board", "racket")
    detector = load_detector("nanodet", vocabulary=Vocabulary({}), store=Store(tmp_path / "s.sqlite"))
    seen = detector.detect(data, names, boxes_of=[0, 1, 2])
    assert np.isnan(seen.scores[:, 3]).all() and not seen.bad
    person, there = seen.scores[:, 0], np.array(["person" in row["chair_objects"] for row in rows])
    told = ~np.isnan(person)
    assert 0.5 < told.mean() < 1 and ((person[told] > 0.5) == there[told]).mean() > 0.8
    assert {box.label for boxes in seen.boxes.values() for box in boxes} <= set(names)
    some = detector.detect(data, names, where=np.arange(150)[:, None] < np.array([10, 0, 0, 0]))
    np.testing.assert_array_equal(some.scores[:10, 0], person[:10])
    assert np.isnan(some.scores[10:]).all()
