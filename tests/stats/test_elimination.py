"""Of several groups the worst is found by samples of their members, and lost no more often than is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.stats.elimination import EACH, ERROR, Outcome, bounds, eliminate

SEEDS = 300


class Groups:
    """Groups of members that are worth 0 or 1, in a random order; at most `limit` of them may be asked about."""

    def __init__(self, groups, *, limit=None):
        self.groups, self.limit = groups, limit
        self.size = np.array([len(group) for group in groups])
        self.asked = np.zeros(len(groups), np.int64)

    def ask(self, wanted):
        for group, n in enumerate(wanted):
            room = n if self.limit is None else self.asked[group] + self.limit - self.asked.sum()
            self.asked[group] = max(self.asked[group], min(n, room))
        return bool((self.asked >= wanted).all())

    def values(self):
        mean = np.array([group[:n].mean() if n else 0.0 for group, n in zip(self.groups, self.asked, strict=True)])
        return bounds(mean, self.asked, self.size)

    def run(self, **options) -> Outcome:
        return eliminate(self.size, self.ask, self.values, least=8, **options)


def drawn(shares, size, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(np.arange(size) < round(share * size)).astype(float) for share in shares]


@pytest.mark.parametrize("shares", [[0.6, *[0.1] * 39], [0.5, *[0.3] * 19], [0.5, 0.46, 0.44, *[0.2] * 20]], ids=len)
def test_the_worst_group_is_lost_in_no_more_runs_than_is_said(shares):
    runs = [Groups(drawn(shares, 100, seed)) for seed in range(SEEDS)]
    right = [run.run().worst == (0,) for run in runs]
    assert np.mean(right) >= 1 - ERROR
    assert np.mean([run.asked.sum() / run.size.sum() for run in runs]) < 0.8


def test_a_group_that_stands_apart_costs_a_quarter_of_the_questions():
    runs = [Groups(drawn([0.6, *[0.1] * 39], 100, seed)) for seed in range(40)]
    outcomes = [run.run() for run in runs]
    assert all(outcome == Outcome((0,)) for outcome in outcomes)
    assert np.mean([run.asked.sum() / run.size.sum() for run in runs]) < 0.25


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=40), min_size=1, max_size=12),
    st.integers(1, 200),
)
@settings(max_examples=100, deadline=None)
def test_no_more_is_asked_than_is_allowed_and_what_is_open_is_told(members, limit):
    run = Groups([np.array(group, float) for group in members], limit=limit)
    outcome = run.run()
    assert run.asked.sum() <= limit and (run.asked <= run.size).all()
    if outcome.rivals:
        assert run.asked.sum() == limit
        assert all(run.asked[group] < run.size[group] for group in outcome.rivals)
        assert not {*outcome.rivals} & {*outcome.worst}


def test_groups_of_one_value_are_asked_about_in_full():
    run = Groups(drawn([0.5] * 10, 40, 0))
    run.run()
    assert (run.asked == run.size).mean() >= 0.9


def test_what_is_of_no_interest_is_not_told_apart():
    run = Groups(drawn([0.15, 0.12, *[0.1] * 20], 100, 0))
    assert run.run(floor=0.6) == Outcome(())
    assert run.asked.sum() < 0.5 * run.size.sum()


def test_what_does_not_settle_the_matter_is_followed_by_the_next():
    run = Groups(drawn([0.3, 0.9, 0.6, *[0.05] * 20], 100, 0))
    assert run.run(settles=lambda group: group == 0).worst == (1, 2, 0)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [8, 15, 33, 75])
def test_bounds_are_passed_no_more_often_than_is_said(share, n):
    groups = drawn([share] * 4000, 100, n)
    mean, lower, upper = bounds(np.array([group[:n].mean() for group in groups]), np.full(4000, n), np.full(4000, 100))
    assert (mean <= upper).all() and (lower <= mean).all()
    assert (upper < share).mean() <= 2 * EACH
