"""The captioners that the paper audits, by name, and what each needs."""

from __future__ import annotations

from symbal_hf.core.errors import BadData
from symbal_hf.models.composition import Model

CAPTIONERS = {
    "llava-1.5-7b": Model("llava-hf/llava-1.5-7b-hf", 16, 14.1, "Llama 2", 7.1),
    "llava-1.5-13b": Model("llava-hf/llava-1.5-13b-hf", 29, 26, "Llama 2", 13.4),
    "llava-onevision-7b": Model("llava-hf/llava-onevision-qwen2-7b-ov-hf", 22, 15, "Apache-2.0", 8.0),
    "aya-vision-8b": Model("CohereLabs/aya-vision-8b", 20, 17.3, "CC-BY-NC-4.0, gated", 8.6),
}
# Tokens of a 640 x 480 photo, as their processors cut it up.
IMAGE_TOKENS = {"llava-1.5-7b": 576, "llava-1.5-13b": 576, "llava-onevision-7b": 2929, "aya-vision-8b": 2212}


def captioner_spec(model: str) -> str:
    """The spec of a captioner that may be given by name.

    Raises:
        BadData: neither a name nor a spec.
    """
    if model in CAPTIONERS:
        return f"hf:{CAPTIONERS[model].name}"
    if not model.startswith(("hf:", "openai:")):
        raise BadData(
            f"model={model!r}; give hf:MODEL[@revision], openai:http://HOST:PORT/v1#MODEL, or one of "
            f"{', '.join(CAPTIONERS)}."
        )
    return model
