"""Questions to a chat model through the store: one that was answered is never asked again, whatever broke since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from symbal_hf.core.errors import ChatFailed
from symbal_hf.core.store import Store, key
from symbal_hf.models.chat.protocol import Answer, ChatModel, Messages
from symbal_hf.models.encoders.embedding import Progress, quiet

Asking = Literal["text", "yes"]


@dataclass
class Count:
    """What became of different questions of one kind to one model."""

    revision: str = field(default="", compare=False)  # the model's
    prompts: list[str] = field(default_factory=list, compare=False)  # hashes of their templates, sorted
    asked: int = 0  # put to the model in this run
    cached: int = 0  # answered by an earlier run
    failed: int = 0  # of those asked, without an answer
    unparsed: int = 0  # of those asked, answered otherwise than with 1 or 0


@dataclass
class Ledger:
    """Who was asked how much: what a result says of its models, without a question, an answer or a key."""

    counts: dict[tuple[str, Asking], Count] = field(default_factory=dict)

    def count(self, model: ChatModel, kind: Asking, prompt_hash: str) -> Count:
        """The counts to add to for this model and kind of question."""
        count = self.counts.setdefault((model.name, kind), Count())
        count.revision, count.prompts = model.revision, sorted({*count.prompts, prompt_hash})
        return count

    def as_dict(self) -> dict[str, Any]:
        """Plain values: under "calls" for each model and kind its revision, prompt hashes and counts."""
        calls = self.counts.items()
        return {"calls": [{"model": m, "revision": c.revision, "kind": kind, **asdict(c)} for (m, kind), c in calls]}


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

    An answer with an error, or without `yes` where the model wrote something else, is not stored, but asked for again.

    Args:
        kind: "text" for what the model writes, "yes" for the probability that it says "1" rather than "0".
        prompt_hash: of the template that the questions come from, for keys and the ledger.
        max_new_tokens, temperature, seed: of texts; they mean nothing to "yes".
        answers_before: whether these are further questions of a run in which some were answered, so that it is no
            reason to stop if none of these is.

    Raises:
        ChatFailed: no answer came at all, or there is no sense in asking on. What was answered before is stored.
    """
    options = {"max_new_tokens": max_new_tokens, "temperature": temperature, "seed": seed} if kind == "text" else {}
    settings = getattr(model, "settings", "")
    head = ("chat", kind, model.name, model.revision, settings, prompt_hash, json.dumps(options))
    digests: dict[bytes, str] = {}
    keys = [key(*head, *_content(conversation, digests)) for conversation in conversations]
    first = {k: index for index, k in reversed(list(enumerate(keys)))}
    stored = store.get(list(first))
    answers = {k: answer for k, value in stored.items() if (answer := _read(value, kind)) is not None}
    new = {index: k for k, index in sorted(first.items(), key=lambda item: item[1]) if k not in answers}
    count = (Ledger() if ledger is None else ledger).count(model, kind, prompt_hash)
    count.cached += len(answers)

    hopeless: Answer | None = None
    indices = list(new)
    arriving = _arriving(model, [conversations[index] for index in indices], kind, options)
    try:
        for number, answer in progress(arriving, "answers", len(new)) if new else ():
            k = new[indices[number]]
            answers[k] = answer
            count.asked += 1
            if answer.text is None:
                count.failed += 1
                hopeless = answer if answer.hopeless else hopeless
            elif kind == "yes" and answer.yes is None:
                count.unparsed += 1
            else:  # at 0.1 ms each there is nothing to gain from waiting for more
                store.put({k: json.dumps({"text": answer.text, "yes": answer.yes}).encode()}, kind="chat")
    finally:
        arriving.close()  # an exception from outside must not leave requests under way
    silent = sum(k not in answers for k in new.values())
    count.asked += silent
    count.failed += silent
    out = [answers.get(k, Answer(error="no answer came.")) for k in keys]
    answered = sum(answer.text is not None for answer in answers.values())
    if out and (hopeless is not None or not (answered or answers_before)):
        reason = (hopeless or out[0]).error or "no reason was given."
        again = "; once mended, only the others are asked" if answered else ""
        raise ChatFailed(f"{model.name} answered {answered or 'none'} of {len(first)} questions{again}: {reason}")
    return out


def _arriving(
    model: ChatModel, questions: Sequence[Messages], kind: Asking, options: dict[str, Any]
) -> Generator[tuple[int, Answer], None, None]:
    """The model's answers as they come; closing this closes whatever iterator the model gave."""
    if kind == "yes":
        yield from model.probability_of_yes(questions)
    else:
        yield from model.generate(questions, **options)


def _content(conversation: Messages, digests: dict[bytes, str]) -> list[str | bytes]:
    """What a conversation consists of, images by their digests; each image is digested once."""
    content: list[str | bytes] = []
    for message in conversation:
        content += (message.role, message.text.encode("utf-8", "surrogatepass"))
        for image in message.images:
            if image not in digests:
                digests[image] = hashlib.sha256(image).hexdigest()
            content.append(digests[image])
    return content


def _read(value: bytes, kind: Asking) -> Answer | None:
    """A stored answer; None for what is none, which is then asked again."""
    try:
        stored = json.loads(value)
        answer = Answer(text=stored["text"], yes=stored["yes"])
    except (ValueError, LookupError, TypeError):
        return None
    whole = isinstance(answer.text, str) and (kind == "text" or isinstance(answer.yes, float))
    return answer if whole else None
