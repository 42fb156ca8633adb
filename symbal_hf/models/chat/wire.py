"""What goes over the wire to an OpenAI-compatible server, and how much of what comes back is believed."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from http.client import responses
from typing import Any, Literal
from urllib.parse import urlsplit

from symbal_hf.data.pixels import decode, png
from symbal_hf.models.chat.protocol import Message, Messages

MAGIC = ((b"\xff\xd8\xff", "jpeg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"GIF87a", "gif"), (b"GIF89a", "gif"))
LEAST_MASS = 0.01  # below it "1" and "0" are only the noise under some other answer, and their ratio tells nothing
SPACES = " \t\r\n▁Ġ"  # also as tokenizers write them
REMEDIES = {
    401: "give the right api_key, or set SYMBAL_API_KEY",
    404: "check the model's name, and that the base_url ends as the server wants it, mostly in /v1",
    413: "the images are too large for it",
}
# Of a server's own words only these are repeated: anything else may quote the question.
CODES = re.compile(
    "content_filter|content_policy_violation|context_length_exceeded|insufficient_quota|invalid_api_key|invalid_image"
    "|model_not_found|rate_limit_exceeded"
)
FIELDS = re.compile(r"\b(?:top_logprobs|logprobs|top_n_tokens|max_tokens)\b")

Cause = Literal["connection", "refused", "busy", "broken", "final", "hopeless"]


@dataclass(frozen=True)
class Reply:
    """What a server wrote, with its log-probabilities as they came."""

    text: str
    logprobs: Any = None


@dataclass(frozen=True)
class Problem:
    """Why a request brought no reply.

    Attributes:
        cause: connection (none), refused (whoever asks), busy (429), broken (5xx, too slow, no valid answer), final
            (nothing that another try would mend), hopeless (nor another question).
    """

    cause: Cause
    reason: str  # one sentence without its full stop
    rejected: frozenset[str] = frozenset()  # names of request fields that its message speaks of


@dataclass(frozen=True)
class Dialect:
    """How this server wants to be asked: the field that limits the answer, and how many alternatives it will list."""

    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    top: Literal[20, 5, 0] = 20

    def without(self, rejected: frozenset[str]) -> Dialect | None:
        """The next one to try after a server rejected these fields; None where there is none."""
        if rejected & {"logprobs", "top_logprobs", "top_n_tokens"} and self.top:
            return replace(self, top=5 if self.top == 20 else 0)  # some list at most five
        if "max_tokens" in rejected and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        return None


def bare(url: str) -> str:
    """The address without what may be secret: user, password, query, fragment."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def data_url(image: bytes) -> str:
    """The encoded image in a URL; formats that not every server reads become PNG.

    Raises:
        OSError, SyntaxError, ValueError: bytes that are no picture.
    """
    kind = next((name for magic, name in MAGIC if image.startswith(magic)), None)
    if kind is None and image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        kind = "webp"
    if kind is None:
        kind, image = "png", _as_png(image)
    return f"data:image/{kind};base64,{b64encode(image).decode()}"


@lru_cache(maxsize=16)  # questions about one image come together
def _as_png(image: bytes) -> bytes:
    return png(decode(image))


def turns(conversation: Messages) -> list[dict[str, Any]]:
    """The conversation as the `messages` of a request."""
    return [{"role": message.role, "content": _content(message)} for message in conversation]


def _content(message: Message) -> Any:
    if not message.images:
        return message.text  # not every server takes a list where there is only text
    pictures = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in message.images]
    return [*pictures, {"type": "text", "text": message.text}]


GARBLED = Problem("broken", "the server sent no valid answer")


def read(body: Any) -> Reply | Problem:
    """The reply in the body of a successful response, which is JSON or what it says."""
    try:
        choice = (json.loads(body) if isinstance(body, str) else body)["choices"][0]
        message = choice["message"]
        text = message.get("content")
        if isinstance(text, list):
            text = "".join(part["text"] for part in text if part.get("type") == "text")
        text = message.get("refusal") if text is None else text
    except (ValueError, LookupError, TypeError, AttributeError):
        return GARBLED
    if not isinstance(text, str):
        thinks = choice.get("finish_reason") == "length"
        hint = "; a model that thinks first needs its thinking turned off or more tokens" if thinks else ""
        return Problem("final", f"the answer holds no text{hint}")
    return Reply(text, choice.get("logprobs"))


def odds(reply: Reply) -> float | None:
    """P("1") / (P("1") + P("0")) as the first token, in [0, 1]; None where the answer is hardly ever either.

    Raises:
        ValueError: the log-probabilities are not those of a single token that is the whole text.
    """
    try:
        entries = [entry for entry in reply.logprobs["content"] if entry["token"].strip(SPACES)]
        (entry,) = entries
        if entry["token"].strip(SPACES) != reply.text.strip():
            raise ValueError("another token")
        listed = {choice["token"]: float(choice["logprob"]) for choice in [entry, *entry["top_logprobs"]]}
        p = dict.fromkeys(("1", "0"), 0.0)
        for token, logprob in listed.items():
            if not logprob <= 1e-3:
                raise ValueError("no log-probability")
            if (digit := token.strip(SPACES)) in p:
                p[digit] += math.exp(logprob)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("malformed") from error
    mass = p["1"] + p["0"]
    if mass > 1.001 or len(listed) < 2:
        raise ValueError("no distribution")
    return p["1"] / mass if mass >= LEAST_MASS else None


def refusal(status: int, body: object) -> Problem:
    """What an error response means; its own words are looked at but not repeated."""
    fields = body.get("error", body) if isinstance(body, Mapping) else {}
    fields = fields if isinstance(fields, Mapping) else {}
    code = next((fields[k] for k in ("code", "type") if CODES.fullmatch(str(fields.get(k)))), "")
    reason = f"the server answered {status} ({code or responses.get(status, 'no known status')})"
    if status in REMEDIES:
        reason += f"; {REMEDIES[status]}"
    named = fields.get("param") or str(body)
    rejected = frozenset(FIELDS.findall(str(named))) if status in (400, 422) else frozenset()
    cause: Cause = "final"
    if status == 429:
        cause = "busy"
    elif status in (408, 409) or status >= 500:
        cause = "broken"
    elif status in (401, 404):
        cause = "refused"
    return Problem(cause, reason, rejected)
