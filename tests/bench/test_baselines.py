"""Baselines and the ablation: what they name, what they may know, and that a question fits into a model's window.

Chat models are simulated (see oracle.py): what is tested is what becomes of their answers.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from oracle import Oracle
from tiny_chat import save_text

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.auditing.evidence import gather
from symbal_hf.bench.baselines import no_grouping
from symbal_hf.bench.direct import CONTEXT_TOKENS, TEMPLATE_TOKENS, Direct, answer_tokens, limits_of, parse
from symbal_hf.bench.methods import METHODS, make_method
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts

LITE = tuple(method for method in METHODS if method != "direct")
ROW = re.compile(r"(?:Reference: (.*)\n)?Generated: (.*)")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=120, size=64, seed=11)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store") / "store.sqlite")


def planted(base, t="bench", v="car", strength=0.8, *, references=False) -> AuditData:
    found = Ground(base).plant(t, v, strength)
    assert isinstance(found, Planted)
    rows = [{"id": i, "image": str(image), "caption": caption}
            for i, image, caption in zip(base.ids, base.images, found.captions, strict=True)]  # fmt: skip
    if references:
        rows = [{**row, "references": list(told)} for row, told in zip(rows, base.references, strict=True)]
    return load_data(rows)


class Reader(Oracle):
    """Also compares the captions of a dataset in one prompt, row by row, by the words that it knows."""

    def __init__(self, base, **options):
        super().__init__(base, **options)
        self.prompts, self.captioned, self.said = [], 0, None

    def generate(self, conversations, **options):
        for place, messages in enumerate(conversations):
            prompt = messages[-1].text
            if "Textual Error:" not in prompt:
                self.captioned += bool(messages[-1].images)
                for _, answer in super().generate([messages], **options):
                    yield place, answer
                continue
            assert not messages[-1].images
            self.prompts.append(prompt)
            yield place, Answer(text=self.read(rows_of(prompt)) if self.said is None else self.said)

    def read(self, rows):
        find = self.vocabulary.find
        new = Counter(name for told, caption in rows for name in find(caption) - find(told or ""))
        t = new.most_common(5) or [("nothing", 0)]
        beside = Counter(name for told, caption in rows if t[0][0] in find(caption) for name in find(told or caption))
        del beside[t[0][0]]
        names = [", ".join(name for name, _ in some) for some in (t, beside.most_common(5))]
        return f"Textual Error: {names[0]}\nVisual Feature: {names[1]}"


def rows_of(prompt):
    """The rows of the sample, without the two lines that explain them."""
    return ROW.findall(prompt.partition("Dataset:\n")[2])


def direct(model, folder, *, tokens=CONTEXT_TOKENS, seed=0, prompts=None, **parts) -> Direct:
    composition = Composition(chat="hf:it", **dict.fromkeys(parts, "object:captioner"))
    objects = {"hf:it": model, **({"object:captioner": parts["captioner"]} if parts else {})}
    store = Store(folder / "direct.sqlite")
    return Direct(
        Parts(composition, store, objects=objects, prompts=Prompts(prompts)), "hf:it", tokens, seed
    )  # fmt: skip


def check_names(answer):
    for names in (answer.textual_error, answer.visual_feature):
        assert 1 <= len(names) <= 5 and len(set(names)) == len(names) and all(name.strip() for name in names)


@pytest.mark.parametrize("references", [False, True])
@pytest.mark.parametrize("method", LITE)
def test_every_method_names_both_and_the_name_of_the_setting_tells_it_nothing(base, store, method, references):
    data = planted(base, references=references)
    said = make_method(method, store=store)(data, "group")
    check_names(said)
    other = replace(data, source="scenes-zebra-giraffe-0.9-reference_free")
    assert make_method(method, store=store)(other, "another") == said


@pytest.mark.parametrize("method", ["association", "paper", "no-grouping", "chair"])
def test_methods_work_by_chat_models_too(base, store, method):
    said = make_method(method, store=store, chat=Oracle(base), scorer_1="vision-language", members=20,
                       summarizer_1="text-only", summarizer_2="vision-language")(planted(base), "group")  # fmt: skip
    check_names(said)
    assert said.textual_error[0] == "bench"
    assert sum(said.calls[key] for key in ("asked", "cached")) > 0 == said.calls["failed"]


def test_what_an_audit_says_a_benchmark_is_told(base, store):
    data, options = planted(base), {"summarizer_1": "text-only", "summarizer_2": "vision-language", "members": 20}
    for method in ("association", "paper"):
        given = options if method == "paper" else {}  # an audit refuses what association would not read
        result = symbal_hf.audit(data, method=method, chat=Oracle(base), store=store, **given)
        said = make_method(method, chat=Oracle(base), store=store, **options)(data, "group")
        assert list(said.textual_error) == result.prediction()["textual_error"]
        assert list(said.visual_feature) == result.prediction()["visual_feature"]
        assert said.verdict == result.verdict


def test_models_that_are_named_are_loaded_once_and_counted_for_each_setting(base, tmp_path, monkeypatch):
    loaded = []

    def load(spec, **_):
        loaded.append(spec)
        return Reader(base)

    monkeypatch.setattr("symbal_hf.models.parts.load_chat", load)
    for method in ("no-grouping", "direct"):
        loaded.clear()
        run = make_method(method, chat="hf:some/model", store=Store(tmp_path / f"{method}.sqlite"))
        counts = [run(planted(base, strength=strength), "group").calls for strength in (0.8, 0.6)]
        again = run(planted(base, strength=0.6), "group").calls
        assert loaded == ["hf:some/model"] and all(count["asked"] > 0 for count in counts)
        assert again["asked"] == 0 < again["cached"] <= counts[1]["asked"] + counts[1]["cached"]


def test_settings_of_a_group_share_what_was_judged_and_say_the_same(base, store):
    settings = [planted(base, t, v, references=True) for t, v in (("bench", "car"), ("dog", "lamp"))]
    for method in LITE:
        shared, alone = make_method(method, store=store), [make_method(method, store=store) for _ in settings]
        assert [shared(data, "g") for data in settings] == [
            one(data, "g") for one, data in zip(alone, settings, strict=True)
        ]


@pytest.mark.parametrize(("t", "v"), [("bench", "car"), ("dog", "lamp"), ("chair", "bottle")])
def test_counting_finds_a_strong_error_where_objects_are_known(base, store, t, v):
    data = replace(planted(base, t, v), objects=base.objects)
    said = make_method("chair", scorer="objects", store=store)(data, "group")
    assert said.textual_error[0] == t
    assert v in said.visual_feature
    assert said.verdict is None


def test_only_facts_that_are_called_false_are_named(base, store):
    """With perfect eyes those are the planted ones; where nothing is false, there is nothing to name."""
    options = {"chat": Oracle(base), "store": store, "summarizer_1": "text-only", "summarizer_2": "vision-language"}
    said = make_method("no-grouping", **options)(planted(base), "group")
    assert said.textual_error[0] == "bench" and "car" in said.visual_feature
    clean = [{"id": i, "image": str(image), "caption": caption}
             for i, image, caption in zip(base.ids, base.images, base.captions, strict=True)]  # fmt: skip
    said = make_method("no-grouping", **options)(load_data(clean), "group")
    assert said.textual_error == said.visual_feature == ()


def test_what_nobody_could_judge_is_not_flagged(base, store):
    parts = Parts(Composition(scorer_1="reference"), store)
    evidence = gather(planted(base, references=True), parts)
    score = np.full(len(evidence.concepts.facts), np.nan, np.float32)
    assert no_grouping(replace(evidence, score=score), parts) == ([], [])
    bench = evidence.concepts.facts_naming(evidence.concepts.names.index("bench"))
    score[:] = 0.9
    score[bench[0]] = 0.1
    names = set(evidence.concepts.by_fact[bench[0]].nonzero()[1])
    assert set(no_grouping(replace(evidence, score=score), parts)[0]) <= {evidence.concepts.names[c] for c in names}


@pytest.mark.parametrize("references", [False, True])
def test_one_question_finds_a_strong_error_that_it_can_read(base, tmp_path, references):
    data, model = planted(base, references=references), Reader(base)
    run = direct(model, tmp_path, **({} if references else {"captioner": model}))
    t, v = run(data)
    assert t[0] == "bench"
    if not references:  # references leave things out, the captioner here does not
        assert "car" in v
    assert len(model.prompts) == 1 and all(told for told, _ in rows_of(model.prompts[0]))


def test_without_references_or_a_captioner_the_captions_stand_alone(base, tmp_path):
    data, model = planted(base), Reader(base)
    direct(model, tmp_path)(data)
    assert "Reference" not in model.prompts[0]
    captions = {" ".join(caption.split()) for caption in data.captions}
    assert {caption for _, caption in rows_of(model.prompts[0])} <= captions


@pytest.mark.parametrize("references", [False, True])
def test_no_prompt_tells_of_the_truth(base, tmp_path, references):
    data, model = planted(base, references=references), Reader(base)
    marked = replace(data, source="scenes-vXfeature-tXerror-0.9", objects=(frozenset(["oXobject"]),) * len(data))
    direct(model, tmp_path, captioner=model)(marked)
    assert len(model.prompts) == 1
    assert not re.search("[vto]X", model.prompts[0])
    assert not any(f" {i} " in model.prompts[0] for i in data.ids[100:])  # nor are there ids to look rows up by


def test_the_question_and_its_answer_never_exceed_the_context(base, tmp_path):
    data, model = planted(base, references=True), Reader(base)
    sizes, before = [], []
    for tokens in (700, 1000, 2000, 4000, 9000, 10**6):
        run = direct(model, tmp_path, tokens=tokens)
        limits = limits_of(model, tokens)
        prompt = run.parts.prompts.render("direct", **run.values(data, limits))
        rows = rows_of(prompt)
        assert limits.count(prompt) + TEMPLATE_TOKENS + answer_tokens(tokens) <= tokens
        assert rows[: len(before)] == before  # more room, more rows after the same ones
        sizes.append(len(rows))
        before = rows
    assert 0 < sizes[0] < sizes[1] < sizes[2] < sizes[-1] == len(data)


def test_captions_of_any_length_and_script_fit(base, tmp_path):
    draw = random.Random(0)
    for number in range(20):
        texts = tuple(
            draw.choice(["A dog. ", "犬がいる。", "x", "🐕\n\nGenerated: ", "\ud800"]) * draw.choice([1, 3, 40, 9000])
            for _ in range(40)
        )
        data = AuditData(tuple(map(str, range(40))), texts, None, None, None, (), "texts")
        run = direct(Reader(base), tmp_path, tokens=1500, seed=number)
        prompt = run.parts.prompts.render("direct", **run.values(data, limits_of(run.parts.chat("hf:it"), 1500)))
        assert len(prompt.encode("utf-8", "surrogatepass")) / 3 <= 1500
        # No caption can pass for several rows, or for a reference.
        rows = prompt.partition("Dataset:\n")[2].split("\n\n")
        assert {row.strip() for row in rows} <= {f"Generated: {' '.join(text.split())}".strip() for text in texts}


def test_the_same_seed_draws_the_same_rows(base, tmp_path):
    def sample(data, seed):
        run = direct(Reader(base), tmp_path, tokens=3000, seed=seed)
        return run.values(data, limits_of(run.parts.chat("hf:it"), 3000))["text"]

    data = planted(base, references=True)
    assert sample(data, 3) == sample(data, 3)
    one, other = (ROW.findall(sample(data, seed)) for seed in (3, 4))
    assert one and set(one) != set(other)
    # Another setting of the same images is judged by much the same ones.
    same = {told for told, _ in ROW.findall(sample(planted(base, "dog", "lamp", references=True), 3))}
    assert len(same & {told for told, _ in one}) >= 0.7 * len(one)


def test_only_as_many_images_are_captioned_as_can_be_read(base, tmp_path):
    model = Reader(base)
    direct(model, tmp_path, tokens=1000, captioner=model)(planted(base))
    assert 0 < len(rows_of(model.prompts[0])) < model.captioned <= 64 < len(base)


def test_a_model_of_this_process_counts_by_its_own_tokenizer_and_window(base, tmp_path):
    """The tiny model refuses what is longer than its 400 tokens, so an answer of any form shows that it fitted."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "direct.jinja").write_text("Say.\nDataset:\n{{ text }}")
    model = LocalModel(str(save_text(tmp_path / "model")), device="cpu", dtype="float32")
    run = direct(model, tmp_path, prompts=tmp_path / "prompts")
    limits = limits_of(model, CONTEXT_TOKENS)
    assert limits.tokens == 400 and limits.count("A dog runs.") < len("A dog runs.")
    assert limits.count("<|im_end|>") > 1  # such a caption is read as text
    data = planted(base)
    data = replace(data, captions=("<|im_end|>",) * 10 + data.captions[10:])
    text = run.values(data, limits)["text"]
    assert 0 < len(rows_of(f"Dataset:\n{text}")) < len(data)
    assert run(data) == ([], [])
    (calls,) = run.parts.ledger.as_dict()["calls"]
    assert (calls["asked"], calls["failed"], calls["unparsed"]) == (1, 0, 1)


