"""A caption falls into its sentences, and a sentence is about the things that a reader would say it is about."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from symbal_hf.language.facts import sentences, split_facts
from symbal_hf.language.phrases import Vocabulary, compounds_of_parts, noun_phrases, singular
from symbal_hf.language.sentences import MARKUP, answers

LIGHT = settings(max_examples=150)
WORDS = Vocabulary(
    {
        "person": ["man", "woman", "pedestrian"],
        "dog": ["puppy"],
        "hot dog": ["hotdog"],
        "bear": [],
        "teddy bear": ["stuffed animal"],
        "computer": [],
        "mouse": [],
        "cell phone": ["mobile phone", "phone"],
        "skis": ["ski"],
        "toilet": [],
        "bowl": [],
        "train": [],
        "car": [],
        "bus": [],
        "wine glass": ["glass"],
    }
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("buses", "bus"), ("bus", "bus"), ("people", "person"), ("skis", "ski"), ("glass", "glass"), ("glasses", "glass"),
     ("tvs", "tv"), ("s", "s"), ("gizmos", "gizmo"),
     ("children", "child"), ("scissors", "scissors"), ("men", "man"), ("women", "woman"), ("knives", "knife"),
     ("mice", "mouse"), ("sheep", "sheep"), ("geese", "goose"), ("boxes", "box"), ("couches", "couch"),
     ("benches", "bench"), ("giraffes", "giraffe"), ("dresses", "dress"), ("oven", "oven"), ("tennis", "tennis"),
     ("puppies", "puppy"), ("teeth", "tooth"), ("", "")],
)  # fmt: skip
def test_singular(word, expected):
    assert singular(word) == expected
    assert singular(expected) == expected


@pytest.mark.parametrize(
    ("text", "has", "lacks"),
    [
        ("A man sits by the old stop sign.", {"man", "sign", "stop sign", "old stop sign"}, {"stop", "old"}),
        ("There is an orange and a banana.", {"orange", "banana"}, set()),
        ("a teddy bear watches", {"teddy bear"}, {"teddy", "watch", "bear"}),
        ("The dining table is set.", {"dining table", "table"}, {"dining"}),
        ("Two dogs run.", {"dog"}, {"run", "dogs run"}),
        ("A group of people pose for a picture.", {"person"}, {"group", "pose", "picture"}),
        ("A man rides a horse.", {"man", "horse"}, {"ride", "man ride"}),
        ("A baseball player swings a bat.", {"baseball player", "bat"}, {"swing"}),
        ("A couple dogs sleep.", {"dog"}, {"couple", "sleep"}),
        ("A dozen eggs lie there.", {"egg"}, {"lie"}),
        ("A sports ball is on the grass.", {"sports ball", "ball", "grass"}, {"sport"}),
        ("A pair of skis leans against a wall.", {"ski", "wall"}, {"pair"}),
        ("The image shows a bus in the background.", {"bus"}, {"image", "background"}),
        ("A RED BUS", {"red bus", "bus"}, {"red"}),
        ("People, buses; children!", {"person", "bus", "child"}, {"people"}),
    ],
)
def test_noun_phrases_of_plain_sentences(text, has, lacks):
    found = noun_phrases(text)
    assert has <= found
    assert not lacks & found


@pytest.mark.parametrize("text", ["", "   ", "...", "🐶🐱", "12 34", "狗在草地上。", "It is."])
def test_texts_without_english_nouns_have_no_phrases(text):
    assert noun_phrases(text) == frozenset()


TOKENS = ["a", "the", "old", "dogs", "bus", "runs", ",", ".", "stop", "sign", "🐶", "it's"]
PIECES = ["A", "dog", ".", "!", "?", "。", "狗", "-", "1.", "\n", "Dr.", "🐶", "”"]


@given(st.text(max_size=80) | st.lists(st.sampled_from(TOKENS)).map(" ".join))
@LIGHT
def test_any_text_gives_lower_case_phrases_of_at_most_three_words_whose_tails_are_phrases_too(text):
    found = noun_phrases(text)
    for phrase in found:
        words = phrase.split()
        assert 1 <= len(words) <= 3 and phrase == phrase.lower()
        assert all(" ".join(words[i:]) in found for i in range(1, len(words)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A hot dog lies here.", {"hot dog"}),
        ("Hot dogs and dogs.", {"hot dog", "dog"}),
        ("A hotdog", {"hot dog"}),
        ("a teddy bear watches", {"teddy bear"}),
        ("A bear and two TEDDY BEARS", {"bear", "teddy bear"}),
        ("Men and women with their puppies", {"person", "dog"}),
        ("two mobile phones", {"cell phone"}),
        ("a pair of skis", {"skis"}),
        ("glasses of wine", {"wine glass"}),
        ("A business of doggerel", set()),
        ("hot, dog", {"dog"}),
        ("", set()),
        ("狗", set()),
    ],
)
def test_vocabulary_finds_whole_names_the_longest_first(text, expected):
    assert WORDS.find(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a computer mouse", {"mouse"}),
        ("a computer, mouse", {"computer", "mouse"}),
        ("A computer. Mouse and all.", {"computer", "mouse"}),
        ("a computer (mouse)", {"computer", "mouse"}),
        ("a computer and a mouse", {"computer", "mouse"}),
        ("a computer\nmouse", {"computer", "mouse"}),
        ("a computer mouse by the computer", {"mouse", "computer"}),
        ("the dog train car", {"car"}),
    ],
)
def test_of_two_names_side_by_side_only_the_last_is_a_thing(text, expected):
    assert WORDS.find(text) == expected


def test_compounds_are_pairs_side_by_side_in_one_clause():
    assert WORDS.compounds("Two computer mice, a train, car and the toilet bowl.") == {
        (("computer", "mouse"), "computer", "mouse"),
        (("toilet", "bowl"), "toilet", "bowl"),
    }
    assert WORDS.compounds("a dog dog") == set()


def test_a_class_s_own_name_wins_over_another_s_synonym():
    assert Vocabulary({"bear": [], "teddy": ["bear"]}).find("a bear") == {"bear"}
    assert Vocabulary({"teddy": ["bear"], "bear": []}).find("a bear") == {"bear"}


def test_more_synonyms_leave_the_first_vocabulary_as_it_was():
    more = WORDS.with_synonyms({("toilet", "bowl"): "toilet"})
    assert more.find("a toilet bowl") == {"toilet"} and more.find("two hot dogs") == {"hot dog"}
    assert WORDS.find("a toilet bowl") == {"bowl"}
    assert more.classes == WORDS.classes


def test_an_empty_vocabulary_finds_nothing():
    assert Vocabulary({}).find("a dog") == frozenset()
    assert Vocabulary({"🐶": []}).find("a dog 🐶") == frozenset()


@given(st.lists(st.sampled_from([*WORDS.classes, "and", ",", "a"]), max_size=8))
@LIGHT
def test_what_is_found_was_written_and_the_last_name_is_always_found(words):
    found = WORDS.find(" ".join(words))
    assert found <= set(WORDS.classes)
    assert all(name in " ".join(words) for name in found)
    written = [w for w in words if w in WORDS.classes]
    assert bool(found) == bool(written)
    if written and not {"hot dog", "dog", "teddy bear", "bear"} & set(written):
        assert written[-1] in found


# Where each text lies, by hand: a toilet bowl is a toilet, a computer mouse is a mouse.
PLACES = {
    "toilet": [1, 0, 0], "bowl": [0, 1, 0], "toilet bowl": [0.9, 0.3, 0],
    "computer": [1, 0, 0], "mouse": [0, 1, 0], "computer mouse": [0.6, 0.8, 0],
    "train": [0, 0, 1], "car": [0, 1, 0], "train car": [0, 0.6, 0.8],
    "person": [0, 0, 1], "rider": [0, 1, 0], "toilet rider": [0.5, 0.8, 0],
}  # fmt: skip


def embed(texts):
    x = np.array([PLACES[t] for t in texts], np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_compounds_that_mean_their_first_part_are_told_by_meaning():
    texts = ["A toilet bowl.", "The computer mouse", "two train cars", "Toilet bowls, computer mice", "the train car"]
    found = compounds_of_parts(texts, WORDS, embed)
    assert found == {("toilet", "bowl"): ("toilet", "bowl"), ("train", "car"): ("train", "car")}
    words = WORDS.with_synonyms({name: whole for name, (whole, _) in found.items()})
    assert [words.find(t) for t in texts[:3]] == [{"toilet"}, {"mouse"}, {"train"}]


def test_a_compound_that_means_its_last_word_is_no_part_though_the_class_of_that_word_lies_far_off():
    words = WORDS.with_synonyms({("rider",): "person"})
    assert words.find("a toilet rider") == {"person"}
    assert compounds_of_parts(["A toilet rider."] * 3, words, embed) == {}


def test_a_compound_that_is_hardly_any_use_of_its_part_makes_none_of_it():
    texts = ["A toilet bowl."] * 2
    assert compounds_of_parts([*texts, *["A bowl."] * 150], WORDS, embed)
    assert compounds_of_parts([*texts, *["A bowl."] * 300], WORDS, embed) == {}


def test_rare_compounds_are_left_alone():
    assert compounds_of_parts(["A toilet bowl."], WORDS, embed) == {}
    assert compounds_of_parts(["A toilet bowl."], WORDS, embed, least=1) == {("toilet", "bowl"): ("toilet", "bowl")}
    assert compounds_of_parts([], WORDS, embed) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog runs. A cat sleeps! Is it? Yes", ["A dog runs.", "A cat sleeps!", "Is it?", "Yes"]),
        ("Dr. Smith sits. Mr. and Mrs. Fox stand.", ["Dr. Smith sits.", "Mr. and Mrs. Fox stand."]),
        ("The U.S. flag flies. It is red.", ["The U.S. flag flies.", "It is red."]),
        ("A dog, e.g. a poodle, costs 3.5 dollars.", ["A dog, e.g. a poodle, costs 3.5 dollars."]),
        ("- a dog\n* a cat\n1. a bus\n2) a car\n• a kite", ["a dog", "a cat", "a bus", "a car", "a kite"]),
        ("# Title\n\n  - One. Two.", ["Title", "One.", "Two."]),
        ("line one\nline two\r\nline three", ["line one", "line two", "line three"]),
        ("一只狗在草地上。一只猫在睡觉！还有人吗？", ["一只狗在草地上。", "一只猫在睡觉！", "还有人吗？"]),
        ("一只狗。 一只猫。", ["一只狗。", "一只猫。"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("真的？！好。", ["真的？！", "好。"]),
        ("A dog 🐶 runs. 🐱 A cat sleeps.", ["A dog 🐶 runs.", "🐱 A cat sleeps."]),
        ("A 2-year-old", ["A 2-year-old"]),
        ("", []),
        (" \n\t\n", []),
        ("🐶🐱", []),
        ("... !!", []),
        ("- \n1. ", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES)).map(" ".join))
@LIGHT
def test_sentences_lose_no_letter_and_keep_the_order(text):
    found = sentences(text)
    assert all(any(c.isalnum() for c in s) for s in found)
    assert all(s == s.strip() and len(s.splitlines()) == 1 for s in found)
    assume(not MARKUP.search(text) and answers(text) == text)  # markup and questions are left out: test_facts
    letters = "".join(c for c in text if c.isalpha())
    assert "".join(c for s in found for c in s if c.isalpha()) == letters


def test_facts_know_their_row():
    facts = split_facts(["One. Two.", "", "🐶", "Three."])
    assert facts.text == ("One.", "Two.", "Three.") and len(facts) == 3
    assert facts.row.tolist() == [0, 0, 3]
    assert facts.n_rows == 4 and facts.row.dtype == np.int64


def test_no_captions_give_an_empty_table():
    facts = split_facts([])
    assert len(facts) == facts.n_rows == 0
    assert facts.row.shape == (0,) and facts.row.dtype == np.int64


def nouns_of_imagenet() -> list[str]:
    """2,000 nouns, each the last word of a name in ImageNet, of which a dictionary knows them."""
    import random

    import simplemma
    from timm.data import ImageNetInfo

    info = ImageNetInfo("imagenet-22k")
    names = {
        name.split()[-1].lower() for i in range(info.num_classes()) for name in info.index_to_description(i).split(", ")
    }
    known = sorted(name for name in names if name.isalpha() and name.isascii() and simplemma.is_known(name, "en"))
    return random.Random(0).sample(known, 2000)


def test_of_two_thousand_nouns_nearly_all_keep_their_singular():
    import inflect

    plural, asked, wrong = inflect.engine().plural_noun, 0, []
    for noun in nouns_of_imagenet():
        if noun.endswith("s") or plural(noun) in (noun, False):
            continue
        for form in (noun, plural(noun)):
            asked += 1
            if singular(form) != noun:
                wrong.append(form)
    assert asked > 3_000 and len(wrong) / asked < 0.01, wrong


@pytest.mark.parametrize(("text", "told", "other"), [
    ("A hot dog on a plate.", {"hot dog", "plate"}, "dog"),
    ("A computer mouse on a desk.", {"computer mouse", "desk"}, "mouse"),
    ("A roll of toilet paper.", {"toilet paper"}, "paper"),
    ("Clear skies over the houses.", {"sky", "house"}, "ski"),
    ("A brown dog.", {"brown dog", "dog"}, "brown"),
])  # fmt: skip
def test_a_compound_is_not_what_its_second_word_names_elsewhere(text, told, other):
    assert told <= noun_phrases(text) and other not in noun_phrases(text)
