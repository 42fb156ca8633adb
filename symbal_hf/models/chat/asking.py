"""Questions to a chat model through the store: one that was answered is never asked again, whatever broke since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from symbal_hf.core.errors import ChatFailed
from symbal_hf.core.store import Store, key
from symbal_hf.models.chat.protocol import Answer, ChatModel, Messages
from symbal_hf.models.encoders.embedding import Progress, quiet

Asking = Literal["text", "yes"]


@dataclass
class Count:
    """What became of different questions to one model.

    Attributes:
        asked: put to the model in this run.
        cached: answered by an earlier run.
        failed: of those asked, without an answer.
        unparsed: of those asked, answered otherwise than with 1 or 0.
    """

    asked: int = 0
    cached: int = 0
    failed: int = 0
    unparsed: int = 0


@dataclass
class Ledger:
    """Who was asked how much: what a result says of its models, without a question, an answer or a key."""

    counts: dict[tuple[str, Asking], Count] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=dict)
    prompts: dict[tuple[str, Asking], list[str]] = field(default_factory=dict)

    def count(self, model: ChatModel, kind: Asking, prompt_hash: str) -> Count:
        """The counts to add to for this model and kind of question."""
        self.revisions[model.name] = model.revision
        hashes = self.prompts.setdefault((model.name, kind), [])
        if prompt_hash not in hashes:
            hashes.append(prompt_hash)
        return self.counts.setdefault((model.name, kind), Count())

    def as_dict(self) -> dict[str, Any]:
        """Plain values: under "calls" for each model and kind its revision, prompt hashes and counts."""
        return {
            "calls": [
                {"model": model, "revision": self.revisions[model], "kind": kind,
                 "prompts": sorted(self.prompts[model, kind]), **asdict(count)}
                for (model, kind), count in self.counts.items()
            ]
        }  # fmt: skip


def ask(
    model: ChatModel,
    conversations: Sequence[Messages],
    *,
    kind: Asking,
    prompt_hash: str,
    store: Store,
    max_new_tokens: int = 256,
    temperature: float = 0.0,
    seed: int = 0,
    progress: Progress = quiet,
    ledger: Ledger | None = None,
    answers_before: bool = False,
) -> list[Answer]:
    """An answer to each conversation, in order; equal ones are asked once, and each good answer is stored as it comes.

    Args:
        kind: "text" for what the model writes, "yes" for the probability that it says "1" rather than "0".
        prompt_hash: of the template that the questions come from, for keys and the ledger.
        max_new_tokens, temperature, seed: of texts; they mean nothing to "yes".
        answers_before: whether these are further questions of a run in which some were answered, so that it is no
            reason to stop if none of these is.

    Returns:
        Answers, some of which may have an error, or no `yes` where the model wrote something else. Neither is stored,
        so that the next run asks again.

    Raises:
        ChatFailed: no answer came at all, or there is no sense in asking on. What was answered before is stored.
    """
    options = {"max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed} if kind == "text" else {}
    head = (
        "chat", kind, model.name, model.revision, getattr(model, "settings", ""), prompt_hash, json.dumps(options)
    )  # fmt: skip
    digests: dict[bytes, str] = {}
    keys = [key(*head, *_parts(conversation, digests)) for conversation in conversations]
    first = {k: place for place, k in reversed(list(enumerate(keys)))}
    known = {k: answer for k, v in store.get(list(first)).items() if (answer := _read(v, kind)) is not None}
    new = sorted(place for k, place in first.items() if k not in known)
    count = (Ledger() if ledger is None else ledger).count(model, kind, prompt_hash)
    count.cached += len(known)

    questions = [conversations[place] for place in new]
    lost: Answer | None = None
    if questions:
        answers = (
            model.probability_of_yes(questions) if kind == "yes" else
            model.generate(questions, max_new_tokens=max_new_tokens, temperature=temperature, seed=seed)
        )  # fmt: skip
        try:
            for place, answer in progress(answers, "answers", len(questions)):
                k = keys[new[place]]
                known[k] = answer
                count.asked += 1
                if answer.text is None:
                    count.failed += 1
                    lost = answer if answer.hopeless else lost
                elif kind == "yes" and answer.yes is None:
                    count.unparsed += 1
                else:  # at 0.1 ms each there is nothing to gain from waiting for more
                    store.put({k: _written(answer)}, kind="chat")
        finally:
            if hasattr(answers, "close"):
                answers.close()  # an exception from outside must not leave requests under way
    silent = sum(keys[place] not in known for place in new)
    count.asked += silent
    count.failed += silent
    out = [known.get(k, Answer(error="no answer came.")) for k in keys]
    answered = sum(answer.text is not None for answer in known.values())
    if out and (lost is not None or not (answered or answers_before)):
        reason = (lost or out[0]).error or "no reason was given."
        again = "; once mended, only the others are asked" if answered else ""
        raise ChatFailed(f"{model.name} answered {answered or 'none'} of {len(first)} questions{again}: {reason}")
    return out


def _parts(conversation: Messages, digests: dict[bytes, str]) -> list[str | bytes]:
    """What a conversation consists of, images by their digests; each image is digested once."""
    parts: list[str | bytes] = []
    for message in conversation:
        parts += (message.role, message.text.encode("utf-8", "surrogatepass"))
        for image in message.images:
            if image not in digests:
                digests[image] = hashlib.sha256(image).hexdigest()
            parts.append(digests[image])
    return parts


def _written(answer: Answer) -> bytes:
    return json.dumps({"text": answer.text, "yes": answer.yes}).encode()


def _read(value: bytes, kind: Asking) -> Answer | None:
    """A stored answer; None for what is none, which is then asked again."""
    try:
        stored = json.loads(value)
        answer = Answer(text=stored["text"], yes=stored["yes"])
    except (ValueError, LookupError, TypeError):
        return None
    whole = isinstance(answer.text, str) and (kind == "text" or isinstance(answer.yes, float))
    return answer if whole else None
