"""Chat models as scorers, captioners and summarizers: what they say reaches the verdict, and what fails is no answer.

The models here are simulated: they know what drawn scenes show and err at a stated rate. What is tested is what becomes
of their answers, not how well any real model sees.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from oracle import Oracle

import symbal_hf
from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.planting.plant import Ground, Planted
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.language.facts import split_facts
from symbal_hf.models.chat.prompting import PROMPTS, Prompts
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import Composition, load_preset, preset_names
from symbal_hf.models.parts import Parts, load_chat
from symbal_hf.models.scorers import image_texts, score_facts
from symbal_hf.models.summarizers import most_frequent, name_facts, name_images

CHAT = "hf:oracle"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return scenes_base(tmp_path_factory.mktemp("drawn"), rows=400, size=64, seed=11)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One store for all: what the small encoders make of the same images is needed again and again."""
    return Store(tmp_path_factory.mktemp("store") / "store.sqlite")


def planted(base, t="lamp", v="car", strength=0.6, *, references=False) -> tuple[AuditData, Planted]:
    found = Ground(base).plant(t, v, strength)
    rows = [{"id": i, "image": str(image), "caption": caption}
            for i, image, caption in zip(base.ids, base.images, found.captions, strict=True)]  # fmt: skip
    if references:
        rows = [{**row, "references": list(told)} for row, told in zip(rows, base.references, strict=True)]
    return load_data(rows), found


def parts_with(oracle, folder, **parts) -> Parts:
    return Parts(Composition(chat=CHAT, **parts), Store(folder / "store.sqlite"), objects={CHAT: oracle})


@pytest.mark.parametrize(
    ("scorer", "references"),
    [("vision-language", False), ("vision-language", True), ("text-only", True), ("text-only", False)],
)
def test_planted_facts_score_low_and_true_ones_high(base, tmp_path, scorer, references):
    data, found = planted(base, references=references)
    captioner = CHAT if scorer == "text-only" and not references else None
    parts = parts_with(Oracle(base), tmp_path, scorer_1=scorer, captioner=captioner)
    facts = split_facts(data.captions)
    score = score_facts(parts, "scorer_1", data, facts, np.arange(len(facts)))
    lie = {(row, said) for row, said in zip(found.rows, found.sentences, strict=True)}
    wrong = np.array([(int(row), text) in lie for row, text in zip(facts.row, facts.text, strict=True)])
    assert wrong.sum() == len(lie)
    assert score[wrong].max() < 0.5
    if scorer == "vision-language" or captioner:
        assert score[~wrong].min() > 0.5
    else:  # references leave things out
        assert score[~wrong].mean() > score[wrong].mean() + 0.3


def test_an_answer_that_is_none_is_a_third_state(base, tmp_path):
    class Mute(Oracle):
        def probability_of_yes(self, conversations) -> Iterator[tuple[int, Answer]]:
            for place, answer in super().probability_of_yes(conversations):
                odd = place % 5
                yield (
                    place,
                    (Answer(error="server error 500") if odd == 0 else Answer(text="Yes, 1.") if odd == 1 else answer),
                )

    data, _ = planted(base)
    parts = parts_with(Mute(base), tmp_path)
    facts = split_facts(data.captions)
    score = score_facts(parts, "scorer_1", data, facts, np.arange(len(facts)))
    assert 0.3 < np.isnan(score).mean() < 0.5
    (calls,) = parts.ledger.as_dict()["calls"]
    assert calls["failed"] > 0 and calls["unparsed"] > 0


@pytest.mark.parametrize("composition", [
    {"scorer_1": "vision-language"},
    {"scorer_1": "vision-language", "captioner": CHAT},
    {"scorer_1": "text-only", "captioner": CHAT},
])  # fmt: skip
def test_association_names_the_planted_pair_whatever_looks_at_the_images(base, store, composition):
    data, _ = planted(base)
    oracle = Oracle(base, miss=0.05)
    if "captioner" in composition:
        composition = composition | {"captioner": oracle}
    result = symbal_hf.audit(data, chat=oracle, store=store, **composition)
    first = result.findings[0]
    assert result.verdict == "systematic"
    assert (first.textual_error, first.visual_feature) == ("lamp", "car")
    assert result.provenance["models"]["composition"]["scorer_1"] == composition["scorer_1"]


