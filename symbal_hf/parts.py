"""The models of a composition, each loaded once when it is first asked, whatever number of parts it serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.ask import Asking, Ledger, ask
from symbal_hf.chat import Answer, ChatModel, Message
from symbal_hf.composition import Composition, split_part
from symbal_hf.embed import Progress, embed_images, embed_texts, quiet
from symbal_hf.prompts import PromptName, Prompts
from symbal_hf.store import Store
from symbal_hf.tables import BadData

if TYPE_CHECKING:
    from symbal_hf.data import Images
    from symbal_hf.encoders import JointEncoder


AT_ONCE = 1024  # questions whose images are in memory together


@dataclass
class Parts:
    """What a composed audit works with.

    Attributes:
        composition: which models.
        store: where vectors and answers are kept.
        prompts: what chat models are asked.
        ledger: who was asked how much.
        chats: chat models by spec, as objects; the others are loaded by their specs.
        concurrency: questions in flight to one server.
        members: of a cluster that a summarizer looks at, at most; more change the most frequent names no further.
        device: where models of this process run: "auto", "cpu", "cuda", "cuda:1", "mps".
        dtype: their numbers: "auto" (bfloat16 on a GPU that has it, else float32), "float32", "bfloat16", "float16".
        device_map: "auto" spreads a model that fits no single GPU over all of them.
        progress: wraps long loops.
    """

    composition: Composition
    store: Store
    prompts: Prompts = field(default_factory=Prompts)
    ledger: Ledger = field(default_factory=Ledger)
    chats: dict[str, ChatModel] = field(default_factory=dict)
    concurrency: int = 32
    members: int = 60
    device: str = "auto"
    dtype: str = "auto"
    device_map: str | None = None
    progress: Progress = quiet

    def chat(self, spec: str) -> ChatModel:
        """The chat model of this spec."""
        if spec not in self.chats:
            self.chats[spec] = load_chat(
                spec, concurrency=self.concurrency, device=self.device, dtype=self.dtype, device_map=self.device_map
            )
        return self.chats[spec]

    def ask(
        self,
        spec: str,
        prompt: PromptName,
        values: Sequence[Mapping[str, Any]],
        *,
        images: Images | None = None,
        rows: Sequence[int] | NDArray[np.int64] | None = None,
        kind: Asking,
        max_new_tokens: int = 256,
    ) -> list[Answer]:
        """The answers of model `spec` to a prompt, one for each of `values`, about the images of `rows` where given.

        Images are read some hundred at a time, so that no more of them are held.
        """
        told = self.prompts.hash(prompt)
        answers: list[Answer] = [Answer(error="no such image")] * len(values)
        # All questions about one image come together: a server keeps what it made of it.
        order = list(range(len(values))) if rows is None else sorted(range(len(values)), key=lambda i: int(rows[i]))
        for start in range(0, len(order), AT_ONCE):
            part, conversations = [], []
            seen: dict[int, bytes | None] = {}
            for i in order[start : start + AT_ONCE]:
                shown: tuple[bytes, ...] = ()
                if images is not None and rows is not None:
                    row = int(rows[i])
                    if row not in seen:
                        seen[row] = _read(images, row)
                    file = seen[row]
                    if file is None:
                        continue
                    shown = (file,)
                part.append(i)
                conversations.append((Message(self.prompts.render(prompt, **values[i]), images=shown),))
            label = prompt.replace("_", " ")
            found = ask(
                self.chat(spec), conversations, kind=kind, prompt_hash=told, store=self.store, ledger=self.ledger,
                max_new_tokens=max_new_tokens, progress=partial(_labelled, self.progress, label),
            )  # fmt: skip
            for i, answer in zip(part, found, strict=True):
                answers[i] = answer
        return answers

    def text_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) unit vectors of texts by the composition's text encoder."""
        return embed_texts(texts, self._text_encoder, store=self.store, progress=self.progress)

    def image_vectors(self, images: Images) -> tuple[NDArray[np.float32], dict[int, str]]:
        """(N, D) unit vectors of images by the composition's image encoder, and why some could not be read."""
        return embed_images(images, self._image_encoder, store=self.store, progress=self.progress)

    def phrase_vectors(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """(T, 384) unit vectors of short phrases, always by the small text encoder.

        "Same thing" begins at a cosine that differs from encoder to encoder; it is known for this one.
        """
        from symbal_hf.encode import MiniLM

        return embed_texts(phrases, MiniLM(), store=self.store, progress=self.progress)

    def joint(self, part: str) -> JointEncoder:
        """The encoder of images and texts that scorer `part` compares them by."""
        from symbal_hf.encoders import load_joint_encoder

        _, spec = split_part(getattr(self.composition, part))
        spec = spec or self.composition.image_encoder
        if spec not in self._joint:
            self._joint[spec] = load_joint_encoder(spec, **self._place(spec))
        return self._joint[spec]

    @cached_property
    def _joint(self) -> dict[str, JointEncoder]:
        return {}

    @cached_property
    def _text_encoder(self) -> Any:
        from symbal_hf.encoders import load_text_encoder

        spec = self.composition.text_encoder
        return load_text_encoder(spec, **self._place(spec))

    @cached_property
    def _image_encoder(self) -> Any:
        from symbal_hf.encoders import load_image_encoder

        spec = self.composition.image_encoder
        return load_image_encoder(spec, **self._place(spec))

    def _place(self, spec: str) -> dict[str, Any]:
        """Where this encoder runs: the lite ones stay on the CPU, and only transformers' own can be spread."""
        if spec.startswith("lite"):
            return {}
        spread = self.device_map if spec.startswith("transformers:") else None
        return {"device": self.device, "dtype": self.dtype, "device_map": spread}

    def provenance(self) -> dict[str, Any]:
        """Names, revisions and prompt hashes of everything, and how much was asked; no text, image or key."""
        used = {name: self.prompts.hash(name) for name in sorted(self._asked)}
        return {"composition": _without_keys(asdict(self.composition)), "prompts": used, **self.ledger.as_dict()}

    @property
    def _asked(self) -> list[PromptName]:
        from symbal_hf.prompts import PROMPTS

        hashes = {one for group in self.ledger.prompts.values() for one in group}
        return [name for name in PROMPTS if self.prompts.hash(name) in hashes]


def load_chat(
    spec: str, *, concurrency: int = 32, device: str = "auto", dtype: str = "auto", device_map: str | None = None
) -> ChatModel:
    """A chat model by its spec: "hf:MODEL[@revision]" in this process, "openai:URL#MODEL" at a server.

    Raises:
        BadData: a spec of neither form.
    """
    kind, _, rest = spec.partition(":")
    if kind == "hf" and rest:
        from symbal_hf.chat_local import LocalModel

        model, _, revision = rest.partition("@")
        return LocalModel(model, revision=revision or None, device=device, dtype=dtype, device_map=device_map)
    if kind == "openai" and "#" in rest:
        from symbal_hf.chat_server import ServerModel

        url, _, model = rest.rpartition("#")
        if url and model:
            return ServerModel(model, base_url=url, concurrency=concurrency)
    raise BadData(f"chat model {spec!r}; give hf:MODEL[@revision] or openai:http://HOST:PORT/v1#MODEL.")


def _read(images: Images, row: int) -> bytes | None:
    try:
        return images.encoded(row)
    except (OSError, ValueError):
        return None


def _labelled(progress: Progress, label: str, items: Any, _: str, total: int) -> Any:
    return progress(items, label, total)


def _without_keys(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Specs without user names and passwords in their addresses."""
    import re

    return {k: re.sub(r"//[^/@#\s]*@", "//", v) if isinstance(v, str) else v for k, v in parts.items()}
