"""Train a miniature LLaVA that answers this project's prompts about drawn scenes, for tests without a real one.

One command makes the weights in some 85 minutes on one or two cores: `python scripts/train/train_scene_mllm.py --out
FOLDER`. With --resume it goes on where it was stopped; with --evaluate FOLDER it only measures a model.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from lightning.fabric import Fabric
from scene_mllm_card import write_card
from scene_mllm_language import train_language
from scene_mllm_measure import measure, table
from scene_mllm_model import export, make_model, make_tokenizer
from scene_mllm_pool import make_pool
from scene_mllm_questions import corpus
from scene_mllm_vision import train_vision
from transformers import PreTrainedTokenizerFast

TRAINING_SEED, UNSEEN_SEED, MEASURED_SEED = 17, 900_000, 910_000

SEEING = 0.25  # share of the time for the vision tower alone


def train(args: argparse.Namespace) -> None:
    """The three stages; each leaves a file in the working folder and is skipped when that is there."""
    work: Path = args.work
    if not args.resume:
        for file in (*work.glob("*.ckpt"), *work.glob("*.part")):
            file.unlink()
    fabric = Fabric(accelerator="cpu", devices=1, precision=args.precision)
    torch.manual_seed(0)
    start = time.monotonic()
    pool = make_pool(args.scenes, seed=TRAINING_SEED, folder=work / "pool", workers=args.workers)
    unseen = make_pool(min(1500, args.scenes), seed=UNSEEN_SEED, folder=work / "pool", workers=args.workers)
    if not (work / "tokenizer" / "tokenizer.json").exists():
        make_tokenizer(corpus(unseen)).save_pretrained(work / "tokenizer")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(work / "tokenizer")
    model = make_model(tokenizer)
    seconds = 60 * args.minutes
    train_vision(fabric, model.model.vision_tower, pool, unseen, SEEING * seconds, work / "vision.ckpt")
    train_language(fabric, model, tokenizer, pool, (1 - SEEING) * seconds, work / "language.ckpt")
    export(model, tokenizer, args.out)
    print(f"{(time.monotonic() - start) / 60:.1f} minutes in this run")


def main() -> None:
    """Train, export and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tests/assets/scene_mllm"), help="where the model goes")
    parser.add_argument("--work", type=Path, default=Path("build/scene_mllm"), help="scenes and checkpoints")
    parser.add_argument(
        "--minutes", type=float, default=80, help="of training, without drawing (about four) and measuring"
    )
    parser.add_argument("--scenes", type=int, default=60_000, help="to train on")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw scenes")
    parser.add_argument("--threads", type=int, default=2, help="for training")
    parser.add_argument(
        "--precision", default="bf16-mixed", help="of Fabric; 32-true where the processor has no bfloat16"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoints in --work")
    parser.add_argument("--evaluate", type=Path, metavar="DIR", help="only measure the model there")
    parser.add_argument("--measured", type=int, default=300, help="unseen scenes to measure on")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    folder = args.evaluate or args.out
    if args.evaluate is None:
        train(args)
    rows = measure(folder, args.measured, seed=MEASURED_SEED)
    print(table(rows))
    if args.evaluate is None:
        how = f"This one was trained for {args.minutes:g} minutes."
        write_card(folder, rows, scenes=args.scenes, seed=TRAINING_SEED, measured_seed=MEASURED_SEED, how=how)


if __name__ == "__main__":
    main()
