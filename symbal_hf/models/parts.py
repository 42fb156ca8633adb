"""The models of a composition, each loaded once when it is first asked, whatever number of parts it serves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Group, values_of
from symbal_hf.core.store import Store
from symbal_hf.data.table import AuditData, Images
from symbal_hf.models.chat.asking import Asking, Ledger, ask
from symbal_hf.models.chat.local import LocalModel
from symbal_hf.models.chat.prompting import PROMPTS, PromptName, Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel, Message
from symbal_hf.models.composition import CHATS, Composition, split_part
from symbal_hf.models.encoders.embedding import Progress, embed_images, embed_texts, quiet
from symbal_hf.models.encoders.lite import LiteVision, MiniLM
from symbal_hf.models.encoders.load import Kind, load_encoder


class Encoded(Protocol):
    """Encoded images by row; `encoded` raises OSError or ValueError for one that cannot be read."""

    def encoded(self, row: int) -> bytes:
        """The file's bytes."""


AT_ONCE = 1024  # questions whose images are in memory together
AT_ONCE_BYTES = 2**28  # of these images, however few they are then


@dataclass
class Parts:
    """What a composed audit works with; more of the options is said where they are declared, in `core.options`.

    `objects` holds models given as objects, by spec, and functions by the part that they play (see `named`); other
    models are loaded by their specs. `strategy` "auto" shares the work with all processes of a launcher, which must
    then all do the same.
    """

    composition: Composition  # which models
    store: Store  # where vectors and answers are kept
    prompts: Prompts = field(default_factory=Prompts)  # what chat models are asked
    ledger: Ledger = field(default_factory=Ledger)  # who was asked how much
    objects: dict[str, Any] = field(default_factory=dict)
    concurrency: int = 32
    members: int = 60
    budget: Any = None
    device: str = "auto"
    dtype: str = "auto"
    device_map: str | None = None
    devices: int = 1
    num_nodes: int = 1
    strategy: str | None = None
    progress: Progress = quiet  # wraps long loops

    def __post_init__(self) -> None:
        self._wanted = self.composition
        self._encoders: dict[tuple[str, str], Any] = {}

    def settle(self, data: AuditData) -> None:
        """Let scorers "auto" be what these data allow; raises `BadData` for a scorer that they do not."""
        self.composition = self._wanted.settled(
            objects=data.objects is not None, references=data.references is not None, images=data.images is not None
        )

    def chat(self, spec: str) -> ChatModel:
        """The chat model of this spec."""
        if spec not in self.objects:
            self.objects[spec] = load_chat(
                spec, concurrency=self.concurrency, device=self.device, dtype=self.dtype, device_map=self.device_map
            )
        return self.objects[spec]

    def function(self, part: str) -> Any:
        """The caller's function that plays scorer or summarizer `part`."""
        if part not in self.objects:
            raise BadData(f"{part}={getattr(self.composition, part)!r} was a function of the caller's; give it again.")
        return self.objects[part]

    def ask(
        self,
        spec: str,
        prompt: PromptName,
        values: Sequence[Mapping[str, Any]],
        *,
        images: Encoded | None = None,
        rows: Sequence[int] | NDArray[np.int64] | None = None,
        kind: Asking,
        **decoding: Any,
    ) -> list[Answer]:
        """The answers of model `spec` to a prompt, one for each of `values`, about the images of `rows` where given.

        Images are read some hundred at a time, so that no more of them are held. A captioner that takes no words is
        shown the image alone. `decoding` is max_new_tokens, temperature and seed of `symbal_hf.models.chat.asking.ask`.
        """
        model = self.chat(spec)
        wordless = kind == "text" and getattr(model, "wordless", False)
        answers: list[Answer] = [Answer(error="no such image")] * len(values)
        # All questions about one image come together: a server keeps what it made of it.
        order = list(range(len(values))) if rows is None else sorted(range(len(values)), key=lambda i: int(rows[i]))
        answered = False
        told = "" if wordless else self.prompts.hash(prompt)
        how: dict[str, Any] = {"prompt_hash": told, "store": self.store, "ledger": self.ledger, **decoding}

        def labelled(items: Any, _: str, total: int) -> Any:
            return self.progress(items, prompt.replace("_", " "), total)

        for piece in _pieces(order, images, rows, answers):
            texts = ["" if wordless else self.prompts.render(prompt, **values[i]) for i, _ in piece]
            asked = [(Message(text, images=shown),) for text, (_, shown) in zip(texts, piece, strict=True)]
            found = ask(model, asked, kind=kind, progress=labelled, answers_before=answered, **how)
            for (i, _), answer in zip(piece, found, strict=True):
                answers[i] = answer
                answered = answered or answer.text is not None
        return answers

    def text_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(T, D) unit vectors of texts by the composition's text encoder."""
        return embed_texts(texts, self._encoder(self.composition.text_encoder, "text"), **self.shared)

    def image_vectors(self, images: Images) -> tuple[NDArray[np.float32], dict[int, str]]:
        """(N, D) unit vectors of images by the composition's image encoder, and why some could not be read."""
        return embed_images(images, self._encoder(self.composition.image_encoder, "image"), **self.shared)

    def phrase_vectors(self, phrases: Sequence[str]) -> NDArray[np.float32]:
        """(T, 384) unit vectors of short phrases, always by the small text encoder.

        "Same thing" begins at a cosine that differs from encoder to encoder; it is known for this one.
        """
        return embed_texts(phrases, MiniLM(), **self.shared)

    @property
    def shared(self) -> dict[str, Any]:
        """How this audit embeds, as keywords of `embed_texts` and `embed_images`."""
        return {
            "store": self.store, "progress": self.progress, "devices": self.devices, "num_nodes": self.num_nodes,
            "strategy": self.strategy,
        }  # fmt: skip

    def joint(self, part: str) -> Any:
        """The encoder of images and texts that scorer `part` compares them by."""
        kind, spec = split_part(getattr(self.composition, part))
        return self._encoder((spec if kind == "embedding" else None) or self.composition.image_encoder, "joint")

    def _encoder(self, spec: str, what: Kind) -> Any:
        if (spec, what) not in self._encoders:
            # The lite ones stay on the CPU, and only transformers' own can be spread.
            spread = self.device_map if spec.startswith("transformers:") else None
            place: dict[str, Any] = {"device": self.device, "dtype": self.dtype, "device_map": spread}
            place = {} if spec.startswith("lite") else place
            self._encoders[spec, what] = self.objects.get(spec) or load_encoder(what, spec, **place)
        return self._encoders[spec, what]

    def provenance(self) -> dict[str, Any]:
        """Names, revisions and prompt hashes of everything, and how much was asked; no text, image or key."""
        asked = {told for count in self.ledger.counts.values() for told in count.prompts}
        used = {name: told for name in sorted(PROMPTS) if (told := self.prompts.hash(name)) in asked}
        composition = without_passwords(asdict(self.composition))
        return {"composition": composition, **self.lite(), "prompts": used, **self.ledger.as_dict()}

    def lite(self) -> dict[str, str]:
        """The packaged models that judge, by what they are for."""
        models = {"text": MiniLM.name}
        if self.composition.calibrated:
            vision = LiteVision()
            models |= {"image": vision.name, "adapter": vision.fingerprint}
        return models