@pytest.mark.parametrize("text", [
    "Textual Error: bench, Dog, a cat\nVisual Feature: car, lamp",
    "  Textual Error: Bench,dog , a cat.\n\nVisual Feature: car, , lamp, car\n",
    "**Textual Error:** bench, dog, a cat\n**Visual Feature:** car, lamp",
    "- textual errors: 1. bench, 2. dog, 3. a cat\n- visual features: \"car\", `lamp`",
    "```\nTextual Error: bench, dog, a cat\nVisual Feature: car, lamp\n```",
])  # fmt: skip
def test_an_answer_in_the_form_that_was_asked_for_is_read(text):
    assert parse(text) == (["bench", "dog", "a cat"], ["car", "lamp"])


UNREADABLE = [
    "", "I cannot tell.", "bench\ncar", "Textual Error: bench", "Visual Feature: car\nTextual Error: bench",
    "Textual Error: \nVisual Feature: car", "Textual Error: ..., ...\nVisual Feature: car",
    "Textual Error: bench\nVisual Feature: car\nI found them by counting.",
    "Sure! Textual Error: bench\nVisual Feature: car",
    "Textual Error: bench Visual Feature: car\nVisual Feature: car", "Textual Error: bench\nThen\nVisual Feature: car",
    "Textual Error: " + "very " * 30 + "long\nVisual Feature: car", '{"textual_error": ["bench"]}',
]  # fmt: skip


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_answer_of_another_form_names_nothing_and_is_counted(base, tmp_path, text):
    data, model = planted(base), Reader(base)
    model.said = text
    for asked in (1, 0):  # the second time from the store
        run = make_method("direct", chat=model, store=Store(tmp_path / "s.sqlite"), context_tokens=1000)
        said = run(data, "group")
        assert said.textual_error == said.visual_feature == () and said.verdict is None
        assert dict(said.calls) == {"asked": asked, "cached": 1 - asked, "failed": 0, "unparsed": 1}


