"""From a chat model's files to a network, its processor and its chat template, ready to be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.models.chat.weights import Loaded, elsewhere
from symbal_hf.models.chat.wordless import WORDLESS, Captioner
from symbal_hf.models.encoders.base import Place, Source, loading, network

NO_HALF = "gemma3"  # float16 makes it write nothing or padding
QWEN_TOKENS = (256, 1280)  # of one image
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")


def load(source: Source, place: Place, *, max_pixels: int | None = None) -> Loaded:
    """The network, its processor and its template.

    Raises:
        MissingModel: files are missing.
        BadData: a model that is no chat model, or runs on its own code only.
        ValueError: Gemma 3 in float16, or weights that belong to another model.
    """
    import torch
    import transformers as hf

    name = f"hf:{source.model}"
    with loading(source), _plain_errors(name):
        config = hf.AutoConfig.from_pretrained(**source.where)
        sees = type(config) in hf.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
        if not sees and type(config) not in hf.MODEL_FOR_CAUSAL_LM_MAPPING:
            raise BadData(f"{name} is a model of type {config.model_type!r}, which writes no text; name a chat model.")
        if str(config.model_type).startswith(NO_HALF) and place.dtype == torch.float16:
            raise ValueError(f"{name} writes nothing in float16; use dtype='bfloat16' or 'float32'.")
        wordless = config.model_type in WORDLESS
        processor, tokenizer = _readers(name, source.where, sees=sees, wordless=wordless)
        if not place.device_map and place.device != "cpu":
            place = replace(place, device_map=place.device)  # straight to the device: most models do not fit twice
        # No captioner reads the pool that older checkpoints lack.
        architecture = hf.AutoModelForImageTextToText if sees else hf.AutoModelForCausalLM
        model = network(architecture, source, place, spare=lambda tensor: wordless and ".pooler." in tensor)
    for writer in filter(None, (model, getattr(model, "text_decoder", None))):  # BLIP's decoder has its own settings
        generation = writer.generation_config
        # Whatever draws at random, and what makes it compile or warn.
        for field in (*SAMPLING, "max_length", "cache_implementation"):
            setattr(generation, field, None)
        generation.do_sample, generation.num_beams = False, 1
        generation.pad_token_id = tokenizer.pad_token_id
        if generation.eos_token_id is None:
            generation.eos_token_id = tokenizer.eos_token_id
    if wordless:
        return Captioner(name, model, processor, tokenizer, sees=True, has_budget=False)
    has_budget = sees and _mend(processor, config, max_pixels)
    return Loaded(name, model, processor, tokenizer, sees, has_budget)


def _readers(name: str, where: dict[str, Any], *, sees: bool, wordless: bool) -> tuple[Any, Any]:
    """The processor and its tokenizer, which pads on the left; raises where there is no chat template."""
    import transformers as hf

    if wordless:
        processor: Any = hf.AutoImageProcessor.from_pretrained(**where)
        tokenizer: Any = hf.AutoTokenizer.from_pretrained(**where)
    else:
        processor = (hf.AutoProcessor if sees else hf.AutoTokenizer).from_pretrained(**where)
        tokenizer = processor.tokenizer if sees else processor
        if not (getattr(processor, "chat_template", None) or tokenizer.chat_template):
            raise BadData(
                f"{name} has no chat template and so cannot be asked; use its instruction-tuned version, or for "
                f"captions a model of type {', '.join(WORDLESS)}."
            )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return processor, tokenizer


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
def _plain_errors(name: str) -> Iterator[None]:
    """Turns what transformers raises of code it may not run into one sentence."""
    try:
        yield
    except BadData:
        raise
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise elsewhere(name) from error
        if "model type" in str(error):
            raise BadData(f"{name} names no architecture that transformers knows; a newer version may.") from error
        raise
