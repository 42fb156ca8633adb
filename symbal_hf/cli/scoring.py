"""`symbal judge` and `symbal metric`: what names mean the same, how far judges agree, and Acc@K of predictions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symbal_hf.cli.options import Commands, CreatePrOption, KOption, Only, PrivateOption, StoreOption, store_of
from symbal_hf.cli.screen import progress, say, say_by
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.core.options import Asking, Chance, Placing, Scoring, values_of
from symbal_hf.core.store import Store

if TYPE_CHECKING:
    from symbal_hf.matching.agreement import Agreement
    from symbal_hf.matching.protocol import State

judge = Commands("Ask judges of names, and see how far two of them agree.")
metric = Commands("Acc@K of SymbalBench: compute it, publish it.")

SPECS = "exact, lite, hf:MODEL[@revision] or openai:URL#MODEL"
LABELS = "labels"
SHOWN = 20  # pairs on which judges differ
Rows = list[Mapping[str, Any]]
JudgeAsking = Only(prompts="Folder whose same_thing.jinja replaces the packaged question.")
JudgePlacing = Only("device", "dtype")


@judge.command("ask")
def ask_judge(
    spec: Annotated[str, typer.Argument(metavar="JUDGE", help=f"{SPECS}.")],
    answer: Annotated[str, typer.Argument(help="The predicted name.")],
    truth: Annotated[str, typer.Argument(help="The true name.")],
    *,
    store: StoreOption = None,
    asking: Annotated[Asking, JudgeAsking],
    placing: Annotated[Placing, JudgePlacing],
) -> None:
    """Say whether two names mean the same: same, different, unparsed or failed."""
    (state,), _ = _verdicts(spec, [(answer, truth)], store_of(store, spec), asking, placing, quietly=True)
    say(state)


@judge.command("agreement")
def agreement_of_judges(
    one: Annotated[str, typer.Argument(help=f"{SPECS}; or labels, what the file of pairs says.")],
    other: Annotated[str, typer.Argument(help="The same.")],
    *,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Table with columns answer, truth, same (1 or 0); hand-written pairs where none is named."),
    ] = None,
    store: StoreOption = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for all of it, with every verdict.")] = None,
    asking: Annotated[Asking, JudgeAsking],
    placing: Annotated[Placing, JudgePlacing],
    chance: Chance,
) -> None:
    """Compare two judges, or a judge with the labels: share of pairs, Cohen's kappa, and where they differ."""
    from symbal_hf.matching.agreement import agreement, read_pairs

    labelled = read_pairs(pairs)
    asked = [(pair.answer, pair.truth) for pair in labelled]
    kept = store_of(store, one, other)
    states: list[list[State]] = []
    made: list[dict[str, str]] = []
    for spec in (one, other):
        if spec == LABELS:
            states.append(["same" if pair.same else "different" for pair in labelled])
            made.append({"name": LABELS, "revision": "", "prompt_hash": ""})
        else:
            said, how = _verdicts(spec, asked, kept, *_options_for(spec, (one, other), asking, placing))
            states.append(said)
            made.append(how)
    whole = agreement(*states, seed=chance.seed)
    parts: dict[str, dict[str, Agreement]] = {"domain": {}, "relation": {}}
    for what, found in parts.items():
        for part in dict.fromkeys(filter(None, (getattr(pair, what) for pair in labelled))):
            there = [getattr(pair, what) == part for pair in labelled]
            found[part] = agreement(*(list(compress(said, there)) for said in states), seed=chance.seed)
    source = "the hand-written pairs" if pairs is None else pairs.name
    differ = [i for i, (a, b) in enumerate(zip(*states, strict=True)) if {a, b} == {"same", "different"}]
    told = {"names": [how["name"] for how in made], "states": states, "pairs": labelled, "source": source}
    say_by("agreement", **told, whole=whole, parts=parts, differ=differ, most=SHOWN)
    if out is not None:
        content: dict[str, Any] = {
            "one": made[0],
            "other": made[1],
            "pairs": source,
            "agreement": asdict(whole),
            **{f"by_{what}": {part: asdict(one) for part, one in of.items()} for what, of in parts.items()},
            "states": {"one": dict(Counter(states[0])), "other": dict(Counter(states[1]))},
            "verdicts": [{**asdict(pair), "one": a, "other": b} for pair, a, b in zip(labelled, *states, strict=True)],
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        say(f"wrote {out}")


def _options_for(spec: str, specs: Sequence[str], asking: Asking, placing: Placing) -> tuple[Asking, Placing]:
    """What of these options is for one of two judges; what neither looks at stays, to be refused."""
    kind, kinds = spec.partition(":")[0], {judge.partition(":")[0] for judge in specs}
    if kind not in ("hf", "openai") and kinds & {"hf", "openai"}:
        return Asking(), Placing()
    if kinds >= {"hf", "openai"}:
        return (replace(asking, concurrency=Asking.concurrency), placing) if kind == "hf" else (asking, Placing())
    return asking, placing


def _verdicts(
    spec: str,
    pairs: Sequence[tuple[str, str]],
    store: Store | None,
    asking: Asking,
    placing: Placing,
    *,
    quietly: bool = False,
) -> tuple[list[State], dict[str, str]]:
    """What the judge of this spec says, and what it is."""
    from symbal_hf.matching.load import load_judge
    from symbal_hf.models.chat.prompting import Prompts
    from symbal_hf.models.encoders.embedding import quiet

    opened = store or Store()
    try:
        loaded = load_judge(
            spec,
            store=opened,
            prompts=None if asking.prompts is None else Prompts(asking.prompts),
            concurrency=asking.concurrency,
            progress=quiet if quietly else progress,
            **values_of(placing),
        )
        states = loaded.judge(pairs)
        return states, {"name": loaded.name, "revision": loaded.revision, "prompt_hash": loaded.prompt_hash}
    finally:
        opened.close()


@metric.command()
def compute(
    predictions: Annotated[
        str, typer.Argument(help="Table with ranked lists textual_error and visual_feature, one row a setting.")
    ],
    references: Annotated[
        str, typer.Argument(help="Table with the true names, such as settings/*.parquet, or a built benchmark.")
    ],
    *,
    k: KOption = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for all scores.")] = None,
    store: StoreOption = None,
    scoring: Scoring,
) -> None:
    """Score predictions. Rows are paired by config, setting or id; where one file has none, by their order."""
    from symbal_hf.bench.acc_at_k import acc_at_k
    from symbal_hf.matching.load import load_judge

    predicted, truths, how = paired(_table(predictions), _settings(references))
    asked = load_judge(scoring.judge, store=store_of(store, scoring.judge), progress=progress)
    scores = acc_at_k(predicted, truths, judge=asked, k=k or (1, 5), resamples=scoring.resamples, seed=scoring.seed)
    say(f"{scores['n']:,} settings, {how}; judge {asked.name}, {scores['judgements']:,} pairs of names")
    _print_scores(scores, sorted(set(k or (1, 5))))
    if out:
        write_whole(out, json.dumps(scores, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        say(f"wrote {out}")


@metric.command()
def publish(
    repo: Annotated[str, typer.Option(help="NAMESPACE/symbal_acc_at_k, made where there is none.")],
    create_pr: CreatePrOption = False,
    private: PrivateOption = False,
) -> None:
    """Put the metric on the Hub, as a Space that `evaluate.load` reads."""
    from importlib import resources

    from symbal_hf.huggingface.publish import METRIC, publish_metric

    folder = Path(str(resources.files("symbal_hf.bench.metrics").joinpath(METRIC)))
    say(f"published to {publish_metric(folder, repo, create_pr=create_pr, private=private)}")


def paired(predictions: Rows, references: Rows) -> tuple[Rows, Rows, str]:
    """Predictions and references in one order, and how they were paired.

    Rows of settings that could not be planted are left out. A prediction may be for a setting's config or for one of
    its two variants ("-reference_free", "-reference_based"); then each variant that occurs must be complete.

    Raises:
        BadData: ids that are missing, occur twice, or are in one of the two only.
    """
    from symbal_hf.bench.acc_at_k import IDS, VARIANTS

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


def _print_scores(scores: Mapping[str, Any], ks: Sequence[int]) -> None:
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
