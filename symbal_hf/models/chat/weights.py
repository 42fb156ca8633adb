"""A chat model's files: which they are, and from them the network, its processor and its chat template."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData, MissingModel

if TYPE_CHECKING:
    from PIL import Image

    from symbal_hf.models.chat.protocol import Message
    from symbal_hf.models.encoders.base import Place, Source

FROZEN_ELSEWHERE = ("microsoft/maira-2",)  # models that run with an older transformers and their own code only
NO_HALF = "gemma3"  # float16 makes it write nothing or padding
QWEN_TOKENS = (256, 1280)  # of one image
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")
TEXTS = (".json", ".jinja", ".txt", ".model", ".tiktoken")  # files of a folder that answers depend on


class Refused(ValueError):
    """A conversation that this model cannot be asked; the message is one sentence without what it says."""


def elsewhere(name: str) -> BadData:
    """What to do with a model that only its own code can run."""
    return BadData(
        f"{name} runs on code that comes with it, which is never run here; make its captions in an environment of its "
        "own, as in scripts/legacy/, and read them with `--captioner file:captions.jsonl`."
    )


@dataclass(frozen=True)
class Checkpoint:
    """A model's files.

    Attributes:
        source: where they are.
        revision: the commit, or a digest of a folder.
    """

    source: Source
    revision: str


def locate(model: str, revision: str | None = None) -> Checkpoint:
    """The files of a folder or of a model of the Hub, without reading its weights.

    Raises:
        MissingModel: they are neither on this machine nor reachable.
        ValueError: no folder and no name that the Hub could have, or a folder with a revision.
    """
    from symbal_hf.models.encoders.base import find

    source = find("hf", f"{model}@{revision}" if revision else model, "config.json")
    return Checkpoint(source, source.revision or digest(Path(source.model)))


def digest(folder: Path) -> str:
    """16 hexadecimal digits of a folder's model: its small files, and of each tensor its shape and some of its bytes.

    Reading all of the weights could take minutes; training changes nearly every number, so a few of each tensor tell.
    """
    found = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.suffix in (*TEXTS, ".safetensors")):
        found.update(f"{path.name}|{path.stat().st_size}|".encode())
        if path.suffix in TEXTS:
            found.update(path.read_bytes())
            continue
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = file.read(min(size, 2**27))
            found.update(header)
            try:
                places = [v["data_offsets"] for k, v in json.loads(header).items() if k != "__metadata__"]
            except (ValueError, LookupError, TypeError, AttributeError):
                continue  # no safetensors; loading it says so
            for start, end in places:
                file.seek(8 + size + (start + end) // 2)
                found.update(file.read(min(256, end - (start + end) // 2)))
    return found.hexdigest()[:16]


@dataclass(frozen=True)
class Loaded:
    """A chat model that is ready to be asked.

    Attributes:
        name: what messages call it.
        model: the network, in evaluation mode, on its device.
        processor: of texts and images; of a model that reads none the tokenizer.
        tokenizer: the processor's.
        sees: whether it reads images.
        has_budget: whether its processor itself keeps images within a number of pixels.
    """

    name: str
    model: Any
    processor: Any
    tokenizer: Any
    sees: bool
    has_budget: bool

    @cached_property
    def template(self) -> str:
        """The chat template."""
        return str(getattr(self.processor, "chat_template", None) or self.tokenizer.chat_template)

    @cached_property
    def context(self) -> int:
        """Most tokens of a conversation and its answer."""
        return int(getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or 2**31)

    @cached_property
    def special(self) -> tuple[str, ...]:
        """The tokens that structure a conversation, longest first."""
        special = {token.content for token in self.tokenizer.added_tokens_decoder.values() if token.special}
        special |= {str(t) for n in ("image_token", "boi_token") if (t := getattr(self.processor, n, None))}
        return tuple(sorted((t for t in special if len(t) > 2), key=lambda t: (-len(t), t)))

    @cached_property
    def _control(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.special)) or "(?!)")

    @cached_property
    def _digits(self) -> dict[str, list[int]]:
        likely = [(token, i) for token, i in self.tokenizer.get_vocab().items() if "1" in token or "0" in token]
        out: dict[str, list[int]] = {"1": [], "0": []}
        for i in sorted(i for _, i in likely):
            if (text := self.tokenizer.decode([i]).strip()) in out:
                out[text].append(i)
        return out

    def spellings(self, digit: str) -> list[int]:
        """All tokens that are `digit` alone, with or without space around it.

        Raises:
            Refused: no token is.
        """
        if not self._digits[digit]:
            raise Refused(f"{self.name} has no token for {digit!r} and so cannot be asked for it.")
        return self._digits[digit]

    def turn(self, message: Message, pictures: Mapping[bytes, Image.Image]) -> dict[str, Any]:
        """A message as templates want it, its images first.

        Raises:
            Refused: images for a model that reads none.
        """
        # Captions are data: one that holds "<image>" or "<|im_end|>" must not end a turn or ask for an image.
        text = self._control.sub(lambda m: f"{m[0][0]} {m[0][1:]}", message.text)
        if not self.sees:
            if message.images:
                raise Refused(f"{self.name} reads no images.")
            return {"role": message.role, "content": text}
        if message.role == "system" and self._plain_system:
            return {"role": "system", "content": text}
        images = [{"type": "image", "image": pictures[image]} for image in message.images]
        return {"role": message.role, "content": [*images, {"type": "text", "text": text}]}

    @cached_property
    def _plain_system(self) -> bool:
        """Whether the template writes a system message's list as Python would print it (Llama 3.2 Vision)."""
        probe = [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Hello."}]},
        ]
        try:
            return "'type'" in self.processor.apply_chat_template(probe, tokenize=False)
        except Exception:  # a template that takes no system message says so when there is one
            return False

    def encode(self, turns: Sequence[Sequence[dict[str, Any]]], **template: Any) -> Any:
        """What the model reads of B conversations: "input_ids" and "attention_mask" (B, T), and what goes with them.

        Raises:
            Refused: a processor that pads on the right.
        """
        padding = {"padding": True, "padding_side": "left"} if self.sees else {"padding": True}
        inputs = self.processor.apply_chat_template(
            [list(turn) for turn in turns], add_generation_prompt=True, tokenize=True, return_dict=True,
            return_tensors="pt", **({"processor_kwargs": padding} if self.sees else padding), **template,
        )  # fmt: skip
        if not inputs["attention_mask"][:, -1].all():
            raise Refused("the model's processor pads on the wrong side.")
        return inputs

    def lengths(self, inputs: Any) -> list[int]:
        """How many tokens each of the B conversations has."""
        return inputs["attention_mask"].sum(1).tolist()

    def before(self, inputs: Any) -> int:
        """How many tokens of what `generate` returns were there before it wrote."""
        return inputs["input_ids"].shape[1]

    def room(self, tokens: int) -> int:
        """How many of `tokens` the model may write."""
        return tokens


