"""An auditor in the transformers style: any form of dataset goes in, findings come out, and it travels as a folder."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Image, IterableDataset
from huggingface_hub import ModelCard
from oracle import Oracle
from tiny_models import save_clip
from transformers import AutoConfig, AutoModel, BertConfig, BertModel, pipeline

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Chance, Gates, Parts, Summing, names_of
from symbal_hf.core.store import Store
from symbal_hf.huggingface.pipelines import LITE, SymbalConfig, SymbalModel, SymbalPipeline
from symbal_hf.models.composition import preset_names

TASK = "systematic-misalignment"
OLD = Path(__file__).parents[1] / "assets" / "version_0_1"
PAIR = ("dog", "car")  # what both judges see in drawings


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=240, seed=93)


@pytest.fixture(scope="module")
def planted(base):
    found = Ground(base).plant(*PAIR, 0.9)
    assert isinstance(found, Planted)
    return found


@pytest.fixture(scope="module")
def rows(base, planted):
    return [{"id": i, "image": str(image), "caption": caption}
            for i, image, caption in zip(base.ids, base.images, planted.captions, strict=True)]  # fmt: skip


@pytest.fixture(scope="module")
def dataset(rows):
    return Dataset.from_list(rows).cast_column("image", Image())


@pytest.fixture(scope="module")
def auditor():
    return pipeline(TASK)


def pairs(findings):
    return [(f["textual_error"], f["visual_feature"]) for f in findings]


def test_without_a_model_it_is_lite_and_says_what_the_audit_says(auditor, rows, planted):
    findings = auditor(rows)
    assert pairs(findings) == [PAIR]
    assert findings == json.loads(json.dumps([f.to_dict() for f in symbal_hf.audit(rows).findings]))
    lies = {rows[row]["id"] for row in planted.rows}
    assert len(lies & {row["row_id"] for row in findings[0]["affected"]}) > 0.8 * len(lies)


def test_one_dataset_is_one_answer_whatever_form_it_has(auditor, rows, dataset, tmp_path):
    found = auditor(rows)
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (dataset, DatasetDict(test=dataset)["test"], tuple(rows), table, str(table)):
        assert auditor(source, image_root="/") == found if isinstance(source, (str, Path)) else auditor(source) == found
    assert auditor([dataset, rows]) == [found, found]


def test_what_has_no_end_needs_a_limit(rows, dataset):
    auditor, n = pipeline(TASK, tau=0.4), 120
    found, stream = auditor(rows[:n]), dataset.to_iterable_dataset()
    assert pairs(found) == [PAIR] and isinstance(stream, IterableDataset)
    assert auditor(stream, limit=n) == found == pipeline(TASK, tau=0.4, limit=n)(row for row in rows)
    with pytest.raises(BadData, match="a IterableDataset may have no end; give limit"):
        auditor(stream)
    with pytest.raises(BadData, match="a generator may have no end; give limit"):
        auditor(row for row in rows)


@pytest.mark.parametrize(
    ("made", "complaint"),
    [(lambda d: DatasetDict(train=d, test=d), r"the splits train, test; give one, such as data\['train'\]"),
     (lambda d: [], "nothing to audit in an empty list"),
     (lambda d: [d, {"caption": "A dog."}], "of 2 inputs 1 are rows and the others are not"),
     (lambda d: {"image": "a.png", "caption": "A dog."}, "one row says nothing of what recurs"),
     (lambda d: 7, "a int is no dataset"),
     (lambda d: d.remove_columns("caption"), "no caption column")],
)  # fmt: skip
def test_what_is_no_dataset_is_refused_in_a_sentence(auditor, dataset, made, complaint):
    with pytest.raises(BadData, match=complaint):
        auditor(made(dataset))


def test_options_may_come_early_or_late_and_the_later_wins(rows):
    strict = pipeline(TASK, min_rate=0.99, method="association", output="result")
    result = strict(rows)
    assert (result["verdict"], result["findings"], result["provenance"]["min_rate"]) == ("none", [], 0.99)
    assert pairs(strict(rows, min_rate=0.05, output="findings")) == [PAIR]
    assert strict(rows)["provenance"]["min_rate"] == 0.99  # a call changes no other call
    assert strict(rows, output="prediction") == symbal_hf.audit(rows, min_rate=0.99).prediction()


def test_an_option_that_does_not_exist_is_named(auditor, rows):
    with pytest.raises(TypeError, match="has no option 'threshold'; its options are image_column"):
        auditor(rows, threshold=3)
    with pytest.raises(ValueError, match="output='table'; available"):
        auditor(rows, output="table")
    with pytest.raises(ValueError, match="tau=3"):
        auditor(rows, tau=3)


def test_columns_of_any_name_can_be_given(auditor, dataset, rows):
    other = dataset.rename_columns({"image": "photo", "caption": "said"})
    assert auditor(other, image_column="photo", caption_column="said") == auditor(rows)


def test_a_saved_composition_is_the_composition(rows, tmp_path):
    made = pipeline(TASK, tau=0.5, top_k=1, seed=3)
    made.save_pretrained(tmp_path / "mine")
    again = pipeline(TASK, model=str(tmp_path / "mine"))
    assert isinstance(again, SymbalPipeline)
    assert again.model.config.options() == {**SymbalConfig().options(), "tau": 0.5, "top_k": 1, "seed": 3}
    assert again(rows) == made(rows)
    again.save_pretrained(tmp_path / "again")
    for name in ("config.json", "README.md", "pipelines.py"):
        assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert AutoModel.from_pretrained(tmp_path / "mine").config.tau == 0.5
    assert AutoConfig.from_pretrained(tmp_path / "mine", tau=0.6).tau == 0.6
    card = ModelCard.load(tmp_path / "mine" / "README.md")
    assert "| tau | 0.5 |" in card.text and "systematic-misalignment" in card.data.tags
    saved = "".join(p.read_text() for p in (tmp_path / "mine").iterdir() if p.suffix != ".safetensors")
    assert str(LITE) not in saved and str(Path.home()) not in saved


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_travels_with_all_its_parts(name, tmp_path):
    made = symbal_hf.pipeline(preset=name, chat="openai:http://localhost:8001/v1#a/model", scorer_1="vision-language")
    made.save_pretrained(tmp_path / name)
    again = pipeline(TASK, model=tmp_path / name)
    told = symbal_hf.models.composition.load_preset(name).composition
    parts = again.model.config.parts()
    assert parts["chat"] == "openai:http://localhost:8001/v1#a/model" and parts["text_encoder"] == told.text_encoder
    assert again.model.config.composed().composition.captioner == told.captioner
    card = (tmp_path / name / "README.md").read_text()
    assert all(f"`{spec}`" in card for spec in parts.values()) and f"preset `{name}`" in card


def test_what_ships_as_the_default_is_what_would_be_saved_today(tmp_path):
    SymbalModel(SymbalConfig()).save_pretrained(tmp_path)
    assert (LITE / "model.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()
    assert AutoConfig.from_pretrained(LITE).options() == SymbalConfig().options()


@pytest.mark.parametrize("trust", [True, False, None])
@pytest.mark.parametrize(
    ("name", "tau", "chat"), [("lite", 0.8, None), ("chat", 0.7, "hf:tests/assets/scene_mllm")]
)  # fmt: skip
def test_folders_of_version_0_1_load_with_or_without_trust_in_their_code(name, tau, chat, trust):
    folder = OLD / f"composition_{name}"
    config = AutoConfig.from_pretrained(folder, trust_remote_code=trust)
    model = AutoModel.from_pretrained(folder, trust_remote_code=trust)
    made = pipeline(TASK, model=str(folder), trust_remote_code=trust)
    assert type(config) is SymbalConfig and type(model) is SymbalModel and type(made) is SymbalPipeline
    for one in (config, model.config, made.model.config):
        assert (one.tau, one.chat, one.text_encoder, one.scorer) == (tau, chat, None, None)


def test_a_saved_folder_names_public_names_alone_and_holds_no_copy_of_a_module(tmp_path):
    SymbalModel(SymbalConfig(tau=0.5)).save_pretrained(tmp_path)
    code = ast.parse((tmp_path / "pipelines.py").read_text())
    taken = [node for node in ast.walk(code) if isinstance(node, ast.ImportFrom)]
    assert [node.module for node in taken] == ["symbal_hf"]
    assert {alias.name for alias in taken[0].names} <= set(symbal_hf.__all__)
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "pipelines.py",
    }


def test_a_config_refuses_what_an_audit_refuses():
    with pytest.raises(ValueError, match=r"tau=3; it must be in \[0, 1\]"):
        SymbalConfig(tau=3)
    with pytest.raises(ValueError, match="members=0; it must be >= 1"):
        SymbalConfig(members=0)
    assert set(names_of(Parts, Gates, Summing, Chance)) <= set(SymbalConfig().to_dict())


ELSEWHERE = """
import json, sys
from transformers import pipeline
assert "symbal_hf" not in sys.modules
try:
    pipeline("systematic-misalignment", model=sys.argv[1])
