"""Whatever a server does, no answer is wrong: it is right, or missing with a reason that gives nothing away."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest
from chat_fakes import ASKS_FOR_A_DIGIT, FakeServer, at_first, digit, essay, in_order, picture, truth

from symbal_hf.core.errors import MissingModel
from symbal_hf.models.chat import server as chat_server
from symbal_hf.models.chat.protocol import Answer, Message
from symbal_hf.models.chat.server import ServerModel

KEY = "sk-secret-Key-0123456789"
PASSING = ["429", "500", "503", "529", "408", "reset", "cut", "truncated", "html", "no choices"]
LOGPROBS = ["no logprobs", "two logprobs", "empty logprobs", "malformed logprobs", "impossible logprobs",
            "list of logprobs", "logprobs of another token"]  # fmt: skip
OTHERWISE = ["Yes, 1.", "10", "1.5", "refusal", "nothing"]
MISSING = [*PASSING, "null content", "400", "403", "413", "echo"]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    """No keys but those of the test."""
    for name in ("SYMBAL_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def model(server: FakeServer, **options) -> ServerModel:
    return ServerModel("fake/model", **{"base_url": server.url, "retries": 3, **options})


def digits(n: int, images: tuple[bytes, ...] = ()) -> list[list[Message]]:
    """`n` different questions for 1 or 0, of different lengths."""
    return [[Message(f"Is there a {'x' * (i % 3)} {i:04d}? {ASKS_FOR_A_DIGIT}", images)] for i in range(n)]


def spread(faults: list[str]):
    """The faults by turns, each on every third of `digits(3 * len(faults))`, whenever that is asked."""
    numbers = dict(zip(range(0, 3 * len(faults), 3), faults, strict=True))
    return lambda question, times: numbers.get(int(question.prompt.split("?")[0].split()[-1]))


def yes(server: FakeServer, questions, **options) -> list[Answer]:
    return in_order(model(server, **options).probability_of_yes(questions), len(questions))


def believed(question) -> float:
    return truth(question[-1].text, question[-1].images)


def test_probabilities_are_the_servers_over_all_spellings_of_the_digits():
    with FakeServer() as server:
        questions = digits(60)
        answers = yes(server, questions)
    assert [a.yes for a in answers] == pytest.approx([believed(q) for q in questions], abs=1e-9)
    assert [a.text for a in answers] == [digit(q[0].text) for q in questions]
    assert len(server.questions) == 60
    for asked in server.questions:
        sent = {k: asked.body[k] for k in ("model", "max_tokens", "temperature", "seed", "logprobs", "top_logprobs")}
        assert sent == {
            "model": "fake/model", "max_tokens": 1, "temperature": 0.0, "seed": 0, "logprobs": True, "top_logprobs": 20
        }  # fmt: skip


def test_texts_come_as_written_with_the_options_sent():
    questions = [[Message("You describe images.", role="system"), Message(f"Which things {i}?")] for i in range(20)]
    with FakeServer() as server:
        got = model(server).generate(questions, max_new_tokens=77, temperature=0.7, seed=5)
        answers = in_order(got, 20)
    assert [a.text for a in answers] == [essay(q[-1].text) for q in questions]
    assert all(a.yes is None and a.error is None for a in answers)
    for asked in server.questions:
        assert (asked.body["max_tokens"], asked.body["temperature"], asked.body["seed"]) == (77, 0.7, 5)
        assert asked.body["messages"][0] == {"role": "system", "content": "You describe images."}
        assert "logprobs" not in asked.body


def test_a_fault_that_passes_costs_a_request_and_no_answer():
    questions = digits(3 * len(PASSING))

    def fault(question, times):
        return PASSING[int(question.prompt.split("?")[0].split()[-1]) % len(PASSING)] if times in (0, 1) else None

    with FakeServer(fault=fault) as server:
        answers = yes(server, questions)
        assert len(server.questions) == 3 * len(questions)
        texts = in_order(model(server).generate(digits(60)[30:], max_new_tokens=9), 30)
    assert [a.yes for a in answers] == pytest.approx([believed(q) for q in questions])
    assert [a.text for a in texts] == [digit(q[0].text) for q in digits(60)[30:]]


def test_an_answer_that_takes_too_long_is_asked_for_again():
    with FakeServer(fault=at_first("slow")) as server:
        answers = yes(server, digits(4), timeout=0.4)
        server.fault = lambda question, times: "slow"
        (late,) = yes(server, [[Message("late " + ASKS_FOR_A_DIGIT)]], timeout=0.2, retries=1)
    assert [a.yes for a in answers] == pytest.approx([believed(q) for q in digits(4)])
    assert late == Answer(error="the server gave no answer within 0.2 seconds.")


def test_an_answer_that_comes_byte_by_byte_for_ever_is_given_up(monkeypatch):
    monkeypatch.setattr(chat_server, "CONNECT", 0.2)
    with FakeServer(fault=lambda question, times: "drip") as server:
        (answer,) = yes(server, digits(1), timeout=0.3, retries=0)
    assert answer == Answer(error="the server gave no answer within 0.3 seconds.")


@pytest.mark.parametrize("logprobs", ["given", "dropped"])
def test_a_fault_that_stays_leaves_no_score_and_spoils_no_other(logprobs):
    faults = [*MISSING, *OTHERWISE]
    questions = digits(3 * len(faults))
    with FakeServer(fault=spread(faults), logprobs=logprobs) as server:
        answers = yes(server, questions, retries=1)
    for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        fault = None if i % 3 else faults[i // 3]
        right = believed(question) if logprobs == "given" else float(digit(question[0].text))
        if fault is None:
            assert answer.yes == pytest.approx(right) and answer.error is None
        elif fault in OTHERWISE:
            assert answer.yes is None and answer.error is None and answer.text is not None, fault
        else:
            assert answer.yes is None and answer.text is None and not answer.hopeless, fault
            assert answer.error.endswith(".") and ". " not in answer.error


def test_log_probabilities_that_cannot_be_right_are_not_used():
    questions = digits(3 * len(LOGPROBS))
    with FakeServer(fault=spread(LOGPROBS)) as server:
        one = model(server)
        list(one.probability_of_yes(digits(2)[1:]))
        answers = in_order(one.probability_of_yes(questions), len(questions))
        assert len(server.questions) == 1 + len(questions) + len(LOGPROBS)
    for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        right = believed(question)
        assert answer.yes == (pytest.approx(right) if i % 3 else float(right > 0.5))


@pytest.mark.parametrize(("logprobs", "wasted"), [("five", 1), ("rejected", 2), ("dropped", 3)])
def test_a_server_without_log_probabilities_is_asked_for_digits_and_remembered(logprobs, wasted):
    questions = digits(40)
    with FakeServer(logprobs=logprobs) as server:
        one = model(server, concurrency=1)
        answers = in_order(one.probability_of_yes(questions[:20]), 20)
        answers += in_order(one.probability_of_yes(questions[20:]), 20)
    right = [believed(q) if logprobs == "five" else float(believed(q) > 0.5) for q in questions]
    assert [a.yes for a in answers] == pytest.approx(right)
    assert len(server.questions) == 40 + wasted
    if logprobs != "five":
        assert all("logprobs" not in q.body and q.body["max_tokens"] > 1 for q in server.questions[-30:])


def test_the_newer_name_of_the_limit_is_learnt_from_the_rejection():
    with FakeServer(limit="max_completion_tokens") as server:
        one = model(server, concurrency=1)
        texts = in_order(one.generate(digits(5), max_new_tokens=8), 5)
        scores = in_order(one.probability_of_yes(digits(5)), 5)
    assert [a.text for a in texts] == [digit(q[0].text) for q in digits(5)]
    assert [a.yes for a in scores] == pytest.approx([believed(q) for q in digits(5)])
    assert len(server.questions) == 11


def test_what_is_no_image_is_never_sent():
    image = picture("BMP")
    with FakeServer() as server:
        bad, good = yes(server, [[Message("a", (b"no image",))], [Message("b " + ASKS_FOR_A_DIGIT, (image,))]])
    assert bad == Answer(error="an image cannot be read.")
    (asked,) = server.questions
    assert good.yes == pytest.approx(truth(asked.prompt, asked.images)) and asked.images[0].startswith(b"\x89PNG")


def test_questions_about_one_image_are_sent_together_and_in_order():
    pictures = [picture("PNG", seed) for seed in range(5)]
    questions = [[Message(f"{i:02d} {ASKS_FOR_A_DIGIT}", (bytes(bytearray(pictures[i % 5])),))] for i in range(25)]
    with FakeServer() as server:
        answers = yes(server, questions, concurrency=1)
    asked = [(pictures.index(q.images[0]), int(q.prompt[:2])) for q in server.questions]
    assert asked == [(image, i) for image in range(5) for i in range(image, 25, 5)]
    assert [a.yes for a in answers] == pytest.approx([believed(q) for q in questions])


def test_many_requests_are_in_flight_but_never_more_than_allowed():
    with FakeServer(latency=0.3) as server:
        yes(server, digits(64), concurrency=32)
        assert 16 <= server.peak <= 32
        server.peak = 0
        yes(server, digits(6), concurrency=3)
        assert server.peak == 3


@pytest.mark.parametrize("retry_after", ["0.05", None])
def test_an_overloaded_server_answers_everything_in_the_end(retry_after):
    questions = digits(200)
    with FakeServer(latency=0.01, capacity=6) as server:
        server.retry_after = retry_after
        answers = yes(server, questions, concurrency=16, retries=30)
    assert [a.yes for a in answers] == pytest.approx([believed(q) for q in questions])
    assert server.peak <= 16


@pytest.mark.parametrize("header", ["0.4", "date"])
def test_a_server_that_names_a_time_is_left_alone_until_then(header):
    with FakeServer(fault=at_first("429")) as server:
        until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
        server.retry_after = header if header == "0.4" else format_datetime(until)
        yes(server, digits(1))
    assert len(server.times) == 2
    assert np.diff(server.times)[0] >= 0.39 if header == "0.4" else datetime.now(UTC) >= until


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_where_no_server_is_the_rest_is_not_even_tried():
    url = f"http://127.0.0.1:{free_port()}/v1"
    nobody = ServerModel("m", base_url=url, retries=1, concurrency=4)
    answers = in_order(nobody.probability_of_yes(digits(3000)), 3000)
    assert all(a.text is None and a.yes is None for a in answers)
    assert sum(a.hopeless for a in answers) >= 2990
    assert answers[-1].error == (
        f"no server answers at {url}; start one (`vllm serve MODEL`) or mend the base_url."
    )  # fmt: skip


def test_a_host_that_swallows_everything_is_no_server_either():
    with socket.socket() as deaf, contextlib.ExitStack() as queue:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(8):  # its queue is full: nobody is let in
            one = queue.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(deaf.getsockname())
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"
        model = ServerModel("m", base_url=url, timeout=0.2, retries=1, concurrency=4)
        answers = in_order(model.probability_of_yes(digits(3000)), 3000)
    assert answers[-1].hopeless and "no server answers" in answers[-1].error


@pytest.mark.parametrize("status", ["401", "404"])
def test_a_server_that_takes_nobody_is_not_asked_for_long(status):
    with FakeServer(fault=lambda question, times: status) as server:
        answers = yes(server, digits(500), concurrency=4)
    assert len(server.questions) <= 10
    assert answers[-1].hopeless and f"answered {status}" in answers[-1].error


def test_a_server_that_fails_on_everything_is_not_asked_everything_again_and_again():
    with FakeServer(fault=lambda question, times: "500") as server:
        answers = yes(server, digits(60), concurrency=4, retries=3)
        assert len(server.questions) <= 60 + 3 * 8
        server.fault = lambda question, times: None
        assert all(a.error == "the server answered 500 (Internal Server Error)." for a in answers)
        assert all(a.yes is not None for a in yes(server, digits(60)))


def test_one_bad_image_at_the_front_does_not_end_a_run():
    bad, good = picture("PNG", 1), picture("PNG", 2)
    questions = [*digits(40, (bad,)), *digits(40, (good,))]
    with FakeServer(fault=lambda question, times: "500" if question.images == (bad,) else None) as server:
        answers = yes(server, questions, concurrency=4, retries=1)
    assert all(a.error and not a.hopeless for a in answers[:40])
    assert [a.yes for a in answers[40:]] == pytest.approx([believed(q) for q in questions[40:]])


def test_failures_between_answers_are_no_sign_of_a_server_that_is_gone():
    questions = digits(12)
    with FakeServer(fault=lambda q, times: "reset" if int(q.prompt.split("?")[0][-1]) % 2 else None) as server:
        answers = yes(server, questions, concurrency=1, retries=1)
    assert [a.yes for a in answers[::2]] == pytest.approx([believed(q) for q in questions[::2]])
    assert all(a.error and not a.hopeless for a in answers[1::2])
    assert len(server.questions) == 6 + 2 * 6


def test_closing_the_iterator_ends_what_is_under_way():
    with FakeServer(latency=0.02) as server:
        before = threading.active_count()
        answers = model(server, concurrency=8).probability_of_yes(digits(2000))
        next(answers)
        server.latency = 30
        time.sleep(0.1)
        answers.close()
        assert threading.active_count() == before
        assert len(server.questions) < 100
        with pytest.raises(StopIteration):
            next(answers)


def test_answers_arrive_before_the_last_one_is_ready():
    with FakeServer(fault=lambda question, times: "slow" if "0007" in question.prompt else None) as server:
        server.slow = 20
        answers = model(server).probability_of_yes(digits(10))
        assert sorted(next(answers)[0] for _ in range(9)) == [0, 1, 2, 3, 4, 5, 6, 8, 9]
        answers.close()


def test_nothing_to_ask_asks_nothing():
    assert list(ServerModel("m", base_url="http://127.0.0.1:9/v1").probability_of_yes([])) == []


@pytest.mark.parametrize("fault", [None, "echo", "401", "500", "html", "reset", "refusal"])
def test_no_key_question_image_or_password_leaves_the_program(fault, caplog):
    image = picture("PNG", 9)
    prompt = "the secret question " + ASKS_FOR_A_DIGIT
    hidden = [KEY, "secret", "hush", "letmein", "data:image", "iVBOR", "Y2hhbXA6"]
    with FakeServer(fault=lambda question, times: fault) as server, caplog.at_level(logging.DEBUG):
        url = server.url.replace("http://", "http://champ:letmein@") + "?token=hush"
        one = model(server, base_url=url, api_key=KEY, retries=1)
        answers = [*one.probability_of_yes([[Message(prompt, (image,))]])]
        answers += one.generate([[Message(prompt, (image,))]], max_new_tokens=5)
        assert one.name == f"openai:{server.url}#fake/model"
        assert all("token=hush" in q.path and q.authorization.startswith("Basic ") for q in server.questions)
    said = [caplog.text, repr(one), str(one), one.name, *(a.error or "" for _, a in answers)]
    assert not [secret for secret in hidden for text in said if secret in text]
    assert all(a.error or fault in (None, "refusal") for _, a in answers)
    assert logging.getLogger("openai").level == logging.getLogger("httpx").level == logging.NOTSET


def test_what_an_older_client_library_logs_is_kept_quiet(caplog):
    ServerModel("m", base_url="http://localhost:1/v1")._client()
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("openai._base_client").debug("Request options: %s", {"json_data": {"messages": "hush"}})
        logging.getLogger("httpx").info("HTTP Request: %s %s", "POST", "http://a:hush@host/v1?key=hush")
        logging.getLogger("openai._base_client").debug("other")
    assert "hush" not in caplog.text and "http://host/v1" in caplog.text and "other" in caplog.text


def test_where_the_key_comes_from(monkeypatch):
    def key(**options):
        list(model(server, **options).probability_of_yes(digits(1)))
        return server.questions[-1].authorization

    with FakeServer() as server:
        assert key() == "Bearer none"
        monkeypatch.setenv("OPENAI_API_KEY", "theirs")
        assert key() == "Bearer theirs"
        monkeypatch.setenv("SYMBAL_API_KEY", "ours")
        assert key() == "Bearer ours"
        assert key(api_key=KEY) == f"Bearer {KEY}"
        monkeypatch.setenv("SYMBAL_API_KEY", "")
        assert key() == "Bearer theirs"


def test_more_fields_are_sent_and_tell_answers_apart():
    with FakeServer() as server:
        plain, more = model(server), model(server, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        list(more.generate(digits(1), max_new_tokens=3))
        assert server.questions[0].body["chat_template_kwargs"] == {"enable_thinking": False}
    assert plain.settings == "" != more.settings and "thinking" not in more.settings
    assert more.settings != model(server, extra_body={"a": 1}).settings


@pytest.mark.parametrize(
    ("options", "named"),
    [({"base_url": "localhost:8000"}, "localhost:8000"), ({"base_url": "file:///x"}, "file:///x"),
     ({"base_url": "http://h:port/v1"}, "http://h:port/v1"), ({"base_url": "http://me:pa#ss@h/v1"}, "base_url is no"),
     ({"concurrency": 0}, "concurrency=0"), ({"retries": -1}, "retries=-1"), ({"timeout": 0}, "timeout=0")],
)  # fmt: skip
def test_arguments_out_of_range_are_named(options, named):
    with pytest.raises(ValueError, match=named):
        ServerModel("m", **{"base_url": "http://h/v1", **options})


def test_without_the_client_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(chat_server, "find_spec", lambda name: None)
    with pytest.raises(MissingModel, match=r"symbal-hf\[serve\]"):
        ServerModel("m", base_url="http://h/v1")
