"""A question that was answered is never asked again, whoever dies when; one that was not is always asked again."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from chat_fakes import ASKS_FOR_A_DIGIT, FakeServer, digit, essay, truth

from symbal_hf.core.errors import ChatFailed
from symbal_hf.core.store import Store
from symbal_hf.models.chat.asking import Count, Ledger, ask
from symbal_hf.models.chat.protocol import Answer, Message
from symbal_hf.models.chat.server import ServerModel

# What another process runs: the questions of `digits` to the server at argv[1], through the store at argv[2].
# A shell's background jobs ignore Ctrl-C, and so would what they start.
RUN = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from symbal_hf.models.chat.asking import ask
from symbal_hf.models.chat.protocol import Message
from symbal_hf.models.chat.server import ServerModel
from symbal_hf.core.store import Store
model = ServerModel("m", base_url=sys.argv[1], concurrency=8)
questions = [[Message(f"{{i}} {ASKS_FOR_A_DIGIT}")] for i in range(int(sys.argv[3]))]
ask(model, questions, kind="yes", prompt_hash="p", store=Store(sys.argv[2]))
"""


class Model:
    """Answers from its truth, and keeps what it was asked; `wrong` holds other answers by prompt."""

    def __init__(self, name="hf:tiny", revision="r1", **wrong):
        self.name, self.revision, self.wrong, self.asked = name, revision, wrong, []

    def _all(self, conversations, right):
        self.asked += [c[-1].text for c in conversations]
        for place in reversed(range(len(conversations))):  # any order is allowed
            message = conversations[place][-1]
            answer = self.wrong.get((message.text.split() or [""])[0], right(message.text, message.images))
            if isinstance(answer, BaseException):
                raise answer
            yield place, answer

    def generate(self, conversations, *, max_new_tokens, temperature=0.0, seed=0):
        return self._all(conversations, lambda *m: Answer(text=essay(*m)))

    def probability_of_yes(self, conversations):
        return self._all(conversations, lambda *m: Answer(text=digit(*m), yes=truth(*m)))


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store.sqlite")


def digits(n: int) -> list[list[Message]]:
    return [[Message(f"{i} {ASKS_FOR_A_DIGIT}")] for i in range(n)]


def scores(model, questions, store, **options) -> list[float | None]:
    return [a.yes for a in ask(model, questions, kind="yes", prompt_hash="p", store=store, **options)]


def right(questions) -> list[float]:
    return [truth(q[-1].text, q[-1].images) for q in questions]


def test_answers_are_in_order_and_equal_questions_are_asked_once(store):
    model, questions = Model(), digits(30)
    many = questions + questions[::-1] + [list(map(replace, q)) for q in questions]
    assert scores(model, many, store) == right(many)
    assert sorted(model.asked) == sorted(q[0].text for q in questions)
    assert scores(model, [], store) == []
    assert scores(model, many[::-1], store) == right(many[::-1])
    assert scores(Model(), many, Store(store.path)) == right(many)
    assert len(model.asked) == 30


def test_texts_survive_the_store_as_they_are(store):
    strange = {"one": Answer(text='"é\n\x00\u2028\ud800🐈\\'), "two": Answer(text="")}
    questions = [[Message("one \ud800")], [Message("two")], [Message("three")]]
    first = ask(Model(**strange), questions, kind="text", prompt_hash="p", store=store)
    again = ask(Model(one=ValueError(), two=ValueError()), questions, kind="text", prompt_hash="p", store=store)
    assert first == again == [*strange.values(), Answer(text=essay("three"))]


def test_whatever_an_answer_depends_on_tells_it_apart(store):
    model, message = Model(), Message("a", (b"x", b"y"))
    other_settings = Model()
    other_settings.settings = "bf16"
    base = {"model": model, "conversation": [message], "kind": "text", "prompt_hash": "p"}
    variants = [
        base,
        *({**base, "model": m} for m in (Model(name="hf:other"), Model(revision="r2"), other_settings)),
        *({**base, "kind": "yes"}, {**base, "prompt_hash": "q"}),
        *({**base, name: value} for name, value in (("max_new_tokens", 9), ("temperature", 1.0), ("seed", 1))),
        *({**base, "conversation": c} for c in (
            [Message("b", (b"x", b"y"))], [Message("a", (b"y", b"x"))], [Message("a", (b"xy",))], [Message("a")],
            [Message("a", (b"x", b"y"), "system")], [message, message], [Message("a", (b"x",)), Message("", (b"y",))],
        )),
    ]  # fmt: skip
    for variant in variants:
        asked = variant["model"].asked
        before = len(asked)
        options = {k: v for k, v in variant.items() if k not in ("model", "conversation")}
        for _ in range(2):
            ask(variant["model"], [variant["conversation"]], store=store, **options)
        assert len(asked) == before + 1, variant
    (kind,) = store.kinds()
    assert (kind.kind, kind.entries) == ("chat", len(variants))
    ask(model, [[message]], kind="yes", prompt_hash="p", store=store, max_new_tokens=1, seed=9)
    assert store.kinds()[0].entries == len(variants)  # options of texts mean nothing to yes


