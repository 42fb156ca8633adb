"""From an audit to a cleaned dataset: the rows of its findings marked, mended, rewritten or left out."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import (
    Asking,
    Chance,
    Group,
    Moved,
    Placing,
    refuse_idle,
    refuse_idle_of_chat,
    take,
    values_of,
)
from symbal_hf.core.store import Store
from symbal_hf.data.again import audited_vocabulary, reread
from symbal_hf.data.copying import open_source, write_table
from symbal_hf.data.formats.plain_text import literal
from symbal_hf.data.table import AuditData
from symbal_hf.data.vocabulary import load_vocabulary
from symbal_hf.followup.options import Repairing
from symbal_hf.followup.repair_plan import Plan, Rewrite
from symbal_hf.followup.rerun import audit_command
from symbal_hf.models.chat.protocol import ChatModel
from symbal_hf.models.composition import audited_composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.results.findings import AuditResult, Finding, load_result
from symbal_hf.results.repaired import OutputFormat, Policy, Repaired, RowError

DIFF, SUMMARY = "diff.jsonl", "repair.json"


def repair(
    result: AuditResult | str | Path,
    *,
    policy: Policy,
    out: str | Path,
    findings: Sequence[int] | None = None,
    vocabulary: str | Path | Mapping[str, Sequence[str]] | None = None,
    output_format: OutputFormat = "auto",
    chat: str | ChatModel | None = None,
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> Repaired:
    """Write the audited dataset anew without the errors that the audit found.

    All rows and columns of the source are kept as they are and in order, whether the audit looked at them or not;
    only captions of rows that a finding is about change. Images are not copied. The source is never written.

    Args:
        result: the audit, or the folder that it was written to.
        policy: "flag" adds the columns `symbal_flag` (None where the audit did not look at a row) and `symbal_errors`;
            "drop-sentence" takes the wrong sentences out of the captions, and rows out of which nothing would remain;
            "drop-row" leaves the rows out; "rewrite" lets a chat model say the caption without the error, and drops
            the sentences where its answer fails a check.
        out: a new folder (or an empty one) for the table, diff.jsonl and repair.json. It appears whole or not at all.
        findings: which of `result.findings`, counted from 0; all of them by default. What is only suspected follows
            (`result.suspected`), and is repaired if told so.
        vocabulary: classes with synonyms, where the audit had them in memory or their file lies elsewhere now.
        output_format: "auto" is the source's own for tables of JSON lines, JSON, CSV, TSV and parquet, among them
            conversations, of which only the text of the first answer changes; parquet for any other source.
        chat: the model of the policy "rewrite": hf:MODEL[@revision], openai:URL#MODEL, or an object.
        store: where answers and embeddings are kept; by default one file under the user's cache folder.
        progress: wraps long loops.
        options: flat keywords of `Repairing` in `symbal_hf.followup.options` (suspected) and of `Moved`, `Asking`,
            `Placing` and `Chance` in `symbal_hf.core.options`. A source may also be the audited rows themselves, where
            they were in memory; image_root is looked at only to check rewritten captions, and a folder of `prompts` has
            a rewrite_caption.jinja.

    Raises:
        BadData: rows that are not those that were audited, a format that cannot hold them, `out` is not empty, or a
            finding that is only suspected, without `suspected`.
        ChatFailed: the chat model gave no answer at all.
        FileNotFoundError: no audit, no source.
        TypeError: an option that is not there.
        ValueError: an unknown policy or format, or a finding that the audit does not have.

    >>> import symbal_hf
    >>> toilet = {"caption": "A toilet. A sink.", "objects": ["toilet"]}
    >>> others = [{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A sink.", "objects": ["sink"]}]
    >>> result = symbal_hf.audit([toilet, *others] * 20, scorer="objects")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = f"{folder}/clean"
    ...     symbal_hf.repair(result, policy="drop-sentence", out=out, source=[toilet, *others] * 20).counts.changed
    20
    """
    result = result if isinstance(result, AuditResult) else load_result(result)
    repairing, moved, asking, placing, chance = take(options, Repairing, Moved, Asking, Placing, Chance, by="repair")
    _check(result, policy, output_format, chat, asking, placing, chance)
    chosen, alone = _chosen(result, findings, suspected=repairing.suspected)
    out = Path(out)
    data, where = _audited_rows(result, out, moved)
    words = load_vocabulary(vocabulary) if isinstance(vocabulary, (str, Path)) else vocabulary
    words = words if words is not None else audited_vocabulary(result)
    assert data.numbers is not None and data.told_in is not None
    wrong, rows = _wrong(chosen, data)
    captions = {number: data.captions[row] for number, row in rows.items()}
    rewrites, provenance = dict[int, Rewrite](), dict[str, Any]()
    if policy == "rewrite" and wrong:
        from symbal_hf.followup.rewrite import named_by, rewritten
        from symbal_hf.models.parts import named, parts_with

        specs, objects = named({"chat": chat})
        fields = {"store": store or Store(), "objects": objects, "progress": progress}
        parts = parts_with(audited_composition(result.provenance), asking, placing, **fields)
        names = {finding.textual_error: named_by(finding, words) for finding in chosen}
        rewrites, provenance = rewritten(
            data, wrong, captions, names, parts=parts, spec=str(specs["chat"]), vocabulary=words, seed=chance.seed
        )
        provenance |= {"checked_by": result.provenance.get("scorer")}
    with _appearing(out) as part:
        with (part / DIFF).open("w", encoding="utf-8") as file:
            plan = Plan(
                policy=policy,
                wrong=wrong,
                ids={number: data.ids[row] for number, row in rows.items()},
                captions=captions,
                audited=_judged(result, data),
                column=data.told_in[0],
                chat=data.told_in[1],
                record=lambda change: file.write(literal(change.to_dict()) + "\n"),
                rewrites=rewrites,
            )
            opened = open_source(where, (data.read or {}).get("source_format", "auto"))
            table = out / write_table(opened, part, output_format, plan).relative_to(part)
        counts = plan.counts()
        again, dropped = out.with_name(f"{out.name}-audit"), counts.rows_dropped + counts.emptied
        command, notes = audit_command(
            result, data, table, out=again, kind=opened.kind, join=moved.join, dropped=dropped, vocabulary=vocabulary
        )
        done = Repaired(policy, counts, out, table, out / DIFF, out / SUMMARY, command, notes + alone, provenance)
        (part / SUMMARY).write_text(_summary(done, result, chosen, opened.name), "utf-8")
    return done


def _check(result: AuditResult, policy: Policy, output_format: OutputFormat, chat: Any, *groups: Group) -> None:
    """Raise where an option makes no sense, before anything is read."""
    for name, value, known in (("policy", policy, Policy), ("output_format", output_format, OutputFormat)):
        if value not in get_args(known):
            raise ValueError(f"{name}={value!r}; it is one of {', '.join(get_args(known))}.")
    if policy == "rewrite" and chat is None:
        raise ValueError("policy='rewrite' asks a chat model; name it with chat: hf:MODEL or openai:URL#MODEL.")
    if policy != "rewrite":
        refuse_idle("only the policy rewrite asks a chat model", chat=chat, **values_of(*groups))
    elif result.provenance.get("models", {}).get("composition") is None:  # of which rewritten captions are checked
        refuse_idle_of_chat(chat, **values_of(*groups[:-1]))


def _chosen(
    result: AuditResult, numbers: Sequence[int] | None, *, suspected: bool
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings to repair, and a note on suspects that are left alone.

    Raises where there is no such finding, or where it is suspected and that was not told.
    """
    known = (*result.findings, *result.suspected)
    chosen = known if suspected else result.findings
    if numbers is not None:
        if odd := [n for n in numbers if not 0 <= n < len(known)]:
            has = f"the audit has findings 0 to {len(known) - 1}" if known else "the audit found nothing"
            raise ValueError(f"no finding {odd[0]}; {has}.")
        chosen = tuple(known[n] for n in dict.fromkeys(numbers))
    only = next((f for f in chosen if f.state == "suspected"), None)
    if suspected and only is None:
        refuse_idle("none of these findings is only suspected", suspected=True)
    if only is not None and not suspected:
        raise BadData(
            f"finding {known.index(only)}, {only.textual_error!r} with {only.visual_feature!r}, rests on one judge's "
            "word and is only suspected; to repair it all the same, give suspected (--suspected)."
        )
    left = ", ".join(f"{f.textual_error!r} with {f.visual_feature!r}" for f in result.suspected if f not in chosen)
    note = f"{left}: only suspected, and not repaired unless told so by suspected (--suspected)"
    return chosen, (note,) if left else ()


def _audited_rows(result: AuditResult, out: Path, moved: Moved) -> tuple[AuditData, Any]:
    """The rows that were audited, and what they are read from; raises where `out` lies in it or holds something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadData(f"{out} is there already, and nothing is overwritten; name a new folder with out (--out).")
    source = moved.source
    if source is not None and not isinstance(source, (str, Path)) and not hasattr(source, "column_names"):
        source = list(source)  # it is read twice
    data = reread(result, **{**values_of(moved), "source": source})
    where = source if source is not None else result.provenance["read"]["source"]
    if isinstance(where, (str, Path)) and Path(where).exists() and out.resolve().is_relative_to(Path(where).resolve()):
        raise BadData(f"out={out} lies in the source {where}, which is never written; name a folder elsewhere.")
    return data, where


@contextmanager
def _appearing(out: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `out` when all is written and vanishes where something fails."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        yield part
        try:
            part.replace(out)
        except OSError as error:
            raise BadData(f"{out} has been filled meanwhile, and nothing is overwritten ({error}).") from error
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _wrong(findings: Sequence[Finding], data: AuditData) -> tuple[dict[int, tuple[RowError, ...]], dict[int, int]]:
    """What is wrong in each row, by its number in the source, and the same rows' places in `data`; paired by id."""
    assert data.numbers is not None
    errors: dict[str, list[RowError]] = {}
    for finding in findings:
        for row in finding.affected:
            error = RowError(finding.textual_error, finding.visual_feature, row.sentences)
            errors.setdefault(row.row_id, []).append(error)
    rows = {data.numbers[row]: row for row, row_id in enumerate(data.ids) if row_id in errors}
    if len(rows) < len(errors):
        known = set(data.ids)
        lost = next(row_id for row_id in errors if row_id not in known)
        raise BadData(f"row {lost} of the audit is not in {data.source}; name the file that was audited with --source.")
    return {number: tuple(errors[data.ids[row]]) for number, row in rows.items()}, rows


def _judged(result: AuditResult, data: AuditData) -> set[int]:
    """Numbers of the rows that the audit judged: those that it read, without those whose image it could not."""
    assert data.numbers is not None
    at_reading = {(s.row_id, s.reason) for s in data.skipped}
    unreadable = {s.row_id for s in result.skipped if (s.row_id, s.reason) not in at_reading}
    return {number for number, row_id in zip(data.numbers, data.ids, strict=True) if row_id not in unreadable}


def _summary(done: Repaired, result: AuditResult, findings: Sequence[Finding], source: str) -> str:
    """The content of repair.json."""
    content = {
        "policy": done.policy,
        "counts": {**asdict(done.counts), "changed": done.counts.changed, "written": done.counts.written},
        "findings": [
            {
                "textual_error": f.textual_error,
                "visual_feature": f.visual_feature,
                "rows": len(f.affected),
                "state": f.state,
            }
            for f in findings
        ],
        "table": done.table.relative_to(done.folder).as_posix(),
        "command": done.command,
        "notes": list(done.notes),
        "provenance": {
            "symbal_hf": version("symbal-hf"),
            "source": source,
            "audit": result.provenance,
            **done.provenance,
        },
    }
    return json.dumps(content, ensure_ascii=True, indent=2) + "\n"
