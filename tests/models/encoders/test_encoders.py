"""Every kind of encoder gives what its own library gives, one input at a time, whatever the batches."""

from __future__ import annotations

import random

import numpy as np
import pytest
import tiny_models as tiny
from PIL import Image
from tiny_models import IMAGE_KINDS, JOINT_KINDS, TEXT_KINDS, TEXTS, encode_images, pictures

from symbal_hf.models.encoders.load import load_encoder

CLOSE = {"rtol": 0, "atol": 2e-5}


@pytest.fixture(scope="module")
def zoo(tmp_path_factory):
    return tiny.Zoo(tmp_path_factory.mktemp("zoo"))


def assert_unit(vectors, rows, dim):
    assert vectors.shape == (rows, dim) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


# By hand: one input at a time, no batch, and no padding but where the model was trained with it.


def text_by_hand(kind, folder, text, *, head=""):
    import torch
    from transformers import AutoModel, AutoTokenizer

    with torch.inference_mode():
        if kind == "open_clip":
            import open_clip

            model, _, _ = open_clip.create_model_and_transforms(f"local-dir:{folder}")
            return model.eval().encode_text(open_clip.get_tokenizer(f"local-dir:{folder}")([text]))[0]
        if kind in ("st_bert", "st_qwen3"):
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(str(folder), device="cpu").encode(
                text, prompt=head or None, convert_to_tensor=True
            )
        model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
        if kind in ("siglip", "siglip2"):
            ids = tokenizer(text.lower())["input_ids"]
            ids = [*ids[: tiny.CONTEXT - 1], 1] if len(ids) > tiny.CONTEXT else ids
            ids = torch.tensor([ids + [tokenizer.pad_token_id] * (tiny.CONTEXT - len(ids))])
            states = model.text_model(input_ids=ids).last_hidden_state
            return model.text_model.head(states[0, -1])
        if kind == "clip":
            words = tokenizer(text, add_special_tokens=False)["input_ids"][: tiny.CONTEXT - 2]
            ids = torch.tensor([[tokenizer.bos_token_id, *words, tokenizer.eos_token_id]])
            return model.text_projection(model.text_model(input_ids=ids).last_hidden_state[0, -1])
        end = tokenizer.convert_tokens_to_ids("<|endoftext|>")
        words = tokenizer(head + text, add_special_tokens=False)["input_ids"][
            : model.config.max_position_embeddings - 1
        ]
        return model(input_ids=torch.tensor([[*words, end]])).last_hidden_state[0, -1]


def normal(pixels, mean, std):
    import torch

    scaled = (np.asarray(pixels, np.float32) / 255 - np.float32(mean)) / np.float32(std)
    return torch.from_numpy(scaled.transpose(2, 0, 1))[None]


def image_by_hand(kind, folder, image):
    """`image` has the size that the model reads, so that no resampling blurs the comparison."""
    import torch
    from transformers import AutoModel

    with torch.inference_mode():
        if kind == "open_clip":
            import open_clip

            model = open_clip.create_model(f"local-dir:{folder}").eval()
            return model.encode_image(normal(image, [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]))[0]
        model = AutoModel.from_pretrained(folder).eval()
        if kind == "clip":
            states = model.vision_model(normal(image, [0.4, 0.5, 0.6], [0.2, 0.3, 0.25])).last_hidden_state
            return model.visual_projection(model.vision_model.post_layernorm(states[0, 0]))
        if kind == "siglip":
            states = model.vision_model(normal(image, [0.5] * 3, [0.5] * 3)).last_hidden_state
            return model.vision_model.head(states)[0]
        if kind == "siglip2":
            pixels = normal(image, [0.5] * 3, [0.5] * 3)[0].permute(1, 2, 0)
            patches = [pixels[y : y + 8, x : x + 8].flatten() for y in range(0, 32, 8) for x in range(0, 32, 8)]
            patches, whole = torch.stack(patches)[None], torch.ones(1, 16, dtype=torch.int32)
            states = model.vision_model(patches, whole, torch.tensor([[4, 4]])).last_hidden_state
            return model.vision_model.head(states)[0]
        cut = image.crop((3, 3, 45, 45))  # the middle 42 x 42 of 48 x 48
        return model(normal(cut, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])).last_hidden_state[0, 0]


