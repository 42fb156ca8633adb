"""Every number about a 2x2 table agrees with an independent way of computing it."""

from __future__ import annotations

from fractions import Fraction
from math import comb, isfinite, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, chi2_contingency, false_discovery_control, fisher_exact, hypergeom, norm

from symbal_hf.stats.contingency import corrected, cramers_v, fisher_greater, risk_ratio, wilson

LIGHT = settings(max_examples=150)


@st.composite
def tables(draw, largest: int = 80):
    """(a, n_feature, n_error, n) of a table that can be, empty margins included."""
    n = draw(st.integers(0, largest))
    n1, m = draw(st.integers(0, n)), draw(st.integers(0, n))
    return draw(st.integers(max(0, n1 + m - n), min(n1, m))), n1, m, n


def cells(a, n1, m, n):
    return [[a, n1 - a], [m - a, n - n1 - m + a]]


def exact_tail(a, n1, m, n) -> float:
    """P(X >= a) by whole numbers only."""
    term, total = comb(m, a) * comb(n - m, n1 - a), 0
    for x in range(a, min(n1, m) + 1):
        total += term
        term = term * (n1 - x) * (m - x) // ((x + 1) * (n - n1 - m + x + 1))
    return float(Fraction(total, comb(n, n1)))


@given(tables())
@LIGHT
def test_fisher_is_scipy_s_and_the_sum_of_whole_numbers(table):
    p = float(fisher_greater(*table))
    assert p == pytest.approx(fisher_exact(cells(*table), alternative="greater").pvalue, rel=1e-9)
    assert p == pytest.approx(exact_tail(*table), rel=1e-9)


@given(st.integers(2, 100_000), st.floats(0, 1), st.floats(0, 1), st.floats(-4, 14))
@LIGHT
def test_fisher_holds_far_out_in_the_tail_of_large_tables(n, share1, share2, deviations):
    n1, m = round(share1 * n), round(share2 * n)
    mean = n1 * m / n
    a = round(mean + deviations * sqrt(mean * (1 - n1 / n) * (1 - m / n)))
    a = min(max(a, 0, n1 + m - n), n1, m)
    p = hypergeom.sf(a - 1, n, n1, m)
    assume(p > 1e-290)
    assert float(fisher_greater(a, n1, m, n)) == pytest.approx(p, rel=1e-9)


