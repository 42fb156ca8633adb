"""What a command does, told as one text, so that two runs of it can be held against each other."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from typer.main import get_command

from symbal_hf.cli.app import app, run


@dataclass(frozen=True)
class Changes:
    """Another value changes what the command says or writes; `base` are other arguments than the usual ones."""

    value: tuple[object, ...]
    base: tuple[object, ...] | None = None


@dataclass(frozen=True)
class Refused:
    """This value is refused in a sentence that has these words."""

    value: tuple[object, ...]
    words: str
    base: tuple[object, ...] | None = None


Cases = dict[str, Changes | Refused]
Table = Callable[[Any], tuple[list, Cases]]  # the usual arguments of a command, and a case for each of its options
NONE = "nothing-of-that-name"


def changes(*value: object, base: Sequence[object] | None = None) -> Changes:
    return Changes(value, None if base is None else tuple(base))


def refused(words: str, *value: object, base: Sequence[object] | None = None) -> Refused:
    return Refused(value, words, None if base is None else tuple(base))


def commands() -> dict[str, list[str]]:
    """Every command of the program with its arguments and options."""
    found: dict[str, list[str]] = {}

    def walk(command: object, names: tuple[str, ...]) -> None:
        if inner := getattr(command, "commands", None):
            for name, one in inner.items():
                walk(one, (*names, name))
        else:
            found[" ".join(names)] = [one.name for one in command.params if one.name != "help"]

    walk(get_command(app), ())
    return found


class Outside(Protocol):
    """What a command writes to beside its folder, such as a Hub."""

    def fresh(self) -> None:
        """Make it as it was before any command."""

    def state(self) -> str:
        """All that it holds, as text without what differs between two equal runs."""


class Nothing:
    """Outside, for a command that writes to its folder alone."""

    def fresh(self) -> None: ...

    def state(self) -> str:
        return ""


NOTHING = Nothing()


def done(command: str, arguments: Sequence[object], folder: Path, outside: Outside = NOTHING) -> tuple[int, str]:
    """Exit code and everything that was said and written to `folder`, named OUT in the arguments, and outside."""
    folder.mkdir(parents=True)
    outside.fresh()
    for one in arguments:
        if isinstance(one, tuple):  # ("copy", FOLDER): a folder that the command writes into
            shutil.copytree(one[1], folder / "copy")
    arguments = ["OUT/copy" if isinstance(one, tuple) else one for one in arguments]
    words = [str(one).replace("OUT", str(folder)) for one in (*command.split(), *arguments)]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(words)
    files = "".join(
        f"\n== {path.relative_to(folder)}\n{_plain(path, folder)}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    told = err.getvalue() if code else ""  # bars of progress tell nothing
    return code, (out.getvalue() + told + files).replace(str(folder), "OUT") + outside.state()


def _plain(path: Path, folder: Path) -> str:
    """A file's text, without what differs between two equal runs."""
    data = path.read_bytes().replace(str(folder).encode(), b"OUT")
    if path.suffix == ".json":
        try:
            return json.dumps(json.loads(data), sort_keys=True)
        except ValueError:
            pass
    return re.sub(rb'"seconds": [0-9.]+', b"", data).hex() if path.suffix == ".jsonl" else sha256(data).hexdigest()


def check(table: Mapping[str, Table], ground: Any, command: str, name: str, folder: Path, outside: Outside) -> None:
    """Raises AssertionError where an option of a command is not as the table says."""
    base, cases = table[command](ground)
    assert name in cases, f"symbal {command} has an option {name} that nothing is said of"
    case = cases[name]
    before = base
    base = base if case.base is None else case.base
    code, text = done(command, (*base, *case.value), folder / "changed", outside)
    assert "Usage:" not in text or isinstance(case, Refused), text
    if isinstance(case, Refused):
        assert code == 2 and case.words in " ".join(text.split()), (code, text[:600])
    else:
        usual = done(command, base if case.value else before, folder / "usual", outside)
        assert (code, text) != usual, f"{case.value or base} changes nothing: {text[:300]}"