def load(checkpoint: Checkpoint, place: Place, *, max_pixels: int | None = None) -> Loaded:
    """The network, its processor and its template.

    Raises:
        MissingModel: files are missing.
        BadData: a model that is no chat model, or runs on its own code only.
        ValueError: Gemma 3 in float16, or weights that belong to another model.
    """
    import torch
    import transformers as hf

    from symbal_hf.models.chat.wordless import WORDLESS, Captioner, decoders
    from symbal_hf.models.encoders.base import loading

    source = checkpoint.source
    name = f"hf:{source.model}"
    # Left unsaid, transformers would ask on the terminal whether to run a model's code.
    where: dict[str, Any] = {
        "pretrained_model_name_or_path": source.model, "revision": source.revision or "main", "trust_remote_code": False
    }  # fmt: skip
    with loading(source), _told(name):
        config = hf.AutoConfig.from_pretrained(**where)
        wordless = config.model_type in WORDLESS
        sees = type(config) in hf.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        if not sees and type(config) not in hf.MODEL_FOR_CAUSAL_LM_MAPPING:
            raise BadData(f"{name} is a model of type {config.model_type!r}, which writes no text; name a chat model.")
        if str(config.model_type).startswith(NO_HALF) and place.dtype == torch.float16:
            raise ValueError(f"{name} writes nothing in float16; use dtype='bfloat16' or 'float32'.")
        reader: Any = hf.AutoImageProcessor if wordless else hf.AutoProcessor if sees else hf.AutoTokenizer
        processor = reader.from_pretrained(**where)
        tokenizer = (
            hf.AutoTokenizer.from_pretrained(**where) if wordless else processor.tokenizer if sees else processor
        )
        if not wordless and not (getattr(processor, "chat_template", None) or tokenizer.chat_template):
            raise BadData(
                f"{name} has no chat template and so cannot be asked; use its instruction-tuned version, or for "
                f"captions a model of type {', '.join(WORDLESS)}."
            )
        options = place.model_options()
        if "device_map" not in options and place.device != "cpu":
            options["device_map"] = place.device  # straight to the device: most models do not fit twice
        kind: Any = hf.AutoModelForImageTextToText if sees else hf.AutoModelForCausalLM
        model, told = kind.from_pretrained(**where, **options, output_loading_info=True)
    # Transformers would fill them at random and only warn. No captioner reads the pool that older checkpoints lack.
    if lacking := sorted(k for k in told["missing_keys"] if not (wordless and ".pooler." in k)):
        raise ValueError(
            f"the weights of {name} lack {len(lacking)} tensors of {type(model).__name__}, {lacking[0]} among them; "
            "they belong to another kind of model."
        )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    for decoder in decoders(model):
        _greedy(decoder, tokenizer)
    if wordless:
        return Captioner(name, model.eval(), processor, tokenizer, sees=True, has_budget=False)
    has_budget = sees and _mend(processor, config, max_pixels)
    return Loaded(name, model.eval(), processor, tokenizer, sees, has_budget)


