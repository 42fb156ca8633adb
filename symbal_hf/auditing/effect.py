"""Options of an audit that could have no effect are refused, in one sentence, before anything is worked out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symbal_hf.core.options import Group, given, refuse_idle
from symbal_hf.data.table import AuditData
from symbal_hf.models.composition import FACT_SCORERS, IN_PROCESS, Composition, split_part


def check_effect(composition: Composition, data: AuditData, method: str, groups: Sequence[Group]) -> None:
    """Refuse options that nothing would read.

    Args:
        composition: of this audit, its scorers settled.
        data: the rows.
        method: "association" or "paper".
        groups: the options, of which those that are not as by default are looked at.

    Raises:
        BadData: an option that would change nothing, with what makes it matter.
    """
    options = given(*groups)
    for name, why in _unread(composition, data, method).items():
        if name in options and not _as_it_would_be(name, options[name], composition):
            refuse_idle(why, **{name: options[name]})


def _unread(composition: Composition, data: AuditData, method: str) -> dict[str, str]:
    """Options that nothing reads, and why."""
    paper = method == "paper"
    stages = ("scorer_1", "scorer_2", "summarizer_1", "summarizer_2") if paper else ("scorer_1",)
    kinds = [split_part(getattr(composition, part))[0] for part in stages]
    looks = any(kind in FACT_SCORERS for kind in kinds[:2])
    referenced = data.references is not None and any(data.references)
    told = not referenced and looks and not composition.calibrated
    asked = {spec for part in stages if (spec := composition.chat_of(part)) is not None}
    if told and composition.captioner is not None:
        asked.add(composition.captioner)
    encoders = {split_part(composition.scorer_1)[1] or composition.image_encoder} if kinds[0] == "embedding" else set()
    if paper:
        encoders |= {composition.text_encoder, composition.image_encoder if looks else "lite"}
    out: dict[str, str] = {}
    if not paper:
        only = "it belongs to method='paper', and this audit is by association"
        out |= dict.fromkeys(
            ("scorer_2", "summarizer", "summarizer_1", "summarizer_2", "members", "text_encoder"), only
        )
    elif set(kinds[2:]) == {"phrases"}:
        out["members"] = "no model summarizes, phrases are counted over all members of a cluster"
    if not encoders - {"lite"} and not (paper and looks) and kinds[0] != "embedding":
        out["image_encoder"] = f"scorer {kinds[0]!r} embeds no image"
    if not told:
        out["captioner"] = "captions are checked against " + ("references" if referenced else kinds[0])
    if not asked:
        out |= dict.fromkeys(("chat", "prompts"), "no part of this audit asks a chat model")
    if composition.chat_of("scorer_1") is None:
        out["budget"] = f"scorer {kinds[0]!r} asks no chat model about statements"
    if not any(spec.startswith("openai:") for spec in asked):
        out["concurrency"] = "no part of this audit asks a server"
    if not any(spec.partition(":")[0] in IN_PROCESS for spec in (*asked, *encoders)):
        here = "no model of this process runs but the lite encoders, which stay on the CPU"
        out |= dict.fromkeys(("device", "dtype", "device_map"), here)
    return out


def _as_it_would_be(name: str, value: Any, composition: Composition) -> bool:
    """Whether the option says what holds anyway."""
    if name == "scorer_2":
        return value in (composition.scorer_1, "auto")
    if name.startswith("summarizer"):
        return value == "phrases"
    if name in ("device", "dtype"):
        return value == {"device": "cpu", "dtype": "float32"}[name]
    return name in ("text_encoder", "image_encoder") and value == "lite" == getattr(composition, name)
