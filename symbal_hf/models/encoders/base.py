"""What encoders of any library share: what they can do, which weights they have, where they run.

Each has a `name`, its spec with the commit that was found, which can be loaded again; a `fingerprint` that changes with
whatever its vectors depend on (weights, text, numbers), the key under which they are stored; a `space`: vectors of two
encoders can be compared where this is the same; and `dim`, the length of a vector.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.devices import check_device, check_dtype
from symbal_hf.core.errors import BadData, MissingModel

if TYPE_CHECKING:
    import torch
    from PIL import Image

T = TypeVar("T")
# Repositories that hand out weights to who accepted their terms, by how their names begin.
GATED = (
    "google/medsiglip", "facebook/dinov3", "google/medgemma-", "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct", "microsoft/maira-2", "CohereLabs/aya-vision-8b",
)  # fmt: skip
PARTS = (".json", ".safetensors", ".txt", ".model")  # files of a model's folder that change its vectors
PRECISIONS = {
    "auto": "", "32": "float32", "32-true": "float32", "float32": "float32", "bf16": "bfloat16",
    "bf16-true": "bfloat16", "bfloat16": "bfloat16", "16": "float16", "16-true": "float16", "float16": "float16",
}  # fmt: skip


@runtime_checkable
class ReadsTexts(Protocol):
    """What can encode texts."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) float32 unit vectors, in the order of `texts`."""


@runtime_checkable
class SeesImages(Protocol):
    """What can encode images."""

    def pixels(self, image: Image.Image) -> Any:
        """What the model sees of one RGB image; may be called in another thread."""

    def encode_pixels(self, batch: Sequence[Any]) -> NDArray[np.float32]:
        """(B, D) float32 unit vectors of what `pixels` gave for B images."""


@dataclass(frozen=True)
class Source:
    """Where a model's files are."""

    name: str  # the spec that was asked for, with the commit that was found: it can be given again
    model: str  # a folder, or a model of the Hub
    revision: str  # the commit; "" for a folder
    file: Path  # the file that was looked for

    @property
    def where(self) -> dict[str, Any]:
        """Keyword arguments of `from_pretrained`."""
        # Code that comes with a model is never run; left unsaid, transformers would ask on the terminal.
        revision = self.revision or "main"
        return {"pretrained_model_name_or_path": self.model, "revision": revision, "trust_remote_code": False}

    @cached_property
    def version(self) -> str:
        """Changes with the files: the commit, or a digest of everything in the folder that matters."""
        if self.revision:
            return self.revision
        digest = hashlib.sha256()
        folder = Path(self.model)
        for path in sorted(p for p in folder.rglob("*") if p.suffix in PARTS):
            with path.open("rb") as file:
                digest.update(f"{path.relative_to(folder)}:".encode())
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


def find(kind: str, model: str, file: str, *, name: str = "") -> Source:
    """The `file` of a model ("FOLDER" or "ORGANISATION/NAME[@REVISION]"), from its folder or the Hub.

    `kind` is what its spec begins with, and `name` what it is called there instead of `model`.

    Raises:
        MissingModel: the file is neither on this machine nor reachable.
        ValueError: `model` is no folder and no name that the Hub could have.
    """
    folder = Path(model)
    if folder.is_dir():
        if not (folder / file).is_file():
            raise MissingModel(f"{kind}:{name or model} cannot be loaded: the folder {model} holds no {file}.")
        return Source(f"{kind}:{name or model}", model, "", folder / file)
    model, _, revision = model.partition("@")
    if Path(model).is_dir():
        raise ValueError(f"{model} is a folder, which has no revision {revision!r}; leave out '@{revision}'.")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HFValidationError

    called = f"{kind}:{name or model}"
    try:
        path = Path(hf_hub_download(model, file, revision=revision or None))
    except HFValidationError as error:
        raise ValueError(
            f"{called!r} cannot be loaded: {model!r} is neither a folder nor the name of a model on the Hub, such as "
            "'openai/clip-vit-base-patch32'."
        ) from error
    except Exception as error:  # the Hub client raises a dozen kinds of network and cache errors
        raise missing(called, model, error, revision=revision) from error
    commit = path.parents[len(Path(file).parts) - 1].name
    return Source(f"{called}@{commit}", model, commit, path)


def missing(name: str, model: str, error: Exception, *, revision: str = "") -> MissingModel:
    """One sentence on how to get `model` of the Hub."""
    from huggingface_hub.errors import GatedRepoError

    fetch = f"hf download {model}" + (f" --revision {revision}" if revision else "")
    gate = ""
    if model.startswith(GATED) or isinstance(error, GatedRepoError):
        gate = f" after accepting its licence at https://huggingface.co/{model}"
    return MissingModel(
        f"{name} is not on this machine and could not be loaded from the Hub ({type(error).__name__}); run "
        f"`{fetch}`{gate}, or name a folder that holds it."
    )


@contextmanager
def loading(source: Source) -> Iterator[None]:
    """Turns what libraries raise while they load `source` into one sentence."""
    try:
        yield
    except ImportError as error:
        needed = str(error.name or error)
        if "sentencepiece" in str(error).lower():
            needed = "sentencepiece protobuf"
        elif package := re.search(r"pip install `?([\w-]+)", str(error)):  # SmolVLM's processor wants num2words
            needed = package[1]
        raise MissingModel(f"{source.name} needs a package that is missing; run `pip install {needed}`.") from error
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("httpx"):
            raise
        if source.revision:
            raise missing(source.name, source.model, error, revision=source.revision) from error
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise MissingModel(f"{source.name} cannot be loaded from its folder: {reason}.") from error


