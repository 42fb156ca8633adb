"""Judges of names that ask somebody: equality of letters, a chat model, a function, or another judge once a pair."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.matching.protocol import NameJudge, State, Verdicts, normalised
from symbal_hf.models.chat.asking import ask
from symbal_hf.models.chat.prompting import PromptName, Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel, Message
from symbal_hf.models.encoders.embedding import Progress, quiet

PROMPT: PromptName = "same_thing"
LONGEST = 200  # characters of a name that a chat model is shown; phrases are short, and instructions are not


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
        whole = [index for index, (answer, truth) in enumerate(names) if answer and truth]
        questions = [
            (Message(self.prompts.render(PROMPT, answer=names[index][0], truth=names[index][1])),) for index in whole
        ]
        out: list[State] = ["different"] * len(names)
        if questions:
            settings: dict[str, Any] = {"store": self.store, "progress": self.progress}
            answers = ask(self.model, questions, kind="yes", prompt_hash=self.prompt_hash, **settings)
            for index, answer in zip(whole, answers, strict=True):
                out[index] = _state(answer)
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
        verdicts = list(self.function(pairs))
        if len(verdicts) != len(pairs):
            raise BadData(f"judge {self.name} gave {len(verdicts)} verdicts on {len(pairs)} pairs; give one for each.")
        states: dict[Any, State] = {True: "same", False: "different", None: "unparsed"}
        for verdict in verdicts:
            # 1.0 == True, but a number is a score, and a score needs a threshold that is not ours to choose
            if verdict is not None and type(verdict).__name__ not in ("bool", "bool_"):
                raise BadData(f"judge {self.name} said {verdict!r}; give True, False, or None for what is neither.")
        return [states[None if verdict is None else bool(verdict)] for verdict in verdicts]


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
