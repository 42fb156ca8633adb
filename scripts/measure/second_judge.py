"""How well the second judge sees, alone and with the lite judge, and what its scores are worth; writes that table.

Its scores are turned into log-likelihood ratios by one slope and an intercept for each class, fitted on COCO train2014
photos (it was trained on many of them, yet sees as well on photos apart: the first table). Among names that the lite
judge rejects a score is worth less, since what is hard for one is often hard for the other: by how much is measured on
one half of the val2017 photos, which neither has seen, and told for the other half too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmark_builder.bases.photos import held_out
from symbal_hf.auditing.judges.pixels import EmbeddingJudge
from symbal_hf.auditing.judges.protocol import judge_all
from symbal_hf.core.store import Store
from symbal_hf.data.table import Images
from symbal_hf.models.detectors.nanodet import CLASSES, NanoDet
from symbal_hf.models.encoders.embedding import embed_images
from symbal_hf.models.encoders.lite import LiteVision, MiniLM

RIDGE = 0.3  # pull of a class's intercept towards the common one


def logit(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """Log-odds of probabilities, clipped as the judge clips them."""
    p = np.clip(np.asarray(p, np.float64), 1e-4, 1 - 1e-4)
    return np.log(p / (1 - p))


def fit(scores: NDArray[np.float64], present: NDArray[np.bool_]) -> tuple[float, NDArray[np.float64]]:
    """One slope, and the intercepts of C classes, of a logistic regression of (N, C) presence on (N, C) log-odds."""
    y, classes = present.astype(float), scores.shape[1]

    def loss(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        z = w[0] + w[2:] + w[1] * scores
        error = 1 / (1 + np.exp(-z)) - y
        value = np.logaddexp(0, z).sum() - (y * z).sum() + RIDGE * (w[2:] ** 2).sum() / 2
        return value, np.concatenate([[error.sum(), (error * scores).sum()], error.sum(0) + RIDGE * w[2:]])

    w = minimize(loss, np.zeros(2 + classes), jac=True, method="L-BFGS-B").x
    return float(w[1]), w[0] + w[2:]


def quality(scores: NDArray[np.floating], present: NDArray[np.bool_]) -> str:
    """AUC and mAP over the classes that are there, and precision and recall of what is surer than one half."""
    there = np.flatnonzero(present.any(0) & ~present.all(0))
    auc = np.mean([roc_auc_score(present[:, c], scores[:, c]) for c in there])
    precision = np.mean([average_precision_score(present[:, c], scores[:, c]) for c in there])
    sees = scores > 0.5
    hits = (sees & present).sum()
    return (
        f"AUC {auc:.3f} | mAP {precision:.3f} | precision {hits / sees.sum():.2f} | recall {hits / present.sum():.2f}"
    )


def beside(presence: NDArray[np.floating], present: NDArray[np.bool_]) -> None:
    """Print how well the lite judge is calibrated where it sees little of one class beside another that it sees."""
    sees, found = presence > 0.5, list[tuple[float, int, float]]()
    for v in np.flatnonzero(sees.sum(0) >= 30):
        for t in np.flatnonzero(present.sum(0) >= 15):
            little = sees[:, v] & (presence[:, t] < 0.3)
            lift = (present[sees[:, v], t].mean() + 0.005) / (present[:, t].mean() + 0.005)
            if t != v:
                found.append((lift, int(present[little, t].sum()), float(presence[little, t].sum())))
    for low, high in ((0, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 8), (8, 99)):
        inside = [one for one in found if low <= one[0] < high]
        there, told = sum(one[1] for one in inside), sum(one[2] for one in inside)
        told_as = f"{len(inside)} pairs, {there} there, {told:.0f} told"
        print(f"beside v, which makes t {low} to {high} times as likely: {told_as}")


def together(
    presence: NDArray[np.floating],
    scores: NDArray[np.floating],
    present: NDArray[np.bool_],
    halves: list[NDArray[np.bool_]],
) -> None:
    """Print what both judges together see on each half of photos, by log-odds fitted on the other."""
    known = np.stack([logit(presence), logit(scores)], -1)
    for fitted, tested in (halves, halves[::-1]):
        model = LogisticRegression(C=1e6).fit(known[fitted].reshape(-1, 2), present[fitted].ravel())
        constant, (lite, nanodet) = model.intercept_[0], model.coef_[0]
        told = quality(1 / (1 + np.exp(-known[tested] @ model.coef_[0] - constant)), present[tested])
        print(f"both, log-odds {constant:.2f} + {lite:.2f} lite + {nanodet:.2f} nanodet-g, other half: {told}")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/")
    parser.add_argument("--out", type=Path, help="JSON of the slope, the intercepts and the quartiles")
    options = parser.parse_args()
    folder = options.data / "coco"
    rows = [json.loads(line) for line in (folder / "objects.jsonl").open()]
    ids = np.array([row["image_id"] for row in rows])
    present = np.array([[name in row["chair_objects"] for name in CLASSES] for row in rows])
    images, store, text = Images([str(folder / row["file"]) for row in rows], range(len(rows)), None), Store(), MiniLM()
    scores = embed_images(images, NanoDet(), store=store)[0]
    regions = embed_images(images, LiteVision(), store=store)[0]
    judge = EmbeddingJudge(regions, LiteVision(), lambda texts: text.encode(list(texts)))
    presence, ratio = judge_all(judge, CLASSES)

    seen_by_both = held_out(folder)
    train = np.array([name not in seen_by_both for name in ids])
    val = {json.loads(line)["image_id"] for line in (folder / "text" / "captions_val2017_all5000.jsonl").open()}
    apart = np.array([name in val for name in ids])
    slope, intercept = fit(logit(scores)[train], present[train])
    prior = (present[train].sum(0) + 1) / (train.sum() + 2)
    own = intercept - np.log(prior / (1 - prior))
    print(f"{apart.sum()} photos of val2017, which neither has seen; {train.sum()} of train2014")
    for name, values in (("nanodet-g", scores), ("lite", presence)):
        for label, rows in (("val2017", apart), ("train2014", train)):
            print(f"{name}, {label}: {quality(values[rows], present[rows])}")
    apart_from_lite = np.array([name in seen_by_both for name in ids])
    beside(presence[apart_from_lite], present[apart_from_lite])
    together(presence, scores, present, [apart & (ids % 2 == half) for half in (0, 1)])
    worth = own + slope * logit(scores)
    for half in (0, 1):
        chosen = (ratio > 0) & (apart & (ids % 2 == half))[:, None]
        known = np.stack([worth[chosen], np.broadcast_to(np.log(prior / (1 - prior)), worth.shape)[chosen]], 1)
        weight = LogisticRegression(C=1e6).fit(known, present[chosen]).coef_[0][0]
        constant = -np.log(np.exp(weight * worth[chosen & ~present]).mean())
        check = np.exp(-(weight * worth[chosen & present] + constant)).mean()
        print(
            f"half {half}, {chosen.sum()} rejected names, {present[chosen].sum()} of them there: weight {weight:.2f}, "
            f"constant {constant:.2f} (mean of 1 / ratio where there: {check:.2f}, 1 is right)"
        )
    if options.out:
        absent = [np.quantile(worth[train & ~present[:, c], c], 0.25) for c in range(len(CLASSES))]
        table = {
            "slope": round(slope, 3),
            "intercept": dict(zip(CLASSES, own.round(2).tolist(), strict=True)),
            "absent": dict(zip(CLASSES, np.round(absent, 2).tolist(), strict=True)),
        }
        options.out.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
