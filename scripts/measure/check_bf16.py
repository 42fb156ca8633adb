"""Does bfloat16 change what the lite image encoder ranks? Compares it with float32 on real photos."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmark_builder.bases.photos import photo_base
from symbal_hf.data.pixels import decode
from symbal_hf.models.encoders.lite import LiteVision, MiniLM


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/")
    parser.add_argument("--rows", type=int, default=400)
    args = parser.parse_args()
    base = photo_base(args.data / "coco")
    classes = [c for c, n in Counter(o for row in base.objects[: args.rows] for o in row).items() if n >= 10]
    text = MiniLM().encode([f"a photo of a {c}" for c in classes])
    present = np.array([[c in row for c in classes] for row in base.objects[: args.rows]])
    odds = {}
    for bf16 in (False, True):
        vision, parts = LiteVision(bf16=bf16), []
        for start in range(0, args.rows, 32):
            paths = (base.images or ())[start : min(start + 32, args.rows)]
            parts.append(vision.regions([vision.pixels(decode(p.read_bytes())) for p in paths]))
        odds[bf16] = vision.log_odds(np.concatenate(parts), text)
    auc = {k: np.mean([roc_auc_score(present[:, c], v[:, c]) for c in range(len(classes))]) for k, v in odds.items()}
    ranks = [
        np.corrcoef(odds[False][:, c].argsort().argsort(), odds[True][:, c].argsort().argsort())[0, 1]
        for c in range(len(classes))
    ]
    print(f"{args.rows} photos, {len(classes)} classes: AUC float32 {auc[False]:.4f}, bfloat16 {auc[True]:.4f}")
    print(f"rank correlation per class: mean {np.mean(ranks):.4f}, lowest {np.min(ranks):.4f}")
    print(f"largest change of the log-odds: {np.abs(odds[True] - odds[False]).max():.3f}")


if __name__ == "__main__":
    main()
