"""What the README shows of the Hub works from nothing: three repos are pushed, and a stranger's process runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hub import LoopbackHub

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.pairs import pairs_for
from benchmark_builder.writing.build import build

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SETTINGS = 20

PUSH = """
from pathlib import Path
import symbal_hf
from benchmark_builder.writing.publish import publish
import symbal_hf.bench.metrics
from symbal_hf.huggingface.publish import METRIC, publish_metric
print(publish(Path(sys.argv[1]), "lab/symbalbench"))
print(symbal_hf.pipeline(tau=0.65, top_k=3).push_to_hub("lab/my-auditor"))
print(publish_metric(Path(symbal_hf.bench.metrics.__file__).parent / METRIC, "lab/symbal_acc_at_k"))
"""


def example() -> str:
    """The README's code that loads from the Hub, with the names under which the test pushed."""
    (block,) = [code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "evaluate.load" in code]
    return block.replace("you/", "lab/")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A benchmark of twenty settings of small scenes."""
    top = tmp_path_factory.mktemp("bench")
    base = scenes_base(top / "drawn", rows=240, size=96, seed=21)
    pairs = pairs_for(base, ["adversarial"], seed=1)
    for n in range(5, len(pairs)):
        built = build(base, top / f"symbalbench{n}", pairs=pairs[:n], strengths=[0.6, 0.9], seed=1)
        if len(built.feasible) >= SETTINGS:
            assert len(built.feasible) <= SETTINGS + 1
            return top / f"symbalbench{n}"
    raise AssertionError("scenes give too few settings")


def test_the_readme_s_example_runs_in_a_fresh_process(folder, tmp_path):
    with LoopbackHub() as hub:
        urls = hub.run(PUSH, tmp_path / "pusher", folder).split()
        assert len(urls) == 3 and all(url.startswith(hub.url) for url in urls)
        assert {"config.json", "README.md", "pipelines.py", "model.safetensors"} == set(
            hub.files("lab/my-auditor", kind="model")
        )
        told = json.loads(hub.files("lab/my-auditor", kind="model")["config.json"])
        assert (told["model_type"], told["tau"], told["top_k"]) == ("symbal", 0.65, 3)
        code = example() + "\nimport json\nprint(json.dumps([auditor.model.config.tau, len(predictions), scores]))"
        said = hub.run(code, tmp_path / "stranger").splitlines()
        tau, n, scores = json.loads(said[-1])
        assert tau == 0.65 and n == scores["n"] >= SETTINGS
        assert scores["acc@1"] > 0.5 and scores["acc@1"] <= scores["acc@5"]
        assert set(scores["by"]["strength"]) == {"0.6", "0.9"} and scores["judge"]["name"] == "lite"
        assert said[-2].startswith(f"{scores['acc@1']} [")
        assert hub.unknown == []


def test_without_trust_a_composition_on_the_hub_runs_nothing(tmp_path):
    code = """
from transformers import pipeline
try:
    pipeline("systematic-misalignment", model="lab/my-auditor")
except ValueError as error:
    print("trust_remote_code=True" in str(error), "symbal_hf" in sys.modules)
auditor = pipeline("systematic-misalignment", model="lab/my-auditor", trust_remote_code=True)
print(type(auditor).__name__, auditor.model.config.tau)
"""
    with LoopbackHub() as hub:
        hub.run("import symbal_hf\nsymbal_hf.pipeline(tau=0.65).push_to_hub('lab/my-auditor')", tmp_path / "pusher")
        said = hub.run(code, tmp_path / "stranger").splitlines()
        assert said[-2].endswith("True False") and said[-1] == "SymbalPipeline 0.65"
        assert hub.unknown == []
