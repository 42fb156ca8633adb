"""Shared ground of the tests: no network, a fresh cache, and the real data where it is at hand."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["NO_PROXY"] = "127.0.0.1"  # the servers of tests are on loopback, whatever proxy this machine has
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

# A machine under load is no failure, and a run that failed can be run again.
settings.register_profile("symbal", deadline=None, derandomize=True)
settings.load_profile("symbal")


@pytest.fixture(scope="session", autouse=True)
def fresh_caches(tmp_path_factory):
    """Nothing that an earlier run left behind may help or hurt; the processes of one run share what they embed."""
    folder = tmp_path_factory.mktemp("caches")
    top = tmp_path_factory.getbasetemp()
    os.environ["HF_HOME"] = str(folder / "hf")
    os.environ["SYMBAL_CACHE"] = str((top.parent if "PYTEST_XDIST_WORKER" in os.environ else top) / "symbal")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real photos and captions; a user's clone has none."""
    folder = Path(os.environ.get("SYMBAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set SYMBAL_DATA to a folder that has it")
    return folder


@pytest.fixture(scope="session")
def scene_folder(tmp_path_factory):
    """300 drawn scenes with a planted error, and its truth."""
    from benchmark_builder.demo import plant_demo

    return plant_demo(tmp_path_factory.mktemp("scenes"), rows=300, seed=3)


@pytest.fixture
def browser(tmp_path):
    """Headless Chromium, where one is installed."""
    from browser import Browser, find_browser

    program = find_browser()
    if program is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium")
    opened = Browser(program, tmp_path / "profile")
    yield opened
    opened.close()