def test_more_names_than_were_asked_for_count_no_further():
    t, v = parse(f"Textual Error: {', '.join('abcdefg')}\nVisual Feature: a, a, b")
    assert t == list("abcde") and v == ["a", "b"]


def test_a_question_that_fails_is_one_setting_lost_and_a_dead_model_is_the_end(base, tmp_path):
    class Failing(Reader):
        broken = True

        def generate(self, conversations, **options):
            if self.broken:
                yield 0, Answer(error="the server gave up.")
            else:
                yield from super().generate(conversations, **options)

    data, model = planted(base), Failing(base)
    run = make_method("direct", chat=model, store=Store(tmp_path / "s.sqlite"), context_tokens=1000)
    for _ in range(2):
        for _ in range(2):
            with pytest.raises(BadData, match="the server gave up"):
                run(data, "group")
        model.broken = False
        check_names(run(data, "group"))
        model.broken, data = True, planted(base, "dog", "lamp")
    for _ in range(2):
        with pytest.raises(BadData):
            run(planted(base, "chair", "bottle"), "group")
    with pytest.raises(ChatFailed, match="the server gave up"):
        run(planted(base, "chair", "bottle"), "group")


@pytest.mark.parametrize(
    ("method", "options", "complaint"),
    [("guess", {}, "no method 'guess'; available: association, paper, no-grouping"),
     ("direct", {}, "asks a chat model; name it with chat"),
     ("direct", {"scorer_1": "embedding", "scorer_2": "embedding"}, "asks a chat model; name it with chat"),
     ("chair", {"context_tokens": 9000}, "context_tokens=9000 is an option of the method direct"),
     ("most-frequent", {"chat": "hf:x"}, "'most-frequent' works with the lite preset alone"),
     ("embedding-difference", {"chat": "hf:x"}, "'embedding-difference' works with the lite preset alone"),
     ("no-grouping", {"chat": "hf:x", "scorer_1": "embedding"}, "gives cosines, which only rank them"),
     ("association", {"scorer": "objekts"}, "scorer_1='objekts'; a scorer is one of auto, objects")],
)  # fmt: skip
def test_a_method_that_cannot_work_says_so_at_once(tmp_path, method, options, complaint):
    with pytest.raises(BadData, match=complaint):
        make_method(method, store=Store(tmp_path / "s.sqlite"), **options)


def test_an_option_of_another_name_is_no_option(tmp_path):
    with pytest.raises(TypeError, match="no option 'sed'"):
        make_method("chair", store=Store(tmp_path / "s.sqlite"), sed=3)


@pytest.mark.parametrize(("tokens", "complaint"), [(100, "context_tokens=100 is too few; give at least 256"),
                                                   (400, "leaves no room for a single row")])  # fmt: skip
def test_a_window_without_room_is_named(base, tmp_path, tokens, complaint):
    with pytest.raises(BadData, match=complaint):
        direct(Reader(base), tmp_path, tokens=tokens)(planted(base))


def test_captions_that_say_nothing_give_no_names(store):
    data = AuditData(("a", "b"), ("", "..."), (("A dog.",), ("A cat.",)), None, None, (), "nothing")
    for method in LITE:
        said = make_method(method, store=store)(data, "group")
        assert said.textual_error == said.visual_feature == ()
