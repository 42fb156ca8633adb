"""`symbal judge`: what a judge says of two names, and how far two judges agree, or one with people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from symbal_hf.cli.options import SeedOption
from symbal_hf.cli.screen import progress, say

if TYPE_CHECKING:
    from symbal_hf.matching.agreement import Agreement, LabelledPair
    from symbal_hf.matching.protocol import State

judge = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Ask judges of names, and see how far two of them agree."
)

SPECS = "exact, lite, hf:MODEL[@revision] or openai:URL#MODEL"
LABELS = "labels"
SHOWN = 20  # pairs on which judges differ

PromptsOption = Annotated[
    Path | None, typer.Option("--prompts", help="Folder whose same_thing.jinja replaces the packaged question.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="File of stored answers; the one in your cache folder where none is named."),
]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Questions in flight to one server.")]
DeviceOption = Annotated[str, typer.Option(help="Where models of this process run: auto, cpu, cuda, cuda:1, mps.")]
DtypeOption = Annotated[str, typer.Option(help="Their numbers: auto, float32, bfloat16, float16.")]


class Options(NamedTuple):
    """How judges are loaded."""

    prompts: Path | None
    store: Path | None
    concurrency: int
    device: str
    dtype: str


@judge.command("ask")
def ask_judge(
    spec: Annotated[str, typer.Argument(metavar="JUDGE", help=f"{SPECS}.")],
    answer: Annotated[str, typer.Argument(help="The predicted name.")],
    truth: Annotated[str, typer.Argument(help="The true name.")],
    prompts: PromptsOption = None,
    store: StoreOption = None,
    concurrency: ConcurrencyOption = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
) -> None:
    """Say whether two names mean the same: same, different, unparsed or failed."""
    options = Options(prompts, store, concurrency, device, dtype)
    (state,), _ = _verdicts(spec, [(answer, truth)], options, quietly=True)
    say(state)


@judge.command("agreement")
def agreement_of_judges(
    one: Annotated[str, typer.Argument(help=f"{SPECS}; or labels, what the file of pairs says.")],
    other: Annotated[str, typer.Argument(help="The same.")],
    pairs: Annotated[
        Path | None,
        typer.Option(help="Table with columns answer, truth, same (1 or 0); hand-written pairs where none is named."),
    ] = None,
    prompts: PromptsOption = None,
    store: StoreOption = None,
    seed: SeedOption = 0,
    concurrency: ConcurrencyOption = 32,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    out: Annotated[Path | None, typer.Option(help="JSON file for all of it, with every verdict.")] = None,
) -> None:
    """Compare two judges, or a judge with the labels: share of pairs, Cohen's kappa, and where they differ."""
    from symbal_hf.matching.agreement import agreement, read_pairs

    labelled = read_pairs(pairs)
    asked = [(pair.answer, pair.truth) for pair in labelled]
    options = Options(prompts, store, concurrency, device, dtype)
    states: list[list[State]] = []
    made: list[dict[str, str]] = []
    for spec in (one, other):
        if spec == LABELS:
            states.append(["same" if pair.same else "different" for pair in labelled])
            made.append({"name": LABELS, "revision": "", "prompt_hash": ""})
        else:
            said, how = _verdicts(spec, asked, options)
            states.append(said)
            made.append(how)
    whole = agreement(*states, seed=seed)
    parts = {
        what: {
            part: agreement(*([said[i] for i in places] for said in states), seed=seed)
            for part, places in _places(labelled, what).items()
        }
        for what in ("domain", "relation")
    }
    names = [how["name"] for how in made]
    source = "the hand-written pairs" if pairs is None else pairs.name
    say(f"{names[0]} and {names[1]} on {len(labelled):,} pairs of {source}")
    for line in _lines(names, states, whole, parts):
        say(line)
    differ = [i for i, (a, b) in enumerate(zip(*states, strict=True)) if {a, b} == {"same", "different"}]
    if differ:
        say(f"they differ on {len(differ):,}" + (f", of which the first {SHOWN}" if len(differ) > SHOWN else ""))
    for i in differ[:SHOWN]:
        pair = labelled[i]
        relation = f" ({pair.relation})" if pair.relation else ""
        say(f"  {pair.answer!r}, truth {pair.truth!r}{relation}: {states[0][i]} / {states[1][i]}")
    if out is not None:
        _write(out, source, made, labelled, states, whole, parts)
        say(f"wrote {out}")


