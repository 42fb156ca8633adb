"""Questions about drawn scenes with their answers, in the very words of the packaged prompts."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from scene_mllm_pool import COLOUR_NAMES

from benchmark_builder.bases.coco_names import COCO_NAMES, natural_vocabulary
from benchmark_builder.planting.plant import natural_templates, state
from benchmark_builder.scenes.compose import compose_captions, in_place, is_uncounted, noun_phrase, plural, with_article
from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES
from symbal_hf.models.chat.prompting import PromptName, Prompts

# Things that no scene shows, so that a question about one is nothing new. "Orange" is a colour too, and names that
# stand in one of the scenes' names or mean one of them would make the truth doubtful.
_OTHER_FORMS = {form for forms in natural_vocabulary(OBJECT_NAMES).classes for form in forms.split()}
STRANGERS = tuple(
    name
    for name in COCO_NAMES
    if name not in OBJECT_NAMES and not _OTHER_FORMS & set(name.split()) and name not in ("orange", "tv", "bear")
)
_SYNONYMS = """
airplane: plane, aircraft, jet | ball: soccer ball, beach ball | bed: mattress | bench: park bench
bicycle: bike, cycle | bird: pigeon, seagull, duck | boat: ship, sailboat | book: novel, textbook | bottle: wine bottle
bus: double decker, school bus | cake: birthday cake, cupcake | car: automobile, sedan, taxi | cat: kitten, kitty
chair: armchair, stool | clock: alarm clock, wall clock | couch: sofa, loveseat | cup: mug, teacup, coffee cup
dog: puppy, hound | kite: parasail | lamp: floor lamp, table lamp | laptop: notebook computer, laptop computer
oven: stove, cooker | person: man, woman, boy, girl, child | pizza: slice of pizza | refrigerator: fridge, freezer
sink: basin, washbasin | stop sign: stopsign | suitcase: luggage, briefcase | table: desk, dining table, coffee table
teddy bear: stuffed bear, teddy | television: tv, tv set, flat screen | toilet: commode, urinal
traffic light: traffic signal, stoplight | umbrella: parasol | vase: flower vase
"""
SYNONYMS = {
    name.strip(): tuple(other.strip() for other in others.split(","))
    for entry in re.split(r"[|\n]", _SYNONYMS)
    if entry.strip()
    for name, _, others in (entry.partition(":"),)
}
_MEANING = {form: name for name, forms in SYNONYMS.items() for form in (name, *forms)}
_MEANING |= {name: name for name in (*OBJECT_NAMES, *STRANGERS)}
_FORMS = {**{plural(form): name for form, name in _MEANING.items()}, **_MEANING}
_WORD = re.compile(r"[A-Za-z]+")
_LONGEST = max(len(form.split()) for form in _FORMS)
SYSTEMS = ("You are a helpful assistant.", "Answer the question about the image.", "You check captions.")
PROMPTS = Prompts()


@dataclass(frozen=True)
class Question:
    """One question with its answer.

    Attributes:
        prompt: the text, as it is asked.
        answer: the text wanted.
        image: row of the pool, or None where no picture goes with it.
        so_far: (end of the last character, truth) for each thing that the fact in the prompt names: whether the fact is
            true as far as it has been read. The model is taught to know it from there on, which it learns far sooner
            than to know the answer at the end.
        system: a system message before it.
        any_of: names of which one, by chance, is to come to mind at the end of the prompt: the whole set is learned
            sooner than a list in order.
    """

    task: str
    prompt: str
    answer: str
    image: int | None = None
    so_far: tuple[tuple[int, bool], ...] = ()
    system: str = ""
    any_of: str = ""


def _matches(text: str) -> list[tuple[int, str]]:
    """Forms of names in a text, the longest first, each with the place where it ends."""
    words, out, i = list(_WORD.finditer(text.lower())), [], 0
    while i < len(words):
        for size in range(min(_LONGEST, len(words) - i), 0, -1):
            form = " ".join(word[0] for word in words[i : i + size])
            # A comma between two words ("stop, sign") makes them two things.
            if form in _FORMS and words[i + size - 1].end() - words[i].start() == len(form):
                out.append((words[i + size - 1].end(), form))
                i += size - 1
                break
        i += 1
    return out


def found(text: str) -> list[tuple[int, str]]:
    """Things named in a text, each with the place where its name ends."""
    return [(end, _FORMS[form]) for end, form in _matches(text)]


def named(text: str) -> set[str]:
    """Things named in a text, by their own names."""
    return {name for _, name in found(text)}


def listed(names: Sequence[str]) -> str:
    """The answer that lists these features."""
    return " ".join(("Answer:", ", ".join(names))).strip()


def told(names: Sequence[str], place: str) -> str:
    """Two sentences about these things and this place, always the same for the same scene."""
    if not names:
        return f"A picture of {with_article(place)}. A calm and empty view."
    things = [noun_phrase(name) for name in names]
    half = (len(things) + 1) // 2
    first = f"A picture of {_and(things[:half])} {in_place(place)}."
    rest = _and(things[half:]) if things[half:] else with_article(place)
    return f"{first} We can also see {rest}."


def _and(things: Sequence[str]) -> str:
    return ", ".join(things[:-1]) + " and " + things[-1] if len(things) > 1 else things[0]


class Scenes(Protocol):
    """What questions are made of."""

    def __len__(self) -> int: ...

    def objects(self, row: int) -> list[str]:
        """Names of a scene's objects, sorted."""
        ...

    def place(self, row: int) -> str:
        """Where it is."""
        ...

    def captions(self, row: int, rng: random.Random, n: int) -> list[str]:
        """True captions of it."""
        ...


