"""`symbal bench run`: a method over a benchmark, resumable, by one process or many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from symbal_hf.cli.options import ConcurrencyOption, PromptsOption
from symbal_hf.cli.screen import progress, say


def run(
    benchmark: Annotated[str, typer.Argument(help="Folder of a built benchmark, or its Hub id.")],
    out: Annotated[Path, typer.Option(help="Folder of results; processes and machines may share it.")],
    method: Annotated[
        Literal["association", "paper", "no-grouping", "direct", "most-frequent", "chair", "embedding-difference"],
        typer.Option(help="What is run: the audit's two methods, the paper's ablation and baseline, or a floor."),
    ] = "association",
    where: Annotated[
        str | None, typer.Option(help='Which settings, such as "variant=reference_free and strength>=.6".')
    ] = None,
    limit: Annotated[int | None, typer.Option(help="At most this many settings, spread over all.")] = None,
    preset: Annotated[str, typer.Option(help="A named composition of models, or a YAML file.")] = "lite",
    scorer: Annotated[str, typer.Option(help="auto, embedding, reference; or a scorer for both stages.")] = "auto",
    summarizer: Annotated[str | None, typer.Option(help="Names t and v in both stages.")] = None,
    text_encoder: Annotated[str | None, typer.Option(help="Encodes facts.")] = None,
    image_encoder: Annotated[str | None, typer.Option(help="Encodes images.")] = None,
    scorer_1: Annotated[str | None, typer.Option(help="Scores facts in stage 1.")] = None,
    scorer_2: Annotated[str | None, typer.Option(help="Scores facts in stage 2.")] = None,
    summarizer_1: Annotated[str | None, typer.Option(help="Names t.")] = None,
    summarizer_2: Annotated[str | None, typer.Option(help="Names v.")] = None,
    captioner: Annotated[str | None, typer.Option(help="Captions images where no references are.")] = None,
    chat: Annotated[str | None, typer.Option(help="Chat model: hf:MODEL[@revision] or openai:URL#MODEL.")] = None,
    prompts: PromptsOption = None,
    concurrency: ConcurrencyOption = 32,
    members: Annotated[int, typer.Option(help="Members of a cluster that a summarizer looks at, at most.")] = 60,
    context_tokens: Annotated[
        int | None,
        typer.Option(help="Of direct: tokens of its question and answer together.", show_default="16384"),
    ] = None,
    device: Annotated[str, typer.Option(help="Where models of this process run.")] = "auto",
    dtype: Annotated[str, typer.Option(help="Their numbers.")] = "auto",
    device_map: Annotated[str | None, typer.Option(help="auto spreads a model over all GPUs.")] = None,
    rank: Annotated[
        int | None, typer.Option(help="Which of the processes this is; told by torchrun and SLURM.")
    ] = None,
    world: Annotated[int | None, typer.Option(help="How many processes share the settings.")] = None,
    revision: Annotated[str | None, typer.Option(help="Of the benchmark on the Hub.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
) -> None:
    """Run a method over the settings of a benchmark; what is finished is never done twice."""
    from symbal_hf.bench.direct import CONTEXT_TOKENS
    from symbal_hf.bench.methods import make_method
    from symbal_hf.bench.results import Results
    from symbal_hf.bench.run import manifest, place_of_process, run_bench, usable
    from symbal_hf.bench.settings import open_bench
    from symbal_hf.models.chat.prompting import PROMPTS, Prompts

    options: dict[str, Any] = {
        "preset": preset, "scorer": scorer, "summarizer": summarizer, "text_encoder": text_encoder,
        "image_encoder": image_encoder, "scorer_1": scorer_1, "scorer_2": scorer_2, "summarizer_1": summarizer_1,
        "summarizer_2": summarizer_2, "captioner": captioner, "chat": chat, "members": members, "seed": seed,
    }  # fmt: skip
    if method == "direct" and context_tokens is None:
        context_tokens = CONTEXT_TOKENS
    if context_tokens is not None:
        options["context_tokens"] = context_tokens
    own = None if prompts is None else {name: Prompts(prompts).hash(name) for name in PROMPTS}
    told = open_bench(benchmark, revision=revision)
    settings, left = usable(told, where)
    if left:
        say(f"left out {left} reference-free settings of bases whose images are not stored")
    if limit is not None:
        settings = settings[:: max(1, len(settings) // max(1, limit))][:limit]
    here = place_of_process()
    results = Results(out, here[0] if rank is None else rank, here[1] if world is None else world)
    # First, so that a method that cannot work leaves no folder behind.
    run_method = make_method(
        method, **options, prompts=prompts, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map,
        progress=progress,
    )  # fmt: skip
    results.start(manifest(told, settings, method=method, options={**options, "prompts": own}))
    became = run_bench(told, run_method, results, settings=settings, progress=progress)
    for name, reason in list((became.failed or {}).items())[:10]:
        typer.echo(f"{name} gave no result: {reason}", err=True)
    say(
        f"{became.done} settings done, {became.before} were before, {len(became.failed or {})} failed; results in {out}"
    )
    if became.pairs:
        say(f"{became.new_pairs / became.pairs:.1%} of {became.pairs:,} (image, sentence) pairs were new")
