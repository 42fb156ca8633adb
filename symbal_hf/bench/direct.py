"""The direct-prompting baseline: one question to a chat model about as much of the dataset as it can read at once."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from symbal_hf.bench.baselines import Names
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.data.table import AuditData
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.protocol import ChatModel
from symbal_hf.models.composition import Composition
from symbal_hf.models.parts import Parts
from symbal_hf.models.scorers import image_texts

CONTEXT_TOKENS = 16_384  # the smallest window that the packaged presets are served with
# For a server's model, whose tokenizer is elsewhere. English has four to five bytes a token and Chinese about three a
# character, so that this errs to the safe side.
BYTES_PER_TOKEN = 3
TEMPLATE_TOKENS = 128  # what a chat template adds to one message; some put a whole system message before it
LEAST_ANSWER = 128  # tokens; two lines of five names take fewer
AT_ONCE = 64  # images that are captioned before one looks whether there is still room
IN_A_ROW = 3  # failures after which a model is taken to be out of order
LONGEST_NAME = 80  # characters; more is an explanation
_FORM = re.compile(r"\W*textual errors?\W*:(?P<t>[^\n]*)\n\W*visual features?\W*:(?P<v>[^\n]*)\W*", re.IGNORECASE)
_LABEL = re.compile(r"(textual error|visual feature)s?\W*:", re.IGNORECASE)


@dataclass
class Direct:
    """Asks for t and v at once (paper section 6.3, appendix C).

    Each row of the sample has its generated caption, and what is told of the image: its references, else what the
    composition's captioner says of it. Without both the model sees generated captions alone, and can only guess what is
    wrong in them. Rows of whose image nothing is told where others have something are left out.
    """

    parts: Parts  # the models; answers and generated captions go through its store
    spec: str  # the chat model, as `parts` knows it
    # of the question and its answer together; a model of this process whose window is smaller gets what fits. An eighth
    # (at least 128) is left for the answer, as some models reason first.
    context_tokens: int = CONTEXT_TOKENS
    # of the rows that are drawn; the same for all datasets, so that settings that share their images are judged by the
    # same ones as far as their captions are equally long
    seed: int = 0
    k: int = 5  # how many guesses are asked for
    _failures: int = field(default=0, repr=False)

    def __call__(self, data: AuditData) -> Names:
        """Ranked names for t and v of these rows; none where the answer has another form, which counts as unparsed.

        Raises:
            BadData: no answer came, or there is nothing that could be asked.
            ChatFailed: none came three times running.
        """
        model = self.parts.chat(self.spec)
        limits = limits_of(model, self.context_tokens)
        values = self.values(data, limits)
        try:
            (answer,) = self.parts.ask(
                self.spec, "direct", [values], kind="text", max_new_tokens=answer_tokens(limits.tokens)
            )
        except ChatFailed as error:
            # One question may be at fault, as where a server counts more tokens; a model that is down always is.
            self._failures += 1
            if self._failures >= IN_A_ROW:
                raise
            raise BadData(str(error)) from error
        self._failures = 0
        said = None if answer.text is None else parse(answer.text, k=self.k)
        if said is None:
            self.parts.ledger.count(model, "text", self.parts.prompts.hash("direct")).unparsed += 1
            return [], []
        return said

    def values(self, data: AuditData, limits: Limits) -> dict[str, object]:
        """What the prompt is filled with: rows drawn one after the other while they fit.

        Raises `BadData`: not even one does.
        """
        prompts, most = self.parts.prompts, limits.tokens - answer_tokens(limits.tokens) - TEMPLATE_TOKENS
        chosen: list[str] = []
        frame: dict[str, object] = {"text": "", "reference": True, "k": self.k}
        left = most - limits.count(prompts.render("direct", **frame))
        for told, caption in _drawn(self.parts, data, self.seed):
            frame["reference"] = told is not None
            row = f"Generated: {caption}\n" if told is None else f"Reference: {told}\nGenerated: {caption}\n"
            size = limits.count(row + "\n")
            if size > left and not chosen:
                continue  # one endless caption must not leave the model without any
            if size > left:
                break
            chosen.append(row)
            left -= size
        values = {**frame, "text": "\n".join(chosen)}
        while chosen and limits.count(prompts.render("direct", **values)) > most:  # tokens may be cut otherwise there
            chosen.pop()
            values["text"] = "\n".join(chosen)
        if not chosen:
            raise BadData(
                f"context_tokens={limits.tokens} leaves no room for a single row of {data.source} beside the question "
                f"and its answer; give more, such as {CONTEXT_TOKENS}."
            )
        return values


@dataclass(frozen=True)
class Limits:
    """How much a model reads at once: `tokens` of question and answer, and how they are counted."""

    tokens: int
    count: Callable[[str], int]


def limits_of(model: ChatModel, context_tokens: int) -> Limits:
    """By its own tokenizer and window for a model of this process, else by three UTF-8 bytes a token.

    Raises `BadData`: a number of tokens that leaves nothing to ask.
    """
    if context_tokens < 2 * LEAST_ANSWER:
        raise BadData(f"context_tokens={context_tokens} is too few; give at least {2 * LEAST_ANSWER}.")

    if not isinstance(model, LocalModel):
        return Limits(context_tokens, lambda text: -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN))
    from transformers import AutoConfig, AutoTokenizer

    name = model.name.removeprefix("hf:")
    where = {} if Path(name).is_dir() else {"revision": model.revision}
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, **where)
    config = AutoConfig.from_pretrained(name, trust_remote_code=False, **where).get_text_config()
    window = int(getattr(config, "max_position_embeddings", None) or context_tokens)

    def count(text: str) -> int:
        # What a caption holds of special tokens is read as plain text, so it is counted as such.
        return len(tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"])

    return Limits(min(context_tokens, window), count)


def answer_tokens(context_tokens: int) -> int:
    """How many of them are left for the answer."""
    return max(LEAST_ANSWER, context_tokens // 8)


def chat_for_direct(composition: Composition) -> str:
    """The chat model of a composition that is asked: the one for all parts, else the one that names t.

    Raises `BadData`: it has none.
    """
    spec = composition.chat or next(
        (s for part in ("summarizer_1", "summarizer_2", "scorer_1") if (s := composition.chat_of(part))), None
    )
    if spec is None:
        raise BadData("method='direct' asks a chat model; name it with chat, such as hf:MODEL or openai:URL#MODEL.")
    return spec


def parse(text: str, *, k: int = 5) -> Names | None:
    """The two lists of an answer, lower-case, each name once; None where it is anything but two labelled lists."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return None
    lists = []
    for listed in (found["t"], found["v"]):
        if _LABEL.search(listed):
            return None
        names = [re.sub(r"^\s*\d+[.)]\s*", "", part).strip(" \t.\"'*`[]").lower() for part in listed.split(",")]
        kept = list(dict.fromkeys(name for name in names if name))[:k]
        if not kept or any(len(name) > LONGEST_NAME for name in kept):
            return None
        lists.append(kept)
    return lists[0], lists[1]