except ValueError as error:
    assert "trust_remote_code=True" in str(error), error
else:
    raise SystemExit("code was run that nobody trusted")
assert "symbal_hf" not in sys.modules
auditor = pipeline("systematic-misalignment", model=sys.argv[1], trust_remote_code=True)
rows = [json.loads(line) for line in open(sys.argv[2])]
print("\\n" + json.dumps(auditor(rows)))
"""


def run(code, home, *arguments):
    env = {**os.environ, "HF_HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_process_without_us_must_trust_its_code_and_then_finds_the_same(auditor, rows, tmp_path):
    auditor.save_pretrained(tmp_path / "mine")
    table = tmp_path / "rows.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert json.loads(run(ELSEWHERE, tmp_path / "home", tmp_path / "mine", table).splitlines()[-1]) == auditor(rows)


@pytest.mark.parametrize(
    "imports",
    ["import symbal_hf, transformers", "import transformers, transformers.pipelines, symbal_hf",
     "import symbal_hf, transformers; symbal_hf.pipeline", "import symbal_hf.huggingface.config, transformers",
     "import symbal_hf.huggingface.model, transformers",
     "import symbal_hf; from transformers import AutoConfig; import transformers",
     "import symbal_hf.huggingface.pipelines, transformers",
     "from transformers import AutoModel; import symbal_hf, transformers; symbal_hf.SymbalConfig"],
)  # fmt: skip
def test_the_task_is_known_whatever_is_imported_first(imports, tmp_path):
    code = f"""
{imports}
made = transformers.pipeline("systematic-misalignment")
print(type(made).__name__, "systematic-misalignment" in transformers.pipelines.PIPELINE_REGISTRY.get_supported_tasks())
"""
    assert run(code, tmp_path) == "SymbalPipeline True\n"


def test_importing_us_brings_neither_torch_nor_transformers(tmp_path):
    code = "import symbal_hf, sys; print({'torch', 'transformers', 'evaluate', 'datasets'} & set(sys.modules))"
    assert run(code, tmp_path) == "set()\n"


def test_an_encoder_of_images_and_texts_is_what_captions_are_checked_against(rows, tmp_path):
    """A random CLIP sees nothing, so it finds nothing; what is tested is that it is the one that is asked."""
    save_clip(tmp_path / "clip")
    checked = pipeline(TASK, model=str(tmp_path / "clip"), output="result", store=Store(tmp_path / "s.sqlite"))
    result = checked(rows)
    parts = result["provenance"]["models"]["composition"]
    assert parts["image_encoder"] == parts["text_encoder"] == f"transformers:{tmp_path / 'clip'}"
    assert result["provenance"]["scorer"] == "embedding" and result["verdict"] == "none"
    with pytest.raises(BadData, match="lies on this machine alone"):
        checked.push_to_hub("lab/clip")


def test_a_model_that_sees_no_images_is_refused(tmp_path):
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=20)
    BertModel(config).save_pretrained(tmp_path / "bert")
    with pytest.raises(BadData, match=r"is a bert model; systematic-misalignment takes a composition \(symbal\) or an"):
        pipeline(TASK, model=str(tmp_path / "bert"))


def test_parts_may_be_objects(auditor, base, rows):
    oracle = Oracle(base, miss=0.05)
    assert pairs(auditor(rows, scorer=oracle))[0] == PAIR
    assert pairs(pipeline(TASK, chat=oracle, scorer="vision-language")(rows))[0] == PAIR


def truthful(base, rows):
    """A scorer that knows what the scenes show: simulated, it stands for any model of the caller's."""
    from symbal_hf.data.pixels import decode

    pixels = {decode(Path(row["image"]).read_bytes()).tobytes(): i for i, row in enumerate(rows)}
    seen = []

    def scorer(images, facts):
        seen.append(len(images))
        known = [base.objects[pixels[image.tobytes()]] for image in images]
        said = [[name for name in ("lamp", "car", "dog", "cat") if name in fact.lower()] for fact in facts]
        return [None if not names else 0.05 + 0.9 * all(n in objects for n in names)
                for names, objects in zip(said, known, strict=True)]  # fmt: skip

    return scorer, seen