@pytest.mark.parametrize(("t", "v", "strength"), [("lamp", "car", 0.9), ("dog", "table", 0.6), ("lamp", "car", 0.6)])
def test_a_true_mention_is_no_error_however_false_the_others_are(base, store, t, v, strength):
    """Nearly all mentions beside v are false; those elsewhere, which the model calls true, must not be counted."""
    data, found = planted(base, t, v, strength)
    result = symbal_hf.audit(data, chat=Oracle(base), store=store)
    first = result.findings[0]
    assert (first.textual_error, first.visual_feature) == (t, v)
    lies = {data.ids[row] for row in found.rows}
    assert set(first.affected_ids) <= lies and len(first.affected) >= 0.9 * len(lies)
    assert first.errors_without_feature <= found.plan.without_feature


def test_association_works_from_references_by_text_alone(base, store):
    data, _ = planted(base, strength=0.9, references=True)
    data = AuditData(data.ids, data.captions, data.references, None, None, (), "text")
    result = symbal_hf.audit(data, chat=Oracle(base), scorer_1="text-only", store=store)
    assert (result.findings[0].textual_error, result.findings[0].visual_feature) == ("lamp", "car")


@pytest.mark.parametrize("summarizers", [("phrases", "phrases"), ("text-only", "vision-language"),
                                         ("text-only", "text-only")])  # fmt: skip
def test_the_paper_s_two_stages_name_t_with_every_summarizer(base, store, summarizers):
    data, _ = planted(base, strength=0.9)
    oracle = Oracle(base)
    result = symbal_hf.audit(
        data, method="paper", chat=oracle, summarizer_1=summarizers[0], summarizer_2=summarizers[1],
        captioner=oracle if summarizers[1] == "text-only" else None, store=store,
    )  # fmt: skip
    first = (result.findings + result.suspects)[0]
    assert first.textual_error == "lamp"
    assert "car" in first.visual_feature_candidates


def test_an_encoder_alone_names_a_strong_error(base, store):
    """Lite's whole-image vectors, which nobody calibrated, stand for CLIP; captions say what its cosines are worth."""
    data, found = planted(base, strength=0.9)
    result = symbal_hf.audit(data, scorer_1="embedding", scorer_2="embedding", store=store)
    first = (*result.findings, *result.suspected)[0]
    assert (first.textual_error, first.visual_feature) == ("lamp", "car")
    assert result.provenance["models"]["calls"] == []
    facts = split_facts(data.captions)
    parts = Parts(Composition(scorer_1="embedding", scorer_2="embedding"), store)
    score = score_facts(parts, "scorer_1", data, facts, np.arange(len(facts)))
    lie = {(row, said) for row, said in zip(found.rows, found.sentences, strict=True)}
    wrong = np.array([(int(row), text) in lie for row, text in zip(facts.row, facts.text, strict=True)])
    of_lamp = np.array(["lamp" in text.lower() for text in facts.text])
    assert score[wrong].mean() < score[~wrong & of_lamp].mean()
    pairs = symbal_hf.audit(data, method="paper", scorer_1="embedding", scorer_2="embedding", store=store)
    assert pairs.findings + pairs.suspects  # which is right less often: see docs/results


def test_clean_captions_get_the_verdict_none(base, store):
    rows = [{"id": i, "image": str(image), "caption": caption}
            for i, image, caption in zip(base.ids, base.images, base.captions, strict=True)]  # fmt: skip
    result = symbal_hf.audit(
        rows, image_root="/", chat=Oracle(base, miss=0.05), scorer_1="vision-language", store=store
    )  # fmt: skip
    assert result.verdict == "none"


def test_a_second_audit_asks_nothing_and_finds_the_same(base, tmp_path):
    data, _ = planted(base)
    oracle, results = Oracle(base, miss=0.05), []
    for _ in range(2):
        results.append(symbal_hf.audit(data, chat=oracle, store=Store(tmp_path / "s.sqlite")))
        asked = oracle.asked
        oracle.asked = 0
    assert asked == 0
    assert results[0].findings == results[1].findings
    calls = results[1].provenance["models"]["calls"]
    assert sum(c["asked"] for c in calls) == 0 < sum(c["cached"] for c in calls)


def test_nothing_of_images_prompts_or_keys_is_in_the_findings(base, tmp_path, monkeypatch):
    monkeypatch.setenv("SYMBAL_API_KEY", "sk-secret")
    data, _ = planted(base)
    monkeypatch.setattr("symbal_hf.models.parts.load_chat", lambda *_, **__: Oracle(base))
    spec = "openai:http://me:sk-secret@host/v1#model"
    result = symbal_hf.audit(data, chat=spec, store=Store(tmp_path / "s.sqlite"))
    text = json.dumps(result.provenance)
    assert "sk-secret" not in text and "one digit" not in text
    assert {"fact_of_image", "features_of_image"} == set(result.provenance["models"]["prompts"])


