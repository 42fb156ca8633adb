"""Chat models behind one protocol: many questions go in, and each comes back with an answer or a reason for none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

DIGIT = re.compile(r"\s*([01])\b(?!\.\d)")


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    text: str  # what is said, after the images
    images: tuple[bytes, ...] = ()  # encoded image files, as they are
    role: Literal["system", "user", "assistant"] = "user"  # who says it


Messages = Sequence[Message]


@dataclass(frozen=True)
class Answer:
    """What came of one conversation.

    Attributes:
        yes: probability in [0, 1] that it says "1" rather than "0", where that was asked and could be told; None where
            it wrote something else, which is a third state and never 0 or 1.
    """

    text: str | None = None  # what the model wrote; None where it failed
    yes: float | None = None
    error: str | None = None  # why there is no text, in one sentence without the question, the image or a key
    hopeless: bool = False  # True where no other question would fare better: no server answers, a key is refused


class ChatModel(Protocol):
    """One way of asking a model. Answers arrive as they are ready, each with the index of its conversation.

    Attributes:
        name: what it is called in results, without keys or passwords: "hf:MODEL", "openai:URL#MODEL".
        revision: of the weights, or "" where nobody knows.

    A model whose answers depend on more than these says so in a string attribute `settings`, which keys its answers.
    """

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    def generate(
        self, conversations: Sequence[Messages], *, max_new_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> Iterator[tuple[int, Answer]]:
        """Text for each conversation, in any order; a failure is an `Answer` with an error, never an exception."""

    def probability_of_yes(self, conversations: Sequence[Messages]) -> Iterator[tuple[int, Answer]]:
        """For each conversation how probable "1" is against "0" as the answer."""


def images_of(conversation: Messages) -> tuple[bytes, ...]:
    """All images of a conversation, in order."""
    return tuple(image for message in conversation for image in message.images)


def strict_digit(text: str) -> float | None:
    """1.0 or 0.0 from an answer that begins with that digit; None from any other ("Yes, 1.", "10", "1.5", "")."""
    match = DIGIT.match(text)
    return float(match[1]) if match else None


def features(text: str) -> tuple[str, ...] | None:
    """The list after "Answer:", lower-case, each name once; None where the answer has another form."""
    _, mark, listed = text.partition("Answer:")
    if not mark:
        return None
    names = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s*", "", part) for part in re.split(r"[,;\n]", listed))
    return tuple(dict.fromkeys(name for part in names if (name := part.strip(" .\"'*`").lower())))
