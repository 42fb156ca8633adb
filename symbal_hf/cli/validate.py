"""`symbal validate`: a second look at the findings of an audit, by a detector, a scorer and, where asked, a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from symbal_hf.cli.options import (
    ConcurrencyOption,
    DeviceMapOption,
    DeviceOption,
    DtypeOption,
    PromptsOption,
    SeedOption,
)
from symbal_hf.cli.screen import progress, say

if TYPE_CHECKING:
    from symbal_hf.results.validation import HumanAgreement, Validated, Validation


def validate_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `symbal audit --out DIR` wrote.")],
    detector: Annotated[
        str,
        typer.Option(
            help="Says where v is in view: objects, owlv2, owlv2-base or hf:MODEL[@revision] (OWL, Grounding DINO). "
            "auto: objects where the rows have them, else owlv2."
        ),
    ] = "auto",
    scorer: Annotated[
        str,
        typer.Option(
            help="Says which references to t are erroneous: objects, detector, audit (no second look), "
            "hf:MODEL or openai:URL#MODEL. auto: objects where the rows have them, else detector."
        ),
    ] = "auto",
    threshold: Annotated[
        float | None, typer.Option(help="Score from which on the detector sees something, in (0, 1].")
    ] = None,
    calibrate: Annotated[
        Literal["objects"] | None,
        typer.Option(help="Choose the threshold where it fits the rows' known objects best (balanced accuracy)."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Where the audited rows lie now.")] = None,
    join: Annotated[Path | None, typer.Option(help="A second table, paired by id, such as objects.jsonl.")] = None,
    image_root: Annotated[Path | None, typer.Option(help="Folder that image paths are relative to.")] = None,
    image_column: Annotated[str | None, typer.Option(help="Column of images or image paths.")] = None,
    objects_column: Annotated[str | None, typer.Option(help="Column of the objects that are truly there.")] = None,
    allow_download: Annotated[bool, typer.Option("--allow-download", help="Fetch images that are URLs.")] = False,
    vocabulary: Annotated[
        Path | None, typer.Option(help="JSON {class: [synonyms]} or one class a line; the audit's by default.")
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(help="Table of a person's labels: id, erroneous (1/0, yes/no), perhaps textual_error."),
    ] = None,
    human_template: Annotated[
        Path | None, typer.Option(help="Write a CSV of rows for a person to label; never overwrites.")
    ] = None,
    human_rows: Annotated[int, typer.Option(help="Rows in it for each finding.")] = 100,
    chat: Annotated[str | None, typer.Option(help="CHAT of a scorer that names none (vision-language).")] = None,
    prompts: PromptsOption = None,
    concurrency: ConcurrencyOption = 32,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images that a detector looks at together.")] = None,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    device_map: DeviceMapOption = None,
    seed: SeedOption = 0,
) -> None:
    """Look at an audit's findings again: how much likelier the error is where v is in view, and who agrees."""
    from symbal_hf.followup.validate import validate
    from symbal_hf.report.folder import write_report_of

    where: dict[str, Any] = {
        "source": source, "join": join, "image_root": image_root, "image_column": image_column,
        "objects_column": objects_column, "allow_download": allow_download or None,
    }  # fmt: skip
    found = validate(
        folder, detector=detector, scorer=scorer, threshold=threshold, calibrate=calibrate, vocabulary=vocabulary,
        human=human, human_template=human_template, human_rows=human_rows, chat=chat, prompts=prompts,
        concurrency=concurrency, batch_size=batch_size, device=device, dtype=dtype, device_map=device_map, seed=seed,
        progress=progress, **where,
    )  # fmt: skip
    if not found.findings:
        say(f"nothing to validate: {found.provenance['why']}")
        return
    for line in lines(found):
        say(line)
    if human_template is not None:
        say(f"wrote {human_template}: fill in its last column and pass it to --human")
    path = found.write(folder)
    report = write_report_of(folder, progress=progress, **where)
    say(f"wrote {path}, {report.path}" + (f" (no pictures: {report.no_pictures})" if report.no_pictures else ""))


def lines(found: Validation) -> list[str]:
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
