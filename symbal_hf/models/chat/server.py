"""A model behind an OpenAI-compatible server: as many requests in flight as are allowed, and no fault is an answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import queue
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from symbal_hf.core.errors import MissingModel
from symbal_hf.models.chat.protocol import Answer, Messages, images_of, strict_digit
from symbal_hf.models.chat.wire import GARBLED, Cause, Dialect, Problem, Reply, bare, odds, read, refusal, turns

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CONNECT = 10.0  # seconds until a host that says nothing is one that is not there
TRIES_OF_LOGPROBS = 3  # answers without usable log-probabilities, and none with, until they are no longer asked for


def check_concurrency(concurrency: int) -> int:
    """The number of requests that may be in flight at once; raises ValueError for fewer than one."""
    if concurrency < 1:
        raise ValueError(f"concurrency={concurrency} leaves no question in flight; give at least 1.")
    return concurrency


@dataclass
class Run:
    """The requests of one run: after some that failed in a row, there is no sense in sending further ones."""

    client: AsyncOpenAI
    url: str
    concurrency: int
    hopeless: Problem | None = None  # why no further question need be sent
    answered: bool = False  # whether the server ever answered
    cause: Cause | None = None  # why the last questions stayed without an answer
    streak: int = 0  # how many did so one after the other, for that cause

    @property
    def fails(self) -> bool:
        """Whether so many failed in a row that it is no accident; a server that has answered gets more of them."""
        return self.streak >= (max(3, self.concurrency) if self.answered else 3)

    def retries(self, retries: int) -> int:
        """How often to try again: not at all while nothing but failures come back."""
        return 0 if self.fails and self.cause != "final" else retries

    def succeeded(self) -> None:
        self.answered, self.cause, self.streak = True, None, 0

    def gave_up(self, problem: Problem) -> None:
        self.streak = self.streak + 1 if problem.cause == self.cause else 1
        self.cause = problem.cause
        if self.fails and problem.cause in ("connection", "refused", "busy") and self.hopeless is None:
            reason = problem.reason
            if problem.cause == "connection":
                reason = f"no server answers at {self.url}; start one (`vllm serve MODEL`) or mend the base_url"
            self.hopeless = Problem("hopeless", reason)


class ServerModel:
    """A `ChatModel` on any server that speaks OpenAI's chat completions: vLLM, ollama, TGI, transformers serve, clouds.

    Args:
        model: as the server calls it.
        base_url: of the API, mostly ending in /v1. A user and password in it are sent as such, its query too; neither
            is shown anywhere.
        api_key: else $SYMBAL_API_KEY, else $OPENAI_API_KEY, else "none", which local servers take.
        timeout: seconds until a request has failed.
        retries: further tries of a request that failed for a reason that may pass; the client waits before each for as
            long as the server says, else longer and longer.
        extra_body: more fields for each request, such as {"chat_template_kwargs": {"enable_thinking": False}}.

    Raises:
        ValueError: an argument out of its range.
        MissingModel: the `openai` package is not installed.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        concurrency: int = 32,
        timeout: float = 120,
        retries: int = 6,
        revision: str = "",
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        parts = urlsplit(base_url)
        self.url = bare(base_url)
        try:
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # no number where the port stands
            usable = False
        if not usable:
            shown = "" if "@" in base_url else f" {self.url!r}"
            raise ValueError(
                f"base_url{shown} is no address; give one such as http://localhost:8000/v1, with a password's special "
                "characters as %XX."
            )
        if retries < 0 or timeout <= 0:
            raise ValueError(f"retries={retries}, timeout={timeout}; at least 0 retries and more than 0 s are needed.")
        if find_spec("openai") is None:
            raise MissingModel("the client of chat servers is not installed; run `pip install 'symbal-hf[serve]'`.")
        self.name, self.revision = f"openai:{self.url}#{model}", revision
        self.concurrency, self.timeout, self.retries = check_concurrency(concurrency), timeout, retries
        self._model, self._extra = model, dict(extra_body or {})
        named = (os.environ.get(name) for name in ("SYMBAL_API_KEY", "OPENAI_API_KEY"))
        self._key = (api_key or next(filter(None, named), "")).strip() or "none"
        self._query = dict(parse_qsl(parts.query, keep_blank_values=True))
        login = b64encode(f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}"} if parts.username else None
        self._dialect = Dialect()
        self._usable = self._unusable = 0  # answers with log-probabilities and without, where they were asked for

    def __repr__(self) -> str:
        return f"ServerModel({self.name!r})"

    @property
    def settings(self) -> str:
        """Changes with `extra_body`, without showing it."""
        text = json.dumps(self._extra, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16] if self._extra else ""

    def generate(
        self, conversations: Sequence[Messages], *, max_new_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> Iterator[tuple[int, Answer]]:
        def options(dialect: Dialect) -> dict[str, Any]:
            return {dialect.limit: max_new_tokens, "temperature": temperature, "seed": seed}

        async def write(run: Run, conversation: Messages) -> Answer:
            reply, _ = await self._exchange(run, conversation, options, replace(self._dialect, top=0))
            return _failed(reply) if isinstance(reply, Problem) else Answer(text=reply.text)

        return self._answers(conversations, write)

    def probability_of_yes(self, conversations: Sequence[Messages]) -> Iterator[tuple[int, Answer]]:
        """For each conversation P("1") / (P("1") + P("0")), or 1 or 0 by the digit where a server tells no more."""
        return self._answers(conversations, self._yes)

    async def _yes(self, run: Run, conversation: Messages) -> Answer:
        def options(dialect: Dialect) -> dict[str, Any]:
            more = {"logprobs": True, "top_logprobs": dialect.top} if dialect.top else {}
            # Without alternatives a few tokens, since the first one of "10" may be "1".
            return {dialect.limit: 1 if dialect.top else 4, "temperature": 0.0, "seed": 0, **more}

        reply, dialect = await self._exchange(run, conversation, options, self._dialect)
        if isinstance(reply, Reply) and dialect.top:
            try:
                yes = odds(reply)
                self._usable += 1
                return Answer(text=reply.text, yes=yes)
            except ValueError:
                self._unusable += 1
            reply, dialect = await self._exchange(run, conversation, options, replace(dialect, top=0))
            if self._unusable >= TRIES_OF_LOGPROBS and not self._usable:
                self._dialect = replace(self._dialect, top=0)
        return _failed(reply) if isinstance(reply, Problem) else Answer(text=reply.text, yes=strict_digit(reply.text))

    async def _exchange(
        self, run: Run, conversation: Messages, options: Callable[[Dialect], dict[str, Any]], dialect: Dialect
    ) -> tuple[Reply | Problem, Dialect]:
        """One reply, or why there is none after all retries; and how the server was asked in the end."""
        try:
            messages: Any = turns(conversation)
        except (OSError, SyntaxError, ValueError):
            return Problem("final", "an image cannot be read"), dialect
        first = dialect
        while run.hopeless is None:
            result = await self._send(run, {"messages": messages, **options(dialect)})
            if isinstance(result, Problem):
                if result.rejected and (other := dialect.without(result.rejected)):
                    dialect = other
                    continue
                run.gave_up(result)
                return result, dialect
            run.succeeded()
            learnt = {name: value for name, value in asdict(dialect).items() if value != getattr(first, name)}
            self._dialect = replace(self._dialect, **learnt)
            return result, dialect
        return run.hopeless, dialect

    async def _send(self, run: Run, body: dict[str, Any]) -> Reply | Problem:
        """One request, again and again by the client itself where that may help."""
        import openai

        try:
            # The call for any endpoint: `chat.completions.create` would check each part of the body for 0.5 ms more.
            response = await run.client.post(
                "/chat/completions",
                body={"model": self._model, **body, **self._extra},
                options={"max_retries": run.retries(self.retries)},
                cast_to=object,
            )
            return read(response)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return GARBLED
        except openai.APIConnectionError as error:
            reason = type(error.__cause__).__name__
            if reason == "DecodingError":
                return GARBLED
            if isinstance(error, openai.APITimeoutError) and reason != "ConnectTimeout":
                return Problem("broken", f"the server gave no answer within {self.timeout:g} seconds")
            return Problem("connection", f"the connection to {self.url} failed")
        except openai.APIStatusError as error:
            return refusal(error.status_code, error.body)

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, Timeout

        for name in ("openai._base_client", "httpx", "httpx2"):
            logging.getLogger(name).addFilter(DISCREET)
        return AsyncOpenAI(
            base_url=self.url,
            api_key=self._key,
            default_query=self._query or None,
            default_headers=self._headers,
            timeout=Timeout(self.timeout, connect=min(CONNECT, self.timeout)),
            http_client=_strict_client(self.timeout + CONNECT),
        )

    def _answers(
        self, conversations: Sequence[Messages], answer_one: Callable[[Run, Messages], Awaitable[Answer]]
    ) -> Iterator[tuple[int, Answer]]:
        """Answers as they come from a loop in a thread; closing the iterator cancels what is under way."""
        from anyio.from_thread import start_blocking_portal

        arrived: queue.SimpleQueue[tuple[int, Answer] | None] = queue.SimpleQueue()
        # Those with the same images one after the other: a server's prefix cache then holds the image.
        ranks: dict[tuple[bytes, ...], int] = {}
        seen = [ranks.setdefault(images_of(conversation), len(ranks)) for conversation in conversations]
        waiting = iter(sorted(range(len(conversations)), key=seen.__getitem__))

        async def worker(run: Run) -> None:
            for index in waiting:
                try:
                    answer = await answer_one(run, conversations[index])
                except Exception as error:  # whatever a server or a library thinks up, the other questions go on
                    answer = Answer(error=f"the client failed ({type(error).__name__}).")
                arrived.put((index, answer))

        async def work() -> None:
            async with self._client() as client, asyncio.TaskGroup() as group:
                run = Run(client, self.url, self.concurrency)
                for _ in range(min(self.concurrency, len(conversations))):
                    group.create_task(worker(run))

        with start_blocking_portal() as portal:
            done = portal.start_task_soon(work)
            done.add_done_callback(lambda _: arrived.put(None))
            while (item := _next(arrived)) is not None:
                yield item
            done.result()


def _strict_client(patience: float) -> Any:
    """The HTTP client of the library, to which an answer that never ends or is none is a failure to be tried again.

    Its own timeout is one for each piece of an answer, and any text with the status 200 is an answer to it.
    """
    import openai

    base: Any = openai.DefaultAsyncHttpxClient
    http = import_module(base.__base__.__module__.partition(".")[0])  # httpx, or httpx2 since version 3 of the client

    class StrictClient(base):
        async def send(self, request: Any, **options: Any) -> Any:
            try:
                async with asyncio.timeout(patience):
                    response = await super().send(request, **options)
                    await response.aread()
            except TimeoutError as error:
                raise http.ReadTimeout("no end of the answer", request=request) from error
            if response.is_success and read(response.text) is GARBLED:
                raise http.DecodingError("no valid answer", request=request)
            return response

    return StrictClient()


class _Discreet(logging.Filter):
    """Keeps out of logs what the libraries under us may write there: questions, and passwords in addresses."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for records that hold a request; addresses in the others lose what may be secret."""
        if isinstance(record.args, tuple):
            record.args = tuple(bare(str(a)) if "://" in str(a) else a for a in record.args)
        return not str(record.msg).startswith("Request options")


DISCREET = _Discreet()


def _failed(problem: Problem) -> Answer:
    return Answer(error=f"{problem.reason}.", hopeless=problem.cause == "hopeless")


def _next(arrived: queue.SimpleQueue[Any]) -> Any:
    while True:  # a wait without end would not hear Ctrl-C everywhere
        with suppress(queue.Empty):
            return arrived.get(timeout=1)
