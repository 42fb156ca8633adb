"""What is read from the wire is a valid answer or none, whatever comes; what is written is what was given."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from chat_fakes import picture
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from symbal_hf.models.chat.protocol import Message
from symbal_hf.models.chat.server import Run
from symbal_hf.models.chat.wire import Problem, Reply, bare, odds, read, turns

LIGHT = settings(max_examples=150)


@pytest.mark.parametrize(
    ("fmt", "kind"),
    [("PNG", "png"), ("JPEG", "jpeg"), ("WEBP", "webp"), ("GIF", "gif"), ("BMP", "png"), ("TIFF", "png")],
)
def test_images_go_first_and_as_what_they_are(fmt, kind):
    image, other = picture(fmt, 1), picture("PNG", 2)
    (turn,) = turns([Message("two?", (image, other))])
    assert [part["type"] for part in turn["content"]] == ["image_url", "image_url", "text"]
    first, second = (part["image_url"]["url"].partition(";base64,") for part in turn["content"][:2])
    assert (first[0], second[0]) == (f"data:image/{kind}", "data:image/png")
    sent = base64.b64decode(first[2])
    assert base64.b64decode(second[2]) == other and (sent == image or fmt in ("BMP", "TIFF"))
    with Image.open(io.BytesIO(sent)) as there, Image.open(io.BytesIO(image)) as here:
        assert there.format.lower() == kind and np.array_equal(there.convert("RGB"), here.convert("RGB"))


def test_a_turn_without_images_is_plain_text_and_roles_stay():
    said = [Message("be brief", role="system"), Message("hello"), Message("yes?", role="assistant")]
    assert turns(said) == [{"role": m.role, "content": m.text} for m in said]


@pytest.mark.parametrize("image", [b"", b"no image", b"RIFFxxxxWAVE", picture("BMP")[:60]])
def test_what_is_no_image_is_refused(image):
    with pytest.raises((OSError, SyntaxError, ValueError)):
        turns([Message("a", (image,))])


@pytest.mark.parametrize(
    ("choice", "text"),
    [({"message": {"content": "1"}}, "1"), ({"message": {"content": ""}}, ""),
     ({"message": {"content": None, "refusal": "I can't."}}, "I can't."),
     ({"message": {"content": [{"type": "text", "text": "a"}, {"type": "x"}, {"type": "text", "text": "b"}]}}, "ab"),
     ({"message": {"content": None}, "finish_reason": "length"}, None), ({"message": None}, None), ({}, None)],
)  # fmt: skip
def test_the_text_of_a_response_wherever_it_stands(choice, text):
    found = read({"choices": [choice]})
    assert (found.text if isinstance(found, Reply) else None) == text
    if choice.get("finish_reason"):
        assert "thinks first" in found.reason


def test_an_address_is_shown_without_what_may_be_secret():
    assert bare("https://me:pass@host:80/v1/?key=x#y") == "https://host:80/v1"
    assert bare("http://[::1]:8000/v1") == "http://[::1]:8000/v1"


def test_a_server_that_has_answered_may_fail_more_often_in_a_row_than_one_that_never_did():
    def lasts(answered: bool, cause: str) -> int:
        run = Run(None, "http://h/v1", concurrency=8)
        if answered:
            run.succeeded()
        for n in range(1, 100):
            run.gave_up(Problem(cause, "why"))
            if run.hopeless is not None:
                return n
        return 100

    for cause in ("connection", "refused", "busy"):
        assert (lasts(False, cause), lasts(True, cause)) == (3, 8)
    for cause in ("broken", "final"):
        assert lasts(False, cause) == lasts(True, cause) == 100


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.sampled_from(["1", "0", "stop", -0.5, -99.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "refusal", "logprobs", "token", "logprob", "top_logprobs"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON | st.text())
@LIGHT
def test_no_response_breaks_the_reader(body):
    assert isinstance(read(body), Reply | Problem)


@given(st.fixed_dictionaries({"content": st.lists(st.fixed_dictionaries(
    {"token": st.sampled_from(["1", "0", " "]) | JSON, "top_logprobs": st.lists(st.fixed_dictionaries(
        {"token": st.sampled_from(["1", " 1", "0", "x"]) | JSON, "logprob": st.floats() | JSON})) | JSON,
     "logprob": st.floats(max_value=0) | JSON}), max_size=2) | JSON}) | JSON)  # fmt: skip
@LIGHT
def test_log_probabilities_of_any_form_are_a_probability_or_nothing(logprobs):
    try:
        p = odds(Reply("1", logprobs))
    except ValueError:
        return
    assert p is None or 0 <= p <= 1


def one_token(**top: float) -> dict:
    entry = {"token": "1", "logprob": np.log(top["1"])} if "1" in top else {"token": "1", "logprob": -9.0}
    return {"content": [{**entry, "top_logprobs": [{"token": t, "logprob": float(np.log(p))} for t, p in top.items()]}]}


def test_digits_that_are_only_noise_under_another_answer_tell_nothing():
    assert odds(Reply("1", one_token(**{"1": 0.3, "0": 0.1}))) == pytest.approx(0.75)
    assert odds(Reply("1", one_token(**{"1": 0.3, "x": 0.6}))) == 1.0
    other = {"token": "Yes", "logprob": -0.001}
    for digits_there in ([], [{"token": "1", "logprob": -12.0}, {"token": "0", "logprob": -14.0}]):
        listed = {"content": [{**other, "top_logprobs": [other, *digits_there, {"token": "No", "logprob": -7.0}]}]}
        assert odds(Reply("Yes", listed)) is None
