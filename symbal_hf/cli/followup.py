"""`symbal validate`, `compare`, `repair` and `report`: what becomes of a finished audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from symbal_hf.cli.options import AuditArgument, Only, VocabularyOption, like
from symbal_hf.cli.screen import progress, say, say_by, show_table
from symbal_hf.core.options import Asking, Chance, Moved, Parts, Placing, Reading, given
from symbal_hf.followup.options import Comparing, Looking, Repairing
from symbal_hf.results.repaired import OutputFormat, Policy

if TYPE_CHECKING:
    from symbal_hf.results.comparison import Comparison
    from symbal_hf.results.validation import Validated


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
    say_by("validation", found=found, about=found.provenance, sentence=sentence)
    if looking.human_template is not None:
        say(f"wrote {looking.human_template}: fill in its last column and pass it to --human")
    path = found.write(folder)
    page = write_report_of(folder, progress=progress, **where)
    say(f"wrote {path}, {page.path}" + (f" (no pictures: {page.no_pictures})" if page.no_pictures else ""))


def sentence(one: Validated) -> str:
    """One finding in a sentence, as the paper says it."""
    ratio, low, high = (
        f"{x:,.1f}" if x >= 1 else f"{x:.2g}" for x in (one.risk_ratio, one.risk_ratio_low, one.risk_ratio_high)
    )
    t, v = f'"{one.textual_error}"', f'"{one.visual_feature}"'
    rows, open_ = one.rows_with_feature + one.rows_without_feature, f"{one.undecided:,} undecided"
    if not rows:
        return f"Of no row it is known whether {v} is in view and whether {t} is referred to erroneously ({open_})."
    if not one.rows_with_feature or not one.rows_without_feature:
        which = "in every one" if one.rows_with_feature else "in none"
        return f"Nothing can be compared: {v} is in view {which} of {rows:,} rows ({open_})."
    if one.undecided and not one.stated_with_feature + one.stated_without_feature:
        return f"Of no caption that states {t} it is known whether that is an error ({open_})."
    if not one.errors_with_feature + one.errors_without_feature:
        return f"There is no erroneous reference to {t} in {rows:,} rows ({open_})."
    with_v, without_v = (f"{n:,}" if n else "none" for n in (one.errors_with_feature, one.errors_without_feature))
    counts = f"{with_v} of {one.rows_with_feature:,} rows against {without_v} of {one.rows_without_feature:,}; {open_}"
    if not one.errors_with_feature or not one.errors_without_feature:
        counts += "; half a row is added to each count"
    return (
        f"Erroneous references to {t} are {ratio} times as likely when {v} is in view (95 % CI "
        f"{low} to {high}; {counts})."
    )


def compare(
    a: Annotated[Path, typer.Argument(help="Folder of the audit from before, with its findings.json.")],
    b: Annotated[Path, typer.Argument(help="Folder of the audit from after.")],
    *,
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
    comparing: Comparing,
) -> None:
    """Compare two audits: which errors are less, more or shown to be the same, and what is not shown."""
    from symbal_hf.followup.compare import compare as run_compare
    from symbal_hf.results.comparison import check_new

    check_new(out)
    how = {"match": match, "measure": measure, "source_a": source_a, "source_b": source_b}
    found = run_compare(a, b, progress=progress, **how, **given(comparing))  # type: ignore[arg-type]
    _show_comparison(found)
    for note in found.notes:
        say(f"note: {note}")
    say(found.sentence)
    say("wrote " + ", ".join(str(path) for path in found.write(out).values()))


def _show_comparison(found: Comparison) -> None:
    from symbal_hf.results.comparison import cells

    if not found.findings:
        return
    how = "the same images" if found.paired else f"not paired: {found.why_unpaired}"
    names = ("captions wrongly say", "when the image shows", "in B")
    numbers = ("A: with / without", "B: with / without", "points (95 %)", "p (Holm)")
    show_table(f"A: {found.a.source}, B: {found.b.source} ({how})", names, numbers, map(cells, found.findings))
    if found.counts["same"] or found.counts["not shown"]:
        say(found.about_same)
    for one in found.findings:
        if one.reason is not None:
            say(f"{one.textual_error} with {one.visual_feature} was not measured: {one.reason}")


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
    repairing: Repairing,
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
        **given(repairing, moved, asking, placing, chance),
    )
    say_by("repair", done=done, counts=done.counts)


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
