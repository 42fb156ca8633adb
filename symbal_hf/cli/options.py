"""Option groups as options of a command: name, type, default, help and range are those of `symbal_hf.core.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose parameters that are option groups become those groups' options; it is called with the groups."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}

    @wraps(command)
    def run(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        return command(**given)

    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values()]
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.name not in groups]
    options = [parameter for group in groups.values() for parameter in _parameters(group)]
    run.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*own, *options)}
    return run


def _parameters(group: type[Any]) -> list[inspect.Parameter]:
    """An option a field."""
    hints, panel = get_type_hints(group), (group.__doc__ or "").partition(".")[0]
    out = []
    for one in fields(group):
        shown = one.metadata["shown"]
        kind = (shown | None if one.default is None else shown) if shown is not None else hints[one.name]
        names = (f"--{one.name.replace('_', '-')}",) if kind is bool else ()
        info = typer.Option(*names, help=one.metadata["help"], rich_help_panel=panel)
        annotation = Annotated[kind, info]  # type: ignore[valid-type]
        out.append(
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=annotation)
        )
    return out


# Declared here until their commands take groups.
SeedOption = Annotated[int, typer.Option(help="Seed of every random choice.")]
PromptsOption = Annotated[Path | None, typer.Option(help="Folder whose NAME.jinja replace the packaged prompts.")]
ConcurrencyOption = Annotated[int, typer.Option(help="Questions in flight to one server.")]
DeviceOption = Annotated[str, typer.Option(help="Where models of this process run: auto, cpu, cuda, cuda:1, mps.")]
DtypeOption = Annotated[str, typer.Option(help="Their numbers: auto, float32, bfloat16, float16.")]
DeviceMapOption = Annotated[
    str | None, typer.Option(help="auto: spread a model that fits no single GPU over all of them.")
]
