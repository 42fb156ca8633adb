"""Options, each declared once: its name, default, help and valid range, for Python, the command line and saved files.

A group is a frozen dataclass; `take` turns flat keywords into groups, and `given` groups back into keywords. What an
option means for a model or a method is not said here: who uses it refuses what cannot take effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

OnBadRow = Literal["error", "warn", "skip"]
SourceFormat = Literal["auto", "table", "conversations", "coco", "url-tsv", "sidecars"]
Method = Literal["association", "paper"]
G = TypeVar("G")


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
    check: Callable[[Any], None] | None = None,
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
    return field(default=default, metadata={"help": about, "within": within, "check": check, "shown": shown})


@dataclass(frozen=True)
class Group:
    """Options that belong together; every value is checked when a group is made."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for one in fields(self):
            value, metadata = getattr(self, one.name), one.metadata
            if value is None and one.default is None:
                continue
            choices = choices_of(hints[one.name])
            if choices and value not in choices:
                raise ValueError(f"{one.name}={value!r}; available: {', '.join(map(repr, choices))}.")
            if metadata["within"] is not None and value not in metadata["within"]:
                raise ValueError(f"{one.name}={value!r}; it must be {_in(metadata['within'])}.")
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

    device: str = option("auto", "Where models of this process run: auto, cpu, cuda, cuda:1, mps.")
    dtype: str = option("auto", "Their numbers: auto, float32, bfloat16, float16.")
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


AUDIT = (Reading, Parts, Gates, Summing, Asking, Placing, Processes, Chance)  # what `symbal_hf.audit` takes, flat


def names_of(*groups: type[Any]) -> tuple[str, ...]:
    """The options of these groups, in order."""
    return tuple(one.name for group in groups for one in fields(group))


def defaults_of(*groups: type[Any]) -> dict[str, Any]:
    """What they are where nothing is given."""
    return {one.name: one.default for group in groups for one in fields(group) if one.default is not MISSING}


def take(options: Mapping[str, Any], *groups: type[Any], by: str = "audit") -> tuple[Any, ...]:
    """Flat keywords as option groups.

    Args:
        options: name -> value.
        groups: the groups, whose names must not overlap.
        by: who takes them, for the message.

    Raises:
        TypeError: a name that none of the groups has.
        ValueError: a value outside its range.

    >>> gates, chance = take({"tau": 0.9}, Gates, Chance)
    >>> gates.tau, chance.seed
    (0.9, 0)
    """
    known = names_of(*groups)
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"its options are {', '.join(known)}."
            raise TypeError(f"{by} has no option {name!r}; {hint}")
    return tuple(
        group(**{one.name: options[one.name] for one in fields(group) if one.name in options}) for group in groups
    )


def values_of(*groups: Group) -> dict[str, Any]:
    """All options of these groups, flat and uncopied: a value may be a model."""
    return {one.name: getattr(group, one.name) for group in groups for one in fields(group)}


def given(*groups: Group) -> dict[str, Any]:
    """The options of these groups that are not as they are by default, flat."""
    return {
        one.name: value
        for group in groups
        for one in fields(group)
        if (value := getattr(group, one.name)) is not one.default and value != one.default
    }
