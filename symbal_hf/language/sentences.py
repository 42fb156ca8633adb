"""A caption's sentences: markdown, lists, dialogues and tags taken apart, in any language."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# Chinese and Japanese sentences end in marks that general sentence splitters do not know.
CJK_END = re.compile(r"(?:(?<=[。！？])|(?<=[。！？][”’」』）]))\s*(?=[^\s。！？”’」』）])")
BULLET = re.compile(
    r"^\s*(?:(?:[-*+•‣⁃◦▪▫●○■□–—·✓✔➤➢→#>]+|\(?\d{1,3}[.)]|\(?[a-zA-Z][)]|[①-⑳])(?:\s+\[[ xX]\])?\s+"
    r"|\d{1,3}、\s*|[①-⑳●•])+"
)
GLUED = re.compile(r"[.!?](?<=[a-z]{2}.)(?=[A-Z][a-z]*\s)")  # "Two dogs.One cat."
SMALL_END = re.compile(r"(?<!\.\.)(?<=[.!?])\s+(?=\w)")  # where nothing is written large, nothing marks a beginning
# After these a sentence goes on; what simplemma knows is not repeated here, but for texts without capitals.
GOES_ON = re.compile(
    r"(?:^|[\s(])(?:approx|ca|sr|sra|srta|dra|ee|avda|ste|bzgl|ggf|inkl|prof|mr|mrs|ms|dr|st|vs|e\.g|i\.e|u\.s|u\.k)\.$",
    re.IGNORECASE,
)
NUMBERED = re.compile(r"(?:^|[\s(])(?:no|nr|fig|vol|pp?|art|núm|ca)\.$", re.IGNORECASE)  # a number follows: "No. 5"
ITEM = re.compile(r"(?:^|(?<=[\s:：;；,，]))\(?(\d{1,2})[.)、]\s*(?=[^\W\d])")
ENDS_LIST = re.compile(r"\s*(?:and|or)\s")
LABEL = re.compile(
    r"(?:^|(?<=[\s.!?。！？]))(?:(q\d{0,2}|question(?: \d+)?|user|human|问题?|質問)"
    r"|a\d{0,2}|answer(?: \d+)?|assistant|gpt|ai|答案?|回答)\s?[:：]\s*",
    re.IGNORECASE | re.MULTILINE,
)
MARKUP = re.compile(r"[*_`~|<&]|\]\(")
FENCE = re.compile(r"^\s*(?:```|~~~)[\w-]*\s*$", re.MULTILINE)
PICTURE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
LINK = re.compile(r"\[([^\]\n]+)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s\"[^\"\n]*\")?\)")
BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|tr|h[1-6])>", re.IGNORECASE)
TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>\n]{0,200})?/?>")
STRONG = re.compile(r"(\*{1,3}|~~|`{1,2})(?=[^\s*~`])([^\n]{0,300}?[^\s*~`])\1(?![*~`])")
SCORED = re.compile(r"(?<!\w)(_{1,2})(?=[^\s_])([^_\n]{0,300}?[^\s_])\1(?!\w)")
ROW = re.compile(r"^[^\S\n]*\|(.*)\|[^\S\n]*$", re.MULTILINE)
ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,6}|#x[0-9a-fA-F]{1,5});")
QUOTES = str.maketrans("“«„", '"""', "") | str.maketrans("”»", '""')
LONG = 300  # characters after which a sentence is taken apart at its semicolons
QUOTED, SIGN = 3, 160  # sentences, and characters, that stay together for a quotation in them, at most


class Sentence(NamedTuple):
    """A sentence and the characters of the caption that it takes; `text` is without the marks between them."""

    start: int
    end: int
    text: str


def sentences(text: str) -> list[str]:
    r"""The sentences of a caption, in order.

    Lines, list items, table rows and the tags of a list of tags stand alone; of a dialogue the answers remain, for a
    question states nothing; marks of markdown and HTML, bullets and numbers of lists are dropped.

    >>> sentences("- A **red** cat.\n- Two dogs. They run.")
    ['A red cat.', 'Two dogs.', 'They run.']
    """
    return [sentence.text for sentence in split(text)]


def split(text: str) -> list[Sentence]:
    """The sentences of a caption, in order, each with where it stands.

    >>> split("A **red** cat. A dog.")
    [Sentence(start=0, end=14, text='A red cat.'), Sentence(start=15, end=21, text='A dog.')]
    """
    caption = Traced(text)
    if MARKUP.search(text):
        caption = _unmarked(caption)
    if ":" in caption.text or "：" in caption.text:
        caption = _answers(caption)
    out: list[Sentence] = []
    offset = 0
    for line in caption.text.splitlines(keepends=True):
        ended = "".join(line.splitlines())
        for start, end in items(ended):
            bullet = BULLET.match(ended[start:end])
            start += bullet.end() if bullet else 0
            bare = ended[start:end]
            parts = [bare] if bare.isascii() else CJK_END.split(bare)
            for first, last, sentence in _placed(bare, (s for part in parts for s in _split(part))):
                if any(c.isalnum() for c in sentence):
                    out.append(Sentence(*caption.span(offset + start + first, offset + start + last), sentence))
        offset += len(line)
    return out


def _placed(text: str, parts: Iterable[str]) -> Iterator[Sentence]:
    """Where each of the parts of a text stands that has been split; splitting changes nothing but white space."""
    at = 0
    for part in parts:
        if not part:
            continue
        while text[at].isspace():
            at += 1
        start = at
        if text.startswith(part, at):
            at += len(part)
        else:
            for _ in "".join(part.split()):
                while text[at].isspace():
                    at += 1
                at += 1
        yield Sentence(start, at, part)


