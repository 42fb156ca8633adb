"""Detection methods for a benchmark: what many captionings of the same images share is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from symbal_hf.auditing.composed import composed_paper_pairs, gather_composed
from symbal_hf.auditing.engine import association_pairs, two_stage_pairs
from symbal_hf.auditing.evidence import Evidence, choose_scorer, weigh
from symbal_hf.auditing.judges import Columns
from symbal_hf.auditing.verdict import check_gates, conclude
from symbal_hf.bench.baselines import FLOORS, Names, no_grouping, no_grouping_composed
from symbal_hf.bench.direct import CONTEXT_TOKENS, Direct, chat_for_direct
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData
from symbal_hf.models.chat.asking import Ledger
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.composition import Composition, Preset, both_stages, choose_composition
from symbal_hf.models.encoders.embedding import Progress, embed_images, embed_texts, quiet
from symbal_hf.models.parts import Parts, named
from symbal_hf.results.findings import AuditResult

if TYPE_CHECKING:
    from symbal_hf.auditing.references import ReferenceJudge

MethodName = Literal[
    "association", "paper", "no-grouping", "direct", "most-frequent", "chair", "embedding-difference"
]  # fmt: skip
METHODS: tuple[MethodName, ...] = get_args(MethodName)
THRESHOLDS = ("top_k", "tau", "alpha", "min_rate")
PLACES = ("concurrency", "members", "device", "dtype", "device_map")


@dataclass(frozen=True)
class Answer:
    """What a method says of one setting.

    Attributes:
        textual_error: ranked names for t, best first.
        visual_feature: ranked names for v.
        verdict: "systematic" or "none", or None for a method that gives none.
        calls: questions to models: asked, cached, failed, unparsed.
    """

    textual_error: tuple[str, ...]
    visual_feature: tuple[str, ...]
    verdict: str | None = None
    calls: Mapping[str, int] = field(default_factory=dict)


Method = Callable[[AuditData, str], Answer]


def answer_of(result: AuditResult) -> Answer:
    """The first pair of an audit, as the benchmark takes it."""
    said = result.prediction()
    return Answer(tuple(said["textual_error"]), tuple(said["visual_feature"]), result.verdict)


def _named(names: Names) -> Answer:
    return Answer(tuple(names[0]), tuple(names[1]))


@dataclass
class LiteEvidence:
    """Evidence by the lite preset for settings that differ in captions alone.

    Image embeddings, what was judged of each concept on each image, and references made ready are kept from one setting
    of a group to the next; the first of another group drops them.
    """

    scorer: str = "auto"
    store: Store = field(default_factory=Store)
    progress: Progress = quiet
    _group: str = ""
    _columns: Columns = field(default_factory=dict)
    _regions: Any = None
    _reference_judge: ReferenceJudge | None = None

    def __post_init__(self) -> None:
        from symbal_hf.models.encoders.lite import MiniLM

        self._embed = partial(embed_texts, encoder=MiniLM(), store=self.store)

    def __call__(self, data: AuditData, group: str) -> Evidence:
        """The evidence about `data`, a setting of `group`."""
        from symbal_hf.auditing.references import ReferenceJudge

        scorer = choose_scorer(self.scorer, data)  # type: ignore[arg-type]
        if group != self._group:
            self._group, self._columns, self._regions, self._reference_judge = group, {}, None, None
            if scorer == "reference" and data.references is not None:
                self._reference_judge = ReferenceJudge(data.references, self._embed)
            elif scorer == "embedding" and data.images is not None:
                self._regions = _regions(data, self.store, self.progress)
        return weigh(
            data, self._regions, self._embed, scorer=scorer, columns=self._columns,
            reference_judge=self._reference_judge,
        )  # fmt: skip


def _regions(data: AuditData, store: Store, progress: Progress) -> Any:
    from symbal_hf.models.encoders.lite import LiteVision

    assert data.images is not None
    regions, bad = embed_images(data.images, LiteVision(), store=store, progress=progress)
    if bad:
        row = min(bad)
        raise BadData(f"the image of {data.ids[row]} in {data.source}: {bad[row]}; build the benchmark anew.")
    return regions


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
        store: where vectors and answers are kept.
        progress: wraps long loops.
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
    store = store or Store()
    lite_scorer, given = both_stages(scorer, summarizer, options)
    if strange := sorted(options.keys() - given.keys() - {*THRESHOLDS, *PLACES, "seed", "prompts"}):
        raise TypeError(f"no option {strange[0]!r} of a method.")
    specs, objects = named(given)
    composition = choose_composition(preset, **specs)
    seed, thresholds = options.get("seed", 0), {key: options[key] for key in THRESHOLDS if key in options}
    check_gates(**thresholds)
    if composition is not None:
        _check(method, composition, lite_scorer)
        prompts = options.get("prompts")
        parts = Parts(
            composition, store, prompts=Prompts(None if prompts is None else Path(prompts)), objects=objects,
            **{key: options[key] for key in PLACES if key in options},
        )  # fmt: skip
        return _composed(method, parts, seed, thresholds, context_tokens)
    if method == "direct":
        raise BadData("method='direct' asks a chat model; name it with chat, such as hf:MODEL or openai:URL#MODEL.")
    idle = {name: options[name] for name in (*PLACES, "prompts") if name in options}
    refuse_idle("the lite preset asks no chat model", **idle)
    evidence_of = LiteEvidence(lite_scorer, store, progress)

    def lite(data: AuditData, group: str) -> Answer:
        evidence = evidence_of(data, group)
        if method in FLOORS:
            return _named(FLOORS[method](evidence))
        if method == "no-grouping":
            return _named(no_grouping(evidence))
        pairs = association_pairs(evidence) if method == "association" else two_stage_pairs(evidence, seed=seed)
        return answer_of(conclude(evidence, pairs, **thresholds))

    return lite


def _check(method: MethodName, composition: Composition, lite_scorer: str) -> None:
    """Raises where a method cannot work with these models."""
    if lite_scorer != "auto":
        raise BadData(f"scorer={lite_scorer!r} is of the lite preset; with other models give scorer_1 and scorer_2.")
    if method in ("most-frequent", "embedding-difference"):
        raise BadData(f"method={method!r} works with the lite preset alone; leave out other models.")
    if method in ("no-grouping", "chair") and composition.scorer_1.startswith("embedding"):
        raise BadData(
            f"method={method!r} calls single statements false, and scorer_1={composition.scorer_1!r} gives cosines, "
            "which only rank them; use text-only or vision-language."
        )


def _composed(
    method: MethodName, parts: Parts, seed: int, thresholds: Mapping[str, Any], context_tokens: int | None
) -> Method:
    """A method by the models of a composition."""
    direct = None
    if method == "direct":
        tokens = CONTEXT_TOKENS if context_tokens is None else context_tokens
        direct = Direct(parts, chat_for_direct(parts.composition), tokens, seed)

    def answer(data: AuditData) -> Answer:
        if direct is not None:
            return _named(direct(data))
        evidence, score, told = gather_composed(data, parts)
        if method == "no-grouping":
            return _named(no_grouping_composed(evidence, parts, score, seed=seed))
        if method in FLOORS:
            return _named(FLOORS[method](evidence))
        if method == "association":
            pairs = association_pairs(evidence)
        else:
            evidence, pairs = composed_paper_pairs(evidence, parts, score, told, seed=seed)
        return answer_of(conclude(evidence, pairs, **thresholds))

    def counted(data: AuditData, group: str) -> Answer:
        parts.ledger = Ledger()  # models stay, counts are of one setting
        said = answer(data)
        counts = parts.ledger.counts.values()
        calls = {key: sum(getattr(count, key) for count in counts) for key in ("asked", "cached", "failed", "unparsed")}
        return replace(said, calls=calls if counts else {})

    return counted