@st.composite
def extreme_tables(draw, largest: int = 100_000):
    """Tables of up to 100,000 rows whose margins and overlap are often as small or as large as they can be."""
    n = draw(st.integers(0, largest) | st.sampled_from([0, 1, 2, largest]))
    margin = st.integers(0, n) | st.sampled_from(sorted({0, min(1, n), n // 2, max(n - 1, 0), n}))
    n1, m = draw(margin), draw(margin)
    low, high = max(0, n1 + m - n), min(n1, m)
    mean = min(max(round(n1 * m / max(n, 1)), low), high)
    ends = sorted({low, min(low + 1, high), mean, max(high - 1, low), high})
    return draw(st.integers(low, high) | st.sampled_from(ends)), n1, m, n


@given(st.lists(extreme_tables(), min_size=1, max_size=12))
@settings(max_examples=150)
def test_fisher_is_scipy_s_to_nine_digits_at_every_extreme(drawn):
    expected = [fisher_exact(cells(*table), alternative="greater").pvalue for table in drawn]
    p = fisher_greater(*np.array(drawn).T)
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-9)
    assert ((p >= 0) & (p <= 1)).all()


@pytest.mark.parametrize(
    ("a", "n1", "m", "size"),
    [(130, 1000, 3000, 1.737e-44), (131, 1000, 3000, 4.08e-45), (70, 1000, 3000, 1.11e-10), (30, 1000, 3000, 0.526),
     (600, 1000, 50_000, 1.11e-10)],
)  # fmt: skip
def test_fisher_at_a_hundred_thousand_rows(a, n1, m, size):
    p = float(fisher_greater(a, n1, m, 100_000))
    assert p == pytest.approx(exact_tail(a, n1, m, 100_000), rel=1e-9)
    assert p == pytest.approx(fisher_exact(cells(a, n1, m, 100_000), alternative="greater").pvalue, rel=1e-9)
    assert p == pytest.approx(size, rel=0.02)


@given(tables())
@LIGHT
def test_fisher_treats_feature_and_error_alike_and_falls_as_a_grows(table):
    a, n1, m, n = table
    p = float(fisher_greater(a, n1, m, n))
    assert float(fisher_greater(a, m, n1, n)) == pytest.approx(p, rel=1e-9)
    if a > max(0, n1 + m - n):
        assert p < float(fisher_greater(a - 1, n1, m, n)) * (1 + 1e-12)
    else:
        assert p == 1


def test_fisher_broadcasts():
    a, n1 = np.array([[1], [2], [3]]), np.array([4, 5, 6, 7])
    p = fisher_greater(a, n1, 5, 30)
    assert p.shape == (3, 4)
    assert all(p[i, j] == fisher_greater(a[i, 0], n1[j], 5, 30) for i in range(3) for j in range(4))
    assert fisher_greater([], 4, 5, 30).shape == (0,)


@pytest.mark.parametrize(
    ("table", "named"),
    [((5, 4, 6, 20), "a=5"), ((-1, 4, 6, 20), "a=-1"), ((0, 15, 10, 20), r"\[5, 10\]"), ((3, 21, 3, 20), "21"),
     ((3, 3, 21, 20), "21")],
)  # fmt: skip
def test_a_table_with_a_negative_cell_raises_and_is_named(table, named):
    with pytest.raises(ValueError, match=f"no 2x2 table.*{named}"):
        fisher_greater(*(np.array([good, bad]) for good, bad in zip((2, 4, 6, 20), table, strict=True)))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=60))
@LIGHT
def test_cramers_v_is_the_correlation_of_the_two_columns(rows):
    feature, error = np.array(rows, float).T
    v = float(cramers_v(feature @ error, feature.sum(), error.sum(), len(rows)))
    if feature.std() and error.std():
        assert v == pytest.approx(np.corrcoef(feature, error)[0, 1], abs=1e-12)
    else:
        assert v == 0


@given(tables(2000))
@LIGHT
def test_cramers_v_is_the_root_of_chi_square_over_n_with_a_sign(table):
    a, n1, m, n = table
    assume(0 < n1 < n and 0 < m < n)
    v = float(cramers_v(*table))
    assert abs(v) == pytest.approx(sqrt(chi2_contingency(cells(*table), correction=False).statistic / n), abs=1e-9)
    assert v == 0 or (v > 0) == (a * n > n1 * m)
    assert float(cramers_v(n1 - a, n1, n - m, n)) == pytest.approx(-v, abs=1e-12)  # the error's absence


def test_cramers_v_broadcasts_and_empty_margins_give_zero():
    assert cramers_v([[0], [3]], [3, 5], 3, 10).shape == (2, 2)
    assert cramers_v([0, 0, 3, 3, 0], [0, 4, 10, 3, 0], [3, 0, 3, 10, 0], [10, 10, 10, 10, 0]).tolist() == [0] * 5
    assert float(cramers_v(3, 3, 3, 10)) == pytest.approx(1)
    assert float(cramers_v(0, 5, 5, 10)) == pytest.approx(-1)


