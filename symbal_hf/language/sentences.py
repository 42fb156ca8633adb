"""A caption's sentences: markdown, lists, dialogues and tags taken apart, in any language."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

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


def sentences(text: str) -> list[str]:
    """The sentences of a caption, in order.

    Lines, list items, table rows and the tags of a list of tags stand alone; of a dialogue the answers remain, for a
    question states nothing; marks of markdown and HTML, bullets and numbers of lists are dropped.
    """
    if MARKUP.search(text):
        text = unmarked(text)
    if ":" in text or "：" in text:
        text = answers(text)
    out: list[str] = []
    for line in text.splitlines():
        for item in items(line):
            bare = BULLET.sub("", item)
            for part in [bare] if bare.isascii() else CJK_END.split(bare):
                out.extend(s for s in _split(part) if any(c.isalnum() for c in s))
    return out


def unmarked(text: str) -> str:
    """The text without the marks of markdown and HTML; the address of a link and the name of a picture go too."""
    text = LINK.sub(r"\1", PICTURE.sub("", FENCE.sub("", text)))
    if "<" in text:
        text = TAG.sub("", BREAK.sub("\n", text))
    for _ in range(3):  # one within another
        before, text = text, SCORED.sub(r"\2", STRONG.sub(r"\2", text))
        if text == before:
            break
    if "|" in text:
        text = ROW.sub(lambda row: ", ".join(cell for c in row[1].split("|") if (cell := c.strip())), text)
    return ENTITY.sub(lambda entity: html.unescape(entity[0]), text) if "&" in text else text


def answers(text: str) -> str:
    """The answers of a dialogue ("Q: ... A: ...") a line each; any other text as it is."""
    labels = list(LABEL.finditer(text))
    asked = next((n for n, label in enumerate(labels) if label[1]), None)
    if asked is None or all(label[1] for label in labels[asked:]):
        return text
    ends = [*(label.start() for label in labels[1:]), len(text)]
    said = [text[label.end() : end] for label, end in zip(labels, ends, strict=True) if not label[1]]
    return "\n".join([text[: labels[0].start()], *said])


def items(line: str) -> list[str]:
    """The items of a list within a line: "1. a cat 2. a dog", or five tags and more; else the line."""
    if "1" in line and "2" in line:
        counted: list[re.Match[str]] = []
        for item in ITEM.finditer(line):
            if int(item[1]) == len(counted) + 1:
                counted.append(item)
        if len(counted) > 1:
            ends = [*(item.start() for item in counted[1:]), len(line)]
            return [line[: counted[0].start()], *(line[i.end() : e] for i, e in zip(counted, ends, strict=True))]
    if line.count(",") + line.count("，") + line.count("、") > 3 and not re.search(r"[.!?。！？:;]", line):
        tags = re.split(r"[,，、]", line)
        if all(len(tag.split()) <= 3 and len(tag) <= 40 and not ENDS_LIST.match(tag) for tag in tags):
            return tags
    return [line]


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
