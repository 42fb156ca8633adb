"""Pairs measured on the rows of a finished audit, judged again as that audit judged them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from symbal_hf.auditing.asked import Asked, measured
from symbal_hf.auditing.evidence import gather, vocabulary_of
from symbal_hf.auditing.units import Units
from symbal_hf.auditing.verdict import finding_of
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.data.again import audited_vocabulary
from symbal_hf.data.table import AuditData
from symbal_hf.language.concepts import class_named, find_concepts, own_name
from symbal_hf.language.facts import split_facts
from symbal_hf.matching.protocol import NameJudge
from symbal_hf.models.composition import audited_composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts
from symbal_hf.results.findings import AuditResult, Finding


@dataclass(frozen=True)
class Remeasured:
    """One pair on the N rows of an audit."""

    asked: Asked  # its statistics, and which rows count
    finding: Finding  # the same as a finding, without its examples and affected rows
    names: tuple[str, ...]  # what else the captions call t, which counts as t


def measure_again(
    result: AuditResult,
    data: AuditData,
    pairs: Sequence[tuple[str, str]],
    *,
    judge: NameJudge,
    store: Store | None = None,
    progress: Progress = quiet,
) -> tuple[AuditData, Units, list[Remeasured | str]]:
    """The rows of a finished audit that could be judged, which of them show one image, and each pair (t, v) on them.

    A pair that could not be measured is the reason instead.

    Its scorer or composition, its vocabulary and its policy for bad rows hold. Where concepts are the captions' own
    noun phrases, whatever `judge` takes for t counts as t: another model may say "television" where this one says "tv".

    Raises:
        BadData: nothing can be measured as it was: a vocabulary or models that are gone or have changed.
        ChatFailed: a chat model of the composition does not answer.
        MissingModel: weights that are neither installed nor reachable.
    """
    made = result.provenance
    words = audited_vocabulary(result)
    if words is None and made.get("classes"):
        raise BadData(
            "the vocabulary of the audit cannot be read again, since it was in memory or its file is gone; audit with "
            "a vocabulary file."
        )
    known = vocabulary_of(data, words) if words is not None or made["scorer"] == "objects" else None
    out: list[Remeasured | str] = [""] * len(pairs)
    usable: dict[int, tuple[str, str]] = {}
    same: dict[str, str] = {}
    if known is None:
        usable = dict(enumerate(pairs))
        same = other_names_of(data.captions, [t for t, _ in pairs], judge)
    else:
        for index, (t, v) in enumerate(pairs):
            try:
                usable[index] = class_named(t, known), class_named(v, known)
            except BadData as error:
                out[index] = str(error)
    always = [name for pair in usable.values() for name in pair]
    models = made["models"]
    parts = Parts(audited_composition(made), store or Store(), progress=progress)
    parts.settle(data)
    for name, today in {**parts.lite(), **{k: parts.prompts.hash(k) for k in models.get("prompts", {})}}.items():
        audited = models.get("prompts", {}).get(name, models.get(name, today))
        if audited != today:
            raise BadData(f"the audit used another {name} ({audited}) than today's ({today}); audit again.")
    policy = made.get("on_bad_row", "warn")
    evidence = gather(data, parts, vocabulary=words, always=always, same=same, on_bad_row=policy)
    for index, asked in zip(usable, measured(evidence), strict=True):
        t_index, v_index = asked.pair.error, asked.pair.feature
        name = evidence.concepts.names[t_index]
        found = replace(finding_of(evidence, asked.pair, [t_index], [v_index]), examples=(), affected=())
        others = tuple(sorted(other for other, counted in same.items() if counted == name))
        out[index] = f"both names mean {name!r} there" if t_index == v_index else Remeasured(asked, found, others)
    return evidence.data, evidence.units, out


def other_names_of(captions: Sequence[str], errors: Sequence[str], judge: NameJudge) -> dict[str, str]:
    """The noun phrases that five captions or more use for one of `errors`, each with the error that it counts as."""
    names = find_concepts(split_facts(captions)).names
    out: dict[str, str] = {}
    wanted: list[str] = []
    for error in dict.fromkeys(own_name(name, names) for name in errors):
        if error in out:
            continue
        wanted.append(error)
        # "Old television" names a television already.
        open_names = [n for n in names if n not in out and n not in wanted and not n.endswith(f" {error}")]
        states = judge.judge([(name, error) for name in open_names])
        out |= {name: error for name, state in zip(open_names, states, strict=True) if state == "same"}
    return out
