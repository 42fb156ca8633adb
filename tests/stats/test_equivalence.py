"""Equality is claimed where it is shown: never by few rows, and seldom where the margin lies between both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from symbal_hf.stats.equivalence import equivalent, equivalent_paired

SHARE = st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
MARGIN = st.floats(0.01, 0.5)


@given(SHARE, SHARE, MARGIN)
def test_the_sides_may_change_and_a_wider_margin_is_never_harder(one, other, margin):
    p = equivalent(*one, *other, margin)
    assert 0 <= p <= 1 and p == pytest.approx(equivalent(*other, *one, margin))
    assert equivalent(*one, *other, min(margin * 1.5, 0.9)) <= p + 1e-6
    if abs(one[0] / one[1] - other[0] / other[1]) >= margin:
        assert p >= 0.5 - 1e-9  # what was seen is that far apart


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200), MARGIN)
def test_so_with_the_same_rows_where_agreement_everywhere_is_not_certainty(only_a, only_b, agreed, margin):
    n = only_a + only_b + agreed
    p = equivalent_paired(only_a, only_b, n, margin)
    assert 0 <= p <= 1 and p == pytest.approx(equivalent_paired(only_b, only_a, n, margin))
    if n and abs(only_a - only_b) / n >= margin:
        assert p >= 0.5 - 1e-9
    assert equivalent_paired(0, 0, agreed, margin) > 0


def test_nothing_seen_shows_nothing():
    assert equivalent(0, 0, 3, 9, 0.9) == equivalent(3, 9, 0, 0, 0.9) == equivalent_paired(0, 0, 0, 0.9) == 1


def test_a_hundred_rows_without_a_difference_are_worth_what_the_binomial_says():
    """That two rates .05 apart differ in none of n rows has a chance of .95 ** n at most."""
    assert equivalent_paired(0, 0, 51, 0.05) > 0.05 > equivalent_paired(0, 0, 52, 0.05)
    for n in (52, 60, 120):
        assert equivalent_paired(0, 0, n, 0.05) == pytest.approx(0.95**n, abs=0.021)


@pytest.mark.parametrize("low", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("margin", [0.05, 0.1])
def test_rates_a_margin_apart_are_seldom_the_same(low, margin):
    """Over all outcomes of 100 rows a side, and of 100 rows that both have."""
    n, apart, paired = 100, 0.0, 0.0
    a, b = binom.pmf(np.arange(n + 1), n, low + margin), binom.pmf(np.arange(n + 1), n, low)
    for i in np.flatnonzero(a > 1e-5):
        for j in np.flatnonzero(b > 1e-5):
            if abs(i - j) < n * margin and equivalent(int(i), n, int(j), n, margin) < 0.05:
                apart += a[i] * b[j]
        alone = binom.pmf(np.arange(n - i + 1), n - i, low / (1 - low - margin))
        for j in np.flatnonzero(alone > 1e-5):
            if abs(i - j) < n * margin and equivalent_paired(int(i), int(j), n, margin) < 0.05:
                paired += a[i] * alone[j]
    assert apart < 0.06 and paired < 0.06


def test_enough_rows_show_it():
    assert equivalent(1200, 4000, 1210, 4000, 0.05) < 0.001 < 0.05 < equivalent(30, 100, 30, 100, 0.05)
    assert equivalent_paired(20, 22, 1000, 0.05) < 0.001 < 0.05 < equivalent_paired(20, 22, 100, 0.05)
