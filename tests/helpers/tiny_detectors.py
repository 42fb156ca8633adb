"""Tiny random checkpoints of zero-shot object detectors, as transformers itself saves them."""

from __future__ import annotations

from tiny_models import SENTENCES, byte_pairs, seed

SIDE = 96


def save_owl(folder, *, kind="owlv2", number=0):
    """OWLv2 or OWL-ViT: CLIP's two towers, 16 tokens of text, a box and a score for each patch."""
    import torch
    import transformers as hf

    seed(number)
    vocab, merges = byte_pairs("!", "<|startoftext|>", "<|endoftext|>", suffix="</w>")
    vocab |= {f"{token}</w>": len(vocab) + i for i, token in enumerate(sorted(t for t in vocab if len(t) == 1))}
    tokenizer = hf.CLIPTokenizer(vocab=vocab, merges=merges, pad_token="!", model_max_length=16)
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = tower | {
        "vocab_size": len(tokenizer), "max_position_embeddings": 16, "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    name = {"owlv2": "Owlv2", "owlvit": "OwlViT"}[kind]
    config = getattr(hf, f"{name}Config")(
        text_config=text, vision_config=tower | {"image_size": SIDE, "patch_size": 16}, projection_dim=32
    )
    model = getattr(hf, f"{name}ForObjectDetection")(config)
    with torch.no_grad():  # as it is made it gives the same box everywhere
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.12)
    model.save_pretrained(folder)
    size = {"height": SIDE, "width": SIDE}
    images = getattr(hf, f"{name}ImageProcessor")(size=size, **({} if kind == "owlv2" else {"crop_size": size}))
    getattr(hf, f"{name}Processor")(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder


def save_grounding_dino(folder, *, number=0):
    """Grounding DINO: a Swin, a BERT, and boxes whose scores are those of the words of one text."""
    import transformers as hf
    from tokenizers import BertWordPieceTokenizer

    seed(number)
    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator([*SENTENCES, "a cat. a dog. red bus?"], vocab_size=300, show_progress=False)
    tokenizer = hf.BertTokenizer(vocab=pieces.get_vocab(), model_max_length=64)
    text = hf.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    backbone = hf.SwinConfig(
        image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[2, 2, 2, 2], window_size=2,
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    config = hf.GroundingDinoConfig(
        backbone_config=backbone, text_config=text, d_model=32, encoder_layers=1, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, num_queries=20,
        max_text_len=32,
    )  # fmt: skip
    hf.GroundingDinoForObjectDetection(config).save_pretrained(folder)
    images = hf.GroundingDinoImageProcessor(size={"shortest_edge": 64, "longest_edge": 100})
    hf.GroundingDinoProcessor(image_processor=images, tokenizer=tokenizer).save_pretrained(folder)
    return folder