def unit_by_hand(vector):
    vector = vector.double().numpy()
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_texts_as_the_library_alone_encodes_them(zoo, kind):
    encoder = load_encoder("text", getattr(zoo, kind), batch_size=4)
    vectors = encoder.encode(TEXTS)
    assert_unit(vectors, len(TEXTS), encoder.dim)
    expected = [unit_by_hand(text_by_hand(kind, zoo.folders[kind], text)) for text in TEXTS]
    np.testing.assert_allclose(vectors, expected, **CLOSE)
    assert len(np.unique(vectors.round(3), axis=0)) >= 8  # a model that says the same of all texts proves nothing


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_images_as_the_library_alone_encodes_them(zoo, kind):
    encoder = load_encoder("image", getattr(zoo, kind), batch_size=2)
    images = pictures(5, size=(48, 48) if kind == "dinov2" else (32, 32))
    vectors = encode_images(encoder, images)
    assert_unit(vectors, 5, encoder.dim)
    expected = [unit_by_hand(image_by_hand(kind, zoo.folders[kind], image)) for image in images]
    np.testing.assert_allclose(vectors, expected, **CLOSE)
    assert len(np.unique(vectors.round(3), axis=0)) == 5


@pytest.mark.parametrize(
    ("kind", "box"),
    [("clip", (16, 0, 48, 32)), ("siglip", (0, 0, 64, 32)), ("dinov2", (24, 0, 72, 48)), ("open_clip", (0, 0, 64, 32))],
)  # what each sees of a picture twice as wide as high: the middle, or all of it squeezed
def test_each_checkpoint_has_its_own_view_of_a_wide_picture(zoo, kind, box):
    encoder = load_encoder("image", getattr(zoo, kind))
    height = 48 if kind == "dinov2" else 32
    wide = pictures(1, size=(height, 2 * height))[0].resize((8, 4)).resize((2 * height, height))
    seen = wide.crop(box).resize((height, height), Image.Resampling.BICUBIC)
    vectors = encode_images(encoder, [wide, seen, wide.crop((0, 0, height, height))])
    assert vectors[0] @ vectors[1] > 0.98 and vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


@pytest.mark.parametrize("kind", TEXT_KINDS)
def test_neither_order_nor_batches_nor_company_change_a_text(zoo, kind):
    alone = load_encoder("text", getattr(zoo, kind), batch_size=1).encode(TEXTS)
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    for size in (3, 64):
        together = load_encoder("text", getattr(zoo, kind), batch_size=size).encode([TEXTS[i] for i in order])
        np.testing.assert_allclose(together, alone[order], **CLOSE)
    np.testing.assert_array_equal(alone[0], alone[-1])


@pytest.mark.parametrize("kind", IMAGE_KINDS)
def test_neither_order_nor_batches_change_an_image(zoo, kind):
    images = pictures()
    alone = encode_images(load_encoder("image", getattr(zoo, kind), batch_size=1), images)
    together = encode_images(load_encoder("image", getattr(zoo, kind), batch_size=3), images[::-1])
    np.testing.assert_allclose(together[::-1], alone, **CLOSE)


@pytest.mark.parametrize("kind", JOINT_KINDS)
def test_one_object_holds_texts_and_images_in_one_space(zoo, kind):
    joint = load_encoder("joint", getattr(zoo, kind))
    text, image = load_encoder("text", getattr(zoo, kind)), load_encoder("image", getattr(zoo, kind))
    assert joint.space == text.space == image.space and text.dim == image.dim
    assert joint.fingerprint == text.fingerprint == image.fingerprint
    np.testing.assert_array_equal(joint.encode(["a dog"]), text.encode(["a dog"]))
    np.testing.assert_array_equal(encode_images(joint, pictures(2)), encode_images(image, pictures(2)))
    assert joint.space not in {load_encoder("image", zoo.dinov2).space, load_encoder("text", zoo.qwen3).space}