def test_a_function_may_score_and_another_may_name(base, rows):
    scorer, seen = truthful(base, rows)
    asked = []

    def summarizer(texts):
        asked.append(texts)
        return ["Dog", "dog ", "lamp"] if any("dog" in text.lower() for text in texts) else ["car"]

    assert pairs(pipeline(TASK, scorer=scorer)(rows))[0] == PAIR
    assert seen and max(seen) <= 64
    references = [row | {"references": [f"There is a {' and a '.join(sorted(base.objects[i]))}."]}
                  for i, row in enumerate(rows)]  # fmt: skip
    named = pipeline(TASK, scorer=scorer, summarizer=summarizer, method="paper", output="prediction")
    assert named(references)["textual_error"][:2] == ["dog", "lamp"]
    assert len(asked) >= 2


@pytest.mark.parametrize(
    ("scorer", "complaint"),
    [(lambda images, facts: [0.5], "scorer_1 gave 1 scores for"),
     (lambda images, facts: np.full(len(facts), 7.0), r"between 7 and 7; it must give one in \[0, 1\]"),
     (object(), "scorer_1=object object; give a name, or a chat model")],
)  # fmt: skip
def test_a_function_that_scores_badly_is_told_so(auditor, rows, scorer, complaint):
    with pytest.raises(BadData, match=complaint):
        auditor(rows[:40], scorer=scorer)


