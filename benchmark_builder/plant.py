"""Plant one systematic error (t, v) into a dataset: sentences about t, mostly where v is present and t is not."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from benchmark_builder.compose import noun_phrase
from benchmark_builder.inject import Infeasible, Plan, solve
from symbal_hf.facts import sentences
from symbal_hf.phrases import Vocabulary, singular

ENDED = re.compile(r"[.!?…。！？][\"'”’)\]」』）]*$")


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


def state(name: str, template: str) -> str:
    """The template's sentence about the object `name`."""
    noun = noun_phrase(name)
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
    visual_feature: str,
    strength: float,
    seed: int = 0,
    ids: Sequence[str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Planted | Infeasible:
    """Plant `textual_error` where it is false, with Cramér's V `strength` to `visual_feature`.

    Args:
        captions: N captions.
        objects: what each image truly shows; t is planted only where neither objects nor caption have it.
        visual_feature: v, the object that sets the error off.
        strength: target Cramér's V, in (0, 1].
        ids: row ids, which fix each row's sentence independently of the other rows; positions by default.

    Raises:
        ValueError: t equal to v, or names that occur in no row's objects where they are needed.
    """
    if textual_error == visual_feature:
        raise ValueError(
            f"textual_error and visual_feature are both {textual_error!r}; an object cannot trigger itself."
        )
    ids = [str(i) for i in range(len(captions))] if ids is None else ids
    free = _free_rows(captions, objects, textual_error, vocabulary)
    has = [visual_feature in present for present in objects]
    if not any(has):
        raise ValueError(f"visual feature {visual_feature!r} is in no row's objects; name one that is.")
    with_v = [i for i in free if has[i]]
    without = [i for i in free if not has[i]]
    plan = solve(len(captions), sum(has), len(with_v), len(without), strength)
    if isinstance(plan, Infeasible):
        return plan
    draw = _pick(seed, "rows", textual_error, visual_feature, strength)
    chosen = draw.sample(with_v, plan.with_feature) + draw.sample(without, plan.without_feature)
    return _inject(captions, chosen, textual_error, plan, seed=seed, ids=ids)


def plant_at_random(
    captions: Sequence[str],
    objects: Sequence[frozenset[str]],
    *,
    textual_error: str,
    n: int,
    seed: int = 0,
    ids: Sequence[str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Planted:
    """Plant `textual_error` in `n` rows that lack it, chosen with no regard to anything else: unsystematic errors."""
    ids = [str(i) for i in range(len(captions))] if ids is None else ids
    free = _free_rows(captions, objects, textual_error, vocabulary)
    if n > len(free):
        raise ValueError(f"{n} rows asked for, but only {len(free)} lack {textual_error!r}.")
    chosen = _pick(seed, "random rows", textual_error).sample(free, n)
    return _inject(captions, chosen, textual_error, Plan(0, n, 0.0), seed=seed, ids=ids)


def _free_rows(
    captions: Sequence[str], objects: Sequence[frozenset[str]], name: str, vocabulary: Vocabulary | None
) -> list[int]:
    """Rows whose image and caption both lack `name`."""
    return [
        row
        for row, (caption, present) in enumerate(zip(captions, objects, strict=True))
        if name not in present and not mentions(caption, name, vocabulary)
    ]


def _inject(
    captions: Sequence[str], chosen: Sequence[int], name: str, plan: Plan, *, seed: int, ids: Sequence[str]
) -> Planted:
    out, stated = list(captions), []
    for row in sorted(chosen):
        draw = _pick(seed, "sentence", name, ids[row])
        sentence = state(name, draw.choice(natural_templates()))
        parts = sentences(out[row])
        parts.insert(draw.randint(0, len(parts)), sentence)
        ended = [p if ENDED.search(p) else p + "." for p in parts]
        # A list, or a sentence that starts with a small letter, would run together with its neighbours.
        out[row] = " ".join(ended) if sentences(" ".join(ended)) == ended else "\n".join(parts)
        stated.append(sentence)
    return Planted(tuple(out), tuple(sorted(chosen)), tuple(stated), plan)
