"""Names for what a group of facts or images has in common, asked of a chat model (paper sections 4.1 and 4.2)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from symbal_hf.core.errors import BadData
from symbal_hf.data.table import AuditData
from symbal_hf.models.chat.protocol import features
from symbal_hf.models.composition import split_part
from symbal_hf.models.parts import Parts
from symbal_hf.models.scorers import image_features, image_texts

T = TypeVar("T")


def name_facts(parts: Parts, part: str, texts: Sequence[str], *, k: int = 5, seed: int = 0) -> list[str]:
    """Up to `k` names of what these facts speak of, the most frequent first; none for the summarizer "phrases".

    The model lists the features of each fact and then says which are listed most often.
    """
    return _listed(parts, part, _sample(sorted(texts), parts.members, seed), k=k)


def _listed(parts: Parts, part: str, texts: Sequence[str], *, k: int) -> list[str]:
    """Names of what these texts speak of, by a chat model or the caller's function."""
    if split_part(getattr(parts.composition, part))[0] == "object":
        said = parts.function(part)(list(texts))
        if isinstance(said, str) or not all(isinstance(name, str) for name in said):
            raise BadData(f"{part} gave {said!r}; it must give a list of names, best first.")
        return list(dict.fromkeys(name.strip().lower() for name in said if name.strip()))[:k]
    spec = parts.composition.chat_of(part)
    if spec is None:
        return []
    answers = parts.ask(spec, "features_of_text", [{"text": text} for text in texts], kind="text")
    return most_frequent(parts, spec, [features(answer.text) for answer in answers if answer.text is not None], k=k)


def name_images(
    parts: Parts, part: str, data: AuditData, rows: Sequence[int], *, k: int = 5, seed: int = 0
) -> list[str]:
    """Up to `k` names of what the images of these rows show, the most frequent first; none for "phrases".

    "text-only" reads what is told of the images (references, else the captioner, else raises `BadData`);
    "vision-language" looks at them.
    """
    kind, _ = split_part(getattr(parts.composition, part))
    spec = parts.composition.chat_of(part)
    if spec is None and kind != "object":
        return []
    chosen = _sample(sorted(int(row) for row in rows), parts.members, seed)
    if spec is not None and kind == "vision-language":
        return most_frequent(parts, spec, image_features(parts, spec, data, chosen), k=k)
    told = image_texts(parts, data)
    if told is None:
        raise BadData(f"{part}={kind} reads captions of images; give references or a captioner.")
    return _listed(parts, part, [" ".join(told[row]) for row in chosen if told[row]], k=k)


def most_frequent(parts: Parts, spec: str, lists: Sequence[Sequence[str] | None], *, k: int) -> list[str]:
    """The `k` names that occur in the most lists, by the same model.

    Names that it makes up are dropped. Where it gives fewer than `k`, or nothing that can be read, those that are
    counted most often follow: an answer in another form must not cost a whole cluster its name.
    """
    full = [list(names) for names in lists if names]
    if not full:
        return []
    counted = Counter(name for names in full for name in dict.fromkeys(names))
    values = [{"lists": full, "k": k}]
    (answer,) = parts.ask(spec, "most_frequent", values, kind="text", max_new_tokens=16 * k + 16)
    said = features(answer.text) if answer.text is not None else None
    ranked = sorted(counted, key=lambda name: (-counted[name], name))
    return list(dict.fromkeys([*(name for name in said or () if name in counted), *ranked]))[:k]


def _sample(items: Sequence[T], n: int, seed: int) -> list[T]:
    return list(items) if len(items) <= n else random.Random(seed).sample(list(items), n)
