"""What an audit would ask is counted before a model is loaded; each command of the compositions page is valid."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from command import symbal
from oracle import Oracle

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from symbal_hf.core.store import Store
from symbal_hf.data.table import load_data
from symbal_hf.models.composition import Composition, load_preset
from symbal_hf.models.estimate import estimate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    base = scenes_base(tmp_path_factory.mktemp("drawn"), rows=120, size=64, seed=4)
    rows = [{"id": i, "image": str(image), "caption": caption}
            for i, image, caption in zip(base.ids, base.images, base.captions, strict=True)]  # fmt: skip
    return base, load_data(rows)


@pytest.mark.parametrize("method", ["association", "paper"])
def test_no_audit_asks_more_than_was_estimated(data, tmp_path, method):
    base, rows = data
    parts = {"chat": "hf:oracle", "summarizer_1": "text-only", "summarizer_2": "vision-language"}
    oracle = Oracle(base)
    given = parts if method == "paper" else {}  # an audit by association names no cluster, and says so
    symbal_hf.audit(rows, method=method, store=Store(tmp_path / "s.sqlite"), **(given | {"chat": oracle}))
    told = estimate(rows, Composition(**parts), method=method)
    most = sum(one.calls for one in told.asked)
    assert oracle.asked <= most
    assert oracle.asked >= 0.5 * sum(one.calls for one in told.asked if one.part in ("scorer_1", "features"))
    assert all(one.tokens_in > one.calls for one in told.asked)


def test_hours_grow_with_the_model_and_fall_with_the_machine(data):
    _, rows = data
    preset = load_preset("paper-natural")
    one = estimate(rows, preset.composition, models=preset.models)
    other = estimate(rows, preset.composition, models=preset.models, tflops=800)
    assert one.hours == pytest.approx(2 * other.hours) and one.hours > 0
    small = load_preset("small")
    assert estimate(rows, small.composition, models=small.models).hours < one.hours
    assert estimate(rows, preset.composition).hours is None  # nobody says how large the models are


@pytest.mark.parametrize("budget", [9, 10**6])
def test_a_budget_is_shared_by_both_scorers(data, budget):
    _, rows = data
    composition = Composition(chat="hf:a/model", scorer_2="text-only", captioner="hf:a/model")
    asked = [estimate(rows, composition, method="paper", budget=one).asked for one in (budget, None)]
    within, everything = (sum(one.calls for one in told if one.part.startswith("scorer")) for told in asked)
    assert within == min(budget, everything)


def test_every_row_of_the_compositions_page_is_a_composition():
    text = (ROOT / "docs" / "compositions.md").read_text("utf-8")
    count = 0
    for section in text.split("\n## ")[1:]:
        command = re.search(r"`(symbal audit .*)`", section)[1]
        for options in re.findall(r"\| `(--.*?)` \|", section):
            words = shlex.split(f"{command} {options}")[3:]
            given = {k.removeprefix("--").replace("-", "_"): v for k, v in zip(words[::2], words[1::2], strict=True)}
            assert given.pop("method") == "paper"
            changed = load_preset(given.pop("preset")).composition.with_parts(**given)
            assert all(getattr(changed, part) == value for part, value in given.items())
            count += 1
    assert count == 4 + 10 + 10 + 10  # the paper's Tables 4 and 5


def test_the_command_line_prints_both_without_loading_anything(data, tmp_path):
    table = tmp_path / "captions.csv"
    table.write_text("id,caption,image\n1,A dog.,a.jpg\n2,A cat. A dog.,b.jpg\n")
    done = symbal("estimate", table, "--preset", "paper-natural")
    assert done.returncode == 0, done.stderr
    assert "3 different (image, fact) pairs" in done.stdout and "173 GB of GPU memory" in done.stdout
    assert re.search(r"hours: \d+\.\d at 400 useful teraflops", done.stdout)
    done = symbal("serve-command", "--preset", "paper-medical")
    assert "vllm serve google/medgemma-27b-it --dtype bfloat16" in done.stdout
    assert "--chat openai:http://localhost:8000/v1#google/medgemma-27b-it" in done.stdout
    done = symbal("estimate", table, "--preset", "lite")
    assert done.returncode == 0 and "2 rows. lite asks no chat model and needs no GPU" in done.stdout
    done = symbal("serve-command", "--preset", "lite")
    assert done.returncode == 0 and "lite needs no server" in done.stdout
    done = symbal("estimate", table, "--preset", "light")
    assert done.returncode == 2 and "no preset 'light'" in done.stderr
