"""The solver's counts are a table that can be, they give the V that it says, and no other table does better."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmark_builder.planting.inject import Infeasible, Plan, largest_v, phi, solve
from symbal_hf.stats.contingency import cramers_v

LIGHT = settings(max_examples=300)
strengths = st.sampled_from([0.3, 0.6, 0.9, 1.0]) | st.floats(0, 1, exclude_min=True)


@st.composite
def margins(draw, largest: int = 100_000):
    """(n, n_feature, free_with, free_without) of any dataset."""
    n = draw(st.integers(1, largest))
    n1 = draw(st.integers(0, n))
    return n, n1, draw(st.integers(0, n1)), draw(st.integers(0, n - n1))


@st.composite
def realistic(draw):
    """Margins as datasets have them: v in 1 % of the rows or more, t absent from most of those."""
    n = draw(st.integers(1000, 100_000))
    n1 = draw(st.integers(-(-n // 100), n // 2))
    return n, n1, draw(st.integers(-(-7 * n1 // 10), n1)), draw(st.integers((n - n1) // 2, n - n1))


def v_of(with_feature, without, n1, n):
    """V from the two columns themselves."""
    feature, error = np.zeros(n), np.zeros(n)
    feature[:n1] = 1
    error[:with_feature] = error[n1 : n1 + without] = 1
    return np.corrcoef(feature, error)[0, 1] if feature.std() and error.std() else 0.0


def nearest(n, n1, free_with, free_without, strength) -> float:
    """The least distance to the target over all tables of positive V, by bisection for every a at once."""
    a = np.arange(1, free_with + 1)
    low, high = np.zeros_like(a), np.minimum(free_without, n - a - 1)
    while (low < high).any():
        middle = (low + high) // 2
        above = cramers_v(a, n1, a + middle, n) > strength
        low, high = np.where(above & (low < high), middle + 1, low), np.where(above, high, np.minimum(middle, high))
    v = np.stack([cramers_v(a, n1, a + c, n) for c in (np.maximum(low - 1, 0), low)])
    return float(np.abs(v - strength)[v > 0].min())


@given(margins(400), strengths)
@LIGHT
def test_a_plan_is_a_table_that_can_be_and_gives_the_v_it_says(margin, strength):
    n, n1, free_with, free_without = margin
    found = solve(*margin, strength)
    if isinstance(found, Infeasible):
        assert found.target == strength
        assert found.largest < strength or n1 in (0, n) or free_with == 0
        return
    assert 0 <= found.with_feature <= free_with
    assert 0 <= found.without_feature <= free_without
    assert found.achieved == pytest.approx(v_of(found.with_feature, found.without_feature, n1, n), abs=1e-9)
    assert found.achieved > 0


@given(margins(), strengths)
@LIGHT
def test_achieved_is_cramers_v_at_any_size(margin, strength):
    n, n1, free_with, free_without = margin
    found = solve(*margin, strength)
    if isinstance(found, Plan):
        a, c = found.with_feature, found.without_feature
        assert 0 <= a <= free_with and 0 <= c <= free_without
        assert found.achieved == pytest.approx(float(cramers_v(a, n1, a + c, n)), abs=1e-12)


@lru_cache(maxsize=1)
def small_tables():
    """Every margin of up to 12 rows with V of every table it allows."""
    out = []
    for n in range(1, 13):
        for n1 in range(n + 1):
            whole = np.array([[v_of(a, c, n1, n) for c in range(n - n1 + 1)] for a in range(n1 + 1)])
            out += [((n, n1, a, c), whole[: a + 1, : c + 1]) for a in range(n1 + 1) for c in range(n - n1 + 1)]
    return out


def test_the_largest_v_is_the_largest_of_all_tables():
    for (n, n1, free_with, free_without), values in small_tables():
        assert largest_v(n, n1, free_with) == pytest.approx(values.max(), abs=1e-9)
        found = solve(n, n1, free_with, free_without, 1.0)
        assert isinstance(found, Plan) == (values.max() > 1 - 1e-9)
        if isinstance(found, Infeasible):
            assert found.largest == pytest.approx(values.max(), abs=1e-9)


@pytest.mark.parametrize("strength", [0.05, 0.3, 0.6, 0.9])
def test_no_table_of_a_small_dataset_comes_nearer(strength):
    for margin, values in small_tables():
        found = solve(*margin, strength)
        assert isinstance(found, Infeasible) == (values.max() < strength - 1e-9)
        if isinstance(found, Plan):
            best = np.abs(values - strength)[values > 1e-12].min()
            assert abs(found.achieved - strength) <= max(0.01, best) + 1e-9


@given(realistic(), strengths)
@LIGHT
def test_realistic_margins_hit_the_target_or_no_table_does(margin, strength):
    found = solve(*margin, strength)
    if isinstance(found, Infeasible):
        assert found.largest == largest_v(*margin[:3]) < strength
        return
    gap = abs(found.achieved - strength)
    assert gap <= 0.01 or gap == pytest.approx(nearest(*margin, strength), abs=1e-12)


@given(realistic(), strengths)
@LIGHT
def test_with_thirty_rows_of_v_the_target_is_always_hit(margin, strength):
    assume(margin[1] >= 30)
    found = solve(*margin, strength)
    if isinstance(found, Plan):
        assert found.achieved == pytest.approx(strength, abs=0.01)


@pytest.mark.parametrize(
    ("margin", "strength"),
    [((1209, 1134, 1076, 14), 0.5884291055814944), ((1076, 13, 13, 891), 0.0189), ((1008, 11, 9, 990), 0.0178),
     ((1341, 17, 15, 991), 0.0164)],
)  # fmt: skip
def test_tight_margins_are_searched_to_the_end(margin, strength):
    """Close to the formula's counts no table hits these targets, though others do."""
    n, n1, free_with, free_without = margin
    found = solve(*margin, strength)
    assert found.achieved == pytest.approx(strength, abs=0.01)
    totals = [
        a + c
        for a in range(1, free_with + 1)
        for c in range(free_without + 1)
        if phi(a, c, n1, n) > 0 and abs(phi(a, c, n1, n) - strength) <= 0.01
    ]  # of these, the solver takes one near to the number of rows with v
    assert len(totals) > 100
    far = sorted(abs(total - n1) for total in totals)
    assert abs(found.with_feature + found.without_feature - n1) <= far[len(far) // 10]


@given(st.integers(1000, 50_000), st.floats(0.02, 0.4), st.sampled_from([0.3, 0.6, 0.9]))
@LIGHT
def test_with_room_to_spare_there_are_about_as_many_errors_as_rows_with_v(n, share, strength):
    n1 = round(n * share)
    found = solve(n, n1, n1, n - n1, strength)
    assert abs(found.with_feature + found.without_feature - n1) <= 8


@given(margins(2000), strengths)
@LIGHT
def test_more_free_rows_never_make_a_target_infeasible(margin, strength):
    n, n1, free_with, _ = margin
    assume(isinstance(solve(*margin, strength), Plan))
    assert isinstance(solve(n, n1, n1, n - n1, strength), Plan)
    assert isinstance(solve(n, n1, free_with, 0, strength), Plan)


@given(st.integers(2, 500), st.data())
@LIGHT
def test_phi_falls_when_errors_are_planted_elsewhere(n, data):
    n1 = data.draw(st.integers(1, n - 1))
    a, c = data.draw(st.integers(1, n1)), data.draw(st.integers(0, n - n1 - 1))
    assume(phi(a, c, n1, n) > 0)
    assert phi(a, c + 1, n1, n) < phi(a, c, n1, n)
    assert phi(a - 1, c, n1, n) < phi(a, c, n1, n)


@pytest.mark.parametrize("margin", [(10, 5, 6, 2), (10, 5, 2, 6), (10, 11, 2, 0), (10, 5, -1, 2), (10, 5, 2, -1)])
def test_counts_that_no_dataset_has_are_refused(margin):
    with pytest.raises(ValueError, match="impossible counts"):
        solve(*margin, 0.3)


@pytest.mark.parametrize("strength", [0, -0.3, 1.01, float("nan"), float("inf")])
def test_a_strength_outside_its_range_is_refused_and_named(strength):
    with pytest.raises(ValueError, match=rf"strength={strength} is outside \(0, 1\]"):
        solve(100, 50, 40, 40, strength)


@pytest.mark.parametrize(("n1", "free_with"), [(0, 0), (10, 10), (5, 0)])
def test_without_contrast_or_free_rows_nothing_can_be_planted(n1, free_with):
    assert solve(10, n1, free_with, 0, 0.3) == Infeasible(0.3, 0.0)
