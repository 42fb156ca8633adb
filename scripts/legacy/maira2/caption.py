"""Captions of chest films by MAIRA-2, in an environment of its own; written after its model card, never run by us.

    python caption.py films/ --out captions.jsonl           every picture of a folder, by its path without the suffix
    python caption.py films.csv --out captions.jsonl        columns image_id and image, paths relative to the table

Each line of the result is {"image_id", "caption"}, the caption being the findings section. A second run goes on where
the first one stopped. The model runs code of its own (`trust_remote_code`), which is why it does not run inside symbal.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODEL = "microsoft/maira-2"
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp")


def films(source: Path) -> Iterator[tuple[str, Path]]:
    """(id, path) of each film of a folder or a table."""
    if source.is_dir():
        for path in sorted(p for p in source.rglob("*") if p.suffix.lower() in SUFFIXES):
            yield path.relative_to(source).with_suffix("").as_posix(), path
        return
    with source.open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            yield row["image_id"], source.parent / row["image"]


def done(out: Path) -> set[str]:
    """Ids that the file has; a last line that was cut off is taken away."""
    if not out.is_file():
        return set()
    text = out.read_text("utf-8")
    if whole := text[: text.rfind("\n") + 1]:
        out.write_text(whole, "utf-8")
    else:
        out.unlink()
    return {json.loads(line)["image_id"] for line in whole.splitlines() if line.strip()}


def load(device: str) -> tuple[Any, Any]:
    """The processor and the network."""
    import torch
    from transformers import AutoModelForCausalLM, AutoProcessor

    processor = AutoProcessor.from_pretrained(MODEL, trust_remote_code=True)
    dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
    model = AutoModelForCausalLM.from_pretrained(MODEL, trust_remote_code=True, torch_dtype=dtype)
    return processor, model.eval().to(device)


def findings(processor: Any, model: Any, path: Path) -> str:
    """The findings of one frontal view."""
    import torch
    from PIL import Image

    with Image.open(path) as image:
        inputs = processor.format_and_preprocess_reporting_input(
            current_frontal=image.convert("RGB"),
            current_lateral=None,
            prior_frontal=None,
            indication=None,
            technique=None,
            comparison=None,
            prior_report=None,
            return_tensors="pt",
            get_grounding=False,
        )
    inputs = inputs.to(model.device)
    inputs["pixel_values"] = inputs["pixel_values"].to(model.dtype)
    with torch.inference_mode():
        out = model.generate(**inputs, max_new_tokens=300, use_cache=True, do_sample=False)
    text = processor.decode(out[0][inputs["input_ids"].shape[-1] :], skip_special_tokens=True).lstrip()
    return str(processor.convert_output_to_plaintext_or_grounded_sequence(text)).strip()


def main() -> None:
    """Caption what has no caption yet; films that cannot be read are listed at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder of films, or a CSV with image_id and image")
    parser.add_argument("--out", type=Path, default=Path("captions.jsonl"))
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()

    known = done(args.out)
    left = [(name, path) for name, path in films(args.source) if name not in known]
    if not left:
        print(f"{args.out}: all {len(known)} captions are there")
        return
    processor, model = load(args.device)
    failed = []
    with args.out.open("a", encoding="utf-8") as file:
        for name, path in left:
            try:
                row = {"image_id": name, "caption": findings(processor, model, path)}
            except (OSError, SyntaxError) as error:
                failed.append(f"{name}: {type(error).__name__}")
                continue
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
    print(f"{args.out}: {len(known) + len(left) - len(failed)} captions, {len(failed)} films could not be read")
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")


if __name__ == "__main__":
    main()
