"""Plain captions from a list of objects: a small grammar that never names anything outside the list."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

import inflect

# Fields: {a} {b} {c} are objects, {is_a} {is_b} agree with them, {at_a} {at_b} say where in the picture they are,
# {where} is a place phrase or nothing, {in_place} {a_place} {place} are the place with a preposition, with an
# article, and bare. A pattern is used only when all that it needs is known. No other noun may be a thing one can see.
PATTERNS: dict[int, tuple[str, ...]] = {
    0: (
        "a picture of {a_place}",
        "a quiet {place}",
        "the photo shows {a_place}",
        "a plain view of {a_place}",
        "{a_place} with nothing much going on",
        "a calm scene {in_place}",
        "a wide view {in_place}",
        "a picture with nothing special in it",
        "a plain scene with little to see",
        "a photo in which nothing stands out",
        "not much can be seen here",
        "a calm and empty view",
        "an image of a quiet spot",
    ),
    1: (
        "{a}{where}",
        "there {is_a} {a}{where}",
        "a picture of {a}{where}",
        "a photo showing {a}{where}",
        "here {is_a} {a}{where}",
        "{a} can be seen{where}",
        "we see {a}{where}",
        "a view of {a}{where}",
        "{a} {is_a} in plain sight{where}",
        "a scene with {a}{where}",
        "an image that shows {a}{where}",
        "the eye goes to {a}{where}",
        "a look at {a}{where}",
        "{in_place} there {is_a} {a}",
        "a {place} scene with {a}",
        "a view of {a_place} with {a} in it",
        "there {is_a} {a} {at_a}",
        "{a} {at_a} of the picture",
        "{at_a} of the photo there {is_a} {a}",
    ),
    2: (
        "{a} and {b}{where}",
        "{a} next to {b}{where}",
        "{a} near {b}{where}",
        "{a} beside {b}{where}",
        "{a} together with {b}{where}",
        "a picture of {a} and {b}{where}",
        "{a} {is_a} close to {b}{where}",
        "there {is_a} {a} with {b} nearby{where}",
        "there {is_a} {a} and also {b}{where}",
        "{a} and {b} are both visible{where}",
        "a photo of {a} that also shows {b}",
        "{a} and {b} share the view{where}",
        "we can see {a} as well as {b}{where}",
        "not far from {a} there {is_b} {b}{where}",
        "{a_place} with {a} and {b}",
        "this {place} has {a} and {b} in it",
        "{in_place} {is_a} {a}, along with {b}",
        "{a} {at_a} and {b} {at_b}",
        "{a} {at_a}, with {b} also in view{where}",
        "there {is_a} {a} {at_a} of a scene with {b}",
        "{b} {at_b}, seen together with {a}",
    ),
    3: (
        "{a}, {b} and {c}{where}",
        "{a} and {b} near {c}{where}",
        "{a} with {b} and {c}{where}",
        "{a} next to {b}, with {c} also in view",
        "a scene with {a}, {b} and {c}{where}",
        "{a} close to {b} and {c}{where}",
        "besides {a} there {is_b} {b} and {c}{where}",
        "a picture of {a} with {b} and {c} around",
        "we see {a}, {b}, and also {c}{where}",
        "{a_place} that holds {a}, {b} and {c}",
        "{in_place}, {a} can be seen with {b} and {c}",
        "{a} {at_a}, plus {b} and {c}{where}",
        "{a} {at_a} and {b} {at_b}, with {c} as well",
    ),
}

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
    counts = Counter(objects)
    names = sorted(counts)
    rng.shuffle(names)
    fresh, used, captions = list(names), set[str](), list[str]()
    for _ in range(n):
        for _attempt in range(12):
            chosen = _choose(names, fresh, rng)
            pattern = _pick_pattern(chosen, used, rng, place=place, positions=positions or {})
            caption = _fill(pattern, chosen, counts, rng, place, attributes or {}, sizes or {}, positions or {})
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


def _pick_pattern(
    chosen: Sequence[str], used: set[str], rng: random.Random, *, place: str | None, positions: Mapping[str, str]
) -> str:
    spots = [positions.get(name) for name in chosen]

    def known(pattern: str) -> bool:
        if not place and ("place}" in pattern):
            return False
        needed = [spot for key, spot in zip("abc", spots, strict=False) if f"{{at_{key}}}" in pattern]
        return all(needed) and len(set(needed)) == len(needed)  # two things "on the left" would read oddly

    usable = [pattern for pattern in PATTERNS[len(chosen)] if known(pattern)]
    return rng.choice([pattern for pattern in usable if pattern not in used] or usable)


def _fill(
    pattern: str,
    chosen: Sequence[str],
    counts: Mapping[str, int],
    rng: random.Random,
    place: str | None,
    attributes: Mapping[str, str],
    sizes: Mapping[str, str],
    positions: Mapping[str, str],
) -> str:
    fields: dict[str, str] = {"where": "", "in_place": "", "a_place": "", "place": place or ""}
    if place:
        fields |= {"in_place": in_place(place), "a_place": with_article(place)}
        fields["where"] = f" {in_place(place)}" if rng.random() < 0.5 else ""
    for key, name in zip("abc", chosen, strict=False):
        colour = attributes.get(name, "") if rng.random() < 0.45 else ""
        size = sizes.get(name, "") if rng.random() < 0.35 else ""
        fields[key] = noun_phrase(name, counts[name], colour=colour, size=size)
        fields[f"is_{key}"] = "are" if counts[name] > 1 and name not in _UNCOUNTED else "is"
        fields[f"at_{key}"] = _AT[positions[name]] if name in positions else ""
    sentence = pattern.format(**fields)
    return sentence[0].upper() + sentence[1:] + "."
