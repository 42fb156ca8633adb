"""Judges of names: whether an answer and the truth, each a short noun phrase, point at the same visual feature.

What counts as the same. Both phrases are taken as answers to "which thing?".

* Equivalent names are the same: "tv" and "television", "cardiomegaly" and "enlarged heart".
* So is a name with a modifier that describes the thing without making another kind of it: "white toilet" and
  "toilet", "large dog" and "dog", "a group of people" and "people", "small left effusion" and "effusion".
* Another kind is different, be it narrower ("poodle" for "dog", "stop sign" for "sign"), broader ("furniture" for
  "chair"), a sibling ("cat" for "dog"), a part or a whole ("wheel" for "car"), or unrelated.
* What contradicts the truth is different: the other side ("left lung" for "right lung"), another value of the same
  attribute ("red car" for "blue car"), a negation ("no effusion" for "effusion").

A judge has a third state: what it could not say is "unparsed" or "failed" and never "different".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from symbal_hf.core.errors import BadData
from symbal_hf.models.chat.asking import ask
from symbal_hf.models.chat.prompting import PromptName, Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel, Message
from symbal_hf.models.encoders.embedding import Progress, quiet

if TYPE_CHECKING:
    from symbal_hf.core.store import Store

State = Literal["same", "different", "unparsed", "failed"]
Verdicts = Callable[[Sequence[tuple[str, str]]], Sequence[bool | None]]

PROMPT: PromptName = "same_thing"
LONGEST = 200  # characters of a name that a chat model is shown; phrases are short, and instructions are not
AVAILABLE = "exact, lite, hf:MODEL[@revision] and openai:http://HOST:PORT/v1#MODEL"
ARTICLE = re.compile(r"^(?:an?|the) (?=.)")


class NameJudge(Protocol):
    """One way of saying whether two names mean the same.

    Attributes:
        name: "exact", "lite", or the chat model's: "hf:MODEL", "openai:URL#MODEL".
        revision: of weights, or of rules and thresholds; "" where nobody knows.
        prompt_hash: of the question that is asked; "" where there is none.
    """

    @property
    def name(self) -> str:
        """What it is called in results."""
        ...

    @property
    def revision(self) -> str:
        """Of its weights or rules."""
        ...

    @property
    def prompt_hash(self) -> str:
        """Of its question."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """What it says of each (answer, truth), in order."""
        ...


def normalised(name: str) -> str:
    """The form in which `ExactJudge` compares names; names that differ only as follows have the same one.

    1. Unicode form and case, as in the compatibility caseless match of the Unicode standard (D146), then NFKC.
    2. White space: any run of it is one blank, and none is left at either end.
    3. One leading article ("a", "an", "the") that something follows.

    Plurals, hyphens, punctuation and accents do make a difference.
    """
    text = unicodedata.normalize("NFD", name).casefold()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    return ARTICLE.sub("", " ".join(text.split()))


class ExactJudge:
    """Names are the same when `normalised` makes them equal. A blank name names nothing and is the same as none."""

    name, revision, prompt_hash = "exact", "1", ""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """For each (answer, truth) "same" or "different"."""
        names = [(normalised(answer), normalised(truth)) for answer, truth in pairs]
        return ["same" if answer and answer == truth else "different" for answer, truth in names]


@dataclass
class ChatJudge:
    """A chat model that is asked the prompt `same_thing`, each pair once ever: its answers are kept in the store.

    Names are data from strangers. They enter the prompt as `shown` makes them, so that none can open a line or a field
    of its own; what one says within its line is still read by the model.

    Attributes:
        model: what is asked; it is loaded at the first question.
        store: where answers are kept, by model, revision, prompt and pair.
        prompts: where the question comes from.
        progress: wraps the loop.
    """

    model: ChatModel
    store: Store
    prompts: Prompts = field(default_factory=Prompts)
    progress: Progress = quiet

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    @property
    def revision(self) -> str:
        """The model's; a local one is looked up for it, and not loaded."""
        return self.model.revision

    @property
    def prompt_hash(self) -> str:
        """Sixteen hex digits that change with the question."""
        return self.prompts.hash(PROMPT)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """Says "same" where P("1") > 0.5, "unparsed" where the answer is neither 1 nor 0, "failed" where there is none.

        A pair with a blank name is "different" and not asked. What is unparsed or failed is asked again next time.

        Raises:
            ChatFailed: the model answers nothing, or asking on makes no sense; what it said before is stored.
        """
        names = [(shown(answer), shown(truth)) for answer, truth in pairs]
        whole = [place for place, (answer, truth) in enumerate(names) if answer and truth]
        questions = [
            (Message(self.prompts.render(PROMPT, answer=names[place][0], truth=names[place][1])),) for place in whole
        ]
        out: list[State] = ["different"] * len(names)
        if questions:
            answers = ask(
                self.model, questions, kind="yes", prompt_hash=self.prompt_hash, store=self.store,
                progress=self.progress,
            )  # fmt: skip
            for place, answer in zip(whole, answers, strict=True):
                out[place] = _state(answer)
        return out


