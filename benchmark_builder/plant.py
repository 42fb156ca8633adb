"""Plant one systematic error (t, v) into a dataset: sentences about t, mostly where v is present and t is not."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from benchmark_builder.inject import Infeasible, Plan, solve
from symbal_hf.facts import sentences
from symbal_hf.phrases import Vocabulary, singular

# Names whose singular is a pair: "a pair of skis", never "a skis".
PAIRS = frozenset("skis scissors jeans pants shorts glasses sunglasses pliers tongs trousers headphones binoculars".split())


@dataclass(frozen=True)
class Planted:
    """A dataset with one planted error and its truth.

    Attributes:
        captions: N captions, the planted sentence at a random position of some.
        rows: positions of the captions that got one, ascending.
        sentences: the planted sentence of each of those rows.
        plan: counts and achieved Cramér's V.
    """

    captions: tuple[str, ...]
    rows: tuple[int, ...]
    sentences: tuple[str, ...]
    plan: Plan


@lru_cache(maxsize=1)
def natural_templates() -> tuple[str, ...]:
    """The packaged sentence templates for natural images."""
    text = resources.files("benchmark_builder").joinpath("templates/natural.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


@lru_cache(maxsize=1024)
def with_article(name: str) -> str:
    """ "oven" -> "an oven", "skis" -> "a pair of skis"."""
    import inflect

    last = name.split()[-1]
    if last in PAIRS:
        return f"a pair of {name}"
    return str(inflect.engine().a(name))


def state(name: str, template: str) -> str:
    """The template's sentence about the object `name`."""
    noun = with_article(name)
    return template.format(a=noun, A=noun[0].upper() + noun[1:])


def _pick(seed: int, *key: object) -> random.Random:
    """A generator fixed by its key alone, so that no other choice moves it."""
    return random.Random(hashlib.sha256(repr((seed, *key)).encode()).digest())


def mentions(text: str, name: str, vocabulary: Vocabulary | None) -> bool:
    """True when `text` names the object, by a synonym of the vocabulary or by its own words in singular."""
    if vocabulary is not None and name in vocabulary.classes:
        return name in vocabulary.find(text)
    words = [singular(w.strip(".,;:!?\"'()").lower()) for w in text.split()]
    parts = [singular(w) for w in name.lower().split()]
    return any(words[i : i + len(parts)] == parts for i in range(len(words) - len(parts) + 1))


def plant(
    captions: Sequence[str],
    objects: Sequence[frozenset[str]],
    *,
    textual_error: str,
    visual_feature: str | None,
    strength: float,
    seed: int = 0,
    ids: Sequence[str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Planted | Infeasible:
    """Plant `textual_error` where it is false, with Cramér's V `strength` to `visual_feature`.

    Args:
        captions: N captions.
        objects: what each image truly shows; t is planted only where neither objects nor caption have it.
        visual_feature: v; None plants at random rows, `strength` being the share of free rows that get one.
        ids: row ids, which fix each row's sentence independently of the other rows; positions by default.

    Raises:
        ValueError: t equal to v, or names that occur in no row's objects where they are needed.
    """
    if textual_error == visual_feature:
        raise ValueError(f"textual_error and visual_feature are both {textual_error!r}; an object cannot trigger itself.")
    ids = [str(i) for i in range(len(captions))] if ids is None else ids
    free = [
        textual_error not in present and not mentions(caption, textual_error, vocabulary)
        for caption, present in zip(captions, objects, strict=True)
    ]
    if visual_feature is None:
        candidates = [i for i, ok in enumerate(free) if ok]
        chosen = _pick(seed, "rows", textual_error).sample(candidates, round(strength * len(candidates)))
        plan: Plan | Infeasible = Plan(0, len(chosen), 0.0)
    else:
        has = [visual_feature in present for present in objects]
        if not any(has):
            raise ValueError(f"visual feature {visual_feature!r} is in no row's objects; name one that is.")
        with_v = [i for i, (ok, h) in enumerate(zip(free, has, strict=True)) if ok and h]
        without = [i for i, (ok, h) in enumerate(zip(free, has, strict=True)) if ok and not h]
        plan = solve(len(captions), sum(has), len(with_v), len(without), strength)
        if isinstance(plan, Infeasible):
            return plan
        draw = _pick(seed, "rows", textual_error, visual_feature, strength)
        chosen = draw.sample(with_v, plan.with_feature) + draw.sample(without, plan.without_feature)
    out, stated = list(captions), []
    for row in sorted(chosen):
        draw = _pick(seed, "sentence", textual_error, ids[row])
        sentence = state(textual_error, draw.choice(natural_templates()))
        parts = sentences(out[row])
        parts.insert(draw.randint(0, len(parts)), sentence)
        out[row] = " ".join(p if p[-1:] in ".!?" else p + "." for p in parts)
        stated.append(sentence)
    return Planted(tuple(out), tuple(sorted(chosen)), tuple(stated), plan)
