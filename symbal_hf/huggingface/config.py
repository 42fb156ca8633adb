"""A composition as a transformers config: everything that an audit depends on besides its data."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

from transformers import AutoConfig, PreTrainedConfig

from symbal_hf.core.options import Chance, Gates, Method, Parts, Summing, names_of, take
from symbal_hf.models.composition import Composition, Preset, load_preset

GROUPS = (Parts, Gates, Summing, Chance)  # of an audit's options, those that a composition fixes
STAGES = tuple(part.name for part in fields(Composition))
OTHERS = ("method", *(name for name in names_of(*GROUPS) if name not in STAGES))


def _declared() -> dict[str, Any]:
    """The options of these groups as fields of a class: types and defaults."""
    hints = {name: hint for group in GROUPS for name, hint in get_type_hints(group).items()}
    found = {field.name: field for group in GROUPS for field in fields(group)}
    types = {name: hints[name] if field.metadata["shown"] is None else str | None for name, field in found.items()}
    return {"__annotations__": types, **{name: field.default for name, field in found.items()}}


# What it has as fields is what audits take; a list of its own would fall behind.
_Options: Any = type("_Options", (PreTrainedConfig,), {**_declared(), "__module__": __name__})


class SymbalConfig(_Options):
    """A composition with its method and thresholds, which a folder or a Hub repo holds as config.json.

    Its fields are those of `symbal_hf.core.options.Parts`, `Gates`, `Summing` and `Chance`, None for parts that stay as
    the preset has them, and:

    Attributes:
        preset: the preset that this began as; "lite" with no part named is the lite preset as it ships.
        method: "association" or "paper".

    Raises:
        ValueError: a value outside its range.

    >>> config = SymbalConfig(tau=0.9, chat="hf:a/model", scorer_1="vision-language", scorer_2="vision-language")
    >>> config.tau, config.top_k, config.parts()["chat"]
    (0.9, 5, 'hf:a/model')
    """

    model_type = "symbal"

    preset: str = "lite"
    method: Method = "association"

    def __post_init__(self, **others: Any) -> None:
        # Saved folders tell a process without us which file to trust and run. Here there is nothing to trust, and the
        # file in folders of older versions names modules that have moved since.
        for told in ("auto_map", "custom_pipelines"):
            others.pop(told, None)
        if getattr(self, "scorer", None) == "auto":
            object.__setattr__(self, "scorer", None)  # what older versions wrote where no scorer was named
        super().__post_init__(**others)
        take({name: getattr(self, name) for name in names_of(*GROUPS)}, *GROUPS)

    @classmethod
    def register_for_auto_class(cls, auto_class: str | type = "AutoConfig") -> None:
        """Do nothing: what is saved takes this class from the package, and copies none of its files."""

    @classmethod
    def from_preset(cls, preset: str | Path, **options: Any) -> SymbalConfig:
        """A preset's parts by name, so that the config says all and depends on no file; `options` change some.

        Raises:
            BadData: no such preset.
        """
        found = load_preset(preset)
        return cls(**{"preset": found.name, **asdict(found.composition), **options})

    def composed(self) -> Preset:
        """What `symbal_hf.audit` takes as its preset."""
        return Preset(self.preset, "", Composition(**self.parts()), ())

    def parts(self) -> dict[str, str]:
        """The parts that it names."""
        return {part: value for part in STAGES if (value := getattr(self, part)) is not None}

    def options(self) -> dict[str, Any]:
        """The other options of `symbal_hf.audit` that it fixes."""
        return {name: value for name in OTHERS if (value := getattr(self, name)) is not None}


AutoConfig.register(SymbalConfig.model_type, SymbalConfig, exist_ok=True)
