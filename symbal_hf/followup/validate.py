"""A second look at an audit's findings: how much likelier the error is where v is in view (paper section 6.4)."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.followup.detectors import Detector, ObjectsDetector, Seen, images_of
from symbal_hf.followup.human_labels import (
    Labels,
    agreement_with,
    read_labels,
    rows_to_label,
    template_rows,
    write_template,
)
from symbal_hf.followup.load_detector import load_detector
from symbal_hf.followup.second_look import Look, References, judge_references, look_again
from symbal_hf.followup.validate_options import Calibrate, check_options, refuse_unread
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.findings import AuditResult, load_result
from symbal_hf.results.validation import Box, HumanAgreement, Validated, Validation
from symbal_hf.stats.contingency import fisher_greater, risk_ratio

if TYPE_CHECKING:
    from symbal_hf.models.chat.protocol import ChatModel

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

    >>> import symbal_hf
    >>> toilet = {"caption": "A toilet. A sink.", "objects": ["toilet"]}
    >>> others = [{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A sink.", "objects": ["sink"]}]
    >>> result = symbal_hf.audit([toilet, *others] * 20, scorer="objects")
    >>> validation = symbal_hf.validate(result, data=[toilet, *others] * 20)
    >>> [(f.textual_error, f.visual_feature, f.error_rate_with) for f in validation.findings]
    [('sink', 'toilet', 1.0)]
    >>> validation.independent  # the audit itself judged by the objects
    False
    """
    check_options(threshold, calibrate, human, human_template, human_rows, seed)
    result = audited if isinstance(audited, AuditResult) else load_result(audited)
    if not result.findings and not result.asked:
        return Validation("none", "none", False, (), {"why": "the audit found nothing systematic"})
    shared: dict[str, Any] = {"store": store or Store()}
    running: dict[str, Any] = {"device": device, "dtype": dtype, "device_map": device_map}
    columns = {"image_column": image_column, "objects_column": objects_column}
    reading: dict[str, Any] = {"join": join, "image_root": image_root, **columns, "allow_download": allow_download}
    asking: dict[str, Any] = {"chat": chat, "prompts": prompts, "concurrency": concurrency, **running, **shared}
    shared["progress"] = asking["progress"] = progress
    look = look_again(result, data=data, source=source, vocabulary=vocabulary, **shared, **reading)
    labels = None if human is None else read_labels(human, errors=look.errors, ids=look.data.ids)
    detector, scorer = _chosen(look, detector, scorer)
    questions = {"prompts": prompts, "concurrency": concurrency}
    refuse_unread(detector, scorer, chat, threshold, batch_size, questions, running)
    own = {"vocabulary": look.vocabulary, "batch_size": batch_size, "store": shared["store"]}
    chosen = load_detector(detector, **own, **running)
    seen, seen_errors = _detected(chosen, look, with_errors=scorer == "detector", progress=progress)
    cut = chosen.threshold if threshold is None else threshold
    cut, fitted = (cut, None) if calibrate is None else _calibrated(look, chosen, seen)
    feature = _at_least(seen.scores, cut)
    shown = None if seen_errors is None else _at_least(seen_errors, cut)
    references = judge_references(look, scorer, seen=shown, **asking)
    findings = _validated(look, feature, references.erroneous, labels, _boxes(look, seen, cut), seed)
    if human_template is not None:
        write_template(human_template, _to_label(look, feature, human_rows or 100, seed))
    provenance = _provenance(look, chosen, references, feature, len(seen.bad), result, cut, fitted, seed)
    provenance |= {"human": None if labels is None else labels.to_dict(str(human)), **references.provenance}
    judged_by = chosen.name if references.scorer == "detector" else references.scorer
    alone = independent(result.provenance, chosen.name, judged_by)
    return Validation(chosen.name, references.scorer, alone, findings, provenance)


def _chosen(look: Look, detector: Any, scorer: Any) -> tuple[Any, Any]:
    """Detector and scorer, with what "auto" is for these rows."""
    if detector == "auto":
        detector = "objects" if look.known_to_objects(look.features) else "owlv2"
    if scorer == "auto":
        scorer = "objects" if look.known_to_objects(look.errors) else "detector"
    if isinstance(detector, str) and detector != "objects":
        images_of(look.data, detector)  # before weights are fetched in vain
    return detector, scorer