def shown(name: str) -> str:
    """A name as a prompt shows it: one line of at most 200 characters, without control characters.

    White space and control characters become single blanks, invisible format characters go, and square brackets,
    which mark the prompt's fields, become round ones.
    """
    kept = (_visible(c) for c in name[: 50 * LONGEST])
    return " ".join("".join(kept).split())[:LONGEST].rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf":  # joins nothing and turns no text around
        return ""
    return {"[": "(", "]": ")"}.get(character, " " if category[0] in "CZ" else character)


def _state(answer: Answer) -> State:
    if answer.text is None:
        return "failed"
    if answer.yes is None:
        return "unparsed"
    return "same" if answer.yes > 0.5 else "different"


@dataclass(frozen=True)
class FunctionJudge:
    """A function from pairs to True, False, or None for what it could not say."""

    function: Verdicts
    name: str
    revision: str = ""
    prompt_hash: str = ""

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """What the function says; None is "unparsed".

        Raises:
            BadData: not one verdict a pair, or another value than True, False and None.
        """
        said = list(self.function(pairs))
        if len(said) != len(pairs):
            raise BadData(f"judge {self.name} gave {len(said)} verdicts on {len(pairs)} pairs; give one for each.")
        states: dict[Any, State] = {True: "same", False: "different", None: "unparsed"}
        for verdict in said:
            # 1.0 == True, but a number is a score, and a score needs a threshold that is not ours to choose
            if verdict is not None and type(verdict).__name__ not in ("bool", "bool_"):
                raise BadData(f"judge {self.name} said {verdict!r}; give True, False, or None for what is neither.")
        return [states[None if verdict is None else bool(verdict)] for verdict in said]


@dataclass
class Remembering:
    """A judge that is asked about each pair once, however many runs answer it.

    Attributes:
        asked: the judge.
        said: its verdict on each (answer, truth).
    """

    asked: NameJudge
    said: dict[tuple[str, str], State] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The judge's."""
        return self.asked.name

    @property
    def revision(self) -> str:
        """The judge's."""
        return self.asked.revision

    @property
    def prompt_hash(self) -> str:
        """The judge's."""
        return self.asked.prompt_hash

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[State]:
        """What it says, or has said, of each pair."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self.said]
        if new:
            states = list(self.asked.judge(new))
            if len(states) != len(new):
                raise BadData(f"judge {self.name} gave {len(states)} verdicts on {len(new)} pairs; give one for each.")
            self.said.update(zip(new, states, strict=True))
        return [self.said[pair] for pair in pairs]


def load_judge(
    judge: str | NameJudge | ChatModel | Verdicts,
    *,
    store: Store | None = None,
    prompts: Prompts | None = None,
    concurrency: int = 32,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    progress: Progress = quiet,
) -> NameJudge:
    """A judge by its spec, or made of what is given; no model is loaded before it is needed.

    Args:
        judge: "exact", "lite", a chat model's spec or a chat model; an object with `judge` is returned as it is, and a
            function from pairs to True, False and None becomes a judge of that function's name.
        store: where vectors and answers are kept; the user's own where none is given.
        prompts: where a chat model's question comes from.
        concurrency: questions in flight to one server, at least 1.
        device: where a model of this process runs: "auto", "cpu", "cuda", "cuda:1", "mps".
        dtype: its numbers: "auto", "float32", "bfloat16", "float16".
        device_map: "auto" spreads a model that fits no single GPU over all of them.
        progress: wraps long loops.

    Raises:
        BadData: none of these.
    """
    from symbal_hf.core.options import refuse_idle_of_chat
    from symbal_hf.core.store import Store
    from symbal_hf.models.parts import load_chat

    refuse_idle_of_chat(
        None if judge in ("exact", "lite") else judge, prompts=prompts, concurrency=concurrency, device=device,
        dtype=dtype, device_map=device_map,
    )  # fmt: skip
    if judge == "exact":
        return ExactJudge()
    if judge == "lite":
        from symbal_hf.matching.lite import LiteJudge

        return LiteJudge(Store() if store is None else store, progress=progress)
    if isinstance(judge, str):
        if judge.partition(":")[0] not in ("hf", "openai"):
            raise BadData(f"judge {judge!r}; available are {AVAILABLE}.")
        model: Any = load_chat(judge, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map)
    elif isinstance(judge, type):
        raise BadData(f"judge {judge.__name__} is a class; give an instance, or one of {AVAILABLE}.")
    elif callable(getattr(judge, "judge", None)):
        return cast("NameJudge", judge)
    elif hasattr(judge, "generate") and hasattr(judge, "probability_of_yes"):
        model = judge
    elif callable(judge):
        return FunctionJudge(judge, getattr(judge, "__name__", type(judge).__name__))
    else:
        raise BadData(
            f"judge of type {type(judge).__name__}; available are {AVAILABLE}, a chat model, an object with `judge`, "
            "and a function from pairs to True, False and None."
        )
    return ChatJudge(model, Store() if store is None else store, prompts or Prompts(), progress)
