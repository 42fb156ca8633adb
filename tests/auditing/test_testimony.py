"""Who says that an error is one: a judge that accuses does not also confirm, and cannot speak of what it never sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from symbal_hf.auditing.competence import competence, more_than_missed
from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.judged import _believed
from symbal_hf.auditing.judges.protocol import Beliefs, log_ratio_of
from symbal_hf.auditing.units import Units, units_of
from symbal_hf.auditing.verdict import conclude
from symbal_hf.data.table import AuditData
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.facts import Facts

N, NAMES = 2000, ("lamp", "toilet", "dog", "cat", "car", "boat", "kite", "bus", "grass", "clock", "table", "bench")
T, V = 0, 1


@dataclass
class Witness:
    """A second judge that knows the truth, or only ever says one thing; it notes which rows it was shown."""

    there: np.ndarray
    always: float | None = None
    name: str = "witness"
    by_card: bool = True
    rows: list[int] = field(default_factory=list)

    def knows(self, name: str) -> bool:
        return True

    def with_first(self, names: Sequence[str], presence: np.ndarray) -> np.ndarray:
        return presence

    def worth(self, name: str, rows: np.ndarray) -> np.ndarray:
        return np.where(self.there[rows, NAMES.index(name)], 3.0, -3.0)

    def log_ratio(self, name: str, rows: np.ndarray, **others: np.ndarray) -> np.ndarray:
        self.rows += rows.tolist()
        return -self.worth(name, rows) if self.always is None else np.full(len(rows), self.always)


@dataclass
class Joining(Witness):
    """One that sees what captions never speak of as the first judge does, and a little surer."""

    def with_first(self, names: Sequence[str], presence: np.ndarray) -> np.ndarray:
        joined = presence.copy()
        joined[:, V] = np.where(presence[:, V] > 0.5, 0.5 + presence[:, V] / 2, presence[:, V] / 2)
        return joined


def evidence(
    seed: int,
    *,
    wrong: float = 0.0,
    blind: bool = False,
    never: bool = False,
    silent: bool = False,
    second: Witness | None = None,
):
    """Rows whose things are seen by a judge with noise; captions err beside v, or the judge does not see t there."""
    rng = np.random.default_rng(seed)
    there = rng.random((N, len(NAMES))) < 0.15
    there[:, T] = rng.random(N) < np.where(there[:, V], 0.4, 0.1)
    stated = there & (rng.random(there.shape) < 0.6)
    stated[:, T] |= ~there[:, T] & there[:, V] & (rng.random(N) < wrong)
    stated[:, V] &= not silent
    share = there.mean(0)
    signal = rng.standard_normal(there.shape) + 3 * there
    if blind:
        signal[there[:, T] & there[:, V], T] -= 3
    presence = 1 / (1 + np.exp(-(3 * signal - 4.5 + np.log(share / (1 - share)))))
    if never:
        presence[:, T] = 0.002 + 0.001 * rng.random(N)
    rows, columns = np.nonzero(stated)
    text = tuple(f"There is a {NAMES[c]}." for c in columns)
    by_fact = sparse.csr_matrix(
        (np.ones(len(rows), np.float32), (np.arange(len(rows)), columns)), (len(rows), len(NAMES))
    )
    facts = Facts(rows.astype(np.int64), text, N)
    beliefs = Beliefs(presence.astype(np.float32), log_ratio_of(presence), "embedding", False)
    data = AuditData(tuple(map(str, range(N))), ("x",) * N, None, None, None, (), "made")
    made = Evidence(data, Concepts(NAMES, by_fact, facts), beliefs, None, None, None, None)  # type: ignore[arg-type]
    return replace(made, second=Witness(there) if second is None else second), there


def said(seed: int, **how):
    made, _ = evidence(seed, **how)
    result = conclude(made, association_pairs(made))
    return {(f.textual_error, f.visual_feature, f.state) for f in (*result.findings, *result.suspected)}, result


@pytest.mark.parametrize("seed", range(5))
def test_a_real_error_is_found_by_a_witness_that_looks_at_rejected_rows_alone(seed):
    made, there = evidence(seed, wrong=0.3)
    result = conclude(made, association_pairs(made))
    (finding,) = result.findings
    assert (finding.textual_error, finding.visual_feature, finding.confirmed_by) == ("lamp", "toilet", "witness")
    stated = made.concepts.stated(T)
    assert stated[made.second.rows].mean() > 0.9 and there[made.second.rows, V].mean() > 0.9
    assert finding.confirmed_rows <= finding.witness_rows and 0 < finding.missed_without < finding.missed_with <= 1


def test_true_captions_are_never_found_however_blind_the_judge_is_beside_v():
    for seed in range(10):
        states, result = said(seed, blind=True)
        assert not result.findings and result.verdict == "none"
        assert not states or all("does not confirm" in f.reason for f in result.suspected)


def test_a_witness_that_denies_everything_is_no_witness_against_it():
    made, there = evidence(0, wrong=0.3, second=None)
    denies = replace(made, second=Witness(there, always=-3.0))
    result = conclude(denies, association_pairs(denies))
    assert not result.findings and result.suspected[0].textual_error == "lamp"
    assert "witness does not confirm it" in result.suspected[0].reason


def test_a_name_that_the_judge_never_affirms_is_suspected_at_most():
    made, _ = evidence(1, wrong=0.5, never=True)
    alone = replace(made, second=None)
    assert not competence(alone.concepts, alone.beliefs, alone.units).can_see[T]
    result = conclude(alone, association_pairs(alone))
    assert "lamp" not in {f.textual_error for f in result.findings}


def test_what_captions_never_speak_of_is_a_feature_where_both_judges_see_it():
    made, there = evidence(3, wrong=0.4, silent=True)
    assert not made.can_be_feature[V] and not made.concepts.stated(V).any()
    assert "toilet" not in {f.visual_feature for f in conclude(made, association_pairs(made)).findings}
    seen = replace(made, second=Joining(there))
    (finding,) = conclude(seen, association_pairs(seen)).findings
    assert (finding.textual_error, finding.visual_feature) == ("lamp", "toilet")


def test_most_statements_beside_v_that_look_false_make_a_suspect_before_they_prove_anything():
    states = set[str]()
    for seed in range(12):
        made, _ = evidence(seed, wrong=0.03)
        result = conclude(made, association_pairs(made))
        for f in (*result.findings, *result.suspects):
            if (f.textual_error, f.visual_feature) == ("lamp", "toilet"):
                states.add(f.state)
                assert f.state != "suspected" or (f.p_value_corrected < 0.2 and f.confirmed_share >= 0.5)
    assert "suspected" in states


def test_a_judge_alone_is_believed_as_far_as_it_rejects_more_than_it_was_measured_to_miss():
    made, _ = evidence(2, wrong=0.6)
    alone = replace(made, second=None)
    for table, found in (
        ({}, False),
        ({"lamp": (100, 60)}, False),
        ({"lamp": (100, 5)}, True),
        ({"cat": (99, 0)}, False),
    ):
        measured = replace(alone, beliefs=replace(made.beliefs, measured=table))
        result = conclude(measured, association_pairs(measured))
        assert ("lamp" in {f.textual_error for f in result.findings}) == found
        assert found or "lamp" in {f.textual_error for f in result.suspected}


@pytest.mark.parametrize("seed", range(3))
def test_captions_are_believed_of_what_an_image_shows_but_for_what_they_often_misstate(seed):
    made, there = evidence(seed, wrong=0.6)
    named, denied = made.concepts.mentions(), made.beliefs.known < 0.3
    believed = _believed(made) > 0.5
    for concept in (2, 3, 4):
        doubted = named[:, concept] & denied[:, concept]
        assert there[doubted, concept].all() and believed[named[:, concept] & ~denied[:, concept], concept].all()
    false = named[:, T] & ~there[:, T]
    assert false.sum() > 50 and believed[false, T].mean() < 0.1
    true = named[:, T] & there[:, T]
    assert believed[true, T].mean() > 0.9


def test_other_captions_of_the_same_images_are_a_control_where_no_second_judge_is():
    for how, found in (({"wrong": 0.4}, True), ({"blind": True}, False)):
        made, there = evidence(4, **how)
        told = (there[:, :, None] & (np.random.default_rng(9).random((*there.shape, 3)) < 0.6)).mean(2)
        control = replace(made, second=None, naming=lambda names, told=told: told.astype(np.float32))
        result = conclude(control, association_pairs(control))
        assert {(f.textual_error, f.confirmed_by) for f in result.findings} == (
            {("lamp", "references")} if found else set()
        )
        assert found or "lamp" in {f.textual_error for f in result.suspected}


@given(missed=st.integers(0, 60), rejected=st.integers(0, 40), bias=st.floats(1, 10))
def test_the_more_it_misses_elsewhere_the_less_a_rejection_proves(missed, rejected, bias):
    p = more_than_missed(rejected, 40, (60, missed), bias=bias)
    assert 0 <= p <= 1 and p <= more_than_missed(rejected, 40, (60, missed), bias=bias + 1) + 1e-9
    assert missed == 60 or p <= more_than_missed(rejected, 40, (60, missed + 1), bias=bias) + 1e-9
    assert not rejected or p <= more_than_missed(rejected - 1, 40, (60, missed), bias=bias) + 1e-9


def test_rows_of_one_image_are_known_by_its_name_and_by_its_content():
    units = units_of(("a", None, "a", "b"))
    assert units.image.tolist() == [0, 1, 0, 2] and units.count(4) == 3
    assert units.any(np.array([False, True, True, False])).tolist() == [True, True, False]
    assert units.first(np.array([True, False, True, True])).tolist() == [True, False, False, True]
    copies = units_of(("a", "b", "c"), np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]))
    assert copies.count(3) == 2 and units_of(("a", "b")) == Units() == units_of(None)
