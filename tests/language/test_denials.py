"""What a sentence denies is not stated: neither by captions nor by references, in everyday words or in reports."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbal_hf
from benchmark_builder.reports.radiology import medical_vocabulary, report_sentences, statuses
from symbal_hf.language.concepts import find_concepts
from symbal_hf.language.denials import asserted, denied_spans
from symbal_hf.language.facts import split_facts
from symbal_hf.language.phrases import Vocabulary, noun_phrases

THINGS = Vocabulary(dict.fromkeys(("sink", "toilet", "dog", "bench", "hat", "bus", "kitchen", "person", "sign"), ()))
THINGS = THINGS.with_synonyms({("people",): "person"})


@pytest.mark.parametrize(
    ("sentence", "stated"),
    [
        ("There is no sink in the kitchen.", {"kitchen"}),
        ("A toilet without a sink.", {"toilet"}),
        ("There aren't any people on the bench.", {"bench"}),
        ("A sink is not visible, but a toilet is.", {"toilet"}),
        ("The man isn't wearing a hat and holds a dog.", {"dog"}),
        ("With no people in the background, a bus waits.", {"bus"}),
        ("No dog, hat or sign, just a bus.", {"bus"}),
        ("Neither a dog nor a person is near the bench.", {"bench"}),
        ("A toilet instead of a sink, and a dog.", {"toilet", "dog"}),
        ("Not only a dog but also a hat.", {"dog", "hat"}),
        ("There is no doubt that this is a bus.", {"bus"}),
        ("A no parking sign by the bench.", {"sign", "bench"}),
        ("The bench is not far from the bus.", {"bench", "bus"}),
        ("A dog sits on a bench.", {"dog", "bench"}),
        ("No. The dog has a hat.", {"dog", "hat"}),
        ("THERE IS NO SINK. A TOILET.", {"toilet"}),
        ("İİİİ: without a sink, the dog sleeps.", {"dog"}),
    ],
)
def test_what_a_sentence_states(sentence: str, stated: set[str]) -> None:
    assert THINGS.find(asserted(sentence)) == stated


@given(st.text())
def test_spans_lie_inside_any_text_in_order(text: str) -> None:
    spans = denied_spans(text)
    assert all(0 <= a < b <= len(text) for a, b in spans) and spans == sorted(spans)


@given(
    st.lists(st.sampled_from(["A dog runs.", "Two people sit on a bench.", "a bus, red;", "日本の犬。"]), max_size=4)
)
def test_a_text_that_denies_nothing_stays_as_it_is(parts: list[str]) -> None:
    assert asserted(" ".join(parts)) == " ".join(parts)


def test_concepts_are_not_named_by_facts_that_deny_them() -> None:
    facts = split_facts(["There is a sink.", "There is no sink.", "A toilet. No sink is seen."] * 5)
    by_phrase = find_concepts(facts)
    sink = by_phrase.names.index("sink")
    assert [row % 3 for row in facts.row[by_phrase.facts_naming(sink)]] == [0] * 5
    by_class = find_concepts(facts, vocabulary=THINGS)
    assert by_class.stated(by_class.names.index("sink")).tolist() == [True, False, False] * 5


def test_a_denial_is_no_error_of_a_captioner_that_is_right() -> None:
    """Captions that say what is not there are true; a counter of names would call every one of them false."""

    def found(said: str) -> list[tuple[str, str]]:
        captions = ["A dog.", f"A toilet. There is {said} sink here."]
        objects = [["sink"]] * 9 + [["toilet"], []] * 100  # some images have a sink, so that its absence is known
        rows = [{"id": str(i), "caption": captions["toilet" in o], "objects": o} for i, o in enumerate(objects)]
        result = symbal_hf.audit(rows, vocabulary={"toilet": [], "sink": []})
        return [(f.textual_error, f.visual_feature) for f in result.findings]

    assert found("a") == [("sink", "toilet")] and found("no") == []


def test_real_reports_deny_what_their_labels_say_they_deny(shared_data: Path) -> None:
    """Against the rules for reports, which were measured on labels of their own (`test_openi.py`)."""
    words, count = medical_vocabulary(), Counter[tuple[str, bool]]()
    with (shared_data / "openi_reports_text" / "reports.jsonl").open(encoding="utf-8") as file:
        for line in file:
            report = json.loads(line)
            for sentence in report_sentences(f"{report['findings']}\n{report['impression']}"):
                kept = words.find(asserted(sentence))
                named = words.find(sentence)
                for concept, status in statuses(sentence).items():
                    # A heart of normal size is no cardiomegaly, but nothing there is a denial.
                    if concept in named and concept != "cardiomegaly":
                        count[status, concept in kept] += 1
    assert count["present", True] > 500 and count["absent", False] > 4000
    assert count["present", True] / (count["present", True] + count["present", False]) > 0.995
    assert count["absent", False] / (count["absent", True] + count["absent", False]) > 0.97


def test_most_names_survive_in_real_captions(shared_data: Path) -> None:
    file = shared_data / "mllm_coco" / "mllm_captions" / "pope__minigpt4__instruction1.jsonl"
    captions = [json.loads(line)["caption"] for line in file.open(encoding="utf-8")]
    facts = split_facts(captions).text
    denying = [text for text in facts if denied_spans(text)]
    assert 0.02 < len(denying) / len(facts) < 0.1
    kept = sum(len(noun_phrases(asserted(text))) for text in facts)
    assert kept > 0.95 * sum(len(noun_phrases(text)) for text in facts)
