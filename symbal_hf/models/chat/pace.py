"""How many requests may fly at once, how long a failed one waits, and when there is no sense in asking on."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from symbal_hf.models.chat.wire import Cause, Problem, Reply

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OVERLOAD = frozenset(("connection", "busy", "broken"))
LONGEST_BACKOFF = 30.0


class Run:
    """What the requests of one run know of one another: how many may fly, and when to give up."""

    def __init__(self, client: AsyncOpenAI, url: str, *, most: int, backoff: float) -> None:
        self.client = client
        self.throttle = Throttle(most)
        self.hopeless: Problem | None = None
        self._url, self._most, self._first_wait = url, most, backoff
        self._gone = asyncio.Event()
        self._random = random.Random(0)
        self._ever = False
        self._streak: tuple[Cause | None, int] = (None, 0)  # questions given up one after the other for one cause

    @property
    def _enough(self) -> int:
        """Failures in a row that are no accident; a server that has answered gets more of them."""
        return max(3, self._most) if self._ever else 3

    def succeeded(self) -> None:
        """The server is there and answers."""
        self._ever, self._streak = True, (None, 0)

    def gave_up(self, problem: Problem) -> None:
        """A question stays without an answer; after some in a row the others need not be asked."""
        cause, times = self._streak
        self._streak = (problem.cause, times + 1 if cause == problem.cause else 1)
        if self._streak[1] >= self._enough and problem.cause in ("connection", "refused", "busy") and not self.hopeless:
            reason = problem.reason
            if problem.cause == "connection":
                reason = f"no server answers at {self._url}; start one (`vllm serve MODEL`) or mend the base_url"
            self.hopeless = Problem("hopeless", reason)
            self._gone.set()

    def patience(self, retries: int) -> int:
        """How often to try again: not at all while nothing but failures come back."""
        return 0 if self._streak[1] >= self._enough and self._streak[0] != "final" else retries

    def backoff(self, tries: int) -> float:
        """Seconds before the next try, with jitter so that not all come at once."""
        return min(LONGEST_BACKOFF, self._first_wait * 2 ** (tries - 1)) * self._random.uniform(0.5, 1)

    async def pause(self, seconds: float) -> None:
        """Wait, unless there is nothing left to wait for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), seconds)


class Throttle:
    """A gate for a varying number of requests: one more for each round that went well, half as many after trouble."""

    def __init__(self, most: int) -> None:
        self.most, self.limit, self.flying = most, float(most), 0
        self._round = 0
        self._until = 0.0
        self._room = asyncio.Condition()

    async def __aenter__(self) -> Flight:
        async with self._room:
            await self._room.wait_for(lambda: self.flying < int(self.limit))
            self.flying += 1
        try:
            while (wait := self._until - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(wait)
        except BaseException:
            self.flying -= 1
            raise
        return Flight(self, self._round)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.flying -= 1
        async with self._room:
            self._room.notify(max(1, int(self.limit) - self.flying))

    def rose(self) -> None:
        """A request went well."""
        self.limit = min(self.most, self.limit + 1 / self.limit)

    def fell(self, begun: int, wait: float) -> None:
        """A request met an overloaded server; those that were under way with it count as the same trouble."""
        if begun == self._round:
            self.limit, self._round = max(1.0, self.limit / 2), self._round + 1
        self._until = max(self._until, asyncio.get_running_loop().time() + wait)


class Flight:
    """One request under way."""

    def __init__(self, throttle: Throttle, begun: int) -> None:
        self._throttle, self._begun = throttle, begun

    def landed(self, found: Reply | Problem) -> None:
        """Tell the throttle how it went."""
        if isinstance(found, Reply):
            self._throttle.rose()
        elif found.cause in OVERLOAD:
            self._throttle.fell(self._begun, found.wait)
