"""One benchmark, and one run over it, for all tests of the leaderboard; none of them changes it."""

import pytest
from bench_case import half, make_bench, write_results


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    return make_bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="session")
def results(bench, tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("results") / "run", bench, half)
