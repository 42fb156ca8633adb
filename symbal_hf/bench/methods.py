"""Detection methods for a benchmark: what many captionings of the same images share is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import Kept, gather
from symbal_hf.auditing.two_stages import two_stages
from symbal_hf.auditing.verdict import conclude
from symbal_hf.bench.baselines import FLOORS, Names, no_grouping
from symbal_hf.bench.direct import CONTEXT_TOKENS, Direct, chat_for_direct
from symbal_hf.bench.results import CALLS
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Asking, Chance, Gates, Placing, Summing, given, refuse_idle, take, values_of
from symbal_hf.core.options import Parts as PartOptions
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.models.chat.asking import Ledger
from symbal_hf.models.composition import Composition, Preset, both_stages, choose_composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, named, parts_with

MethodName = Literal[
    "association", "paper", "no-grouping", "direct", "most-frequent", "chair", "embedding-difference"
]  # fmt: skip
METHODS: tuple[MethodName, ...] = get_args(MethodName)
MODEL_OPTIONS = (Gates, Summing, Asking, Placing, Chance)


@dataclass(frozen=True)
class Answer:
    """What a method says of one setting."""

    textual_error: tuple[str, ...]  # ranked names for t, best first
    visual_feature: tuple[str, ...]  # ranked names for v
    verdict: str | None = None  # "systematic" or "none", or None for a method that gives none
    calls: Mapping[str, int] = field(default_factory=dict)  # questions to models: asked, cached, failed, unparsed


Method = Callable[[AuditData, str], Answer]


def _named(names: Names) -> Answer:
    return Answer(tuple(names[0]), tuple(names[1]))


def make_method(
    method: MethodName,
    *,
    preset: str | Path | Preset = "lite",
    scorer: Any = "auto",
    summarizer: Any = None,
    store: Store | None = None,
    progress: Progress = quiet,
    context_tokens: int | None = None,
    **options: Any,
) -> Method:
    """A method as a function of a setting's rows and its group; none is shown what was planted.

    Args:
        method: "association" or "paper", as for `symbal_hf.audit`; the paper without its clusters, "no-grouping"
            (appendix D); one question about a sample of the rows, "direct" (section 6.3, `symbal_hf.bench.direct`);
            or one of the floors "most-frequent", "chair" and "embedding-difference" (`symbal_hf.bench.baselines`).
        preset: with `scorer`, `summarizer` and the parts among `options` as for `symbal_hf.audit`; their models are
            loaded once for all settings.
        context_tokens: of "direct": how much the chat model reads and writes at once; by default 16,384.
        options: parts, thresholds, seed, prompts, concurrency, members, device, dtype and device_map, as for
            `symbal_hf.audit`.

    Raises:
        BadData: a method that is not there, or cannot work with these models.
        TypeError: an option of another name.
    """
    if method not in METHODS:
        raise BadData(f"no method {method!r}; available: {', '.join(METHODS)}.")
    if context_tokens is not None and method != "direct":
        raise BadData(f"context_tokens={context_tokens} is an option of the method direct, not of {method}; leave it.")
    taken = take(options, PartOptions, *MODEL_OPTIONS, by=f"the method {method}")
    part_options, gates, summing, asking, placing, chance = taken
    specs, objects = named(both_stages(scorer, summarizer, values_of(part_options)))
    composition = choose_composition(preset, **specs)
    _check(method, composition)
    if {composition.summarizer_1, composition.summarizer_2} == {"phrases"}:
        refuse_idle("phrases are counted over all members of a cluster", **given(summing))
    if method not in ("paper", "no-grouping", "direct"):
        refuse_idle(f"the method {method} draws nothing", **given(chance))
    if not composition.asks_or_loads:
        refuse_idle("no part asks a chat model or loads one", **given(asking, placing))
    fields = {"store": store or Store(), "objects": objects, "progress": progress}
    parts = parts_with(composition, summing, asking, placing, **fields)
    if method == "direct":
        tokens = CONTEXT_TOKENS if context_tokens is None else context_tokens
        direct = Direct(parts, chat_for_direct(composition), tokens, chance.seed)
        return _counted(parts, lambda data, group: _named(direct(data)))
    groups: dict[str, Kept] = {}

    def answer(data: AuditData, group: str) -> Answer:
        if group not in groups:
            groups.clear()  # the first of another group drops what the last one kept
        evidence = gather(data, parts, on_bad_row="error", kept=groups.setdefault(group, Kept()))
        if method in FLOORS:
            return _named(FLOORS[method](evidence))
        if method == "no-grouping":
            return _named(no_grouping(evidence, parts, seed=chance.seed))
        if method == "association":
            pairs = association_pairs(evidence)
        else:
            evidence, pairs = two_stages(evidence, parts, seed=chance.seed)
        result = conclude(evidence, pairs, **values_of(gates))
        said = result.prediction()
        return replace(_named((said["textual_error"], said["visual_feature"])), verdict=result.verdict)

    return _counted(parts, answer)


def _check(method: MethodName, composition: Composition) -> None:
    """Raises where a method cannot work with these models."""
    plain = {composition.text_encoder, composition.image_encoder} == {"lite"} and composition.chat is None
    if method in ("most-frequent", "embedding-difference") and not plain:
        raise BadData(f"method={method!r} works with the lite preset alone; leave out other models.")
    if method in ("no-grouping", "chair") and composition.scorer_1.startswith("embedding") and not plain:
        raise BadData(
            f"method={method!r} calls single statements false, and scorer_1={composition.scorer_1!r} gives cosines, "
            "which only rank them; use text-only or vision-language."
        )


def _counted(parts: Parts, answer: Method) -> Method:
    """The method, with what it asked of models for each setting."""

    def counted(data: AuditData, group: str) -> Answer:
        parts.ledger = Ledger()  # models stay, counts are of one setting
        reply = answer(data, group)
        counts = parts.ledger.counts.values()
        calls = {key: sum(getattr(count, key) for count in counts) for key in CALLS}
        return replace(reply, calls=calls if counts else {})

    return counted
