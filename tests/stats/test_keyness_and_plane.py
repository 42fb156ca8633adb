"""Keyness orders phrases by how far a group uses them more, and a plane keeps what is near together."""

from __future__ import annotations

import numpy as np
import pytest

from symbal_hf.stats.keyness import log_odds
from symbal_hf.stats.plane import principal, project


def test_keyness_is_the_log_odds_ratio_over_its_spread():
    # Monroe, Colaresi and Quinn (2008), eqs. 16 to 22, written out for one phrase: 30 of 50 inside, 10 of 150 outside.
    prior = 10 * 40 / 200
    inside, outside = 30 + prior, 10 + prior
    odds = np.log(inside / (50 + 10 - inside)) - np.log(outside / (150 + 10 - outside))
    expected = odds / np.sqrt(1 / inside + 1 / outside)
    assert log_odds(np.array([30.0]), 50, np.array([40.0]), 200)[0] == pytest.approx(expected, rel=1e-6)


def test_a_phrase_as_frequent_inside_as_outside_says_nothing_and_less_frequent_is_negative():
    z = log_odds(np.array([20.0, 40.0, 5.0, 0.0]), 100, np.array([80.0, 80.0, 80.0, 80.0]), 400)
    assert abs(z[0]) < 1e-6 and z[1] > 3 and z[2] < -2 and z[3] < z[2]


def test_more_rows_with_the_same_shares_are_stronger():
    few = log_odds(np.array([6.0]), 10, np.array([8.0]), 40)
    many = log_odds(np.array([60.0]), 100, np.array([80.0]), 400)
    assert many[0] > 2 * few[0] > 0


def test_principal_components_keep_distances_of_what_lies_on_a_plane():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(40, 2)) * (3, 1)
    turned = flat @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2] + 5
    seen = principal(turned)
    wanted = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    assert np.linalg.norm(seen[:, None] - seen[None], axis=-1) == pytest.approx(wanted, abs=1e-9)
    assert seen[:, 0].var() > seen[:, 1].var()


@pytest.mark.parametrize("n", [0, 1, 2, 29, 60])
def test_places_lie_in_the_unit_square_and_fill_it(n):
    vectors = np.random.default_rng(n).normal(size=(n, 8))
    places, how = project(vectors, seed=1)
    assert places.shape == (n, 2) and how == ("t-SNE" if n >= 30 else "PCA")
    if n > 2:
        assert places.min(0) == pytest.approx([0, 0]) and places.max(0) == pytest.approx([1, 1])
    if n == 1:
        assert places.tolist() == [[0.5, 0.5]]


def test_two_far_groups_stay_apart_on_the_plane():
    rng = np.random.default_rng(1)
    vectors = np.concatenate([rng.normal(0, 0.1, (40, 16)), rng.normal(5, 0.1, (40, 16))])
    places, _ = project(vectors, seed=0)
    first, second = places[:40], places[40:]
    gap = np.linalg.norm(first.mean(0) - second.mean(0))
    assert gap > 2 * max(np.linalg.norm(first - first.mean(0), axis=1).mean(), 0.05)
