"""The audit: from a source to a verdict with findings, one stage after the other."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from symbal_hf.auditing.asked import asked_findings, check_pairs
from symbal_hf.auditing.association import Pair, associate, rank_errors
from symbal_hf.auditing.composed import composed_paper_pairs, gather_composed
from symbal_hf.auditing.evidence import Evidence, Scorer, gather, image_vectors
from symbal_hf.auditing.verdict import check_gates, conclude
from symbal_hf.core.store import Store
from symbal_hf.data.again import fingerprint
from symbal_hf.data.columns import SourceFormat
from symbal_hf.data.table import AuditData, OnBadRow, load_data
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.composition import Preset, both_stages, choose_composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, named
from symbal_hf.results.findings import AuditResult

if TYPE_CHECKING:
    from datasets import Dataset

    from symbal_hf.models.chat.protocol import ChatModel
    from symbal_hf.models.encoders.load import ImageEncoder, TextEncoder

Method = Literal["association", "paper"]


def audit(
    source: AuditData | Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    preset: str | Path | Preset = "lite",
    method: Method = "association",
    scorer: Scorer | str | Any = "auto",
    summarizer: str | Any | None = None,
    image_column: str | None = None,
    caption_column: str | None = None,
    reference_column: str | None = None,
    objects_column: str | None = None,
    image_root: str | Path | None = None,
    join: str | Path | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    limit: int | None = None,
    sample: int | None = None,
    top_k: int = 5,
    tau: float = 0.7,
    alpha: float = 0.05,
    min_rate: float = 0.05,
    pairs: Sequence[tuple[str, str]] = (),
    seed: int = 0,
    on_bad_row: OnBadRow = "warn",
    text_encoder: str | TextEncoder | None = None,
    image_encoder: str | ImageEncoder | None = None,
    scorer_1: str | Any | None = None,
    scorer_2: str | Any | None = None,
    summarizer_1: str | Any | None = None,
    summarizer_2: str | Any | None = None,
    captioner: str | ChatModel | None = None,
    chat: str | ChatModel | None = None,
    prompts: str | Path | None = None,
    concurrency: int = 32,
    members: int = 60,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    devices: int = 1,
    num_nodes: int = 1,
    source_format: SourceFormat = "auto",
    allow_download: bool = False,
    store: Store | None = None,
    progress: Progress = quiet,
) -> AuditResult:
    """Find the systematic misalignments of a captioned dataset, or say that there are none.

    Args:
        source: what `symbal_hf.data.table.load_data` reads: a dataset, rows, a file, a folder or a Hub id; or what it
            returned, to which the options of reading no longer apply.
        preset: a named composition of models, or a YAML file; "lite" runs on a CPU without a network.
        method: "association" (over all images) or "paper" (the two stages of the paper, section 4).
        scorer: what captions are checked against: "objects", "reference", "embedding" of the lite preset ("auto" takes
            the first for which the source has a column); any other scorer takes both stages, as scorer_1 and scorer_2.
        summarizer: names t and v, as summarizer_1 and summarizer_2.
        image_column: and the other columns: found by their usual names when not given.
        image_root: the folder that image paths are relative to and must stay inside; the source's own by default.
        join: a second table whose columns are added by id.
        vocabulary: classes with synonyms, as a mapping or a file; limits the audit to these concepts.
        limit: audit at most this many rows.
        sample: of these audit this many, drawn with `seed`.
        top_k: at most this many findings.
        tau: a finding needs the lower bound of its confirmed share above this, in [0, 1].
        alpha: a finding needs a corrected p-value below this, in (0, 1).
        min_rate: a finding needs at least this error rate in the rows with v, in [0, 1].
        pairs: (t, v) that are measured over all rows whether or not they are found, as `AuditResult.asked`; with a
            vocabulary, or with objects, each name is a class or a synonym of one. They change nothing that is found.
        seed: of every random choice.
        on_bad_row: "error" stops at a bad row, "warn" and "skip" leave it out and count it.
        text_encoder: and the other parts: take the place of the preset's, by name
            (`symbal_hf.models.composition.Composition`) or as objects (`symbal_hf.models.parts.named`).
        prompts: folder whose NAME.jinja take the place of the packaged prompts.
        concurrency: questions in flight to one server.
        members: of a cluster that a summarizer looks at, at most.
        device: and `dtype`, `device_map`: where models of this process run; see `symbal_hf.models.parts.Parts`.
        devices: processes that embed on this machine, of one GPU each where the encoder is on one.
        num_nodes: machines that a launcher (torchrun, `fabric run`, srun) has started this program on; under one, every
            process must call this, and each gets the same result.
        source_format: and `allow_download`: see `symbal_hf.data.table.load_data`.
        store: where embeddings and answers are kept; by default one file under the user's cache folder.
        progress: wraps long loops.

    Raises:
        BadData: nothing to audit, (policy "error") a bad row, or a name in `pairs` that the vocabulary lacks.
    """
    given: dict[str, Any] = {
        "text_encoder": text_encoder, "image_encoder": image_encoder, "scorer_1": scorer_1, "scorer_2": scorer_2,
        "summarizer_1": summarizer_1, "summarizer_2": summarizer_2, "captioner": captioner, "chat": chat,
    }  # fmt: skip
    lite_scorer, all_parts = both_stages(scorer, summarizer, given)
    changed, objects = named(all_parts)
    composition = choose_composition(preset, **changed)
    if composition is not None and lite_scorer != "auto":
        raise ValueError(f"scorer={scorer!r} is of the lite preset; with other models give scorer_1 and scorer_2.")
    if method not in ("association", "paper"):
        raise ValueError(f"no method {method!r}; available: 'association', 'paper'.")
    check_gates(top_k=top_k, tau=tau, alpha=alpha, min_rate=min_rate)
    asked = check_pairs(pairs)
    always = [name for pair in asked for name in pair]
    if isinstance(source, AuditData):
        data = source
    else:
        data = load_data(
            source, image_column=image_column, caption_column=caption_column, reference_column=reference_column,
            objects_column=objects_column, image_root=image_root, join=join, limit=limit, sample=sample,
            seed=seed, on_bad_row=on_bad_row, source_format=source_format, allow_download=allow_download,
        )  # fmt: skip
    words = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    rows_sha256 = fingerprint(data)
    models: dict[str, Any]
    if composition is None:
        checked = cast(Scorer, lite_scorer)
        evidence = gather(
            data, scorer=checked, vocabulary=words, store=store, progress=progress, on_bad_row=on_bad_row,
            devices=devices, num_nodes=num_nodes, strategy="auto", always=always,
        )  # fmt: skip
        measured, evidence = asked_findings(evidence), evidence.usual()
        ranked = association_pairs(evidence) if method == "association" else two_stage_pairs(evidence, seed=seed)
        models = lite_models(evidence)
    else:
        parts = Parts(
            composition, store or Store(), prompts=Prompts(None if prompts is None else Path(prompts)),
            objects=objects, concurrency=concurrency, members=members, device=device, dtype=dtype,
            device_map=device_map, devices=devices, num_nodes=num_nodes, strategy="auto", progress=progress,
        )  # fmt: skip
        evidence, score, told = gather_composed(data, parts, vocabulary=words, always=always, on_bad_row=on_bad_row)
        measured, evidence = asked_findings(evidence), evidence.usual()
        if method == "association":
            ranked = association_pairs(evidence)
        else:
            evidence, ranked = composed_paper_pairs(evidence, parts, score, told, seed=seed)
        models = parts.provenance()
    name = preset.name if isinstance(preset, Preset) else str(preset)
    provenance = {
        "symbal_hf": version("symbal-hf"), "python": platform.python_version(), "preset": name, "method": method,
        "scorer": evidence.beliefs.scorer, "source": data.source, "seed": seed, "top_k": top_k, "tau": tau,
        "alpha": alpha, "min_rate": min_rate, "limit": limit, "sample": sample, "on_bad_row": on_bad_row,
        "models": models, "read": data.read, "rows_sha256": rows_sha256,
        "vocabulary": str(Path(vocabulary).absolute()) if isinstance(vocabulary, (str, Path)) else None,
        "classes": None if words is None else len(words), "pairs": [list(pair) for pair in asked],
    }  # fmt: skip
    found = conclude(evidence, ranked, top_k=top_k, tau=tau, alpha=alpha, min_rate=min_rate)
    return replace(found, asked=measured, provenance=provenance)


def lite_models(evidence: Evidence) -> dict[str, str]:
    """The models of the lite preset that judged, by what they are for."""
    from symbal_hf.models.encoders.lite import LiteVision, MiniLM

    models = {"text": MiniLM.name}
    if evidence.regions is not None:
        vision = LiteVision()
        models |= {"image": vision.name, "adapter": vision.fingerprint}
    return models


def association_pairs(evidence: Evidence, *, most_errors: int = 30) -> list[Pair]:
    """Candidate pairs by association over all images, best first."""
    concepts = evidence.concepts
    if not concepts.names:
        return []
    has = None if evidence.beliefs.given_truth else evidence.beliefs.known > 0.5
    errors = rank_errors(concepts, evidence.beliefs.log_ratio, has=has)
    tried = max(len(errors), 1)
    similar = None if evidence.vectors is None else evidence.vectors @ evidence.vectors.T
    if not evidence.beliefs.given_truth:
        errors = errors[:most_errors]
    pairs = associate(
        concepts, evidence.beliefs, errors=errors, tried_errors=tried, similar=similar, wholes=evidence.wholes
    )
    return sorted(pairs, key=lambda pair: -strength(pair))


def two_stage_pairs(evidence: Evidence, *, seed: int = 0) -> list[Pair]:
    """Candidate pairs by the paper's method; references or object names stand for images where there are none."""
    from symbal_hf.auditing.two_stages import paper_pairs

    return paper_pairs(evidence, evidence.embed(evidence.concepts.facts.text), image_vectors(evidence), seed=seed)


def strength(pair: Pair) -> float:
    """Evidence in nats that t is false and that it goes with v, together; larger is stronger."""
    return pair.evidence - float(np.log(max(pair.p, 1e-300)))
