"""The detector of the package sees what real photos show, says where, and its scores are worth what its card says."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import roc_auc_score

from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images
from symbal_hf.models.detectors.nanodet import CLASSES, STRIDES, NanoDet, class_of, log_ratio, network
from symbal_hf.models.encoders.embedding import embed_images


def test_it_has_a_cell_for_every_stride_and_a_channel_for_every_class():
    import torch

    levels = network()(torch.zeros(1, 3, 416, 416))
    assert [level.shape[2] for level in levels] == [416 // stride for stride in STRIDES]
    assert all(level.shape[1] == len(CLASSES) + 44 for level in levels) and len(set(CLASSES)) == 80


def test_a_class_is_called_by_its_name_in_the_singular_or_plural_spelt_apart_or_not():
    assert all(class_of(name) == name for name in CLASSES)
    same = {
        "ski": "skis",
        "dogs": "dog",
        "surf board": "surfboard",
        "people": "person",
        "tennis rackets": "tennis racket",
    }
    assert {name: class_of(name) for name in same} == same
    assert not [name for name in ("glass", "racket", "sofa", "skier", "hot") if class_of(name)]


@pytest.fixture(scope="module")
def photos(shared_data):
    """Photos with boxes, as (file, {class: boxes as shares}), large things alone."""
    folder, out = shared_data / "coco", []
    for row in map(json.loads, (folder / "objects.jsonl").open()):
        large = [item for item in row["objects"] or () if item["bbox"] and item["area_fraction"] > 0.1]
        if large:
            out.append((folder / row["file"], row["chair_objects"], large))
    return out[:60]


def test_a_large_thing_has_a_box_where_people_drew_one(photos):
    detector, hits, total = NanoDet(), 0, 0
    for path, _, things in photos[:40]:
        boxes = detector.boxes(detector.pixels(decode(path.read_bytes())), least=0.25)
        for thing in things:
            x, y, w, h = thing["bbox"]
            mine = [box for name, _, box in boxes if CLASSES[name] == thing["category"]]
            total += 1
            hits += any(_overlap(box, (x, y, x + w, y + h)) > 0.5 for box in mine)
    assert total > 40 and hits / total > 0.5


def _overlap(a, b):
    """Intersection over union."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def test_scores_go_through_the_store_and_tell_presence(photos, tmp_path):
    images = Images([str(path) for path, *_ in photos], range(len(photos)), None)
    scores, bad = embed_images(images, NanoDet(), store=Store(tmp_path / "s.sqlite"))
    assert scores.shape == (len(photos), 80) and not bad and (scores >= 0).all() and (scores <= 1).all()
    present = np.array([[name in objects for name in CLASSES] for _, objects, _ in photos])
    assert roc_auc_score(present.ravel(), scores.ravel()) > 0.93
    worth = np.stack([log_ratio(name, scores) for name in CLASSES], 1)
    # A likelihood ratio: over what is absent its mean is one, over what is there that of its inverse.
    assert worth[present].mean() > 0 > worth[~present].mean()


def test_one_picture_of_any_size_and_a_batch_give_the_same():
    noise = np.random.default_rng(0).integers(0, 255, (3, 50, 80, 3), dtype=np.uint8)
    detector = NanoDet(batch_size=2)
    pixels = [detector.pixels(Image.fromarray(part)) for part in noise]
    together = detector.encode_pixels(pixels)
    alone = np.concatenate([detector.encode_pixels([part]) for part in pixels])
    np.testing.assert_allclose(together, alone, atol=0.02)
    out = io.BytesIO()
    Image.fromarray(noise[0]).save(out, "PNG")
    assert detector.pixels(decode(out.getvalue())).shape == (416, 416, 3)


def test_a_name_that_it_was_not_taught_is_refused():
    with pytest.raises(BadData, match="'racket' is none of the 80 classes of nanodet-g: person, bicycle"):
        log_ratio("racket", np.zeros((1, 80)))
