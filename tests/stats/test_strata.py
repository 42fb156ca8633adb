"""A test within strata is exact: it agrees with Fisher's, with counting by hand, and is never too eager."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.stats.contingency import fisher_greater, stratified_greater


@st.composite
def margins(draw, largest=12):
    """(n_feature, n_error, n) of one stratum."""
    n = draw(st.integers(0, largest))
    return draw(st.integers(0, n)), draw(st.integers(0, n)), n


@given(margins(largest=60), st.data())
@settings(max_examples=150)
def test_one_stratum_is_fishers_test(margin, data):
    n1, m, n = margin
    a = data.draw(st.integers(max(0, n1 + m - n), min(n1, m)))
    p = stratified_greater(a, np.array([n1]), np.array([m]), np.array([n]))
    assert p == pytest.approx(float(fisher_greater(a, n1, m, n)), rel=1e-9)


@given(st.lists(margins(), min_size=1, max_size=3), st.integers(0, 20))
@settings(max_examples=100)
def test_several_strata_are_counted_in_whole_numbers(strata, a):
    tables = [
        [(x, comb(m, x) * comb(n - m, n1 - x)) for x in range(max(0, n1 + m - n), min(n1, m) + 1)]
        for n1, m, n in strata
    ]
    ways = sum(prod(w for _, w in cell) for cell in product(*tables) if sum(x for x, _ in cell) >= a)
    everything = prod(comb(n, n1) for n1, _, n in strata)
    n1, m, n = (np.array(part) for part in zip(*strata, strict=True))
    assert stratified_greater(a, n1, m, n) == pytest.approx(float(Fraction(ways, everything)), rel=1e-9, abs=1e-12)


def test_a_feature_that_only_goes_with_the_stratum_is_not_significant_and_one_beyond_it_is():
    rng, alarms, hits = np.random.default_rng(0), 0, 0
    for _ in range(400):
        stratum = rng.integers(0, 3, 600)
        feature = rng.random(600) < np.array([0.05, 0.2, 0.5])[stratum]
        error = rng.random(600) < np.array([0.02, 0.1, 0.4])[stratum]  # both grow with the stratum, and that is all
        worse = error | (feature & (rng.random(600) < 0.2))
        for wrong, more in ((error, False), (worse, True)):
            counts = [np.bincount(stratum, mask, minlength=3).astype(int) for mask in (feature, wrong, np.ones(600))]
            p = stratified_greater(int((feature & wrong).sum()), *counts)
            alarms, hits = alarms + (not more and p < 0.05), hits + (more and p < 0.05)
    assert alarms <= 0.05 * 400 + 2 * (0.05 * 0.95 * 400) ** 0.5 and hits > 350
