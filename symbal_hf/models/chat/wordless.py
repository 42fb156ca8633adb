"""Captioners that take no words: BLIP, GIT and encoder-decoders caption whatever image they are shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from symbal_hf.models.chat.weights import Loaded, Refused

if TYPE_CHECKING:
    from PIL import Image

    from symbal_hf.models.chat.protocol import Message
    from symbal_hf.models.encoders.base import Source

WORDLESS = ("blip", "git", "vision-encoder-decoder")  # by their `model_type`


def is_wordless(source: Source) -> bool:
    """Whether this model captions images and can be asked nothing, by its configuration alone."""
    try:
        return json.loads(source.file.read_text("utf-8")).get("model_type") in WORDLESS
    except (OSError, ValueError, AttributeError):  # loading the model says what is wrong
        return False


class Captioner(Loaded):
    """A captioner that is ready: images go in, and what is said beside them is not heard."""

    @property
    def template(self) -> str:
        """There is none, and so no reasoning to take out either."""
        return ""

    def turn(self, message: Message, pictures: Mapping[bytes, Image.Image]) -> dict[str, Any]:
        if len(message.images) != 1 or message.role != "user":
            raise Refused(f"{self.name} captions one image at a time and answers no question.")
        return {"image": pictures[message.images[0]]}

    def encode(self, turns: Sequence[Sequence[dict[str, Any]]], **template: Any) -> Any:
        if any(len(turn) != 1 for turn in turns):
            raise Refused(f"{self.name} captions one image at a time and answers no question.")
        return self.processor([turn[0]["image"] for turn in turns], return_tensors="pt")

    def lengths(self, inputs: Any) -> list[int]:
        return [0] * len(inputs["pixel_values"])

    def before(self, inputs: Any) -> int:
        """The mark that every caption begins with."""
        return 1

    def room(self, tokens: int) -> int:
        """What fits in the decoder, whose captions are short anyway."""
        return min(tokens, self.context - 1)
