"""What only a GPU can show, in four minutes without a network: right numbers by Fabric, speed of ViT-H-14, k-means."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.models.encoders.base import Place, Source, choose_place
from symbal_hf.models.encoders.open_clip import OpenClip
from symbal_hf.stats.clustering import silhouette_samples, spherical_kmeans, starts, unit

TINY = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 4, "layers": 2},
}


@dataclass(frozen=True)
class Size:
    """How much work each check does.

    Attributes:
        model: name of an open_clip architecture; its weights are random.
        images: and `texts`: given to the encoder in one call.
        batch: of them at once.
        matrix: side of the square bfloat16 matrices that tell the device's rate.
        seconds: that each speed is measured for.
        vectors: clustered, of `d` dimensions, in `k` groups.
        least: share of the matrix rate that an encoder must reach.
    """

    model: str
    images: int
    texts: int
    batch: int
    matrix: int
    seconds: float
    vectors: int
    d: int
    k: int
    least: float


FULL = Size("ViT-H-14", 1024, 4096, 256, 8192, 5.0, 200_000, 384, 50, 0.25)
SMALL = Size("gpu-check-tiny", 8, 16, 4, 128, 0.05, 2000, 16, 5, 0.0)


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    check: str
    passed: bool
    figure: str
    seconds: float = 0.0


class Checks:
    """The checks, in the order in which they run; each gives whether it passed, and its figure."""

    def __init__(self, place: Place, size: Size) -> None:
        """`place` is the device, in bfloat16."""
        self.place, self.size = place, size
        self.rate = 0.0  # floating-point operations a second of large bfloat16 matrices
        self._encoder: OpenClip | None = None

    def run(self) -> list[Outcome]:
        """All of them; one that raises has failed, and the next one runs."""
        outcomes = []
        for check in (self.matrix_rate, self.fabric, self.images, self.texts, self.kmeans, self.silhouette):
            start = time.perf_counter()
            try:
                passed, figure = check()
            except Exception as error:  # whatever a driver or library raises is a result, too
                passed, figure = False, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            outcomes.append(Outcome(check.__name__, passed, figure, round(time.perf_counter() - start, 2)))
        return outcomes

    def matrix_rate(self) -> tuple[bool, str]:
        """The rate of a large bfloat16 matrix product, which the encoders are measured by."""
        import torch

        n = self.size.matrix
        a, b = (torch.randn(n, n, device=self.place.device, dtype=torch.bfloat16) for _ in "ab")
        self.rate = 2 * n**3 * self._per_second(lambda: a @ b)
        return self.rate > 0, f"{self.rate / 1e12:.4g} TFLOP/s in bfloat16, {n} x {n}"

    def fabric(self) -> tuple[bool, str]:
        """Vectors and gradients of a small float32 model under Fabric on the device, against plain torch on the CPU."""
        import torch
        from lightning.fabric import Fabric

        torch.manual_seed(0)
        pixels, ids = torch.randn(16, 3, 32, 32), torch.randint(1, 49407, (16, 77))
        model = build("gpu-check-tiny", Place("cpu", torch.float32))
        expected = _step(model, model, pixels, ids, torch.Tensor.backward)
        kind, _, number = self.place.device.partition(":")
        fabric = Fabric(accelerator=kind, devices=[int(number or 0)] if kind == "cuda" else 1, precision="32-true")
        torch.set_float32_matmul_precision("highest")  # TF32 would differ by 1e-3
        torch.backends.cudnn.allow_tf32 = False
        moved = fabric.setup(model)
        moved.mark_forward_method("encode_image")
        moved.mark_forward_method("encode_text")
        found = _step(moved, model, fabric.to_device(pixels), fabric.to_device(ids), fabric.backward)
        apart = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True))
        return apart < 1e-3, f"largest difference of vectors and gradients {apart:.1e} of the largest value"

    def images(self) -> tuple[bool, str]:
        """Images a second of our encoder, and the network's share of the matrix rate."""
        import torch

        encoder, size = self._open_clip(), self.size
        side = encoder.model.visual.image_size
        side = side[0] if isinstance(side, tuple) else side
        pixels = list(torch.randn(size.images, 3, side, side))
        vectors = encoder.encode_pixels(pixels)
        whole = len(pixels) * self._per_second(lambda: encoder.encode_pixels(pixels))
        batch = torch.stack(pixels[: size.batch]).to(self.place.device, self.place.dtype)
        with torch.inference_mode():
            alone = len(batch) * self._per_second(lambda: encoder.model.encode_image(batch))
        return self._speed(vectors, "images", whole, alone, image_operations(size.model))

    def texts(self) -> tuple[bool, str]:
        """Texts a second of our encoder, and the network's share of the matrix rate."""
        import torch

        encoder, size = self._open_clip(), self.size
        texts = [f"A photo of {i} dogs and {i % 7} cats on a beach." for i in range(size.texts)]
        vectors = encoder.encode(texts)
        whole = len(texts) * self._per_second(lambda: encoder.encode(texts))
        batch = encoder.tokenizer(texts[: 4 * size.batch]).to(self.place.device)
        with torch.inference_mode():
            alone = len(batch) * self._per_second(lambda: encoder.model.encode_text(batch))
        return self._speed(vectors, "texts", whole, alone, text_operations(size.model))

    def kmeans(self) -> tuple[bool, str]:
        """k-means in torch on the device against ours, from the same starts: the same groups."""
        import faiss
        from scipy.optimize import linear_sum_assignment

        x, _ = self._groups()
        start = time.perf_counter()
        ours = spherical_kmeans(x, self.size.k)
        ours_s = time.perf_counter() - start
        centres = starts(x, self.size.k)
        torch_kmeans(x[:1000], centres, self.place.device)  # warm
        start = time.perf_counter()
        theirs = torch_kmeans(x, centres, self.place.device)
        theirs_s = time.perf_counter() - start
        together = np.zeros((self.size.k, self.size.k), np.int64)
        np.add.at(together, (ours, theirs), 1)
        same = together[linear_sum_assignment(-together)].sum() / len(x)
        return bool(same >= 0.999), (
            f"{same:.2%} of {len(x):,} vectors alike; ours {ours_s:.2f} s starts included, on "
            f"{faiss.get_num_gpus()} GPUs; torch {theirs_s:.2f} s without ({ours_s / theirs_s:.1f}x)"
        )

    def silhouette(self) -> tuple[bool, str]:
        """The silhouette in torch on the device against ours on the CPU, by the same labels."""
        x, labels = self._groups()
        start = time.perf_counter()
        ours = silhouette_samples(x, labels)
        ours_s = time.perf_counter() - start
        torch_silhouette(x, labels, self.place.device)  # warm
        start = time.perf_counter()
        theirs = torch_silhouette(x, labels, self.place.device)
        theirs_s = time.perf_counter() - start
        apart = float(np.abs(ours - theirs).max())
        return apart < 1e-6, (
            f"largest difference {apart:.1e}; ours {ours_s:.2f} s, torch {theirs_s:.2f} s ({ours_s / theirs_s:.1f}x)"
        )

    def _per_second(self, work: Callable[[], object]) -> float:
        """Calls of `work` a second, after two that warm up."""
        for _ in range(2):
            work()
        self._wait()
        calls, start = 0, time.perf_counter()
        while time.perf_counter() - start < self.size.seconds:
            for _ in range(4):  # a wait after each call would leave the device idle in between
                work()
            self._wait()
            calls += 4
        return calls / (time.perf_counter() - start)

    def _wait(self) -> None:
        import torch

        if self.place.device.startswith("cuda"):
            torch.cuda.synchronize(self.place.device)

    def _open_clip(self) -> OpenClip:
        """Our encoder, around random weights."""
        if self._encoder is None:
            import open_clip

            source = Source(f"random:{self.size.model}", "random", "random", Path())
            dim = open_clip.get_model_config(self.size.model)["embed_dim"]
            self._encoder = OpenClip(
                source,
                self.size.model,
                dim,
                self.place,
                tokenizer=self.size.model,
                batch_size=self.size.batch,
            )
            self._encoder.model = build(self.size.model, self.place)
        return self._encoder

    def _speed(
        self, vectors: NDArray[np.float32], what: str, whole: float, alone: float, operations: float
    ) -> tuple[bool, str]:
        if not self.rate:
            raise RuntimeError("the matrix rate, which speed is measured by, is unknown; see matrix_rate.")
        share = alone * operations / self.rate
        right = np.isfinite(vectors).all() and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
        return bool(right and share >= self.size.least), (
            f"{whole:,.0f} {what}/s by the encoder, {alone:,.0f} by the network alone: {operations / 1e9:.4g} GFLOP "
            f"each, {share:.0%} of the matrix rate (at least {self.size.least:.0%})"
        )

    def _groups(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Unit vectors around directions that are far apart, and which."""
        rng, size = np.random.default_rng(0), self.size
        centre = np.linalg.qr(rng.normal(size=(size.d, size.d)))[0][: size.k].astype(np.float32)
        truth = rng.integers(0, size.k, size=size.vectors)
        return unit(centre[truth] + 0.5 * unit(rng.standard_normal((size.vectors, size.d), np.float32))), truth


def build(model: str, place: Place) -> Any:
    """The open_clip network of that name with random weights, ready to encode."""
    import open_clip

    precision = {"float32": "fp32", "bfloat16": "bf16"}[str(place.dtype).removeprefix("torch.")]
    return open_clip.create_model(model, pretrained=None, precision=precision, device=place.device).eval()


def _step(model: Any, weights: Any, pixels: Any, ids: Any, backward: Callable[[Any], Any]) -> list[Any]:
    """Vectors of images and of texts, and the gradient of the loss that tells which belong together, on the CPU."""
    import torch

    weights.zero_grad()
    images, texts = model.encode_image(pixels), model.encode_text(ids)
    one, other = (torch.nn.functional.normalize(v, dim=-1) for v in (images, texts))
    backward(torch.nn.functional.cross_entropy(10 * one @ other.T, torch.arange(len(one), device=one.device)))
    gradients = torch.cat([p.grad.flatten() for p in weights.parameters() if p.grad is not None])
    return [t.detach().float().cpu().clone() for t in (images, texts, gradients)]


def tower(layers: int, width: int, tokens: int, mlp: float) -> float:
    """Floating-point operations of a transformer over one input: projections and MLP, scores and their sums."""
    return layers * (2 * tokens * width**2 * (4 + 2 * mlp) + 4 * tokens**2 * width)


def image_operations(model: str) -> float:
    """Floating-point operations of one image."""
    import open_clip

    config = open_clip.get_model_config(model)
    vision = config["vision_cfg"]
    width, patches = vision["width"], (vision["image_size"] // vision["patch_size"]) ** 2
    ends = 2 * patches * 3 * vision["patch_size"] ** 2 * width + 2 * width * config["embed_dim"]
    return ends + tower(vision["layers"], width, patches + 1, vision.get("mlp_ratio", 4))


def text_operations(model: str) -> float:
    """Floating-point operations of one text, which is always padded to the context."""
    import open_clip

    config = open_clip.get_model_config(model)
    text = config["text_cfg"]
    ends = 2 * text["width"] * config["embed_dim"]
    return ends + tower(text["layers"], text["width"], text["context_length"], text.get("mlp_ratio", 4))


def torch_kmeans(x: NDArray[np.float32], centres: NDArray[np.float32], device: str, *, steps: int = 20) -> NDArray:
    """Labels (N,) of spherical k-means over the unit rows of `x` (N, D) from `centres` (k, D), in torch."""
    import torch

    rows, middle = torch.from_numpy(x).to(device), torch.from_numpy(centres).to(device)
    for _ in range(steps):
        sums = torch.zeros_like(middle).index_add_(0, (rows @ middle.T).argmax(1), rows)
        lost = (sums == 0).all(1, keepdim=True)
        middle = torch.where(lost, middle, torch.nn.functional.normalize(sums, dim=1))
    return (rows @ middle.T).argmax(1).cpu().numpy()


def torch_silhouette(x: NDArray[np.float32], labels: NDArray, device: str, *, chunk: int = 65_536) -> NDArray:
    """Cosine silhouette (N,) of the unit rows of `x` (N, D) under labels in [0, k), each used twice, in torch."""
    import torch

    own = torch.from_numpy(labels).to(device)
    count = torch.bincount(own).double()
    sums = torch.zeros(len(count), x.shape[1], dtype=torch.float64, device=device)
    parts = [slice(start, start + chunk) for start in range(0, len(x), chunk)]

    def rows(part: slice) -> Any:
        return torch.nn.functional.normalize(torch.from_numpy(x[part]).to(device).double(), dim=1)

    for part in parts:
        sums.index_add_(0, own[part], rows(part))
    out = []
    for part in parts:
        total, mine = rows(part) @ sums.T, own[part, None]
        size = count[mine]
        a = (size - total.gather(1, mine)) / (size - 1)
        b = (1 - total / count).scatter(1, mine, float("inf")).amin(1, keepdim=True)
        out.append(((b - a) / torch.maximum(a, b))[:, 0])
    return torch.cat(out).cpu().numpy()


def report(outcomes: list[Outcome], device: str) -> str:
    """One line of JSON, and a Markdown table."""
    passed = all(o.passed for o in outcomes)
    told = {"device": device, "passed": passed, "checks": [asdict(o) for o in outcomes]}
    lines = [
        json.dumps(told),
        "",
        f"Device: {device}",
        "",
        "| check | result | figure | seconds |",
        "|---|---|---|---:|",
    ]
    lines += [
        f"| {o.check} | {'pass' if o.passed else 'fail'} | {o.figure.replace('|', '/')} | {o.seconds} |"
        for o in outcomes
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run all checks and print them; 0 if all passed, else 1."""
    import open_clip
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu to try this script itself")
    parser.add_argument("--small", action="store_true", help="tiny sizes, whose speeds mean nothing")
    args = parser.parse_args(arguments)
    try:
        place = choose_place(args.device, "bfloat16")
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{SMALL.model}.json").write_text(json.dumps(TINY), encoding="utf-8")
        open_clip.add_model_config(folder)
    name = torch.cuda.get_device_name(place.device) if place.device.startswith("cuda") else place.device
    outcomes = Checks(place, SMALL if args.small else FULL).run()
    print(report(outcomes, name))
    return 0 if all(o.passed for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