def test_captions_made_elsewhere_are_paired_by_id(base, tmp_path):
    data, _ = planted(base)
    path = tmp_path / "captions.jsonl"
    rows = [{"image_id": i, "caption": f"Scene {i}."} for i in reversed(base.ids[:100])] + [
        {"image_id": "x", "caption": "."}
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = parts_with(Oracle(base), tmp_path, scorer_1="text-only", captioner=f"file:{path}")
    told = image_texts(parts, data)
    assert told[:2] == [("Scene 0.",), ("Scene 1.",)] and told[200] == ()
    path.write_text('{"image_id": "nobody", "caption": "A."}\n')
    with pytest.raises(BadData, match="a caption for none of the 400 rows"):
        image_texts(parts, data)
    path.write_text('{"name": "nobody"}\n')
    with pytest.raises(BadData, match="captions need image_id and caption"):
        image_texts(parts, data)


def test_summaries_put_the_shared_thing_first(base, tmp_path):
    parts = parts_with(Oracle(base), tmp_path, summarizer_1="text-only", summarizer_2="vision-language")
    assert name_facts(parts, "summarizer_1", ["A dog and a cat.", "A dog.", "One dog near a boat."], k=1) == ["dog"]
    data, _ = planted(base)
    cars = [row for row, present in enumerate(base.objects) if "car" in present]
    assert name_images(parts, "summarizer_2", data, cars)[0] == "car"
    assert name_facts(parts_with(Oracle(base), tmp_path), "summarizer_1", ["A dog."]) == []  # phrases: no model


@pytest.mark.parametrize("said", ["The dog.", "Answer: unicorn", "", None])
def test_a_summary_that_cannot_be_used_is_counted_instead(base, tmp_path, said):
    class Odd(Oracle):
        def generate(self, conversations, **options):
            for place, _ in enumerate(conversations):
                yield place, Answer(text=said) if said is not None else Answer(error="timeout")

    class Two(Odd):
        def generate(self, conversations, **options):
            if len(conversations) == 1 and said is None:  # every answer failing is another matter: see test_ask
                yield 0, Answer(text="?")
            else:
                yield from super().generate(conversations, **options)

    parts = parts_with(Two(base), tmp_path, summarizer_1="text-only")
    assert most_frequent(parts, CHAT, [["cat", "dog"], ["dog"], ["boat", "dog", "cat"]], k=2) == ["dog", "cat"]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [({"scorer_1": "clip"}, "scorer_1='clip'; a scorer is one of auto, objects, reference, embedding"),
     ({"summarizer_2": "gpt"}, "summarizer_2='gpt'"),
     ({"scorer_1": "text-only"}, "scorer_1='text-only' asks a chat model"),
     ({"summarizer_1": "vision-language", "chat": "hf:x"}, "facts are text"),
     ({"chat": "ollama"}, "chat='ollama'; give hf:MODEL or openai:URL#MODEL"),
     ({"chat": "file:x.jsonl"}, "chat='file:x.jsonl'"),
     ({"captioner": "blip", "chat": "hf:x"}, "captioner='blip'.*file:captions.jsonl")],
)  # fmt: skip
def test_a_part_that_does_not_exist_is_named(parts, complaint):
    defaults = {"scorer_1": "embedding", "scorer_2": "embedding"}
    with pytest.raises(BadData, match=complaint):
        Composition(**(defaults | parts))


@pytest.mark.parametrize("spec", ["hf:", "openai:http://host/v1", "openai:#m", "vllm:x", ""])
def test_a_chat_model_needs_its_whole_name(spec):
    with pytest.raises(BadData, match=r"give hf:MODEL\[@revision\] or openai:"):
        load_chat(spec)


def test_numbers_and_devices_reach_the_models(tmp_path):
    composition = Composition(scorer_1="embedding", scorer_2="embedding", text_encoder="lite")
    for dtype in ("float32", "bfloat16"):
        parts = Parts(composition, Store(tmp_path / "s.sqlite"), device="cpu", dtype=dtype)
        assert parts.chat("hf:some/model@v1").settings.startswith(f"torch.{dtype}|")
    parts = Parts(composition, Store(tmp_path / "s.sqlite"), device="toaster")
    with pytest.raises((ValueError, RuntimeError), match="toaster"):
        _ = parts.chat("hf:some/model").settings
    assert parts.text_vectors(["A dog."]).shape == (1, 384)  # the lite encoders stay where they are