def _verdicts(
    spec: str, pairs: Sequence[tuple[str, str]], options: Options, *, quietly: bool = False
) -> tuple[list[State], dict[str, str]]:
    """What the judge of this spec says, and what it is."""
    from symbal_hf.core.store import Store
    from symbal_hf.matching.load import load_judge
    from symbal_hf.models.chat.prompting import Prompts
    from symbal_hf.models.encoders.embedding import quiet

    opened = Store(options.store)
    try:
        loaded = load_judge(
            spec, store=opened, prompts=Prompts(options.prompts), concurrency=options.concurrency,
            device=options.device, dtype=options.dtype, progress=quiet if quietly else progress,
        )  # fmt: skip
        states = loaded.judge(pairs)
        return states, {"name": loaded.name, "revision": loaded.revision, "prompt_hash": loaded.prompt_hash}
    finally:
        opened.close()


def _places(pairs: Sequence[LabelledPair], what: str) -> dict[str, list[int]]:
    """Places of pairs by domain or relation, without those that have none."""
    out: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        if part := getattr(pair, what):
            out.setdefault(part, []).append(place)
    return out


def _lines(
    names: Sequence[str],
    states: Sequence[Sequence[State]],
    whole: Agreement,
    parts: dict[str, dict[str, Agreement]],
) -> list[str]:
    """The figures, a line each."""
    lines = [_kappa(whole)]
    for what, found in parts.items():
        for part, one in found.items():
            # Of one relation all labels are the same, so that only the share means something.
            figure = _kappa(one) if what == "domain" else _share(one)
            lines.append(f"  {part}: {figure}")
    width = max(map(len, names))
    lines += [
        f"{'':{width}}  {names[1]}: same  different",
        f"{names[0]:{width}}  same {whole.both_same:>{len(names[1]) + 1},} {whole.only_one_same:>10,}",
        f"{'':{width}}  diff {whole.only_other_same:>{len(names[1]) + 1},} {whole.both_different:>10,}",
    ]
    for name, said in zip(names, states, strict=True):
        count = Counter(said)
        if count["unparsed"] or count["failed"]:
            lines.append(f"{name}: {count['unparsed']:,} unparsed, {count['failed']:,} failed")
    if whole.left_out:
        lines.append(f"left out: {whole.left_out:,} pairs of which a judge said neither same nor different")
    return lines


def _share(one: Agreement) -> str:
    return "no pair" if one.share is None else f"agree on {one.share:.1%} of {one.n:,}"


def _kappa(one: Agreement) -> str:
    if one.kappa is None or one.low is None or one.high is None:
        return f"{_share(one)}; kappa is undefined: {one.undefined}"
    return f"{_share(one)}; kappa {one.kappa:.3f} (95 % interval {one.low:.3f} to {one.high:.3f})"


def _write(
    out: Path, source: str, made: Sequence[dict[str, str]], pairs: Sequence[LabelledPair],
    states: Sequence[Sequence[State]], whole: Agreement, parts: dict[str, dict[str, Agreement]],
) -> None:  # fmt: skip
    import json
    from dataclasses import asdict

    found: dict[str, Any] = {
        "one": made[0],
        "other": made[1],
        "pairs": source,
        "agreement": asdict(whole),
        **{f"by_{what}": {part: asdict(one) for part, one in of.items()} for what, of in parts.items()},
        "states": dict(zip(("one", "other"), (dict(Counter(said)) for said in states), strict=True)),
        "verdicts": [
            {**asdict(pair), "one": a, "other": b} for pair, a, b in zip(pairs, states[0], states[1], strict=True)
        ],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
