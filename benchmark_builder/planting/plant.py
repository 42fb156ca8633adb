"""Plant one systematic error (t, v) into a dataset: sentences about t, mostly where v is present and t is not."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmark_builder.bases.base import Base
from benchmark_builder.planting.inject import Infeasible, Plan, largest_v, solve
from benchmark_builder.scenes.compose import is_uncounted, noun_phrase
from symbal_hf.core.files import packaged_lines
from symbal_hf.language.facts import sentences
from symbal_hf.language.phrases import Vocabulary, singular

ENDED = re.compile(r"[.!?…。！？][\"'”’)\]」』）]*$")
WORST_GAP = 0.04  # where counts are so small that no table comes this near to the target, nothing is planted


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
    return packaged_lines("benchmark_builder.planting", "templates/natural.txt")


def state(name: str, template: str) -> str:
    """The template's sentence about the object `name`."""
    one, many = noun_phrase(name), noun_phrase(name, 5)
    return template.format(
        a=one,
        A=one[0].upper() + one[1:],
        many=many,
        Many=many[0].upper() + many[1:],
        are="is" if is_uncounted(name) else "are",
    )


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


class Ground:
    """A base made ready for planting any number of errors, each found out once: who has v, who lacks t, who says what.

    Which rows get an error is fixed by (seed, t, v, strength); the sentence of a row and its place by (seed, t, row id)
    alone, so that settings with the same t share them and scores of (image, sentence) pairs can be shared too.
    """

    def __init__(self, base: Base, *, seed: int = 0) -> None:
        self.base, self.seed = base, seed
        self._has: dict[str, NDArray[np.bool_]] = {}
        self._free: dict[str, NDArray[np.bool_]] = {}
        self._split: dict[int, list[str]] = {}
        self._stated: dict[tuple[str, int], tuple[str, str]] = {}

    @classmethod
    def of(
        cls,
        captions: Sequence[str],
        objects: Sequence[frozenset[str]],
        *,
        seed: int = 0,
        ids: Sequence[str] | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> Ground:
        """Rows that are no base yet; `plant` says what is what."""
        ids = [str(i) for i in range(len(captions))] if ids is None else ids
        return cls(Base(tuple(ids), tuple(captions), tuple(objects), vocabulary=vocabulary), seed=seed)

    def has(self, name: str) -> NDArray[np.bool_]:
        """(N,) which images plainly show `name`."""
        if name not in self._has:
            self._has[name] = np.array([name in present for present in self.base.objects], bool)
        return self._has[name]

    def free(self, name: str) -> NDArray[np.bool_]:
        """(N,) where `name` can be planted: neither the image nor the caption has it."""
        if name not in self._free:
            base, rows = self.base, enumerate(self.base.captions)
            lacks = (name not in base.present(row) and not mentions(text, name, base.vocabulary) for row, text in rows)
            self._free[name] = np.fromiter(lacks, bool, len(base))
        return self._free[name]

    def plan(self, textual_error: str, visual_feature: str, strength: float) -> Plan | Infeasible:
        """How many captions with and without v to inject, or why that cannot be done."""
        has, free = self.has(visual_feature), self.free(textual_error)
        counts = len(has), int(has.sum()), int((free & has).sum())
        plan = solve(*counts, int((free & ~has).sum()), strength)
        if isinstance(plan, Plan) and abs(plan.achieved - strength) > WORST_GAP:
            return Infeasible(strength, largest_v(*counts))
        return plan

    def plant(self, textual_error: str, visual_feature: str, strength: float) -> Planted | Infeasible:
        """The base with `textual_error` planted at Cramér's V `strength` to `visual_feature`."""
        if textual_error == visual_feature:
            raise ValueError(
                f"textual_error and visual_feature are both {textual_error!r}; an object cannot trigger itself."
            )
        has, free = self.has(visual_feature), self.free(textual_error)
        if not has.any():
            raise ValueError(f"visual feature {visual_feature!r} is in no row's objects; name one that is.")
        plan = self.plan(textual_error, visual_feature, strength)
        if isinstance(plan, Infeasible):
            return plan
        draw = _pick(self.seed, "rows", textual_error, visual_feature, strength)
        chosen = draw.sample(np.flatnonzero(free & has).tolist(), plan.with_feature)
        chosen += draw.sample(np.flatnonzero(free & ~has).tolist(), plan.without_feature)
        return self._inject(chosen, textual_error, plan)

    def plant_at_random(self, textual_error: str, n: int) -> Planted:
        """`textual_error` in `n` rows that lack it, chosen with no regard to anything else: unsystematic errors."""
        free = np.flatnonzero(self.free(textual_error)).tolist()
        if n > len(free):
            raise ValueError(f"{n} rows asked for, but only {len(free)} lack {textual_error!r}.")
        chosen = _pick(self.seed, "random rows", textual_error).sample(free, n)
        return self._inject(chosen, textual_error, Plan(0, n, 0.0))

    def _inject(self, chosen: Sequence[int], name: str, plan: Plan) -> Planted:
        out, said = list(self.base.captions), []
        for row in sorted(chosen):
            sentence, out[row] = self._state(name, row)
            said.append(sentence)
        return Planted(tuple(out), tuple(sorted(chosen)), tuple(said), plan)

    def _state(self, name: str, row: int) -> tuple[str, str]:
        """The sentence that states `name` in this row, and the caption with it."""
        if (name, row) not in self._stated:
            draw = _pick(self.seed, "sentence", name, self.base.ids[row])
            if self.base.statements is None:
                sentence = state(name, draw.choice(natural_templates()))
            elif known := self.base.statements.get(name):
                sentence = draw.choice(known)
            else:
                raise ValueError(f"no sentence of the base {self.base.name!r} states {name!r}; choose another error.")
            if row not in self._split:
                self._split[row] = sentences(self.base.captions[row])
            parts = list(self._split[row])
            parts.insert(draw.randint(0, len(parts)), sentence)
            ended = [p if ENDED.search(p) else p + "." for p in parts]
            # A list, or a sentence that starts with a small letter, would run together with its neighbours.
            whole = sentences(" ".join(ended)) == ended
            self._stated[name, row] = sentence, " ".join(ended) if whole else "\n".join(parts)
        return self._stated[name, row]


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
        textual_error: t, the object that captions will state wrongly.
        visual_feature: v, the object that sets the error off.
        strength: target Cramér's V, in (0, 1].
        seed: fixes rows, sentences and their places.
        ids: row ids, which fix each row's sentence independently of the other rows; positions by default.
        vocabulary: synonyms by which captions are searched for t.

    Raises:
        ValueError: t equal to v, or names that occur in no row's objects where they are needed.
    """
    ground = Ground.of(captions, objects, seed=seed, ids=ids, vocabulary=vocabulary)
    return ground.plant(textual_error, visual_feature, strength)
