"""The demo's data: rendered scenes with plain captions, and one planted error that the audit is not told about."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.plant import Ground
from benchmark_builder.scenes.draw import write_scenes


@dataclass(frozen=True)
class Truth:
    """What was planted: t, v and the Cramér's V between them."""

    textual_error: str
    visual_feature: str
    strength: float


def plant_demo(folder: Path, *, rows: int = 600, seed: int = 7, strength: float = 0.6) -> tuple[Path, Truth]:
    """Draw `rows` scenes into `folder`, plant an error chosen by `seed`, and write captions.jsonl and truth.json.

    Returns:
        The folder, and the truth.
    """
    scenes = [json.loads(line) for line in write_scenes(folder, rows, seed=seed).read_text("utf-8").splitlines()]
    objects = [frozenset(scene["objects"]) for scene in scenes]
    pairs = (random.Random(f"{seed}-{scene['image_id']}").sample(scene["captions"], 2) for scene in scenes)
    captions = [" ".join(pair) for pair in pairs]
    ids = [str(scene["image_id"]) for scene in scenes]
    count = Counter(name for present in objects for name in present)
    draw, ground = random.Random(seed), Ground.of(captions, objects, seed=seed, ids=ids)
    features = sorted(name for name, n in count.items() if n >= 0.08 * rows)
    for _ in range(1000):
        v, t = draw.choice(features or sorted(count)), draw.choice(sorted(count))
        if t != v and not isinstance(planted := ground.plant(t, v, strength), Infeasible):
            break
    else:
        raise ValueError(f"{rows} scenes are too few to plant an error of strength {strength}; use at least 100.")
    truth = Truth(t, v, planted.plan.achieved)
    lines = [
        json.dumps({"id": row_id, "image": scene["image"], "caption": caption})
        for row_id, scene, caption in zip(ids, scenes, planted.captions, strict=True)
    ]
    (folder / "captions.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "truth.json").write_text(json.dumps(truth.__dict__) + "\n", "utf-8")
    return folder, truth
