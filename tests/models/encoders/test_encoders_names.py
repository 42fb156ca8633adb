"""A name finds one model at one revision; one that finds none is answered in a sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models as tiny
from tiny_models import TEXTS, encode_images, pictures

from symbal_hf.core.errors import BadData, MissingModel
from symbal_hf.models.encoders.load import load_encoder

CLOSE = {"rtol": 0, "atol": 2e-5}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return tiny.Zoo(tmp_path_factory.mktemp("zoo"))


def unit_by_hand(vector):
    vector = vector.double().numpy()
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize(
    "spec", ["", "clip", "clip:openai/clip-vit-base-patch32", "transformers:", "st", "lite:other", "open_clip", ":x"]
)
def test_a_spec_of_no_kind_is_answered_with_the_kinds(spec):
    with pytest.raises(
        ValueError, match=r"names no text encoder; write KIND:MODEL\[@REVISION\], such as 'lite', 'open_clip:ViT-H-14"
    ):
        load_encoder("text", spec)
    with pytest.raises(ValueError, match=r"names no image encoder; .* or 'transformers:facebook/dinov2-large'\."):
        load_encoder("image", spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            "open_clip:ViT-Q/dfn5b",
            r"no weights by the name 'ViT-Q'; write NAME/TAG as in 'open_clip:ViT-H-14-quickgelu",
        ),
        ("open_clip:ViT-H-14-quickgelu", r"no weights by the name 'ViT-H-14-quickgelu'; write NAME/TAG"),
        ("open_clip:ViT-H-14-quickgelu/laion", r"no tag 'laion' in open_clip; available: .*'dfn5b'"),
        ("open_clip:ViT-H-14/dfn5b", r"with QuickGELU .* without it; use 'open_clip:ViT-H-14-quickgelu/dfn5b'"),
        ("transformers:a/b/c", r"neither a folder nor the name of a model on the Hub"),
        ("open_clip:local-dir:/nowhere", r"there is no folder '/nowhere'"),
    ],
)
def test_a_model_of_no_name_is_told_in_one_sentence(spec, sentence):
    with pytest.raises((ValueError, MissingModel), match=sentence) as caught:
        load_encoder("text", spec)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        (
            "transformers:google/medsiglip-448",
            "medsiglip-448` after accepting its licence at https://huggingface.co/google",
        ),
        ("transformers:facebook/dinov2-large", "facebook/dinov2-large`, or name a folder"),
        ("transformers:org/model@v2", "org/model --revision v2`, or"),
        ("st:Qwen/Qwen3-Embedding-8B", "Qwen/Qwen3-Embedding-8B`, or"),
        ("open_clip:ViT-H-14-quickgelu/dfn5b", "apple/DFN5B-CLIP-ViT-H-14`, or"),
        ("open_clip:hf-hub:apple/DFN5B-CLIP-ViT-H-14", "apple/DFN5B-CLIP-ViT-H-14`, or"),
    ],
)
def test_a_model_that_is_not_here_is_named_with_its_remedy(spec, command):
    with pytest.raises(MissingModel, match=rf"is not on this machine .*run `hf download .*{command}") as caught:
        load_encoder("text", spec)
    assert spec.split("@")[0] in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("spec", ["lite", "st:a/b", "transformers:a/b", "open_clip:a/b"])
@pytest.mark.parametrize("what", ["text", "image", "joint"])
def test_devices_and_numbers_of_no_name_are_refused_whatever_the_encoder(what, spec):
    for options, sentence in (
        ({"device": "banana"}, r"no device 'banana'; give 'auto', 'cpu', 'cuda', 'cuda:N', 'mps', 'xpu' or 'xpu:N'\."),
        ({"device": "cuda:x"}, r"no device 'cuda:x'; give 'auto', 'cpu'"), ({"device": ""}, "no device ''; give"),
        ({"dtype": "float7"}, r"no dtype 'float7'; available: 'auto', 'float32', 'bfloat16', 'float16'\."),
    ):  # fmt: skip
        with pytest.raises(BadData, match=sentence):
            load_encoder(what, spec, **options)


def test_names_of_devices_are_checked_without_a_library():
    code = (
        "import sys; from symbal_hf.core.devices import check_device, check_dtype\n"
        "for name in ('auto', 'cpu', 'mps', 'cuda', 'cuda:11', 'xpu:0'): assert check_device(name) == name\n"
        "for name in ('auto', 'float32', 'bfloat16', 'float16'): assert check_dtype(name) == name\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_device_that_is_not_here_and_what_the_lite_encoders_cannot_take():
    with pytest.raises(BadData, match=r"no device 'xpu:9' on this machine; use 'auto' or 'cpu'"):
        load_encoder("text", "st:a/b", device="xpu:9")
    for what in ("text", "image", "joint"):
        load = partial(load_encoder, what)
        encoder = load("lite", device="cpu", dtype="float32")
        assert load(encoder.name).name == encoder.name and encoder.space == "lite"
        for options in ({"device": "cuda"}, {"dtype": "float16"}, {"device_map": "auto"}):
            with pytest.raises(ValueError, match=r"the lite encoders run on 'cpu'|leave it out for lite") as caught:
                load("lite", **options)
            assert "\n" not in str(caught.value) and str(caught.value).endswith(".")
    with pytest.raises(ValueError, match="this one in 'auto' or 'float32'"):
        load_encoder("text", "lite", dtype="bfloat16")
    assert load_encoder("joint", "lite", dtype="float32").vision.bf16 is False


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Two commits of each published model, in the cache of the Hub's client."""
    import open_clip
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    old, new = "a" * 40, "b" * 40
    for name, save in (
        ("clip", tiny.save_clip), ("open-clip", tiny.save_open_clip), ("bert", tiny.save_sentence_bert),
    ):  # fmt: skip
        for number, commit, ref in ((0, old, "v1"), (1, new, "main")):
            tiny.as_if_downloaded(save(tmp_path / name / commit, number=number), f"tiny/{name}", commit=commit, ref=ref)
    looks = {"hf_hub": "tiny/open-clip/", "mean": (0.4,) * 3, "std": (0.2,) * 3, "interpolation": "bicubic"}
    tags = {
        "wide": looks | {"quick_gelu": True, "resize_mode": "squash"},
        "cut": looks | {"quick_gelu": True, "resize_mode": "shortest"},
        "web": looks | {"quick_gelu": True, "hf_hub": ""},
    }
    for name, config in (("Tiny-quickgelu", tiny.OPEN_CLIP), ("Tiny", {**tiny.OPEN_CLIP, "quick_gelu": False})):
        monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, name, config)
        monkeypatch.setitem(open_clip.pretrained._PRETRAINED, name, tags)
    return SimpleNamespace(old=old, new=new)


