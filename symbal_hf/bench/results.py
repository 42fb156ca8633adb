"""A folder of results that processes share: what was run, and one JSON line for each setting as it finishes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symbal_hf.bench.settings import Bench
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole

MANIFEST = "run.json"
CALLS = ("asked", "cached", "failed", "unparsed")  # questions to models, as a line counts them


@dataclass
class Results:
    """Lines are only ever added, each process to its own file, so that none waits for another."""

    folder: Path  # shared by all processes
    rank: int = 0  # which process this is, from 0
    world: int = 1  # how many there are

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise BadData(f"rank={self.rank} of world={self.world}; ranks are 0 to world - 1.")

    @property
    def path(self) -> Path:
        """The file of this process."""
        return self.folder / f"results-{self.rank:03d}-of-{self.world:03d}.jsonl"

    def start(self, manifest: Mapping[str, Any]) -> None:
        """Make the folder ready for this process.

        Raises `BadData`: the folder holds another run, whose numbers would be mixed with these.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / MANIFEST
        if file.is_file():
            _check_same(read_manifest(self.folder), json.loads(json.dumps(manifest)), self.folder)
        else:
            write_whole(file, json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")
        if self.path.is_file():  # a process that was killed may have left half a line
            whole = self.path.read_bytes()
            if not whole.endswith(b"\n"):
                write_whole(self.path, whole[: whole.rfind(b"\n") + 1].decode())

    def add(self, line: Mapping[str, Any]) -> None:
        """Add one line, in one write."""
        text = json.dumps(line, ensure_ascii=False) + "\n"
        with self.path.open("ab", buffering=0) as file:
            file.write(text.encode("utf-8", "replace"))  # a model may write half of a character

    def done(self) -> set[str]:
        """Names of the settings that any process has finished; one that failed is not."""
        return set(read_lines(self.folder))


def read_manifest(folder: Path) -> dict[str, Any]:
    """What was run in `folder`.

    Raises:
        FileNotFoundError: nothing was.
        BadData: its manifest is no JSON.
    """
    file = folder / MANIFEST
    if not file.is_file():
        raise FileNotFoundError(f"no {MANIFEST} in {folder}; make results with `symbal bench run --out {folder}`.")
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except ValueError as error:
        raise BadData(f"{file} is no valid JSON ({error}); remove the folder and run again.") from error


def read_run(folder: Path, bench: Bench) -> dict[str, Any]:
    """The manifest of a run over this benchmark.

    Raises:
        FileNotFoundError: nothing was run in `folder`.
        BadData: its manifest is no JSON or names no settings, or it was another benchmark.
    """
    manifest = read_manifest(folder)
    about, method = manifest.get("benchmark"), manifest.get("method")
    listed = about.get("settings") if isinstance(about, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(listed, list) or not listed or not isinstance(method, str):
        raise BadData(f"{folder} holds no run over a benchmark; run `symbal bench run` into a new folder.")
    if about.get("revision") != bench.revision:
        raise BadData(
            f"{folder} was run on a benchmark of revision {about.get('revision')!r}, and {bench.folder} has "
            f"{bench.revision!r}; give the one that it was run on as benchmark."
        )
    return manifest


def read_lines(folder: Path, *, failed: bool = False) -> dict[str, dict[str, Any]]:
    """The line of each setting that was finished, or that failed and was not finished since, by name, in their order.

    Where several processes did the same setting the first file's line counts: they are the same.
    """
    good: dict[str, dict[str, Any]] = {}
    bad: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("results-*.jsonl")):
        for line in _whole_lines(path):
            (bad if line.get("error") else good).setdefault(str(line["name"]), line)
    chosen = {name: line for name, line in bad.items() if name not in good} if failed else good
    return dict(sorted(chosen.items()))


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text("utf-8")
    *lines, _unfinished = text.split("\n")  # what follows the last newline is still being written
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or "name" not in row:
                raise ValueError("no result")
        except ValueError as error:
            raise BadData(f"{path}, line {number}: {error}; remove the line, and its setting is run again.") from error
        yield row


def _check_same(there: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    for key in {**there, **now}:
        if key != "versions" and there.get(key) != now.get(key):
            one, other = there.get(key), now.get(key)
            if isinstance(one, Mapping) and isinstance(other, Mapping):
                _check_same(one, other, folder)
                continue
            if isinstance(one, list) and isinstance(other, list):
                odd = sorted(set(one) ^ set(other))[0]
                one, other = f"{len(one)} ({'with' if odd in one else 'without'} {odd})", str(len(other))
            else:
                one, other = repr(one), repr(other)
            raise BadData(
                f"{folder} holds a run with {key}={one}, and this one has {other}; choose another folder for it."
            )
