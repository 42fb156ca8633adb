"""Files of chat models: which are the same, what cannot be had, and what is no chat model, each in one sentence."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_chat import CHATML
from tiny_models import as_if_downloaded, save_dinov2

from symbal_hf.core.errors import BadData, MissingModel
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.protocol import Message


def test_a_trained_or_mended_model_has_another_revision(folders, tmp_path):
    from safetensors.numpy import load_file, save_file

    original = LocalModel(str(folders["text"])).revision
    folder = shutil.copytree(folders["text"], tmp_path / "copy")
    assert LocalModel(str(folder)).revision == original
    path = folder / "model.safetensors"
    weights = load_file(path)
    name = sorted(weights)[-1]
    save_file(weights | {name: weights[name] * 1.01}, path, metadata={"format": "pt"})
    trained = LocalModel(str(folder)).revision
    (folder / "chat_template.jinja").write_text(CHATML)
    assert len({original, trained, LocalModel(str(folder)).revision}) == 3


def test_a_model_of_the_hub_is_named_by_its_commit(folders):
    commit = "0123456789abcdef0123456789abcdef01234567"
    name = as_if_downloaded(folders["text"], "someone/tiny-chat", commit=commit)
    model = LocalModel(name)
    assert (model.name, model.revision) == ("hf:someone/tiny-chat", commit)
    assert LocalModel(name, revision=commit).revision == commit
    assert next(model.generate([[Message("A dog?")]], max_new_tokens=3))[1].text is not None


@pytest.mark.parametrize(
    ("name", "gated"), [("google/medgemma-27b-it", True), ("meta-llama/Llama-3.3-70B-Instruct", True),
                        ("CohereLabs/aya-vision-8b", True), ("Qwen/Qwen2.5-VL-3B-Instruct", False)],
)  # fmt: skip
def test_a_missing_model_says_how_to_get_it(name, gated):
    model = LocalModel(name)
    for ask_it in (lambda: model.revision, lambda: list(model.generate([[Message("a")]], max_new_tokens=1))):
        with pytest.raises(MissingModel) as caught:
            ask_it()
        said = str(caught.value)
        assert f"hf download {name}" in said and f"hf:{name}" in said and "\n" not in said
        assert (f"https://huggingface.co/{name}" in said) == gated


def test_models_that_cannot_chat_say_so_in_one_sentence(folders, tmp_path):
    with pytest.raises(BadData, match=r"scripts/legacy/.*--captioner file:captions.jsonl"):
        LocalModel("microsoft/maira-2")

    def of(name, **config):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    own_code = {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.X"}
    bare = shutil.copytree(folders["text"], tmp_path / "bare", ignore=shutil.ignore_patterns("*.jinja"))
    empty = shutil.copytree(folders["text"], tmp_path / "empty", ignore=shutil.ignore_patterns("*.safetensors"))
    wrong = shutil.copytree(folders["text"], tmp_path / "wrong")
    config = json.loads((wrong / "config.json").read_text())
    (wrong / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3, "layer_types": None}))
    for folder, kind, said in (
        (of("own", model_type="maira2", auto_map=own_code), BadData, "scripts/legacy/"),
        (of("unknown", model_type="never-heard-of"), BadData, "architecture"),
        (save_dinov2(tmp_path / "dino"), BadData, "dinov2"),
        (bare, BadData, "no chat template"),
        (empty, MissingModel, "model.safetensors"),
        (wrong, ValueError, "lack"),
    ):
        with pytest.raises(kind, match=said) as caught:
            list(LocalModel(str(folder)).probability_of_yes([[Message("a")]]))
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="bfloat16"):
        list(LocalModel(str(folders["gemma"]), dtype="float16").probability_of_yes([[Message("a")]]))


def test_a_missing_package_is_named(folders, monkeypatch):
    import transformers

    def wanting(**where):
        raise ImportError("Package `num2words` is required to run it. Install it with `pip install num2words`.")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", wanting)
    with pytest.raises(MissingModel, match="run `pip install num2words`"):
        list(LocalModel(str(folders["text"])).probability_of_yes([[Message("a")]]))


def test_arguments_have_ranges(folders):
    model = LocalModel(str(folders["text"]))
    for call in (
        lambda: LocalModel("a", batch_size=0), lambda: LocalModel("a", max_pixels=0),
        lambda: model.generate([], max_new_tokens=0), lambda: model.generate([], max_new_tokens=1, temperature=-1),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"0|-1"):
            call()
    assert list(model.generate([], max_new_tokens=1)) == []


def test_naming_a_model_imports_nothing_heavy():
    code = (
        "import sys; from symbal_hf.models.chat.local import LocalModel; LocalModel('a/b'); "
        "sys.exit(bool({'torch', 'transformers', 'PIL'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, env=os.environ).returncode == 0