@pytest.mark.parametrize(
    "spec",
    ["transformers:tiny/clip", "st:tiny/bert", "open_clip:hf-hub:tiny/open-clip", "open_clip:Tiny-quickgelu/wide"],
)
def test_a_name_holds_the_commit_and_can_be_given_again(hub, spec):
    newest, first, same = (load_encoder("text", f"{spec}{at}") for at in ("", "@v1", f"@{hub.new}"))
    assert (newest.name, first.name, same.name) == (f"{spec}@{hub.new}", f"{spec}@{hub.old}", newest.name)
    assert newest.fingerprint == same.fingerprint != first.fingerprint and newest.space != first.space
    vectors = newest.encode(TEXTS)
    np.testing.assert_array_equal(load_encoder("text", newest.name).encode(TEXTS), vectors)
    assert np.abs(first.encode(TEXTS) - vectors).max() > 0.05
    with pytest.raises(MissingModel, match=r"--revision v3`"):
        load_encoder("text", f"{spec}@v3")


def test_a_tag_brings_weights_and_preprocessing(hub):
    import open_clip
    import torch

    image = pictures(1, size=(30, 80))[0]
    vectors = {}
    for tag in ("wide", "cut"):
        encoder = load_encoder("joint", f"open_clip:Tiny-quickgelu/{tag}")
        model, _, transform = open_clip.create_model_and_transforms("Tiny-quickgelu", pretrained=tag)
        with torch.inference_mode():
            expected = model.eval().encode_image(transform(image)[None])[0]
        vectors[tag] = encode_images(encoder, [image])[0]
        np.testing.assert_allclose(vectors[tag], unit_by_hand(expected), **CLOSE)
        vectors[encoder.fingerprint] = tag
    assert len(vectors) == 4 and np.abs(vectors["wide"] - vectors["cut"]).max() > 1e-3
    with pytest.raises(ValueError, match="use 'open_clip:Tiny-quickgelu/wide'"):
        load_encoder("joint", "open_clip:Tiny/wide")
    with pytest.raises(ValueError, match=r"has no weights on the Hub; other tags: 'wide', 'cut'\."):
        load_encoder("joint", "open_clip:Tiny-quickgelu/web")


