"""What does not fit in memory is encoded in smaller pieces, with the same result."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tiny_models as tiny
from tiny_models import TEXTS, encode_images, pictures

from symbal_hf.models.encoders.checkpoint import Batches, unit
from symbal_hf.models.encoders.load import load_encoder

CLOSE = {"rtol": 0, "atol": 2e-5}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return tiny.Zoo(tmp_path_factory.mktemp("zoo"))


def crowded(work, most, error, tried):
    """`work` on a device where no more than `most` inputs fit."""

    def run(part):
        tried.append(len(part))
        if len(part) > most:
            raise error
        return work(part)

    return run


@pytest.mark.parametrize("message", ["CUDA out of memory. Tried to allocate 2 GiB", "no room"])
@pytest.mark.parametrize("kind", ["clip", "open_clip", "st_bert"])
def test_out_of_memory_halves_the_batch_and_keeps_the_size(zoo, kind, message, monkeypatch):
    import torch

    encoder, tried = load_encoder("text", getattr(zoo, kind), batch_size=16), []
    expected = encoder.encode(TEXTS)
    error = torch.OutOfMemoryError(message) if message == "no room" else RuntimeError(message)
    monkeypatch.setattr(encoder, "_encode", crowded(encoder._encode, 3, error, tried))
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, **CLOSE)
    assert max(tried) == len(TEXTS) and encoder.texts.size == 3
    del tried[:]
    encoder.encode(TEXTS)
    assert max(tried) == 3


def test_out_of_memory_on_images(zoo, monkeypatch):
    import torch

    encoder, images, tried = load_encoder("image", zoo.dinov2, batch_size=8), pictures(), []
    expected = encode_images(encoder, images)
    error = torch.OutOfMemoryError("CUDA out of memory.")
    monkeypatch.setattr(encoder, "_encode_pixels", crowded(encoder._encode_pixels, 1, error, tried))
    np.testing.assert_allclose(encode_images(encoder, images), expected, **CLOSE)
    assert tried == [7, 3] + [1] * 7


def test_every_item_comes_back_in_its_place_at_any_size_and_limit():
    import torch

    for n in (0, 1, 2, 7):
        for size in (1, 5, 64):
            for most in (1, 3, 100):
                work = crowded(lambda part: np.float32([[i, -i] for i in part]), most, torch.OutOfMemoryError("x"), [])
                batches = Batches(size, "model")
                np.testing.assert_array_equal(
                    batches.run(range(n), work, 2), [[i, -i] for i in range(n)] or np.zeros((0, 2))
                )
                assert batches.size <= size


def test_what_fits_in_no_way_or_fails_otherwise_is_told():
    import torch

    tried = []
    full = crowded(None, 0, torch.OutOfMemoryError("CUDA out of memory."), tried)
    with pytest.raises(MemoryError, match=r"model does not fit in memory with one input at a time; use a smaller"):
        Batches(4, "model").run(list("abcd"), full, 2)
    assert tried == [4, 2, 1]
    with pytest.raises(RuntimeError, match="shapes differ"):
        Batches(4, "model").run(list("abcd"), crowded(None, 0, RuntimeError("shapes differ"), tried), 2)
    assert tried == [4, 2, 1, 4]
    with pytest.raises(ValueError, match="batch_size=0 leaves nothing to do"):
        Batches(0, "model")


def test_a_failed_attempt_is_freed_before_the_next():
    import torch

    held = []

    class Tensors:
        pass

    def work(part):
        gc.collect()
        assert all(ref() is None for ref in held)
        tensors = Tensors()
        held.append(weakref.ref(tensors))
        if len(part) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return np.zeros((len(part), 1), np.float32)

    Batches(8, "model").run(list(range(8)), work, 1)
    assert len(held) == 6


def test_vectors_that_are_no_numbers_are_refused():
    import torch

    with pytest.raises(ValueError, match=r"m gives infinite or undefined values in torch.float16; use dtype='float32'"):
        unit(torch.tensor([[1.0, float("inf")]], dtype=torch.float16), "m")
    with pytest.raises(ValueError, match="m gives no single vector for each input"):
        unit(torch.zeros(2, 3, 4), "m")
