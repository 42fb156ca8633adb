"""Detection methods for a benchmark: what many captionings of the same images share is worked out once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from symbal_hf.align import Columns
from symbal_hf.composition import Preset, both_stages, choose_composition
from symbal_hf.conclude import conclude
from symbal_hf.data import AuditData
from symbal_hf.embed import Progress, embed_images, embed_texts, quiet
from symbal_hf.engine import association_pairs, audit, two_stage_pairs
from symbal_hf.evidence import Evidence, choose_scorer, weigh
from symbal_hf.findings import AuditResult
from symbal_hf.parts import named
from symbal_hf.store import Store

if TYPE_CHECKING:
    from symbal_hf.references import ReferenceJudge

MethodName = Literal["association", "paper"]


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
    models = result.provenance.get("models", {})
    calls = models.get("calls", ()) if isinstance(models, Mapping) else ()
    count = {key: sum(call[key] for call in calls) for key in ("asked", "cached", "failed", "unparsed")}
    return Answer(tuple(said["textual_error"]), tuple(said["visual_feature"]), result.verdict, count if calls else {})


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
        from symbal_hf.encode import MiniLM

        self._embed = partial(embed_texts, encoder=MiniLM(), store=self.store)

    def __call__(self, data: AuditData, group: str) -> Evidence:
        """The evidence about `data`, a setting of `group`."""
        from symbal_hf.references import ReferenceJudge

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
    from symbal_hf.encode import LiteVision
    from symbal_hf.tables import BadData

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
    **options: Any,
) -> Method:
    """A method as a function of a setting's rows and its group.

    Args:
        method: "association" or "paper".
        preset: with `scorer`, `summarizer` and the parts among `options` as for `symbal_hf.audit`.
        store: where vectors and answers are kept.
        progress: wraps long loops.
        options: of `symbal_hf.audit`: parts, thresholds, seed, prompts, concurrency, members, device ...
    """
    store = store or Store()
    lite_scorer, parts = both_stages(scorer, summarizer, options)
    specs, _ = named(parts)
    thresholds = {key: options[key] for key in ("top_k", "tau", "alpha", "min_rate") if key in options}
    if choose_composition(preset, **specs) is not None:
        options = {**options, "preset": preset, "scorer": scorer, "summarizer": summarizer}
        return lambda data, group: answer_of(audit(data, method=method, store=store, progress=quiet, **options))
    evidence_of = LiteEvidence(lite_scorer, store, progress)
    seed = options.get("seed", 0)

    def lite(data: AuditData, group: str) -> Answer:
        evidence = evidence_of(data, group)
        pairs = association_pairs(evidence) if method == "association" else two_stage_pairs(evidence, seed=seed)
        return answer_of(conclude(evidence, pairs, **thresholds))

    return lite
