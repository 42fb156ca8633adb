"""`symbal validate`, `compare`, `repair` and `report`: what becomes of a finished audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from symbal_hf.cli.options import AuditArgument, Only, VocabularyOption, like, with_options
from symbal_hf.cli.screen import progress, say, screen
from symbal_hf.core.options import Asking, Chance, Moved, Parts, Placing, Reading, given
from symbal_hf.followup.options import Looking
from symbal_hf.results.repaired import OutputFormat, Policy

if TYPE_CHECKING:
    from symbal_hf.results.comparison import Comparison
    from symbal_hf.results.repaired import Repaired
    from symbal_hf.results.validation import HumanAgreement, Validated, Validation

WORDS = {
    "flagged": "flagged",
    "sentences_dropped": "had wrong sentences taken out",
    "rewritten": "rewritten",
    "rows_dropped": "left out",
    "emptied": "left out since nothing of the caption would remain",
    "not_found": "left as they were since a wrong sentence was not found in the caption",
    "untouched": "untouched",
}


@with_options
def validate(
    folder: AuditArgument,
    *,
    vocabulary: VocabularyOption = None,
    looking: Looking,
    moved: Annotated[Moved, Only(join="A second table, paired by id, such as objects.jsonl.")],
    reading: Annotated[Reading, Only("image_column", "objects_column", "allow_download")],
    asking: Asking,
    placing: Placing,
    chance: Chance,
) -> None:
    """Look at an audit's findings again: how much likelier the error is where v is in view, and who agrees."""
    from symbal_hf.followup.validate import validate as run_validate
    from symbal_hf.report.folder import write_report_of

    where = given(moved, reading)
    how = given(looking, asking, placing, chance)
    found = run_validate(folder, vocabulary=vocabulary, progress=progress, **where, **how)
    if not found.findings:
        say(f"nothing to validate: {found.provenance['why']}")
        return
    for line in _validation_lines(found):
        say(line)
    if looking.human_template is not None:
        say(f"wrote {looking.human_template}: fill in its last column and pass it to --human")
    path = found.write(folder)
    page = write_report_of(folder, progress=progress, **where)
    say(f"wrote {path}, {page.path}" + (f" (no pictures: {page.no_pictures})" if page.no_pictures else ""))


def _validation_lines(found: Validation) -> list[str]:
    """What is said of a validation, a line each."""
    about = found.provenance
    out = [f"detector {found.detector}, scorer {found.scorer}, {about['rows']:,} rows of {about['source']}"]
    if found.detector != "objects" or found.scorer == "detector":
        out[0] += f", seen from a score of {about['threshold']:.3g}"
    if fitted := about.get("calibrated"):
        out.append(
            f"the threshold fits {fitted['rows']:,} known (row, name) best: sensitivity "
            f"{fitted['sensitivity']:.2f}, specificity {fitted['specificity']:.2f}"
        )
    for one, undecided in zip(found.findings, about["undecided"], strict=True):
        out.append(sentence(one))
        if one.undecided:
            out.append(
                f"  undecided: {undecided['feature']:,} as to {one.visual_feature!r}, {undecided['reference']:,} as to "
                f"the reference to {one.textual_error!r}, {undecided['both']:,} as to both"
            )
        if one.human is not None:
            out.append(f"  {_agreement(one.human)}")
    if about["unknown_to_objects"]:
        names = ", ".join(map(repr, about["unknown_to_objects"]))
        out.append(f"the objects have no word for {names}; add it with --vocabulary, or use another detector or scorer")
    if about["unreadable_images"]:
        out.append(f"{about['unreadable_images']:,} images cannot be read")
    if (human := about.get("human")) and (human["blank"] or human["strange"]):
        strange = f", {human['strange'][0]!r} and others unknown to the audit" if human["strange"] else ""
        out.append(f"of the labels {human['blank']:,} are empty{strange}")
    if not found.independent:
        out.append(
            "this is no independent look: the detector or the scorer is what the audit itself judged by, or the same "
            "model; agreement proves nothing new"
        )
    return out


def sentence(one: Validated) -> str:
    """One finding in a sentence, as the paper says it."""
    t, v = f'"{one.textual_error}"', f'"{one.visual_feature}"'
    rows, open_ = one.rows_with_feature + one.rows_without_feature, f"{one.undecided:,} undecided"
    if not rows:
        return f"Of no row it is known whether {v} is in view and whether {t} is referred to erroneously ({open_})."
    if not one.rows_with_feature or not one.rows_without_feature:
        which = "in every one" if one.rows_with_feature else "in none"
        return f"Nothing can be compared: {v} is in view {which} of {rows:,} rows ({open_})."
    if not one.errors_with_feature + one.errors_without_feature:
        return f"There is no erroneous reference to {t} in {rows:,} rows ({open_})."
    counts = (
        f"{_count(one.errors_with_feature)} of {one.rows_with_feature:,} rows against "
        f"{_count(one.errors_without_feature)} of {one.rows_without_feature:,}; {open_}"
    )
    if not one.errors_with_feature or not one.errors_without_feature:
        counts += "; half a row is added to each count"
    return (
        f"Erroneous references to {t} are {_times(one.risk_ratio)} times as likely when {v} is in view (95 % CI "
        f"{_times(one.risk_ratio_low)} to {_times(one.risk_ratio_high)}; {counts})."
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.1f}" if ratio >= 1 else f"{ratio:.2g}"


def _count(n: int) -> str:
    return f"{n:,}" if n else "none"


