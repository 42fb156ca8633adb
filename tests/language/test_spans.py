"""A sentence that was split off a caption is found in it again."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.language.sentences import sentences
from symbal_hf.language.spans import span_of

WORDS = st.lists(st.sampled_from(["a", "cat", "sits", "red", "on", "mat", "it's", "3", "日本"]), min_size=1, max_size=6)
MARKS = ["{}", "**{}**", "- {}", "1. {}", "> {}", "`{}`", "<b>{}</b>", "_{}_", "| {} | x |"]


@given(st.lists(st.tuples(WORDS, st.sampled_from(MARKS)), min_size=1, max_size=5))
def test_every_sentence_of_a_marked_up_caption_is_found_and_reads_the_same(lines) -> None:
    caption = "\n".join(mark.format(" ".join(words).capitalize() + ".") for words, mark in lines)
    for sentence in sentences(caption):
        span = span_of(sentence, caption)
        assert span is not None, (sentence, caption)
        assert re.findall(r"\w+", re.sub("</?b>", "", caption[slice(*span)])) == re.findall(r"\w+", sentence)


@pytest.mark.parametrize(
    ("sentence", "caption", "found"),
    [
        ("A cat sits.", "A dog runs. A  cat\nsits. End.", "A  cat\nsits."),
        ("A red cat.", "# Title\n\nA **red** cat.", "A **red** cat."),
        ("a+b (c)?", "Is it a+b (c)? Yes.", "a+b (c)?"),
        ("No such.", "A cat.", None),
        ("", "A cat.", None),
        ("...", "A cat... sits", "..."),
    ],
)
def test_only_words_and_signs_count(sentence: str, caption: str, found: str | None) -> None:
    span = span_of(sentence, caption)
    assert (None if span is None else caption[slice(*span)]) == found


def test_every_sentence_of_real_model_captions_is_found(shared_data: Path) -> None:
    for file in sorted((shared_data / "mllm_coco" / "mllm_captions").glob("*.jsonl")):
        captions = [json.loads(line)["caption"] for line in file.open(encoding="utf-8")][:300]
        lost = [s for caption in captions for s in sentences(caption) if span_of(s, caption) is None]
        assert not lost, (file.name, lost[:3])
