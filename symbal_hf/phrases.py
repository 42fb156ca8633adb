"""What a sentence is about: its noun phrases, singular and lower-case, found without a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import inflect

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", re.UNICODE)
CLAUSE = re.compile(r"[.,;:!?()\"\n]+")
# Nouns that stand for the picture or for a part, a place or an amount of something else: never a feature by themselves.
EMPTY_NOUNS = frozenset(
    "image picture photo photograph scene view shot close-up closeup background foreground front side top bottom left "
    "right middle center centre edge corner back end part area place way lot group couple pair bunch set number piece "
    "row total variety kind type sort day time thing something someone one other others several many few various "
    "each it both all none description detail atmosphere ambiance addition overall answer position distance presence "
    "sense moment setting activity composition visible nearby close next near frame edge eye".split()
)


@lru_cache(maxsize=65_536)
def singular(noun: str) -> str:
    """The singular of an English noun ("buses" -> "bus", "people" -> "person"); anything else stays as it is."""
    if noun.endswith("s"):
        import simplemma

        # The dictionary lemmatizer knows "bus" and "scissors", which rule-based ones cut to "bu" and "scissor".
        return noun if noun.endswith("ss") else simplemma.lemmatize(noun, "en").lower()
    return _inflector().singular_noun(noun) or noun


@lru_cache(maxsize=1)
def _inflector() -> inflect.engine:
    import inflect

    return inflect.engine()


@lru_cache(maxsize=262_144)
def noun_phrases(text: str) -> frozenset[str]:
    """Noun phrases of one sentence: every noun, and every run of up to three words that ends a noun run.

    "A man sits by the old stop sign" -> {"man", "sign", "stop sign", "old stop sign"}. Nouns are lower-case and
    singular. Words are tagged by TextBlob's lexicon tagger; a language it does not know gives few or no phrases.
    """
    from textblob.en import tag

    out: set[str] = set()
    run: list[tuple[str, bool]] = []

    def close() -> None:
        # A determiner promises a noun: where only "an orange" or "a bear" follows it, the tagger's adjective or verb
        # is that noun.
        if len(run) == 1 and promised:
            run[0] = (run[0][0], True)
        while run and not run[-1][1]:
            run.pop()
        for end in range(len(run)):
            if not run[end][1]:
                continue
            # A noun inside a compound ("dining" in "dining table") is no thing of its own; the run's last noun is.
            if end + 1 < len(run) and run[end + 1][1]:
                continue
            head = singular(run[end][0])
            if head in EMPTY_NOUNS or len(head) < 2:
                continue
            words = [w for w, _ in run[max(0, end - 2) : end]] + [head]
            for start in range(len(words)):
                out.add(" ".join(words[start:]))
        run.clear()

    before, promised = "", False
    for word, pos in tag(text.lower().replace("’", "'")):
        if not WORD.fullmatch(word):
            close()
        # After a determiner a verb form opens a name ("a stop sign"); a bare verb after a noun ends one ("teddy bear").
        elif pos.startswith("NN") or (pos == "VB" and before.startswith("NN")):
            run.append((word, True))
        elif (pos.startswith("JJ") and word not in EMPTY_NOUNS) or (pos[:2] == "VB" and before in ("DT", "PRP$", "CD", "JJ")):
            if run and run[-1][1]:
                close()
            if not run:
                promised = before == "DT" and pos in ("JJ", "VB", "VBP")
            run.append((word, False))
        else:
            close()
        before = pos
    close()
    return frozenset(out)


def row_phrases(texts: Iterable[str]) -> frozenset[str]:
    """Noun phrases of all sentences of one row together."""
    found: frozenset[str] = frozenset()
    return found.union(*(noun_phrases(t) for t in texts))


class Vocabulary:
    """Known classes and their synonyms, found in text as whole words, the longest name first.

    The longest match wins and eats its words, so that "toilet bowl" names a toilet and no bowl when the vocabulary
    lists it, and "hot dog" is no dog.
    """

    def __init__(self, classes: Mapping[str, Sequence[str]]) -> None:
        """`classes` maps each class to its synonyms; the class's own name always counts as one."""
        self.classes = tuple(classes)
        names: dict[tuple[str, ...], str] = {}
        for name, synonyms in classes.items():
            for synonym in (*synonyms, name):  # the class's own name last: it wins over another class's synonym
                key = self._key(synonym)
                if key:
                    names[key] = name
        self._names = names
        self._longest = max(map(len, names), default=0)
        self._found: dict[str, frozenset[str]] = {}

    @staticmethod
    def _key(text: str) -> tuple[str, ...]:
        return tuple(singular(w) for w in WORD.findall(text.lower()))

    def find(self, text: str) -> frozenset[str]:
        """Classes named in `text`.

        Two names side by side ("toilet bowl", "dog bed") make a compound whose thing is neither class for sure, so
        that they name nothing, unless the compound itself is in the vocabulary.
        """
        if text in self._found:
            return self._found[text]
        spans: list[tuple[int, int, str]] = []
        for run in CLAUSE.split(text.lower()):
            words, i, start = self._key(run), 0, len(spans)
            while i < len(words):
                for size in range(min(self._longest, len(words) - i), 0, -1):
                    name = self._names.get(words[i : i + size])
                    if name is not None:
                        spans.append((i, i + size, name))
                        i += size
                        break
                else:
                    i += 1
            here = spans[start:]
            touching = {
                k for k in range(len(here) - 1) if here[k][1] == here[k + 1][0] and here[k][2] != here[k + 1][2]
            }
            spans[start:] = [s for k, s in enumerate(here) if k not in touching and k - 1 not in touching]
        self._found[text] = frozenset(name for *_, name in spans)
        return self._found[text]
