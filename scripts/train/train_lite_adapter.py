"""Train the lite adapter on frozen EfficientNet features of photos and rendered scenes, and print how well it sees."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

from benchmark_builder.bases.base import Base
from benchmark_builder.bases.photos import photo_base
from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES, make_scene
from symbal_hf.auditing.judges.pixels import QUESTIONS
from symbal_hf.data.pixels import decode
from symbal_hf.models.encoders.lite import LiteAdapter, LiteVision, MiniLM

# How a class is put into words in training; audits ask in the words of `QUESTIONS`, two of them among these.
WORDINGS = (
    "{}", "a {}", "There is a {} in the picture.", "a photo of a {}", "A {} can be seen here.",
    "Someone is standing near a {}.", "On one side you can see a {}.", "The {} is in the middle.",
    "a {} and other things", "The image shows a {}.", "Close to the camera there is a {}.",
    "A {} lies in the background.", "I can make out a {}.",
)  # fmt: skip
NEVER = slice(3, None, 8)  # every eighth class is left out of the run that measures classes never trained on
WIDE = 250  # ImageNet names asked per step
DRAWN = {*OBJECT_NAMES, *BACKGROUND_NAMES}
SCENE_SEED = 1000  # scenes of the demo and the benchmark use other seeds


class Train(lightning.LightningModule):
    """Sigmoid loss of present and absent classes, and of what the frozen backbone itself says about ImageNet names.

    The second part costs no labels and keeps the text space open: names that no label ever mentions find their image.
    """

    def __init__(
        self, texts: torch.Tensor, wide: torch.Tensor, allowed: torch.Tensor, *, steps: int, weight: float
    ) -> None:
        super().__init__()
        self.adapter = LiteAdapter()
        self.network = self.adapter.network  # known to Lightning as a module of its own
        self.texts, self.wide, self.allowed, self.steps, self.weight = texts, wide, allowed, steps, weight

    def training_step(self, batch: tuple[torch.Tensor, ...], _: int) -> torch.Tensor:
        """Loss of one batch: grid features, labels, which labels are known, what the backbone says."""
        grid, present, known, says = batch
        regions = self.adapter(grid[torch.arange(len(grid)), torch.randint(0, grid.shape[1], (len(grid),))].float())
        text = self.texts[torch.randint(0, len(self.texts), (self.texts.shape[1],)), torch.arange(self.texts.shape[1])]
        text = functional.normalize(text + 0.02 * torch.randn_like(text), dim=-1)
        loss = functional.binary_cross_entropy_with_logits(
            self.adapter.log_odds(regions, text), present, weight=known, reduction="sum"
        ) / known.sum().clamp(min=1)
        names = torch.randint(0, self.wide.shape[1], (WIDE,))
        wide = self.wide[torch.randint(0, len(self.wide), (WIDE,)), names]
        extra = functional.binary_cross_entropy_with_logits(
            self.adapter.log_odds(regions, wide), says[:, names], weight=self.allowed[names].expand(len(grid), -1)
        )
        return loss + self.weight * extra

    def configure_optimizers(self) -> dict:
        """AdamW with one cycle of the learning rate."""
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-3, weight_decay=0.05)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=self.steps, pct_start=0.15)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def grids(images: list, vision: LiteVision, *, flips: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, 1 or 2, 64, 1280) float16 features of images (and their mirror images), and (N, 1000) probabilities."""
    features, says = [], []
    for start in tqdm(range(0, len(images), 32), desc="features", mininterval=10):
        pixels = torch.from_numpy(np.stack([vision.pixels(load()) for load in images[start : start + 32]]))
        both = [vision.features(p) for p in ((pixels, pixels.flip(2)) if flips else (pixels,))]
        features.append(torch.stack(both, 1).half())
        with torch.inference_mode():
            square = both[0].transpose(1, 2).reshape(len(pixels), -1, 8, 8)
            says.append(vision.model.forward_head(square).softmax(-1))
    return torch.cat(features), torch.cat(says)


