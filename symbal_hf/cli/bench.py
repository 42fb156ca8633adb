"""`symbal bench`: plant a known error, build a benchmark of them, draw its statistics, publish it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from symbal_hf.cli.options import SeedOption
from symbal_hf.cli.screen import progress, say

bench = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make datasets with known systematic errors, one or hundreds."
)

FolderArgument = Annotated[Path, typer.Argument(help="Folder of a built benchmark.")]


@bench.command()
def plant(
    source: Annotated[Path, typer.Argument(help="A table with captions and objects columns.")],
    out: Annotated[Path, typer.Option(help="The new table (.jsonl); the truth goes beside it, to NAME.truth.json.")],
    textual_error: Annotated[str, typer.Option(help="t: the object that captions will state wrongly.")],
    visual_feature: Annotated[str, typer.Option(help="v: the object that the error goes with.")],
    strength: Annotated[float, typer.Option(help="Target Cramér's V, in (0, 1].")] = 0.6,
    vocabulary: Annotated[Path | None, typer.Option(help="Synonyms, so that no caption speaks of t already.")] = None,
    caption_column: Annotated[str | None, typer.Option(help="Column of captions.")] = None,
    objects_column: Annotated[str | None, typer.Option(help="Column of objects.")] = None,
    image_root: Annotated[Path | None, typer.Option(help="Folder that image paths are relative to.")] = None,
    join: Annotated[Path | None, typer.Option(help="A second table, paired by id, such as objects.jsonl.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Plant one systematic error of a chosen strength into a dataset whose objects are known."""
    from benchmark_builder.planting.plant_file import plant_file

    planted = plant_file(
        source, out, textual_error=textual_error, visual_feature=visual_feature, strength=strength, seed=seed,
        vocabulary=vocabulary, caption_column=caption_column, objects_column=objects_column,
        image_root=image_root, join=join,
    )  # fmt: skip
    plan = planted.plan
    say(
        f"wrote {out}: {plan.with_feature + plan.without_feature} captions now state {textual_error!r} wrongly, "
        f"{plan.with_feature} of them with {visual_feature!r}; Cramér's V {plan.achieved:.3f} (target {strength})"
    )


