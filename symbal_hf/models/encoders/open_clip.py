"""Encoders of the open_clip library: texts and images in one space, by name and tag, from a folder or from the Hub."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import MissingModel
from symbal_hf.models.encoders.base import Place, Source, find, fingerprint, loading
from symbal_hf.models.encoders.checkpoint import Checkpoint, OfImages, OfTexts

if TYPE_CHECKING:
    import torch
    from PIL import Image

KIND = "open_clip"
WEIGHTS, CONFIG = "open_clip_model.safetensors", "open_clip_config.json"
FOLDER, HUB = "local-dir:", "hf-hub:"
PRECISION = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}


class OpenClip(Checkpoint, OfTexts, OfImages):
    """Texts and images in one space."""

    def __init__(
        self,
        source: Source,
        architecture: str,
        dim: int,
        place: Place,
        *,
        tokenizer: str,
        weights: Path | None = None,
        preprocessing: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
    ) -> None:
        """`architecture` and `tokenizer` are names of open_clip's; `weights` and `preprocessing` are a tag's."""
        super().__init__(source, place, batch_size=batch_size)
        self.architecture, self.dim, self._tokenizer_name = architecture, dim, tokenizer
        self.weights, self.preprocessing = weights, dict(preprocessing or {})

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files, the tag's preprocessing and the numbers."""
        network = self._tokenizer_name if self.weights else ""
        rules = sorted(self.preprocessing.items())
        return fingerprint("OpenClip", network, self.source.version, rules, self.place.dtype, "v1")

    @cached_property
    def model(self) -> Any:
        import open_clip

        with loading(self.source):
            return open_clip.create_model(
                self.architecture,
                pretrained=str(self.weights) if self.weights else None,
                precision=PRECISION[str(self.place.dtype)],
                device=self.place.device,
                force_preprocess_cfg=self.preprocessing,
                require_pretrained=True,
            ).eval()

    @cached_property
    def tokenizer(self) -> Any:
        """Cuts and pads texts to the model's context."""
        import open_clip

        with loading(self.source):
            return open_clip.get_tokenizer(self._tokenizer_name)

    @cached_property
    def transform(self) -> Any:
        from open_clip.transform import PreprocessCfg, image_transform_v2

        return image_transform_v2(PreprocessCfg(**self.model.visual.preprocess_cfg), is_train=False)

    def text_features(self, texts: Sequence[str]) -> Any:
        return self.model.encode_text(self.tokenizer(list(texts)).to(self.place.device))

    def pixels(self, image: Image.Image) -> torch.Tensor:
        return self.transform(image)

    def image_features(self, batch: Sequence[torch.Tensor]) -> Any:
        import torch

        return self.model.encode_image(torch.stack(list(batch)).to(self.place.device, self.place.dtype))


def load_open_clip(model: str, place: Place, *, batch_size: int | None = None) -> OpenClip:
    """The encoder that "NAME/TAG[@REVISION]", "local-dir:FOLDER" or "hf-hub:ORGANISATION/NAME[@REVISION]" names.

    Raises:
        MissingModel: the files are neither on this machine nor reachable.
        ValueError: no such name or tag, or a tag whose weights the named network would misread.
    """
    if not model.startswith((FOLDER, HUB)):
        return _tagged(model, place, batch_size)
    prefix = FOLDER if model.startswith(FOLDER) else HUB
    where = model.removeprefix(prefix)
    if (prefix == FOLDER) != Path(where).is_dir():
        if prefix == FOLDER:
            raise MissingModel(f"{KIND}:{model} cannot be loaded: there is no folder {where!r}.")
        raise ValueError(f"{where!r} is a folder; write '{KIND}:{FOLDER}{where}'.")
    source = find(KIND, where, CONFIG, name=model.partition("@")[0] if prefix == HUB else model)
    commit = f"@{source.revision}" if source.revision else ""
    folder = find(KIND, source.model + commit, WEIGHTS, name=prefix + source.model).file.parent
    told = json.loads(source.file.read_text(encoding="utf-8"))
    settings = told.get("model_cfg", told)
    # A repository may name another one for its tokenizer, which only open_clip's own prefix looks up.
    elsewhere = prefix == HUB and settings["text_cfg"].get("hf_tokenizer_name")
    tokenizer = f"{HUB}{source.model}" if elsewhere else f"{FOLDER}{folder}"
    dim = settings["embed_dim"]
    return OpenClip(source, f"{FOLDER}{folder}", dim, place, tokenizer=tokenizer, batch_size=batch_size)


def _tagged(model: str, place: Place, batch_size: int | None) -> OpenClip:
    import open_clip

    spec, _, revision = model.partition("@")
    name, _, tag = spec.rpartition("/")
    settings = open_clip.get_model_config(name)
    tags = open_clip.list_pretrained_tags_by_model(name)
    if settings is None or not tags:
        raise ValueError(
            f"open_clip has no weights by the name {name or spec!r}; write NAME/TAG as in "
            f"'{KIND}:ViT-H-14-quickgelu/dfn5b' (open_clip.list_pretrained() lists them), '{KIND}:{FOLDER}FOLDER' or "
            f"'{KIND}:{HUB}ORGANISATION/NAME'."
        )
    told = open_clip.get_pretrained_cfg(name, tag)
    if not told:
        raise ValueError(f"{name} has no tag {tag!r} in open_clip; available: {', '.join(map(repr, tags))}.")
    trained, built = bool(told.get("quick_gelu")), bool(settings.get("quick_gelu"))
    right = f"{name}-quickgelu" if trained else name.removesuffix("-quickgelu")
    if trained != built and right != name:  # open_clip only warns, and the vectors are wrong
        raise ValueError(
            f"'{KIND}:{spec}' would read weights trained {'with' if trained else 'without'} QuickGELU into a network "
            f"{'with' if built else 'without'} it; use '{KIND}:{right}/{tag}'."
        )
    if not told.get("hf_hub"):
        others = [repr(t) for t in tags if open_clip.get_pretrained_cfg(name, t).get("hf_hub")]
        raise ValueError(f"'{KIND}:{spec}' has no weights on the Hub; other tags: {', '.join(others)}.")
    repository, _, file = told["hf_hub"].rpartition("/")
    file = str(Path(file).with_suffix(".safetensors")) if file else WEIGHTS
    source = find(KIND, repository + (f"@{revision}" if revision else ""), file, name=spec)
    rules = {k: told[k] for k in ("size", "mean", "std", "interpolation", "resize_mode", "fill_color") if k in told}
    tagged: dict[str, Any] = {"weights": source.file, "preprocessing": rules}
    return OpenClip(source, name, settings["embed_dim"], place, tokenizer=name, batch_size=batch_size, **tagged)