def scores(
    adapter: LiteAdapter, grid: torch.Tensor, present: np.ndarray, questions: torch.Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """AUC and average precision of each class (NaN below ten examples), averaged log-odds over the questions."""
    adapter.network.eval()
    with torch.inference_mode():
        odds = torch.cat(
            [
                torch.stack([adapter.log_odds(adapter(part[:, 0].float()), text) for text in questions]).mean(0)
                for part in grid.split(64)
            ]
        ).numpy()
    auc, precision = np.full(present.shape[1], np.nan), np.full(present.shape[1], np.nan)
    for c in range(present.shape[1]):
        if 10 <= present[:, c].sum() < len(present):
            auc[c] = roc_auc_score(present[:, c], odds[:, c])
            precision[c] = average_precision_score(present[:, c], odds[:, c])
    return auc, precision


@dataclass
class Lesson:
    """What the adapter is trained and measured on.

    Attributes:
        args: of the command.
        train: COCO photos to learn from; `test` photos apart.
        classes: every name that any of the images may have.
        shown: what each drawn scene shows, those for measuring last.
        stored: features of the images by their kind, and what the backbone says of them.
        texts: (W, C, 384) wordings of the classes, and `wide` those of ImageNet's.
        questions: (Q, C, 384) as the judge puts them.
        names: what ImageNet calls each of its classes.
    """

    args: argparse.Namespace
    train: Base
    test: Base
    classes: list[str]
    shown: list[frozenset[str]]
    stored: dict[str, Any]
    texts: torch.Tensor
    wide: torch.Tensor
    questions: torch.Tensor
    names: list[list[str]]

    @cached_property
    def coco(self) -> np.ndarray:
        """(C,) 1 for COCO's classes; `ours` for those of scenes."""
        return np.array([any(c in row for row in self.train.objects) for c in self.classes], np.float32)

    @cached_property
    def ours(self) -> np.ndarray:
        """(C,) 1 for the names that scenes are drawn of."""
        return np.array([c in DRAWN for c in self.classes], np.float32)

    def table(self, rows: Any) -> np.ndarray:
        """(N, C) which classes each row has."""
        return np.array([[c in row for c in self.classes] for row in rows], np.float32)

    @cached_property
    def data(self) -> tuple[torch.Tensor, ...]:
        """Features, presence, where presence is known, and what the backbone says, of all images to learn from."""
        photos, scenes = len(self.train.ids), self.args.scenes
        # A photo's labels are COCO's classes and a scene's are ours: elsewhere nothing is known, not "absent".
        known = np.concatenate([np.tile(self.coco, (photos, 1)), np.tile(self.ours, (scenes, 1))])
        present = np.concatenate([self.table(self.train.objects), self.table(self.shown[:scenes])])
        grid = torch.cat([self.stored["train"][0], self.stored["scenes"][0]])
        says = torch.cat([self.stored["train"][1], self.stored["scenes"][1]])
        says[photos:] = 0  # a network of photos has no say about drawings ...
        return grid, torch.from_numpy(present), torch.from_numpy(known), says

    def fit(self, left_out: np.ndarray) -> LiteAdapter:
        """An adapter trained without the classes (C,) that are `left_out`."""
        lightning.seed_everything(self.args.seed)
        grid, present, known, says = self.data
        allowed = torch.ones(len(self.names))
        vocabulary = json.loads((self.args.data / "mllm_coco" / "chair_vocab.json").read_text())
        gone = {c for c, out in zip(self.classes, left_out, strict=True) if out}
        gone |= {s.strip() for s, c in vocabulary["inverse_synonym_dict"].items() if c in gone}
        for i, group in enumerate(self.names):
            if any(re.search(rf"\b{re.escape(g)}s?\b", " ".join(group).lower()) for g in gone):
                allowed[i] = 0
        seen = known * torch.from_numpy(1 - left_out)
        loader = DataLoader(TensorDataset(grid, present, seen, says), batch_size=64, shuffle=True, drop_last=True)
        steps = self.args.epochs * len(loader)
        module = Train(self.texts, self.wide, allowed, steps=steps, weight=self.args.weight)
        shown = {"enable_checkpointing": False, "enable_model_summary": False, "enable_progress_bar": False}
        lightning.Trainer(max_epochs=self.args.epochs, accelerator="cpu", logger=False, **shown).fit(module, loader)
        module.network.eval()
        return module.adapter

    def report(self, adapter: LiteAdapter, label: str, keep: np.ndarray) -> dict[str, float]:
        """Prints and gives the figures over the classes (C,) to `keep`, on photos and scenes apart."""
        out = {}
        drawn = self.table(self.shown[self.args.scenes :])
        for kind, base, mask in (("photos", self.table(self.test.objects), self.coco), ("scenes", drawn, self.ours)):
            grid = self.stored["test" if kind == "photos" else "test scenes"][0]
            auc, precision = scores(adapter, grid, base, self.questions)
            use = (mask > 0) & keep & ~np.isnan(auc)
            if use.sum() < 5:  # a mean over two classes says nothing
                continue
            out[kind] = f"AUC {auc[use].mean():.3f}  mAP {precision[use].mean():.3f}  over {use.sum()} classes"
            print(f"{label}, held-out {kind}: {out[kind]}", flush=True)
        return out


def features(args: argparse.Namespace, train: Base, test: Base) -> dict[str, Any]:
    """Features of all images, from the cache file where there is one."""
    if args.cache and args.cache.exists():
        return torch.load(args.cache)
    vision = LiteVision()

    def photos(base: Base) -> list[Any]:
        return [partial(lambda path: decode(path.read_bytes()), path) for path in base.images or ()]

    def drawn(n: int, seed: int) -> list[Any]:
        return [partial(lambda index: make_scene(index, seed=seed)[1], index) for index in range(n)]

    stored = {
        "train": grids(photos(train), vision, flips=True),
        "scenes": grids(drawn(args.scenes, SCENE_SEED), vision, flips=True),
        "test": grids(photos(test), vision, flips=False),
        "test scenes": grids(drawn(500, SCENE_SEED + 1), vision, flips=False),
    }
    if args.cache:
        torch.save(stored, args.cache)
    return stored


def lesson(args: argparse.Namespace) -> Lesson:
    """Everything read, drawn and encoded."""
    from timm.data import ImageNetInfo

    text = MiniLM()
    train, test = photo_base(args.data / "coco", part="train"), photo_base(args.data / "coco", part="held_out")
    classes = sorted({name for row in (*train.objects, *test.objects) for name in row} | DRAWN)
    scenes = [make_scene(i, seed=SCENE_SEED)[0] for i in range(args.scenes)]
    tests = [make_scene(i, seed=SCENE_SEED + 1)[0] for i in range(500)]
    shown = [frozenset([scene.background, *(o.name for o in scene.objects)]) for scene in (*scenes, *tests)]
    info = ImageNetInfo()
    names = [info.index_to_description(i).split(", ") for i in range(1000)]
    forms = ("a {}", "There is a {} in the picture.", "A {} can be seen here.")
    asked = [[w.format(n[min(k, len(n) - 1)]) for n in names] for k in (0, 1) for w in forms]

    def encoded(groups: list[list[str]]) -> torch.Tensor:
        return torch.from_numpy(np.stack([text.encode(group) for group in groups]))

    texts = encoded([[w.format(c) for c in classes] for w in WORDINGS])
    questions = encoded([[q.format(c) for c in classes] for q in QUESTIONS])
    stored = features(args, train, test)
    return Lesson(args, train, test, classes, shown, stored, texts, encoded(asked), questions, names)


def main() -> None:
    """Train, measure, save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with coco/ and mllm_coco/")
    parser.add_argument("--scenes", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--weight", type=float, default=10.0, help="of the ImageNet part of the loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, help="a file to keep the features in between runs")
    parser.add_argument("--out", type=Path, default=Path("symbal_hf/models/encoders/weights/lite_adapter.safetensors"))
    args = parser.parse_args()
    lightning.seed_everything(args.seed)
    made = lesson(args)
    photos_only = np.zeros(len(made.classes), np.float32)
    photos_only[np.flatnonzero(made.coco)[NEVER]] = 1
    print("classes left out of the second run:", [made.classes[i] for i in np.flatnonzero(photos_only)])
    adapter = made.fit(np.zeros(len(made.classes), np.float32))
    final = made.report(adapter, "trained classes", np.ones(len(made.classes), bool))
    save_file({k: v.detach().half().contiguous() for k, v in adapter.network.state_dict().items()}, args.out)
    unseen = made.report(made.fit(photos_only), "classes never trained on", photos_only > 0)
    args.out.with_name("README.md").write_text(card(final, unseen, len(made.train.ids), args))


def card(final: dict, unseen: dict, photos: int, args: argparse.Namespace) -> str:
    """The card that ships beside the weights."""
    return f"""# Lite adapter

Two heads of two layers each (1.7 M parameters, float16) that put the 8x8 feature grid of a frozen
`timm/tf_efficientnet_lite0.in1k` at 256 px into the space of `sentence-transformers/all-MiniLM-L6-v2`; the sigmoid of
its log-odds is the probability that the image shows what a text names.

**Data.** {photos:,} COCO train2014 photos (whole photo, squeezed to a square; mirror images too) with the presence of
80 classes (annotations and mentions in captions), {args.scenes:,} scenes from `benchmark_builder.scenes.draw` (seed
{SCENE_SEED}), and on the photos the backbone's own probabilities for its 1,000 ImageNet names. Seed {args.seed},
{args.epochs} epochs, made by `scripts/train/train_lite_adapter.py`.

| measured on | classes trained on | classes left out of training (another run) |
|---|---|---|
| held-out photos | {final["photos"]} | {unseen["photos"]} |
| held-out scenes | {final["scenes"]} | |

**Limits.** Small things are often missed; presence in the training data errs towards "present"; names outside COCO,
ImageNet and the scenes are guesses; it knows no counts, colours, actions or positions. English only. COCO photos carry
their photographers' Flickr licences, COCO annotations are CC BY 4.0; the weights hold no image.
"""


if __name__ == "__main__":
    main()