def _greedy(model: Any, tokenizer: Any) -> None:
    """Takes out of a model's own generation settings whatever draws at random, and what makes it compile or warn."""
    own = model.generation_config
    for field in (*SAMPLING, "max_length", "cache_implementation"):
        setattr(own, field, None)
    own.do_sample, own.num_beams = False, 1
    own.pad_token_id = tokenizer.pad_token_id
    if own.eos_token_id is None:
        own.eos_token_id = tokenizer.eos_token_id


def _mend(processor: Any, config: Any, max_pixels: int | None) -> bool:
    """What processors leave open: LLaVA's patches, Qwen's pixels. True where it keeps images within a budget itself."""
    if getattr(processor, "patch_size", 0) is None:  # older snapshots of LLaVA; it then counts image tokens wrongly
        processor.patch_size = config.vision_config.patch_size
        processor.vision_feature_select_strategy = config.vision_feature_select_strategy
        processor.num_additional_image_tokens = 1
    images = processor.image_processor
    if not hasattr(images, "merge_size") or not dict(images.size or {}).get("longest_edge"):
        return False
    token = (images.patch_size * images.merge_size) ** 2  # pixels: 28 x 28 for Qwen2.5-VL, 32 x 32 for Qwen3-VL
    most = max(token, max_pixels or QWEN_TOKENS[1] * token)
    images.size = {"shortest_edge": min(QWEN_TOKENS[0] * token, most // 4), "longest_edge": most}
    return True


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turns what transformers raises of code it may not run and packages it lacks into one sentence."""
    try:
        yield
    except BadData:
        raise
    except ImportError as error:
        if named := re.search(r"pip install `?([\w-]+)", str(error)):  # SmolVLM's processor wants num2words
            raise MissingModel(f"{name} needs a package that is missing; run `pip install {named[1]}`.") from error
        raise
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise elsewhere(name) from error
        if "model type" in str(error):
            raise BadData(f"{name} names no architecture that transformers knows; a newer version may.") from error
        raise
