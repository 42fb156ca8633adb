"""What a caption states, however it is laid out and in whatever language, becomes one fact a statement."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symbal_hf.language.facts import sentences, split_facts
from symbal_hf.language.sentences import MARKUP, answers, unmarked

LIGHT = settings(max_examples=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # markdown and HTML
        ("**Main:** A *red* car.\n\n### Background\nTrees.", ["Main: A red car.", "Background", "Trees."]),
        ("1. **Cat**: black\n   - [x] asleep\n2) __big__ mat", ["Cat: black", "asleep", "big mat"]),
        ("***Two*** ~~cats~~ `dogs`. The **very *old* man**.", ["Two cats dogs.", "The very old man."]),
        ("| Object | Color |\n|:---|---:|\n| car | red |", ["Object, Color", "car, red"]),
        ("```markdown\nA cat.\n```", ["A cat."]),
        ("See [the cat](http://x.org/a_(1).b?c=1 \"t\") here.", ["See the cat here."]),
        ("![a picture](x.png)\nA cat.", ["A cat."]),
        ("Bed &amp; table<br>A <b>cat</b>.<p>Two.</p>", ["Bed & table", "A cat.Two."]),
        ("A snake_case_name and 3 * 4 * 5 < 7.", ["A snake_case_name and 3 * 4 * 5 < 7."]),
        ("> A quoted line.\n---\n***\nA dog.", ["A quoted line.", "A dog."]),
        # lists
        ("The image contains: 1. a cat 2. a dog 3) a mat", ["The image contains:", "a cat", "a dog", "a mat"]),
        ("(1) A cat. (2) A dog.", ["A cat.", "A dog."]),
        ("Bus 1. Then bus 12. The sign says 42.", ["Bus 1. Then bus 12. The sign says 42."]),
        ("– a cat\n▪ a dog\n✓ a mat\na) a bus\n①鸟\n1、一只狗", ["a cat", "a dog", "a mat", "a bus", "鸟", "一只狗"]),
        ("1girl, solo, long hair, smile, tree", ["1girl", "solo", "long hair", "smile", "tree"]),
        ("猫，狗，树，天空，人", ["猫", "狗", "树", "天空", "人"]),
        ("A man, a dog, a cat, a bus, and a bird", ["A man, a dog, a cat, a bus, and a bird"]),
        ("A man, a dog, a cat, a bus that is red, a bird", ["A man, a dog, a cat, a bus that is red, a bird"]),
        # dialogues
        ("Q: What is it? A: A cat. Q: Where? A: On a mat.", ["A cat.", "On a mat."]),
        ("A room.\n\nQuestion 1: What?\nAnswer 1: A cat.", ["A room.", "A cat."]),
        ("User: Describe.\nAssistant: A cat. A dog.", ["A cat.", "A dog."]),
        ("问：这是什么？答：一只猫。", ["一只猫。"]),
        ("Vitamin A: good. Answer: yes.", ["Vitamin A: good.", "Answer: yes."]),
        ("The sign says Q: and nothing else.", ["The sign says Q: and nothing else."]),
        # quotations and abbreviations
        ('A sign reads "Stop. Go home." in red. A man.', ['A sign reads "Stop. Go home." in red.', "A man."]),
        ("He said “It is late. We go.” Then he left.", ["He said “It is late. We go.”", "Then he left."]),
        ('A 12" screen. A dog. A cat. A bus. A mat.', ['A 12" screen.', "A dog.", "A cat.", "A bus.", "A mat."]),
        ("A man of approx. 40 years. No. 5 is a bus.", ["A man of approx. 40 years.", "No. 5 is a bus."]),
        ("a dog, e.g. a poodle, runs. a cat ... sits. the end",
         ["a dog, e.g. a poodle, runs.", "a cat ... sits.", "the end"]),
        ("Two dogs.One cat.Ten mats. See www.Google.com", ["Two dogs.", "One cat.", "Ten mats.", "See www.Google.com"]),
        # languages
        ("Der Hund ist z. B. braun. Er läuft ca. 5 m. Am 3. Mai war es warm.",
         ["Der Hund ist z. B. braun.", "Er läuft ca. 5 m.", "Am 3. Mai war es warm."]),
        ("El Sr. López mira. ¿Hay un perro? ¡Sí! Hay banderas de EE. UU. en rojo.",
         ["El Sr. López mira.", "¿Hay un perro?", "¡Sí!", "Hay banderas de EE. UU. en rojo."]),
        ("Un homme, M. Dupont, marche. Il fait beau.", ["Un homme, M. Dupont, marche.", "Il fait beau."]),
        ("الكلب يركض في الحديقة. القطة نائمة؟ نعم!", ["الكلب يركض في الحديقة.", "القطة نائمة؟", "نعم!"]),
        ("एक कुत्ता दौड़ रहा है। एक बिल्ली सो रही है।", ["एक कुत्ता दौड़ रहा है।", "एक बिल्ली सो रही है।"]),
        ("犬が走っている。猫が寝ている！鳥？", ["犬が走っている。", "猫が寝ている！", "鳥？"]),
        ("图中有一只猫。它很小！A dog. Un perro.", ["图中有一只猫。", "它很小！", "A dog.", "Un perro."]),
        ("한 남자가 서 있다. 개가 달린다.", ["한 남자가 서 있다.", "개가 달린다."]),
    ],
)  # fmt: skip
def test_a_statement_is_a_fact(text, expected):
    assert sentences(text) == expected


def test_a_sentence_that_never_ends_is_taken_apart_where_it_can_be():
    parts = [f"on the left there are {n} chairs and a table with many plates on it;" for n in range(12)]
    assert sentences("The image shows this: " + " ".join(parts))[1:] == parts[1:]
    assert sentences("A cat; a dog; a mat.") == ["A cat; a dog; a mat."]


def test_long_paragraphs_keep_all_their_sentences():
    paragraph = " ".join(f"Chair number {n} stands near Mr. Fox." for n in range(2000))
    assert sentences(paragraph) == [f"Chair number {n} stands near Mr. Fox." for n in range(2000)]


WORDS = ["A dog.", "Wow!", *"aé。，", "1.", "2.", "Q:", "A:", "- ", "\n", "<b>", "[a](b)", "**", *'"*`_|~']


@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text(max_size=120))
@example("*" * 3000 + "a")
@example("<" * 3000 + "a" * 3000)
@example('"a. B ' * 2000)
@example("[" * 2000 + "](" * 2000)
@example("| " * 3000)
@LIGHT
def test_facts_are_single_lines_in_order(text):
    found = sentences(text)
    assert all(s == s.strip() and len(s.splitlines()) == 1 and any(c.isalnum() for c in s) for s in found)
    if not MARKUP.search(text) and answers(text) == text:
        letters = "".join(c for c in text if c.isalpha())
        assert "".join(c for s in found for c in s if c.isalpha()) == letters


@given(st.lists(st.sampled_from(["A cat.", "two dogs", "*big*", "**red car**", "`x`", "~~old~~"]), max_size=8))
@LIGHT
def test_marks_go_and_words_stay(words):
    text = " ".join(words)
    plain = text.replace("*", "").replace("`", "").replace("~", "")
    assert unmarked(text) == plain


def test_the_questions_of_a_real_model_are_no_facts(shared_data):
    import json

    path = shared_data / "mllm_coco/mllm_captions/pope__minigpt4__instruction1.jsonl"
    captions = [json.loads(line)["caption"] for line in path.open()]
    asking = [c for c in captions if "Question 1:" in c and "Answer" in c]
    facts = split_facts(asking)
    assert len(asking) > 10 and len(facts) > 2 * len(asking)
    assert not any(fact.startswith(("Question", "Answer")) for fact in facts.text)
