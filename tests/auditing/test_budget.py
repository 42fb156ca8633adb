"""With a budget a chat model is asked about fewer statements; the first finding stays, and the others are unknown."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from oracle import Oracle

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground
from symbal_hf.auditing.budget.purse import Purse
from symbal_hf.auditing.evidence import gather
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts
from symbal_hf.results.findings import load_result

CHAT, ORACLES = "hf:oracle", count()


class Counting(Oracle):
    """An oracle that counts what it is asked about statements, and breaks off where it is told to.

    Each is a model of its own unless it is named, so that all may share a store.
    """

    def __init__(self, base, *, miss=0.0, breaks=None, name=None):
        super().__init__(base, miss=miss)
        self.name, self.statements, self.breaks = name or f"{self.name}:{next(ORACLES)}", [], breaks

    def probability_of_yes(self, conversations):
        for place, messages in enumerate(conversations):
            if len(self.statements) == self.breaks:
                raise KeyboardInterrupt
            self.statements.append((messages[-1].text, messages[-1].images))
            yield from ((place, answer) for _, answer in super().probability_of_yes([messages]))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=400, size=64, seed=12)


@pytest.fixture(scope="module")
def data(base):
    captions = Ground(base).plant("lamp", "car", 0.8).captions
    return load_data([{"id": i, "image": str(image), "caption": caption}
                      for i, image, caption in zip(base.ids, base.images, captions, strict=True)])  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store") / "store.sqlite")


def told(result):
    """The first finding; on so small drawings no second judge sees lamps, and the oracle's word stands alone."""
    return (*result.findings, *result.suspected)[:1]


def first(result):
    return [(finding.textual_error, finding.visual_feature) for finding in told(result)]


@pytest.mark.parametrize("method", ["association", "paper"])
def test_the_first_finding_is_that_of_all_questions_and_costs_half_of_them(base, data, store, tmp_path, method):
    all_of_them, fewer = Counting(base, miss=0.05), Counting(base, miss=0.05)
    full = symbal_hf.audit(data, chat=all_of_them, method=method, store=store)
    result = symbal_hf.audit(data, chat=fewer, method=method, budget="auto", store=store)
    assert first(result) == first(full) == [("lamp", "car")]
    assert len(fewer.statements) < 0.5 * len(all_of_them.statements)
    counts = ("errors_with_feature", "rows_with_feature")
    assert [[getattr(f, c) for c in counts] for f in told(result)] == [
        [getattr(f, c) for c in counts] for f in told(full)
    ]
    asked, facts = result.counts["facts_asked"], result.counts["facts"]
    assert asked >= len(fewer.statements)
    assert result.budget.startswith(f"asked about {asked:,} of {facts:,} statements, the others are unknown")
    assert "sure at 95%" in result.budget
    assert result.provenance["budget"] == "auto" and full.budget is None and "facts_asked" not in full.counts
    result.write(tmp_path / "out")
    assert load_result(tmp_path / "out") == result


@pytest.mark.parametrize("method", ["association", "paper"])
@pytest.mark.parametrize("budget", [1, 60, "150"])
def test_a_number_is_never_passed_and_what_stays_open_is_told(base, data, store, method, budget):
    oracle = Counting(base)
    result = symbal_hf.audit(data, chat=oracle, method=method, budget=budget, store=store)
    assert len(oracle.statements) == int(budget)
    assert "the budget was spent before the first place was sure" in result.budget


def test_a_run_that_breaks_off_asks_on_where_it_was(base, data, store):
    straight, broken = Counting(base, miss=0.05), Counting(base, miss=0.05, breaks=100, name="broken")
    whole = symbal_hf.audit(data, chat=straight, budget="auto", seed=3, store=store)
    with pytest.raises(KeyboardInterrupt):
        symbal_hf.audit(data, chat=broken, budget="auto", seed=3, store=store)
    again = Counting(base, miss=0.05, name="broken")
    result = symbal_hf.audit(data, chat=again, budget="auto", seed=3, store=store)
    assert {*broken.statements, *again.statements} == {*straight.statements}
    assert len(broken.statements) + len(again.statements) == len(straight.statements)
    assert (result.findings, result.budget) == (whole.findings, whole.budget)
    other = Counting(base, miss=0.05)
    symbal_hf.audit(data, chat=other, budget="auto", seed=4, store=store)
    assert {*other.statements} != {*straight.statements}


def test_what_is_known_from_before_costs_nothing(base, data, store):
    oracle = Counting(base)
    full = symbal_hf.audit(data, chat=oracle, store=store)
    asked = len(oracle.statements)
    result = symbal_hf.audit(data, chat=oracle, budget=1, store=store)
    assert len(oracle.statements) == asked
    assert first(result) == first(full) and "sure" in result.budget


def test_what_nobody_was_asked_about_is_unknown(base, data, store):
    """It is neither true nor false, in scores, in beliefs, and in what is counted."""
    parts = Parts(Composition(chat=CHAT), store, objects={CHAT: Counting(base)}, budget=80)
    purse = Purse(gather(data, parts), parts, seed=0)
    assert not purse.ask([np.arange(len(purse.facts))])
    evidence = purse.evidence()
    assert purse.asked.sum() >= 80 and np.isnan(purse.score[~purse.asked]).all()
    assert not np.isnan(purse.score[purse.asked]).any()
    asked, stated = evidence.concepts.mentions(of=purse.asked), evidence.concepts.mentions()
    unknown = stated & ~asked
    assert unknown.any() and np.isnan(evidence.beliefs.presence[unknown]).all()
    assert (evidence.beliefs.log_ratio[unknown] == 0).all()
    assert not np.isnan(evidence.beliefs.presence[~unknown]).any()
    assert evidence.shows[unknown].all()  # a caption is mostly right
    assert (evidence.competence.seen <= asked.sum(0)).all()


def test_pairs_that_somebody_asks_for_are_known_in_full(base, data, store):
    told = {"pairs": [("dog", "table")]}
    full = symbal_hf.audit(data, store=store, chat=Counting(base), **told)
    result = symbal_hf.audit(data, store=store, chat=Counting(base), budget="auto", **told)
    counts = ("errors_with_feature", "rows_with_feature", "errors_without_feature", "rows_without_feature")
    assert [getattr(result.asked[0], c) for c in counts] == [getattr(full.asked[0], c) for c in counts]
    assert first(result) == first(full)


def test_a_model_that_never_answers_is_told(base, data, store):
    class Mute(Counting):
        def probability_of_yes(self, conversations):
            yield from ((place, answer) for place, answer in super().generate(conversations, max_new_tokens=9))

    with pytest.raises(BadData, match="gave no usable score"):
        symbal_hf.audit(data, chat=Mute(base), budget="auto", store=store)