def test_what_reads_one_of_the_two_says_so(zoo):
    with pytest.raises(ValueError, match=r"encodes images alone; for texts take a model such as .*medsiglip"):
        load_encoder("text", zoo.dinov2)
    for spec in (zoo.qwen3, zoo.st_bert):
        with pytest.raises(ValueError, match=r"encodes texts alone; for images take a model such as .*dinov2"):
            load_encoder("image", spec)
    for spec in (zoo.dinov2, zoo.qwen3, zoo.st_bert):
        with pytest.raises(ValueError, match="does not encode texts and images by one model"):
            load_encoder("joint", spec)
    lite = load_encoder("joint", "lite")  # two models that were trained into one space
    assert lite.space == load_encoder("text", "lite").space and hasattr(lite, "encode") and hasattr(lite, "pixels")


def test_an_instruction_is_read_by_qwen3_alone(zoo):
    task = "Retrieve facts that mean the same"
    plain = load_encoder("text", zoo.qwen3)
    told = load_encoder("text", zoo.qwen3, instruction=task)
    assert told.fingerprint != plain.fingerprint and told.space == plain.space
    head = f"Instruct: {task}\nQuery:"
    expected = [unit_by_hand(text_by_hand("qwen3", zoo.folders["qwen3"], t, head=head)) for t in TEXTS[:4]]
    np.testing.assert_allclose(told.encode(TEXTS[:4]), expected, **CLOSE)
    assert (told.encode(TEXTS[:4]) * plain.encode(TEXTS[:4])).sum(1).max() < 0.999
    for kind in (*JOINT_KINDS, "st_bert"):
        with pytest.raises(ValueError, match="reads no instruction; only Qwen3-Embedding does"):
            load_encoder("text", getattr(zoo, kind), instruction=task)
    with pytest.raises(ValueError, match="lite reads no instruction"):
        load_encoder("text", "lite", instruction=task)


@pytest.mark.parametrize("instruction", [None, "Group the same statements"])
def test_qwen3_is_the_same_by_both_libraries(zoo, instruction):
    ours = load_encoder("text", zoo.qwen3, instruction=instruction).encode(TEXTS)
    theirs = load_encoder("text", zoo.st_qwen3, instruction=instruction)
    np.testing.assert_allclose(ours, theirs.encode(TEXTS), **CLOSE)
    assert theirs.model.tokenizer.padding_side == "left"


@pytest.mark.parametrize("kind", [*JOINT_KINDS, "dinov2", "qwen3", "st_bert"])
def test_half_precision_gives_unit_float32_near_the_full_ones(zoo, kind):
    spec = getattr(zoo, kind)
    for what, run in (("text", lambda e: e.encode(TEXTS)), ("image", lambda e: encode_images(e, pictures()))):
        if kind not in (TEXT_KINDS if what == "text" else IMAGE_KINDS):
            continue
        full, half = (load_encoder(what, spec, dtype=dtype, device="cpu") for dtype in ("float32", "bfloat16"))
        vectors = run(half)
        assert_unit(vectors, len(vectors), half.dim)
        assert 0.98 < (vectors * run(full)).sum(1).min() < 1 - 1e-6
        assert half.fingerprint != full.fingerprint


def test_a_device_map_reaches_transformers(zoo, monkeypatch):
    from transformers import AutoModel

    asked, load = [], AutoModel.from_pretrained

    def spy(*args, **options):
        asked.append(options.get("device_map"))
        return load(*args, **options)

    monkeypatch.setattr(AutoModel, "from_pretrained", spy)
    spread, plain = load_encoder("joint", zoo.clip, device_map="auto"), load_encoder("joint", zoo.clip, device="cpu")
    np.testing.assert_allclose(spread.encode(TEXTS), plain.encode(TEXTS), **CLOSE)
    assert asked == ["auto", None]
    for spec in (zoo.open_clip, zoo.st_bert, "lite"):
        with pytest.raises(ValueError, match="device_map='auto' works with 'transformers:MODEL' alone"):
            load_encoder("text", spec, device_map="auto")
