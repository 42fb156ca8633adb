"""Plain captions from a list of objects: a small grammar that never names anything outside the list."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import inflect

from symbal_hf.core.files import packaged_lines

_LINES = packaged_lines("benchmark_builder.scenes", "captions.txt")
# By how many objects they name, from none to three.
PATTERNS = {n: tuple(line for line in _LINES if sum(f"{{{key}}}" in line for key in "abc") == n) for n in range(4)}
_AT = {
    "left": "on the left",
    "right": "on the right",
    "middle": "in the middle",
    "top": "at the top",
    "bottom": "at the bottom",
}
_PREPOSITIONS = {"street": "on", "road": "on", "beach": "on", "farm": "on", "playground": "on", "airport": "at"}
_IN_PAIRS = frozenset({"skis", "scissors", "glasses", "trousers", "pants", "jeans", "shorts", "pliers", "tongs"})
_UNCOUNTED = frozenset({"broccoli", "bread", "rice", "water", "grass", "luggage", "furniture"})
_DRESSED = frozenset({"person", "man", "woman", "boy", "girl", "child"})  # their colour is that of the clothes
_NUMBERS = {2: "two", 3: "three", 4: "four"}


@lru_cache(maxsize=1)
def _english() -> inflect.engine:
    return inflect.engine()


@lru_cache(maxsize=8192)
def with_article(words: str) -> str:
    """The words with "a" or "an" in front."""
    return str(_english().a(words))


@lru_cache(maxsize=1024)
def plural(name: str) -> str:
    """The plural of an object name."""
    return str(_english().plural_noun(name))


def is_uncounted(name: str) -> bool:
    """True for names that have no plural ("broccoli")."""
    return name in _UNCOUNTED


def noun_phrase(name: str, count: int = 1, *, colour: str = "", size: str = "") -> str:
    """The object with its article or number, e.g. "a red clock", "two dogs", "a pair of skis"; count >= 1."""
    after = f" in {colour}" if colour and name in _DRESSED else ""
    adjectives = [word for word in (size, "" if after else colour) if word]
    many = _NUMBERS.get(count, "several")
    if name in _IN_PAIRS:
        return " ".join(["a pair of" if count == 1 else f"{many} pairs of", *adjectives, name])
    if name in _UNCOUNTED:
        return " ".join(["some", *adjectives, name])
    if count > 1:
        return " ".join([many, *adjectives, plural(name)]) + after
    return with_article(" ".join([*adjectives, name])) + after


def in_place(place: str) -> str:
    """A place with its preposition, e.g. "in a kitchen", "on a beach"."""
    return f"{_PREPOSITIONS.get(place, 'in')} {with_article(place)}"


@dataclass(frozen=True)
class _Known:
    """What captions may tell: `compose_captions` says what is what."""

    counts: Mapping[str, int]
    place: str | None
    attributes: Mapping[str, str]
    sizes: Mapping[str, str]
    positions: Mapping[str, str]

    def enough_for(self, pattern: str, chosen: Sequence[str]) -> bool:
        spots = [
            self.positions.get(name) for key, name in zip("abc", chosen, strict=False) if f"{{at_{key}}}" in pattern
        ]
        # Two things "on the left" would read oddly.
        return all(spots) and len(set(spots)) == len(spots) and bool(self.place or "place}" not in pattern)

    def fill(self, pattern: str, chosen: Sequence[str], rng: random.Random) -> str:
        fields = {"where": "", "in_place": "", "a_place": "", "place": self.place or ""}
        if self.place:
            fields |= {"in_place": in_place(self.place), "a_place": with_article(self.place)}
            fields["where"] = f" {in_place(self.place)}" if rng.random() < 0.5 else ""
        for key, name in zip("abc", chosen, strict=False):
            colour = self.attributes.get(name, "") if rng.random() < 0.45 else ""
            size = self.sizes.get(name, "") if rng.random() < 0.35 else ""
            fields[key] = noun_phrase(name, self.counts[name], colour=colour, size=size)
            fields[f"is_{key}"] = "are" if self.counts[name] > 1 and name not in _UNCOUNTED else "is"
            fields[f"at_{key}"] = _AT[self.positions[name]] if name in self.positions else ""
        sentence = pattern.format(**fields)
        return sentence[0].upper() + sentence[1:] + "."


def compose_captions(
    objects: Sequence[str],
    *,
    rng: random.Random,
    n: int = 5,
    place: str | None = None,
    attributes: Mapping[str, str] | None = None,
    sizes: Mapping[str, str] | None = None,
    positions: Mapping[str, str] | None = None,
) -> list[str]:
    """Writes ``n`` one-sentence captions that name one to three of the objects each, and nothing else.

    Args:
        objects: class names; a name given more than once is written as a plural ("two dogs").
        rng: the only source of chance.
        place: a bare place name such as "kitchen"; without one no caption says where.
        attributes: a colour word for some of the names; not "orange" where that is also the name of an object.
        sizes: a size word ("small", "large") for some of the names.
        positions: "left", "right", "middle", "top" or "bottom" for some of the names. Sizes and positions are
            written only when given, since a caption should not claim what nobody has seen.

    Returns:
        The captions, all different as long as the grammar allows it. Up to five objects are nearly always all
        covered by five captions together; with no objects the captions speak of the place or the picture only.
    """
    known = _Known(Counter(objects), place, attributes or {}, sizes or {}, positions or {})
    names = sorted(known.counts)
    rng.shuffle(names)
    fresh, used, captions = list(names), set[str](), list[str]()
    for _ in range(n):
        for _attempt in range(12):
            chosen = _choose(names, fresh, rng)
            usable = [pattern for pattern in PATTERNS[len(chosen)] if known.enough_for(pattern, chosen)]
            pattern = rng.choice([pattern for pattern in usable if pattern not in used] or usable)
            caption = known.fill(pattern, chosen, rng)
            if caption not in captions:
                break
        used.add(pattern)
        captions.append(caption)
        fresh = [name for name in fresh if name not in chosen]
    return captions


def _choose(names: Sequence[str], fresh: Sequence[str], rng: random.Random) -> list[str]:
    """Up to three names; those that no caption has named yet mostly come first."""
    wanted = min(len(names), rng.choices((1, 2, 3), (0.3, 0.45, 0.25))[0])
    chosen: list[str] = []
    while len(chosen) < wanted:
        new = [name for name in fresh if name not in chosen]
        chosen.append(new[0] if new and rng.random() < 0.7 else rng.choice([x for x in names if x not in chosen]))
    rng.shuffle(chosen)
    return chosen
