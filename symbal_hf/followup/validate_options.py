"""Options of a validation that make no sense together, or that nothing would look at, are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle, refuse_idle_of_chat
from symbal_hf.followup.human_labels import refuse_existing

Calibrate = Literal["objects"]


def check_options(
    threshold: float | None,
    calibrate: Calibrate | None,
    human: str | Path | None,
    human_template: str | Path | None,
    human_rows: int | None,
    seed: int,
) -> None:
    """Raise `BadData` where an option makes no sense, before anything is read."""
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


def refuse_unread(
    detector: Any,
    scorer: Any,
    chat: Any,
    threshold: float | None,
    batch_size: int | None,
    asking: Mapping[str, Any],
    placing: Mapping[str, Any],
) -> None:
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
