"""Imports run one way: a room takes from the rooms below it, and from no other; no room is overfull."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GROUND = {"core", "stats", "language", "results", "data", "models"}
MAY_IMPORT = {
    "core": set(),
    "stats": set(),
    "language": {"core"},
    "results": {"core"},
    "data": {"core", "results"},
    "models": {"core", "language", "data"},
    "auditing": GROUND,
    "matching": {"core", "language", "data", "models"},
    "report": GROUND,
    "captioning": {"core", "language", "results", "data", "models"},
    "followup": {*GROUND, "auditing", "matching", "captioning"},
    "huggingface": {"core", "results", "data", "models", "auditing"},
    "bench": {*GROUND, "auditing", "matching", "huggingface"},
}
BUILDER_MAY_IMPORT = {"core", "language", "data", "huggingface.publish"}
ALLOWED: dict[str, set[str]] = {}  # arrows that still run back up; this may only shrink
MODULES = sorted([*(ROOT / "symbal_hf").rglob("*.py"), *(ROOT / "benchmark_builder").rglob("*.py")])
FOLDERS = [
    folder
    for top in ("symbal_hf", "benchmark_builder", "tests", "scripts", "hub_cards")
    for folder in sorted({path.parent for path in (ROOT / top).rglob("*.py")})
    if "assets" not in folder.parts
]


def name_of(path: Path) -> str:
    """symbal_hf/data/table.py is symbal_hf.data.table."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def taken(path: Path) -> set[str]:
    """Modules of ours that a module imports, in functions and for types too."""
    known = {name_of(other) for other in MODULES}
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & known) or {node.module}
            if not inner <= known:
                names.add(node.module)
    return {name for name in names if name.partition(".")[0] in ("symbal_hf", "benchmark_builder")}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_takes_only_from_the_rooms_below(path: Path) -> None:
    package, *inner = path.relative_to(ROOT).parts
    room = inner[0]
    for name in taken(path) - ALLOWED.get(name_of(path), set()):
        if package == "benchmark_builder":
            inside = name.removeprefix("symbal_hf.")
            fine = name.startswith("benchmark_builder") or any(
                inside == may or inside.startswith(f"{may}.") for may in BUILDER_MAY_IMPORT
            )
            assert fine, f"{name_of(path)} takes {name}; the builder may take from {sorted(BUILDER_MAY_IMPORT)}"
        elif room in MAY_IMPORT:  # the public face and the command may take from everywhere
            assert not name.startswith("benchmark_builder"), f"{path} takes {name}: audits never see what was planted"
            other = name.split(".")[1] if "." in name else ""
            assert other in {room, *MAY_IMPORT[room]}, (
                f"{name_of(path)} takes {name}; {room} may take from {sorted(MAY_IMPORT[room])}"
            )


def test_what_is_allowed_is_needed() -> None:
    for module, names in ALLOWED.items():
        path = ROOT / (module.replace(".", "/") + ".py")
        assert names <= taken(path), f"{module} no longer takes {names - taken(path)}: take it off the list"


def test_no_import_goes_round_in_a_circle() -> None:
    arrows = {name_of(path): taken(path) - {name_of(path)} for path in MODULES}
    done: set[str] = set()

    def visit(name: str, road: tuple[str, ...]) -> None:
        assert name not in road, " -> ".join((*road[road.index(name) :], name))
        if name not in done:
            for other in sorted(arrows.get(name, ())):
                visit(other, (*road, name))
            done.add(name)

    for name in arrows:
        visit(name, ())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(ROOT).as_posix())
def test_no_room_is_overfull(folder: Path) -> None:
    files = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= 13, f"{folder} holds {len(files)} files"


SOURCES = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_can_be_read_at_one_sitting(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.count("\n") <= 400, f"{path} has {text.count(chr(10))} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            words = ast.get_docstring(node, clean=False) or ""
            lines = node.end_lineno - node.lineno + 1 - (words.count("\n") + 1 if words else 0)
            assert lines <= 60, f"{path}: {node.name} has {lines} lines without its docstring"