def test_a_folder_is_known_by_what_it_holds(zoo, tmp_path):
    def at(folder):
        return load_encoder("joint", f"transformers:{folder}")

    copy = shutil.copytree(zoo.folders["clip"], tmp_path / "copy")
    assert at(copy).fingerprint == at(zoo.folders["clip"]).fingerprint
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps(settings | {"image_mean": [0.1, 0.1, 0.1]}))
    assert at(copy).fingerprint != at(zoo.folders["clip"]).fingerprint
    other = tiny.save_clip(tmp_path / "other", number=3)
    assert at(other).fingerprint != at(zoo.folders["clip"]).fingerprint
    with pytest.raises(ValueError, match="is a folder, which has no revision 'main'"):
        at(f"{copy}@main")


def test_weights_that_are_missing_unsafe_or_of_another_model(zoo, tmp_path, hub):
    import torch
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(zoo.folders["clip"], tmp_path / "clip-2")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {k: v for k, v in weights.items() if "text_projection" not in k}, folder / "model.safetensors", {"format": "pt"}
    )
    with pytest.raises(ValueError, match=r"lack 1 tensors of CLIPModel, text_projection.weight among them"):
        load_encoder("text", f"transformers:{folder}").encode(["a dog"])
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(MissingModel, match=r"cannot be loaded from its folder: .*safetensors"):
        load_encoder("text", f"transformers:{folder}").encode(["a dog"])
    tiny.as_if_downloaded(folder, "tiny/half", commit="c" * 40)
    with pytest.raises(
        MissingModel, match=r"tiny/half@c+ is not on this machine .*`hf download tiny/half --revision c+`"
    ):
        load_encoder("text", "transformers:tiny/half").encode(["a dog"])
    for spec, file in ((f"st:{folder}", "modules.json"), (f"transformers:{tmp_path}", "config.json")):
        with pytest.raises(MissingModel, match=f"the folder .* holds no {file}"):
            load_encoder("text", spec)
    other = shutil.copytree(zoo.folders["open_clip"], tmp_path / "open-clip-2")
    (other / "open_clip_model.safetensors").rename(other / "open_clip_model.pt")
    with pytest.raises(MissingModel, match=r"holds no open_clip_model\.safetensors"):
        load_encoder("text", f"open_clip:local-dir:{other}")


def test_architectures_that_are_no_encoders(zoo, tmp_path):
    chat = tiny.save_qwen3(tmp_path / "chat", final=False)
    with pytest.raises(ValueError, match="is no embedding model: its tokenizer puts no final token after a text"):
        load_encoder("text", f"transformers:{chat}").encode(["a dog"])
    with pytest.raises(ValueError, match=r"is a model of type 'bert', .* or 'st:MODEL' for a sentence-transformers"):
        load_encoder("text", f"transformers:{zoo.folders['st_bert']}")
    odd = shutil.copytree(zoo.folders["dinov2"], tmp_path / "odd")
    settings = {"model_type": "odd", "auto_map": {"AutoConfig": "odd.Config", "AutoModel": "odd.Model"}}
    (odd / "config.json").write_text(json.dumps(settings))
    (odd / "odd.py").write_text("raise SystemExit('code of the model was run')\n")
    with pytest.raises(ValueError, match="names no architecture that transformers knows"):
        load_encoder("image", f"transformers:{odd}")


def test_a_tokenizer_that_needs_a_package_names_it(zoo, tmp_path):
    from transformers.utils import is_sentencepiece_available

    if is_sentencepiece_available():
        pytest.skip("sentencepiece is installed")
    folder = shutil.copytree(zoo.folders["siglip"], tmp_path / "siglip")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "SiglipTokenizer"}))
    with pytest.raises(MissingModel, match="needs a package that is missing; run `pip install sentencepiece protobuf`"):
        load_encoder("text", f"transformers:{folder}").encode(["a dog"])