def _drawn(parts: Parts, data: AuditData, seed: int) -> Iterator[tuple[str | None, str]]:
    """What is told of the image (None where nothing is of any) and the caption, of all rows in random order."""
    order = random.Random(seed).sample(range(len(data)), len(data))
    captioner = parts.composition.captioner
    referenced = data.references is not None and any(data.references)
    # Images are captioned only as far as the sample goes.
    step = AT_ONCE if captioner is not None and not captioner.startswith("file:") and not referenced else len(order)
    for start in range(0, len(order), max(step, 1)):
        part = _rows(data, order[start : start + step])
        told = image_texts(parts, part)
        for row, caption in enumerate(part.captions):
            if told is None:
                yield None, _one_line(caption)
            elif text := _one_line(" ".join(told[row])):
                yield text, _one_line(caption)


def _one_line(text: str) -> str:
    """A caption's own line breaks must not look like another row's beginning."""
    return " ".join(text.split())


def _rows(data: AuditData, rows: Sequence[int]) -> AuditData:
    """These rows, in this order, without what is known of their objects."""
    references = None if data.references is None else tuple(data.references[row] for row in rows)
    images = None if data.images is None else data.images.select(rows)
    ids, captions = (tuple(texts[row] for row in rows) for texts in (data.ids, data.captions))
    return AuditData(ids, captions, references, None, images, (), data.source)
