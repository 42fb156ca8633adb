"""Train the lite adapter on frozen EfficientNet features of photos and rendered scenes, and print how well it sees."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import lightning
import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.metrics import average_precision_score, roc_auc_score
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

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
            says.append(vision.backbone.forward_head(square).softmax(-1))
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
    vision, text = LiteVision(), MiniLM()

    train, test = photo_base(args.data / "coco", part="train"), photo_base(args.data / "coco", part="held_out")
    drawn_names = {*OBJECT_NAMES, *BACKGROUND_NAMES}
    classes = sorted({name for row in (*train.objects, *test.objects) for name in row} | drawn_names)
    scenes = [make_scene(i, seed=SCENE_SEED)[0] for i in range(args.scenes)]
    tests = [make_scene(i, seed=SCENE_SEED + 1)[0] for i in range(500)]
    shown = [frozenset([scene.background, *(o.name for o in scene.objects)]) for scene in (*scenes, *tests)]

    def photo(path: Path):  # noqa: ANN202
        return lambda: decode(path.read_bytes())

    def drawn(index: int, seed: int):  # noqa: ANN202
        return lambda: make_scene(index, seed=seed)[1]

    if args.cache and args.cache.exists():
        stored = torch.load(args.cache)
    else:
        stored = {
            "train": grids([photo(p) for p in train.images or ()], vision, flips=True),
            "scenes": grids([drawn(i, SCENE_SEED) for i in range(args.scenes)], vision, flips=True),
            "test": grids([photo(p) for p in test.images or ()], vision, flips=False),
            "test scenes": grids([drawn(i, SCENE_SEED + 1) for i in range(500)], vision, flips=False),
        }
        if args.cache:
            torch.save(stored, args.cache)

    def table(rows) -> np.ndarray:  # noqa: ANN001
        return np.array([[c in row for c in classes] for row in rows], np.float32)

    # A photo's labels are COCO's classes and a scene's are ours: elsewhere nothing is known, not "absent".
    coco = np.array([any(c in row for row in train.objects) for c in classes], np.float32)
    ours = np.array([c in drawn_names for c in classes], np.float32)
    present = torch.from_numpy(np.concatenate([table(train.objects), table(shown[: args.scenes])]))
    known = torch.from_numpy(np.concatenate([np.tile(coco, (len(train.ids), 1)), np.tile(ours, (args.scenes, 1))]))
    grid = torch.cat([stored["train"][0], stored["scenes"][0]])
    says = torch.cat([stored["train"][1], stored["scenes"][1]])
    says[len(train.ids) :] = 0  # a network of photos has no say about drawings ...
    texts = torch.from_numpy(np.stack([text.encode([w.format(c) for c in classes]) for w in WORDINGS]))
    questions = torch.from_numpy(np.stack([text.encode([q.format(c) for c in classes]) for q in QUESTIONS]))
    from timm.data import ImageNetInfo

    info = ImageNetInfo()
    names = [info.index_to_description(i).split(", ") for i in range(1000)]
    forms = ("a {}", "There is a {} in the picture.", "A {} can be seen here.")
    asked = [[w.format(n[min(k, len(n) - 1)]) for n in names] for k in (0, 1) for w in forms]
    wide = torch.from_numpy(np.stack([text.encode(names_asked) for names_asked in asked]))

    def fit(left_out: np.ndarray) -> LiteAdapter:
        lightning.seed_everything(args.seed)
        seen = known * torch.from_numpy(1 - left_out)
        allowed = torch.ones(len(names))
        synonyms = json.loads((args.data / "mllm_coco" / "chair_vocab.json").read_text())["inverse_synonym_dict"]
        gone = {c for c, out in zip(classes, left_out, strict=True) if out}
        gone |= {s.strip() for s, c in synonyms.items() if c in gone}
        for i, group in enumerate(names):
            if any(re.search(rf"\b{re.escape(g)}s?\b", " ".join(group).lower()) for g in gone):
                allowed[i] = 0
        loader = DataLoader(TensorDataset(grid, present, seen, says), batch_size=64, shuffle=True, drop_last=True)
        module = Train(texts, wide, allowed, steps=args.epochs * len(loader), weight=args.weight)
        trainer = lightning.Trainer(
            max_epochs=args.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_model_summary=False, enable_progress_bar=False,
        )  # fmt: skip
        trainer.fit(module, loader)
        module.network.eval()
        return module.adapter

    def report(adapter: LiteAdapter, label: str, keep: np.ndarray) -> dict[str, float]:
        out = {}
        for kind, base, mask in (("photos", table(test.objects), coco), ("scenes", table(shown[args.scenes :]), ours)):
            auc, precision = scores(adapter, stored["test" if kind == "photos" else "test scenes"][0], base, questions)
            use = (mask > 0) & keep & ~np.isnan(auc)
            if use.sum() < 5:  # a mean over two classes says nothing
                continue
            out[kind] = f"AUC {auc[use].mean():.3f}  mAP {precision[use].mean():.3f}  over {use.sum()} classes"
            print(f"{label}, held-out {kind}: {out[kind]}", flush=True)
        return out

    photos_only = np.zeros(len(classes), np.float32)
    coco_classes = np.flatnonzero(coco)
    photos_only[coco_classes[NEVER]] = 1
    print("classes left out of the second run:", [classes[i] for i in np.flatnonzero(photos_only)])
    adapter = fit(np.zeros(len(classes), np.float32))
    final = report(adapter, "trained classes", np.ones(len(classes), bool))
    save_file({k: v.detach().half().contiguous() for k, v in adapter.network.state_dict().items()}, args.out)
    unseen = report(fit(photos_only), "classes never trained on", photos_only > 0)
    args.out.with_name("README.md").write_text(card(final, unseen, len(train.ids), args))


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
