"""Which names the lite judge has been shown to see, and how many of people's statements of each it rejects.

A name is proven where the area under the curve of the judge's presence, images whose captions state it against those
whose captions do not, is at least .75 at the lower end of its 95 % interval (Hanley and McNeil 1982). People leave most
things unsaid, which makes it smaller, not larger. And the judge must not reject most of what people state: what ranks
images well may lie all on one side of the line.
"""

from __future__ import annotations

import argparse
import json
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmark_builder.bases.photos import held_out
from symbal_hf.auditing.evidence import gather
from symbal_hf.auditing.judged import LACKS
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, Images
from symbal_hf.language.phrases import names_of
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts

LEAST, FEWEST = 0.75, 10  # of the lower end; images whose captions state a name
MOST_REJECTED = 0.5  # of people's statements


def low_end(stated: NDArray[np.bool_], presence: NDArray[np.floating]) -> float:
    """Lower end of the 95 % interval of the area under the curve."""
    auc, n, m = roc_auc_score(stated, presence), int(stated.sum()), int((~stated).sum())
    one, other = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = (auc * (1 - auc) + (n - 1) * (one - auc * auc) + (m - 1) * (other - auc * auc)) / (n * m)
    return float(auc - 1.96 * sqrt(max(spread, 0)))


def counts(stated: NDArray[np.bool_], presence: NDArray[np.floating]) -> tuple[int, int] | None:
    """Images whose captions state a name, and those of them that the judge rejects; None where it is not proven."""
    if stated.sum() < FEWEST or stated.all() or low_end(stated, presence) < LEAST:
        return None
    rejected = int((stated & (presence < LACKS)).sum())
    return (int(stated.sum()), rejected) if rejected <= MOST_REJECTED * stated.sum() else None


def proven(captions: list[str], images: list[str], parts: Parts) -> dict[str, tuple[int, int]]:
    """Name -> images whose captions state it, and those of them that the judge rejects, of names that reach the bar."""
    ids = tuple(map(str, range(len(images))))
    data = AuditData(ids, tuple(captions), None, None, Images(images, range(len(images)), None), (), "people")
    evidence, out = gather(data, parts), {}
    for index, name in enumerate(evidence.concepts.names):
        if (shown := counts(evidence.concepts.stated(index), evidence.beliefs.presence[:, index])) is not None:
            out[name] = shown
    return out


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/")
    parser.add_argument("out", type=Path, help="CSV of the names")
    options = parser.parse_args()
    folder, parts = options.data / "coco", Parts(Composition(scorer_1="embedding", scorer_2="embedding"), Store())
    files = {row["image_id"]: folder / row["file"] for row in map(json.loads, (folder / "objects.jsonl").open())}
    apart = held_out(folder)
    people = [row for row in map(json.loads, (folder / "captions.jsonl").open()) if row["captions"]]
    people = [row for row in people if row["image_id"] in apart]
    captions = [" ".join(f"{text.strip().rstrip('.')}." for text in row["captions"]) for row in people]
    found = proven(captions, [str(files[row["image_id"]]) for row in people], parts)
    names = sorted(name for name in found if not {*found} & {*names_of(name.split())[1:]})  # "blue lamp" is a lamp
    print(f"{len(people)} photos: {len(names)} names")
    lines = ["name,stated,rejected", *(f"{name},{found[name][0]},{found[name][1]}" for name in names)]
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
