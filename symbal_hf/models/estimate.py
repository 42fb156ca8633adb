"""What an audit by a composition will ask and need, before any model is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

from symbal_hf.data.table import AuditData
from symbal_hf.language.facts import split_facts
from symbal_hf.models.chat.prompting import PromptName, Prompts
from symbal_hf.models.composition import Composition, Model, split_part

CHARACTERS_PER_TOKEN = 4.0  # of English, for the tokenizers of today's models
FEATURES = "Answer: " + ", ".join(["a plain thing"] * 8)  # what a list of features looks like
CAPTION = "x" * 400
CLUSTERS, MEMBERS = 5, 60  # what the paper method looks at by default


@dataclass(frozen=True)
class Questions:
    """Questions of one kind to one model."""

    part: str  # which part asks
    model: str  # which model is asked
    calls: int  # at most; equal questions are asked once, and answered ones never again
    tokens_in: int  # of all prompts and images
    tokens_out: int  # of all answers


@dataclass(frozen=True)
class Estimate:
    """Everything an audit will ask."""

    rows: int  # of the data
    facts: int  # different pairs of an image and a fact
    asked: tuple[Questions, ...]  # questions by part
    embedded: tuple[tuple[str, str, int], ...]  # (part, encoder, number of texts and images that it embeds)
    hours: float | None  # for all questions, or None where a model's size is unknown


@dataclass(frozen=True)
class _Sizes:
    """What the number and the length of questions depend on."""

    rows: int
    facts: int  # different pairs of an image and a fact
    texts: int  # different facts
    fact_length: float  # characters, on average
    reference_length: float  # characters of what is told of an image, on average
    referenced: bool
    pictured: bool


class _Call(NamedTuple):
    """`calls` questions by one prompt with `more` characters filled in, each about an image where `image`."""

    part: str
    model: str | None
    calls: int
    prompt: PromptName
    more: float
    answer: str
    image: bool = False


def estimate(
    data: AuditData,
    composition: Composition,
    *,
    method: Literal["association", "paper"] = "association",
    models: Sequence[Model] = (),
    prompts: Prompts | None = None,
    settings: int = 1,
    budget: int | None = None,
    image_tokens: int = 400,
    tflops: float = 400.0,
) -> Estimate:
    """Calls and tokens that the audit asks for at most, and hours by 2 x parameters x tokens over `tflops`.

    Args:
        data: the rows; pixels are not looked at.
        method: "paper" adds its clusters' second scores and summaries.
        models: sizes, as a preset lists them.
        prompts: whose lengths are counted.
        settings: how many datasets `data` stands for, each of which has summaries of its own.
        budget: at most so many questions about facts.
        image_tokens: an image costs this many; 256 for Gemma, about 400 for a 640 x 480 photo of Qwen2.5-VL.
        tflops: useful teraflops a second over all GPUs: about 400 for one H100 in bfloat16, less for small batches.
    """
    prompts = prompts or Prompts()
    sizes = _sizes(data)
    calls = [*_within(_scores(composition, sizes, method), budget), *_looks(composition, sizes)]
    if method == "paper":
        calls += _summaries(composition, sizes, CLUSTERS * settings)
    asked = []
    for part, model, n, prompt, more, answer, image in calls:
        if model is not None and n:
            into = (len(prompts.source(prompt)) + more) / CHARACTERS_PER_TOKEN + image * image_tokens
            out = max(len(answer) / CHARACTERS_PER_TOKEN, 1)
            asked.append(Questions(part, model, n, ceil(n * into), ceil(n * out)))
    embedded = tuple(_embedded(composition, sizes, method))
    return Estimate(sizes.rows, sizes.facts, tuple(asked), embedded, _hours(asked, models, tflops))


def _sizes(data: AuditData) -> _Sizes:
    facts = split_facts(data.captions)
    references = data.references if data.references is not None and any(data.references) else None
    length = 300.0 if references is None else sum(len(" ".join(texts)) for texts in references) / max(len(data), 1)
    return _Sizes(
        rows=len(data),
        facts=len({(int(row), text) for row, text in zip(facts.row, facts.text, strict=True)}),
        texts=len(set(facts.text)),
        fact_length=sum(map(len, facts.text)) / max(len(facts), 1),
        reference_length=length,
        referenced=references is not None,
        pictured=data.images is not None,
    )


def _scores(composition: Composition, sizes: _Sizes, method: str) -> Iterator[_Call]:
    """Whether each fact is true of its image, by both scorers unless they ask the same."""
    asking = {p: (split_part(getattr(composition, p))[0], composition.chat_of(p)) for p in ("scorer_1", "scorer_2")}
    if method != "paper" or asking["scorer_1"] == asking["scorer_2"]:
        del asking["scorer_2"]
    fact, both = sizes.fact_length, sizes.fact_length + sizes.reference_length
    for part, (kind, chat) in asking.items():
        if kind == "text-only":
            yield _Call(part, chat, sizes.facts, "fact_of_text", both, "1")
        elif kind == "vision-language" and sizes.referenced:
            yield _Call(part, chat, sizes.facts, "fact_of_image_and_text", both, "1", image=True)
        elif kind == "vision-language":
            yield _Call(part, chat, sizes.facts, "fact_of_image", fact, "1", image=True)


def _within(calls: Iterable[_Call], budget: int | None) -> Iterator[_Call]:
    """As many of these calls as a budget allows, those of the first part first."""
    for call in calls:
        calls_left = call.calls if budget is None else min(call.calls, budget)
        budget = None if budget is None else budget - calls_left
        yield call._replace(calls=calls_left)


def _looks(composition: Composition, sizes: _Sizes) -> Iterator[_Call]:
    """What is told of each image where the data tell nothing: a caption, else the features that it shows."""
    if sizes.referenced:
        return
    captioner = composition.captioner
    if captioner is None:
        chat = composition.chat_of("scorer_1") or composition.chat_of("summarizer_2")
        yield _Call("features", chat, sizes.rows, "features_of_image", 0, FEATURES, image=True)
    elif not captioner.startswith("file:"):
        yield _Call("captioner", captioner, sizes.rows, "caption_of_image", 0, CAPTION, image=True)


def _summaries(composition: Composition, sizes: _Sizes, groups: int) -> Iterator[_Call]:
    """Names of what the facts and the images of each group share: the features of each, and the most frequent."""
    members = min(MEMBERS, sizes.facts)
    for part, length in (("summarizer_1", sizes.fact_length), ("summarizer_2", sizes.reference_length)):
        chat = composition.chat_of(part)
        if split_part(getattr(composition, part))[0] == "vision-language":
            yield _Call(part, chat, groups * members, "features_of_image", 0, FEATURES, image=True)
        else:
            yield _Call(part, chat, groups * members, "features_of_text", length, FEATURES)
        yield _Call(part, chat, groups, "most_frequent", members * len(FEATURES), FEATURES)


def _embedded(composition: Composition, sizes: _Sizes, method: str) -> Iterator[tuple[str, str, int]]:
    if method == "paper":
        yield "text_encoder", composition.text_encoder, sizes.texts
        if sizes.pictured:
            yield "image_encoder", composition.image_encoder, sizes.rows
    for part in ("scorer_1", "scorer_2") if method == "paper" else ("scorer_1",):
        kind, encoder = split_part(getattr(composition, part))
        if kind == "embedding":
            yield part, encoder or composition.image_encoder, sizes.rows + sizes.texts


def estimate_captions(n: int, model: str, prompt: str, *, max_tokens: int, image_tokens: int = 400) -> Questions:
    """What captions of `n` images by `model` cost at most; `image_tokens` as for `estimate`."""
    into = ceil(len(prompt) / CHARACTERS_PER_TOKEN) + image_tokens
    return Questions("captioner", model, n, n * into, n * max_tokens)


def _hours(asked: Sequence[Questions], models: Sequence[Model], tflops: float) -> float | None:
    """Hours for all questions at `tflops` useful teraflops a second; None where a model's size is unknown."""
    sizes = {model.name: model.parameters_b for model in models}
    flop = 0.0
    for questions in asked:
        name = questions.model.partition(":")[2].partition("@")[0].rpartition("#")[2]
        billions = sizes.get(name)
        if billions is None:
            return None
        flop += 2 * billions * 1e9 * (questions.tokens_in + questions.tokens_out)
    return flop / (tflops * 1e12) / 3600
