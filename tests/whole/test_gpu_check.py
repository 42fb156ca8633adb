"""The check of a GPU runs whole without one, and one failing check hides no other."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure" / "gpu_check.py"
NAMES = ["matrix_rate", "fabric", "images", "texts", "kmeans", "silhouette"]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "gpu_check", module)  # dataclasses look their module up
        spec.loader.exec_module(module)
        yield module


def told(capsys):
    """What was printed: the JSON, and the table's rows as cells."""
    first, *lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return json.loads(first), rows[2:]


def test_every_check_passes_on_a_cpu(script, capsys):
    assert script.main(["--device", "cpu", "--small"]) == 0
    result, rows = told(capsys)
    assert result["passed"] is True and result["device"] == "cpu"
    assert [c["check"] for c in result["checks"]] == [row[0] for row in rows] == NAMES
    assert all(row[1] == "pass" and any(map(str.isdigit, row[2])) for row in rows)


def test_a_check_that_fails_stops_no_other(script, capsys, monkeypatch):
    def broken(self):
        raise RuntimeError("no kernel | for this device")

    monkeypatch.setattr(broken, "__name__", "matrix_rate")
    monkeypatch.setattr(script.Checks, "matrix_rate", broken)
    monkeypatch.setattr(script, "torch_silhouette", lambda x, labels, device: np.zeros(len(x)))
    assert script.main(["--device", "cpu", "--small"]) == 1
    result, rows = told(capsys)
    assert result["passed"] is False
    assert {c["check"] for c in result["checks"] if not c["passed"]} == {"matrix_rate", "images", "texts", "silhouette"}
    assert [row[0] for row in rows] == NAMES and all(len(row) == 4 for row in rows)
    assert "RuntimeError: no kernel" in rows[0][2] and "matrix rate" in rows[2][2]
    assert "pass" in rows[4]


def test_groups_that_differ_fail(script, monkeypatch):
    right = script.torch_kmeans

    def merged(x, centres, device):
        labels = right(x, centres, device)
        return np.where(labels == 1, 0, labels)

    monkeypatch.setattr(script, "torch_kmeans", merged)
    checks = script.Checks(script.choose_place("cpu", "bfloat16"), script.SMALL)
    passed, figure = checks.kmeans()
    assert not passed and "of 2,000 vectors alike" in figure


@pytest.mark.parametrize(("a_second", "share", "enough"), [(100, "10% of", False), (600, "60% of", True)])
def test_too_slow_an_encoder_fails(script, a_second, share, enough):
    for size, passed in [(script.FULL, enough), (script.SMALL, True)]:  # nothing is asked of a small run
        checks = script.Checks(script.choose_place("cpu", "bfloat16"), size)
        checks.rate = 1e12
        found, figure = checks._speed(np.eye(4, dtype=np.float32), "images", 1.0, a_second, 1e9)
        assert found is passed and share in figure


@pytest.mark.parametrize(
    ("model", "image", "text"),
    [("ViT-B-32", 8.82, 5.96), ("ViT-L-14", 162.03, 13.3), ("ViT-H-14", 334.59, 47.09)],
)
def test_operations_are_those_that_open_clip_publishes(script, model, image, text):
    """Its docs/model_profile.csv has them, in billions."""
    assert script.image_operations(model) / 1e9 == pytest.approx(image, abs=0.006)
    assert script.text_operations(model) / 1e9 == pytest.approx(text, abs=0.006)


def test_a_device_that_is_not_there_is_said_in_one_sentence(script, capsys):
    with pytest.raises(SystemExit) as stop:
        script.main(["--device", "cuda:99"])
    assert stop.value.code == 2
    assert "no device 'cuda:99' on this machine" in capsys.readouterr().err
