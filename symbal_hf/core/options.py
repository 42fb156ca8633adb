"""Options, each declared once: its name, default, help and valid range, for Python, the command line and saved files.

A group is a frozen dataclass; `take` turns flat keywords into groups, and `given` groups back into keywords. What an
option means for a model or a method is not said here: who uses it refuses what cannot take effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from symbal_hf.core.devices import check_device, check_dtype
from symbal_hf.core.errors import BadData, UnknownOption

OnBadRow = Literal["error", "warn", "skip"]
SourceFormat = Literal["auto", "table", "conversations", "coco", "url-tsv", "sidecars"]
Method = Literal["association", "paper"]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; an end that is `open` is not one of them.

    >>> Range(0, 1, open=True)
    (0, 1)
    >>> 0.5 in Range(0, 1), 2 in Range(low=1)
    (True, True)
    """

    low: float | None = None
    high: float | None = None
    open: bool = False

    def __contains__(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        above = self.low is None or (value > self.low if self.open else value >= self.low)
        below = self.high is None or (value < self.high if self.open else value <= self.high)
        return above and below

    def __repr__(self) -> str:
        if self.high is None:
            return f"{'>' if self.open else '>='} {self.low:g}"
        ends = "()" if self.open else "[]"
        return f"{ends[0]}{self.low:g}, {self.high:g}{ends[1]}"


def option(
    default: Any,
    about: str,
    *,
    within: Range | None = None,
    check: Callable[[Any], object] | None = None,
    shown: Any = None,
) -> Any:
    """A field of an option group.

    Args:
        default: the option's default.
        about: its help; the valid range is added to it.
        within: the range of a number; None is let through where it is the default.
        check: raises ValueError, in one sentence, for a value that cannot be.
        shown: the type that the command line reads, where Python takes more.
    """
    about = f"{about} {within!r}." if within is not None else about
    return dataclasses.field(
        default=default, metadata={"help": about, "within": within, "check": check, "shown": shown}
    )


@dataclass(frozen=True)
class Group:
    """Options that belong together; every value is checked when a group is made."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            name, value, metadata = field.name, getattr(self, field.name), field.metadata
            if value is None and field.default is None:
                continue
            choices = choices_of(hints[name])
            if choices and value not in choices:
                raise ValueError(f"{name}={value!r}; available: {', '.join(map(repr, choices))}.")
            if metadata["within"] is not None and value not in metadata["within"]:
                raise ValueError(f"{name}={value!r}; it must be {_in(metadata['within'])}.")
            if metadata["check"] is not None:
                metadata["check"](value)


def _in(within: Range) -> str:
    return f"in {within!r}" if within.high is not None else repr(within)


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The values of a Literal, also of one that may be None; none for any other type."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((get_args(one) for one in get_args(hint) if get_origin(one) is Literal), ())


@dataclass(frozen=True)
class Reading(Group):
    """How a source is read."""

    image_column: str | None = option(None, "Column of images or image paths.")
    caption_column: str | None = option(None, "Column of generated captions.")
    reference_column: str | None = option(None, "Column of reference captions.")
    objects_column: str | None = option(None, "Column of the objects that are truly there.")
    image_root: Path | None = option(None, "Folder that image paths are relative to and must stay inside.")
    join: Path | None = option(None, "A second table, paired by id, such as objects.jsonl.")
    source_format: SourceFormat = option("auto", "How the source is read. auto: as its structure says.")
    allow_download: bool = option(False, "Fetch images that are URLs.")
    limit: int | None = option(None, "Read at most this many rows,", within=Range(low=1))
    sample: int | None = option(None, "Of these take this many, drawn at random,", within=Range(low=1))
    on_bad_row: OnBadRow = option("warn", "Stop at a bad row, or leave it out and count it.")


@dataclass(frozen=True)
class Moved(Group):
    """Where the audited rows are now, if they have been moved."""

    source: Any = option(None, "Where the audited rows are now, if they have been moved.", shown=str)
    image_root: Path | None = option(None, "Where the images are now, if they have been moved.")
    join: Path | None = option(None, "Where the joined table is now, if it has been moved.")


@dataclass(frozen=True)
class Parts(Group):
    """Models: parts of the composition that take the place of the preset's."""

    text_encoder: Any = option(None, "Of facts: open_clip:NAME/TAG, transformers:MODEL, st:MODEL, or lite.", shown=str)
    image_encoder: Any = option(None, "Of images: open_clip:NAME/TAG, transformers:MODEL, or lite.", shown=str)
    scorer: Any = option(
        None,
        "What captions are checked against, in both stages: objects, reference, embedding[:ENCODER], text-only[:CHAT], "
        "vision-language[:CHAT]. auto: the surest that the source allows.",
        shown=str,
    )
    scorer_1: Any = option(None, "The same in stage 1 alone.", shown=str)
    scorer_2: Any = option(None, "The same in stage 2 of the paper's method.", shown=str)
    summarizer: Any = option(None, "Names t and v in the paper's method: phrases or a CHAT's; both stages.", shown=str)
    summarizer_1: Any = option(None, "Names t there: phrases (no language model) or text-only[:CHAT].", shown=str)
    summarizer_2: Any = option(None, "Names v there: phrases, text-only[:CHAT] or vision-language[:CHAT].", shown=str)
    captioner: Any = option(None, "Captions images where no references are: a CHAT, or file:captions.jsonl.", shown=str)
    chat: Any = option(None, "CHAT of parts that name none: hf:MODEL[@revision] or openai:URL#MODEL.", shown=str)


@dataclass(frozen=True)
class Gates(Group):
    """What a finding must pass."""

    top_k: int = option(5, "At most this many findings,", within=Range(low=1))
    tau: float = option(0.7, "Least confirmed share of a finding, in", within=Range(0, 1))
    alpha: float = option(0.05, "Largest corrected p-value of a finding, in", within=Range(0, 1, open=True))
    min_rate: float = option(0.05, "Least error rate of a finding where v is shown, in", within=Range(0, 1))


@dataclass(frozen=True)
class Placing(Group):
    """Where models of this process run."""

    device: str = option("auto", "Where models of this process run: auto, cpu, cuda, cuda:1, mps.", check=check_device)
    dtype: str = option("auto", "Their numbers: auto, float32, bfloat16, float16.", check=check_dtype)
    device_map: str | None = option(None, "auto: spread a model that fits no single GPU over all of them.")


@dataclass(frozen=True)
class Asking(Group):
    """How chat models are asked."""

    prompts: Path | None = option(None, "Folder whose NAME.jinja replace the packaged prompts.")
    concurrency: int = option(32, "Questions in flight to one server,", within=Range(low=1))


@dataclass(frozen=True)
class Processes(Group):
    """How embedding is shared out."""

    devices: int = option(
        1, "Processes that embed on this machine, of one GPU each where the encoder is on one,", within=Range(low=1)
    )
    num_nodes: int = option(
        1, "Machines, where torchrun, fabric run or srun has started this on each of them,", within=Range(low=1)
    )


@dataclass(frozen=True)
class Chance(Group):
    """Random choices."""

    seed: int = option(0, "Seed of every random choice,", within=Range(low=0))


@dataclass(frozen=True)
class Summing(Group):
    """How clusters are named."""

    members: int = option(60, "Members of a cluster that a summarizer looks at, at most,", within=Range(low=1))


def check_budget(value: Any) -> None:
    """Raises ValueError for what is neither a number of questions nor "auto"."""
    if value != "auto" and not (str(value).isdecimal() and int(value) >= 1):
        raise ValueError(f"budget={value!r}; it must be a number >= 1 of questions, or 'auto'.")


@dataclass(frozen=True)
class Spending(Group):
    """What a chat model may cost."""

    budget: Any = option(
        None,
        "Questions about statements that the scorers' chat model is asked, at most; auto: until the first finding is "
        "sure at 95 %. All of them by default.",
        check=check_budget,
        shown=str,
    )


@dataclass(frozen=True)
class Scoring(Group):
    """How names are scored."""

    judge: Any = option("lite", "exact, lite, hf:MODEL[@revision] or openai:URL#MODEL.", shown=str)
    resamples: int = option(1000, "Of the bootstrap; 0: no intervals;", within=Range(low=0))
    seed: int = option(0, "Of the bootstrap,", within=Range(low=0))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resamples == 0:
            refuse_idle("without resamples nothing is drawn", seed=self.seed)


# What `symbal_hf.audit` takes, flat.
AUDIT = (Reading, Parts, Gates, Summing, Asking, Spending, Placing, Processes, Chance)


def names_of(*groups: type[Any]) -> tuple[str, ...]:
    """The options of these groups, in order."""
    return tuple(field.name for group in groups for field in fields(group))


def defaults_of(*groups: type[Any]) -> dict[str, Any]:
    """What they are where nothing is given."""
    return {field.name: field.default for group in groups for field in fields(group) if field.default is not MISSING}


def take(options: Mapping[str, Any], *groups: type[Any], by: str = "audit") -> tuple[Any, ...]:
    """Flat keywords as option groups.

    Args:
        options: name -> value.
        groups: the groups, whose names must not overlap.
        by: who takes them, for the message.

    Raises:
        UnknownOption: a name that none of the groups has.
        ValueError: a value outside its range.

    >>> gates, chance = take({"tau": 0.9}, Gates, Chance)
    >>> gates.tau, chance.seed
    (0.9, 0)
    """
    check_names(options, names_of(*groups), by=by)
    return tuple(
        group(**{field.name: options[field.name] for field in fields(group) if field.name in options})
        for group in groups
    )


def values_of(*groups: Group) -> dict[str, Any]:
    """All options of these groups, flat and uncopied: a value may be a model."""
    return {one.name: getattr(group, one.name) for group in groups for one in fields(group)}


def check_names(options: Iterable[str], known: Sequence[str], *, by: str) -> None:
    """Refuse options of other names.

    Raises:
        UnknownOption: a name that is not known.
    """
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}? Its" if near else "its"
            raise UnknownOption(f"{by} has no option {name!r}; {hint} options are {', '.join(known)}.")


