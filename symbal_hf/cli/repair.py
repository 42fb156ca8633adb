"""`symbal repair`: from the folder of an audit to a dataset without its errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from symbal_hf.cli.options import DeviceMapOption, DeviceOption, DtypeOption, SeedOption
from symbal_hf.cli.screen import progress, say
from symbal_hf.results.repaired import OutputFormat, Policy

if TYPE_CHECKING:
    from symbal_hf.results.repaired import Repaired

WORDS = {
    "flagged": "flagged",
    "sentences_dropped": "had wrong sentences taken out",
    "rewritten": "rewritten",
    "rows_dropped": "left out",
    "emptied": "left out since nothing of the caption would remain",
    "not_found": "left as they were since a wrong sentence was not found in the caption",
    "untouched": "untouched",
}


def repair(
    audit: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an audit: what `symbal audit --out` wrote.")],
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
    source: Annotated[str | None, typer.Option(help="Where the audited rows are now, if they have been moved.")] = None,
    image_root: Annotated[Path | None, typer.Option(help="Where the images are now, if they have been moved.")] = None,
    join: Annotated[Path | None, typer.Option(help="Where the joined table is now, if it has been moved.")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="Where the vocabulary is now, if it has been moved.")] = None,
    output_format: Annotated[
        OutputFormat, typer.Option(help="Of the table. auto: the source's own, where that is a table; else parquet.")
    ] = "auto",
    chat: Annotated[
        str | None, typer.Option(help="CHAT that rewrites: hf:MODEL[@revision] or openai:URL#MODEL.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(help="Folder whose rewrite_caption.jinja replaces the packaged prompt.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions in flight to one server.")] = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    device_map: DeviceMapOption = None,
    seed: SeedOption = 0,
) -> None:
    """Write an audited dataset anew without the errors that were found in it."""
    from symbal_hf.followup.repair import repair as run_repair

    done = run_repair(
        audit, policy=policy, out=out, findings=findings or None, source=source, image_root=image_root, join=join,
        vocabulary=vocabulary, output_format=output_format, chat=chat, prompts=prompts, concurrency=concurrency,
        device=device, dtype=dtype, device_map=device_map, seed=seed, progress=progress,
    )  # fmt: skip
    for line in told(done):
        say(line)


def told(done: Repaired) -> list[str]:
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
