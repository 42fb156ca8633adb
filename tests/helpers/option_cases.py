"""What a command does, told as one text, so that two runs of it can be held against each other."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

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


def done(command: str, arguments: Sequence[object], folder: Path) -> tuple[int, str]:
    """Exit code and everything that was said and written to `folder`, named OUT in the arguments."""
    folder.mkdir(parents=True)
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
    return code, (out.getvalue() + told + files).replace(str(folder), "OUT")


def _plain(path: Path, folder: Path) -> str:
    """A file's text, without what differs between two equal runs."""
    data = path.read_bytes().replace(str(folder).encode(), b"OUT")
    if path.suffix == ".json":
        try:
            return json.dumps(json.loads(data), sort_keys=True)
        except ValueError:
            pass
    return re.sub(rb'"seconds": [0-9.]+', b"", data).hex() if path.suffix == ".jsonl" else sha256(data).hexdigest()


def check(command: str, case: Changes | Refused, base: Sequence[object], folder: Path) -> None:
    """Raises AssertionError where the case is not as it says."""
    base = base if case.base is None else case.base
    code, text = done(command, (*base, *case.value), folder / "changed")
    assert "Usage:" not in text or isinstance(case, Refused), text
    if isinstance(case, Refused):
        assert code == 2 and case.words in " ".join(text.split()), (code, text[:600])
    else:
        assert (code, text) != done(command, base, folder / "usual"), f"{case.value} changes nothing: {text[:300]}"
