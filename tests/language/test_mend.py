"""A caption without its wrong sentences says all others as before, and nothing broken is left where they stood."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbal_hf.language.cutting import without_sentences
from symbal_hf.language.sentences import sentences

WORDS = ["a", "cat", "sits", "red", "on", "mat", "it's", "3", "sink", "Zoë", "日本", "naïve", "e.g"]
SENTENCE = st.builds(
    lambda first, words, end: " ".join([first, *words]).capitalize() + end,
    st.sampled_from(["cat", "sink", "it's", "Zoë", "日本"]),  # a number alone would be that of a list
    st.lists(st.sampled_from(WORDS), max_size=5),
    st.sampled_from([".", "!", "."]),
)
MARKS = ["{}", "**{}**", "_{}_", "`{}`", "<b>{}</b>", "<span class='x'>{}</span>", "[{}](http://a.b/c)", "~~{}~~"]
PIECE = st.builds(lambda mark, sentence: mark.format(sentence), st.sampled_from(MARKS), SENTENCE)
LEADS = ["", "- ", "  * ", "1. ", "> ", "# ", "(a) ", "• ", "- [x] "]
LINE = st.builds(
    lambda lead, pieces: lead + " ".join(pieces), st.sampled_from(LEADS), st.lists(PIECE, min_size=1, max_size=3)
)
CAPTION = st.builds(
    lambda lines, between: between.join(lines), st.lists(LINE, min_size=1, max_size=5),
    st.sampled_from(["\n", "\n\n", "\r\n"]),
)  # fmt: skip

TWO = re.compile(r"[.!]\W*\s")


def words(texts) -> list[str]:
    return [word for text in texts for word in re.findall(r"\w+", text)]


@settings(max_examples=400)
@given(CAPTION, st.data())
def test_every_other_sentence_stays_as_it_was(caption, data) -> None:
    said = sentences(caption)
    wrong = set(data.draw(st.lists(st.sampled_from(said or ["none"]), max_size=3))) if said else set()
    after = without_sentences(caption, wrong)
    if after is None:  # told as not found, never wrong; only where the splitter takes two sentences for one
        assert any(TWO.search(sentence) for sentence in wrong), (caption, wrong)
    else:  # among other neighbours the splitter may part them elsewhere, but every word is there
        kept = [s for s in said if s not in wrong]
        assert words(sentences(after)) == words(kept), (caption, wrong, after)


@settings(max_examples=400)
@given(CAPTION, st.data())
def test_nothing_broken_is_left_behind(caption, data) -> None:
    said = sentences(caption)
    if not said:
        return
    wrong = {data.draw(st.sampled_from(said))}
    after = without_sentences(caption, wrong)
    if after is None:
        assert any(TWO.search(sentence) for sentence in wrong)
        return
    for sign in (r"\*{4}", r"``", r"<b>\s*</b>", r"\[\s*\]\(", r"\n\s*\n\s*\n", r"\S  +\S"):
        assert len(re.findall(sign, after)) <= len(re.findall(sign, caption)), (sign, caption, after)
    assert not re.search(r"(?m)^\s*(?:[-*•>#]|\d{1,3}\.|\(a\)|- \[x\])\s*$", after), (caption, after)
    for mark in ("**", "~~", "`", "<b>", "</b>", "<span"):  # what was closed is closed
        assert after.count(mark) <= caption.count(mark) and (mark[0] == "<" or after.count(mark) % 2 == 0)


@given(CAPTION)
def test_without_anything_wrong_not_a_character_changes(caption) -> None:
    assert without_sentences(caption, ()) == caption


@pytest.mark.parametrize(
    ("caption", "wrong", "after"),
    [
        ("A cat sits. A sink shines. A dog.", "A sink shines.", "A cat sits. A dog."),
        ("A sink shines. A dog.\n", "A sink shines.", "A dog.\n"),
        ("P one.\n\nA sink.\n\nP two.", "A sink.", "P one.\n\nP two."),
        ("- A cat.\n- **A sink shines.**\n- A dog.", "A sink shines.", "- A cat.\n- A dog."),
        ("- **Sink:** white and big.\n- **Dog:** a dog.", "Sink: white and big.", "- **Dog:** a dog."),
        ("1. A cat.\n2. A sink.\n3. A dog.", "A sink.", "1. A cat.\n3. A dog."),
        ("1. a cat 2. a sink 3. a dog", "a sink", "1. a cat 2. a dog"),
        ("1. a cat 2. a sink 3. a dog", "a dog", "1. a cat 2. a sink"),
        ("Seen: 1. a cat 2. a sink", "a sink", "Seen: a cat"),
        ("Seen: 1. a sink 2. a cat", "a sink", "Seen: a cat"),
        ("catalog, cat, dog, sink, tree, bed", "cat", "catalog, dog, sink, tree, bed"),
        ("sink, cat, dog, mat, tree, bed", "sink", "cat, dog, mat, tree, bed"),
        ("cat, dog, mat, tree, sink", "sink", "cat, dog, mat, tree"),
        ("| a | b |\n|---|---|\n| sink | white |\n| dog | red |", "sink, white", "| a | b |\n|---|---|\n| dog | red |"),
        ("<p>A cat.</p><p>A sink.</p><p>A dog.</p>", "A sink.", "<p>A cat.</p><p>A dog.</p>"),
        ("A cat.<br>A sink.<br>A dog.", "A sink.", "A cat.<br>A dog."),
        ("**Room. A sink** shines. A dog.", "A sink shines.", "**Room.** A dog."),
        ("A **sink is here. A dog** runs.", "A sink is here.", "**A dog** runs."),
        ("A [nice sink](http://x/y) shines. A dog.", "A nice sink shines.", "A dog."),
        ("猫がいる。水槽がある。犬がいる。", "水槽がある。", "猫がいる。犬がいる。"),
        ("Q: Is there a sink? A: A sink is there. Q: And? A: A dog.", "A sink is there.", "Q: And? A: A dog."),
        ("A sink. A cat. A sink. A dog.", "A sink.", "A cat. A dog."),
        ("  A sink. A cat.", "A sink.", "  A cat."),
        ("A cat \ud83d sits. A sink.", "A sink.", "A cat \ud83d sits."),
        ("A sink.", "A sink.", ""),
        ("- A sink.\n- A sink.", "A sink.", ""),
        ("A cat.", "A sink.", None),
        ("A cat sits.", "A cat", None),
    ],
)
def test_what_stood_around_it_is_tidied(caption: str, wrong: str, after: str | None) -> None:
    assert without_sentences(caption, {wrong}) == after


def test_sentences_of_real_captions_are_cut_out_cleanly(shared_data: Path) -> None:
    for file in sorted((shared_data / "mllm_coco" / "mllm_captions").glob("*.jsonl")):
        captions = [json.loads(line)["caption"] for line in file.open(encoding="utf-8")][:150]
        for caption in captions:
            said = sentences(caption)
            for wrong in said[:: max(1, len(said) // 3)]:
                after = without_sentences(caption, {wrong})
                assert after is not None, (file.name, caption, wrong)
                assert sentences(after) == [s for s in said if s != wrong], (file.name, caption, wrong, after)