def _pieces(
    order: Sequence[int], images: Encoded | None, rows: Any, answers: list[Answer]
) -> Iterator[list[tuple[int, tuple[bytes, ...]]]]:
    """Questions with their images, as many at a time as memory has room for; `answers` tells why some have none."""
    piece: list[tuple[int, tuple[bytes, ...]]] = []
    seen: dict[int, bytes | str] = {}
    size = 0
    for i in order:
        shown: tuple[bytes, ...] = ()
        if images is not None and rows is not None:
            row = int(rows[i])
            if row not in seen:
                try:
                    seen[row] = images.encoded(row)
                except (OSError, ValueError) as error:
                    seen[row] = f"its image cannot be read ({error})"
                size += len(seen[row])
            file = seen[row]
            if isinstance(file, str):
                answers[i] = Answer(error=file)
                continue
            shown = (file,)
        piece.append((i, shown))
        if len(piece) == AT_ONCE or size > AT_ONCE_BYTES:
            yield piece
            piece, seen, size = [], {}, 0
    if piece:
        yield piece


def parts_with(composition: Composition, *groups: Group, **fields: Any) -> Parts:
    """`Parts` with the options of these groups, `Asking` among them, and further fields."""
    options = values_of(*groups)
    folder = options.pop("prompts")
    return Parts(composition, prompts=Prompts(None if folder is None else Path(folder)), **options, **fields)


