"""`symbal metric`: score predictions against the planted truth, and publish the metric itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from symbal_hf.cli.screen import progress, say

metric = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Acc@K of SymbalBench: compute it, publish it.")
Rows = list[Mapping[str, Any]]


@metric.command()
def compute(
    predictions: Annotated[
        str, typer.Argument(help="Table with ranked lists textual_error and visual_feature, one row a setting.")
    ],
    references: Annotated[
        str, typer.Argument(help="Table with the true names, such as settings/*.parquet, or a built benchmark.")
    ],
    k: Annotated[list[int] | None, typer.Option("--k", help="How many names count; 1 and 5 by default.")] = None,
    judge: Annotated[str, typer.Option(help="exact, lite, hf:MODEL[@revision] or openai:URL#MODEL.")] = "lite",
    out: Annotated[Path | None, typer.Option(help="JSON file for all scores.")] = None,
    resamples: Annotated[int, typer.Option(help="Of the bootstrap; 0: no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    store: Annotated[Path | None, typer.Option(help="File that keeps what a judge said; else the user's own.")] = None,
) -> None:
    """Score predictions. Rows are paired by config, setting or id; where one file has none, by their order."""
    from symbal_hf.bench.acc_at_k import acc_at_k
    from symbal_hf.core.files import write_whole
    from symbal_hf.core.store import Store
    from symbal_hf.matching.load import load_judge

    given, truths, how = paired(_table(predictions), _settings(references))
    asked = load_judge(judge, store=Store(store) if store else None, progress=progress)
    scores = acc_at_k(given, truths, judge=asked, k=k or (1, 5), resamples=resamples, seed=seed)
    say(f"{scores['n']:,} settings, {how}; judge {asked.name}, {scores['judgements']:,} pairs of names")
    _print(scores, sorted(set(k or (1, 5))))
    if out:
        write_whole(out, json.dumps(scores, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        say(f"wrote {out}")


@metric.command()
def publish(
    repo: Annotated[str, typer.Option(help="NAMESPACE/symbal_acc_at_k, made where there is none.")],
    create_pr: Annotated[bool, typer.Option("--create-pr", help="Propose the files as a pull request.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make the Space private.")] = False,
) -> None:
    """Put the metric on the Hub, as a Space that `evaluate.load` reads."""
    from symbal_hf.huggingface.publish_metric import publish_metric

    say(f"published to {publish_metric(repo, create_pr=create_pr, private=private)}")


def paired(predictions: Rows, references: Rows) -> tuple[Rows, Rows, str]:
    """Predictions and references in one order, and how they were paired.

    Rows of settings that could not be planted are left out. A prediction may be for a setting's config or for one of
    its two variants ("-reference_free", "-reference_based"); then each variant that occurs must be complete.

    Raises:
        BadData: ids that are missing, occur twice, or are in one of the two only.
    """
    from symbal_hf.bench.acc_at_k import IDS, VARIANTS
    from symbal_hf.core.errors import BadData

    references = [row for row in references if str(row.get("feasible")).lower() != "false"]
    has = [[key for key in IDS if any(row.get(key) is not None for row in rows)] for rows in (predictions, references)]
    if not all(has):
        return predictions, references, "taken in the order of the rows, since not both files have ids"
    key = next((key for key in has[0] if key in has[1]), None)
    keys = (key, key) if key else (has[0][0], has[1][0])
    of = _by_name(predictions, keys[0], "predictions")
    truth_of = _by_name(references, keys[1], "references")
    seen = [end for end in VARIANTS if any(name.endswith(end) for name in of)]
    if seen and not any(name.endswith(VARIANTS) for name in truth_of):
        truth_of = {f"{n}{end}": {**row, "variant": end[1:]} for n, row in truth_of.items() for end in seen}
    if extra := [name for name in of if name not in truth_of]:
        raise BadData(
            f"{len(extra)} predictions, such as {keys[0]} {extra[0]!r}, have no reference; take them out, or give the "
            "references that they belong to."
        )
    if missing := [name for name in truth_of if name not in of]:
        raise BadData(
            f"{len(missing)} references, such as {keys[1]} {missing[0]!r}, have no prediction; give one to each, "
            "with empty lists where nothing was found."
        )
    how = f"paired by {keys[0]}" if keys[0] == keys[1] else f"paired by {keys[0]} and {keys[1]}"
    # What paired them has done its work; other ids need not agree.
    rows: Rows = [{k: v for k, v in of[name].items() if k not in IDS} for name in truth_of]
    return rows, list(truth_of.values()), how


def _by_name(rows: Rows, key: str, kind: str) -> dict[str, Mapping[str, Any]]:
    from symbal_hf.core.errors import BadData

    found: dict[str, Mapping[str, Any]] = {}
    for place, row in enumerate(rows):
        if row.get(key) is None:
            raise BadData(f"{kind}[{place}] has no {key}, but other rows have; give it to each row or to none.")
        name = str(row[key])
        if name in found:
            raise BadData(f"{kind}[{place}] has {key} {name!r} like a row before it; give one row for each setting.")
        found[name] = row
    return found


def _table(source: str) -> Rows:
    from symbal_hf.data.opening import open_table

    return list(open_table(source))


def _settings(source: str) -> Rows:
    """The rows of a table, or of all settings tables of a built benchmark."""
    from symbal_hf.data.benchmarks import is_built

    folder = Path(source)
    if folder.is_dir() and is_built(folder):
        return [row for path in sorted((folder / "settings").glob("*.parquet")) for row in _table(str(path))]
    return _table(source)


def _print(scores: Mapping[str, Any], ks: Sequence[int]) -> None:
    """Accuracies of t and v together, then of each alone, then of each stratum."""
    width = max([16, *(len(f"{key} {label}") + 2 for key, groups in scores["by"].items() for label in groups)])
    say(f"{'':{width}}{'n':>6}  " + "".join(f"{f'Acc@{k}':<18}" for k in ks).rstrip())

    def line(name: str, part: Mapping[str, Any], kind: str = "") -> None:
        cells = []
        for k in ks:
            low_high = part.get(f"{kind}acc@{k}_interval")
            within = f" ({low_high[0]:.2f}-{low_high[1]:.2f})" if low_high else ""
            cells.append(f"{part[f'{kind}acc@{k}']:.3f}{within}")
        say(f"{name:{width}}{part['n']:>6}  " + "".join(f"{cell:<18}" for cell in cells).rstrip())

    line("t and v", scores)
    line("t", scores, "textual_error_")
    line("v", scores, "visual_feature_")
    for key, groups in scores["by"].items():
        for label, part in groups.items():
            line(f"{key} {label}", part)
    for k in ks:
        if undecided := scores[f"undecided@{k}"]:
            most = scores[f"acc@{k}_if_undecided_right"]
            say(f"undecided at {k}: {undecided}, for the judge could not tell; Acc@{k} is at most {most:.3f}")
