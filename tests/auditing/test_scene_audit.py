"""A small model that really looks at drawn scenes finds the planted error, in this process and behind a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_fakes import in_order
from serving import served

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Message, features
from symbal_hf.models.chat.server import ServerModel

MODEL = Path(__file__).parents[1] / "assets" / "scene_mllm"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=240, seed=93)


@pytest.fixture(scope="module")
def local():
    return LocalModel(str(MODEL), batch_size=32)


@pytest.fixture(scope="module")
def data(base):
    planted = Ground(base).plant("lamp", "car", 0.9)
    assert isinstance(planted, Planted)
    return load_data(
        [{"id": i, "image": str(image), "caption": caption}
         for i, image, caption in zip(base.ids, base.images, planted.captions, strict=True)]
    )  # fmt: skip


@pytest.mark.parametrize(
    "parts", [{"scorer_1": "vision-language"}, {"scorer_1": "text-only", "captioner": "same"}], ids=["looks", "reads"]
)
def test_association_finds_the_planted_pair(data, local, tmp_path_factory, parts):
    store = Store(tmp_path_factory.mktemp("store") / "s.sqlite")
    captioner = local if "captioner" in parts else None
    result = symbal_hf.audit(data, store=store, **(parts | {"chat": local, "captioner": captioner}))
    first = result.findings[0]
    assert (first.textual_error, first.visual_feature, result.verdict) == ("lamp", "car", "systematic")
    calls = result.provenance["models"]["calls"]
    assert sum(c["failed"] for c in calls) == 0 and all(c["revision"] for c in calls)


def test_behind_a_server_it_sees_the_same(base, local, tmp_path):
    pytest.importorskip("uvicorn", reason="the server needs fastapi and uvicorn")
    prompts = Prompts()
    facts = [(row, name) for row in range(12) for name in ("dog", "chair", "car")]
    asked = [
        (Message(prompts.render("fact_of_image", fact=f"There is a {name} here."), images=(base.encoded(row),)),)
        for row, name in facts
    ]
    listing = [(Message(prompts.render("features_of_image"), images=(base.encoded(row),)),) for row in range(8)]
    with served(MODEL, tmp_path / "serve.log") as url:
        model = ServerModel(str(MODEL), base_url=url, concurrency=4)
        there = in_order(model.probability_of_yes(asked), len(asked))
        lists = in_order(model.generate(listing, max_new_tokens=60), len(listing))
    here = in_order(local.probability_of_yes(asked), len(asked))
    assert [answer.yes for answer in there] == [float(answer.yes > 0.5) for answer in here]
    right = [(answer.yes == 1) == (name in base.objects[row]) for (row, name), answer in zip(facts, there, strict=True)]
    assert sum(right) / len(right) > 0.85
    same = in_order(local.generate(listing, max_new_tokens=60), len(listing))
    assert [features(a.text) for a in lists] == [features(a.text) for a in same]
