"""Intervals of the difference of two shares: published values, symmetry, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.stats.contingency import difference_interval, fisher_two_sided, mcnemar, paired_interval

LIGHT = settings(max_examples=200)
SHARE = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CELLS = st.tuples(*[st.integers(0, 60)] * 4).filter(any)


@pytest.mark.parametrize(
    ("table", "interval"),
    [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090)), ((5, 56, 0, 29), (-0.0381, 0.1926)),
     ((0, 10, 0, 20), (-0.1611, 0.2775)), ((10, 10, 0, 20), (0.6791, 1.0))],
)  # fmt: skip
def test_the_interval_is_the_published_one(table, interval):
    """Newcombe 1998, table II, method 10."""
    assert difference_interval(*table) == pytest.approx(interval, abs=5e-5)


def test_the_paired_interval_is_the_published_one():
    """Airway hyper-responsiveness before and after, Fagerland, Lydersen and Laake 2014."""
    assert paired_interval(1, 1, 7, 12) == pytest.approx((-0.507, -0.026), abs=5e-4)


@given(SHARE, SHARE)
@LIGHT
def test_an_interval_holds_the_difference_and_turns_round_with_the_sides(one, other):
    low, high = difference_interval(*one, *other)
    gap = one[0] / one[1] - other[0] / other[1]
    assert -1 <= low <= gap + 1e-12 and gap - 1e-12 <= high <= 1
    assert difference_interval(*other, *one) == pytest.approx((-high, -low), abs=1e-12)
    more = difference_interval(*(4 * x for x in (*one, *other)))
    assert more[1] - more[0] < high - low
    assert fisher_two_sided(*one, *other) == pytest.approx(fisher_two_sided(*other, *one))


@given(CELLS)
@LIGHT
def test_so_does_a_paired_one(cells):
    both, only_a, only_b, neither = cells
    low, high = paired_interval(*cells)
    gap = (only_a - only_b) / sum(cells)
    assert -1 <= low <= gap + 1e-12 and gap - 1e-12 <= high <= 1
    assert paired_interval(both, only_b, only_a, neither) == pytest.approx((-high, -low), abs=1e-12)
    more = paired_interval(*(4 * x for x in cells))
    assert more[1] - more[0] < high - low + 1e-12
    assert mcnemar(only_a, only_b) == mcnemar(only_b, only_a) <= 1


def test_nothing_observed_may_be_anything():
    assert difference_interval(0, 0, 3, 9) == difference_interval(3, 9, 0, 0) == paired_interval(0, 0, 0, 0) == (-1, 1)


def test_rows_that_go_together_make_the_interval_narrower():
    low, high = paired_interval(40, 5, 5, 50)
    apart = difference_interval(45, 100, 45, 100)
    assert high - low < 0.7 * (apart[1] - apart[0])


@pytest.mark.parametrize("together", [0.0, 0.6])
def test_nineteen_of_twenty_intervals_hold_the_truth(together):
    rng, hits, runs, n = np.random.default_rng(3), 0, 2000, 80
    for _ in range(runs):
        shared = rng.random(n) < together
        x = rng.random(n)
        y = np.where(shared, x, rng.random(n))
        a, b = x < 0.45, y < 0.3
        low, high = paired_interval(*(int(np.sum(m)) for m in (a & b, a & ~b, ~a & b, ~a & ~b)))
        hits += low <= 0.15 <= high
    assert 0.93 < hits / runs < 0.985
