"""Texts and images of any encoder go through the store once, and what cannot be read is named."""

from __future__ import annotations

import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny_models as tiny
from PIL import Image
from tiny_models import IMAGE_KINDS, TEXTS, encode_images, pictures

from symbal_hf.core.errors import DeadRank, MissingModel
from symbal_hf.core.store import Store, key
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import Images
from symbal_hf.models.encoders import decoding as embed_load
from symbal_hf.models.encoders.base import fitted
from symbal_hf.models.encoders.embedding import embed, embed_images, embed_texts
from symbal_hf.models.encoders.lite import LiteVision, MiniLM
from symbal_hf.models.encoders.load import load_encoder

OLD = Path(__file__).parents[2] / "assets" / "version_0_1"
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
    store, encoder = Store(tmp_path / "s.sqlite"), load_encoder("text", zoo.qwen3)
    expected = encoder.encode(TEXTS)
    np.testing.assert_allclose(embed_texts(TEXTS, encoder, store=store, batch=4), expected, **CLOSE)
    monkeypatch.setattr(type(encoder), "model", property(lambda self: pytest.fail("the weights were loaded")))
    again = load_encoder("text", zoo.qwen3)
    np.testing.assert_allclose(embed_texts(TEXTS[::-1], again, store=store), expected[::-1], **CLOSE)
    assert embed_texts([], again, store=store).shape == (0, 32)
    with pytest.raises(pytest.fail.Exception):
        embed_texts(TEXTS, load_encoder("text", zoo.qwen3, instruction="other"), store=store)


def test_images_go_through_the_store_and_bad_ones_are_named(zoo, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    files = [encoded(image) for image in pictures(4)]
    rows = [files[0], b"no picture", files[1], None, files[2][:300], files[0], files[3], b"no picture"]
    images = Images(rows, range(len(rows)), None)
    for kind in IMAGE_KINDS:
        encoder = load_encoder("image", getattr(zoo, kind))
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
        embed_images(images, load_encoder("image", f"transformers:{folder}"), store=Store(tmp_path / "s.sqlite"))


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
        vectors, bad = embed_images(images, load_encoder("image", getattr(zoo, kind)), store=Store(tmp_path / kind))
        assert not bad
        assert (vectors[:4] @ vectors[0]).min() > 0.999 and vectors[4] @ vectors[5] > 0.999
        assert vectors[0] @ vectors[4] < 0.9999


def test_the_lite_encoders_are_parts_like_the_others(tmp_path, scene_folder):
    files = [path.read_bytes() for path in sorted(scene_folder[0].rglob("*.[jp][pn]g"))[:3]]
    images, store = Images(files, range(3), None), Store(tmp_path / "s.sqlite")
    regions, _ = embed_images(images, LiteVision(), store=store)
    assert regions.shape == (3, 65, 384) and regions.dtype == np.float16
    assert not store.missing(key("image", LiteVision().fingerprint, file) for file in files)
    text, image = load_encoder("text", "lite"), load_encoder("image", "lite")
    whole, _ = embed_images(images, image, store=store)
    assert_unit(whole, 3, 384)
    np.testing.assert_allclose(whole, regions[:, 0].astype(np.float32), atol=2e-3)
    assert text.space == image.space
    vectors = embed_texts(["A dog.", "A cat."], MiniLM(), store=store)
    assert not store.missing([key("text", "sentence-transformers/all-MiniLM-L6-v2", "A dog.")])
    np.testing.assert_array_equal(embed_texts(["A cat.", "A dog."], text, store=store), vectors[::-1])
    np.testing.assert_allclose(text.encode(["A dog.", "A cat."]), vectors, **CLOSE)
    for encoder, what in ((text, "text"), (image, "image")):
        assert load_encoder(what, encoder.name).fingerprint == encoder.fingerprint
    assert embed_texts([], MiniLM(), store=store).shape == embed_texts([], text, store=store).shape == (0, 384)


def test_a_picture_of_absurd_size_is_one_bad_row(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    small, huge = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (7, 7)).save(small, "PNG")
    Image.new("RGB", (30, 30)).save(huge, "PNG")
    assert decode(small.getvalue()).size == (7, 7)
    with pytest.raises(ValueError, match="more pixels than Pillow takes"):
        decode(huge.getvalue())


def test_decoding_by_processes_gives_the_same_for_every_kind(zoo, tmp_path):
    files = [encoded(image) for image in pictures(5)]
    images = Images([*files[:2], b"no picture", *files[2:]], range(6), None)
    for kind in IMAGE_KINDS:
        found = [
            embed(
                images,
                load_encoder("image", getattr(zoo, kind)),
                store=Store(tmp_path / f"{kind}{n}"),
                batch=2,
                workers=n,
            )
            for n in (0, None, 2)
        ]
        for other in found[1:]:
            np.testing.assert_array_equal(other.values, found[0].values)
            assert other.bad == found[0].bad and list(other.bad) == [2]


def test_what_cannot_be_read_is_tried_once_and_again_under_other_limits(zoo, tmp_path, monkeypatch):
    images, store = Images([encoded(pictures(1, size=(30, 30))[0])], [0], None), Store(tmp_path / "s.sqlite")
    encoder, tried = load_encoder("image", zoo.clip), []
    monkeypatch.setattr(embed_load, "decode", lambda file: (tried.append(1), decode(file))[1])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    for _ in range(2):
        assert "more pixels than Pillow takes" in embed_images(images, encoder, store=store)[1][0]
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5000)
    assert not embed_images(images, encoder, store=store)[1]
    assert len(tried) == 2