def _agreement(human: HumanAgreement) -> str:
    if not human.rows:
        return "none of the labelled rows is decided"
    kappa = (
        "kappa undefined, since all answers are the same" if human.kappa is None else
        f"Cohen's kappa {human.kappa:.2f}, 95 % CI {human.low:.2f} to {human.high:.2f}"
    )  # fmt: skip
    share = f"{human.agreed / human.rows:.1%}"
    return f"a person agrees on {human.agreed:,} of {human.rows:,} labelled rows ({share}; {kappa})"


def compare(
    a: Annotated[Path, typer.Argument(help="Folder of the audit from before, with its findings.json.")],
    b: Annotated[Path, typer.Argument(help="Folder of the audit from after.")],
    out: Annotated[
        Path, typer.Option(help="New or empty folder for comparison.json, comparison.csv and comparison.md.")
    ] = Path("symbal-comparison"),
    match: Annotated[
        Literal["lite", "exact"], typer.Option(help="Who says that two names mean one thing; exact needs no model.")
    ] = "lite",
    measure: Annotated[
        bool, typer.Option(help="Read and judge the rows again, so that each finding is measured on both sides.")
    ] = True,
    source_a: Annotated[Path | None, typer.Option(help="Where the rows of A lie now, if they were moved.")] = None,
    source_b: Annotated[Path | None, typer.Option(help="Where the rows of B lie now, if they were moved.")] = None,
) -> None:
    """Compare two audits: which errors are gone, less, the same, more or new."""
    from symbal_hf.followup.compare import compare as run_compare
    from symbal_hf.results.comparison import check_new

    check_new(out)
    found = run_compare(a, b, match=match, measure=measure, source_a=source_a, source_b=source_b, progress=progress)
    _show_comparison(found)
    for note in found.notes:
        say(f"note: {note}")
    say(found.sentence)
    say("wrote " + ", ".join(str(path) for path in found.write(out).values()))


def _show_comparison(found: Comparison) -> None:
    from rich.markup import escape
    from rich.table import Table

    from symbal_hf.results.comparison import SAME, cells

    if not found.findings:
        return
    how = "the same images" if found.paired else f"not paired: {found.why_unpaired}"
    table = Table(title=f"A: {escape(found.a.source)}, B: {escape(found.b.source)} ({escape(how)})")
    for name in ("captions wrongly say", "when the image shows", "in B"):
        table.add_column(name)
    for name in ("A: with / without", "B: with / without", "points (95 %)", "p (Holm)"):
        table.add_column(name, justify="right")
    for one in found.findings:
        table.add_row(*map(escape, cells(one)))
    screen().print(table)
    if found.counts["same"]:
        say(SAME)
    for one in found.findings:
        if one.reason is not None:
            say(f"{one.textual_error} with {one.visual_feature} was not measured: {one.reason}")


@with_options
def repair(
    audit: AuditArgument,
    *,
    policy: Annotated[
        Policy,
        typer.Option(
            help="flag: add columns. drop-sentence: take the wrong sentences out. drop-row: leave the rows out. "
            "rewrite: let a chat model say the caption without the error."
        ),
    ],
    out: Annotated[Path, typer.Option(help="New folder for the table, diff.jsonl and repair.json.")],
    findings: Annotated[
        list[int] | None, typer.Option(help="Number of a finding, the first is 0; may be given again. All by default.")
    ] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="Where the vocabulary is now, if it has been moved.")] = None,
    output_format: Annotated[
        OutputFormat, typer.Option(help="Of the table. auto: the source's own, where that is a table; else parquet.")
    ] = "auto",
    chat: Annotated[
        str | None, like(Parts, "chat", "CHAT that rewrites: hf:MODEL[@revision] or openai:URL#MODEL.")
    ] = None,
    moved: Moved,
    asking: Annotated[Asking, Only(prompts="Folder whose rewrite_caption.jinja replaces the packaged prompt.")],
    placing: Placing,
    chance: Chance,
) -> None:
    """Write an audited dataset anew without the errors that were found in it."""
    from symbal_hf.followup.repair import repair as run_repair

    done = run_repair(
        audit,
        policy=policy,
        out=out,
        findings=findings or None,
        vocabulary=vocabulary,
        output_format=output_format,
        chat=chat,
        progress=progress,
        **given(moved, asking, placing, chance),
    )
    for line in _repair_lines(done):
        say(line)


def _repair_lines(done: Repaired) -> list[str]:
    """What was done, a sentence a line."""
    counts = done.counts
    parts = [f"{n:,} {words}" for name, words in WORDS.items() if (n := getattr(counts, name)) or name == "untouched"]
    lines = [f"{counts.rows:,} rows: {', '.join(parts)}; {counts.written:,} are in {done.table}"]
    if counts.rewrite_refused:
        lines.append(f"{counts.rewrite_refused:,} rewritten captions were refused; {done.diff.name} says why")
    if counts.unchecked:
        lines.append(f"{counts.unchecked:,} of the rewritten captions could be checked by no scorer")
    if counts.not_audited:
        lines.append(f"{counts.not_audited:,} untouched rows had not been audited, and nothing is known of them")
    if counts.rows == counts.untouched:
        lines.append("the audit names no row, so that nothing was to be done")
    lines.append(f"every change is in {done.diff}, the counts are in {done.summary}")
    if done.command is not None:
        lines += ["to audit it again:", f"  {done.command}"]
    lines += [f"note: {note}" for note in done.notes]
    return lines


@with_options
def report(
    folder: AuditArgument,
    *,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Caption audit",
    moved: Moved,
) -> None:
    """Write report.html anew, with the second look of `symbal validate` where there is one."""
    from symbal_hf.report.folder import write_report_of

    done = write_report_of(folder, title=title, progress=progress, **given(moved))
    if done.no_pictures is not None:
        say(f"no pictures: {done.no_pictures}")
    if done.no_map is not None:
        say(f"no map of facts: {done.no_map}")
    say(f"wrote {done.path}")
