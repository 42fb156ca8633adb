"""References are silent about most of what an image shows: their silence proves an error where it is unusual."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbal_hf
from benchmark_builder.bases.photos import text_base
from benchmark_builder.planting.plant import Ground
from symbal_hf.auditing.competence import as_unspoken, spoken_beside
from symbal_hf.core.store import Store

CAPTIONERS = ("pope__llava-v0-13b__instruction1", "pope__minigpt4__instruction1", "pope__mplug-owl__instruction1")
T, V = 0, 1


def world(seed, *, beside=0.0, times=1.0, n=600, things=20):
    """What captions say, and references by fourths, of what images show; `times` as often, and t falsely beside v."""
    rng = np.random.default_rng(seed)
    shown = rng.random((n, things)) < rng.uniform(0.05, 0.3, things)
    told = (shown[:, :, None] & (rng.random((n, things, 4)) < 0.2)).mean(2)
    said = shown & (rng.random(shown.shape) < 0.2 * times)
    said[:, T] |= ~shown[:, T] & shown[:, V] & (rng.random(n) < beside)
    return said, told, shown


def silence(said, told, shown):
    """P-value that references leave t out beside v no more than other things."""
    beside = shown[:, V]
    return as_unspoken(spoken_beside(said, told, shown), T, said[beside, T].sum(), told[beside, T].sum())


@given(seed=st.integers(0, 400), times=st.floats(1, 4), beside=st.floats(0, 1))
def test_the_more_references_speak_of_t_the_less_their_silence_proves(seed, times, beside):
    said, told, shown = world(seed, times=times, beside=beside)
    p, spoken = silence(said, told, shown), told.copy()
    spoken[:, T] = np.maximum(told[:, T], 0.5 * shown[:, V])
    assert 0 < p <= silence(said, spoken, shown) <= 1


@pytest.mark.parametrize("times", [1.0, 3.0])
def test_what_captions_say_beside_a_feature_and_references_nowhere_stands_out(times):
    p = [silence(*world(seed, beside=0.6, times=times)) for seed in range(20)]
    true = [silence(*world(seed, times=times)) for seed in range(60)]
    assert np.mean(np.array(p) <= 0.01) >= 0.8 and np.mean(np.array(true) <= 0.01) <= 0.1


def test_among_few_concepts_the_largest_must_be_far_from_all_others():
    said, told, shown = world(0, beside=0.9, n=3000, things=6)
    assert silence(said, told, shown) < 0.01
    said, told, shown = world(0, n=3000, things=6)
    assert silence(said, told, shown) > 0.01


@pytest.fixture(scope="module")
def texts(shared_data):
    return shared_data / "coco" / "text" / "captions_val2017_all5000.jsonl"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store") / "s.sqlite")


@pytest.mark.parametrize("captioner", CAPTIONERS)
def test_floors_and_walls_that_references_never_mention_are_not_found_to_be_wrong(shared_data, texts, store, captioner):
    told = {row["image_id"]: row["captions"] for row in map(json.loads, texts.open())}
    file = shared_data / "mllm_coco" / "mllm_captions" / f"{captioner}.jsonl"
    rows = [
        {"id": str(row["image_id"]), "caption": row["caption"], "references": told[row["image_id"]]}
        for row in map(json.loads, file.open())
        if row["image_id"] in told
    ]
    assert len(rows) > 200
    result = symbal_hf.audit(rows, scorer="reference", store=store)
    assert not result.findings and result.suspected
    assert any("references may only leave" in finding.reason for finding in result.suspected)


def test_people_s_captions_are_not_accused_by_other_people_s_and_an_error_that_none_of_these_names_is(texts, store):
    base = text_base(texts, seed=3)
    lacking = [row for row, shown in enumerate(base.objects) if "bottle" not in shown][:2000]
    parts = ([column[row] for row in lacking] for column in (base.ids, base.captions, base.objects, base.references))
    ids, captions, objects, references = map(tuple, parts)
    some = replace(base, ids=ids, captions=captions, objects=objects, references=references)

    def audit(texts):
        rows = zip(ids, texts, references, strict=True)
        made = [{"id": i, "caption": caption, "references": list(told)} for i, caption, told in rows]
        return symbal_hf.audit(made, scorer="reference", store=store)

    assert not audit(captions).findings
    (finding,) = audit(Ground(some, seed=3).plant("bottle", "toilet", 0.6).captions).findings
    assert (finding.textual_error, finding.visual_feature, finding.confirmed_by) == ("bottle", "toilet", "references")
