"""Teaches the vision tower alone: which objects each patch of a picture shows."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import torch
from lightning.fabric import Fabric
from scene_mllm_model import IMAGE_TOKENS, VISION_WIDTH, normalized
from scene_mllm_pool import Pool
from torch import nn
from transformers import LevitModel

from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES

THINGS = len(OBJECT_NAMES)
RATE = 2e-3


def patch_shares(pool: Pool, rows: np.ndarray) -> torch.Tensor:
    """(n, patches, things + places): how much of each patch is what; what no object covers is the place."""
    names, cover = np.asarray(pool.names[rows]), np.asarray(pool.cover[rows], np.float32) / 255
    shares = np.zeros((len(rows), IMAGE_TOKENS, THINGS + len(BACKGROUND_NAMES)), np.float32)
    for k in range(names.shape[1]):
        has = np.flatnonzero(names[:, k] >= 0)
        shares[has, :, names[has, k]] = cover[has, k]
    rest = np.clip(1 - shares.sum(2), 0, 1)
    shares[np.arange(len(rows)), :, THINGS + np.asarray(pool.places[rows], int)] = rest
    return torch.from_numpy(shares)


def presence(pool: Pool, rows: np.ndarray) -> torch.Tensor:
    """(n, things): 1 where the scene has the thing."""
    out = torch.zeros(len(rows), THINGS + 1)
    out.scatter_(1, torch.from_numpy(np.where(pool.names[rows] < 0, THINGS, pool.names[rows]).astype(np.int64)), 1)
    return out[:, :THINGS]


def seeing_loss(likeness: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """How far the patches are from showing what they show; `likeness` has a logit for each thing and place."""
    chances = likeness.float().log_softmax(-1)
    # A small thing covers little of any patch; one of them has to look like it all the same.
    best = chances[:, :, :THINGS].amax(1).exp().clamp(1e-4, 1 - 1e-4)
    truth = (shares[:, :, :THINGS].amax(1) > 0).float()
    missed = -(truth * best.log() + (1 - truth) * (1 - best).log()).mean()
    return 4 * missed - (shares * chances).sum(-1).mean()


class Seer(nn.Module):
    """The tower and a head that is thrown away afterwards."""

    def __init__(self, tower: LevitModel) -> None:
        super().__init__()
        self.tower, self.head = tower, nn.Linear(VISION_WIDTH, THINGS + len(BACKGROUND_NAMES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of each patch."""
        return self.head(self.tower.patch_embeddings(images))


def f1(seer: Seer, pool: Pool, n: int = 1000) -> float:
    """Micro F1 of the objects found in the first n pictures."""
    rows = np.arange(min(n, len(pool)))
    seer.eval()
    with torch.no_grad():
        parts = np.array_split(rows, max(1, len(rows) // 100))
        logits = [seer(normalized(torch.from_numpy(np.array(pool.images[part])))) for part in parts]
    seer.train()
    found = torch.cat(logits).softmax(-1)[:, :, :THINGS].amax(1) > 0.3
    truth = presence(pool, rows).bool()
    return float(2 * (found & truth).sum() / (found.sum() + truth.sum()))


def train_vision(fabric: Fabric, tower: LevitModel, pool: Pool, unseen: Pool, seconds: float, file: Path) -> None:
    """Trains the tower for so many seconds, going on from `file` where that exists."""
    state = fabric.load(file) if file.exists() else None
    if state and state["seconds"] >= seconds:
        tower.load_state_dict(state["tower"])
        return
    torch.manual_seed(1)
    size = 48
    # The normalization's running mean is only as good as the last pictures; a longer memory serves the frozen tower.
    for module in tower.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.02
    model = Seer(tower)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.02, betas=(0.9, 0.98))
    seer, optimizer = fabric.setup(model, optimizer)
    step, order, before, told = 0, np.array([], int), 0.0, 0.0
    if state:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        before, step = state["seconds"], state["step"]
    rng, start = np.random.default_rng(1 + step), time.monotonic()
    while (done := (before + time.monotonic() - start) / seconds) < 1:
        if len(order) < size:
            order = rng.permutation(len(pool))
        rows, order = np.sort(order[:size]), order[size:]
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, step / 100) * (0.02 + 0.98 * (1 + math.cos(math.pi * done)) / 2)
        images = normalized(torch.from_numpy(np.array(pool.images[rows])))
        # Light and contrast vary a little, so that no exact shade is learned.
        images = images * (1 + 0.05 * torch.randn(size, 1, 1, 1)) + 0.05 * torch.randn(size, 3, 1, 1)
        loss = seeing_loss(seer(images), patch_shares(pool, rows))
        fabric.backward(loss)
        fabric.clip_gradients(seer, optimizer, max_norm=2.0)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if time.monotonic() - told > 60:
            told = time.monotonic()
            news = f"loss {float(loss.detach()):.3f}, F1 {f1(model, unseen):.3f}"
            print(f"vision {done:.0%}, {step * size:,} pictures: {news}", flush=True)
            values = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            fabric.save(file.with_suffix(".part"), {**values, "seconds": before + told - start, "step": step})
            file.with_suffix(".part").replace(file)
    print(f"vision done, {step * size:,} pictures: F1 {f1(model, unseen):.4f} on unseen scenes", flush=True)
    tower.eval()
    fabric.save(file, {"tower": tower.state_dict(), "seconds": seconds})
