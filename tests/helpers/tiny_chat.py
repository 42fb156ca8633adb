"""Tiny random chat models of four kinds, as transformers saves them, with trained tokenizers and chat templates."""

from __future__ import annotations

import io

from tiny_models import SENTENCES, byte_pairs, seed

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for c in m.content %}{% if c.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING = CHATML.replace(
    "assistant\n{% endif %}",
    "assistant\n{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}",
)
GEMMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set first = messages[0].content[0].text + '\n\n' %}"
    "{% set turns = messages[1:] %}{% else %}{% set first = '' %}{% set turns = messages %}{% endif %}"
    "{% for m in turns %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}<start_of_turn>"
    "{{ 'model' if m.role == 'assistant' else m.role }}\n{{ first if loop.first else '' }}{% for c in m.content %}"
    "{% if c.type == 'image' %}<start_of_image>{% else %}{{ c.text | trim }}{% endif %}{% endfor %}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
LLAVA = (  # without the mark at the beginning, which the tokenizer adds
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content[0].text + ' ' }}{% else %}"
    "{{ m.role.upper() + ': ' }}{% for c in m.content if c.type == 'image' %}<image>\n{% endfor %}"
    "{% for c in m.content if c.type == 'text' %}{{ c.text + ' ' }}{% endfor %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
# What repositories ship, and what must not make any answer a matter of chance.
SAMPLED = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20}
TEXT = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "initializer_range": 0.2, "tie_word_embeddings": False, "max_position_embeddings": 400,
}  # fmt: skip


def save(folder, model, processor, tokenizer, *, loud=4.0):
    """Saves a checkpoint whose digits are likely enough to be said at times."""
    from transformers import GenerationConfig

    head = model.get_output_embeddings().weight.data
    for i in tokenizer.get_vocab().values():
        if tokenizer.decode([i]).strip() in ("0", "1"):
            head[i] *= loud
    model.generation_config = GenerationConfig(
        **SAMPLED, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def qwen_tokenizer(*special):
    from transformers import Qwen2Tokenizer

    vocab, merges = byte_pairs("<|endoftext|>", "<|im_start|>", "<|im_end|>", *special)
    return Qwen2Tokenizer(
        vocab=vocab, merges=merges, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        extra_special_tokens=["<|im_start|>", *special],
    )  # fmt: skip


def save_text(folder, *, number=0, template=THINKING):
    """Qwen3: text alone, and a template that can switch reasoning off."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    seed(number)
    tokenizer = qwen_tokenizer()
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = template
    ids = {"bos_token_id": None, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = Qwen3Config(**TEXT, vocab_size=len(tokenizer), head_dim=8, **ids)
    return save(folder, Qwen3ForCausalLM(config), tokenizer, tokenizer)


def save_qwen(folder, *, number=0):
    """Qwen2.5-VL: as many tokens as an image has patches, and positions in three dimensions."""
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    seed(number)
    tokenizer = qwen_tokenizer("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    ids = {
        f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>")
        for name, token in (
            ("image", "image_pad"), ("video", "video_pad"), ("vision_start", "vision_start"),
            ("vision_end", "vision_end"),
        )
    }  # fmt: skip
    vision = {
        "depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "out_hidden_size": 32,
        "window_size": 56, "fullatt_block_indexes": [1], "initializer_range": 0.3,
    }  # fmt: skip
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0}
    text = TEXT | {"vocab_size": len(tokenizer), "rope_parameters": rope, "bos_token_id": None, "eos_token_id": 2}
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **ids)
    processor = Qwen2_5_VLProcessor(
        Qwen2VLImageProcessor(), tokenizer, Qwen2VLVideoProcessor(), chat_template=CHATML
    )  # fmt: skip
    return save(folder, Qwen2_5_VLForConditionalGeneration(config), processor, tokenizer)


def save_gemma(folder, *, number=0):
    """Gemma 3: a tokenizer that marks beginnings as its template does, and images that see all of themselves."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import (
        Gemma3Config,
        Gemma3ForConditionalGeneration,
        Gemma3ImageProcessor,
        Gemma3Processor,
        PreTrainedTokenizerFast,
    )

    seed(number)
    marks = ("<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>")
    vocab, merges = byte_pairs("<pad>", "<eos>", "<bos>", *marks)
    trained = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    trained.pre_tokenizer, trained.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    trained.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", vocab["<bos>"])]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, bos_token="<bos>", eos_token="<end_of_turn>", pad_token="<pad>", padding_side="right",
        extra_special_tokens={
            "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>",
            "sot_token": "<start_of_turn>",
        },
    )  # fmt: skip
    text = TEXT | {
        "vocab_size": len(tokenizer), "head_dim": 8, "sliding_window": 16, "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    vision = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
        "patch_size": 8, "vision_use_head": False,
    }  # fmt: skip
    config = Gemma3Config(
        text_config=text, vision_config=vision, mm_tokens_per_image=4, tie_word_embeddings=False,
        image_token_index=tokenizer.image_token_id, boi_token_index=tokenizer.boi_token_id,
        eoi_token_index=tokenizer.eoi_token_id, initializer_range=0.3,
    )  # fmt: skip
    images = Gemma3ImageProcessor(size={"height": 32, "width": 32})
    processor = Gemma3Processor(images, tokenizer, chat_template=GEMMA, image_seq_length=4)
    model = Gemma3ForConditionalGeneration(config)
    model.model.multi_modal_projector.mm_input_projection_weight.data.normal_(0, 0.3)  # else it sees nothing
    return save(folder, model, processor, tokenizer)


def save_llava(folder, *, number=2, old=False):
    """LLaVA 1.5: CLIP without its class token; `old` leaves out what its processor must know of patches."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers
    from transformers import (
        CLIPImageProcessor,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
        PreTrainedTokenizerFast,
    )

    seed(number)
    trained = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trained.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), "<image>", "<pad>"]
    trained.train_from_iterator(
        [*SENTENCES, "0 1 10"], trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    )
    trained.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>",
        padding_side="right", extra_special_tokens={"image_token": "<image>"},
    )  # fmt: skip
    vision = {
        "model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": 28, "patch_size": 14, "initializer_range": 0.3,
    }  # fmt: skip
    config = LlavaConfig(
        text_config=TEXT | {"model_type": "llama", "vocab_size": len(tokenizer), "head_dim": 8}, vision_config=vision,
        image_token_index=tokenizer.image_token_id, image_seq_length=4, tie_word_embeddings=False,
    )  # fmt: skip
    images = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    told = (
        {} if old else {"patch_size": 14, "vision_feature_select_strategy": "default", "num_additional_image_tokens": 1}
    )
    processor = LlavaProcessor(images, tokenizer, chat_template=LLAVA, **({} if old else told))
    return save(folder, LlavaForConditionalGeneration(config), processor, tokenizer, loud=2.0)


KINDS = {"text": save_text, "qwen": save_qwen, "gemma": save_gemma, "llava": save_llava}


def picture(number=0, *, size=(60, 44), form="PNG"):
    """An encoded picture of coloured noise that is like no other number's."""
    import numpy as np
    from PIL import Image

    blocks = np.random.default_rng(number).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(blocks).resize(size).save(out, form)
    return out.getvalue()
