"""A chat model that is loaded: what it reads of a conversation, and what in its files its answers depend on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    from PIL import Image

    from symbal_hf.models.chat.protocol import Message

FROZEN_ELSEWHERE = ("microsoft/maira-2",)  # models that run with an older transformers and their own code only
TEXTS = (".json", ".jinja", ".txt", ".model", ".tiktoken")  # files of a folder that answers depend on


class Refused(ValueError):
    """A conversation that this model cannot be asked; the message is one sentence without what it says."""


def elsewhere(name: str) -> BadData:
    """What to do with a model that only its own code can run."""
    return BadData(
        f"{name} runs on code that comes with it, which is never run here; make its captions in an environment of its "
        "own, as in scripts/legacy/, and read them with `--captioner file:captions.jsonl`."
    )


def digest(folder: Path) -> str:
    """16 hexadecimal digits of a folder's model: its small files, and of each tensor its shape and some of its bytes.

    Reading all of the weights could take minutes; training changes nearly every number, so a few of each tensor tell.
    """
    digest_of_all = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.suffix in (*TEXTS, ".safetensors")):
        digest_of_all.update(f"{path.name}|{path.stat().st_size}|".encode())
        if path.suffix in TEXTS:
            digest_of_all.update(path.read_bytes())
            continue
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = file.read(min(size, 2**27))
            digest_of_all.update(header)
            try:
                offsets = [v["data_offsets"] for k, v in json.loads(header).items() if k != "__metadata__"]
            except (ValueError, LookupError, TypeError, AttributeError):
                continue  # no safetensors; loading it says so
            for start, end in offsets:
                file.seek(8 + size + (start + end) // 2)
                digest_of_all.update(file.read(min(256, end - (start + end) // 2)))
    return digest_of_all.hexdigest()[:16]


@dataclass(frozen=True)
class Loaded:
    """A chat model that is ready to be asked."""

    name: str  # what messages call it
    model: Any  # the network, in evaluation mode, on its device
    processor: Any  # of texts and images; of a model that reads none the tokenizer
    tokenizer: Any  # the processor's
    sees: bool  # whether it reads images
    has_budget: bool  # whether its processor itself keeps images within a number of pixels

    @cached_property
    def template(self) -> str:
        return str(getattr(self.processor, "chat_template", None) or self.tokenizer.chat_template)

    @cached_property
    def context(self) -> int:
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
    def digits(self) -> dict[str, list[int]]:
        """All tokens that are "1" or "0" alone, with or without space around it; raises `Refused` where none is."""
        likely = [(token, i) for token, i in self.tokenizer.get_vocab().items() if "1" in token or "0" in token]
        out: dict[str, list[int]] = {"1": [], "0": []}
        for i in sorted(i for _, i in likely):
            if (text := self.tokenizer.decode([i]).strip()) in out:
                out[text].append(i)
        if lacking := [digit for digit, tokens in out.items() if not tokens]:
            raise Refused(f"{self.name} has no token for {lacking[0]!r} and so cannot be asked for it.")
        return out

    def turn(self, message: Message, pictures: Mapping[bytes, Image.Image]) -> dict[str, Any]:
        """A message as templates want it, its images first; raises `Refused` for images that are not read."""
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
            [list(turn) for turn in turns],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            **({"processor_kwargs": padding} if self.sees else padding),
            **template,
        )
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
