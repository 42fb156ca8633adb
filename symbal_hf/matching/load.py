"""A judge of names by its spec, or made of what is given; nothing else knows all judges."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle_of_chat
from symbal_hf.core.store import Store
from symbal_hf.matching.judge import ChatJudge, ExactJudge, FunctionJudge
from symbal_hf.matching.lite import LiteJudge
from symbal_hf.matching.protocol import NameJudge, Verdicts
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import ChatModel
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import load_chat

AVAILABLE = "exact, lite, hf:MODEL[@revision] and openai:http://HOST:PORT/v1#MODEL"


# Methods alone: to ask an object for its revision may cost the reading of its weights.
@runtime_checkable
class _Judges(Protocol):
    def judge(self, pairs: Any) -> Any: ...


@runtime_checkable
class _Chats(Protocol):
    def generate(self, conversations: Any) -> Any: ...
    def probability_of_yes(self, conversations: Any) -> Any: ...


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
    refuse_idle_of_chat(
        None if judge in ("exact", "lite") else judge,
        prompts=prompts,
        concurrency=concurrency,
        device=device,
        dtype=dtype,
        device_map=device_map,
    )
    if judge == "exact":
        return ExactJudge()
    if judge == "lite":
        return LiteJudge(Store() if store is None else store, progress=progress)
    if isinstance(judge, str):
        if judge.partition(":")[0] not in ("hf", "openai"):
            raise BadData(f"judge {judge!r}; available are {AVAILABLE}.")
        model: Any = load_chat(judge, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map)
    elif isinstance(judge, type):
        raise BadData(f"judge {judge.__name__} is a class; give an instance, or one of {AVAILABLE}.")
    elif isinstance(judge, _Judges):
        return judge
    elif isinstance(judge, _Chats):
        model = judge
    elif callable(judge):
        return FunctionJudge(judge, getattr(judge, "__name__", type(judge).__name__))
    else:
        raise BadData(
            f"judge of type {type(judge).__name__}; available are {AVAILABLE}, a chat model, an object with `judge`, "
            "and a function from pairs to True, False and None."
        )
    return ChatJudge(model, Store() if store is None else store, prompts or Prompts(), progress)
