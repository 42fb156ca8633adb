"""Option groups as options of a command: name, type, default, help and range are those of `symbal_hf.core.options`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
import typer.core

from symbal_hf.core.options import Group, Method, refuse_idle
from symbal_hf.core.store import Store


class Only:
    """Some options of a group, the others stay as they are by default: `Annotated[Reading, Only("limit")]`.

    Args:
        names: the options that the command has; all where none is named.
        panel: heading in the command's help; by default the group's.
        helps: other help texts, where a command says more precisely what an option does there.
    """

    def __init__(self, *names: str, panel: str | None = None, **helps: str) -> None:
        self.names, self.panel, self.helps = names, panel, helps


class Commands(typer.Typer):
    """Commands whose parameters may be option groups."""

    def __init__(self, about: str) -> None:
        super().__init__(
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,  # brackets in help texts are brackets
            pretty_exceptions_enable=False,
            help=about,
        )

    def command(  # type: ignore[override]
        self, name: str | None = None, **_: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add a function: its parameters that are groups become their options, and it is called with the groups."""
        return lambda function: super(Commands, self).command(name, cls=Panels)(_with_options(function))


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    hints = get_type_hints(command, include_extras=True)
    groups = {name: chosen for name, hint in hints.items() if (chosen := _group(hint)) is not None}
    options = {name: _parameters(*chosen) for name, chosen in groups.items()}

    @wraps(command)
    def run(**values: Any) -> Any:
        for name, (group, _) in groups.items():
            values[name] = group(**{option.name: values.pop(option.name) for option in options[name]})
        return command(**values)

    own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(command).parameters.values()]
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if p.name not in groups]
    parameters = [*own, *(option for listed in options.values() for option in listed)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class Panels(typer.core.TyperCommand):
    """A command whose plain help shows options under the headings of their groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then the command's own options, then those of each group."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
                panels.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        own = panels.pop("Options", [])
        arguments = panels.pop("Arguments", [])
        for title, records in {"Arguments": arguments, "Options": own, **panels}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _group(hint: Any) -> tuple[type[Any], Only] | None:
    """The option group that a parameter is, and which of its options."""
    only = next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Only)), Only())
    group = getattr(hint, "__origin__", hint)
    return (group, only) if isinstance(group, type) and is_dataclass(group) else None


def _parameters(group: type[Any], only: Only) -> list[inspect.Parameter]:
    """An option a field."""
    hints, panel = get_type_hints(group), only.panel or (group.__doc__ or "").partition(".")[0]
    parameters = []
    for field in fields(group):
        if only.names and field.name not in only.names:
            continue
        shown = field.metadata["shown"]
        kind = (shown | None if field.default is None else shown) if shown is not None else hints[field.name]
        flags = (f"--{field.name.replace('_', '-')}",) if kind is bool and not field.default else ()
        about = only.helps.get(field.name, field.metadata["help"])
        annotation = Annotated[kind, typer.Option(*flags, help=about, rich_help_panel=panel)]  # type: ignore[valid-type]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation)
        )
    return parameters


def like(group: type[Group], name: str, about: str | None = None) -> Any:
    """A group's option for a command that has only this one, or with another default."""
    field = next(field for field in fields(group) if field.name == name)
    flags = (f"--{name.replace('_', '-')}",) if field.type in (bool, "bool") else ()
    within = field.metadata["within"]
    return typer.Option(*flags, help=about or field.metadata["help"], min=None if within is None else within.low)


def store_of(path: Path | None, *judges: str) -> Store | None:
    """The store of a judge's answers; None is the user's own; raises `BadData`: a file for judges that keep nothing."""
    if "exact" in judges and set(judges) <= {"exact", "labels"}:
        refuse_idle(f"the judge {judges[0]} keeps nothing", store=path)
    return None if path is None else Store(path)


def warn_left_out(rows: Sequence[Any], where: str) -> None:
    """The first rows that were left out, on stderr."""
    for row in rows[:10]:
        typer.echo(f"left out row {row.row_id}: {row.reason}", err=True)
    if len(rows) > 10:
        typer.echo(f"... and {len(rows) - 10:,} more, see {where}", err=True)


# Options that are no part of a group, for the commands that share them.
SourceArgument = Annotated[
    str, typer.Argument(help="A table file, a folder, or a Hub dataset id (ns/name[:config][@split]).")
]
AuditArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Folder of an audit: what `symbal audit --out` wrote.")
]
PresetOption = Annotated[str, typer.Option(help="A named composition of models, or a YAML file.")]
MethodOption = Annotated[Method, typer.Option(help="Detection method.")]
VocabularyOption = Annotated[
    Path | None, typer.Option(help="JSON {class: [synonyms]} or a text file with one class a line.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option(help="File of stored vectors and answers; the one in your cache folder where none is named."),
]
RevisionOption = Annotated[str | None, typer.Option(help="Of the benchmark on the Hub.")]
BenchmarkArgument = Annotated[str, typer.Argument(help="Folder of a built benchmark, or its Hub id.")]
BenchmarkOption = Annotated[str, typer.Option(help="Folder of the benchmark, or its Hub id.")]
KOption = Annotated[list[int] | None, typer.Option("--k", min=1, help="How many names count; 1 and 5 by default.")]
PrivateOption = Annotated[bool, typer.Option(help="Make a new repo private.")]
CreatePrOption = Annotated[bool, typer.Option(help="Open a pull request instead of committing.")]
RepoOption = Annotated[str, typer.Option(help="Repo on the Hub: namespace/name, made where there is none.")]
