"""The miniature chat model in tests/assets really answers the packaged prompts about scenes that it has never seen."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from benchmark_builder.bases.coco_names import natural_vocabulary  # noqa: E402
from benchmark_builder.planting.plant import natural_templates, state  # noqa: E402
from benchmark_builder.scenes.draw import OBJECT_NAMES, make_scene  # noqa: E402
from symbal_hf.models.chat.prompting import Prompts  # noqa: E402
from symbal_hf.models.chat.protocol import features, strict_digit  # noqa: E402

FOLDER = Path(__file__).parents[1] / "assets" / "scene_mllm"
SCENES, SEED = 150, 4711  # trained on seed 17 alone
pytestmark = pytest.mark.skipif(not (FOLDER / "model.safetensors").exists(), reason="the model is not in this checkout")


class Chat:
    """Nothing but transformers: a question, with or without a picture, and the greedy answer."""

    def __init__(self) -> None:
        self.processor = transformers.AutoProcessor.from_pretrained(FOLDER)
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(FOLDER, dtype=torch.float32).eval()

    def inputs(self, talks):
        return self.processor.apply_chat_template(
            talks, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt",
            processor_kwargs={"padding": True},
        )  # fmt: skip

    def ask(self, prompts, pictures=None, tokens=4):
        out = []
        for start in range(0, len(prompts), 50):
            talks = []
            for i, prompt in enumerate(prompts[start : start + 50], start):
                image = [{"type": "image", "image": pictures[i]}] if pictures else []
                talks.append([{"role": "user", "content": [*image, {"type": "text", "text": prompt}]}])
            inputs = self.inputs(talks)
            with torch.no_grad():
                ids = self.model.generate(**inputs, max_new_tokens=tokens, do_sample=False)
            out += self.processor.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        return out


@pytest.fixture(scope="module")
def chat():
    return Chat()


@pytest.fixture(scope="module")
def scenes():
    drawn = [make_scene(i, seed=SEED, size=256) for i in range(SCENES)]
    return [(scene, picture, sorted(item.name for item in scene.objects)) for scene, picture in drawn if scene.objects]


def facts(scenes):
    """For each scene a true and a false sentence as planted errors have them."""
    rng, templates = random.Random(5), natural_templates()
    for i, (_, _, names) in enumerate(scenes):
        others = [name for name in OBJECT_NAMES if name not in names]
        yield i, state(rng.choice(names), rng.choice(templates)), 1.0
        yield i, state(rng.choice(others), rng.choice(templates)), 0.0


def named(text):
    """Objects that a text names, as the rest of the project finds them."""
    return natural_vocabulary(OBJECT_NAMES).find(text)


def balanced(truth, answers):
    """Mean of the shares of the true and of the false that are answered rightly; all must be digits."""
    digits = [strict_digit(answer) for answer in answers]
    assert None not in digits, "an answer is no digit"
    rates = []
    for kind in (0.0, 1.0):
        right = [digit == kind for digit, wanted in zip(digits, truth, strict=True) if wanted == kind]
        rates.append(sum(right) / len(right))
    return sum(rates) / 2


def f1(wanted, answers):
    """Micro F1 of listed features; all answers must have the asked form."""
    got = [features(answer) for answer in answers]
    assert None not in got, "an answer is no list"
    both = sum(len(set(a) & set(b)) for a, b in zip(wanted, got, strict=True))
    return 2 * both / (sum(map(len, wanted)) + sum(map(len, got)))


def test_says_whether_an_object_is_in_the_image(chat, scenes):
    """Measured: balanced accuracy of planted sentences, one object each, given the picture alone."""
    rows, texts, truth = zip(*facts(scenes), strict=True)
    prompts = [Prompts().render("fact_of_image", fact=text) for text in texts]
    assert balanced(truth, chat.ask(prompts, [scenes[i][1] for i in rows])) >= 0.93


def test_says_whether_a_caption_names_an_object(chat, scenes):
    """Measured: balanced accuracy of planted sentences, given all captions of the scene."""
    prompts, truth = [], []
    for i, text, _ in facts(scenes):
        reference = " ".join(scenes[i][0].captions)
        prompts.append(Prompts().render("fact_of_text", reference=reference, fact=text))
        truth.append(float(named(text) <= named(reference)))
    assert balanced(truth, chat.ask(prompts)) >= 0.88


def test_lists_what_the_image_and_the_text_show(chat, scenes):
    """Measured: micro F1 of the names in "Answer: a, b, c", of pictures and of captions."""
    wanted = [names for *_, names in scenes]
    prompt = Prompts().render("features_of_image")
    assert f1(wanted, chat.ask([prompt] * len(scenes), [picture for _, picture, _ in scenes], 64)) >= 0.88
    texts = [" ".join(scene.captions) for scene, *_ in scenes]
    assert (
        f1(
            [sorted(named(text)) for text in texts],
            chat.ask([Prompts().render("features_of_text", text=text) for text in texts], None, 64),
        )
        >= 0.88
    )


def test_tells_one_thing_from_another(chat):
    """Measured: balanced accuracy of names against themselves, their plurals and coloured ones, and other names."""
    rng, prompts, truth = random.Random(6), [], []
    for name in OBJECT_NAMES:
        other = rng.choice([x for x in OBJECT_NAMES if x != name])
        for phrase, same in ((name, 1.0), (f"a red {name}", 1.0), (other, 0.0), (f"a red {other}", 0.0)):
            prompts.append(Prompts().render("same_thing", answer=phrase, truth=name))
            truth.append(same)
    assert balanced(truth, chat.ask(prompts)) >= 0.93


def test_describes_an_image(chat, scenes):
    """Measured: share of the objects that the two sentences name."""
    answers = chat.ask([Prompts().render("caption_of_image")] * 50, [picture for _, picture, _ in scenes[:50]], 64)
    assert all(answer.endswith(".") for answer in answers)
    found = [name in answer for answer, (*_, names) in zip(answers, scenes, strict=False) for name in names]
    assert sum(found) / len(found) >= 0.85


def test_conversations_may_be_strings_and_have_a_system_message(chat, scenes):
    """Content as a string, a system message and padding change no answer's form."""
    prompt = Prompts().render("fact_of_text", reference="A dog and a car.", fact="There is a dog in this picture.")
    image = Prompts().render("fact_of_image", fact=f"There is {scenes[0][2][0]} in this picture.")
    picture = [{"type": "image", "image": scenes[0][1]}, {"type": "text", "text": image}]
    talks = [
        [{"role": "user", "content": prompt}],
        [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": prompt}],
        [{"role": "user", "content": picture}],
    ]
    inputs = chat.inputs(talks)
    ids = chat.model.generate(**inputs, max_new_tokens=4)
    texts = chat.processor.batch_decode(ids[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    assert [strict_digit(text) for text in texts[:2]] == [1.0, 1.0]
    assert strict_digit(texts[2]) is not None
    assert int((inputs["input_ids"] == chat.processor.tokenizer.bos_token_id).sum()) == 3
    assert inputs["attention_mask"][0, 0] == 0  # padded on the left
