"""Errors planted into real photos and real captions are found, and real captions without any are called clean."""

import pytest

import symbal_hf
from benchmark_builder.bases.photos import photo_base, text_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import plant
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.language.phrases import Vocabulary


@pytest.fixture(scope="module")
def vocabulary(shared_data):
    return Vocabulary(load_vocabulary(shared_data / "mllm_coco" / "chair_vocab.json"))


@pytest.fixture(scope="module")
def photos(shared_data):
    return photo_base(shared_data / "coco")


@pytest.fixture(scope="module")
def texts(shared_data):
    return text_base(shared_data / "coco" / "text" / "captions_val2017_all5000.jsonl")


def rows_of(base, captions, n):
    """What the audit gets to see: no objects, no truth."""
    for place in range(n):
        row = {"id": base.ids[place], "caption": captions[place]}
        if base.images:
            row["image"] = str(base.images[place].resolve())
        if base.references:
            row["references"] = list(base.references[place])
        yield row


def planted(base, n, t, v, strength, vocabulary):
    out = plant(
        base.captions[:n], base.objects[:n], textual_error=t, visual_feature=v, strength=strength, ids=base.ids[:n],
        vocabulary=vocabulary,
    )  # fmt: skip
    assert not isinstance(out, Infeasible)
    return out


@pytest.mark.parametrize(
    ("t", "v", "strength"), [("boat", "dining table", 0.6), ("toilet", "car", 0.8), ("giraffe", "chair", 0.6)]
)
def test_an_error_planted_into_photos_is_named_without_references(t, v, strength, photos, vocabulary):
    out = planted(photos, 450, t, v, strength, vocabulary)
    result = symbal_hf.audit(rows_of(photos, out.captions, 450))
    got = result.prediction()
    assert t in vocabulary.find(got["textual_error"][0])
    assert any(v in vocabulary.find(name) for name in got["visual_feature"])
    truly = {photos.ids[row] for row in out.rows}
    wrong = set(result.findings[0].affected_ids if result.findings else ())
    assert not wrong or len(wrong & truly) >= 0.7 * len(wrong)


def test_photos_with_honest_captions_are_called_clean(photos):
    assert symbal_hf.audit(rows_of(photos, photos.captions, 450)).verdict == "none"


@pytest.mark.parametrize(
    ("t", "v", "strength"), [("umbrella", "couch", 0.6), ("laptop", "train", 0.9), ("bowl", "skis", 0.4)]
)
def test_an_error_planted_into_captions_is_found_against_references(t, v, strength, texts, vocabulary):
    out = planted(texts, 1500, t, v, strength, vocabulary)
    result = symbal_hf.audit(rows_of(texts, out.captions, 1500))
    assert result.verdict == "systematic"
    assert t in vocabulary.find(result.findings[0].textual_error)
    assert any(v in vocabulary.find(name) for name in result.findings[0].visual_feature_candidates)


def test_honest_captions_with_references_are_called_clean(texts):
    assert symbal_hf.audit(rows_of(texts, texts.captions, 1500)).verdict == "none"
