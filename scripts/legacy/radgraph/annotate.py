"""Entities of impressions by RadGraph-XL, in an environment of its own; written after radgraph 0.1.18, never run by us.

    python annotate.py impressions.jsonl --out radgraph.jsonl

Each line of the source is {"id": "s50414267", "text": ...}, each line of the result {"id", "text", "entities"} as the
medical bases read it: the text as RadGraph split it, to whose words its token numbers belong. A second run goes on
where the first one stopped. Without a network `--cache` must hold radgraph-xl/ and the BERT that its config.json names.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Annotate = Callable[[list[str]], Mapping[str, Any]]


def rows(reports: Iterable[tuple[str, str]], annotate: Annotate) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """(id, row) of each report, one at a time; None where RadGraph gave nothing or the report is empty.

    RadGraph leaves a failing report out of its result and prints; among several nobody would know which.
    """
    for name, text in reports:
        found = None
        if text.strip():  # of an empty one it would annotate the word "None"
            try:
                found = annotate([text]).get("0")
            except Exception as error:
                print(f"{name}: {type(error).__name__}", file=sys.stderr)
        whole = found is not None and "text" in found and "entities" in found
        yield name, {"id": name, "text": found["text"], "entities": found["entities"]} if whole else None


def read(source: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each line."""
    with source.open(encoding="utf-8-sig") as file:
        for line in filter(str.strip, file):
            row = json.loads(line)
            yield str(row["id"]), row["text"]


def done(out: Path) -> set[str]:
    """Ids that the file has; a last line that was cut off is taken away."""
    if not out.is_file():
        return set()
    text = out.read_text("utf-8")
    if whole := text[: text.rfind("\n") + 1]:
        out.write_text(whole, "utf-8")
    else:
        out.unlink()
    return {json.loads(line)["id"] for line in whole.splitlines() if line.strip()}


def write(source: Path, out: Path, annotate: Annotate) -> list[str]:
    """Append what is not there yet, each report as it is done; gives the ids that have no annotation."""
    known, missing = done(out), []
    with out.open("a", encoding="utf-8") as file:
        for name, row in rows(((name, text) for name, text in read(source) if name not in known), annotate):
            if row is None:
                missing.append(name)
                continue
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
    return missing


def load(cache: Path | None, cuda: int | None) -> Annotate:
    """RadGraph-XL. The argument is `model_type`: any other name would be swallowed."""
    from radgraph import RadGraph

    folder = {"model_cache_dir": str(cache), "tokenizer_cache_dir": str(cache)} if cache else {}
    return RadGraph(model_type="radgraph-xl", batch_size=1, cuda=cuda, **folder)


def main() -> None:
    """Annotate what has no annotation yet; reports that have none in the end are listed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help='JSON lines {"id", "text"}')
    parser.add_argument("--out", type=Path, default=Path("radgraph.jsonl"))
    parser.add_argument("--cache", type=Path, help="folder of weights and of BERT")
    parser.add_argument(
        "--cuda", type=int, help="number of the GPU, -1 for none; by default the first, if there is one"
    )
    args = parser.parse_args()

    missing = write(args.source, args.out, load(args.cache, args.cuda))
    print(f"{args.out}: {len(done(args.out))} reports, {len(missing)} without an annotation")
    print("\n".join(missing), file=sys.stderr, end="\n" if missing else "")


if __name__ == "__main__":
    main()
