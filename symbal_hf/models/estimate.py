"""What an audit by a composition will ask and need, before any model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from symbal_hf.data.table import AuditData
from symbal_hf.language.facts import split_facts
from symbal_hf.models.chat.prompting import PromptName, Prompts
from symbal_hf.models.composition import Composition, Model, split_part

CHARACTERS_PER_TOKEN = 4.0  # of English, for the tokenizers of today's models
FEATURES = "Answer: " + ", ".join(["a plain thing"] * 8)  # what a list of features looks like
CLUSTERS, MEMBERS = 5, 60  # what the paper method looks at by default


@dataclass(frozen=True)
class Asked:
    """Questions of one kind to one model.

    Attributes:
        part: which part asks.
        model: which model is asked, or the encoder.
        calls: at most; equal questions are asked once, and answered ones never again.
        tokens_in: of all prompts and images.
        tokens_out: of all answers.
    """

    part: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int


@dataclass(frozen=True)
class Estimate:
    """Everything an audit will ask.

    Attributes:
        asked: questions by part.
        embedded: texts and images that are embedded, by encoder.
        hours: for all questions at `tflops` of useful work a second, or None where a model's size is unknown.
    """

    rows: int
    facts: int
    asked: tuple[Asked, ...]
    embedded: tuple[tuple[str, str, int], ...]
    hours: float | None


def estimate(
    data: AuditData,
    composition: Composition,
    *,
    method: Literal["association", "paper"] = "association",
    models: Sequence[Model] = (),
    prompts: Prompts | None = None,
    settings: int = 1,
    image_tokens: int = 400,
    tflops: float = 400.0,
) -> Estimate:
    """Count what the audit asks at most.

    Args:
        data: the rows; pixels are not looked at.
        composition: which models.
        method: "paper" adds its clusters' second scores and summaries.
        models: sizes, as a preset lists them.
        prompts: whose lengths are counted.
        settings: how many datasets `data` stands for, each of which has summaries of its own.
        image_tokens: an image costs this many; 256 for Gemma, about 400 for a 640 x 480 photo of Qwen2.5-VL.
        tflops: useful teraflops a second over all GPUs: about 400 for one H100 in bfloat16, less for small batches.

    Returns:
        Calls, tokens, and hours by 2 x parameters x tokens over `tflops`.
    """
    prompts = prompts or Prompts()
    facts = split_facts(data.captions)
    n, f = len(data), len({(int(row), text) for row, text in zip(facts.row, facts.text, strict=True)})
    fact = sum(map(len, facts.text)) / max(len(facts), 1)
    told = data.references if data.references is not None and any(data.references) else None
    reference = sum(len(" ".join(texts)) for texts in told) / max(n, 1) if told else 300.0
    asked: list[Asked] = []

    def add(
        part: str, model: str | None, calls: int, prompt: PromptName, more: float, out: str, images: int = 0
    ) -> None:
        if model is not None and calls:
            into = (len(prompts.source(prompt)) + more) / CHARACTERS_PER_TOKEN + images * image_tokens
            asked.append(Asked(part, model, calls, ceil(calls * into), ceil(calls * max(len(out) / 4, 1))))

    for part, calls in (("scorer_1", f), ("scorer_2", f if method == "paper" else 0)):
        kind, _ = split_part(getattr(composition, part))
        spec = composition.chat_of(part)
        if (
            part == "scorer_2"
            and spec == composition.chat_of("scorer_1")
            and kind == split_part(composition.scorer_1)[0]
        ):
            continue  # the same questions, answered already
        if kind == "text-only":
            add(part, spec, calls, "fact_of_text", fact + reference, "1")
        elif kind == "vision-language":
            add(part, spec, calls, "fact_of_image_and_text" if told else "fact_of_image",
                fact + (reference if told else 0), "1", 1)  # fmt: skip
    caption = composition.captioner
    if told is None and caption is not None and not caption.startswith("file:"):
        add("captioner", caption, n, "caption_of_image", 0, "x" * 400, 1)
    if told is None and caption is None:
        spec = composition.chat_of("scorer_1") or composition.chat_of("summarizer_2")
        add("features", spec, n, "features_of_image", 0, FEATURES, 1)
    if method == "paper":
        groups, members = CLUSTERS * settings, min(MEMBERS, f)
        spec = composition.chat_of("summarizer_1")
        add("summarizer_1", spec, groups * members, "features_of_text", fact, FEATURES)
        add("summarizer_1", spec, groups, "most_frequent", members * len(FEATURES), FEATURES)
        kind, spec = split_part(composition.summarizer_2)[0], composition.chat_of("summarizer_2")
        if kind == "vision-language":
            add("summarizer_2", spec, groups * members, "features_of_image", 0, FEATURES, 1)
        else:
            add("summarizer_2", spec, groups * members, "features_of_text", reference, FEATURES)
        add("summarizer_2", spec, groups, "most_frequent", members * len(FEATURES), FEATURES)
    embedded = []
    if method == "paper":
        embedded.append(("text_encoder", composition.text_encoder, len(set(facts.text))))
        if data.images is not None:
            embedded.append(("image_encoder", composition.image_encoder, n))
    for part in ("scorer_1", "scorer_2"):
        kind, spec = split_part(getattr(composition, part))
        if kind == "embedding" and (part == "scorer_1" or method == "paper"):
            embedded.append((part, spec or composition.image_encoder, n + len(set(facts.text))))
    return Estimate(n, f, tuple(asked), tuple(embedded), _hours(asked, models, tflops))


def estimate_captions(n: int, model: str, prompt: str, *, max_tokens: int, image_tokens: int = 400) -> Asked:
    """What captions of `n` images by `model` cost at most; `image_tokens` as for `estimate`."""
    into = ceil(len(prompt) / CHARACTERS_PER_TOKEN) + image_tokens
    return Asked("captioner", model, n, n * into, n * max_tokens)


def _hours(asked: Sequence[Asked], models: Sequence[Model], tflops: float) -> float | None:
    size = {model.name: model.parameters_b for model in models}
    total = 0.0
    for one in asked:
        name = one.model.partition(":")[2].partition("@")[0].rpartition("#")[2]
        billions = size.get(name)
        if billions is None:
            return None
        total += 2 * billions * 1e9 * (one.tokens_in + one.tokens_out)
    return total / (tflops * 1e12) / 3600
