"""What a judge of names is: it says whether an answer and the truth, short noun phrases, point at one visual feature.

What counts as the same. Both phrases are taken as answers to "which thing?".

* Equivalent names are the same: "tv" and "television", "cardiomegaly" and "enlarged heart".
* So is a name with a modifier that describes the thing without making another kind of it: "white toilet" and
  "toilet", "large dog" and "dog", "a group of people" and "people", "small left effusion" and "effusion".
* Another kind is different, be it narrower ("poodle" for "dog", "stop sign" for "sign"), broader ("furniture" for
  "chair"), a sibling ("cat" for "dog"), a part or a whole ("wheel" for "car"), or unrelated.
* What contradicts the truth is different: the other side ("left lung" for "right lung"), another value of the same
  attribute ("red car" for "blue car"), a negation ("no effusion" for "effusion").

A judge has a third state: what it could not say is "unparsed" or "failed" and never "different".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

State = Literal["same", "different", "unparsed", "failed"]
Verdicts = Callable[[Sequence[tuple[str, str]]], Sequence[bool | None]]

ARTICLE = re.compile(r"^(?:an?|the) (?=.)")


class NameJudge(Protocol):
    """One way of saying whether two names mean the same.

    Attributes:
        name: "exact", "lite", or the chat model's: "hf:MODEL", "openai:URL#MODEL".
        revision: of weights, or of rules and thresholds; "" where nobody knows.
        prompt_hash: of the question that is asked; "" where there is none.
    """

    @property
    def name(self) -> str:
        """What it is called in results."""
        ...

    @property
    def revision(self) -> str:
        """Of its weights or rules."""
        ...

    @property
    def prompt_hash(self) -> str:
        """Of its question."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """What it says of each (answer, truth), in order."""
        ...


def normalised(name: str) -> str:
    """The form in which the judge `exact` compares names; names that differ only as follows have the same one.

    1. Unicode form and case, as in the compatibility caseless match of the Unicode standard (D146), then NFKC.
    2. White space: any run of it is one blank, and none is left at either end.
    3. One leading article ("a", "an", "the") that something follows.

    Plurals, hyphens, punctuation and accents do make a difference.
    """
    text = unicodedata.normalize("NFD", name).casefold()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    return ARTICLE.sub("", " ".join(text.split()))