def test_failures_and_other_answers_are_counted_and_asked_again(store):
    wrong = {"1": Answer(error="the server answered 500."), "4": Answer(text="Yes, 1."), "7": Answer(error="x.")}
    questions, ledger = digits(10), Ledger()
    got = ask(Model(**wrong), questions + questions, kind="yes", prompt_hash="p", store=store, ledger=ledger)
    for place, answer in enumerate(got[:10]):
        assert answer == wrong.get(
            str(place), Answer(text=digit(questions[place][0].text), yes=right(questions)[place])
        )
    assert got[10:] == got[:10]
    assert ledger.counts == {("hf:tiny", "yes"): Count(asked=10, cached=0, failed=2, unparsed=1)}
    mended = Model()
    assert scores(mended, questions, store, ledger=ledger) == right(questions)
    assert sorted(mended.asked) == [f"{i} {ASKS_FOR_A_DIGIT}" for i in (1, 4, 7)]
    assert ledger.counts == {("hf:tiny", "yes"): Count(asked=13, cached=7, failed=2, unparsed=1)}


def test_the_ledger_tells_who_was_asked_and_nothing_else(store):
    ledger = Ledger()
    with FakeServer() as server:
        secret = ServerModel("m", base_url=server.url.replace("//", "//me:hush@") + "?k=hush", api_key="hush")
        for kind in ("yes", "text"):
            ask(secret, [[Message("hush", (b"\x89PNG\r\n\x1a\nhush",))]], kind=kind, prompt_hash="p1", store=store,
                ledger=ledger)  # fmt: skip
    ask(Model(), digits(3), kind="yes", prompt_hash="p2", store=store, ledger=ledger)
    ask(Model(), digits(4), kind="yes", prompt_hash="p1", store=store, ledger=ledger)
    name, none = f"openai:{server.url}#m", {"cached": 0, "failed": 0, "unparsed": 0}
    assert ledger.as_dict() == {"calls": [
        {"model": name, "revision": "", "kind": "yes", "prompts": ["p1"], "asked": 1, **none, "unparsed": 1},
        {"model": name, "revision": "", "kind": "text", "prompts": ["p1"], "asked": 1, **none},
        {"model": "hf:tiny", "revision": "r1", "kind": "yes", "prompts": ["p1", "p2"], "asked": 7, **none},
    ]}  # fmt: skip
    assert "hush" not in json.dumps(ledger.as_dict())
    assert b"hush" not in store.path.read_bytes()


def test_where_nothing_is_answered_it_says_who_and_why(store):
    silent = Model(**{str(i): Answer(error="the server answered 500.") for i in range(10)})
    with pytest.raises(ChatFailed, match=r"^hf:tiny answered none of 10 questions: the server answered 500\.$"):
        scores(silent, digits(10), store)
    assert scores(silent, digits(11), store) == [None] * 10 + right(digits(11))[10:]
    assert (
        scores(silent, digits(11), store)[10] == right(digits(11))[10]
    )  # one is known: the run goes on without the rest


def test_where_there_is_no_sense_in_asking_on_it_stops_also_with_answers_from_before(store):
    scores(Model(), digits(5), store)
    gone = Model(**{str(i): Answer(error="no server.", hopeless=True) for i in range(5, 9)})
    with pytest.raises(ChatFailed, match="hf:tiny answered 5 of 9 questions; once mended, only the others"):
        scores(gone, digits(9), store)


def test_where_no_server_is_the_message_names_its_address(store):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{s.getsockname()[1]}/v1"
    nobody = ServerModel("m", base_url=url.replace("//", "//me:hush@"), retries=1)
    with pytest.raises(ChatFailed) as error:
        scores(nobody, digits(2000), store)
    assert str(error.value) == (
        f"openai:{url}#m answered none of 2000 questions: no server answers at {url}; "
        "start one (`vllm serve MODEL`) or mend the base_url."
    )


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), RuntimeError("bug")])
def test_what_arrived_before_an_exception_is_kept(store, trouble):
    ledger = Ledger()
    with pytest.raises(type(trouble)):
        scores(Model(**{"7": trouble}), digits(20), store, ledger=ledger)  # it answers from the last to the first
    assert ledger.counts["hf:tiny", "yes"].asked == 12
    again = Model()
    assert scores(again, digits(20), store) == right(digits(20))
    assert len(again.asked) == 8


