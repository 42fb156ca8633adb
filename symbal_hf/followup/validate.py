"""A second look at an audit's findings: how much likelier the error is where v is in view (paper section 6.4)."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle, refuse_idle_of_chat
from symbal_hf.core.store import Store
from symbal_hf.followup.detectors import Detector, ObjectsDetector, Seen, images_of, load_detector
from symbal_hf.followup.human_labels import (
    agreement_with,
    read_labels,
    refuse_existing,
    rows_to_label,
    template_rows,
    write_template,
)
from symbal_hf.followup.second_look import Look, judge_references, look_again
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.findings import AuditResult, load_result
from symbal_hf.results.validation import Box, HumanAgreement, Validated, Validation
from symbal_hf.stats.contingency import fisher_greater, risk_ratio

if TYPE_CHECKING:
    from symbal_hf.models.chat.protocol import ChatModel

Calibrate = Literal["objects"]
LARGEST = 1e9  # what stands for an infinite ratio, as in findings


def validate(
    audited: AuditResult | str | Path,
    *,
    detector: str | Detector | Callable[..., Any] = "auto",
    scorer: str | ChatModel | Callable[..., Any] = "auto",
    threshold: float | None = None,
    calibrate: Calibrate | None = None,
    data: Any = None,
    source: str | Path | None = None,
    join: str | Path | None = None,
    image_root: str | Path | None = None,
    image_column: str | None = None,
    objects_column: str | None = None,
    allow_download: bool | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    human: str | Path | None = None,
    human_template: str | Path | None = None,
    human_rows: int | None = None,
    chat: str | ChatModel | None = None,
    prompts: str | Path | None = None,
    concurrency: int = 32,
    batch_size: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    seed: int = 0,
    store: Store | None = None,
    progress: Progress = quiet,
) -> Validation:
    """Count, over all rows, how much likelier an erroneous reference to t is where v is in view.

    A row refers to t when its caption names t, told as the audit told it. A row counts only where it is known whether v
    is in view and, if the caption names t, whether that is an error; all others are undecided.

    Args:
        audited: an audit's result, or the folder that it was written to.
        detector: says where v is in view: "objects" (the source's column), "owlv2", "owlv2-base",
            "hf:MODEL[@revision]" (any OWL or Grounding DINO of transformers), a function of (images, names) that gives
            scores in [0, 1], or a `symbal_hf.followup.detectors.Detector`. "auto": objects where the rows have them
            and they have a word for some v, else owlv2.
        scorer: says which references to t are erroneous: "objects" (t is not among the row's), "detector" (which does
            not see t), "audit" (what the audit itself said, which is no second look), "hf:MODEL" or
            "openai:URL#MODEL" (a chat model is asked of each sentence that names t whether it is true of its image), a
            chat model, or a function of (images, facts). "auto": objects where they have a word for some t, else the
            detector.
        threshold: the score from which on the detector sees a name, in (0, 1]; by default where transformers cuts for
            such a model (0.1 for OWL, 0.25 for Grounding DINO), 0.5 for a function.
        calibrate: "objects" chooses it on the rows whose objects are known: where its balanced accuracy is highest.
        data: the audited rows, as `symbal_hf.load_data` takes or gives them; by default they are read again.
        source: where they lie now; `join`, `image_root`, `image_column`, `objects_column`, `allow_download` take the
            place of the audit's options.
        vocabulary: classes with synonyms, for names in captions and in objects; by default the audit's.
        human: table of a person's labels (`symbal_hf.followup.human_labels.read_labels`).
        human_template: CSV to write for a person to fill in: `human_rows` (100) of each finding, drawn with `seed`.
        chat: the chat model of scorer "vision-language".
        prompts: folder whose NAME.jinja take the place of the packaged prompts.
        concurrency: questions in flight to one server.
        batch_size: images that a detector looks at together.
        device: and `dtype`, `device_map`: where models of this process run; see `symbal_hf.models.parts.Parts`.
        store: where detections and answers are kept, so that a second run looks at nothing again.
        progress: wraps long loops.

    Raises:
        BadData: other rows than were audited, an option of no sense, or nothing to look at.
        MissingModel: a model's weights are neither on this machine nor reachable.
        FileNotFoundError: no audit, source or labels there.
    """
    if threshold is not None and not 0 < threshold <= 1:
        raise BadData(f"threshold={threshold:g}; it must be in (0, 1].")
    if threshold is not None and calibrate is not None:
        raise BadData(f"threshold={threshold:g} and calibrate={calibrate!r} contradict each other; give one of them.")
    if human_rows is not None and human_rows < 4:
        raise BadData(f"human_rows={human_rows} cannot be balanced; give at least 4.")
    if human_template is not None:
        refuse_existing(human_template)
    else:
        refuse_idle("without human_template no rows are written", human_rows=human_rows)
    if human_template is None and human is None:
        refuse_idle("without human or human_template nothing is drawn", seed=seed)
    result = audited if isinstance(audited, AuditResult) else load_result(audited)
    if not result.findings and not result.asked:
        return Validation("none", "none", False, (), {"why": "the audit found nothing systematic"})
    held = store or Store()
    look = look_again(
        result, data=data, source=source, vocabulary=vocabulary, store=held, progress=progress, join=join,
        image_root=image_root, image_column=image_column, objects_column=objects_column,
        allow_download=allow_download,
    )  # fmt: skip
    ts, vs = [f.textual_error for f in look.findings], [f.visual_feature for f in look.findings]
    labels = None if human is None else read_labels(human, errors=ts, ids=look.data.ids)
    if detector == "auto":
        detector = "objects" if look.known_to_objects(vs) else "owlv2"
    if scorer == "auto":
        scorer = "objects" if look.known_to_objects(ts) else "detector"
    _refuse_idle(
        detector, scorer, chat, threshold=threshold, batch_size=batch_size,
        asking={"prompts": prompts, "concurrency": concurrency},
        placing={"device": device, "dtype": dtype, "device_map": device_map},
    )  # fmt: skip
    if isinstance(detector, str) and detector != "objects":
        images_of(look.data, detector)  # before weights are fetched in vain
    chosen = load_detector(
        detector, vocabulary=look.vocabulary, device=device, dtype=dtype, device_map=device_map,
        batch_size=batch_size, store=held,
    )  # fmt: skip
    seen, seen_t = _detected(chosen, look, with_t=scorer == "detector", progress=progress)
    cut, fitted = chosen.threshold if threshold is None else threshold, None
    if calibrate is not None:
        cut, fitted = _calibrated(look, chosen, seen)
    feature = _at_least(seen.scores, cut)
    said = judge_references(
        look, scorer, seen=None if seen_t is None else _at_least(seen_t, cut), store=held, progress=progress,
        chat=chat, prompts=prompts, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map,
    )  # fmt: skip
    wrong, boxes = said.erroneous, _boxes(look, seen, cut)
    made = []
    for i, (t, v) in enumerate(zip(ts, vs, strict=True)):
        human_says = None if labels is None else agreement_with(labels, t, look.data.ids, wrong[:, i], seed=seed)
        made.append(compare_rates(t, v, feature[:, i], wrong[:, i], human=human_says, boxes=boxes[i]))
    if human_template is not None:
        lines: list[dict[str, str]] = []
        for i, (t, v) in enumerate(zip(ts, vs, strict=True)):
            drawn = rows_to_label(look.said[:, i], feature[:, i], rows=human_rows or 100, seed=seed)
            lines += template_rows(look.data, t, v, drawn, look.sentences(i))
        write_template(human_template, lines)
    provenance = {
        "symbal_hf": version("symbal-hf"), "python": platform.python_version(), "source": look.data.source,
        "rows": len(look.data), "rows_sha256": result.provenance.get("rows_sha256"), "threshold": cut,
        "calibrated": fitted, "unreadable_images": len(seen.bad), "seed": seed,
        "unknown_to_objects": _unknown(look, chosen, said.scorer),
        "undecided": [_undecided(feature[:, i], wrong[:, i]) for i in range(len(ts))],
        "human": None if labels is None else {
            "file": str(human), "labels": len(labels.of), "blank": labels.blank, "strange": list(labels.strange[:20]),
        }, **said.told,
    }  # fmt: skip
    by = chosen.name if said.scorer == "detector" else said.scorer
    return Validation(
        chosen.name, said.scorer, independent(result.provenance, chosen.name, by), tuple(made), provenance
    )


def _refuse_idle(
    detector: Any, scorer: Any, chat: Any, *, threshold: float | None, batch_size: int | None,
    asking: Mapping[str, Any], placing: Mapping[str, Any],
) -> None:  # fmt: skip
    """Refuse options that neither this detector nor this scorer looks at."""
    kind, _, model = scorer.partition(":") if isinstance(scorer, str) else ("object", "", "")
    named = scorer if kind in ("hf", "openai") or not isinstance(scorer, str) else model or None
    asked = (named or chat) if kind not in ("objects", "detector", "audit") else None
    if chat is not None and asked is not chat:
        refuse_idle("the scorer asks no chat model, or names one", chat=chat)
    if detector == "objects":
        refuse_idle("objects are there or not, without a score", threshold=threshold)
    if isinstance(detector, str) and detector != "objects":
        refuse_idle_of_chat(asked, **asking)
    else:
        refuse_idle("no detector of this process looks at images", batch_size=batch_size)
        refuse_idle_of_chat(asked, **asking, **placing)


def compare_rates(
    textual_error: str,
    visual_feature: str,
    feature: NDArray[np.floating],
    erroneous: NDArray[np.floating],
    *,
    human: HumanAgreement | None = None,
    boxes: Mapping[str, tuple[Box, ...]] | None = None,
) -> Validated:
    """How much likelier the error is with the feature, over all rows of which both are known.

    Where there is no error, or no row with or without v, the risk ratio is 1 with an interval of everything, p 1.

    Args:
        textual_error: t.
        visual_feature: v.
        feature: (N,) 1 where v is in view, 0 where not, NaN where that is not known.
        erroneous: (N,) 1 where the caption refers to t erroneously, 0 where not, NaN where that is not known.
        human: and `boxes`: as in `Validated`.
    """
    decided = ~(np.isnan(feature) | np.isnan(erroneous))
    has, wrong = feature[decided] > 0, erroneous[decided] > 0
    a, n1, b, n0 = (int(x.sum()) for x in (has & wrong, has, ~has & wrong, ~has))
    ratio = risk_ratio(a, n1, b, n0) if a + b and n1 and n0 else (1.0, 0.0, float("inf"))
    return Validated(
        textual_error, visual_feature, a, n1, b, n0, undecided=int((~decided).sum()), risk_ratio=ratio[0],
        risk_ratio_low=ratio[1], risk_ratio_high=min(ratio[2], LARGEST),
        p_value=float(fisher_greater(a, n1, a + b, n1 + n0)), human=human, boxes=boxes or {},
    )  # fmt: skip


def independent(provenance: Mapping[str, Any], detector: str, scorer: str) -> bool:
    """Whether neither detector nor scorer is what the audit judged by: the same scorer, or one of its models."""
    judged = {str(provenance.get("scorer")), *(_model(text) for text in _texts(provenance.get("models")))}
    return scorer != "audit" and not {_model(detector), _model(scorer)} & judged


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)


def _model(spec: str) -> str:
    """A model without the way to it: the same one at another server, or in another part, is the same."""
    return re.sub(r"@[^@/#:]*$", "", re.sub(r"^.*#|^(?:[\w-]+:)+", "", spec))


def _detected(
    detector: Detector, look: Look, *, with_t: bool, progress: Progress
) -> tuple[Seen, NDArray[np.float32] | None]:
    """(N, K) scores of the v and, where asked for, of the t of K findings; of t only where a caption names it."""
    vs = [f.visual_feature for f in look.findings]
    ts = [f.textual_error for f in look.findings] if with_t else []
    names = list(dict.fromkeys([*vs, *ts]))
    shown = set(look.of_examples().values())
    where = np.zeros((len(look.data), len(names)), bool)
    for name, said in zip(ts, look.said.T, strict=False):
        where[said, names.index(name)] = True
    where[sorted(shown)] = True  # for their boxes, whatever the captions say
    where[:, [names.index(v) for v in vs]] = True
    seen = detector.detect(look.data, names, where=where, boxes_of=shown, progress=progress)
    if seen.scores.shape != where.shape:
        raise BadData(
            f"detector {detector.name} gave scores of shape {seen.scores.shape} for {where.shape[0]} rows and "
            f"{where.shape[1]} names; it must give one for each."
        )
    of_t = seen.scores[:, [names.index(t) for t in ts]] if with_t else None
    return replace(seen, scores=seen.scores[:, [names.index(v) for v in vs]]), of_t


def _at_least(scores: NDArray[np.floating], threshold: float) -> NDArray[np.float64]:
    """1 where the score reaches the threshold, 0 where not, NaN where there is none."""
    return np.where(np.isnan(scores), np.nan, scores >= threshold)


def _calibrated(look: Look, detector: Detector, seen: Seen) -> tuple[float, dict[str, Any]]:
    """The threshold of the highest balanced accuracy over all (row, v) whose objects are known, and what it is."""
    from sklearn.metrics import roc_curve

    if isinstance(detector, ObjectsDetector):
        raise BadData("calibrate='objects' with detector='objects' compares objects with themselves; give a detector.")
    names = [finding.visual_feature for finding in look.findings]
    truth = ObjectsDetector(look.vocabulary).detect(look.data, names).scores
    known = ~np.isnan(truth) & ~np.isnan(seen.scores)
    present = truth[known] > 0
    if not present.any() or present.all():
        raise BadData(
            f"calibrate='objects' needs rows whose objects have {', '.join(map(repr, names))} and rows without, and "
            f"{int(present.sum())} of {len(present)} have them; give --threshold."
        )
    false, true, cuts = roc_curve(present, seen.scores[known], drop_intermediate=False)
    balanced = (true + 1 - false) / 2
    balanced[~((cuts > 0) & (cuts <= 1))] = -1
    best = int(balanced.argmax())
    return float(cuts[best]), {
        "on": "objects", "rows": len(present), "balanced_accuracy": float(balanced[best]),
        "sensitivity": float(true[best]), "specificity": float(1 - false[best]),
    }  # fmt: skip


def _unknown(look: Look, detector: Detector, scorer: str) -> list[str]:
    """The v, and the t, that objects were asked for and have no word for."""
    objects = ObjectsDetector(look.vocabulary)
    by_objects = isinstance(detector, ObjectsDetector)
    asked = [f.visual_feature for f in look.findings] if by_objects else []
    if scorer == "objects" or (by_objects and scorer == "detector"):
        asked += [f.textual_error for f in look.findings]
    return sorted({name for name in asked if not objects.knows(name)})


def _undecided(feature: NDArray[np.float64], wrong: NDArray[np.float64]) -> dict[str, int]:
    """How many rows count nowhere, by what is not known of them."""
    v, t = np.isnan(feature), np.isnan(wrong)
    return {"feature": int((v & ~t).sum()), "reference": int((t & ~v).sum()), "both": int((v & t).sum())}


def _boxes(look: Look, seen: Seen, threshold: float) -> list[dict[str, tuple[Box, ...]]]:
    """For each finding by row id what was seen of v and t in its example rows."""
    rows, out = look.of_examples(), []
    for finding in look.findings:
        names, found = (finding.visual_feature, finding.textual_error), dict[str, tuple[Box, ...]]()
        for row_id in (example.row_id for example in finding.examples if example.row_id in rows):
            boxes = seen.boxes.get(rows[row_id], ())
            if kept := tuple(box for box in boxes if box.label in names and box.score >= threshold):
                found[row_id] = kept
        out.append(found)
    return out
