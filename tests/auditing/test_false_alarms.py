"""Judges with faults of every kind: beside a second judge no fault of the first makes a true caption false."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

MEASURE = Path(__file__).parents[2] / "scripts" / "measure"
RUNS, FIRST = 10, 50_000


@pytest.fixture(scope="module")
def simulated():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(MEASURE))
        yield importlib.import_module("simulated_judges")


def of_kind(simulated, real):
    return {name: case for name, case in simulated.SCENARIOS.items() if bool(case.real) == real}


def found(simulated, case, *, alone=False):
    """Of each run, whether anything is found, and the pair that was made."""
    for seed in range(FIRST, FIRST + RUNS):
        run = simulated.run_of(case, seed)
        if run.pair is None and (case.blind or case.real):
            continue
        image = np.repeat(np.arange(len(run.told)), case.copies)
        rows = run.told[image]
        if case.errors:
            errors = run.world.rng, np.arange(len(image))
            rows = simulated.random_errors(rows, ~run.world.shows[image], case.errors, *errors)
        given = {"table": run.table} if alone else {"second": run.second[image]}
        shown = image if case.copies > 1 else None
        result = simulated.verdict(simulated.simulated(rows, run.presence[image], image=shown, **given))
        names = simulated.thing_names(run.told.shape[1])
        pair = run.pair and tuple(names[i] for i in run.pair)
        yield {(f.textual_error, f.visual_feature) for f in result.findings}, pair


def test_no_fault_of_a_judge_is_found_where_a_second_one_looks(simulated):
    for name, case in of_kind(simulated, real=False).items():
        assert sum(bool(pairs) for pairs, _ in found(simulated, case)) <= 1, name


def test_a_judge_alone_finds_no_more_than_it_was_measured_to_miss(simulated):
    for name, case in of_kind(simulated, real=False).items():
        assert sum(bool(pairs) for pairs, _ in found(simulated, case, alone=True)) <= 2, name


def test_real_errors_are_found_all_the_same(simulated):
    for name, case in of_kind(simulated, real=True).items():
        hits = [pair in pairs for pairs, pair in found(simulated, case)]
        assert len(hits) >= 5 and np.mean(hits) >= 0.75, name


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_noisy_judges_find_nothing_where_all_captions_of_random_images_err(simulated, copies):
    alarms = 0
    for seed in range(FIRST, FIRST + RUNS):
        world = simulated.World.of(seed, 400)
        image = np.repeat(np.arange(400), copies)
        told = world.shows[image] & (world.rng.random((len(image), world.shows.shape[1])) < simulated.STATED)
        told = simulated.random_errors(told, ~world.shows, 60, world.rng, image)
        presence, second = world.presence()[image], world.presence()[image]
        for how in ({"second": second}, {"scorer": "vision-language"}):
            alarms += bool(simulated.verdict(simulated.simulated(told, presence, image=image, **how)).findings)
    assert alarms <= 2