def test_a_summarizer_gives_a_list(rows, base):
    scorer, _ = truthful(base, rows)
    with pytest.raises(BadData, match="summarizer_1 gave 'lamp'; it must give a list of names"):
        pipeline(TASK, scorer=scorer, summarizer=lambda texts: "lamp", method="paper")(rows)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"scorer": lambda images, facts: [1.0]}, "is an object that nobody else has"),
     ({"chat": "openai:http://me:secret@host/v1#model"}, "chat has a password in its address")],
)  # fmt: skip
def test_what_nobody_else_could_use_or_should_read_is_not_saved(options, complaint, tmp_path):
    with pytest.raises(BadData, match=complaint):
        pipeline(TASK, **options).save_pretrained(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("spec", ["hf:/models/mine", "hf:./mine", "vision-language:hf:~/mine", "file:captions.jsonl"])
def test_what_lies_on_this_machine_alone_is_not_pushed(spec):
    part = "captioner" if spec.startswith("file:") else "scorer_1" if spec.startswith("vision") else "chat"
    with pytest.raises(BadData, match=f"{part}='{spec}' lies on this machine alone"):
        pipeline(TASK, **{part: spec}).push_to_hub("lab/mine")


@pytest.mark.parametrize(
    ("options", "reaches"),
    [({}, {}),
     ({"device": "cpu", "dtype": "bfloat16"}, {"device": "cpu", "dtype": "bfloat16"}),
     ({"device_map": "auto"}, {"device_map": "auto"}),
     ({"model_kwargs": {"device_map": "auto"}}, {"device_map": "auto"})],
)  # fmt: skip
@pytest.mark.parametrize("make", [pipeline, lambda task, **options: symbal_hf.pipeline(**options)])
def test_devices_and_numbers_reach_the_models_that_it_names(options, reaches, make, rows, monkeypatch):
    if make is not pipeline and "model_kwargs" in options:
        pytest.skip("model_kwargs are for a model that is loaded, and a preset is made")
    seen = {}

    def audit(data, **given):
        seen.update(given)
        return symbal_hf.audit(data)

    monkeypatch.setattr("symbal_hf.huggingface.model.audit", audit)
    make(TASK, **options)(rows)
    assert {name: seen[name] for name in ("device", "dtype", "device_map") if name in seen} == reaches
