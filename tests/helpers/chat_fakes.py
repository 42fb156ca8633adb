"""An OpenAI-compatible server on localhost whose every fault is scripted; as a program it serves until it is killed."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import hashlib
import io
import json
import math
import socket
import struct
import sys
import threading
from collections import Counter
from typing import NamedTuple

import numpy as np
from PIL import Image

from symbal_hf.models.chat.protocol import Answer

ASKS_FOR_A_DIGIT = "Answer 1 or 0."
TEXTS = {"Yes, 1.": "Yes, 1.", "10": "10", "refusal": "I'm sorry, I can't help with that.", "nothing": "", "1.5": "1.5"}


class Question(NamedTuple):
    """A request as the server sees it."""

    prompt: str
    images: tuple[bytes, ...]
    body: dict
    authorization: str
    path: str

    @property
    def digit(self):
        return ASKS_FOR_A_DIGIT in self.prompt


def truth(prompt, images=()):
    """What the model behind this server believes: p of "1" in [0.02, 0.98], never 0.5."""
    digest = hashlib.sha256(
        prompt.encode("utf-8", "replace") + b"".join(hashlib.sha256(image).digest() for image in images)
    ).digest()
    p = 0.02 + 0.96 * digest[0] / 255
    return p if abs(p - 0.5) > 1e-3 else 0.51


def digit(prompt, images=()):
    return str(int(truth(prompt, images) > 0.5))


def essay(prompt, images=()):
    return f"Answer: {hashlib.sha256(prompt.encode('utf-8', 'replace') + b''.join(images)).hexdigest()[:8]}"


def picture(fmt="PNG", seed=0):
    """An encoded image of noise."""
    pixels = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, fmt)
    return out.getvalue()


def in_order(answers, n):
    """The answers by index; a conversation that no answer came for has failed."""
    out = [Answer(error="no answer came")] * n
    for index, answer in answers:
        out[index] = answer
    return out


class FakeServer:
    """Listens on 127.0.0.1 while the `with` block runs.

    fault: called with each Question and how often it has come before (0 at first); names the fault to show, or None.
    logprobs: "given", "five" (more than five are rejected), "rejected", "dropped".
    limit: the field that the server takes. capacity: requests in flight beyond which it answers 429. latency: seconds.
    questions, times, flying: what came, when, and how many were then in flight. peak: most at once.
    answered: how many whole answers went out. retry_after: what every refusal tells of when to come again, or None.
    """

    def __init__(self, *, latency=0.0, logprobs="given", limit="max_tokens", fault=None, capacity=None, port=0):
        self.latency, self.logprobs, self.limit, self.capacity, self.port = latency, logprobs, limit, capacity, port
        self.fault = fault or (lambda question, times: None)
        self.retry_after, self.slow = "0.02", 5.0
        self.questions, self.times, self.flying, self.seen = [], [], [], Counter()
        self.now = self.peak = self.answered = 0

    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve(ready.set)), daemon=True)
        self.thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *exc):
        with contextlib.suppress(RuntimeError):  # it has stopped by itself
            self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join()

    async def serve(self, ready):
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self.connection, "127.0.0.1", self.port, limit=2**26, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        ready()
        await self.stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def connection(self, reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").strip().split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
                content = body["messages"][-1]["content"]
                parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
                images = [p["image_url"]["url"].partition(",")[2] for p in parts if p["type"] == "image_url"]
                question = Question(
                    parts[-1]["text"], tuple(map(base64.b64decode, images)), body, headers.get("authorization", ""),
                    first.split()[1],
                )  # fmt: skip
                if not await self.reply(question, reader, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def reply(self, question, reader, writer):
        asked = (question.prompt, question.images)
        fault = self.fault(question, self.seen[asked])
        self.seen[asked] += 1
        self.questions.append(question)
        self.times.append(self.loop.time())
        self.now += 1
        self.flying.append(self.now)
        self.peak = max(self.peak, self.now)
        try:
            if self.capacity is not None and self.now > self.capacity:
                fault = "429"
            await asyncio.sleep(self.slow if fault == "slow" else self.latency)
        finally:
            self.now -= 1
        if reader.at_eof() or writer.is_closing():
            return False  # the client has given up
        if fault == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            return False
        if fault == "drip":  # never silent for long, and never done
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        status, payload = self.answer(question, fault)
        data = payload if isinstance(payload, str) else json.dumps(payload)
        if fault == "truncated":
            data = data[: len(data) // 2]
        extra = f"retry-after: {self.retry_after}\r\n" if status != 200 and self.retry_after else ""
        length = len(data) + (1000 if fault == "cut" else 0)
        writer.write(
            f"HTTP/1.1 {status} Fake\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{extra}\r\n{data}"
            .encode()
        )  # fmt: skip
        await writer.drain()
        self.answered += status == 200 and fault is None
        return fault != "cut"

    def answer(self, question, fault):
        body = question.body
        if fault and fault.isdigit() and len(fault) == 3:
            return int(fault), {"error": {"message": f"fault {fault}", "type": "fault"}}
        if fault == "html":
            return 502, "<html>bad gateway</html>"
        if fault == "echo":  # as servers do that name the invalid input
            return 400, {"error": {"message": json.dumps(body) + question.authorization, "code": question.prompt}}
        if other := {"max_tokens", "max_completion_tokens"} & body.keys() - {self.limit}:
            message = f"Unsupported parameter: '{other.pop()}' is not supported with this model. Use '{self.limit}'."
            return 400, {"error": {"message": message, "type": "invalid_request_error"}}
        if body.get("logprobs") and (self.logprobs == "rejected" or fault == "logprobs rejected"):
            return 400, {"error": {"message": "Unsupported parameters: logprobs, top_logprobs"}}
        if self.logprobs == "five" and body.get("top_logprobs", 0) > 5:
            return 422, {"error": "`top_logprobs` must be at most 5. Given: 20", "error_type": "validation"}
        p = truth(question.prompt, question.images)
        right = digit(question.prompt, question.images) if question.digit else essay(question.prompt, question.images)
        text = TEXTS.get(fault, right)
        message = {"role": "assistant", "content": None if fault == "null content" else text}
        choice = {"index": 0, "message": message, "finish_reason": "length", "logprobs": None}
        if body.get("logprobs") and self.logprobs != "dropped" and fault != "no logprobs":
            message["content"] = message["content"] and token(text)  # one token was asked for
            choice["logprobs"] = listed(text, p, body["top_logprobs"], fault)
        elif body.get(self.limit) == 1 and text[:1].isdigit():
            message["content"] = message["content"] and text[:1]  # a vocabulary that has no other numbers
        choices = [] if fault == "no choices" else [choice]
        return 200, {"id": "x", "object": "chat.completion", "model": body["model"], "choices": choices}


def token(text):
    """The first token of a text, in a vocabulary of words."""
    return text.split()[0] if text else ""


def listed(text, p, top, fault):
    """Log-probabilities of one token; those of "1" and "0" are spread over spellings where the text is one of them."""
    spread = {"1": 0.6 * p, "0": 0.6 * (1 - p), " 1": 0.2 * p, "▁0": 0.3 * (1 - p), "1\n": 0.1 * p}
    alternatives = spread if text in ("0", "1") else {token(text): 0.9}
    alternatives |= {f"w{i}": 1e-6 for i in range(20)}
    best = sorted(alternatives.items(), key=lambda pair: -pair[1])[:top]
    entry = {
        "token": token(text), "logprob": math.log(alternatives[token(text)]), "bytes": None,
        "top_logprobs": [{"token": other, "logprob": math.log(value)} for other, value in best],
    }  # fmt: skip
    return {
        "two logprobs": {"content": [entry, {**entry, "token": "0"}]},
        "empty logprobs": {"content": []},
        "malformed logprobs": {"content": [{**entry, "top_logprobs": [{"token": 1, "logprob": "high"}]}]},
        "impossible logprobs": {"content": [{**entry, "top_logprobs": [{"token": "1", "logprob": 3.0}]}]},
        "logprobs of another token": {"content": [{**entry, "token": "<think>"}]},
        "list of logprobs": [entry],
    }.get(fault, {"content": [entry]})


def at_first(*faults):
    """The faults that every question meets, one after the other, before it is answered."""
    return lambda question, times: faults[times] if times < len(faults) else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05)
    fake = FakeServer(latency=parser.parse_args().latency)
    asyncio.run(fake.serve(lambda: print(fake.url, file=sys.stdout, flush=True)))
