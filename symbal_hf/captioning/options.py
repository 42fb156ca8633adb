"""The options of captioning, each said once."""

from __future__ import annotations

from dataclasses import dataclass

from symbal_hf.core.options import Group, Range, option


@dataclass(frozen=True)
class Captioning(Group):
    """How captions are made."""

    prompt: str | None = option(None, "What the model is asked, word for word.")
    max_tokens: int = option(512, "Tokens of a caption, at most,", within=Range(low=1))
    temperature: float = option(0.0, "0: the likeliest caption; above, captions are drawn;", within=Range(low=0))
    batch_size: int = option(8, "Images that a model of this process looks at together,", within=Range(low=1))
