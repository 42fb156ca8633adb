"""What a sentence is about: its noun phrases, singular and lower-case, found without a language model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from symbal_hf.core.files import packaged_lines

if TYPE_CHECKING:
    import inflect
    import numpy as np
    from numpy.typing import NDArray

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", re.UNICODE)
CLAUSE = re.compile(r"[.,;:!?()\"\n]+")
# Nouns that stand for the picture or for a part, a place or an amount of something else: never a feature by themselves.
EMPTY_NOUNS = frozenset(
    """
    image picture photo photograph scene view shot close-up closeup background foreground front side top bottom left
    right middle center centre edge corner back end part area place way lot group couple pair bunch set number piece
    row total variety kind type sort day time thing something someone one other others several many few various each
    it both all none description detail atmosphere ambiance addition overall answer position distance presence sense
    moment setting activity composition visible nearby close next near frame eye limit
    """.split()  # noqa: SIM905 - a hundred quoted words are no easier to read
)

ONE = frozenset(("a", "an", "one", "another", "each", "every", "this"))
AMOUNTS = frozenset(("dozen", "couple", "pair", "few", "hundred", "thousand", "million"))


# What is spoken of in the plural though it is one thing.
PLURAL_ONLY = frozenset(
    """
    binoculars clothes goggles jeans leggings pajamas pants pliers pyjamas scissors shorts sunglasses tights tongs
    trousers tweezers
    """.split()  # noqa: SIM905
)


@lru_cache(maxsize=65_536)
def singular(noun: str) -> str:
    """The singular of an English noun ("buses" -> "bus", "people" -> "person"); anything else stays as it is.

    A dictionary and rules each propose one: the dictionary knows "bus", rules know that "skies" are no "ski". The one
    wins whose plural the noun is, then the one that a lexicon has as a noun.
    """
    from textblob.en import lexicon

    if noun.endswith("ss") or noun in PLURAL_ONLY or lexicon.get(noun) == "NN":
        return noun
    import simplemma

    rules, by_rule = _inflector(), _inflector().singular_noun(noun) if noun else False
    if not noun.endswith("s"):
        return by_rule or noun
    proposed = dict.fromkeys((simplemma.lemmatize(noun, "en").lower(), by_rule or noun))

    def likely(one: str) -> tuple[bool, bool, bool]:
        fits = one != noun and rules.plural_noun(one) == noun
        return fits, str(lexicon.get(one)).startswith("NN"), simplemma.is_known(one, "en")

    return max(proposed, key=likely)


@lru_cache(maxsize=1)
def other_things() -> frozenset[tuple[str, ...]]:
    """Pairs of words whose second, alone, names another thing ("hot dog", "toilet paper")."""
    lines = packaged_lines("symbal_hf.language", "compounds.txt")
    return frozenset(tuple(line.split()) for line in lines if not line.startswith("#"))


def names_of(words: Sequence[str]) -> list[str]:
    """What a thing of these words is called, by shorter names too: an "old stop sign" is a sign, a "hot dog" no dog."""
    whole = tuple(words[-2:]) in other_things()
    return [" ".join(words[start:]) for start in range(len(words) - whole)]


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
            out.update(names_of(words))
        run.clear()

    before, promised, one = "", False, False
    for word, pos in tag(text.lower().replace("’", "'")):
        if not WORD.fullmatch(word):
            close()
            one = False
        # "A man rides": the tagger takes the verb for a plural, but after "a" and a noun no plural can follow.
        elif one and pos == "NNS" and run and run[-1][1] and run[-1][0] not in AMOUNTS and _is_plural(word):
            close()
            pos, one = "VBZ", False
        # After a determiner a verb form opens a name ("a stop sign"); a bare verb after a noun ends one ("teddy bear"),
        # unless the noun is a plural ("dogs run").
        elif pos.startswith("NN") or (pos == "VB" and before.startswith("NN") and before != "NNS"):
            run.append((word, True))
        elif (pos.startswith("JJ") and word not in EMPTY_NOUNS) or (
            pos[:2] == "VB" and before in ("DT", "PRP$", "CD", "JJ")
        ):
            if run and run[-1][1]:
                close()
                one = False
            if not run:
                promised = before == "DT" and pos in ("JJ", "VB", "VBP")
            run.append((word, False))
        else:
            close()
            one = word in ONE
        before = pos
    close()
    return frozenset(out)


def _is_plural(word: str) -> bool:
    return word.endswith("s") and singular(word) != word


class Vocabulary:
    """Known classes and their synonyms, found in text as whole words, the longest name first.

    The longest match wins and eats its words, so that "hot dog" is no dog. Of two names side by side ("computer
    mouse", "dog bed") only the last is a thing; the first says which kind.
    """

    def __init__(self, classes: Mapping[str, Sequence[str]]) -> None:
        """`classes` maps each class to its synonyms; the class's own name always counts as one."""
        self.classes = tuple(classes)
        names: dict[tuple[str, ...], str] = {}
        for name, synonyms in classes.items():
            for synonym in synonyms:
                names[_key(synonym)] = name
        names.update((_key(name), name) for name in classes)  # a class's own name wins over another's synonym
        names.pop((), None)
        self._names = names
        self._longest = max(map(len, names), default=0)
        self._spans: dict[str, tuple[tuple[int, int, str], ...]] = {}
        self._words: dict[str, tuple[str, ...]] = {}

    def with_synonyms(self, more: Mapping[tuple[str, ...], str]) -> Vocabulary:
        """The same vocabulary with extra names: tuples of singular words, each naming a class."""
        out = Vocabulary(dict.fromkeys(self.classes, ()))
        out._names = {**self._names, **more}
        out._longest = max(map(len, out._names), default=0)
        return out

    def _find(self, text: str) -> tuple[tuple[int, int, str], ...]:
        """(start, end, class) of each name in the words of `text`; a gap of one is left between clauses."""
        if text in self._spans:
            return self._spans[text]
        spans: list[tuple[int, int, str]] = []
        words: list[str] = []
        for clause in CLAUSE.split(text.lower()):
            words.extend((*_key(clause), ""))
        i = 0
        while i < len(words):
            for size in range(min(self._longest, len(words) - i), 0, -1):
                name = self._names.get(tuple(words[i : i + size]))
                if name is not None:
                    spans.append((i, i + size, name))
                    i += size
                    break
            else:
                i += 1
        self._words[text], self._spans[text] = tuple(words), tuple(spans)
        return self._spans[text]

    def class_of(self, name: str) -> str | None:
        """The class that is called `name`, all of it; None where none is."""
        return self._names.get(_key(name))

    def find(self, text: str) -> frozenset[str]:
        """Classes named in `text`."""
        spans = self._find(text)
        after = {start for start, *_ in spans}
        return frozenset(name for _, end, name in spans if end not in after)

    def named(self, text: str) -> list[str]:
        """The class of each name in `text`, compounds or not."""
        return [name for *_, name in self._find(text)]

    def compounds(self, text: str) -> set[tuple[tuple[str, ...], str, str]]:
        """Names side by side in `text`: (their words, the class of the first, the class of the last)."""
        spans = self._find(text)
        return {
            (self._words[text][start:stop], one, other)
            for (start, end, one), (begin, stop, other) in pairwise(spans)
            if end == begin and one != other
        }

    def had(self, text: str) -> set[tuple[tuple[str, ...], str, str]]:
        """What `text` says that a named thing has, by another word than the class's own, as a compound of both.

        "The toilet has a tank and a seat", where "seat" names the class chair: (("toilet", "seat"), "toilet", "chair").
        """
        spans, words = self._find(text), self._words[text]
        return {
            (words[start:end] + words[begin:stop], one, other)
            for (start, end, one), (begin, stop, other) in combinations(spans, 2)
            if one != other and words[end] in HAS and words[begin:stop] != _key(other)
        }


HAS = frozenset(map(singular, ("has", "have", "having", "with")))  # as words are kept


def _key(text: str) -> tuple[str, ...]:
    return tuple(singular(w) for w in WORD.findall(text.lower()))


def compounds_of_parts(
    texts: Iterable[str],
    vocabulary: Vocabulary,
    embed: Callable[[Sequence[str]], NDArray[np.float32]],
    *,
    least: int = 2,
    share: float = 0.01,
) -> dict[tuple[str, ...], tuple[str, str]]:
    """Compounds that mean their first part ("toilet bowl", "train car"): words -> (the whole, the part's class).

    A captioner that speaks of the bowl of a toilet sees no bowl too many. "Computer mouse" on the other hand does name
    a mouse. Which is which is a question of meaning: the compound lies nearer to the whole than to the part, by its
    class and by its word ("horse rider"), in the space of sentence embeddings.

    Args:
        texts: the facts.
        vocabulary: the classes.
        embed: unit vectors of texts.
        least: how often a compound must be used.
        share: of all uses of the part's class: two truck drivers make no person part of a truck.
    """
    texts = list(texts)
    count = Counter(compound for text in texts for compound in (*vocabulary.compounds(text), *vocabulary.had(text)))
    used = Counter(name for text in texts for name in vocabulary.named(text))
    known = sorted(one for one, n in count.items() if n >= max(least, share * used[one[2]]))
    if not known:
        return {}
    whole, first = embed([" ".join(words) for words, *_ in known]), embed([one for _, one, _ in known])
    last, word = embed([other for *_, other in known]), embed([words[-1] for words, *_ in known])
    to_first = (whole * first).sum(1)
    nearer = (to_first > (whole * last).sum(1)) & (to_first > (whole * word).sum(1))
    return {words: (one, other) for (words, one, other), near in zip(known, nearer, strict=True) if near}
