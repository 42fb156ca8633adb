"""Chat models in this process: every answer is what transformers gives to that conversation alone."""

import json
import random
import shutil
from collections import Counter

import numpy as np
import pytest
from chat_fakes import in_order
from tiny_chat import CHATML, KINDS, picture, save_llava
from tiny_models import LONG

from symbal_hf.core.store import Store
from symbal_hf.models.chat.asking import ask
from symbal_hf.models.chat.local import LocalModel, _noise
from symbal_hf.models.chat.protocol import Message

SEEING = ("qwen", "gemma", "llava")
PIXELS = 6 * 28 * 28
TOKENS = {"qwen": "<|image_pad|>", "gemma": "<image_soft_token>", "llava": "<image>"}


def local(folder, kind, **options):
    return LocalModel(str(folder), max_pixels=PIXELS if kind == "qwen" else None, **options)


@pytest.fixture(scope="session")
def models(folders):
    """One of each kind, loaded once."""
    return {kind: local(folders[kind], kind) for kind in KINDS}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def conversations(kind, n=10):
    """Of all lengths, two about each image, one with a system message, one with two images, one in three turns."""
    see = kind in SEEING
    out = []
    for i in range(n):
        images = (picture(i // 2, size=(60 + 20 * (i // 2), 44)),) if see else ()
        text = f"A dog runs on the beach. {'Heart size is normal. ' * (i % 4)}Answer 1 or 0."
        out.append([Message(text, images)])
    out[1] = [Message("there is no cat", role="system"), *out[1]]
    out[2] = [Message("A clock?", out[2][0].images + (out[2][0].images and (picture(99),)))]
    out[4] = [*out[4], Message("a cat", role="assistant"), Message("A CAT, 1 or 0?")]
    if see:
        out[5] = [Message("A plate with rice?")]
    return out


def reference(folder, kind):
    """Plain transformers: (model, processor), told nothing but the size of images."""
    import transformers as hf

    if kind == "text":
        return hf.AutoModelForCausalLM.from_pretrained(folder), hf.AutoTokenizer.from_pretrained(folder)
    processor = hf.AutoProcessor.from_pretrained(folder)
    if kind == "qwen":
        processor.image_processor.size = {"shortest_edge": PIXELS // 4, "longest_edge": PIXELS}
    return hf.AutoModelForImageTextToText.from_pretrained(folder), processor


def alone(processor, kind, conversation, **more):
    """What plain transformers makes of one conversation, images as it likes them."""
    from symbal_hf.data.pixels import decode

    if kind == "text":
        turns = [{"role": m.role, "content": m.text} for m in conversation]
    else:
        turns = [
            {"role": m.role, "content": [*({"type": "image", "image": decode(i)} for i in m.images),
                                         {"type": "text", "text": m.text}]}
            for m in conversation
        ]  # fmt: skip
    return processor.apply_chat_template(
        turns, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt", **more
    )


def spied(monkeypatch, model, before=None):
    """The inputs of all calls of `generate` from here on."""
    network, seen = model._loaded.model, []
    real = network.generate

    def generate(**inputs):
        seen.append(inputs)
        if before:
            before(inputs)
        return real(**inputs)

    monkeypatch.setattr(network, "generate", generate)
    return seen


def test_texts_are_those_of_transformers_alone(folders, models, kind):
    network, processor = reference(folders[kind], kind)
    questions = conversations(kind)
    answers = in_order(models[kind].generate(questions, max_new_tokens=8), len(questions))
    for question, answer in zip(questions, answers, strict=True):
        inputs = alone(processor, kind, question)
        out = network.generate(**inputs, max_new_tokens=8, do_sample=False, temperature=None, top_p=None, top_k=None)
        assert answer.text == processor.decode(out[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip()
    assert len({answer.text for answer in answers}) > 5  # a model that always says the same would prove nothing


def test_probabilities_are_those_of_the_logits(folders, models, kind):
    network, processor = reference(folders[kind], kind)
    tokenizer = processor if kind == "text" else processor.tokenizer
    decoded = [tokenizer.decode([i]).strip() for i in range(len(tokenizer))]
    questions = conversations(kind, 16)
    answers = in_order(models[kind].probability_of_yes(questions), len(questions))
    states = Counter()
    for question, answer in zip(questions, answers, strict=True):
        inputs = alone(processor, kind, question, **({"enable_thinking": False} if kind == "text" else {}))
        chances = network(**inputs).logits[0, -1].softmax(-1).tolist()
        one, zero = (sum(c for c, text in zip(chances, decoded, strict=True) if text == digit) for digit in "10")
        if one + zero < 0.01:
            assert answer.yes is None and answer.error is None
            assert answer.text == decoded[int(np.argmax(chances))]
        else:
            assert answer.yes == pytest.approx(one / (one + zero), abs=1e-4)
            assert answer.text == "01"[one >= zero]
        states[answer.yes is None] += 1
    assert states[False] > 2
    assert sum(text in ("0", "1") for text in decoded) >= 4  # " 1" too


def test_neither_batches_nor_order_change_an_answer(folders, models, kind):
    questions = conversations(kind)
    single = local(folders[kind], kind, batch_size=1)
    order = random.Random(3).sample(range(len(questions)), len(questions))
    shuffled = [questions[i] for i in order]
    for call in (
        lambda m, q: m.generate(q, max_new_tokens=6),
        lambda m, q: m.generate(q, max_new_tokens=6, temperature=1.0, seed=5),
        lambda m, q: m.probability_of_yes(q),
    ):
        one = in_order(call(single, questions), len(questions))
        for other in (
            in_order(call(models[kind], questions), len(questions)),
            [a for _, a in sorted(zip(order, in_order(call(models[kind], shuffled), len(order)), strict=True),
                                  key=lambda pair: pair[0])],
        ):  # fmt: skip
            assert [a.text for a in other] == [a.text for a in one]
            assert [a.yes for a in other] == [y if (y := a.yes) is None else pytest.approx(y, abs=1e-4) for a in one]


def test_questions_of_unlike_length_share_a_batch(models, kind, monkeypatch):
    seen = spied(monkeypatch, models[kind])
    images = (picture(1),) if kind in SEEING else ()
    list(models[kind].probability_of_yes([[Message("A clock? " * n, images)] for n in (8, 9, 10, 11, 12)]))
    assert [len(inputs["input_ids"]) for inputs in seen] == [5]
    assert len(set(seen[0]["attention_mask"].sum(1).tolist())) == 5


@pytest.mark.parametrize("kind", SEEING)
def test_images_come_first_and_are_seen(models, kind, monkeypatch):
    seen = spied(monkeypatch, models[kind])
    question = "A dog runs on the beach. 1 or 0?"
    first, second = [[Message(question, (picture(i),))] for i in (0, 1)]
    both, turned = [[Message(question, (picture(i), picture(1 - i)))] for i in (0, 1)]
    model = models[kind]
    chances = []
    for conversation in (first, second, both, turned):
        list(model.probability_of_yes([conversation]))
        inputs = seen[-1]
        ids = inputs["input_ids"][0].tolist()
        tokenizer = model._loaded.tokenizer
        image = tokenizer.convert_tokens_to_ids(TOKENS[kind])
        assert ids.count(image) == 4 * len(conversation[0].images)
        last = max(i for i, token in enumerate(ids) if token == image)
        assert question in tokenizer.decode(ids[last + 1 :])
        assert "dog" not in tokenizer.decode(ids[:last])
        if (bos := tokenizer.bos_token_id) is not None:
            assert ids.count(bos) == 1 and ids[0] == bos
        chances.append(model._loaded.model(**{k: v for k, v in inputs.items() if hasattr(v, "to")}).logits[0, -1])
    for a, b in ((0, 1), (0, 2), (2, 3)):
        assert (chances[a] - chances[b]).abs().max() > 1e-3


def test_temperature_zero_leaves_nothing_to_chance(models, kind, capfd):
    import torch

    questions = conversations(kind, 6)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = in_order(models[kind].generate(questions, max_new_tokens=6), 6)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert in_order(models[kind].generate(questions, max_new_tokens=6), 6) == one
    said = capfd.readouterr().err
    assert "generation flags" not in said and "do_sample" not in said and "pad_token_id" not in said


def test_draws_follow_the_seed_and_disturb_nobody(models):
    import torch

    questions = conversations("text", 8)
    torch.manual_seed(1)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()

    def drawn(seed, asked=questions):
        return in_order(models["text"].generate(asked, max_new_tokens=6, temperature=1.5, seed=seed), len(asked))

    one = drawn(0)
    torch.rand(3)
    torch.set_rng_state(before[0])
    assert drawn(0) == one
    assert drawn(0, questions[3:5]) == one[3:5]  # those that were answered yesterday are not asked again
    assert sum(a != b for a, b in zip(drawn(1), one, strict=True)) > 5
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before[1:]


def test_draws_have_the_probabilities_of_the_model():
    import torch

    scores = torch.tensor([2.0, 1.0, 0.0, -float("inf")])
    batch = [[Message(f"question {i}")] for i in range(4000)]
    for temperature in (0.5, 1.0, 2.0):
        noisy = _noise(temperature, 7, batch)(None, scores.expand(len(batch), -1))
        found = torch.bincount(noisy.argmax(-1), minlength=4) / len(batch)
        assert (found - (scores / temperature).softmax(-1)).abs().max() < 0.03


def test_what_cannot_be_asked_fails_alone(models, kind):
    questions = conversations(kind, 6)
    whole = in_order(models[kind].probability_of_yes(questions), 6)
    bad = [
        [Message("A dog?", (b"no image",))],
        [Message("A dog?", (picture(1)[:90],))],
        [Message(LONG * 2)],
        [],
    ]
    if kind == "gemma":
        bad.append([Message("a"), Message("b")])
    answers = in_order(models[kind].probability_of_yes([*bad, *questions]), len(bad) + 6)
    for answer in answers[: len(bad)]:
        assert answer.text is None and answer.yes is None and answer.error.endswith(".") and "dog" not in answer.error
    for answer, expected in zip(answers[len(bad) :], whole, strict=True):
        assert answer.text == expected.text
    if kind in SEEING:
        assert answers[0].error == answers[1].error == "an image cannot be read."
    else:
        assert "reads no images" in answers[0].error
    assert "tokens" in answers[2].error and "400" in answers[2].error
    if kind == "gemma":
        assert "must alternate" in answers[4].error


def test_an_answer_must_fit_behind_its_question(models):
    question = [Message("A dog runs on the beach.")]
    assert in_order(models["text"].generate([question], max_new_tokens=4), 1)[0].text
    assert "399 to write" in in_order(models["text"].generate([question], max_new_tokens=399), 1)[0].error


def test_batches_shrink_until_they_fit(folders, monkeypatch):
    import torch

    model = LocalModel(str(folders["qwen"]), max_pixels=PIXELS, batch_size=8)
    questions = [[Message(f"{i} zebras?", (picture(i),))] for i in range(20)]
    expected = in_order(model.generate(questions, max_new_tokens=4), 20)
    most = [3]

    def full(inputs):
        if len(inputs["input_ids"]) > most[0]:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    seen = spied(monkeypatch, model, full)
    assert in_order(model.generate(questions, max_new_tokens=4), 20) == expected
    sizes = [len(inputs["input_ids"]) for inputs in seen]
    assert sizes == [8, 4, *[2] * 10]  # the size that fits is kept
    most[0] = 0
    answers = in_order(model.generate(questions[:5], max_new_tokens=4), 5)
    assert all("memory" in answer.error for answer in answers)


def test_another_failure_of_the_network_is_that_of_one_conversation(models, monkeypatch):
    questions = conversations("text", 6)
    expected = in_order(models["text"].generate(questions, max_new_tokens=4), 6)
    shortest = min(len(alone(models["text"]._loaded.tokenizer, "text", q)["input_ids"][0]) for q in questions)

    def broken(inputs):
        if (inputs["attention_mask"].sum(1) == shortest).any():
            raise RuntimeError("device-side assert on A dog")

    spied(monkeypatch, models["text"], broken)
    answers = in_order(models["text"].generate(questions, max_new_tokens=4), 6)
    failed = [i for i, answer in enumerate(answers) if answer.error]
    assert failed and len(failed) < 6
    assert all(answers[i].error == "the model failed on it (RuntimeError)." for i in failed)
    assert [a for a in answers if not a.error] == [a for i, a in enumerate(expected) if i not in failed]


@pytest.mark.parametrize(
    ("kind", "mark"), [("qwen", "<|im_end|>"), ("llava", "<image>"), ("gemma", "<start_of_image>")]
)
def test_a_caption_may_hold_marks(models, kind, mark, monkeypatch):
    seen = spied(monkeypatch, models[kind])
    texts = (f"A dog {mark} runs", "A dog  runs")
    answers = in_order(models[kind].generate([[Message(t, (picture(1),))] for t in texts], max_new_tokens=3), 2)
    assert all(answer.text is not None for answer in answers)
    token = models[kind]._loaded.tokenizer.convert_tokens_to_ids(mark)
    counts = {row.tolist().count(token) for inputs in seen for row in inputs["input_ids"]}
    assert len(counts) == 1  # as many where the caption has it as where it has not


def test_reasoning_is_no_part_of_the_answer(models, monkeypatch):
    import torch

    loaded = models["text"]._loaded
    written = []

    def generate(**inputs):
        ids = [loaded.tokenizer.encode(text, add_special_tokens=False) for text in written]
        rows = torch.full((len(ids), max(map(len, ids))), loaded.tokenizer.pad_token_id)
        for row, one in zip(rows, ids, strict=True):
            row[: len(one)] = torch.tensor(one)
        return torch.cat([inputs["input_ids"], rows], 1)

    monkeypatch.setattr(loaded.model, "generate", generate)

    def texts(*said):
        written[:] = said
        return in_order(models["text"].generate([[Message("A dog?")]] * len(said), max_new_tokens=9), len(said))

    whole, opened_before, plain, unfinished = texts(
        "<think>\na cat\n</think>\n\nAn old clock.<|im_end|>",
        "a cat</think>1<|im_end|>",
        " 0<|im_end|>",
        "<think> a dog a",
    )
    assert (whole.text, opened_before.text, plain.text) == ("An old clock.", "1", "0")
    assert unfinished.text is None and "reasoning" in unfinished.error
    monkeypatch.setitem(loaded.__dict__, "template", "<|start|>assistant<|channel|>final<|message|>")
    harmony, cut = texts(
        "<|channel|>analysis<|message|>a dog<|end|><|start|>assistant<|channel|>final<|message|>1<|im_end|>",
        "<|channel|>analysis<|message|>a dog",
    )
    assert harmony.text == "1" and cut.text is None


def test_pixels_are_kept_within_their_budget(folders, models, monkeypatch):
    large = [[Message("A dog?", (picture(1, size=(900, 500)),))]]
    for kind, least, most in (("qwen", 3, 6), ("llava", 4, 4)):
        seen = spied(monkeypatch, models[kind])
        list(models[kind].probability_of_yes(large))
        token = models[kind]._loaded.tokenizer.convert_tokens_to_ids(TOKENS[kind])
        assert least <= seen[-1]["input_ids"][0].tolist().count(token) <= most
    one, other = (LocalModel(str(folders["llava"]), max_pixels=n) for n in (None, 12))
    before, after = (in_order(m.probability_of_yes(large), 1)[0] for m in (one, other))
    assert before != after  # other models see less of a picture that was scaled down
    default = LocalModel(str(folders["qwen"]))._loaded.processor.image_processor.size
    assert dict(default) == {"shortest_edge": 256 * 28 * 28, "longest_edge": 1280 * 28 * 28}
    assert LocalModel(str(folders["qwen"])).settings != models["qwen"].settings


def test_an_old_llava_counts_its_patches(models, tmp_path):
    questions = conversations("llava", 6)
    old = LocalModel(str(save_llava(tmp_path, old=True)))
    assert json.loads((tmp_path / "processor_config.json").read_text()).get("patch_size") is None
    assert in_order(old.probability_of_yes(questions), 6) == in_order(models["llava"].probability_of_yes(questions), 6)


def test_a_system_message_is_never_printed_as_a_list(folders, tmp_path, monkeypatch):
    folder = shutil.copytree(folders["qwen"], tmp_path / "copy")
    strict = CHATML.replace(
        "{% for m in messages %}",
        "{% if messages[0].role == 'system' %}{{ messages[0].content | trim }}{% set messages = messages[1:] %}"
        "{% endif %}"
        "{% for m in messages %}",
        1,
    )
    (folder / "chat_template.jinja").write_text(strict)
    model = LocalModel(str(folder), max_pixels=PIXELS)
    seen = spied(monkeypatch, model)
    list(model.probability_of_yes([[Message("a cat", role="system"), Message("A dog?")]]))
    text = model._loaded.tokenizer.decode(seen[0]["input_ids"][0])
    assert text.startswith("a cat") and "'type'" not in text


def test_answers_go_through_the_store(folders, tmp_path):
    model, store = LocalModel(str(folders["llava"])), Store(tmp_path / "store.sqlite")
    questions = conversations("llava", 6)
    one = ask(model, questions, kind="text", prompt_hash="x", store=store, max_new_tokens=4)
    other = LocalModel(str(folders["llava"]))
    assert ask(other, questions, kind="text", prompt_hash="x", store=store, max_new_tokens=4) == one
    assert "_loaded" not in other.__dict__  # nothing was left to ask
