"""Every command and every line of code of the tutorials runs, in their order, and prints what the page says it does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from shell import bash, python

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)
MODEL = f"hf:{ROOT / 'tests' / 'assets' / 'scene_mllm'}"  # looks at drawn scenes; stands for your model


@dataclass(frozen=True)
class Step:
    """One block: what is run, and the lines that it prints (`...` stands for anything)."""

    kind: str
    code: str
    printed: str | None


def steps(page: Path) -> list[Step]:
    """The blocks of a page that are run. A comment before a block, "not run here: REASON", keeps it from being run."""
    out: list[Step] = []
    for block in BLOCK.finditer(page.read_text("utf-8")):
        kind, note = block["kind"], block["note"] or ""
        if kind == "text":
            assert out, f"{page.name}: output before any command"
            out[-1] = Step(out[-1].kind, out[-1].code, block["text"])
        elif not note.startswith("not run here: "):
            assert kind in ("bash", "python"), f"{page.name}: a block of kind {kind!r}"
            out.append(Step(kind, block["text"], None))
    return out


def prints(shown: str, printed: str) -> bool:
    """Whether the lines of `shown` are lines of `printed` in that order; spaces count as one, `...` is anything."""
    pattern = ".*?".join(
        r"\s+".join(map(re.escape, part.split())) for part in re.split(r"\.\.\.", shown) if part.split()
    )
    return re.search(pattern, printed, re.DOTALL) is not None


def test_there_is_a_page_for_each_question() -> None:
    questions = "audit-your-dataset audit-your-model medical-reports read-a-report trust-a-finding without-a-gpu"
    assert {page.stem for page in PAGES} == set(questions.split())
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(f"docs/tutorials/{page.name}" in readme for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_it_is_written(page: Path, tmp_path: Path) -> None:
    blocks = steps(page)
    assert len(blocks) >= 3
    env = {"OMP_NUM_THREADS": "1", "MODEL": MODEL, "COLUMNS": "120"}
    for block in blocks:
        done = bash(block.code, tmp_path, env) if block.kind == "bash" else python(block.code, tmp_path)
        assert done.returncode == 0, f"{page.name}:\n{block.code}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        if block.printed is not None:
            assert prints(block.printed, done.stdout), f"{page.name} says:\n{block.printed}\nbut:\n{done.stdout}"


@pytest.mark.parametrize(
    ("shown", "printed", "holds"),
    [
        ("a b\nc", "x\na   b\nc\n", True), ("a\n...\nc", "a\nb\nc", True), ("a\nc", "a\nb\nc", False),
        ("3 rows", "4 rows", False), ("... of 3", "2 of 3", True),
    ],
)  # fmt: skip
def test_what_a_page_shows_is_held_against_what_is_printed(shown: str, printed: str, holds: bool) -> None:
    assert prints(shown, printed) == holds