def test_a_model_that_forgets_questions_fails_on_them(store):
    class Forgetful(Model):
        def probability_of_yes(self, conversations):
            return (pair for pair in super().probability_of_yes(conversations) if pair[0] != 2)

    ledger = Ledger()
    got = ask(Forgetful(), digits(4), kind="yes", prompt_hash="p", store=store, ledger=ledger)
    assert got[2] == Answer(error="no answer came.") and [a.yes for a in got[3:]] == right(digits(4))[3:]
    assert ledger.counts["hf:tiny", "yes"] == Count(asked=4, failed=1)


@pytest.mark.parametrize(
    "value", [b"", b"\xff", b"[]", b"{}", b'{"text": null, "yes": 1.0}', b'{"text": "1", "yes": null}']
)
def test_what_is_no_stored_answer_is_asked_again(store, value):
    scores(Model(), digits(2), store)
    with store._db as db:
        db.execute("UPDATE results SET value = ?", (value,))
    model = Model()
    assert scores(model, digits(2), store) == right(digits(2))
    assert len(model.asked) == 2
    assert scores(Model(**{"0": ValueError(), "1": ValueError()}), digits(2), store) == right(digits(2))


def test_progress_counts_what_is_asked(store):
    seen = []

    def progress(items, label, total):
        seen.append(total)
        for item in items:
            seen.append(label)
            yield item

    scores(Model(), digits(3), store)
    assert scores(Model(), digits(8) + digits(8), store, progress=progress) == right(digits(8)) * 2
    assert seen == [5] + ["answers"] * 5
    scores(Model(), digits(8), store, progress=progress)
    assert len(seen) == 6


FAULTS = ["500", "reset", "truncated", "no choices", "null content", "400", "Yes, 1.", "10", "refusal"]


def test_after_a_run_with_every_fault_only_what_is_missing_is_asked(store):
    questions = digits(60)

    def fault(question, times):
        number = int(question.prompt.split()[0])
        return FAULTS[number // 6 % len(FAULTS)] if number % 6 == 0 else None

    with FakeServer(fault=fault) as server:
        model = ServerModel("m", base_url=server.url, retries=1)
        got = scores(model, questions, store)
        expected = right(questions)
        missing = [i for i, p in enumerate(got) if p is None]
        assert missing == list(range(0, 60, 6))
        assert [p for p in got if p is not None] == pytest.approx([p for i, p in enumerate(expected) if i % 6])
        server.fault, server.questions = (lambda question, times: None), []
        assert scores(model, questions, store) == pytest.approx(expected)
        assert sorted(int(q.prompt.split()[0]) for q in server.questions) == missing
        server.questions = []
        assert scores(model, questions, store) == pytest.approx(expected)
        assert server.questions == []


def run(server: FakeServer, store: Store, n: int) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", RUN, server.url, str(store.path), str(n)], stderr=subprocess.PIPE)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on_where_it_was(store, how):
    n = 400
    with FakeServer(latency=0.01) as server:
        process = run(server, store, n)
        while server.answered < 100:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.005)
        process.send_signal(how)
        process.communicate(timeout=30)
        assert process.returncode in (-how, 130)
        assert server.answered < n
        (kind,) = store.kinds()
        assert server.answered - 8 - 32 <= kind.entries <= server.answered
        time.sleep(0.05)  # what the dead process sent last has arrived by now
        server.questions = []
        model = ServerModel("m", base_url=server.url, concurrency=8)
        resumed = scores(model, digits(n), store)
        assert len(server.questions) == n - kind.entries
        assert len({q.prompt for q in server.questions}) == n - kind.entries
        undisturbed = scores(model, digits(n), Store(store.path.with_name("other.sqlite")))
        assert resumed == undisturbed == pytest.approx(right(digits(n)))
        server.questions = []
        assert scores(model, digits(n), store) == resumed
        assert server.questions == []


def test_a_server_that_dies_leaves_a_run_that_goes_on_with_the_next_server(store):
    n = 300
    with FakeServer(latency=0.01) as server:

        def fault(question, times):
            if server.answered >= 60:
                server.stop.set()

        server.fault = fault
        model = ServerModel("m", base_url=server.url, concurrency=4, retries=2)
        with pytest.raises(ChatFailed, match="no server answers at") as error:
            scores(model, digits(n), store)
    assert "only the others are asked" in str(error.value)
    (kind,) = store.kinds()
    assert 60 <= kind.entries < n
    with FakeServer(port=server.port) as server:
        assert scores(model, digits(n), store) == pytest.approx(right(digits(n)))
        assert len(server.questions) == n - kind.entries


def test_two_processes_share_one_store(store):
    n = 150
    with FakeServer(latency=0.01) as server:
        both = [run(server, store, n) for _ in range(2)]
        for process in both:
            assert process.communicate(timeout=60)[1] == b""
            assert process.returncode == 0
        assert n <= len(server.questions) <= 2 * n
        server.questions = []
        model = ServerModel("m", base_url=server.url)
        assert scores(model, digits(n), store) == pytest.approx(right(digits(n)))
        assert server.questions == []
