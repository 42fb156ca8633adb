"""Alignment of facts with their images, by the three scorers of the paper (section 4.1, appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbal_hf.core.errors import BadData
from symbal_hf.data.opening import open_table
from symbal_hf.data.pixels import decode
from symbal_hf.data.table import AuditData
from symbal_hf.language.facts import Facts
from symbal_hf.models.captioner import Upright, captions_of
from symbal_hf.models.chat.prompting import PromptName
from symbal_hf.models.chat.protocol import features
from symbal_hf.models.composition import split_part
from symbal_hf.models.encoders.embedding import embed_images, embed_texts
from symbal_hf.models.parts import Parts

PAIRS = 64  # images and facts that a function of the caller's gets at once


def score_facts(
    parts: Parts, part: str, data: AuditData, facts: Facts, which: NDArray[np.int64]
) -> NDArray[np.float32]:
    """(len(which),) alignment in [0, 1] of these facts with the images of their rows; low is misaligned.

    NaN where the model failed or answered otherwise than asked: a third state, neither aligned nor not. `part` is
    "scorer_1" or "scorer_2"; with references the chat models are told them as the truth.

    Raises:
        BadData: a scorer that needs images, or captions of them, where there are none.
    """
    kind, _ = split_part(getattr(parts.composition, part))
    if kind == "embedding":
        return _cosines(parts, part, data, facts, which)
    if kind == "object":
        return _by_function(parts, part, data, facts, which)
    spec = parts.composition.chat_of(part)
    assert spec is not None  # a composition without one cannot be made
    rows = facts.row[which]
    known = list(range(len(which)))
    prompt: PromptName = "fact_of_text"
    shown: dict[str, Any] = {}
    truth: Sequence[tuple[str, ...]] | None
    if kind == "text-only":
        truth = image_texts(parts, data)
        if truth is None:
            what = "compares facts with a text about the image"
            raise BadData(f"{part}=text-only {what}; give references or a captioner.")
        known = [i for i in known if truth[rows[i]]]
    elif data.images is None:
        raise BadData(f"{part}=vision-language looks at images, and the source has none; use text-only.")
    else:
        truth, shown = _references(data), {"images": data.images, "rows": rows}
        prompt = "fact_of_image_and_text" if truth else "fact_of_image"
    told = [{"reference": " ".join(truth[rows[i]])} if truth else {} for i in known]
    values = [{**one, "fact": facts.text[which[i]]} for i, one in zip(known, told, strict=True)]
    answers = parts.ask(spec, prompt, values, kind="yes", **shown)
    out = np.full(len(which), np.nan, np.float32)
    for i, answer in zip(known, answers, strict=True):
        if answer.yes is not None:
            out[i] = answer.yes
    return out


def _references(data: AuditData) -> Sequence[tuple[str, ...]] | None:
    """What the data tell of each image, where they tell of all."""
    return data.references if data.references is not None and all(data.references) else None


def _cosines(parts: Parts, part: str, data: AuditData, facts: Facts, which: NDArray[np.int64]) -> NDArray[np.float32]:
    """Cosine of fact and image, moved from [-1, 1] to [0, 1]. References play no part (paper appendix A.1)."""
    if data.images is None:
        raise BadData(f"{part}=embedding compares facts with images, and the source has none.")
    encoder = parts.joint(part)
    images, bad = embed_images(data.images, encoder, **parts.shared)
    texts = embed_texts([facts.text[f] for f in which], encoder, **parts.shared)
    cosine = (texts * images[facts.row[which]]).sum(1)
    unread = np.isin(facts.row[which], list(bad))
    return np.where(unread, np.nan, (1 + cosine) / 2).astype(np.float32)


def _by_function(
    parts: Parts, part: str, data: AuditData, facts: Facts, which: NDArray[np.int64]
) -> NDArray[np.float32]:
    """What the caller's function says, a few pairs at a time, since images are large."""
    if data.images is None:
        raise BadData(f"{part} is a function of images and facts, and the source has no images.")
    function, out = parts.function(part), np.full(len(which), np.nan, np.float32)
    for start in parts.progress(range(0, len(which), PAIRS), "scores", -(-len(which) // PAIRS)):
        chosen = which[start : start + PAIRS]
        shown = {int(row): decode(data.images.encoded(int(row))) for row in np.unique(facts.row[chosen])}
        said = list(function([shown[int(facts.row[f])] for f in chosen], [facts.text[f] for f in chosen]))
        scores = np.array([np.nan if s is None else s for s in said], np.float32)
        if len(said) != len(chosen) or ((scores < 0) | (scores > 1)).any():
            raise BadData(
                f"{part} gave {len(said)} scores for {len(chosen)} pairs"
                + (f", between {np.nanmin(scores):g} and {np.nanmax(scores):g}" if len(said) else "")
                + "; it must give one in [0, 1], or None, for each."
            )
        out[start : start + PAIRS] = scores
    return out


def image_texts(parts: Parts, data: AuditData) -> list[tuple[str, ...]] | None:
    """What is told of each image besides its caption: its references, else a caption by the captioner.

    None where the data have no references and the composition no captioner; an empty row where the captioner failed.
    """
    if data.references is not None and any(data.references):
        return [tuple(texts) for texts in data.references]
    spec = parts.composition.captioner
    if spec is None:
        return None
    if spec.startswith("file:"):
        return _from_file(Path(spec[5:]), data)
    if data.images is None:
        raise BadData(f"captioner={spec!r} needs images, and the source has none.")
    answers = captions_of(parts, spec, Upright(data.images), len(data), prompt="caption_of_image")
    return [() if answer.text is None else (answer.text,) for answer in answers]


def _from_file(path: Path, data: AuditData) -> list[tuple[str, ...]]:
    """Captions made elsewhere, paired by id."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path} of captions; make it, or name another captioner.")
    rows = open_table(path)
    name = next((c for c in ("image_id", "id", "row_id") if c in rows.columns), None)
    if name is None or "caption" not in rows.columns:
        raise BadData(f"{path} has the columns {', '.join(rows.columns)}; captions need image_id and caption.")
    known = {str(row[name]): row["caption"] for row in rows if isinstance(row["caption"], str)}
    found: list[tuple[str, ...]] = [(known[row_id],) if known.get(row_id, "").strip() else () for row_id in data.ids]
    if not any(found):
        raise BadData(f"{path} has a caption for none of the {len(data)} rows; pair them by {name}.")
    return found


def image_features(parts: Parts, spec: str, data: AuditData, rows: Sequence[int]) -> list[tuple[str, ...] | None]:
    """What a vision-language model lists for these rows; None where it failed or answered in another form."""
    if data.images is None:
        raise BadData("features of images were asked for, and the source has no images.")
    truth = _references(data)
    values = [{"reference": " ".join(truth[row])} if truth else {} for row in rows]
    prompt: PromptName = "features_of_image_and_text" if truth else "features_of_image"
    answers = parts.ask(spec, prompt, values, images=data.images, rows=rows, kind="text")
    return [None if answer.text is None else features(answer.text) for answer in answers]
