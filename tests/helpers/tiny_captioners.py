"""Tiny random checkpoints of the captioners that people audit: LLaVA-OneVision, Aya Vision, BLIP, GIT, ViT-GPT2."""

from __future__ import annotations

from tiny_chat import CHATML, LLAVA, TEXT, qwen_tokenizer, save
from tiny_models import SENTENCES, byte_pairs, seed

VISION = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 28,
    "patch_size": 7, "initializer_range": 0.3,
}  # fmt: skip
SIGLIP = VISION | {"model_type": "siglip_vision_model", "vision_use_head": False}
ONEVISION = CHATML.replace("<|vision_start|><|image_pad|><|vision_end|>", "<image>\n")
AYA = (
    "{{ bos_token }}{% for m in messages %}<|START_OF_TURN_TOKEN|>{{ m.role }}{% for c in m.content %}"
    "{% if c.type == 'image' %}<image>{% else %}{{ c.text }}{% endif %}{% endfor %}<|END_OF_TURN_TOKEN|>{% endfor %}"
    "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|>chatbot{% endif %}"
)


def save_onevision(folder, *, number=0):
    """LLaVA-OneVision: an image in pieces, as many as its shape asks for."""
    from transformers import (
        LlavaOnevisionConfig,
        LlavaOnevisionForConditionalGeneration,
        LlavaOnevisionImageProcessor,
        LlavaOnevisionProcessor,
        LlavaOnevisionVideoProcessor,
    )

    seed(number)
    tokenizer = qwen_tokenizer("<image>", "<video>")
    points = [[28, 28], [28, 56], [56, 28], [56, 56]]
    text = TEXT | {"model_type": "qwen2", "vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": 2}
    config = LlavaOnevisionConfig(
        text_config=text, vision_config=SIGLIP, image_grid_pinpoints=points, tie_word_embeddings=False,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
    )  # fmt: skip
    processor = LlavaOnevisionProcessor(
        LlavaOnevisionImageProcessor(size={"height": 28, "width": 28}, image_grid_pinpoints=points), tokenizer,
        LlavaOnevisionVideoProcessor(size={"height": 28, "width": 28}), num_image_tokens=16,
        vision_feature_select_strategy="full", chat_template=ONEVISION,
    )  # fmt: skip
    return save(folder, LlavaOnevisionForConditionalGeneration(config), processor, tokenizer, loud=1.0)


def save_aya(folder, *, number=1):
    """Aya Vision: tiles with names of their own."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        AyaVisionConfig,
        AyaVisionForConditionalGeneration,
        AyaVisionProcessor,
        GotOcr2ImageProcessor,
        PreTrainedTokenizerFast,
    )

    seed(number)
    marks = ("<|IMG_PATCH|>", "<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_LINE_BREAK|>", "<|START_OF_TURN_TOKEN|>",
             "<|END_OF_TURN_TOKEN|>", "<image>", "TILE_GLOBAL", *(f"TILE_{i}" for i in range(1, 5)))  # fmt: skip
    vocab, merges = byte_pairs("<PAD>", "<UNK>", "<BOS>", *marks)
    trained = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    trained.pre_tokenizer, trained.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, bos_token="<BOS>", eos_token="<|END_OF_TURN_TOKEN|>", pad_token="<PAD>",
        padding_side="left", additional_special_tokens=list(marks),
    )  # fmt: skip
    text = TEXT | {
        "model_type": "cohere2", "vocab_size": len(tokenizer), "head_dim": 8, "sliding_window": 16, "logit_scale": 1.0,
        "layer_types": ["sliding_attention", "full_attention"], "bos_token_id": 2, "pad_token_id": 0,
        "eos_token_id": tokenizer.eos_token_id, "tie_word_embeddings": True,
    }  # fmt: skip
    config = AyaVisionConfig(
        text_config=text, vision_config=SIGLIP, downsample_factor=2,
        image_token_index=tokenizer.convert_tokens_to_ids("<|IMG_PATCH|>"),
    )  # fmt: skip
    images = GotOcr2ImageProcessor(
        size={"height": 28, "width": 28}, crop_to_patches=True, min_patches=1, max_patches=4,
    )  # fmt: skip
    processor = AyaVisionProcessor(
        images, tokenizer, patch_size=7, img_size=28, downsample_factor=2, chat_template=AYA
    )  # fmt: skip
    return save(folder, AyaVisionForConditionalGeneration(config), processor, tokenizer, loud=1.0)


def words(folder):
    """BERT's tokenizer with a handful of words."""
    from transformers import BertTokenizer

    known = sorted({word for text in SENTENCES for word in text.lower().replace(".", " .").split() if word.isascii()})
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vocab.txt"
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]))
    return BertTokenizer(vocab=str(path))


def save_blip(folder, *, number=0):
    """BLIP, whose decoder begins with a mark that its tokenizer does not know."""
    from transformers import BlipConfig, BlipForConditionalGeneration, BlipImageProcessor, BlipProcessor

    seed(number)
    tokenizer = words(folder)
    text = {k: v for k, v in VISION.items() if k not in ("image_size", "patch_size")} | {
        "vocab_size": len(tokenizer) + 2, "encoder_hidden_size": 32, "max_position_embeddings": 64,
        "projection_dim": 32, "bos_token_id": len(tokenizer), "pad_token_id": 0, "eos_token_id": 3, "sep_token_id": 3,
    }  # fmt: skip
    model = BlipForConditionalGeneration(BlipConfig(text_config=text, vision_config=VISION, projection_dim=32))
    model.save_pretrained(folder)
    BlipProcessor(BlipImageProcessor(size={"height": 28, "width": 28}), tokenizer).save_pretrained(folder)
    return folder


def save_git(folder, *, number=0):
    """GIT: CLIP's patches before the words."""
    from transformers import CLIPImageProcessor, GitConfig, GitForCausalLM, GitProcessor

    seed(number)
    tokenizer = words(folder)
    config = GitConfig(
        vision_config=VISION, vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, bos_token_id=2, eos_token_id=3, pad_token_id=0,
        initializer_range=0.3,
    )  # fmt: skip
    GitForCausalLM(config).save_pretrained(folder)
    images = CLIPImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28})
    GitProcessor(images, tokenizer).save_pretrained(folder)
    return folder


def save_vit_gpt2(folder, *, number=0):
    """An encoder and a decoder that were joined: ViT and GPT-2, which has no mark for padding."""
    from transformers import (
        GPT2Config,
        GPT2Tokenizer,
        VisionEncoderDecoderConfig,
        VisionEncoderDecoderModel,
        ViTConfig,
        ViTImageProcessor,
    )

    seed(number)
    vocab, merges = byte_pairs("<|endoftext|>")
    tokenizer = GPT2Tokenizer(vocab=vocab, merges=merges)
    end = tokenizer.eos_token_id
    decoder = GPT2Config(
        n_embd=32, n_layer=2, n_head=2, n_positions=64, vocab_size=len(tokenizer), add_cross_attention=True,
        is_decoder=True, bos_token_id=end, eos_token_id=end, initializer_range=0.3,
    )  # fmt: skip
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(**VISION), decoder)
    config.decoder_start_token_id = config.pad_token_id = config.eos_token_id = end
    VisionEncoderDecoderModel(config=config).save_pretrained(folder)
    ViTImageProcessor(size={"height": 28, "width": 28}).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


ASKED = {"onevision": save_onevision, "aya": save_aya}
WORDLESS = {"blip": save_blip, "git": save_git, "vit-gpt2": save_vit_gpt2}
assert LLAVA  # LLaVA 1.5 is in tiny_chat
