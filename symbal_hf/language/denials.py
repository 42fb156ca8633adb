"""What a sentence denies: "there is no sink" states no sink, and takes part in no count of what captions say."""

from __future__ import annotations

import re

# Words that deny what follows them, as NegEx has for clinical text (Chapman et al., 2001), and everyday ones.
DENIES = re.compile(
    r"\b(?:no|without|not|cannot|\w+n['’]t|neither|nor|never|none of|no one|nobody|nothing|lack(?:s|ed|ing)?(?: of)?"
    r"|(?:in the )?absence of|absent|(?:free|devoid|empty|clear) of|instead of|rather than|negative for|rules? out|"
    r"ruled out|den(?:y|ies))\b",
    re.IGNORECASE,
)
# They begin with such a word and deny nothing, or nothing that has a name.
DENIES_NOT = re.compile(
    r"\b(?:not? (?:only|just|merely|simply|to mention|necessarily|far|sure|clear|certain|too|very|quite|all|doubt"
    r"|matter|wonder|longer|less|more|fewer|sooner|change|changes|significant change|interval change)|whether or not"
    r"|if not|without (?:a )?(?:doubt|question|change|significant change|interval change)|nothing (?:but|else|more)"
    r"|no[- ](?:parking|smoking|entry|exit|turns?|u-turn|trespassing|left|right|littering|stopping|standing|outlet"
    r"|crossing|swimming|fishing|\d)|no\.)",
    re.IGNORECASE,
)
# What comes before these is denied: "a sink is not visible".
DENIED_BEFORE = re.compile(
    r"\b(?:(?:is|are|was|were|be|been|being)(?: not|n['’]t) (?:\w+ly )?(?:visible|seen|present|shown|depicted|included"
    r"|identified|pictured|in (?:the )?(?:view|frame|picture|image|photo)|demonstrated|appreciated|evident|noted|there)"
    r"|(?:is|are|was|were|has|have) (?:been )?(?:absent|missing|excluded|ruled out)"
    r"|(?:can|could)(?: ?not|n['’]t) be (?:seen|identified|found))\b",
    re.IGNORECASE,
)
DEFINITE = r"(?:the|this|that|these|those|his|her|its|their|our|my)"
PLACE = (
    r"(?:in|on|at|near|behind|beside|under|beneath|below|above|over|around|within|inside|outside|by|next to|along"
    r"|across|from|to|for|against|between|among|through|throughout|toward|towards|off|upon|with|of)"
)
FRESH = (
    r"(?:an?|the|this|these|those|his|her|its|their|there|here|it|he|she|they|we|you|one|two|three|four|five|six|several"
    r"|some|many|only|just|instead|rather|still|as|with|in|on|at|from|near|behind|which|who|where|making|\w+ing|so|yet"
    r"|all|each|every|both|another|other)"
)
# Where what is denied ends: a new clause, or a place that is there ("no people in the kitchen").
ENDS = re.compile(
    r"[.;:!?()\"”“]|\b(?:but|however|although|though|except|besides|apart|aside|other than|while|whereas|because|since"
    r"|unless|until|which|who|whose|where|when|that|so that|there|instead|suggest(?:s|ed|ing)|indicat(?:es|ed|ing)"
    r"|mak(?:es|ing))\b|\band\s+(?:is|are|has|have|holds?|looks?|sits?|stands?|wears?|appears?|seems?)\b"
    rf"|,\s+(?:and\s+|or\s+)?{FRESH}\b|\band\s+{FRESH}\b|\b(?!of\b){PLACE}\s+{DEFINITE}\b",
    re.IGNORECASE,
)
BEGINS = re.compile(
    rf"[,.;:!?()]|\b(?:but|while|although|though|with|where|who|which|and\s+(?={FRESH}\b))\b", re.IGNORECASE
)
WORDS = 14  # a scope has at most this many: what is denied stands near


def denied_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of the stretches of an English text that are denied, by rules of thumb; none in other languages."""
    if not DENIES.search(text) and not DENIED_BEFORE.search(text):
        return []
    before = []
    for match in DENIED_BEFORE.finditer(text):
        starts = [begin.end() for begin in BEGINS.finditer(text, 0, match.start())]
        before.append((starts[-1] if starts else 0, match.end()))
    harmless = [match.span() for match in DENIES_NOT.finditer(text)]
    spans, last = list(before), 0
    for match in DENIES.finditer(text):
        if match.start() < last or any(a <= match.start() < b for a, b in (*harmless, *before)):
            continue
        end = ENDS.search(text, match.end())
        last = end.start() if end else len(text)
        words = list(re.finditer(r"\S+", text[match.end() : last]))
        if len(words) > WORDS:
            last = match.end() + words[WORDS - 1].end()
        spans.append((match.start(), last))
    return sorted(spans)


def asserted(text: str) -> str:
    """The text without what it denies; a stop stands there, so that what is left does not run together."""
    out, at = [], 0
    for start, stop in denied_spans(text):
        if start >= at:
            out.append(text[at:start])
        at = max(at, stop)
    return " . ".join([*out, text[at:]]) if out or at else text