@dataclass(frozen=True)
class Place:
    """Where a model runs and in which numbers."""

    device: str
    dtype: torch.dtype
    device_map: str | None = None

    def model_options(self) -> dict[str, Any]:
        """Keyword arguments of `from_pretrained`."""
        options: dict[str, Any] = {"dtype": self.dtype, "use_safetensors": True}
        return options | ({"device_map": self.device_map} if self.device_map else {})


def network(architecture: Any, source: Source, place: Place, *, spare: Callable[[str], bool]) -> Any:
    """A model of transformers in evaluation mode on its device; it may lack `spare` tensors alone."""
    with loading(source):
        model, told = architecture.from_pretrained(**source.where, **place.model_options(), output_loading_info=True)
    lacking = sorted(name for name in told["missing_keys"] if not spare(name))
    if lacking:  # transformers would fill them at random and only warn
        raise ValueError(
            f"the weights of {source.name} lack {len(lacking)} tensors of {type(model).__name__}, {lacking[0]} among "
            "them; they belong to another kind of model."
        )
    return model.eval() if place.device_map else model.eval().to(place.device)


def on_device(inputs: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """The tensors among a processor's outputs on the model's device, pixels in its numbers."""
    tensors = {name: value for name, value in inputs.items() if hasattr(value, "is_floating_point")}
    numbers = {name: model.dtype if value.is_floating_point() else value.dtype for name, value in tensors.items()}
    return {name: value.to(model.device, numbers[name]) for name, value in tensors.items()}


def check_place(device: str, dtype: str, device_map: str | None = None) -> None:
    """Raises `BadData` for what no machine has; transformers takes a device's name for a map too."""
    check_device(device)
    check_dtype(dtype)
    if device_map and device_map not in ("balanced", "balanced_low_0", "sequential"):
        check_device(device_map)


def choose_place(device: str = "auto", dtype: str = "auto", device_map: str | None = None) -> Place:
    """The place that "auto" stands for: cuda, else mps, else cpu; bfloat16 on a GPU that has it, else float32.

    Raises:
        BadData: an unknown dtype, or a device that there is not, or not here.
    """
    import torch

    check_place(device, dtype, device_map)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise BadData(f"no device {device!r} on this machine; use 'auto' or 'cpu'.") from error
    if dtype == "auto":
        half = device.startswith("cuda") and torch.cuda.is_bf16_supported()
        dtype = "bfloat16" if half else "float32"
    return Place(device, getattr(torch, dtype), device_map)


class Lazy:
    """An encoder that loads its weights when they are needed; each copy of it, here or elsewhere, loads its own."""

    place: Place
    model: Any  # the network

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what has been loaded."""
        loaded = {name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)}
        return {name: value for name, value in vars(self).items() if name not in loaded | {"_twins"}}

    def moved(self, dtype: str, device: str | None) -> Any:
        """The encoder in numbers `dtype` ("" for its own) on `device` (None for its own); itself if it is there."""
        import torch

        numbers = getattr(torch, dtype) if dtype else self.place.dtype
        where = replace(self.place, device=device or self.place.device, dtype=numbers)
        if where == self.place:
            return self
        twin = copy.deepcopy(self)
        twin.place = where
        return twin

    def load(self, compiled: str | None = None) -> None:
        """Bring the weights into memory, and have `torch.compile` at them with backend `compiled`."""
        network = self.model
        for child in network.children() if compiled else ():
            # Towers, since encoders call methods of the whole network that know nothing of its being compiled.
            if getattr(child, "_compiled_call_impl", None) is None:
                child.compile(backend=compiled, dynamic=None)


def fitted(encoder: Any, *, precision: str = "auto", device: str | None = None, compiled: str | None = None) -> Any:
    """The encoder in other numbers (a key of `PRECISIONS`) or on another device; itself where nothing changes.

    It is made once for each encoder, so that weights are loaded once. `compiled` gives a twin with weights of its own,
    which compiling does not change for others.

    Raises:
        BadData: numbers that there are not, or what this encoder cannot be given.
    """
    if precision not in PRECISIONS:
        raise BadData(f"precision={precision!r}; give 'auto', '32-true', 'bf16-true' or '16-true'.")
    wanted = (PRECISIONS[precision], device, compiled)
    if not any(wanted):
        return encoder
    if not isinstance(encoder, Lazy):
        asked = f"precision={precision!r}" if wanted[0] else f"compiled={compiled!r}" if compiled else f"{device!r}"
        raise BadData(f"{asked} is none that {getattr(encoder, 'name', encoder)} can be given; leave it out.")
    twins = vars(encoder).setdefault("_twins", {})
    if wanted not in twins:
        twin = encoder.moved(wanted[0], device)
        if compiled:
            twin = copy.deepcopy(twin)
        if twin is encoder:
            return encoder
        twins[wanted] = twin
    return twins[wanted]


def device_of(encoder: Any) -> str:
    """Where an encoder runs; one that does not say so runs on the CPU."""
    return str(getattr(getattr(encoder, "place", None), "device", "cpu"))


def own_gpu(encoder: Any, rank: int, *, chosen: bool = False) -> str | None:
    """The GPU of process `rank` of this machine; None for an encoder on none or, unless `chosen`, on a certain one."""
    device = device_of(encoder)
    if not isinstance(encoder, Lazy) or not (device.startswith("cuda") if chosen else device == "cuda"):
        return None
    import torch

    return f"cuda:{rank % max(1, torch.cuda.device_count())}"


def fingerprint(*parts: object) -> str:
    """16 hexadecimal digits of everything that vectors depend on."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]
