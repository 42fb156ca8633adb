"""Teaches the whole model to answer questions; the vision tower, which can see by now, changes only slowly."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.fabric import Fabric
from scene_mllm_model import normalized
from scene_mllm_packing import Batch, Packer
from scene_mllm_pool import Pool
from scene_mllm_questions import SYSTEMS, Asker, Question
from scene_mllm_vision import patch_shares, seeing_loss
from torch import nn
from torch.nn import functional as F
from transformers import LlavaForConditionalGeneration, PreTrainedTokenizerFast

from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES

LENGTH, ROWS = 256, 8  # many small steps: matching words is learned in leaps
# Mixed in from the start, the other tasks keep yes/no at chance for long: they wait until so many answers are right, or
# until so much of the time is gone.
YES_NO_FIRST, AT_LATEST = 0.85, 0.25
MORE_IMAGES = 6  # a step, that nothing is asked about: only their patches are to look like words
RATE, MATRIX_RATE, TOWER_RATE = 1.5e-3, 4e-3, 1e-4
SAVE_EVERY = 120  # seconds


def groups(asker: Asker, all_tasks: bool) -> Iterator[list[Question]]:
    """Questions about one picture or text at a time, without end."""
    rng = asker.rng
    while True:
        row, kind = rng.randrange(len(asker.pool)), rng.random()
        if not all_tasks:
            out = (
                asker.of_image(row, 10)
                if kind < 0.6
                else asker.of_text(most=rng.randint(1, 5))
                if kind < 0.85
                else asker.same_thing()
            )
        elif kind < 0.45:
            out = [*asker.of_image(row, 7), asker.other_caption(row), *asker.listing(row)]
            if rng.random() < 0.3:
                out += asker.of_image_and_text(row)
        elif kind < 0.72:
            out = asker.of_text(8, most=rng.randint(1, 5))
        elif kind < 0.85:
            out = [asker.listing_of_text(most=rng.randint(1, 5))]
        elif kind < 0.97:
            out = asker.same_thing()
        else:
            out = [asker.most_frequent()]
        system = rng.choice(SYSTEMS) if rng.random() < 0.05 else ""
        yield [replace(question, system=system) for question in out] if system else out


class Student(nn.Module):
    """The parts that learn, with the losses."""

    def __init__(self, model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast) -> None:
        super().__init__()
        self.text, self.projector = model.model.language_model, model.model.multi_modal_projector
        self.tower = model.model.vision_tower
        self.image_id = model.config.image_token_index
        names = [f" {name.split()[0]}" for name in (*OBJECT_NAMES, *BACKGROUND_NAMES)]
        tokens = [tokenizer.encode(name, add_special_tokens=False) for name in names]
        if any(len(ids) > 1 for ids in tokens) or len({ids[0] for ids in tokens}) < len(tokens):
            raise ValueError("each thing and place must begin with a token of its own")
        self.register_buffer("names", torch.tensor([ids[0] for ids in tokens]), persistent=False)

    def forward(self, batch: Batch, images: torch.Tensor, shares: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """(loss of what is said, loss of the patches, logits and labels where something is to be said)."""
        table = self.text.embed_tokens.weight
        embedded = self.text.embed_tokens(batch.ids)
        # A patch that shows a bus is drawn near to the word "bus": then to look for a named thing in the picture and
        # to look for it in a text are one and the same, and it is learned in minutes.
        patches = self.projector(self.tower.patch_embeddings(images))
        used = patches[: len(batch.images)]
        likeness = F.rms_norm(patches, patches.shape[-1:]) @ F.embedding(self.names, table).T
        lens = seeing_loss(likeness, shares)
        where = (batch.ids == self.image_id)[:, :, None]
        embedded = embedded.masked_scatter(where, used.to(embedded.dtype))
        hidden = self.text(
            inputs_embeds=embedded, attention_mask=batch.mask, position_ids=batch.positions, use_cache=False
        ).last_hidden_state
        asked = batch.labels >= 0
        logits, labels, weights = hidden[asked] @ table.T, batch.labels[asked], batch.weights[asked]
        losses = F.cross_entropy(logits.float(), labels, reduction="none")
        return (losses * weights).sum() / weights.sum(), lens, logits, labels


def prime_matching(text: nn.Module, heads: int) -> None:
    """Starts half of the heads of the first layers with keys like their queries: equal words then find each other."""
    with torch.no_grad():
        for layer in text.layers[:2]:
            half = layer.self_attn.q_proj.weight.shape[0] // heads * (heads // 2)
            layer.self_attn.k_proj.weight[:half] = layer.self_attn.q_proj.weight[:half]


def make_optimizers(module: Student) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the language model, which then learns in fewer steps; AdamW for all else."""
    matrices = [p for p in module.text.layers.parameters() if p.ndim == 2]
    plain = [*module.projector.parameters(), module.text.embed_tokens.weight]
    plain += [p for p in module.text.parameters() if p.ndim == 1]
    muon = torch.optim.Muon(
        [{"params": matrices, "rate": MATRIX_RATE}], lr=MATRIX_RATE, weight_decay=0.02, adjust_lr_fn="match_rms_adamw"
    )
    seeing = list(module.tower.patch_embeddings.parameters())
    adam = torch.optim.AdamW(
        [{"params": plain, "rate": RATE}, {"params": seeing, "rate": TOWER_RATE}],
        lr=RATE,
        betas=(0.9, 0.98),
        weight_decay=0.02,
    )
    return [muon, adam]


