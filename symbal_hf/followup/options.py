"""The options of a validation, each said once, and those that make no sense together or that nothing would look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Gates, Group, Range, defaults_of, option, refuse_idle, refuse_idle_of_chat


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise BadData(f"threshold={threshold:g}; it must be in (0, 1].")


def refuse_existing(path: str | Path) -> None:
    """Raise where a template would overwrite what may hold a person's work."""
    if Path(path).exists():
        raise BadData(f"{path} exists, and may hold somebody's labels; name another file, or take it away.")


@dataclass(frozen=True)
class Comparing(Group):
    """What counts as the same."""

    # Half the width of "the same": the least rate that an audit calls an error at all (`min_rate`), so that a
    # change below it alone neither makes a finding nor ends one.
    margin: float = option(
        defaults_of(Gates)["min_rate"],
        'Error rates of A and B are "same" where they are shown to differ by less than this,',
        within=Range(0, 1, open=True),
    )


@dataclass(frozen=True)
class Repairing(Group):
    """What is repaired."""

    suspected: bool = option(
        False, "Repair what is only suspected, too: pairs that rest on one judge's word, numbered after the findings."
    )


@dataclass(frozen=True)
class Looking(Group):
    """The second look."""

    detector: Any = option(
        "auto",
        "Says where v is in view: objects, nanodet (ships with the package, knows COCO's 80 classes), owlv2, "
        "owlv2-base or hf:MODEL[@revision] (OWL, Grounding DINO). auto: objects where the rows have them, else nanodet "
        "where it knows some v, else owlv2.",
        shown=str,
    )
    scorer: Any = option(
        "auto",
        "Says which references to t are erroneous: objects, detector, audit (no second look), "
        "hf:MODEL or openai:URL#MODEL. auto: objects where the rows have them, else detector.",
        shown=str,
    )
    threshold: float | None = option(
        None, "Score from which on the detector sees something, in (0, 1].", check=_check_threshold
    )
    calibrate: Literal["objects"] | None = option(
        None, "Choose the threshold where it fits the rows' known objects best (balanced accuracy)."
    )
    human: Path | None = option(None, "Table of a person's labels: id, erroneous (1/0, yes/no), perhaps textual_error.")
    human_template: Path | None = option(
        None, "Write a CSV of rows for a person to label; never overwrites.", check=refuse_existing
    )
    human_rows: int | None = option(
        None, "Rows in it for each finding, 100 by default, those that the audit rejects first,", within=Range(low=4)
    )
    chat: Any = option(None, "CHAT of a scorer that names none (vision-language).", shown=str)
    batch_size: int | None = option(None, "Images that a model of this process looks at together,", within=Range(low=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threshold is not None and self.calibrate is not None:
            raise BadData(
                f"threshold={self.threshold:g} and calibrate={self.calibrate!r} contradict each other; give one of "
                "them."
            )
        if self.human_template is None:
            refuse_idle("without human_template no rows are written", human_rows=self.human_rows)


def refuse_unread(looking: Looking, asking: Mapping[str, Any], placing: Mapping[str, Any]) -> None:
    """Refuse options that neither the detector nor the scorer, both chosen by now, looks at."""
    detector, scorer, chat = looking.detector, looking.scorer, looking.chat
    kind, _, model = scorer.partition(":") if isinstance(scorer, str) else ("object", "", "")
    named = scorer if kind in ("hf", "openai") or not isinstance(scorer, str) else model or None
    asked = (named or chat) if kind not in ("objects", "detector", "audit") else None
    if chat is not None and asked is not chat:
        refuse_idle("the scorer asks no chat model, or names one", chat=chat)
    if detector == "objects":
        refuse_idle("objects are there or not, without a score", threshold=looking.threshold)
    if isinstance(detector, str) and detector != "objects":
        refuse_idle_of_chat(asked, **asking)
    else:
        refuse_idle("no detector of this process looks at images", batch_size=looking.batch_size)
        refuse_idle_of_chat(asked, **asking, **placing)
