"""A sentence knows where it stands in its caption, whatever marks were taken out of it."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.language.sentences import split

WORDS = st.lists(st.sampled_from(["a", "cat", "sits", "red", "on", "mat", "it's", "3", "日本"]), min_size=1, max_size=6)
MARKS = ["{}", "**{}**", "- {}", "1. {}", "> {}", "`{}`", "<b>{}</b>", "_{}_", "| {} | x |"]
PIECES = [
    "a ", "cat", "sits. ", " Dog", "**", "_", "~~", "```", "\n", "\r\n", "| ", "|", "&amp;", "<b>", "</b>", "<br>",
    "](x)", "[", "![", "Q: ", "A: ", "1. ", "2. ", "- ", ", ", "，", "。", "猫", "; ", '"', "e.g. ", "No. 5", "\t",
    "\u2028",
]  # fmt: skip


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub(r"</?b>", "", text))


@given(st.lists(st.tuples(WORDS, st.sampled_from(MARKS)), min_size=1, max_size=5))
def test_a_sentence_of_a_marked_up_caption_reads_the_same_where_it_stands(lines) -> None:
    caption = "\n".join(mark.format(" ".join(words).capitalize() + ".") for words, mark in lines)
    found = split(caption)
    assert found
    for start, end, text in found:
        assert words(caption[start:end]) == words(text)


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_sentences_stand_one_after_the_other_and_begin_and_end_with_what_they_say(caption) -> None:
    last = 0
    for start, end, text in split(caption):
        assert last <= start < end <= len(caption)
        assert caption[start] in (text[0], "&") and caption[end - 1] in (text[-1], ";")
        last = end


@pytest.mark.parametrize(
    ("caption", "stands"),
    [
        ("A dog runs. A  cat\nsits. End.", ["A dog runs.", "A  cat", "sits.", "End."]),
        ("# Title\n\nA **red** cat.", ["Title", "A **red** cat."]),
        ("A cat. A cat. A [cat](http://x/y) sits.", ["A cat.", "A cat.", "A [cat](http://x/y) sits."]),
        ("A cat. ![A cat.](a.png) A dog.", ["A cat.", "A dog."]),
        ("Q: A cat? A: A cat. Q: A dog? A: No.", ["A cat.", "No."]),
        ("| sink | white |\n| dog |  |", ["sink | white", "dog"]),
        ("Salt &amp; <i>pepper</i>.<br>Two dogs.One cat.", ["Salt &amp; <i>pepper</i>.", "Two dogs.", "One cat."]),
        ("catalog, cat, dog, a cat, tree", ["catalog", "cat", "dog", "a cat", "tree"]),
        ("1. a cat 2. a cat", ["a cat", "a cat"]),
        ("猫がいる。 猫がいる。", ["猫がいる。", "猫がいる。"]),
        ("...", []),
    ],
)
def test_what_is_said_twice_stands_at_two_places(caption: str, stands: list[str]) -> None:
    assert [caption[start:end] for start, end, _ in split(caption)] == stands


def test_every_sentence_of_real_model_captions_reads_the_same_where_it_stands(shared_data: Path) -> None:
    for file in sorted((shared_data / "mllm_coco" / "mllm_captions").glob("*.jsonl")):
        for line in list(file.open(encoding="utf-8"))[:300]:
            caption = json.loads(line)["caption"]
            for start, end, text in split(caption):
                assert words(caption[start:end]) == words(text), file.name