def train_language(
    fabric: Fabric,
    model: LlavaForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    pool: Pool,
    seconds: float,
    file: Path,
) -> None:
    """Trains for so many seconds, going on from `file` where that exists."""
    torch.manual_seed(2)
    prime_matching(model.model.language_model, model.config.text_config.num_attention_heads)
    module = Student(model, tokenizer)
    module.train()
    module.tower.eval()  # its normalization keeps the means of the first stage, as it will have them in use
    optimizers = make_optimizers(module)
    # On a CPU the fused attention takes several times as long as the plain one to learn from such short rows.
    model.model.language_model.set_attn_implementation("eager")
    student, *optimizers = fabric.setup(module, *optimizers)
    level = 0.5
    before, step, all_tasks = _go_on(fabric, file, module, optimizers)
    asker, packer = Asker(pool, 1000 + step), Packer(tokenizer, LENGTH, ROWS)
    rng = np.random.default_rng(step)
    source, waiting = groups(asker, all_tasks), list[list[Question]]()
    start = saved = told = time.monotonic()
    right: dict[str, list[float]] = defaultdict(list)
    while (done := (before + time.monotonic() - start) / seconds) < 1:
        if not all_tasks and (level > YES_NO_FIRST or done > AT_LATEST):
            print(f"all tasks from step {step} on", flush=True)
            source, all_tasks, waiting = groups(asker, True), True, []
        waiting += itertools.islice(source, 4 * ROWS + 10 - len(waiting))
        batch, taken = packer.batch(waiting)
        waiting = [questions for i, questions in enumerate(waiting) if i not in set(taken)][-ROWS:]
        fall = min(1.0, (1 - done) / 0.4)  # the rate falls over the last part only, so that more time can be added
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["rate"] * min(1, (step + 1) / 50) * max(fall, 0.01)
        shown = np.concatenate([batch.images, rng.integers(0, len(pool), MORE_IMAGES)])
        images = normalized(torch.from_numpy(np.array(pool.images[shown])))
        loss, lens, logits, labels = student(batch, images, patch_shares(pool, shown))
        fabric.backward(loss + 0.5 * lens)
        for optimizer in optimizers:
            fabric.clip_gradients(student, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
        step += 1
        level = _judged(right, level, logits, labels, batch.weights[batch.labels >= 0])
        right["loss"].append(float(loss.detach()))
        right["lens"].append(float(lens.detach()))
        now = time.monotonic()
        if now - told > 20:
            told = now
            means = ", ".join(f"{kind} {np.mean(values):.3f}" for kind, values in sorted(right.items()))
            print(f"language {done:.1%}, step {step}, {(before + now - start) / step:.2f} s each: {means}", flush=True)
            right.clear()
        if now - saved > SAVE_EVERY:
            saved = now
            _save(fabric, file, module, optimizers, before + now - start, step, all_tasks)
    _save(fabric, file, module, optimizers, seconds, step, all_tasks)


def _go_on(fabric: Fabric, file: Path, module: Student, optimizers: list[Any]) -> tuple[float, int, bool]:
    """Seconds and steps that were trained before, and whether with all tasks; their state is loaded."""
    if not file.exists():
        return 0.0, 0, False
    state = fabric.load(file)
    module.load_state_dict(state["student"])
    for optimizer, values in zip(optimizers, state["optimizers"], strict=True):
        rates = [group["rate"] for group in optimizer.param_groups]
        optimizer.load_state_dict(values)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["rate"] = rate  # that of this script, not the one saved
    print(f"going on from step {state['step']}, {state['seconds'] / 60:.1f} minutes", flush=True)
    return state["seconds"], state["step"], state.get("all_tasks", False)


@torch.no_grad()
def _judged(
    right: dict[str, list[float]], level: float, logits: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor
) -> float:
    """Notes the share of right answers by their kind, and gives the level of the digits after this step."""
    good = (logits.argmax(-1) == labels).float()
    for kind, which in (("digit", weights == 3), ("so far", weights < 0.5), ("word", weights == 1)):
        if which.any():
            right[kind].append(float(good[which].mean()))
    return level + (0.05 * (float(good[weights == 3].mean()) - level) if (weights == 3).any() else 0.0)


def _save(
    fabric: Fabric,
    file: Path,
    module: Student,
    optimizers: list[torch.optim.Optimizer],
    seconds: float,
    step: int,
    all_tasks: bool,
) -> None:
    """Never half a file: an interruption leaves the one before."""
    state = {"student": module.state_dict(), "optimizers": [optimizer.state_dict() for optimizer in optimizers]}
    fabric.save(file.with_suffix(".part"), {**state, "seconds": seconds, "step": step, "all_tasks": all_tasks})
    file.with_suffix(".part").replace(file)