def test_values_do_not_depend_on_what_is_known_already_or_on_where_a_run_stopped(zoo, tmp_path):
    encoder, store = load_encoder("text", zoo.st_bert), Store(tmp_path / "s.sqlite")
    texts = [f"{text} {i}" for i in range(3) for text in TEXTS]
    expected = embed_texts(texts, encoder, store=Store(tmp_path / "whole.sqlite"), batch=8)

    def stop(items, label, total):
        for i, item in enumerate(items):
            yield item
            if i == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_texts(texts, encoder, store=store, batch=8, progress=stop)
    np.testing.assert_array_equal(embed_texts(texts, encoder, store=store, batch=8), expected)


def test_numbers_and_compiling_have_vectors_of_their_own(zoo, tmp_path):
    import torch

    encoder, store = load_encoder("text", zoo.clip, device="cpu"), Store(tmp_path / "s.sqlite")
    plain = embed_texts(TEXTS, encoder, store=store)
    half = embed(TEXTS, encoder, store=store, precision="bf16-true").values
    compiled = embed(TEXTS, encoder, store=store, compiled="eager").values
    assert_unit(half, len(TEXTS), encoder.dim)
    assert 0 < np.abs(half - plain).max() < 0.1
    np.testing.assert_allclose(compiled, plain, **CLOSE)
    unique = len(set(TEXTS))
    assert [(k.kind, k.entries) for k in store.kinds()] == [("text", 3 * unique)]
    assert encoder.model.dtype == torch.float32
    assert all(m._compiled_call_impl is None for m in encoder.model.children())
    regions = LiteVision()
    assert fitted(regions, precision="32-true").fingerprint == LiteVision(bf16=False).fingerprint
    image = load_encoder("image", "lite")
    assert fitted(image, precision="32-true").fingerprint != image.fingerprint


def test_a_dead_decoding_process_is_one_sentence(zoo, tmp_path, monkeypatch):
    images = Images([encoded(image) for image in pictures(4)], range(4), None)
    here = os.getpid()
    monkeypatch.setattr(embed_load, "decode", lambda file: decode(file) if os.getpid() == here else os._exit(9))
    with pytest.raises(DeadRank, match=r"one of 2 processes that decode images is gone .* workers=0"):
        embed(images, load_encoder("image", zoo.clip), store=Store(tmp_path / "s.sqlite"), batch=1, workers=2)


def test_what_the_first_version_stored_is_found_again(tmp_path, monkeypatch):
    import symbal_hf

    store = Store(shutil.copy(OLD / "store.sqlite", tmp_path / "store.sqlite"))
    monkeypatch.setattr(LiteVision, "regions", lambda *_: pytest.fail("a stored image was encoded again"))
    # Features that no caption speaks of, and the second judge, were not asked for then.
    symbal_hf.audit(OLD / "rows" / "pictures.jsonl", store=store, scorer="embedding")
    monkeypatch.setattr(MiniLM, "encode", lambda *_, **__: pytest.fail("a stored text was encoded again"))
    before = store.kinds()
    for source, folder, options in (
        ("captions.jsonl", "results_reference_40", {"scorer": "reference", "limit": 40}),
        ("pictures.jsonl", "results_embedding", {"scorer": "embedding"}),
    ):
        result = symbal_hf.audit(OLD / "rows" / source, store=store, **options)
        assert result.counts["facts"] == json.loads((OLD / folder / "findings.json").read_text())["counts"]["facts"]
    files = [path.read_bytes() for path in sorted((OLD / "rows" / "images").iterdir())]
    regions, bad = embed_images(Images(files, range(10), None), LiteVision(), store=store)
    assert regions.shape == (10, 65, 384) and not bad
    np.testing.assert_allclose(np.linalg.norm(regions.astype(np.float32), axis=2), 1, atol=2e-3)
    assert store.kinds() == before
