"""Whether the tests would notice: change one place at a time (a comparison, a sign, a constant) and run the tests.

    python scripts/measure/mutate.py symbal_hf/auditing symbal_hf/stats --places 40 -- tests/stats tests/auditing

It works on a copy of the checkout, draws the places with a seed, prints each change that no test noticed, and how many
were noticed. A change that only a timeout stops counts as noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPARED = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
COMBINED = {"+": "-", "-": "+", "*": "/", "/": "*", "&": "|", "|": "&"}
SYMBOLS = {
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Add: "+", ast.Sub: "-",
    ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip
Change = tuple[Path, int, int, str, str]  # file, line, column, what stands there, what takes its place


def places(path: Path) -> Iterator[Change]:
    """Every operator of a file between two operands on one line, with what it may become."""
    text = path.read_text("utf-8")
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, operator, right = node.left, node.ops[0], node.comparators[0]
        elif isinstance(node, ast.BinOp):
            left, operator, right = node.left, node.op, node.right
        else:
            continue
        symbol = SYMBOLS.get(type(operator))
        if symbol is None or left.end_lineno != right.lineno or left.end_col_offset is None:
            continue
        between = lines[right.lineno - 1].encode()[left.end_col_offset : right.col_offset].decode()
        if between.count(symbol) == 1 and isinstance(
            left, (ast.Constant, ast.Name, ast.Call, ast.Attribute, ast.BinOp, ast.Subscript)
        ):
            column = left.end_col_offset + between.index(symbol)
            yield path, right.lineno, column, symbol, {**COMPARED, **COMBINED}[symbol]


def changed(text: str, change: Change) -> str:
    """The file with one place changed."""
    _, line, column, old, new = change
    lines = text.split("\n")
    raw = lines[line - 1].encode()
    lines[line - 1] = (raw[:column] + new.encode() + raw[column + len(old.encode()) :]).decode()
    return "\n".join(lines)


def main() -> int:
    """Change, run, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="where places are changed")
    parser.add_argument("--places", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=600, help="seconds a run")
    own, _, tests = " ".join(sys.argv[1:]).partition(" -- ")
    args = parser.parse_args(own.split())
    files = sorted(path for folder in args.folders for path in (ROOT / folder).rglob("*.py"))
    drawn = random.Random(args.seed).sample([change for path in files for change in places(path)], args.places)
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "__pycache__", "demo-out"))
        data = os.environ.get("SYMBAL_DATA", str(ROOT.parent / "shared" / "data"))
        env = {**os.environ, "PYTHONPATH": str(copy), "SYMBAL_DATA": data}
        for number, change in enumerate(drawn, 1):
            path = copy / change[0].relative_to(ROOT)
            text = path.read_text("utf-8")
            path.write_text(changed(text, change), "utf-8")
            try:
                command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
                run = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=args.timeout)
                noticed = run.returncode != 0
            except subprocess.TimeoutExpired:
                noticed = True
            path.write_text(text, "utf-8")
            missed += not noticed
            line = text.split("\n")[change[1] - 1].strip()
            mark = "noticed" if noticed else "MISSED "
            print(f"{number:3} {mark} {path.name}:{change[1]} {change[3]} -> {change[4]}   {line}", flush=True)
    print(f"{args.places - missed} of {args.places} changes were noticed")
    return int(missed > args.places / 10)


if __name__ == "__main__":
    sys.exit(main())
