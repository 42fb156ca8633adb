"""What a second look says about findings: how many times more likely the error is with the feature, and who agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symbal_hf.results.findings import Rates
from symbal_hf.results.json import Told, load_json

FILE = "validation.json"


@dataclass(frozen=True)
class Box:
    """Where a detector sees something in an image.

    Attributes:
        label: what it was asked for.
        score: its confidence, in [0, 1].
        x0: and `y0`, `x1`, `y1`: left, top, right, bottom as shares of the image's width and height, in [0, 1].
    """

    label: str
    score: float
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class HumanAgreement:
    """How far the marks of erroneous references agree with a person's on the rows that both looked at.

    Attributes:
        rows: rows that the person labelled and the second look decided.
        agreed: of them, those with the same answer.
        kappa: Cohen's kappa, in [-1, 1], or None where it is not defined; `low` and `high` its 95 % interval.
    """

    rows: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Validated(Rates):
    """One finding at a second look, over all rows that could be judged (paper section 6.4).

    Attributes:
        textual_error: t of the finding.
        visual_feature: v of the finding.
        errors_with_feature: rows with v whose caption refers to t erroneously; and so on, as in `Finding`, but over
            all rows, not only those without t.
        undecided: rows that could not be judged, which count nowhere.
        risk_ratio: times as likely, with its 95 % interval; `p_value` is one-sided.
        stated_with_feature: of the rows with v, those whose caption states t, rightly or wrongly; of these
            `errors_with_feature` are rejected. `stated_without_feature` likewise.
        p_value_stated: one-sided p that the rejected share among captions that state t is no larger with v. The risk
            ratio alone misleads: where t is merely common beside v and now and then missed, it is large as well.
        human: agreement with a person's labels, or None where none were given.
        boxes: what the detector saw in the finding's example rows, by row id.
    """

    textual_error: str
    visual_feature: str
    errors_with_feature: int
    rows_with_feature: int
    errors_without_feature: int
    rows_without_feature: int
    undecided: int
    risk_ratio: float
    risk_ratio_low: float
    risk_ratio_high: float
    p_value: float
    human: HumanAgreement | None = None
    boxes: Mapping[str, tuple[Box, ...]] = field(default_factory=dict)
    stated_with_feature: int = 0
    stated_without_feature: int = 0
    p_value_stated: float = 1.0


@dataclass(frozen=True)
class Validation(Told):
    """A second look at all findings of an audit.

    Attributes:
        detector: what said where v is; `scorer` what said which references to t are erroneous.
        independent: neither is what the audit itself judged by; otherwise agreement proves nothing new.
        findings: one for each finding, in the audit's order.
        provenance: models, thresholds, versions, counts.
    """

    detector: str
    scorer: str
    independent: bool
    findings: tuple[Validated, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: str | Path) -> Path:
        """Write validation.json into the audit's folder, and return its path."""
        path = Path(folder) / FILE
        self.write_json(path)
        return path


def load_validation(folder: str | Path) -> Validation | None:
    """Read the validation.json of an audit's folder; None where there is none.

    Raises:
        BadData: the file is broken; its first broken field is named.
    """
    path = Path(folder) / FILE
    return load_json(Validation, path) if path.is_file() else None
