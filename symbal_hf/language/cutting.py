"""A caption without some of its sentences: what stood around them is tidied, and nothing else is touched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence

from symbal_hf.language.sentences import BULLET, LABEL, answers, items, sentences, split, unmarked

MARK = re.compile(
    r"(?<!\s)(?:\*{1,3}|~~|`{1,2})|(?:\*{1,3}|~~|`{1,2})(?!\s)|(?<!\w)_{1,3}|_{1,3}(?!\w)"
    r"|\[(?=[^\]\n]*\]\()|\]\([^)\n]*\)|</?(?!(?:br|hr|img|input)\b)[a-zA-Z][\w-]*(?:\s[^<>\n]{0,200})?>"
)
BREAK = r"<br\s*/?>"
COMMAS = ",，、"
NUMBER = re.compile(r"(\(?)(\d{1,2})([.)、]\s*)$")
NEXT_NUMBER = re.compile(r"((?:^|[\s:：;；,，])\(?)(\d{1,2})(?=[.)、]\s*[^\W\d])")


def without_sentences(text: str, wrong: Collection[str]) -> str | None:
    """The caption without the sentences `wrong`, each as often as it occurs; "" where nothing is left that states.

    Emptied bullets, lines and marks go with a sentence, one space is left between its neighbours, and the items of a
    list within a line are counted anew. All else stays as it is, to the character.

    Args:
        text: the caption, with its markdown or HTML.
        wrong: sentences as `symbal_hf.language.sentences.sentences` splits them off.

    Returns:
        None where one of `wrong` is not found, or what is left would no longer say the other sentences as they are.
    """
    if not wrong:
        return text
    before = split(text)
    if not set(wrong) <= {sentence.text for sentence in before}:
        return None
    kept = [sentence.text for sentence in before if sentence.text not in wrong]
    after = text
    # From the last to the first: what is cut out later stands before it, where nothing has moved.
    for sentence in reversed(before):
        if sentence.text in wrong:
            cut = _cut(after, sentence.start, sentence.end)
            if cut is None:
                return None
            after = cut
    if not kept:
        return ""
    after = _trimmed(text, _answered(after) if answers(unmarked(text)) != unmarked(text) else after)
    return after if _words(sentences(after)) == _words(kept) else None


def _words(texts: Sequence[str]) -> list[str]:
    return [word for text in texts for word in re.findall(r"\w+", text)]


def _cut(text: str, start: int, end: int) -> str | None:
    """The text without the characters from `start` to `end` and without what they leave empty; None across lines."""
    lines = text.splitlines(keepends=True)
    ends = list(itertools.accumulate(map(len, lines)))
    at = next(n for n, stop in enumerate(ends) if start < stop)
    if end > ends[at]:
        return None
    offset = ends[at] - len(lines[at])
    line = lines[at].rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    eol = lines[at][len(line) :]
    left, right = _around(line, start - offset, end - offset)
    left, right = _without_separator(line, left, right)
    bare = BULLET.sub("", f"{unmarked(left).rstrip()} {unmarked(right).strip()}".rstrip() + " ")
    if any(c.isalnum() for c in bare):
        lines[at] = _closed(left, right) + eol
        return "".join(lines)
    del lines[at]
    while at < len(lines) and not lines[at].strip() and (at == 0 or not lines[at - 1].strip()):
        del lines[at]
    return "".join(lines)


def _around(line: str, start: int, end: int) -> tuple[str, str]:
    """What is left and right of a sentence in its line, the marks about it undone."""
    marks = [m for m in MARK.finditer(line) if m.end() <= start or m.start() >= end or start <= m.start() < end]
    starts, ends = [start], [end]
    for mark in reversed(marks):  # those that stand directly before it
        if mark.end() == starts[-1]:
            starts.append(mark.start())
    for mark in marks:
        if mark.start() == ends[-1]:
            ends.append(mark.end())
    for s, e in sorted(((s, e) for s in starts for e in ends), key=lambda span: span[0] - span[1]):
        if not _open([m[0] for m in marks if s <= m.start() and m.end() <= e]):
            return line[:s], line[e:]
    # Emphasis that begins before the sentence or ends after it goes on without it.
    left, right = line[:start], line[end:]
    cut = _open([m[0] for m in marks if start <= m.start() < end])
    opened = set(map(_partner, _open([m[0] for m in marks if m.end() <= start])))
    after = set(map(_partner, _open([m[0] for m in marks if m.start() >= end])))
    closing = "".join(mark for mark in cut if _partner(mark) in opened)
    opening = "".join(mark for mark in cut if _partner(mark) not in opened and _partner(mark) in after)
    bare = left.rstrip()
    return bare + closing + left[len(bare) :], opening + right.lstrip() if opening else right


def _partner(mark: str) -> str:
    """What an opening and its closing mark have in common."""
    if mark.startswith("<"):
        return re.sub(r"[</>]|\s.*", "", mark).lower()
    return "[" if mark.startswith("]") else mark


def _open(marks: Sequence[str]) -> list[str]:
    """Those of `marks` that have no partner among them."""
    found: list[str] = []
    for mark in marks:
        closes = mark.startswith(("</", "]")) or mark[0] not in "<["
        if closes and found and _partner(found[-1]) == _partner(mark):
            found.pop()
        else:
            found.append(mark)
    return found


def _without_separator(line: str, left: str, right: str) -> tuple[str, str]:
    """The sides of what was cut out of a list within a line, without the comma, number or <br> that was its own."""
    bare_left, bare_right = left.rstrip(), right.lstrip()
    if bare_left[-1:] in COMMAS and bare_left and (not bare_right or bare_right[0] in COMMAS):
        return bare_left[:-1], right
    if not bare_left and bare_right and bare_right[0] in COMMAS:
        return left, bare_right[1:].lstrip()
    if (number := NUMBER.search(bare_left)) and len(items(line)) > 1:
        counted = [m for m in NEXT_NUMBER.finditer(right) if int(m[2]) > int(number[2])]
        only = number[2] == "1" and len(counted) == 1
        if only:  # one item is no list
            return left[: number.start()], right[: counted[0].start(2)] + right[counted[0].end() :].lstrip(".)、 ")
        for m in reversed(counted):
            right = f"{right[: m.start(2)]}{int(m[2]) - 1}{right[m.end(2) :]}"
        left = left[: number.start()]
        ones = list(NEXT_NUMBER.finditer(left))
        if number[2] == "2" and not counted and ones:
            left = left[: ones[-1].start(2)].rstrip("(") + left[ones[-1].end() :].lstrip(".)、 ")
        return left, right
    if found := re.match(rf"\s*{BREAK}\s*", right, re.IGNORECASE):
        if not bare_left or re.search(rf"{BREAK}$", bare_left, re.IGNORECASE):
            return left, right[found.end() :]
    elif not bare_right and (found := re.search(rf"\s*{BREAK}\s*$", left, re.IGNORECASE)):
        return left[: found.start()], right
    return left, right


def _closed(left: str, right: str) -> str:
    """Both sides of a gap with one space between them at most; an indent or a bullet keeps its own."""
    if not left.strip() or BULLET.fullmatch(left):
        return left + right.lstrip()
    if not right.strip():
        return left.rstrip() + (right if right.startswith("  ") else "")  # two spaces end a line of markdown
    space = " " if left[-1:].isspace() or right[:1].isspace() else ""
    return left.rstrip() + space + right.lstrip()


def _trimmed(before: str, after: str) -> str:
    """`after` with as much space at both ends as `before` has, and no empty lines there."""
    lead, tail = before[: len(before) - len(before.lstrip())], before[len(before.rstrip()) :]
    body = re.sub(r"\A(?:\s*\n)+", "", after).rstrip()
    return lead + (body.lstrip() if lead else body) + tail


def _answered(text: str) -> str:
    """A dialogue without the questions that have lost their answer."""
    labels = list(LABEL.finditer(text))
    ends = [*(label.start() for label in labels[1:]), len(text)]
    turns = [(bool(m[1]), text[m.start() : e], text[m.end() : e]) for m, e in zip(labels, ends, strict=True)]
    out = [text[: labels[0].start()] if labels else text]
    for n, (asks, whole, said) in enumerate(turns):
        follows = turns[n + 1] if n + 1 < len(turns) else None
        lost = not any(c.isalnum() for c in said)
        if asks and follows is not None and not follows[0]:
            lost = not any(c.isalnum() for c in follows[2])
        out += [] if lost else [whole]
    return "".join(out)
