"""Which names the lite judge has been shown to see: statements of people, and drawn scenes, against all other images.

A name is proven where the area under the curve of the judge's presence, images whose captions state it against those
whose captions do not, is at least .75 at the lower end of its 95 % interval (Hanley and McNeil 1982). People leave most
things unsaid, which makes it smaller, not larger.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from benchmark_builder.bases.open_bases import scenes_base
from benchmark_builder.bases.photos import held_out
from symbal_hf.auditing.evidence import gather
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, Images
from symbal_hf.language.phrases import names_of
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts

LEAST, FEWEST = 0.75, 10  # of the lower end; images whose captions state a name


def low_end(stated: NDArray[np.bool_], presence: NDArray[np.floating]) -> float:
    """Lower end of the 95 % interval of the area under the curve."""
    auc, n, m = roc_auc_score(stated, presence), int(stated.sum()), int((~stated).sum())
    one, other = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = (auc * (1 - auc) + (n - 1) * (one - auc * auc) + (m - 1) * (other - auc * auc)) / (n * m)
    return float(auc - 1.96 * sqrt(max(spread, 0)))


def proven(captions: list[str], images: list[str], parts: Parts) -> dict[str, tuple[int, float]]:
    """Name -> (images whose captions state it, lower end), of names that reach the bar."""
    ids = tuple(map(str, range(len(images))))
    data = AuditData(ids, tuple(captions), None, None, Images(images, range(len(images)), None), (), "people")
    evidence, out = gather(data, parts), {}
    for index, name in enumerate(evidence.concepts.names):
        stated = evidence.concepts.stated(index)
        if stated.sum() >= FEWEST and not stated.all():
            low = low_end(stated, evidence.beliefs.presence[:, index])
            if low >= LEAST:
                out[name] = int(stated.sum()), low
    return out


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/")
    parser.add_argument("out", type=Path, help="text file of the names")
    options = parser.parse_args()
    folder, parts = options.data / "coco", Parts(Composition(scorer_1="embedding", scorer_2="embedding"), Store())
    files = {row["image_id"]: folder / row["file"] for row in map(json.loads, (folder / "objects.jsonl").open())}
    apart = held_out(folder)
    people = [row for row in map(json.loads, (folder / "captions.jsonl").open()) if row["captions"]]
    people = [row for row in people if row["image_id"] in apart]
    captions = [" ".join(f"{text.strip().rstrip('.')}." for text in row["captions"]) for row in people]
    found = proven(captions, [str(files[row["image_id"]]) for row in people], parts)
    with tempfile.TemporaryDirectory() as drawn:
        scenes = scenes_base(Path(drawn), rows=1000, seed=5)
        of_scenes = proven(list(scenes.captions), [str(path) for path in scenes.images or ()], parts)
    every = {*found, *of_scenes}
    names = sorted(name for name in every if not every & {*names_of(name.split())[1:]})  # "blue lamp" is a lamp
    print(f"{len(people)} photos: {len(found)} names; 1,000 scenes: {len(of_scenes)}; together {len(names)}")
    head = "# Names that the lite judge has been shown to see (scripts/measure/proven_names.py), a line each.\n"
    options.out.write_text(head + "".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main()
