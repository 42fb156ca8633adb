"""A chat model accuses, and the lite judge, which had no part in it, looks at what it rejects."""

from __future__ import annotations

import re

import numpy as np
import pytest
from oracle import Oracle

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground
from symbal_hf.auditing.judges.lite_witness import LiteWitness
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts


class BlindOracle(Oracle):
    """Sees no ball beside a boat."""

    def _present(self, messages):
        shown = super()._present(messages)
        return shown - {"ball"} if "boat" in shown else shown


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=400, seed=12)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store") / "store.sqlite")


def rows(base, captions):
    return load_data([{"id": i, "image": str(image), "caption": caption}
                      for i, image, caption in zip(base.ids, base.images, captions, strict=True)])  # fmt: skip


def told_of_all(base):
    """True captions that leave nothing unsaid."""
    return [f"{' '.join(f'There is a {name}.' for name in sorted(shown))}" for shown in base.objects]


def test_a_real_error_that_a_chat_model_accuses_is_confirmed(base, store):
    captions = Ground(base).plant("lamp", "car", 0.8).captions
    result = symbal_hf.audit(rows(base, captions), chat=Oracle(base, miss=0.05), store=store)
    (finding,) = result.findings
    assert (finding.textual_error, finding.visual_feature, finding.confirmed_by) == ("lamp", "car", "lite")


def test_true_captions_that_a_blind_chat_model_denies_are_not(base, store):
    together = sum({"ball", "boat"} <= shown for shown in base.objects)
    assert together >= 10  # else there would be nothing to deny
    result = symbal_hf.audit(rows(base, told_of_all(base)), chat=BlindOracle(base), store=store)
    assert not result.findings
    (suspect,) = [f for f in result.suspected if f.textual_error == "ball"]
    assert re.search("lite does not confirm it: it sees no 'ball' in ", suspect.reason)


def test_its_word_is_of_the_rows_alone_and_an_unreadable_image_says_nothing(base, store, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    data = load_data([{"id": str(i), "image": str(image), "caption": "A lamp."}
                      for i, image in enumerate([*base.images[:60], broken])])  # fmt: skip
    parts = Parts(Composition(scorer_1="embedding", scorer_2="embedding"), store)
    witness = LiteWitness(data.images, parts.phrase_vectors, {"store": store})
    has = np.array([("lamp" in shown) for shown in base.objects[:60]])
    lacks, shows, nobody = np.flatnonzero(~has), np.flatnonzero(has), np.zeros(0, np.int64)
    others = {"agreed": shows, "elsewhere": lacks, "beside": nobody}
    ratio = witness.log_ratio("lamp", np.array([*shows, *lacks, 60]), **others)
    assert ratio[-1] == 0 and (ratio[: len(shows)] < 0).mean() > 0.8 and (ratio[len(shows) : -1] > 0).mean() > 0.8
    again = witness.log_ratio("lamp", lacks[:5], **others)
    assert np.allclose(again, ratio[len(shows) :][:5], atol=1e-4)