def _validated(
    look: Look,
    feature: NDArray[np.float64],
    erroneous: NDArray[np.float64],
    labels: Labels | None,
    boxes: Sequence[Mapping[str, tuple[Box, ...]]],
    seed: int,
) -> tuple[Validated, ...]:
    """Each finding by its columns of `feature` (N, K) and `erroneous` (N, K)."""
    out = []
    for i, (t, v) in enumerate(zip(look.errors, look.features, strict=True)):
        human = None if labels is None else agreement_with(labels, t, look.data.ids, erroneous[:, i], seed=seed)
        out.append(compare_rates(t, v, feature[:, i], erroneous[:, i], human=human, boxes=boxes[i]))
    return tuple(out)


def _to_label(look: Look, feature: NDArray[np.float64], rows: int, seed: int) -> list[dict[str, str]]:
    """The lines that a person is to fill in, `rows` of each finding."""
    lines: list[dict[str, str]] = []
    for i, (t, v) in enumerate(zip(look.errors, look.features, strict=True)):
        drawn = rows_to_label(look.named[:, i], feature[:, i], rows=rows, seed=seed)
        lines += template_rows(look.data, t, v, drawn, look.sentences(i))
    return lines


def _provenance(
    look: Look,
    detector: Detector,
    references: References,
    feature: NDArray[np.float64],
    unreadable: int,
    result: AuditResult,
    threshold: float,
    fitted: Mapping[str, Any] | None,
    seed: int,
) -> dict[str, Any]:
    """By what versions, of which rows and how it was validated, and what remained unknown."""
    return {
        "symbal_hf": version("symbal-hf"),
        "python": platform.python_version(),
        "source": look.data.source,
        "rows": len(look.data),
        "rows_sha256": result.provenance.get("rows_sha256"),
        "threshold": threshold,
        "calibrated": fitted,
        "unreadable_images": unreadable,
        "seed": seed,
        "unknown_to_objects": _unknown(look, detector, references.scorer),
        "undecided": [_undecided(*columns) for columns in zip(feature.T, references.erroneous.T, strict=True)],
    }


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
        textual_error,
        visual_feature,
        *(a, n1, b, n0),
        undecided=int((~decided).sum()),
        risk_ratio=ratio[0],
        risk_ratio_low=ratio[1],
        risk_ratio_high=min(ratio[2], LARGEST),
        p_value=float(fisher_greater(a, n1, a + b, n1 + n0)),
        human=human,
        boxes=boxes or {},
    )


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
    detector: Detector, look: Look, *, with_errors: bool, progress: Progress
) -> tuple[Seen, NDArray[np.float32] | None]:
    """(N, K) scores of the v and, where asked for, of the t of K findings; of t only where a caption names it."""
    errors = look.errors if with_errors else ()
    names = list(dict.fromkeys([*look.features, *errors]))
    shown = set(look.of_examples().values())
    where = np.zeros((len(look.data), len(names)), bool)
    for name, named in zip(errors, look.named.T, strict=False):
        where[named, names.index(name)] = True
    where[sorted(shown)] = True  # for their boxes, whatever the captions say
    features = [names.index(v) for v in look.features]
    where[:, features] = True
    seen = detector.detect(look.data, names, where=where, boxes_of=shown, progress=progress)
    if seen.scores.shape != where.shape:
        raise BadData(
            f"detector {detector.name} gave scores of shape {seen.scores.shape} for {where.shape[0]} rows and "
            f"{where.shape[1]} names; it must give one for each."
        )
    of_errors = seen.scores[:, [names.index(t) for t in errors]] if with_errors else None
    return replace(seen, scores=seen.scores[:, features]), of_errors


def _at_least(scores: NDArray[np.floating], threshold: float) -> NDArray[np.float64]:
    """1 where the score reaches the threshold, 0 where not, NaN where there is none."""
    return np.where(np.isnan(scores), np.nan, scores >= threshold)


def _calibrated(look: Look, detector: Detector, seen: Seen) -> tuple[float, dict[str, Any]]:
    """The threshold of the highest balanced accuracy over all (row, v) whose objects are known, and what it is."""
    from sklearn.metrics import roc_curve

    if isinstance(detector, ObjectsDetector):
        raise BadData("calibrate='objects' with detector='objects' compares objects with themselves; give a detector.")
    names = look.features
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
    quality = {"sensitivity": float(true[best]), "specificity": float(1 - false[best])}
    fitted = {"on": "objects", "rows": len(present), "balanced_accuracy": float(balanced[best]), **quality}
    return float(cuts[best]), fitted


def _unknown(look: Look, detector: Detector, scorer: str) -> list[str]:
    """The v, and the t, that objects were asked for and have no word for."""
    objects = ObjectsDetector(look.vocabulary)
    by_objects = isinstance(detector, ObjectsDetector)
    asked = list(look.features) if by_objects else []
    if scorer == "objects" or (by_objects and scorer == "detector"):
        asked += look.errors
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
