"""A second look at an audit's findings: how much likelier the error is where v is in view (paper section 6.4)."""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.auditing.units import units_of
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Asking, Chance, Placing, Reading, names_of, refuse_idle, take, values_of
from symbal_hf.core.store import Store
from symbal_hf.followup.detectors import Detector, ObjectsDetector, Seen, images_of
from symbal_hf.followup.human_labels import (
    Labels,
    person_on,
    read_labels,
    rejected_with_feature,
    rows_to_label,
    second_look_on,
    template_rows,
    write_template,
)
from symbal_hf.followup.load_detector import load_detector
from symbal_hf.followup.options import Looking, refuse_unread
from symbal_hf.followup.second_look import Look, References, judge_references, look_again
from symbal_hf.models.detectors.nanodet import class_of
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.findings import AuditResult, State, load_result
from symbal_hf.results.validation import Box, HumanAgreement, Validated, Validation
from symbal_hf.stats.contingency import fisher_greater, risk_ratio

LARGEST = 1e9  # what stands for an infinite ratio, as in findings


def validate(
    audited: AuditResult | str | Path,
    *,
    data: Any = None,
    source: str | Path | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> Validation:
    """Count, over all rows, how much likelier an erroneous reference to t is where v is in view.

    A row refers to t when its caption names t, told as the audit told it. A row counts only where it is known whether v
    is in view and, if the caption names t, whether that is an error; all others are undecided.

    Args:
        audited: an audit's result, or the folder that it was written to.
        data: the audited rows, as `symbal_hf.load_data` takes or gives them; by default they are read again.
        source: where they lie now.
        vocabulary: classes with synonyms, for names in captions and in objects; by default the audit's.
        store: where detections and answers are kept, so that a second run looks at nothing again.
        progress: wraps long loops.
        options: flat keywords of `symbal_hf.followup.options.Looking` (detector, scorer, threshold, calibrate, human,
            human_template, human_rows, chat, batch_size) and of `Asking`, `Placing` and `Chance` in
            `symbal_hf.core.options`; those of `Reading` (join, image_root, image_column, objects_column,
            allow_download ...) take the place of the audit's. A detector may also be a function of (images, names) that
            gives scores in [0, 1], or a `symbal_hf.followup.detectors.Detector`; a scorer a chat model or a function of
            (images, facts). "auto" goes by objects where they have a word for some v, or for some t. The threshold is
            by default where transformers cuts for such a model (0.1 for OWL, 0.25 for Grounding DINO), 0.5 for a
            function.

    Raises:
        BadData: other rows than were audited, an option of no sense, or nothing to look at.
        MissingModel: a model's weights are neither on this machine nor reachable.
        FileNotFoundError: no audit, source or labels there.
        TypeError: an option that is not there.
        ValueError: a value outside its range.

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
    groups = take(options, Looking, Reading, Asking, Placing, Chance, by="validate")
    looking, _, asking, placing, chance = groups
    if looking.human_template is None and looking.human is None:
        refuse_idle("without human or human_template nothing is drawn", seed=chance.seed)
    result = audited if isinstance(audited, AuditResult) else load_result(audited)
    if not (result.findings or result.suspected or result.asked):
        return Validation("none", "none", False, (), {"why": "the audit found nothing systematic"})
    shared: dict[str, Any] = {"store": store or Store(), "progress": progress}
    changed = {name: options[name] for name in names_of(Reading) if name in options}
    look = look_again(result, data=data, source=source, vocabulary=vocabulary, **shared, **changed)
    labels = Labels() if looking.human is None else read_labels(looking.human, errors=look.errors, ids=look.data.ids)
    looking = _settled(look, looking, asking, placing)
    detector = load_detector(
        looking.detector, placing, vocabulary=look.vocabulary, batch_size=looking.batch_size, store=shared["store"]
    )
    seen, seen_errors = _detected(detector, look, with_errors=looking.scorer == "detector", progress=progress)
    cut, fitted = _cut(look, looking, detector, seen)
    feature = _at_least(seen.scores, cut)
    shown = None if seen_errors is None else _at_least(seen_errors, cut)
    references = judge_references(look, looking, asking, placing, seen=shown, **shared)
    findings, lines, ids, units = [], list[dict[str, str]](), look.data.ids, units_of(look.data.shown)
    for i, (finding, boxes) in enumerate(zip(look.findings, _boxes(look, seen, cut), strict=True)):
        t, v, has, wrong = finding.textual_error, finding.visual_feature, feature[:, i], references.erroneous[:, i]
        rejected, stated = rejected_with_feature(finding, ids), look.named[:, i]
        said = person_on(labels.of, finding, ids, wrong, rejected, units=units, seed=chance.seed)
        second = {} if references.scorer == "audit" else second_look_on(finding, ids, wrong, stated, units=units)
        one = compare_rates(t, v, has, wrong, stated=stated, human=said, boxes=boxes, state=finding.state)
        findings.append(replace(one, **second))
        if looking.human_template is not None:
            drawn = rows_to_label(stated, has, units.first(rejected), rows=looking.human_rows or 100, seed=chance.seed)
            lines += template_rows(look.data, t, v, drawn, look.sentences(i))
    if looking.human_template is not None:
        write_template(looking.human_template, lines)
    provenance = {
        "symbal_hf": version("symbal-hf"),
        "python": platform.python_version(),
        "source": look.data.source,
        "rows": len(look.data),
        "rows_sha256": result.provenance.get("rows_sha256"),
        "threshold": cut,
        "calibrated": fitted,
        "unreadable_images": len(seen.bad),
        "seed": chance.seed,
        **_unknown(look, detector, references, feature),
        "human": None if looking.human is None else labels.to_dict(str(looking.human)),
        **references.provenance,
    }
    judged_by = detector.name if references.scorer == "detector" else references.scorer
    alone = independent(result.provenance, detector.name, judged_by, {f.confirmed_by for f in look.findings})
    return Validation(detector.name, references.scorer, alone, tuple(findings), provenance)


def _settled(look: Look, looking: Looking, asking: Asking, placing: Placing) -> Looking:
    """The options with what "auto" is for these rows; what neither detector nor scorer would look at is refused."""
    detector, scorer = looking.detector, looking.scorer
    if isinstance(detector, str) and detector == "auto":
        if look.known_to_objects(look.features):
            detector = "objects"
        else:
            detector = "nanodet" if any(map(class_of, look.features)) else "owlv2"
    if isinstance(scorer, str) and scorer == "auto":
        scorer = "objects" if look.known_to_objects(look.errors) else "detector"
    if isinstance(detector, str) and detector != "objects":
        images_of(look.data, detector)  # before weights are fetched in vain
    looking = replace(looking, detector=detector, scorer=scorer)
    refuse_unread(looking, values_of(asking), values_of(placing))
    return looking


def _cut(look: Look, looking: Looking, detector: Detector, seen: Seen) -> tuple[float, dict[str, Any] | None]:
    """The score from which on something counts as seen, and how it was fitted, where it was."""
    if looking.calibrate is not None:
        return _calibrated(look, detector, seen)
    return detector.threshold if looking.threshold is None else looking.threshold, None


def compare_rates(
    textual_error: str,
    visual_feature: str,
    feature: NDArray[np.floating],
    erroneous: NDArray[np.floating],
    *,
    stated: NDArray[np.bool_] | None = None,
    human: HumanAgreement | None = None,
    boxes: Mapping[str, tuple[Box, ...]] | None = None,
    state: State | None = None,
) -> Validated:
    """How much likelier the error is with the feature, over all rows of which both are known.

    Where there is no error, or no row with or without v, the risk ratio is 1 with an interval of everything, p 1.

    Args:
        textual_error: t.
        visual_feature: v.
        feature: (N,) 1 where v is in view, 0 where not, NaN where that is not known.
        erroneous: (N,) 1 where the caption refers to t erroneously, 0 where not, NaN where that is not known.
        stated: (N,) the caption states t; by default where it is referred to erroneously alone.
        human: and `boxes`, `state`: as in `Validated`.
    """
    decided = ~(np.isnan(feature) | np.isnan(erroneous))
    has, wrong = feature[decided] > 0, erroneous[decided] > 0
    a, n1, b, n0 = (int(x.sum()) for x in (has & wrong, has, ~has & wrong, ~has))
    ratio = risk_ratio(a, n1, b, n0) if a + b and n1 and n0 else (1.0, 0.0, float("inf"))
    states = (wrong if stated is None else stated[decided]) | wrong
    s1, s0 = int((has & states).sum()), int((~has & states).sum())
    return Validated(
        textual_error,
        visual_feature,
        *(a, n1, b, n0),
        stated_with_feature=s1,
        stated_without_feature=s0,
        p_value_stated=float(fisher_greater(a, s1, a + b, s1 + s0)),
        undecided=int((~decided).sum()),
        risk_ratio=ratio[0],
        risk_ratio_low=ratio[1],
        risk_ratio_high=min(ratio[2], LARGEST),
        p_value=float(fisher_greater(a, n1, a + b, n1 + n0)),
        human=human,
        boxes=boxes or {},
        state=state,
    )


def independent(
    provenance: Mapping[str, Any], detector: str, scorer: str, witnesses: Collection[str | None] = ()
) -> bool:
    """Whether neither detector nor scorer is what the audit went by: its scorer, one of its models, or a witness."""
    judged = {str(provenance.get("scorer")), *(_model(text) for text in _texts(provenance.get("models"))), *witnesses}
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


def _unknown(
    look: Look, detector: Detector, references: References, feature: NDArray[np.float64]
) -> dict[str, list[Any]]:
    """The v and t that objects were asked for and have no word for; of each finding how many rows count nowhere."""
    objects = ObjectsDetector(look.vocabulary)
    by_objects = isinstance(detector, ObjectsDetector)
    asked = list(look.features) if by_objects else []
    if references.scorer == "objects" or (by_objects and references.scorer == "detector"):
        asked += look.errors
    undecided = [
        {"feature": int((v & ~t).sum()), "reference": int((t & ~v).sum()), "both": int((v & t).sum())}
        for v, t in zip(np.isnan(feature).T, np.isnan(references.erroneous).T, strict=True)
    ]
    return {"unknown_to_objects": sorted({n for n in asked if not objects.knows(n)}), "undecided": undecided}


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
