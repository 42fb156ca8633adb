"""A real server, `transformers serve` on loopback, answers as the same model does in this process."""

from __future__ import annotations

import pytest
from chat_fakes import in_order
from serving import served
from tiny_chat import picture

from symbal_hf.core.store import Store
from symbal_hf.models.chat.asking import Ledger, ask
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.protocol import Message, strict_digit
from symbal_hf.models.chat.server import ServerModel


@pytest.fixture(scope="module")
def llava(folders, tmp_path_factory):
    """A tiny LLaVA with random weights, and the address where it is served."""
    pytest.importorskip("uvicorn", reason="the server needs fastapi and uvicorn")
    with served(folders["llava"], tmp_path_factory.mktemp("llava") / "serve.log") as url:
        yield folders["llava"], url


QUESTIONS = [
    *((Message("Is there a dog? Reply 1 or 0.", images=(picture(number, form=form),)),)
      for number, form in enumerate(["PNG", "JPEG", "PNG"])),
    (Message("Say something."),),
]  # fmt: skip


def test_texts_are_those_of_the_model_in_process(llava):
    folder, url = llava
    here = in_order(LocalModel(str(folder)).generate(QUESTIONS, max_new_tokens=8), len(QUESTIONS))
    there = in_order(ServerModel(str(folder), base_url=url).generate(QUESTIONS, max_new_tokens=8), len(QUESTIONS))
    assert [answer.error for answer in there] == [None] * len(QUESTIONS)
    assert [answer.text.strip() for answer in there] == [answer.text.strip() for answer in here]
    assert len({answer.text for answer in there}) > 2  # other images, other answers


def test_a_server_without_log_probabilities_is_read_by_its_digits_and_what_is_none_stays_none(llava, tmp_path):
    folder, url = llava
    ledger = Ledger()
    answers = ask(
        ServerModel(str(folder), base_url=url), QUESTIONS, kind="yes", prompt_hash="p",
        store=Store(tmp_path / "s.sqlite"), ledger=ledger,
    )  # fmt: skip
    assert {answer.yes for answer in answers} <= {0.0, 1.0, None}
    assert [answer.yes for answer in answers] == [strict_digit(answer.text) for answer in answers]
    (calls,) = ledger.as_dict()["calls"]
    assert calls["asked"] == len(QUESTIONS) and calls["failed"] == 0