class Traced:
    """A text that parts have been taken out of, each of its characters with the ones that it stands for."""

    def __init__(self, text: str, origin: list[tuple[int, int]] | None = None) -> None:
        """`origin` of each character: start and end in the text as it was; None where nothing has been changed."""
        self.text, self.origin = text, origin

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Start and end in the text as it was."""
        return (start, end) if self.origin is None else (self.origin[start][0], self.origin[end - 1][1])

    def edited(self, edits: Iterable[tuple[int, int, str]]) -> Traced:
        """The text with `new` for what stands from `start` to `end`, for each (start, end, new), in their order."""
        texts, origin, at = list[str](), list[tuple[int, int]](), 0
        before = self.origin or [(n, n + 1) for n in range(len(self.text))]
        for start, end, new in edits:
            texts += [self.text[at:start], new]
            origin += before[at:start]
            origin += [(before[start][0], before[end - 1][1])] * len(new) if new else []
            at = end
        return Traced("".join([*texts, self.text[at:]]), origin + before[at:]) if texts else self

    def without(self, pattern: re.Pattern[str], *, but: int | None = None, new: str = "") -> Traced:
        """The text with `new` for each match; with `but`, that group of the match stays, and the rest of it goes."""
        found = pattern.finditer(self.text)
        if but is None:
            return self.edited((*match.span(), new) for match in found)
        return self.edited(edit for m in found for edit in ((m.start(), m.start(but), ""), (m.end(but), m.end(), "")))


def unmarked(text: str) -> str:
    """The text without the marks of markdown and HTML; the address of a link and the name of a picture go too."""
    return _unmarked(Traced(text)).text


def _unmarked(text: Traced) -> Traced:
    text = text.without(FENCE).without(PICTURE).without(LINK, but=1)
    if "<" in text.text:
        text = text.without(BREAK, new="\n").without(TAG)
    for _ in range(3):  # one within another
        before, text = text, text.without(STRONG, but=2).without(SCORED, but=2)
        if text is before:
            break
    if "|" in text.text:
        text = text.edited(edit for row in ROW.finditer(text.text) for edit in _cells(row))
    if "&" in text.text:
        text = text.edited((*entity.span(), html.unescape(entity[0])) for entity in ENTITY.finditer(text.text))
    return text


def _cells(row: re.Match[str]) -> Iterator[tuple[int, int, str]]:
    """The row of a table as its cells, with a comma between them."""
    at, between = row.start(), ""
    for cell in re.finditer(r"[^|\s](?:[^|]*[^|\s])?", row[1]):
        yield at, row.start(1) + cell.start(), between
        at, between = row.start(1) + cell.end(), ", "
    yield at, row.end(), ""


def answers(text: str) -> str:
    """The answers of a dialogue ("Q: ... A: ...") a line each; any other text as it is."""
    return _answers(Traced(text)).text


def _answers(text: Traced) -> Traced:
    labels = list(LABEL.finditer(text.text))
    asked = next((n for n, label in enumerate(labels) if label[1]), None)
    if asked is None or all(label[1] for label in labels[asked:]):
        return text
    ends = [*(label.start() for label in labels[1:]), len(text.text)]
    return text.edited(
        (label.start(), end, "") if label[1] else (label.start(), label.end(), "\n")
        for label, end in zip(labels, ends, strict=True)
    )


def items(line: str) -> list[tuple[int, int]]:
    """Start and end of the items of a list within a line: "1. a cat 2. a dog", or five tags and more; else the line."""
    if "1" in line and "2" in line:
        counted: list[re.Match[str]] = []
        for item in ITEM.finditer(line):
            if int(item[1]) == len(counted) + 1:
                counted.append(item)
        if len(counted) > 1:
            ends = [*(item.start() for item in counted[1:]), len(line)]
            return [(0, counted[0].start()), *((i.end(), e) for i, e in zip(counted, ends, strict=True))]
    if line.count(",") + line.count("，") + line.count("、") > 3 and not re.search(r"[.!?。！？:;]", line):
        tags = [tag.span() for tag in re.finditer(r"(?:(?<=[,，、])|^)[^,，、]*", line)]
        texts = [line[start:end] for start, end in tags]
        if all(len(tag.split()) <= 3 and len(tag) <= 40 and not ENDS_LIST.match(tag) for tag in texts):
            return tags
    return [(0, len(line))]


def _split(text: str) -> Iterator[str]:
    from simplemma import split_sentences

    parts = SMALL_END.split(text) if text.islower() else split_sentences(GLUED.sub(r"\g<0> ", text), lang="en")
    for sentence in _whole(parts) if len(parts) > 1 else parts:
        if len(sentence) > LONG:
            yield from (part.strip() for part in re.split(r"(?<=[;；])\s*", sentence))
        else:
            yield sentence.strip()


def _whole(parts: list[str]) -> Iterator[str]:
    """Sentences that a splitter has cut at an abbreviation or within a quotation, whole again."""
    at = 0
    while at < len(parts):
        sentence, at = parts[at], at + 1
        while at < len(parts) and (
            GOES_ON.search(sentence[-12:]) or (parts[at][:1].isdigit() and NUMBERED.search(sentence[-12:]))
        ):
            sentence, at = f"{sentence} {parts[at]}", at + 1
        if _open(sentence):  # a mark of inches, too, is a quote that never closes
            for end in range(at + 1, min(at + QUOTED, len(parts) + 1)):
                longer = " ".join([sentence, *parts[at:end]])
                if len(longer) > SIGN:
                    break
                if not _open(longer):
                    sentence, at = longer, end
                    break
        yield sentence


def _open(sentence: str) -> bool:
    return sentence.translate(QUOTES).count('"') % 2 == 1
