"""The miniature chat model's parts: tokenizer, chat template, processor and LLaVA configuration, all of plain kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import torch
from scene_mllm_pool import GRID, PATCH, SIDE
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    CLIPImageProcessor,
    GenerationConfig,
    LevitConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from symbal_hf.models.chat.prompting import PROMPTS, Prompts

PAD, BOS, EOS, IMAGE, SYSTEM, USER, ASSISTANT = SPECIAL = (
    "<pad>", "<s>", "</s>", "<image>", "<|system|>", "<|user|>", "<|assistant|>",
)  # fmt: skip
IMAGE_TOKENS = GRID * GRID
VISION_WIDTH, TEXT_WIDTH = 256, 192
_HOLE = "\x00"

CHAT_TEMPLATE = """{{- '<s>' -}}
{%- for message in messages -%}
  {{- '<|' + message['role'] + '|>' -}}
  {%- if message['content'] is string -%}
    {{- message['content'] | trim -}}
  {%- else -%}
    {%- for part in message['content'] -%}
      {%- if part['type'] in ('image', 'image_url') -%}{{- '<image>' -}}{%- endif -%}
    {%- endfor -%}
    {%- for part in message['content'] if part['type'] == 'text' -%}{{- part['text'] | trim -}}{%- endfor -%}
  {%- endif -%}
  {%- if message['role'] == 'assistant' -%}{{- '</s>' -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""


def prompt_pieces() -> list[str]:
    """The unchanging parts of all prompts, longest first.

    Each becomes one token. That cuts the sequences to a third, and the model tells its tasks apart at a glance.
    """
    prompts, pieces = Prompts(), set[str]()
    holes = dict.fromkeys(("fact", "reference", "text", "answer", "truth"), _HOLE)
    for name in PROMPTS:
        for k in (1, 3) if name == "most_frequent" else (1,):
            text = prompts.render(name, **holes, lists=[[_HOLE]], k=k, errors=[_HOLE], facts=[_HOLE])
            # Only there are digits a part of what is filled in.
            pieces.update(re.split(rf"{_HOLE}|\d" if name == "most_frequent" else _HOLE, text))
    # A word's token begins with its space, so a piece must not take that away.
    return sorted({piece.rstrip(" ") for piece in pieces if len(piece) > 4}, key=lambda piece: (-len(piece), piece))


def make_tokenizer(texts: Iterable[str], size: int = 1000) -> PreTrainedTokenizerFast:
    """A byte-level BPE of these texts with single digits, and a token for each piece of the prompts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(piece, normalized=False) for piece in prompt_pieces()])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=2048,
        clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": IMAGE},
    )


def make_processor(tokenizer: PreTrainedTokenizerFast) -> LlavaProcessor:
    """The standard processor: pictures of any size are pressed to the model's own."""
    side = {"height": SIDE, "width": SIDE}
    images = CLIPImageProcessor(
        size=side, crop_size=side, do_center_crop=False, image_mean=[0.5] * 3, image_std=[0.25] * 3
    )
    return LlavaProcessor(
        images,
        tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="full",
        chat_template=CHAT_TEMPLATE,
        num_additional_image_tokens=0,
    )


def normalized(images: torch.Tensor) -> torch.Tensor:
    """What the processor makes of (N, SIDE, SIDE, 3) uint8 pictures."""
    return (images.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25


def vision_config() -> LevitConfig:
    """A stem of four convolutions: on a CPU it learns in minutes what a plain ViT does not in an hour.

    The stages after the stem have no layers; they are there because the architecture has them.
    """
    return LevitConfig(
        image_size=SIDE,
        patch_size=PATCH,
        kernel_size=5,
        padding=2,
        hidden_size=VISION_WIDTH,  # asked for by the LLaVA projector
        hidden_sizes=[VISION_WIDTH, 32, 32],
        depths=[0, 0, 0],
        num_attention_heads=[4, 2, 2],
        key_dim=[16, 16, 16],
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """The model with random weights."""
    ids = dict(zip(SPECIAL, tokenizer.convert_tokens_to_ids(list(SPECIAL)), strict=True))
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=TEXT_WIDTH,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=6,
        head_dim=32,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},  # most is a question of what, not of where
        initializer_range=0.08,  # with the usual 0.02 so narrow a model stays at chance for long
        tie_word_embeddings=True,
        bos_token_id=ids[BOS],
        eos_token_id=ids[EOS],
        pad_token_id=ids[PAD],
    )
    config = LlavaConfig(
        vision_config=vision_config(),
        text_config=text,
        image_token_index=ids[IMAGE],
        image_seq_length=IMAGE_TOKENS,
        vision_feature_select_strategy="full",
        vision_feature_layer=-4,  # the stem's output; the same as 0, which is taken for "none"
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        bos_token_id=ids[BOS], eos_token_id=ids[EOS], pad_token_id=ids[PAD], do_sample=False, max_new_tokens=96
    )
    return model


def export(model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Writes weights in fp16 and all that plain transformers needs to load them."""
    folder.mkdir(parents=True, exist_ok=True)
    half = make_model(tokenizer)
    half.load_state_dict(model.state_dict())
    half.half().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    make_processor(tokenizer).save_pretrained(folder)
    for file in folder.glob("*.json"):  # a machine's paths are nobody's business
        values = json.loads(file.read_text("utf-8"))
        if isinstance(values, dict) and values.pop("_name_or_path", None) is not None:
            file.write_text(json.dumps(values, indent=2) + "\n", "utf-8")
