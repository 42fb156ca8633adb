"""What a second look says about findings: how many times more likely the error is with the feature, and who agrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from symbal_hf.results.findings import Rates, State
from symbal_hf.results.json import Told, load_json

FILE = "validation.json"
PersonSays = Literal["confirmed", "contradicted", "open"]


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
        rejected: images with v whose caption the audit rejects and the person labelled.
        confirmed: of them, those in which the person finds t stated erroneously, too.
        precision: their share, with the ends of its 95 % interval (Wilson); None where none was labelled.
        says: what follows for the finding; see `symbal_hf.followup.human_labels.verdict_of`.
    """

    rows: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None
    rejected: int = 0
    confirmed: int = 0
    precision: float | None = None
    precision_low: float | None = None
    precision_high: float | None = None
    says: PersonSays = "open"


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
        rejected_confirmed: of the rows with v that the audit rejects, `rejected_rows` that could be judged, those that
            the second look rejects as well; `says` what follows, its own misses taken off; None in files of before.
        human: what a person's labels say, or None where none were given.
        state: of the finding in the audit; None in files of before.
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
    state: State | None = None
    rejected_confirmed: int = 0
    rejected_rows: int = 0
    says: PersonSays | None = None

    @property
    def person_says(self) -> str:
        """What a person's labels of rejected rows mean for the finding, in words; "" where there are none."""
        if self.human is None or not self.human.rejected:
            return ""
        if self.human.says == "open":
            return "not settled, since the low end is below .5 or the error no longer goes with it; label more rows"
        what = {"suspected": "what was only suspected", "asked": "the pair that was asked for"}
        return f"{what.get(str(self.state), 'the finding')} is {self.human.says} by a person"


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