@given(st.integers(1, 5000), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
@LIGHT
def test_wilson_is_scipy_s_interval(n, share, level):
    k = round(share * n)
    low, high = wilson(k, n, z=norm.ppf((1 + level) / 2))
    expected = binomtest(k, n).proportion_ci(level, method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= k / n + 1e-15 and k / n - 1e-15 <= high <= 1
    if level == 0.95:
        assert wilson(k, n) == pytest.approx((low, high), abs=1e-12)


def test_wilson_of_nothing_observed_is_everything():
    assert wilson(0, 0) == (0.0, 1.0)


groups = st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(groups, groups)
@LIGHT
def test_risk_ratio_turns_over_when_the_groups_swap(one, other):
    ratio, low, high = risk_ratio(*one, *other)
    assert all(map(isfinite, (ratio, low, high)))
    assert 0 < low <= ratio * (1 + 1e-12) and ratio <= high * (1 + 1e-12)
    assert risk_ratio(*other, *one) == pytest.approx((1 / ratio, 1 / high, 1 / low), rel=1e-9)


@given(groups, groups)
@LIGHT
def test_risk_ratio_is_risk_over_risk_where_no_cell_is_zero(one, other):
    (a, n1), (b, n0) = one, other
    assume(a and b)
    ratio, low, high = risk_ratio(a, n1, b, n0)
    assert ratio == pytest.approx(a / n1 / (b / n0))
    error = sqrt(1 / a - 1 / n1 + 1 / b - 1 / n0)  # Katz 1978
    assert np.log([low, high]) == pytest.approx(np.log(ratio) + np.array([-1, 1]) * 1.959964 * error, abs=1e-5)


def test_risk_ratio_of_zero_cells_takes_half_a_count():
    assert risk_ratio(3, 10, 0, 20)[0] == pytest.approx((3.5 / 11) / (0.5 / 21))
    assert risk_ratio(0, 10, 0, 10)[0] == pytest.approx(1)


def test_risk_ratio_of_an_empty_group_is_unknown():
    ratio, low, high = risk_ratio(0, 0, 3, 10)
    assert np.isnan(ratio) and (low, high) == (0, float("inf"))


def plainly(p, tried, method):
    """Holm and Bonferroni from their definitions, one p-value at a time."""
    if method == "bonferroni":
        return [min(1, x * tried) for x in p]
    rank = sorted(range(len(p)), key=lambda i: p[i])
    return [min(1, max(p[rank[j]] * (tried - j) for j in range(rank.index(i) + 1))) for i in range(len(p))]


p_values = st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.02, 0.5]), min_size=1, max_size=25)


@given(p_values, st.sampled_from(["bonferroni", "holm", "bh"]), st.integers(0, 50))
@LIGHT
def test_correction_follows_its_definition(p, method, more):
    tried = len(p) + more
    out = corrected(p, tried=tried, method=method)
    if method == "bh":  # tests that were made but not picked are as good as p = 1
        expected = false_discovery_control(np.r_[p, np.ones(more)], method="bh")[: len(p)]
        np.testing.assert_allclose(out, expected, rtol=1e-12)
    else:
        np.testing.assert_allclose(out, plainly(p, tried, method), rtol=1e-12)
    assert (out >= np.array(p) * (1 - 1e-12)).all() and (out <= 1).all()
    assert (np.diff(out[np.argsort(p)]) >= 0).all()


@given(p_values)
@LIGHT
def test_stricter_corrections_give_larger_values(p):
    bonferroni, holm, bh = (corrected(p, method=m) for m in ("bonferroni", "holm", "bh"))
    assert (bonferroni >= holm - 1e-12).all() and (holm >= bh - 1e-12).all()
    np.testing.assert_array_equal(corrected(p), bonferroni)
    assert (corrected(p, tried=len(p) + 9) >= bonferroni).all()


def test_fewer_tests_tried_than_given_is_refused():
    with pytest.raises(ValueError, match="tried=2 is fewer than the 3"):
        corrected([0.1, 0.2, 0.3], tried=2)


@pytest.mark.parametrize("method", ["bonferroni", "holm", "bh"])
def test_nothing_to_correct_is_nothing(method):
    assert corrected([], method=method).shape == (0,)
    assert corrected([], tried=7, method=method).shape == (0,)