@bench.command()
def build(
    base: Annotated[
        Literal["coco", "mimic_cxr", "openi", "scenes", "custom"],
        typer.Option(help="Whose images and captions; scenes are drawn here, the others are your own copy."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the benchmark; other bases in it stay.")] = Path("symbalbench"),
    source: Annotated[
        Path | None, typer.Option(help="Folder of your copy; for custom a table, a folder or a Hub id.")
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            help="table: the paper's pairs (the default for coco, mimic_cxr, openi). random, popular, adversarial: a t "
            "drawn for each v (all three elsewhere). Several are separated by commas."
        ),
    ] = None,
    pairs: Annotated[
        Path | None, typer.Option(help="CSV with textual_error,visual_feature, instead of sampling.")
    ] = None,
    strengths: Annotated[str, typer.Option(help="Target Cramér's V, separated by commas.")] = "0.3,0.6,0.9",
    statistics: Annotated[
        Path | None,
        typer.Option(help="Table with objects, or COCO's instances JSON, for popular and adversarial; else the base."),
    ] = None,
    min_images: Annotated[int, typer.Option(help="An error with a v in fewer images is not called systematic.")] = 10,
    name: Annotated[str | None, typer.Option(help="custom: first part of the config names.")] = None,
    licence: Annotated[str | None, typer.Option(help="custom: terms of the data, for the card.")] = None,
    rows: Annotated[int | None, typer.Option(help="scenes: how many; 4,349 by default.")] = None,
    size: Annotated[int | None, typer.Option(help="scenes: pixels of a side; 256 by default.")] = None,
    min_area: Annotated[float | None, typer.Option(help="coco: least share of the image of an object; 0.05.")] = None,
    small_objects: Annotated[
        Literal["present", "ignored"] | None,
        typer.Option(help="coco: whether smaller objects keep an error from being planted; present by default."),
    ] = None,
    reports: Annotated[Path | None, typer.Option(help="mimic_cxr: folder of the reports, when elsewhere.")] = None,
    radgraph: Annotated[Path | None, typer.Option(help="mimic_cxr: RadGraph-XL output, JSON lines.")] = None,
    annotations: Annotated[Path | None, typer.Option(help="mimic_cxr: CSV of physician annotations.")] = None,
    join: Annotated[Path | None, typer.Option(help="custom: a second table, paired by id.")] = None,
    vocabulary: Annotated[Path | None, typer.Option(help="custom: synonyms of the objects.")] = None,
    caption_column: Annotated[str | None, typer.Option(help="custom: column of true captions.")] = None,
    reference_column: Annotated[str | None, typer.Option(help="custom: column of references.")] = None,
    objects_column: Annotated[str | None, typer.Option(help="custom: column of objects.")] = None,
    image_column: Annotated[str | None, typer.Option(help="custom: column of images.")] = None,
    image_root: Annotated[Path | None, typer.Option(help="custom: folder that image paths are relative to.")] = None,
    images: Annotated[bool, typer.Option(help="Store the images, once for all settings.")] = True,
    seed: SeedOption = 0,
) -> None:
    """Plant every pair at every strength; write parquet, a card and statistics that load_dataset and the Hub read."""
    from benchmark_builder.bases.load import read_base
    from benchmark_builder.planting.pairs import pairs_for, read_pairs, read_statistics
    from benchmark_builder.writing.build import build as run_build
    from symbal_hf.data.benchmarks import remember

    found = read_base(
        base, source, name=name, licence=licence, rows=rows, size=size, min_area=min_area, small_objects=small_objects,
        reports=reports, radgraph=radgraph, annotations=annotations, join=join, vocabulary=vocabulary,
        caption_column=caption_column, reference_column=reference_column, objects_column=objects_column,
        image_column=image_column, image_root=image_root, images=None if images else False, seed=seed,
        progress=progress if base == "mimic_cxr" else None,
    )  # fmt: skip
    for note in found.notes:
        say(note)
    try:
        targets = [float(part) for part in strengths.split(",")]
    except ValueError:
        raise ValueError(f"strengths={strengths!r}; give numbers in (0, 1] separated by commas.") from None
    how = tuple(part.strip() for part in (sampling or "").split(",") if part.strip())
    counts = read_statistics(statistics) if statistics else None
    chosen = read_pairs(pairs) if pairs else pairs_for(found, how, statistics=counts, min_images=min_images, seed=seed)
    built = run_build(
        found, out, pairs=chosen, strengths=targets, sampling=str(pairs or ",".join(how) or "default"),
        min_images=min_images, seed=seed, progress=progress,
    )  # fmt: skip
    remember(out)
    _print_table(out)
    if not built.has_figures:
        typer.echo(
            "no figures: they need matplotlib (pip install 'symbal-hf[report]', then symbal bench stats)", err=True
        )
    name_of = f"{found.name}-clean-reference_free"
    say(f"wrote {len(built.feasible)} settings of {len(built.settings)} candidates to {out}")
    say(f"load_dataset({str(out)!r}, {name_of!r}, split='test') gives the captions before anything was planted")


@bench.command()
def stats(
    folder: FolderArgument,
    out: Annotated[Path | None, typer.Option(help="Where to; by default the benchmark's own statistics/.")] = None,
) -> None:
    """Draw the paper's Figures 6 and 7 for a benchmark as PNG and CSV, and print the table."""
    from benchmark_builder.writing.card import write_card
    from benchmark_builder.writing.stats import write_statistics

    own = folder / "statistics"
    paths = write_statistics(folder, out or own)
    if out is None or out.resolve() == own.resolve():
        write_card(folder, statistics=True)
    _print_table(folder)
    say("wrote " + ", ".join(str(path) for path in paths.values()))


def _print_table(folder: Path) -> None:
    from rich.console import Console

    from benchmark_builder.writing.stats import statistics, table

    Console(width=None if sys.stdout.isatty() else 120).print(table(statistics(folder)))


@bench.command()
def publish(
    folder: FolderArgument,
    repo: Annotated[str, typer.Option(help="Dataset repo on the Hub: namespace/name.")],
    create_pr: Annotated[bool, typer.Option(help="Open a pull request instead of committing.")] = False,
    private: Annotated[bool, typer.Option(help="Make a new repo private.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch to commit to.")] = None,
    message: Annotated[str | None, typer.Option(help="Commit message.")] = None,
) -> None:
    """Push a benchmark to a Hub dataset repo; data whose terms forbid that are refused."""
    from benchmark_builder.writing.publish import publish as run_publish

    url = run_publish(folder, repo, create_pr=create_pr, private=private, revision=revision, message=message)
    say(f"published {folder}: {url}")