def given(*groups: Group) -> dict[str, Any]:
    """The options of these groups that are not as they are by default, flat.

    >>> given(Gates(tau=0.9), Chance())
    {'tau': 0.9}
    """
    return {
        field.name: value
        for group in groups
        for field in fields(group)
        if (value := getattr(group, field.name)) is not field.default and value != field.default
    }


def refuse_idle(why: str, /, **options: Any) -> None:
    """Refuse options that were given where they change nothing.

    Args:
        why: they have no effect.
        options: name -> value; None and the default of an audit's option count as not given.

    Raises:
        BadData: the first that was given.

    >>> refuse_idle("nobody is asked", concurrency=32, prompts=None)
    >>> refuse_idle("nobody is asked", concurrency=8)
    Traceback (most recent call last):
    symbal_hf.core.errors.BadData: concurrency=8 changes nothing: nobody is asked; leave it out.
    """
    for name, value in options.items():
        if value is not None and value is not False and (name not in _USUAL or value != _USUAL[name]):
            shown = repr(str(value) if isinstance(value, Path) else value)
            if not isinstance(value, (str, int, float, Path)):
                shown = f"{type(value).__name__} object"
            raise BadData(f"{name}={shown} changes nothing: {why}; leave it out.")


def refuse_idle_of_chat(model: Any, /, **options: Any) -> None:
    """Refuse options of asking and placing that the chat model of this spec does not look at.

    Args:
        model: "hf:MODEL" (of this process), "openai:URL#MODEL" (a server), an object, or None where none is asked.
        options: any of prompts, concurrency, device, dtype, device_map, batch_size.

    Raises:
        BadData: an option that changes nothing.

    >>> refuse_idle_of_chat("hf:a/model", device="cpu", concurrency=32)
    >>> refuse_idle_of_chat("openai:http://localhost:8000/v1#a/model", device="cpu", concurrency=8)
    Traceback (most recent call last):
    symbal_hf.core.errors.BadData: device='cpu' changes nothing: a model at a server runs there; leave it out.
    """
    if model is None:
        return refuse_idle("no chat model is asked", **options)
    options.pop("prompts", None)
    here = {name: options[name] for name in ("device", "dtype", "device_map", "batch_size") if name in options}
    server = {"concurrency": options["concurrency"]} if "concurrency" in options else {}
    kind = model.partition(":")[0] if isinstance(model, str) else "object"
    if kind == "hf":
        refuse_idle("a model of this process is no server", **server)
    elif kind == "openai":
        refuse_idle("a model at a server runs there", **here)
    else:
        refuse_idle("a model given as an object is as it was made", **here, **server)
    return None


_USUAL = defaults_of(*AUDIT)
