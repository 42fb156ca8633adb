"""False statements beside a feature are found by likelihood, where nobody knows which are false; nothing else is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from symbal_hf.stats.contingency import fisher_greater
from symbal_hf.stats.latent import false_beside, shares_stated, surplus_beside


def world(rng, n=1200, *, beside=0.1, there=0.06, shift=0.0, m=(0.6, 0.6), f=(0.02, 0.02), sharp=2.4):
    """Presence by a calibrated judge, what captions state, and a feature beside which shares may differ."""
    feature = rng.random(n) < beside
    prior = np.log(there / (1 - there)) + shift * feature
    shown = rng.random(n) < 1 / (1 + np.exp(-prior))
    presence = 1 / (1 + np.exp(-(prior + sharp * rng.normal(np.where(shown, sharp / 2, -sharp / 2)))))
    share = np.where(shown, np.where(feature, m[1], m[0]), np.where(feature, f[1], f[0]))
    return presence, rng.random(n) < share, feature[:, None]


@pytest.mark.parametrize(
    "how",
    [{}, {"m": (0.3, 0.9)}, {"m": (0.9, 0.3), "shift": 1.5}, {"sharp": 1.0}, {"f": (0.05, 0.05), "shift": -1.0}],
    ids=["even", "mentioned more beside it", "mentioned less and shown more", "hardly seen", "shown less"],
)
def test_where_no_more_is_false_beside_a_feature_scores_are_normal(how):
    scores = np.array([false_beside(*world(np.random.default_rng(seed), **how))[0] for seed in range(400)])
    for level in (0.05, 0.01):
        allowed = level * 400 + 3 * (level * (1 - level) * 400) ** 0.5
        assert (scores > norm.isf(level)).sum() <= allowed


def test_false_statements_beside_a_feature_are_seen_though_which_are_false_is_not():
    scores = np.array([false_beside(*world(np.random.default_rng(seed), f=(0.02, 0.25)))[0] for seed in range(60)])
    assert np.median(scores) > 5 and (scores > 3).mean() > 0.95


def test_a_rough_test_puts_the_same_feature_first():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        presence, stated, feature = world(rng, f=(0.02, 0.25))
        others = rng.random((len(stated), 30)) < 0.1
        features = np.hstack([others, feature])
        assert np.argmax(surplus_beside(presence, stated, features)) == 30
        assert np.argmax(false_beside(presence, stated, features)) == 30


@given(st.integers(0, 10_000), st.floats(0.5, 3), st.floats(0.01, 0.3))
@settings(max_examples=25)
def test_the_likelihood_is_at_its_largest(seed, sharp, false):
    presence, stated, feature = world(np.random.default_rng(seed), 600, f=(0.02, false), sharp=sharp)
    beside, p = feature[:, 0], np.clip(presence, 1e-4, 1 - 1e-4)

    def lack(w, tied):
        m, f = (1 / (1 + np.exp(-w[:2]))), 1 / (1 + np.exp(-w[2:]))
        f = np.repeat(f, 2) if tied else f
        chance = np.where(beside, p * m[1] + (1 - p) * f[1], p * m[0] + (1 - p) * f[0])
        held = 0.5 * (np.log(m) + np.log(1 - m)).sum() + 1e-3 * (np.log(f) + np.log(1 - f)).sum()
        return -(np.where(stated, np.log(chance), np.log(1 - chance)).sum() + held)

    best = [
        min(
            minimize(lack, [a, a, *[b] * (1 if tied else 2)], args=(tied,), method="BFGS").fun
            for a in (-1, 1)
            for b in (-4, -1)
        )
        for tied in (True, False)
    ]
    score = false_beside(presence, stated, feature)[0]
    assert score**2 == pytest.approx(2 * (best[0] - best[1]), rel=0.04, abs=0.2)  # bins of presence


def test_what_is_known_for_sure_is_counted():
    rng = np.random.default_rng(3)
    shown, feature = rng.random(2000) < 0.1, rng.random(2000) < 0.15
    stated = np.where(shown, rng.random(2000) < 0.5, rng.random(2000) < np.where(feature, 0.05, 0.02))
    lacks = ~shown
    exact = fisher_greater(
        (stated & feature & lacks).sum(), (feature & lacks).sum(), (stated & lacks).sum(), lacks.sum()
    )
    score = false_beside(shown.astype(float), stated, feature[:, None])[0]
    assert norm.sf(score) == pytest.approx(float(exact), rel=0.6)
    assert shares_stated(shown.astype(float), stated)[1] == pytest.approx(stated[lacks].mean(), abs=0.003)


@given(st.integers(0, 10_000), st.floats(1, 4))
@settings(max_examples=30)
def test_a_judge_granted_a_doubt_accuses_no_more(seed, odds):
    how = world(np.random.default_rng(seed), 500, f=(0.02, 0.1))
    assert false_beside(*how, odds=(1.0, odds))[0] <= false_beside(*how)[0] + 1e-9


def test_no_feature_no_statement_and_no_image_are_no_error():
    presence, stated, feature = world(np.random.default_rng(0), 100)
    for s, f in ((stated, feature & False), (stated & False, feature), (stated | True, feature)):
        assert np.isfinite(false_beside(presence, s, f)).all() and false_beside(presence, s, f)[0] < 2
    assert false_beside(presence, stated, feature[:, :0]).shape == (0,)
