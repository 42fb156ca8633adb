"""Where a sentence stands in the caption that it was taken from, whatever marks and spaces lie between its words."""

from __future__ import annotations

import html
import re

TOKEN = re.compile(r"\w+|[^\w\s]")
# What splitting a caption into sentences drops: marks, tags, addresses of links.
BETWEEN = r"(?:[\s*_`~|>#\\\[]|\]\([^)\n]*\)|</?[a-zA-Z][^<>\n]{0,200}>)*"


def span_of(sentence: str, caption: str) -> tuple[int, int] | None:
    """(start, end) of the first place where `caption` says `sentence`, as characters; None where it does not.

    The sentence may have been taken out of markdown or HTML and its spaces joined: only its words and signs count.
    """
    at = caption.find(sentence)
    if at >= 0:
        return (at, at + len(sentence)) if sentence else None
    tokens = TOKEN.findall(sentence)
    if not tokens:
        return None
    found = re.search(BETWEEN.join(map(_written, tokens)), caption)
    return found.span() if found else None


def _written(token: str) -> str:
    """A pattern of the ways to write a word or sign: cells of a table are joined by commas, HTML escapes some signs."""
    ways = {token, html.escape(token), *(("|",) if token == "," else ())}
    return "(?:" + "|".join(map(re.escape, sorted(ways))) + ")"