def named(given: Mapping[str, Any]) -> tuple[dict[str, str | None], dict[str, Any]]:
    """Parts (-> spec, object or None) of which some are objects: what a `Composition` calls each, and the objects.

    A chat model (`symbal_hf.models.chat.protocol.ChatModel`) may be any part but an encoder; as a scorer it looks at
    images, as the first summarizer it reads, as the second it looks. An encoder (`symbal_hf.models.encoders.load`) may
    be an encoder, or a scorer if it joins images and texts. A function may be a scorer, `f(images, facts)` -> alignment
    of each pair in [0, 1] or None, or a summarizer, `f(texts)` -> names of what they share, best first.

    Raises:
        BadData: an object that cannot play its part, or a name that is no encoder's, whether or not it is loaded.
    """
    specs: dict[str, str | None] = {}
    objects: dict[str, Any] = {}
    for part, value in given.items():
        if value is None or isinstance(value, str):
            kind, _, model = (value or "").partition(":")
            known = value in (None, "lite") or (kind in ("lite", "open_clip", "transformers", "st") and model)
            if part.endswith("_encoder") and not known:
                raise BadData(f"{part}={value!r}; give lite, open_clip:NAME/TAG, transformers:MODEL or st:MODEL.")
            specs[part] = value
            continue
        kind = _kind(part, value)
        name = str(getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__))
        if kind == "object":
            specs[part], objects[part] = f"object:{name}", value
            continue
        if not part.endswith("_encoder") and kind != "embedding" and name.partition(":")[0] not in CHATS:
            name = f"object:{name}"
        specs[part], objects[name] = (f"{kind}:{name}" if kind else name), value
    return specs, objects


def _kind(part: str, value: Any) -> str:
    """What goes before the name of this object in the spec of `part`; raises where it cannot play it."""
    role = part.rstrip("_12")
    chat = hasattr(value, "generate") and hasattr(value, "probability_of_yes")
    sees, reads = hasattr(value, "encode_pixels"), hasattr(value, "encode")
    if role in ("scorer", "summarizer") and chat:
        return "text-only" if part == "summarizer_1" else "vision-language"
    if role == "scorer" and sees and reads:
        return "embedding"
    if (role in ("chat", "captioner") and chat) or (part == "text_encoder" and reads) or (
        part == "image_encoder" and sees
    ):  # fmt: skip
        return ""
    if role in ("scorer", "summarizer") and callable(value):
        return "object"
    able = {"scorer": "a chat model, an encoder of images and texts, or a function of (images, facts)",
            "summarizer": "a chat model or a function of texts"}  # fmt: skip
    need = able.get(role, "an encoder with encode or encode_pixels" if "encoder" in part else "a chat model")
    raise BadData(f"{part}={type(value).__name__} object; give a name, or {need}.")


def load_chat(spec: str, *, concurrency: int = 32, batch_size: int = 8, **place: Any) -> ChatModel:
    """A chat model by its spec: "hf:MODEL[@revision]" in this process, "openai:URL#MODEL" at a server.

    `place` has the options of `symbal_hf.core.options.Placing`, for a model of this process.
    """
    kind, _, rest = spec.partition(":")
    if kind == "hf" and rest:
        model, _, revision = rest.partition("@")
        return LocalModel(model, revision=revision or None, batch_size=batch_size, **place)
    if kind == "openai" and "#" in rest:
        from symbal_hf.models.chat.server import ServerModel

        url, _, model = rest.rpartition("#")
        if url and model:
            return ServerModel(model, base_url=url, concurrency=concurrency)
    if kind == "object":
        raise BadData(f"chat model {spec!r} was an object of the caller's; give it again.")
    raise BadData(f"chat model {spec!r}; give hf:MODEL[@revision] or openai:http://HOST:PORT/v1#MODEL.")


def without_passwords(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Specs without user names and passwords in their addresses."""
    return {k: re.sub(r"//[^/@#\s]*@", "//", v) if isinstance(v, str) else v for k, v in parts.items()}