class Asker:
    """Makes questions about the scenes of a pool, without end and never twice the same way."""

    def __init__(self, pool: Scenes, seed: int) -> None:
        self.pool, self.rng, self.templates = pool, random.Random(seed), natural_templates()

    def alias(self, name: str, often: float) -> str:
        """The name, or sometimes another for the same thing."""
        return self.rng.choice(SYNONYMS[name]) if name in SYNONYMS and self.rng.random() < often else name

    def planted(self, name: str) -> str:
        """A sentence as planted errors have it."""
        return state(name, self.rng.choice(self.templates))

    def sentence(self, names: Sequence[str], synonyms: float = 0.0) -> str:
        """A planted or composed sentence that names each of one to three things."""
        rng, words = self.rng, [self.alias(name, synonyms) for name in names]
        if len(names) == 1 and rng.random() < 0.7:
            return self.planted(words[0])
        spots = rng.sample(("left", "middle", "right", "top", "bottom"), len(words))
        for _ in range(9):
            text = compose_captions(
                words,
                rng=rng,
                n=1,
                place=rng.choice((*BACKGROUND_NAMES, None, None)),
                attributes={w: rng.choice(COLOUR_NAMES) for w in words} if rng.random() < 0.7 else {},
                sizes={w: rng.choice(("small", "large")) for w in words} if rng.random() < 0.4 else {},
                positions=dict(zip(words, spots, strict=True)) if rng.random() < 0.4 else {},
            )[0]
            if named(text) == set(names):
                return text
        return " ".join(map(self.planted, words))

    def absent(self, has: set[str]) -> str:
        """A thing that is not there; often one that goes with what is there, as in another scene of the place."""
        while True:
            if self.rng.random() < 0.1:
                name = self.rng.choice(STRANGERS)
            elif self.rng.random() < 0.4:
                name = self.rng.choice(self.pool.objects(self.rng.randrange(len(self.pool))) or ["bus"])
            else:
                name = self.rng.choice(OBJECT_NAMES)
            if name not in has:
                return name

    def fact(self, has: set[str], true: bool, synonyms: float = 0.0) -> str:
        """A sentence that is true (or not) of a picture or text with these things."""
        count = self.rng.choices((1, 2, 3), (0.7, 0.2, 0.1))[0]
        if not true:
            wrong = [self.absent(has)]
            right = self.rng.sample(sorted(has), min(count - 1, len(has)))
            names = [*wrong, *right]
            self.rng.shuffle(names)
        else:
            names = self.rng.sample(sorted(has), min(count, len(has)))
        return self.sentence(list(dict.fromkeys(names)), synonyms)

    def _so_far(self, prompt: str, fact: str, has: set[str]) -> tuple[tuple[int, bool], ...]:
        start, truth, out = prompt.rindex(fact), True, []
        for end, name in found(fact):
            truth = truth and name in has
            out.append((start + end, truth))
        return tuple(out)

    def check(
        self, task: PromptName, fact: str, has: set[str], image: int | None, reference: str | None = None
    ) -> Question:
        """Whether a statement is true, where these things are there."""
        values = {"fact": fact} if reference is None else {"fact": fact, "reference": reference}
        prompt = PROMPTS.render(task, **values)
        return Question(task, prompt, str(int(named(fact) <= has)), image, self._so_far(prompt, fact, has))

    def of_image(self, row: int, facts: int = 6) -> list[Question]:
        """Statements to check, all about one picture."""
        has = set(self.pool.objects(row))
        return [self.check("fact_of_image", self.fact(has, bool(has) and i % 2 == 0), has, row) for i in range(facts)]

    def other_caption(self, row: int) -> Question:
        """A statement that is a caption of the scene or of another."""
        other = self.rng.choice((row, self.rng.randrange(len(self.pool))))
        return self.check("fact_of_image", self.pool.captions(other, self.rng, 1)[0], set(self.pool.objects(row)), row)

    def of_image_and_text(self, row: int, facts: int = 2) -> list[Question]:
        """Statements to check against a picture and a true caption."""
        has = set(self.pool.objects(row))
        reference = " ".join(self.pool.captions(row, self.rng, self.rng.randint(1, 3)))
        return [
            self.check("fact_of_image_and_text", self.fact(has, bool(has) and i % 2 == 0), has, row, reference)
            for i in range(facts)
        ]

    def listing(self, row: int, always: bool = False) -> list[Question]:
        """What the picture shows: as a list, and always or sometimes with a caption's help, and as a caption."""
        names, out = self.pool.objects(row), list[Question]()
        prompt = PROMPTS.render("features_of_image")
        out.append(Question("features_of_image", prompt, listed(names), row, any_of=self._one(names)))
        if always or self.rng.random() < 0.3:
            reference = " ".join(self.pool.captions(row, self.rng, self.rng.randint(1, 3)))
            prompt = PROMPTS.render("features_of_image_and_text", reference=reference)
            out.append(Question("features_of_image_and_text", prompt, listed(names), row, any_of=self._one(names)))
        if always or self.rng.random() < 0.5:
            prompt = PROMPTS.render("caption_of_image")
            out.append(Question("caption_of_image", prompt, told(names, self.pool.place(row)), row))
        return out

    def text(self, synonyms: float, most: int = 5) -> tuple[str, set[str]]:
        """One to five sentences of a caption, sometimes with a planted one, and what they name."""
        rng = self.rng
        row = rng.randrange(len(self.pool))
        if rng.random() < synonyms:
            words = [self.alias(name, 0.4) for name in self.pool.objects(row)]
            lines = compose_captions(
                words, rng=rng, n=rng.randint(1, most), place=rng.choice((self.pool.place(row), None))
            )
        else:
            lines = self.pool.captions(row, rng, rng.randint(1, most))
        if rng.random() < 0.4:
            lines[rng.randrange(len(lines)) :: 9] = [self.sentence([self.absent(set())], synonyms)]
        text = " ".join(lines)
        return text, named(text)

    def of_text(self, facts: int = 6, synonyms: bool | None = None, most: int = 5) -> list[Question]:
        """Statements to check against one text; with synonyms in both, without, or now and then."""
        reference, has = self.text(0.25 if synonyms is None else float(synonyms), most)
        often = 0.12 if self.rng.random() < 0.5 else 0.0
        often = often if synonyms is None else 0.3 * synonyms
        return [
            self.check("fact_of_text", self.fact(has, bool(has) and i % 2 == 0, often), has, None, reference)
            for i in range(facts)
        ]

    def listing_of_text(self, synonyms: bool | None = None, most: int = 5) -> Question:
        """What a text names."""
        text, has = self.text(0.2 if synonyms is None else float(synonyms), most)
        prompt, names = PROMPTS.render("features_of_text", text=text), sorted(has)
        return Question("features_of_text", prompt, listed(names), any_of=self._one(names))

    def _one(self, names: Sequence[str]) -> str:
        return self.rng.choice(names) if names else ""

    def phrase(self, name: str) -> str:
        """The thing in a short phrase."""
        rng, word = self.rng, self.alias(name, 0.3)
        colour, size = rng.choice(COLOUR_NAMES), rng.choice(("small", "large", "big", "old", "wooden", "tall"))
        kind = rng.random()
        if kind < 0.4 or is_uncounted(word):
            return word
        if kind < 0.55:
            return plural(word)
        return rng.choice(
            (
                with_article(word),
                f"the {word}",
                f"{colour} {word}",
                f"{size} {word}",
                noun_phrase(word, colour=colour),
                noun_phrase(word, rng.randint(2, 5)),
                f"{size} {colour} {word}",
            )
        )

    def same_thing(self, pairs: int = 6) -> list[Question]:
        """Pairs of phrases for one thing or two."""
        out, pool = [], OBJECT_NAMES if self.rng.random() < 0.75 else STRANGERS
        one = self.rng.choice(pool)
        answer = self.phrase(one)
        for i in range(pairs):
            other = one if i % 2 == 0 else self.rng.choice([x for x in (*OBJECT_NAMES, *STRANGERS) if x != one])
            truth = self.phrase(other)
            forms = [form for form in (_form(answer), _form(truth)) if form not in (one, other)]
            if other == one and len(set(forms)) == 2:  # "man" and "woman" are both a person, and yet not the same
                truth = other
            out.append(self.pair(one, answer, other, truth))
        return out

    @staticmethod
    def pair(one: str, answer: str, other: str, truth: str | None = None) -> Question:
        """Whether two phrases mean one thing; `one` and `other` are what they mean."""
        truth = truth or other
        prompt = PROMPTS.render("same_thing", answer=answer, truth=truth)
        seen = ((prompt.index("[B] ") + 4 + len(truth), other == one),)
        return Question("same_thing", prompt, str(int(other == one)), None, seen)

    def most_frequent(self) -> Question:
        """Lists of features of which some are frequent; there is never a tie for what is asked."""
        rng = self.rng
        k = rng.choices((1, 2, 3), (0.6, 0.25, 0.15))[0]
        while True:
            names = rng.sample(OBJECT_NAMES, rng.randint(k + 3, 12))
            weights = [rng.random() ** 3 + 0.05 for _ in names]
            lists = []
            for _ in range(rng.randint(3, 12)):
                chosen = dict.fromkeys(rng.choices(names, weights, k=rng.randint(1, 5)))
                lists.append(sorted(chosen) if rng.random() < 0.5 else list(chosen))
            top = Counter(name for features in lists for name in features).most_common(k + 1)
            if len(top) > k and all(top[i][1] > top[i + 1][1] for i in range(k)):
                break
        prompt = PROMPTS.render("most_frequent", lists=lists, k=k)
        return Question("most_frequent", prompt, listed([name for name, _ in top[:k]]))


def _form(phrase: str) -> str:
    """The name in a phrase as it stands there, in singular."""
    matches = _matches(phrase)
    word = matches[-1][1] if matches else phrase
    return next((form for form in _MEANING if word in (form, plural(form))), word)


def corpus(pool: Scenes, n: int = 4000) -> list[str]:
    """Texts for the tokenizer: sentences, lists and bare names."""
    asker, out = Asker(pool, 3), list[str]()
    for _ in range(n):
        out.append(asker.text(0.3)[0])
        out.append(asker.sentence([asker.absent(set())], 0.3))
        out.append(" " + asker.phrase(asker.rng.choice((*OBJECT_NAMES, *STRANGERS))))
    # Often enough for each name to become one token.
    for name in OBJECT_NAMES:
        out += [f" {name} {plural(name)}, {name}"] * 400
    for name in STRANGERS:
        out += [f" {name} {plural(name)}, {name}"] * 40
    for forms in SYNONYMS.values():
        out += [f" {form}, {form}" for form in forms] * 60
    out += [PROMPTS.source(name) for name in ("fact_of_text", "features_of_image", "most_frequent")]
    return out
