"""The captioners that people audit: every caption is what transformers gives to that image alone."""

from __future__ import annotations

import pytest
from chat_fakes import in_order
from tiny_captioners import ASKED, WORDLESS
from tiny_chat import picture

import symbal_hf
from symbal_hf.core.errors import BadData, MissingModel
from symbal_hf.core.store import Store
from symbal_hf.data.pixels import decode
from symbal_hf.models.captioner import CAPTIONERS, captioner_spec
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Message

PROMPT = Prompts().render("describe_image")
PICTURES = [picture(number, size=(60 + 40 * (number % 3), 44 + 30 * (number % 2))) for number in range(7)]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    for number, encoded in enumerate(PICTURES):
        (folder / f"{number}.png").write_bytes(encoded)
    return folder


def directly(folder, kind, encoded, tokens=8):
    """Plain transformers, one image."""
    import transformers as hf

    network = hf.AutoModelForImageTextToText.from_pretrained(folder)
    if kind in WORDLESS:
        images, tokenizer = hf.AutoImageProcessor.from_pretrained(folder), hf.AutoTokenizer.from_pretrained(folder)
        out = network.generate(**images(decode(encoded), return_tensors="pt"), max_new_tokens=tokens)
        return tokenizer.decode(out[0], skip_special_tokens=True).strip()
    processor = hf.AutoProcessor.from_pretrained(folder)
    turn = {"role": "user", "content": [{"type": "image", "image": decode(encoded)}, {"type": "text", "text": PROMPT}]}
    inputs = processor.apply_chat_template(
        [turn], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    out = network.generate(
        **inputs, max_new_tokens=tokens, do_sample=False, temperature=None, top_p=None, top_k=None
    )  # fmt: skip
    return processor.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip()


@pytest.mark.parametrize("kind", ["llava", *ASKED, *WORDLESS])
def test_captions_are_those_of_transformers_whatever_sits_in_the_batch(folders, photos, tmp_path, kind):
    spec, wanted = f"hf:{folders[kind]}", [directly(folders[kind], kind, encoded) for encoded in PICTURES]
    assert len(set(wanted)) > 3  # a model that is blind would prove nothing
    found = []
    for size in (1, 3):
        done = symbal_hf.caption(
            photos, model=spec, out=tmp_path / f"{size}.jsonl", max_tokens=8, batch_size=size,
            store=Store(tmp_path / f"{size}.sqlite"),
        )  # fmt: skip
        data = symbal_hf.data.table.load_data(done.path)
        found.append(dict(zip(data.ids, data.captions, strict=True)))
        assert done.captioned + done.failed == len(PICTURES)
    assert found[0] == found[1] == {str(i): text for i, text in enumerate(wanted) if any(c.isalnum() for c in text)}


@pytest.mark.parametrize("kind", WORDLESS)
def test_a_captioner_that_takes_no_words_is_asked_none(folders, photos, tmp_path, kind):
    model = LocalModel(str(folders[kind]))
    assert model.wordless and not LocalModel(str(folders["llava"])).wordless
    with pytest.raises(BadData, match="captions images and answers no question; name a chat model"):
        list(model.probability_of_yes([[Message("Is it red? 1 or 0.", (PICTURES[0],))]]))
    said = in_order(model.generate([[Message("Why?")], [Message("", (PICTURES[0],))]], max_new_tokens=500), 2)
    assert said[1].text and "one image at a time" in said[0].error  # and 500 tokens are more than it can write
    with pytest.raises(BadData, match="is asked nothing; leave the prompt out"):
        symbal_hf.caption(photos, model=model, out=tmp_path / "c.jsonl", prompt="Why?")
    done = symbal_hf.caption(photos, model=model, out=tmp_path / "c.jsonl", max_tokens=8, store=Store(tmp_path / "s"))
    assert done.provenance["prompt"] is None and done.provenance["revision"] == model.revision
    drawn = in_order(model.generate([[Message("", (PICTURES[1],))]] * 2, max_new_tokens=8, temperature=1.0, seed=3), 2)
    assert drawn[0] == drawn[1]


def test_the_captioners_of_the_paper_have_names(tmp_path):
    for name, model in CAPTIONERS.items():
        assert captioner_spec(name) == f"hf:{model.name}"
        with pytest.raises(MissingModel, match=f"hf download {model.name}") as caught:
            symbal_hf.caption([{"image": PICTURES[0]}], model=name, out=tmp_path / "c.parquet")
        assert ("after accepting its licence" in str(caught.value)) == ("gated" in model.licence)
    assert [name for name, model in CAPTIONERS.items() if "gated" in model.licence] == ["aya-vision-8b"]
    with pytest.raises(BadData, match=r"model='blip'; give hf:MODEL.*llava-1.5-7b, llava-1.5-13b"):
        captioner_spec("blip")
