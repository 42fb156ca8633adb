"""Tiny random checkpoints of every kind of encoder, as the libraries themselves save them, with trained tokenizers."""

from __future__ import annotations

import json

SENTENCES = (
    "A dog runs on the beach.", "Two red buses stand in front of a tall building.", "there is no pleural effusion",
    "A man rides a brown horse through the snow and waves at somebody behind the fence.", "An old clock.",
    "A plate with rice, broccoli and a fork on a wooden table next to a glass of water.", "Heart size is normal.",
    "a cat", "A CAT", "Ein Hund läuft über die Straße.", "3 zebras, 1 giraffe & 0 lions!", "", " ",
)  # fmt: skip
LONG = " ".join(SENTENCES * 12)  # beyond every context below
CONTEXT = 24
TEXTS = [*SENTENCES, LONG, SENTENCES[0]]
TEXT_KINDS = ("clip", "siglip", "siglip2", "qwen3", "open_clip", "st_bert", "st_qwen3")
IMAGE_KINDS = ("clip", "siglip", "siglip2", "dinov2", "open_clip")
JOINT_KINDS = ("clip", "siglip", "siglip2", "open_clip")


def seed(number=0):
    import torch

    torch.manual_seed(number)


def byte_pairs(*special, suffix="", size=400):
    """A byte-level BPE of SENTENCES as (vocabulary, merges)."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE(end_of_word_suffix=suffix))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), end_of_word_suffix=suffix,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator(SENTENCES, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def save_clip(folder, *, number=0, size=32):
    """CLIP as of OpenAI: BPE with marks at both ends, its own mean and standard deviation."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPTokenizer

    seed(number)
    vocab, merges = byte_pairs("<|startoftext|>", "<|pad|>", "!", "<|endoftext|>", suffix="</w>")
    vocab |= {f"{token}</w>": len(vocab) + i for i, token in enumerate(sorted(t for t in vocab if len(t) == 1))}
    tokenizer = CLIPTokenizer(vocab=vocab, merges=merges, model_max_length=CONTEXT)
    tower = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "initializer_range": 0.3, "projection_dim": 24,
    }  # fmt: skip
    text = tower | {
        "vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    config = CLIPConfig(
        text_config=text, vision_config=tower | {"image_size": size, "patch_size": 8}, projection_dim=24,
        initializer_factor=1.0,
    )  # fmt: skip
    CLIPModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(
        size={"shortest_edge": size}, crop_size={"height": size, "width": size}, image_mean=[0.4, 0.5, 0.6],
        image_std=[0.2, 0.3, 0.25],
    ).save_pretrained(folder)  # fmt: skip
    return folder


def save_siglip(folder, *, number=0, size=32):
    """SigLIP: an end mark that also pads, no mask."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast, SiglipConfig, SiglipImageProcessor, SiglipModel

    seed(number)
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizers.NFKC()
    trained.pre_tokenizer, trained.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trained.train_from_iterator(
        [s.lower() for s in SENTENCES],
        trainers.UnigramTrainer(
            vocab_size=200, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
        ),
    )
    trained.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, unk_token="<unk>", eos_token="</s>", pad_token="</s>", model_max_length=CONTEXT
    )
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = tower | {
        "vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, "projection_size": 32, "eos_token_id": 1,
        "pad_token_id": 1, "bos_token_id": 1,
    }  # fmt: skip
    config = SiglipConfig(text_config=text, vision_config=tower | {"image_size": size, "patch_size": 8})
    SiglipModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    SiglipImageProcessor(size={"height": size, "width": size}).save_pretrained(folder)
    return folder


def save_siglip2(folder, *, number=0):
    """SigLIP 2 of any aspect ratio: an image is a list of patches with a mask and its shape."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model, Siglip2Tokenizer

    seed(number)
    trained = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    trained.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", "▁")])
    trained.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    trained.train_from_iterator(SENTENCES, trainer)
    model = json.loads(trained.to_str())["model"]
    tokenizer = Siglip2Tokenizer(
        vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]], add_eos_token=True,
        add_bos_token=False, padding_side="right", model_max_length=CONTEXT,
    )  # fmt: skip
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = tower | {
        "vocab_size": len(tokenizer), "max_position_embeddings": CONTEXT, "projection_size": 32, "eos_token_id": 1,
        "pad_token_id": 0, "bos_token_id": 2,
    }  # fmt: skip
    config = Siglip2Config(text_config=text, vision_config=tower | {"num_patches": 16, "patch_size": 8})
    Siglip2Model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Siglip2ImageProcessor(patch_size=8, max_num_patches=16).save_pretrained(folder)
    return folder