def test_audits_that_cannot_be_made_say_why(base, tmp_path):
    data, _ = planted(base)
    text = AuditData(data.ids, data.captions, None, None, None, (), "text")
    store, oracle = Store(tmp_path / "s.sqlite"), Oracle(base)
    with pytest.raises(BadData, match="nothing tells what the images show"):
        symbal_hf.audit(text, chat=oracle, store=store)
    with pytest.raises(BadData, match="give references, a captioner, or a vision-language scorer"):
        symbal_hf.audit(data, chat=oracle, scorer_1="text-only", store=store, scorer_2="text-only")
    with pytest.raises(BadData, match="scorer 'objects' needs a column that the source lacks; usable here: embedding"):
        symbal_hf.audit(data, chat=CHAT, scorer="objects", store=store)
    with pytest.raises(BadData, match="no preset 'huge'; available: lite, paper-medical, paper-natural, small"):
        symbal_hf.audit(data, preset="huge", store=store)


def test_presets_name_real_compositions_and_what_they_need():
    assert preset_names() == ("lite", "paper-medical", "paper-natural", "small")
    for name in preset_names():
        preset = load_preset(name)
        assert preset.about and all(m.gpu_gb > 0 and m.disk_gb > 0 and m.licence for m in preset.models)
        if name == "lite":
            assert preset.composition == Composition() and not preset.models
            continue
        named = preset.composition.chat.partition(":")[2]
        assert any(m.name == named and m.serve and m.serve.startswith(f"vllm serve {named}") for m in preset.models)
    changed = load_preset("paper-natural").composition.with_parts(image_encoder="transformers:facebook/dinov2-large")
    assert changed.image_encoder.endswith("dinov2-large") and changed.scorer_1 == "vision-language"
    with pytest.raises(BadData, match="no part 'scorer'"):
        changed.with_parts(scorer="x")


def test_a_preset_file_of_one_s_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "about: mine\nscorer_1: text-only\nscorer_2: text-only\nchat: hf:my/model\ncaptioner: file:c.jsonl\n"
    )
    assert load_preset(path).composition.chat == "hf:my/model"
    path.write_text("scorer: x\n")
    with pytest.raises(BadData, match=r"mine\.yaml: unknown entry 'scorer'"):
        load_preset(path)
    path.write_text("models: [{name: x}]\n")
    with pytest.raises(BadData, match="another shape"):
        load_preset(path)


def test_prompts_can_be_replaced_one_by_one_and_change_their_hash(tmp_path):
    (tmp_path / "fact_of_image.jinja").write_text("Is this so? {{ fact }} 1 or 0.")
    ours, own = Prompts(), Prompts(tmp_path)
    assert own.render("fact_of_image", fact="A dog.") == "Is this so? A dog. 1 or 0."
    assert own.hash("fact_of_image") != ours.hash("fact_of_image") and own.hash("same_thing") == ours.hash("same_thing")
    (tmp_path / "fact_of_picture.jinja").write_text("x")
    with pytest.raises(BadData, match=r"fact_of_picture\.jinja, which no part asks; prompts are"):
        Prompts(tmp_path)
    (tmp_path / "fact_of_picture.jinja").unlink()
    (tmp_path / "fact_of_image.jinja").write_text("{{ claim }}")
    with pytest.raises(BadData, match="the prompt fact_of_image cannot be filled in: 'claim' is undefined"):
        Prompts(tmp_path).render("fact_of_image", fact="A dog.")


def test_every_prompt_keeps_the_answer_format_that_is_read_back():
    prompts = Prompts()
    values = {
        "fact": "A dog.",
        "reference": "A cat.",
        "text": "A cat.",
        "answer": "a",
        "truth": "b",
        "lists": [["a"]],
        "k": 5,
        "errors": ["dog"],
        "facts": ["A dog."],
    }
    for name in PROMPTS:
        text = prompts.render(name, **values)
        assert ("1 if" in text) == name.startswith(("fact_", "same_")), name
        assert ('"Answer: "' in text) == name.startswith(("features_", "most_")), name
        assert "{{" not in text and text == text.strip()
