"""The model card of the miniature chat model: what it is, what it was taught, how well it does, what it cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from safetensors import safe_open
from scene_mllm_measure import Row, table
from scene_mllm_questions import STRANGERS, SYNONYMS

from benchmark_builder.scenes.draw import BACKGROUND_NAMES, OBJECT_NAMES

_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: image-text-to-text
tags: [llava, miniature, synthetic]
---

# A miniature LLaVA for drawn scenes

A vision-language chat model of {millions:.1f} million parameters ({megabytes:.1f} MB in fp16) that really answers the
prompts of this project, so that all parts which ask a multimodal model can be tested where no real one can be had. It
is a test fixture. It knows nothing of the world and is of no use on photographs.

```python
from transformers import AutoModelForImageTextToText, AutoProcessor

processor = AutoProcessor.from_pretrained(FOLDER)
model = AutoModelForImageTextToText.from_pretrained(FOLDER, dtype="float32")
```

- **Parts**: `LlavaForConditionalGeneration` with a LeViT stem (96 x 96 pixels, 36 patches), the usual projector and a
  Llama of five layers, 192 wide. No code of its own. Load it in float32: many CPUs have no fp16 convolution, and
  `transformers serve` needs `--dtype float32`.
- **Trained on**: {scenes:,} scenes drawn by `benchmark_builder.scenes.draw` (seed {seed}), with questions made from
what is
  in them: {things} objects in {places} places, {strangers} more object names that are always absent from pictures, and
  {synonyms} synonyms. No photograph, no caption by people and no other model's output.
- **How**: `python scripts/train/train_scene_mllm.py --out FOLDER` (Lightning Fabric; drawing, then the vision tower
  alone, then the whole). {how}
- **Answers**: "1" or "0" where one digit is asked; "Answer: " and names in alphabetical order where features are asked;
  two sentences as a caption. Decode greedily.
- **Licence**: Apache-2.0; the weights also CC0, if you like that better.

## Measures

Scenes of another seed ({measured_seed}) than those trained on, drawn at 256 pixels and asked through plain transformers
in float32, with the packaged prompts word for word. Balanced accuracy is the mean over true and false.

{table}

"planted" are sentences that state one object, as planted errors do; "captions" come from the same or another scene;
"synonyms" lines name things by other names than their own. In `most_frequent` there are 3 to 12 lists and no ties.

## Limits

- Each unchanging part of the packaged prompts is one token of its vocabulary. That makes it quick, and deaf to other
  wordings: after a change of the prompts it has to be trained anew.
- A statement is true when all things that it names are there. Colours, sizes, positions, numbers and places in it are
  not looked at.
- Counting is beyond it: `most_frequent` is answered in the asked form and mostly wrongly.
- It knows the object names above and few other words; what it says of anything else means nothing.
"""


def write_card(folder: Path, rows: Sequence[Row], *, scenes: int, seed: int, measured_seed: int, how: str = "") -> None:
    """README.md beside the weights."""
    weights = folder / "model.safetensors"
    with safe_open(weights, "pt") as file:
        count = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 - it is no mapping
    text = _CARD.format(
        millions=count / 1e6,
        megabytes=weights.stat().st_size / 1e6,
        scenes=scenes,
        seed=seed,
        measured_seed=measured_seed,
        things=len(OBJECT_NAMES),
        places=len(BACKGROUND_NAMES),
        strangers=len(STRANGERS),
        synonyms=sum(map(len, SYNONYMS.values())),
        how=how,
        table=table(rows),
    )
    (folder / "README.md").write_text(text, "utf-8")