def save_dinov2(folder, *, number=0):
    """DINOv2: images alone, cropped to less than the size that its positions were made for."""
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    seed(number)
    config = Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=70, patch_size=14, initializer_range=0.3
    )
    Dinov2Model(config).save_pretrained(folder)
    BitImageProcessor(
        size={"shortest_edge": 48}, crop_size={"height": 42, "width": 42}, image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225], do_center_crop=True, do_convert_rgb=True, resample=3,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def save_qwen3(folder, *, number=0, final=True):
    """Qwen3-Embedding: the tokenizer ends each text by itself (`final`) with a token that is not the end of a turn."""
    from tokenizers import processors
    from transformers import Qwen2Tokenizer, Qwen3Config, Qwen3Model

    seed(number)
    vocab, merges = byte_pairs("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokenizer = Qwen2Tokenizer(
        vocab=vocab, merges=merges, eos_token="<|im_end|>", pad_token="<|endoftext|>", model_max_length=131072
    )
    if final:
        end = ("<|endoftext|>", tokenizer.convert_tokens_to_ids("<|endoftext|>"))
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", pair="$A <|endoftext|> $B <|endoftext|>", special_tokens=[end]
        )
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=256, initializer_range=0.3,
    )  # fmt: skip
    Qwen3Model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_sentence_qwen3(folder, *, number=0):
    """Qwen3-Embedding with the files that sentence-transformers reads: last token, unit length, a stock prompt."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    save_qwen3(folder / "plain", number=number)
    body = Transformer(str(folder / "plain"))
    pooling = Pooling(body.get_embedding_dimension(), pooling_mode="lasttoken")
    prompts = {"query": "Instruct: Given a web search query, retrieve passages\nQuery:", "document": ""}
    SentenceTransformer(modules=[body, pooling, Normalize()], prompts=prompts, device="cpu").save(str(folder / "st"))
    return folder / "st"


def save_sentence_bert(folder, *, number=0):
    """A sentence-transformers model of the usual kind: BERT, mean pooling."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import BertWordPieceTokenizer
    from transformers import BertConfig, BertModel, BertTokenizer

    seed(number)
    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator(SENTENCES, vocab_size=300, show_progress=False)
    tokenizer = BertTokenizer(vocab=pieces.get_vocab(), model_max_length=CONTEXT)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder / "plain")
    tokenizer.save_pretrained(folder / "plain")
    body = Transformer(str(folder / "plain"), max_seq_length=CONTEXT)
    pooling = Pooling(body.get_embedding_dimension(), pooling_mode="mean")
    SentenceTransformer(modules=[body, pooling], device="cpu").save(str(folder / "st"))
    return folder / "st"


OPEN_CLIP = {
    "embed_dim": 24,
    "quick_gelu": True,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": CONTEXT, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}


def save_open_clip(folder, *, number=0, resize_mode="squash"):
    """A folder as open_clip publishes models: one configuration with the preprocessing, and safetensors."""
    import open_clip
    from safetensors.torch import save_file

    seed(number)
    folder.mkdir(parents=True, exist_ok=True)
    looks = {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25], "interpolation": "bicubic", "resize_mode": resize_mode}
    told = {"model_cfg": OPEN_CLIP, "preprocess_cfg": looks}
    (folder / "open_clip_config.json").write_text(json.dumps(told))
    model = open_clip.model.CLIP(**OPEN_CLIP)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    return folder


class Zoo:
    """One tiny checkpoint of each kind below `root`: `folders` by name, and specs as attributes."""

    def __init__(self, root):
        self.folders = {
            "clip": save_clip(root / "clip"), "siglip": save_siglip(root / "siglip"),
            "siglip2": save_siglip2(root / "siglip2"), "dinov2": save_dinov2(root / "dinov2"),
            "qwen3": save_qwen3(root / "qwen3"), "open_clip": save_open_clip(root / "open_clip"),
            "st_bert": save_sentence_bert(root / "bert"), "st_qwen3": save_sentence_qwen3(root / "st_qwen3"),
        }  # fmt: skip
        kinds = {"open_clip": "open_clip:local-dir", "st_bert": "st", "st_qwen3": "st"}
        for name, folder in self.folders.items():
            setattr(self, name, f"{kinds.get(name, 'transformers')}:{folder}")


def pictures(n=7, size=None):
    """Pictures of shapes that no model was made for, or of one size (height, width)."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(5)
    sizes = [size or tuple(rng.integers(20, 90, 2)) for _ in range(n)]
    return [Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8)) for h, w in sizes]


def encode_images(encoder, images):
    """(N, D) vectors of images."""
    return encoder.encode_pixels([encoder.pixels(image) for image in images])


def as_if_downloaded(folder, name, *, commit, ref="main"):
    """Put a folder where the Hub's client keeps what it has downloaded of `name`; gives the name."""
    import shutil
    from pathlib import Path

    from huggingface_hub import constants

    repository = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, repository / "snapshots" / commit, dirs_exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / ref).write_text(commit)
    return name
