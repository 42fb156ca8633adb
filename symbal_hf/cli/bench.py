"""`symbal bench`: plant a known error, build a benchmark of them, run methods over it, report, draw, publish."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from symbal_hf.cli.options import (
    BenchmarkArgument,
    Commands,
    CreatePrOption,
    KOption,
    Only,
    PresetOption,
    PrivateOption,
    RepoOption,
    RevisionOption,
    StoreOption,
    VocabularyOption,
    store_of,
)
from symbal_hf.cli.screen import progress, say, screen
from symbal_hf.core.options import (
    Asking,
    Chance,
    Group,
    Parts,
    Placing,
    Range,
    Reading,
    Scoring,
    Summing,
    given,
    option,
    refuse_idle,
)

if TYPE_CHECKING:
    from benchmark_builder.bases.base import Base

bench = Commands("Make datasets with known systematic errors, one or hundreds.")

FolderArgument = Annotated[Path, typer.Argument(help="Folder of a built benchmark.")]


@dataclass(frozen=True)
class OfBase(Group):
    """Options of single bases."""

    name: str | None = option(None, "custom: first part of the config names.")
    vocabulary: Path | None = option(None, "custom: synonyms of the objects.")
    licence: str | None = option(None, "custom: terms of the data, for the card.")
    rows: int | None = option(None, "scenes: how many; 4,349 by default;", within=Range(low=1))
    size: int | None = option(None, "scenes: pixels of a side; 256 by default;", within=Range(low=1))
    min_area: float | None = option(
        None, "coco: least share of the image of an object, 0.05 by default, in", within=Range(0, 1)
    )
    small_objects: Literal["present", "ignored"] | None = option(
        None, "coco: whether smaller objects keep an error from being planted; present by default."
    )
    reports: Path | None = option(None, "mimic_cxr: folder of the reports, when elsewhere.")
    radgraph: Path | None = option(None, "mimic_cxr: RadGraph-XL output, JSON lines.")
    annotations: Path | None = option(None, "mimic_cxr: CSV of physician annotations.")


@dataclass(frozen=True)
class Planting(Group):
    """What is planted."""

    sampling: str | None = option(
        None,
        "table: the paper's pairs (the default for coco, mimic_cxr, openi). random, popular, adversarial: a t drawn "
        "for each v (all three elsewhere). Several are separated by commas.",
    )
    pairs: Path | None = option(None, "CSV with textual_error,visual_feature, instead of sampling.")
    strengths: str = option("0.3,0.6,0.9", "Target Cramér's V, separated by commas.")
    statistics: Path | None = option(
        None, "Table with objects, or COCO's instances JSON, for popular and adversarial; else the base."
    )
    min_images: int = option(10, "An error with a v in fewer images is not called systematic.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs is not None:
            refuse_idle("the pairs are given", sampling=self.sampling, statistics=self.statistics)
        elif set(self.how) == {"random"}:
            refuse_idle("only the samplings popular and adversarial go by it", statistics=self.statistics)

    @property
    def how(self) -> tuple[str, ...]:
        """The samplings."""
        return tuple(kind.strip() for kind in (self.sampling or "").split(",") if kind.strip())


Columns = ("image_column", "caption_column", "reference_column", "objects_column", "image_root", "join")
CustomColumns = Only(*Columns, panel="Reading, of the base custom")


@bench.command()
def plant(
    source: Annotated[Path, typer.Argument(help="A table with captions and objects columns.")],
    *,
    out: Annotated[Path, typer.Option(help="The new table (.jsonl); the truth goes beside it, to NAME.truth.json.")],
    textual_error: Annotated[str, typer.Option(help="t: the object that captions will state wrongly.")],
    visual_feature: Annotated[str, typer.Option(help="v: the object that the error goes with.")],
    strength: Annotated[float, typer.Option(help="Target Cramér's V, in (0, 1].")] = 0.6,
    vocabulary: VocabularyOption = None,
    reading: Annotated[Reading, Only("caption_column", "objects_column", "image_root", "join")],
    chance: Chance,
) -> None:
    """Plant one systematic error of a chosen strength into a dataset whose objects are known."""
    from benchmark_builder.planting.plant_file import plant_file

    planted = plant_file(
        source,
        out,
        textual_error=textual_error,
        visual_feature=visual_feature,
        strength=strength,
        vocabulary=vocabulary,
        **given(reading, chance),
    )
    plan = planted.plan
    say(
        f"wrote {out}: {plan.with_feature + plan.without_feature} captions now state {textual_error!r} wrongly, "
        f"{plan.with_feature} of them with {visual_feature!r}; Cramér's V {plan.achieved:.3f} (target {strength})"
    )


@bench.command()
def build(
    *,
    base: Annotated[
        Literal["coco", "mimic_cxr", "openi", "scenes", "custom"],
        typer.Option(help="Whose images and captions; scenes are drawn here, the others are your own copy."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the benchmark; other bases in it stay.")] = Path("symbalbench"),
    source: Annotated[
        Path | None, typer.Option(help="Folder of your copy; for custom a table, a folder or a Hub id.")
    ] = None,
    images: Annotated[bool, typer.Option(help="Store the images, once for all settings.")] = True,
    planting: Planting,
    of_base: OfBase,
    reading: Annotated[Reading, CustomColumns],
    chance: Chance,
) -> None:
    """Plant every pair at every strength; write parquet, a card and statistics that load_dataset and the Hub read."""
    from benchmark_builder.bases.load import read_base
    from benchmark_builder.writing.build import build as run_build
    from symbal_hf.data.benchmarks import remember

    found = read_base(
        base,
        source,
        images=None if images else False,
        seed=chance.seed,
        progress=progress if base == "mimic_cxr" else None,
        **given(of_base, reading),
    )
    for note in found.notes:
        say(note)
    built = run_build(
        found,
        out,
        pairs=_pairs(found, planting, chance.seed),
        strengths=_numbers(planting.strengths),
        sampling=str(planting.pairs or ",".join(planting.how) or "default"),
        min_images=planting.min_images,
        seed=chance.seed,
        progress=progress,
    )
    remember(out)
    _print_table(out)
    if not built.has_figures:
        need = "they need matplotlib (pip install 'symbal-hf[report]', then symbal bench stats)"
        typer.echo(f"no figures: {need}", err=True)
    say(f"wrote {len(built.feasible)} settings of {len(built.settings)} candidates to {out}")
    clean = f"{found.name}-clean-reference_free"
    say(f"load_dataset({str(out)!r}, {clean!r}, split='test') gives the captions before anything was planted")


def _numbers(strengths: str) -> list[float]:
    try:
        return [float(number) for number in strengths.split(",")]
    except ValueError:
        raise ValueError(f"strengths={strengths!r}; give numbers in (0, 1] separated by commas.") from None


def _pairs(base: Base, planting: Planting, seed: int) -> Any:
    """What is planted: the pairs of a file, or drawn."""
    from benchmark_builder.planting.pairs import pairs_for, read_pairs, read_statistics

    if planting.pairs is not None:
        return read_pairs(planting.pairs)
    counts = read_statistics(planting.statistics) if planting.statistics else None
    return pairs_for(base, planting.how, statistics=counts, min_images=planting.min_images, seed=seed)


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
    from benchmark_builder.writing.stats import statistics, table

    screen().print(table(statistics(folder)))


@bench.command()
def publish(
    folder: FolderArgument,
    repo: RepoOption,
    create_pr: CreatePrOption = False,
    private: PrivateOption = False,
    revision: Annotated[str | None, typer.Option(help="Branch to commit to.")] = None,
    message: Annotated[str | None, typer.Option(help="Commit message.")] = None,
) -> None:
    """Push a benchmark to a Hub dataset repo; data whose terms forbid that are refused."""
    from benchmark_builder.writing.publish import publish as run_publish

    url = run_publish(folder, repo, create_pr=create_pr, private=private, revision=revision, message=message)
    say(f"published {folder}: {url}")


@bench.command()
def run(
    benchmark: BenchmarkArgument,
    *,
    out: Annotated[Path, typer.Option(help="Folder of results; processes and machines may share it.")],
    method: Annotated[
        Literal["association", "paper", "no-grouping", "direct", "most-frequent", "chair", "embedding-difference"],
        typer.Option(help="What is run: the audit's two methods, the paper's ablation and baseline, or a floor."),
    ] = "association",
    where: Annotated[
        str | None, typer.Option(help='Which settings, such as "variant=reference_free and strength>=.6".')
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many settings, spread over all.")] = None,
    preset: PresetOption = "lite",
    context_tokens: Annotated[
        int | None, typer.Option(help="Of direct: tokens of its question and answer together.", show_default="16384")
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Which of the processes this is; told by torchrun and SLURM.")
    ] = None,
    world: Annotated[int | None, typer.Option(help="How many processes share the settings.")] = None,
    revision: RevisionOption = None,
    parts: Parts,
    summing: Summing,
    asking: Asking,
    placing: Placing,
    chance: Chance,
) -> None:
    """Run a method over the settings of a benchmark; what is finished is never done twice."""
    from symbal_hf.bench.direct import CONTEXT_TOKENS
    from symbal_hf.bench.methods import make_method
    from symbal_hf.bench.results import Results
    from symbal_hf.bench.run import manifest, place_of_process, run_bench, usable
    from symbal_hf.bench.settings import open_bench
    from symbal_hf.models.chat.prompting import PROMPTS, Prompts

    # All of them, for equal manifests may share a folder.
    options = {**asdict(parts), **asdict(summing), **asdict(chance), "preset": preset, "scorer": parts.scorer or "auto"}
    if method == "direct" and context_tokens is None:
        context_tokens = CONTEXT_TOKENS
    if context_tokens is not None:
        options["context_tokens"] = context_tokens
    texts = None if asking.prompts is None else {name: Prompts(asking.prompts).hash(name) for name in PROMPTS}
    opened = open_bench(benchmark, revision=revision)
    settings, left = usable(opened, where)
    if left:
        say(f"left out {left} reference-free settings of bases whose images are not stored")
    if limit is not None:
        settings = settings[:: max(1, len(settings) // limit)][:limit]
    here = place_of_process()
    results = Results(out, here[0] if rank is None else rank, here[1] if world is None else world)
    # First, so that a method that cannot work leaves no folder behind.
    run_method = make_method(method, **options, **given(asking, placing), progress=progress)
    results.start(manifest(opened, settings, method=method, options={**options, "prompts": texts}))
    became = run_bench(opened, run_method, results, settings=settings, progress=progress)
    for name, reason in list(became.failed.items())[:10]:
        typer.echo(f"{name} gave no result: {reason}", err=True)
    say(f"{became.done} settings done, {became.before} were before, {len(became.failed)} failed; results in {out}")
    if became.pairs:
        say(f"{became.new_pairs / became.pairs:.1%} of {became.pairs:,} (image, sentence) pairs were new")


@bench.command()
def report(
    results: Annotated[list[Path], typer.Argument(help="Folders that `symbal bench run` wrote, one a run.")],
    *,
    benchmark: Annotated[
        str | None,
        typer.Option(help="Folder or Hub id of the benchmark of the runs; by default the one that was built last."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for report.md, scores.json, tables and figures.")] = Path(
        "symbal-report"
    ),
    k: KOption = None,
    missing: Annotated[
        Literal["wrong", "left_out"], typer.Option(help="What a setting without a result counts as.")
    ] = "wrong",
    store: StoreOption = None,
    revision: RevisionOption = None,
    scoring: Scoring,
) -> None:
    """Score runs beside each other, and write the paper's tables and figures for them."""
    from symbal_hf.bench import report as bench_report
    from symbal_hf.bench.results import read_manifest
    from symbal_hf.bench.settings import open_bench

    for folder in results:
        read_manifest(folder)  # a benchmark may have to be fetched: what is wrong with a folder is said before
    scores = bench_report.report(
        results,
        bench=open_bench(benchmark, revision=revision),
        k=k or (1, 5),
        out=out,
        missing=missing,
        store=store_of(store, scoring.judge),
        progress=progress,
        **asdict(scoring),
    )
    say((out / "report.md").read_text("utf-8"))  # its tables line up on a screen
    say(f"scored {len(scores['runs'])} runs; wrote {out / 'report.md'}, with scores, tables and figures beside it")
