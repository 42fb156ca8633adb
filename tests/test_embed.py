"""Texts and images of any encoder go through the store once, and what cannot be read is named."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pytest
import tiny_models as tiny
from PIL import Image
from tiny_models import IMAGE_KINDS, TEXTS, encode_images, pictures

from symbal_hf.data import Images
from symbal_hf.embed import embed_images, embed_texts
from symbal_hf.encode import LiteVision, MiniLM, MissingModel
from symbal_hf.encoders import load_image_encoder, load_text_encoder
from symbal_hf.images import decode
from symbal_hf.store import Store, key

CLOSE = {"rtol": 0, "atol": 2e-5}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return tiny.Zoo(tmp_path_factory.mktemp("zoo"))


def encoded(image, form="PNG", **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def assert_unit(vectors, rows, dim):
    assert vectors.shape == (rows, dim) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_texts_go_through_the_store_once(zoo, tmp_path, monkeypatch):
    store, encoder = Store(tmp_path / "s.sqlite"), load_text_encoder(zoo.qwen3)
    expected = encoder.encode(TEXTS)
    np.testing.assert_allclose(embed_texts(TEXTS, encoder, store=store, batch=4), expected, **CLOSE)
    monkeypatch.setattr(type(encoder), "model", property(lambda self: pytest.fail("the weights were loaded")))
    again = load_text_encoder(zoo.qwen3)
    np.testing.assert_allclose(embed_texts(TEXTS[::-1], again, store=store), expected[::-1], **CLOSE)
    assert embed_texts([], again, store=store).shape == (0, 32)
    with pytest.raises(pytest.fail.Exception):
        embed_texts(TEXTS, load_text_encoder(zoo.qwen3, instruction="other"), store=store)


def test_images_go_through_the_store_and_bad_ones_are_named(zoo, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    files = [encoded(image) for image in pictures(4)]
    rows = [files[0], b"no picture", files[1], None, files[2][:300], files[0], files[3], b"no picture"]
    images = Images(rows, range(len(rows)), None)
    for kind in IMAGE_KINDS:
        encoder = load_image_encoder(getattr(zoo, kind))
        vectors, bad = embed_images(images, encoder, store=store, batch=3)
        assert vectors.shape == (8, encoder.dim) and vectors.dtype == np.float32
        assert sorted(bad) == [1, 3, 4, 7] and not vectors[sorted(bad)].any()
        assert bad[1].startswith("unreadable image") and bad[3] == "no image in this row"
        good = [0, 2, 5, 6]
        expected = encode_images(encoder, [decode(rows[i]) for i in good])
        np.testing.assert_allclose(vectors[good], expected, **CLOSE)
        again, reasons = embed_images(images, encoder, store=store)
        np.testing.assert_array_equal(again, vectors)
        assert sorted(reasons) == sorted(bad)
    none, bad = embed_images(Images([], [], None), encoder, store=store)
    assert none.shape == (0, encoder.dim) and not bad


def test_a_broken_model_is_not_taken_for_broken_images(zoo, tmp_path):
    folder = shutil.copytree(zoo.folders["dinov2"], tmp_path / "dinov2")
    (folder / "preprocessor_config.json").write_text('{"image_processor_type": "NoSuchProcessor"}')
    images = Images([encoded(image) for image in pictures(3)], range(3), None)
    with pytest.raises((ValueError, MissingModel)):
        embed_images(images, load_image_encoder(f"transformers:{folder}"), store=Store(tmp_path / "s.sqlite"))


def test_every_mode_of_a_picture_is_the_same_picture(zoo, tmp_path):
    smooth = np.asarray(pictures(1, size=(4, 6))[0].resize((60, 40), Image.Resampling.BICUBIC))
    colour = Image.fromarray(smooth)
    grey = colour.convert("L")
    stretched = np.asarray(grey, np.float64)
    stretched = (stretched - stretched.min()) / np.ptp(stretched)
    turned = colour.getexif()
    turned[0x0112] = 6  # to be turned by a quarter when shown
    colours = [
        encoded(colour), encoded(colour.convert("RGBA")), encoded(colour.convert("CMYK"), "TIFF"),
        encoded(colour.transpose(Image.Transpose.ROTATE_90), "PNG", exif=turned),
    ]  # fmt: skip
    greys = [
        encoded(Image.fromarray((stretched * 255).round().astype(np.uint8))),
        encoded(Image.fromarray((stretched * 60000 + 3000).astype(np.uint16))),
    ]
    images = Images(colours + greys, range(6), None)
    for kind in IMAGE_KINDS:
        vectors, bad = embed_images(images, load_image_encoder(getattr(zoo, kind)), store=Store(tmp_path / kind))
        assert not bad
        assert (vectors[:4] @ vectors[0]).min() > 0.999 and vectors[4] @ vectors[5] > 0.999
        assert vectors[0] @ vectors[4] < 0.9999


def test_the_lite_encoders_are_parts_like_the_others(tmp_path, scene_folder):
    files = [path.read_bytes() for path in sorted(scene_folder[0].rglob("*.[jp][pn]g"))[:3]]
    images, store = Images(files, range(3), None), Store(tmp_path / "s.sqlite")
    regions, _ = embed_images(images, LiteVision(), store=store)
    assert regions.shape == (3, 65, 384) and regions.dtype == np.float16
    assert not store.missing(key("image", LiteVision().fingerprint, file) for file in files)
    text, image = load_text_encoder("lite"), load_image_encoder("lite")
    whole, _ = embed_images(images, image, store=store)
    assert_unit(whole, 3, 384)
    np.testing.assert_allclose(whole, regions[:, 0].astype(np.float32), atol=2e-3)
    assert text.space == image.space
    vectors = embed_texts(["A dog.", "A cat."], MiniLM(), store=store)
    assert not store.missing([key("text", "sentence-transformers/all-MiniLM-L6-v2", "A dog.")])
    np.testing.assert_array_equal(embed_texts(["A cat.", "A dog."], text, store=store), vectors[::-1])
    np.testing.assert_allclose(text.encode(["A dog.", "A cat."]), vectors, **CLOSE)
    for encoder, load in ((text, load_text_encoder), (image, load_image_encoder)):
        assert load(encoder.name).fingerprint == encoder.fingerprint
    assert embed_texts([], MiniLM(), store=store).shape == embed_texts([], text, store=store).shape == (0, 384)


def test_a_picture_of_absurd_size_is_one_bad_row(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    small, huge = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (7, 7)).save(small, "PNG")
    Image.new("RGB", (30, 30)).save(huge, "PNG")
    assert decode(small.getvalue()).size == (7, 7)
    with pytest.raises(ValueError, match="more pixels than Pillow takes"):
        decode(huge.getvalue())
