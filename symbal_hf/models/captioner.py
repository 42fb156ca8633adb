"""What a captioner is: the paper's by name, an image as it is shown to one, and which of its answers are captions."""

from __future__ import annotations

import re
from importlib import resources

from symbal_hf.core.errors import BadData
from symbal_hf.data.pixels import upright
from symbal_hf.data.table import Images
from symbal_hf.models.chat.prompting import PromptName
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import Model
from symbal_hf.models.parts import Parts

ASKED: PromptName = "describe_image"
# How answers begin that are no caption; such a one would count as a false statement about the image.
_BEGINNINGS = resources.files("symbal_hf.models").joinpath("refusals.txt").read_text("utf-8").splitlines()
REFUSAL = re.compile("|".join(_BEGINNINGS), re.IGNORECASE)


# Captioners of the Hub by the names that they may be given by.
CAPTIONERS = {
    "llava-1.5-7b": Model("llava-hf/llava-1.5-7b-hf", 16, 14.1, "Llama 2", image_tokens=576),
    "llava-1.5-13b": Model("llava-hf/llava-1.5-13b-hf", 29, 26, "Llama 2", image_tokens=576),
    "llava-onevision-7b": Model("llava-hf/llava-onevision-qwen2-7b-ov-hf", 22, 15, "Apache-2.0", image_tokens=2929),
    "aya-vision-8b": Model("CohereLabs/aya-vision-8b", 20, 17.3, "CC-BY-NC-4.0, gated", image_tokens=2212),
}


def captioner_spec(model: str) -> str:
    """The spec of a captioner that may be given by name; raises `BadData` for neither a name nor a spec."""
    if model in CAPTIONERS:
        return f"hf:{CAPTIONERS[model].name}"
    if not model.startswith(("hf:", "openai:")):
        raise BadData(
            f"model={model!r}; give hf:MODEL[@revision], openai:http://HOST:PORT/v1#MODEL, or one of "
            f"{', '.join(CAPTIONERS)}."
        )
    return model


class Upright:
    """Images as every reader sees them alike; `bad` has the rows that could not be read, with reasons."""

    def __init__(self, images: Images) -> None:
        self.bad: dict[int, str] = {}
        self._images = images

    def encoded(self, row: int) -> bytes:
        """The file's bytes, or a PNG of its pixels; raises ValueError for an image that cannot be read."""
        try:
            return upright(self._images.encoded(row))
        except (OSError, SyntaxError, ValueError) as error:
            self.bad[row] = str(error).rstrip(".")
            raise ValueError(self.bad[row]) from error


def captions_of(
    parts: Parts,
    spec: str,
    images: Upright,
    n: int,
    *,
    prompt: PromptName = ASKED,
    max_tokens: int = 256,
    temperature: float = 0.0,
    seed: int = 0,
) -> list[Answer]:
    """A caption of each of the N images by model `spec`, or why there is none: a refusal is no caption.

    A captioner that takes no words is asked nothing. `temperature` 0 is for the likeliest caption; what is drawn above
    depends on `seed`. Raises `ChatFailed` where the model answers nothing.
    """
    decoding = {"max_new_tokens": max_tokens, "temperature": temperature, "seed": seed}
    answers = parts.ask(spec, prompt, [{}] * n, images=images, rows=range(n), kind="text", **decoding)
    for i, answer in enumerate(answers):
        text = (answer.text or "").strip()
        if answer.text is not None and not any(c.isalnum() for c in text):
            answers[i] = Answer(error="the model wrote nothing.")
        elif REFUSAL.match(text):
            answers[i] = Answer(error=f"the model refused: {text[:60]!r}{'...' * (len(text) > 60)}")
        elif text:
            answers[i] = Answer(text=text)
    return answers
