"""Intervals of the difference of two shares: published values, symmetry, and how often they hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.stats.contingency import difference_interval, paired_interval

COUNT = st.integers(0, 60)


def test_published_values_are_reproduced():
    # Newcombe, Statistics in Medicine 17:873 (1998), table II, method 10.
    assert difference_interval(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference_interval(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    assert difference_interval(10, 10, 0, 20) == pytest.approx((0.6791, 1.0), abs=5e-5)


@given(COUNT, COUNT, COUNT, COUNT)
def test_an_interval_holds_what_was_seen_and_turns_over_when_the_sides_swap(a, more_a, b, more_b):
    n_a, n_b = a + more_a, b + more_b
    low, high = difference_interval(a, n_a, b, n_b)
    assert -1 <= low <= high <= 1
    assert difference_interval(b, n_b, a, n_a) == pytest.approx((-high, -low))
    if n_a and n_b:
        assert low - 1e-12 <= a / n_a - b / n_b <= high + 1e-12


@given(COUNT, COUNT, COUNT, COUNT)
def test_so_does_an_interval_of_the_same_rows(both, only_a, only_b, neither):
    low, high = paired_interval(both, only_a, only_b, neither)
    assert -1 <= low <= high <= 1
    assert paired_interval(both, only_b, only_a, neither) == pytest.approx((-high, -low))
    n = both + only_a + only_b + neither
    if n:
        assert low - 1e-12 <= (only_a - only_b) / n <= high + 1e-12


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
