"""Captions of images by a chat model or a captioner; an image without one is told with the reason, never filled in."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.captioning.caption_files import check_out, image_names, write_captions
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.options import refuse_idle, refuse_idle_of_chat
from symbal_hf.core.store import Store
from symbal_hf.data.columns import SourceFormat
from symbal_hf.data.images_only import ImageRows, load_images
from symbal_hf.data.pixels import upright
from symbal_hf.models.captioners import captioner_spec
from symbal_hf.models.chat.prompting import PromptName, Prompts
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.composition import Composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, load_chat, named
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

    from symbal_hf.data.table import Images, OnBadRow
    from symbal_hf.models.chat.protocol import ChatModel

ASKED: PromptName = "describe_image"
BATCH = 8  # images at once in this process
# How answers begin that are no caption; such a one would count as a false statement about the image.
REFUSAL = re.compile(
    r"(?:i['’]?m|i am) (?:(?:very|really|so) )?(?:sorry|afraid|unable|not able)\b"
    r"|(?:sorry|unfortunately),? (?:but )?(?:i\b|there is no image|no image)"
    r"|i (?:cannot|can['’]t|can not|could not|couldn['’]t) (?:actually )?(?:access|analy[sz]e|answer|assist|caption|"
    r"comply|describe|discuss|fulfil|generate|help|identify|open|process|provide|see|view)"
    r"|as an? (?:ai|language model|artificial)\b"
    r"|(?:there is |there['’]s )?no image (?:was |is |has been )?(?:attached|given|provided|uploaded)"
    r"|please (?:attach|provide|share|upload)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Captioned:
    """What came of a run.

    Attributes:
        path: the file of captions.
        rows: of the source, with those that were left out.
        captioned: rows that the file holds.
        cached: captions that an earlier run had; equal images are asked about once.
        failed: readable images of which the model gave no caption: no answer, an empty one, a refusal.
        skipped: all rows that the file lacks, with reasons.
        provenance: how the captions were made, as the file beside `path` tells.
    """

    path: Path
    rows: int
    captioned: int
    cached: int
    failed: int
    skipped: tuple[Skipped, ...]
    provenance: Mapping[str, Any]


class Upright:
    """Images as every reader sees them alike; `bad` has the rows that could not be read, with reasons."""

    def __init__(self, images: Images) -> None:
        self.bad: dict[int, str] = {}
        self._images = images

    def encoded(self, row: int) -> bytes:
        """The file's bytes, or a PNG of its pixels.

        Raises:
            ValueError: an image that cannot be read.
        """
        try:
            return upright(self._images.encoded(row))
        except (OSError, SyntaxError, ValueError) as error:
            self.bad[row] = str(error).rstrip(".")
            raise ValueError(self.bad[row]) from error


def captions_of(
    parts: Parts, spec: str, images: Upright, n: int, *, prompt: PromptName = ASKED, max_tokens: int = 256,
    temperature: float = 0.0, seed: int = 0,
) -> list[Answer]:  # fmt: skip
    """A caption of each of the N images, or why there is none: an empty answer or a refusal is no caption.

    Args:
        parts: with the model `spec`.
        prompt: what the model is asked; a captioner that takes no words is asked nothing.
        max_tokens: of a caption, at least 1.
        temperature: 0 for the likeliest caption; what is drawn above depends on `seed`.

    Raises:
        ChatFailed: the model answers nothing.
    """
    answers = parts.ask(
        spec, prompt, [{}] * n, images=images, rows=range(n), kind="text", max_new_tokens=max_tokens,
        temperature=temperature, seed=seed,
    )  # fmt: skip
    return [_settled(answer) for answer in answers]


def _settled(answer: Answer) -> Answer:
    if answer.text is None:
        return answer
    text = answer.text.strip()
    if not any(c.isalnum() for c in text):
        return Answer(error="the model wrote nothing.")
    if REFUSAL.match(text):
        return Answer(error=f"the model refused: {text[:60]!r}{'...' * (len(text) > 60)}")
    return Answer(text=text)


def caption(
    images: ImageRows | Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    model: str | ChatModel,
    out: str | Path,
    prompt: str | None = None,
    prompts: str | Path | None = None,
    max_tokens: int = 512,
    temperature: float = 0.0,
    seed: int = 0,
    batch_size: int = BATCH,
    concurrency: int = 32,
    device: str = "auto",
    dtype: str = "auto",
    device_map: str | None = None,
    image_column: str | None = None,
    image_root: str | Path | None = None,
    limit: int | None = None,
    sample: int | None = None,
    on_bad_row: OnBadRow = "warn",
    source_format: SourceFormat = "auto",
    allow_download: bool = False,
    store: Store | None = None,
    progress: Progress = quiet,
) -> Captioned:
    """Let a model caption images, into a file that `symbal audit` reads as it is.

    Every caption is stored as it comes, so that a killed run goes on where it was and a second one asks nothing; `out`
    is written at the end, whole. A file that an equal run of fewer images wrote is completed.

    Args:
        images: what `symbal_hf.data.images_only.load_images` reads: a folder, a table with a column of images,
            shards, a Hub
            id, a `datasets.Dataset`, rows; or what it returned, to which the options of reading no longer apply.
        model: "hf:MODEL[@revision]" in this process (a chat model, or a captioner that takes no words), a server's
            "openai:URL#MODEL", a name of `symbal_hf.models.captioners`, or an object that is a chat model.
        out: a .jsonl file, which names the images, or a .parquet file, which holds them.
        prompt: what the model is asked, word for word; by default the packaged prompt "describe_image".
        prompts: folder whose describe_image.jinja takes the place of the packaged one.
        max_tokens: of a caption, at least 1; a longer one is cut off there.
        temperature: 0 for the likeliest caption; above 0 captions are drawn, by `seed`.
        seed: of `sample`, and of captions that are drawn.
        batch_size: images at once in this process; fewer where they do not fit in memory.
        concurrency: questions in flight to one server.
        device: and `dtype`, `device_map`: where a model of this process runs; see `symbal_hf.models.parts.Parts`.
        image_column: and the other options of reading: see `symbal_hf.data.images_only.load_images`.
        store: where captions are kept; by default one file under the user's cache folder.
        progress: wraps long loops.

    Raises:
        BadData: no images, a bad row (policy "error"), a prompt for a captioner that takes none, or an `out` that holds
            something else.
        ChatFailed: the model captions none of the images, or there is no sense in asking on.
        ValueError: an option out of its range.
    """
    if max_tokens < 1 or temperature < 0:
        raise ValueError(f"max_tokens={max_tokens}, temperature={temperature}; at least 1 token and 0 are needed.")
    out = Path(out)
    if isinstance(model, str):
        spec = captioner_spec(model)
        chat = load_chat(
            spec, concurrency=concurrency, batch_size=batch_size, device=device, dtype=dtype, device_map=device_map
        )
    else:
        (spec,) = (name for name in named({"captioner": model})[0].values() if name is not None)
        chat = model
    refuse_idle_of_chat(
        spec, concurrency=concurrency, device=device, dtype=dtype, device_map=device_map,
        batch_size=None if batch_size == BATCH else batch_size,
    )  # fmt: skip
    if not temperature and sample is None:
        refuse_idle("without sample or a temperature nothing is drawn", seed=seed)
    asked = asked_prompts(chat, prompt, prompts)
    rows = images if isinstance(images, ImageRows) else load_images(
        images, image_column=image_column, image_root=image_root, limit=limit, sample=sample, seed=seed,
        on_bad_row=on_bad_row, source_format=source_format, allow_download=allow_download,
    )  # fmt: skip
    text = None if getattr(chat, "wordless", False) else asked.render(ASKED)
    made: dict[str, Any] = {
        "model": chat.name, "revision": chat.revision, "settings": getattr(chat, "settings", ""), "prompt": text,
        "prompt_hash": None if text is None else asked.hash(ASKED), "max_tokens": max_tokens,
        "temperature": temperature, "seed": seed, "source": rows.read or rows.source, "limit": limit, "sample": sample,
        "versions": _versions(chat.name),
    }  # fmt: skip
    replaces = check_out(out, made, rows.ids)
    names: list[str | None] = [None] * len(rows)
    root = None
    if out.suffix.lower() == ".jsonl":
        names, root = image_names(rows.images, out, rows.source)
    seen = Upright(rows.images)
    if on_bad_row == "error":
        _all_readable(seen, rows)
    parts = Parts(
        Composition(captioner=spec, chat=spec), store or Store(), prompts=asked, objects={spec: chat}, progress=progress
    )
    answers = captions_of(parts, spec, seen, len(rows), max_tokens=max_tokens, temperature=temperature, seed=seed)
    good = [i for i, answer in enumerate(answers) if answer.text is not None]
    if not good:
        if len(seen.bad) == len(rows):
            raise BadData(f"none of the {len(rows)} images of {rows.source} can be read; the first: {seen.bad[0]}.")
        reason = next(answer.error for i, answer in enumerate(answers) if i not in seen.bad)
        raise ChatFailed(f"{chat.name} captions none of the {len(rows)} images of {rows.source}; the first: {reason}")
    lacking = [i for i, answer in enumerate(answers) if answer.text is None]
    skipped = (*rows.skipped, *(Skipped(rows.ids[i], _reason(answers[i], seen.bad.get(i))) for i in lacking))
    counts = parts.ledger.counts.values()
    failed = sum(i not in seen.bad for i in lacking)
    done = {"rows": len(rows) + len(rows.skipped), "captioned": len(good), "failed": failed}
    cached = sum(count.cached for count in counts)
    made |= done | {
        "asked": sum(count.asked for count in counts), "cached": cached,
        "skipped": [{"row_id": row.row_id, "reason": row.reason} for row in skipped],
        "image_root": None if root is None else str(root),
    }  # fmt: skip
    written = [{"id": rows.ids[i], "image": names[i], "caption": answers[i].text, **rows.others[i]} for i in good]
    write_captions(out, written, rows.images, good, made, replaces)
    return Captioned(out, cached=cached, skipped=skipped, provenance=made, **done)


def asked_prompts(chat: ChatModel, prompt: str | None, prompts: str | Path | None) -> Prompts:
    """The prompts with the one that captions are asked by.

    Raises:
        BadData: a prompt for a captioner that takes none, two prompts, or a folder without this one.
    """
    if prompt is not None and prompts is not None:
        raise BadData("two prompts were given; give prompt or prompts, not both.")
    if (prompt is not None or prompts is not None) and getattr(chat, "wordless", False):
        raise BadData(f"{chat.name} captions images and is asked nothing; leave the prompt out.")
    if prompt is not None:
        if not prompt.strip():
            raise BadData(f"prompt={prompt!r} asks nothing; give a text, such as 'What is in this image?'.")
        return Prompts(texts={ASKED: prompt})
    folder = None if prompts is None else Path(prompts)
    own = Prompts(folder)
    if folder is not None and not (folder / f"{ASKED}.jinja").is_file():
        raise BadData(f"{folder} holds no {ASKED}.jinja, which is the prompt of captions.")
    return own


def _all_readable(seen: Upright, rows: ImageRows) -> None:
    for row in range(len(rows)):
        try:
            seen.encoded(row)
        except ValueError as error:
            raise BadData(
                f"row {rows.ids[row]} of {rows.source}: unreadable image: {error}; mend it or pass on_bad_row='warn'."
            ) from error


def _reason(answer: Answer, unread: str | None) -> str:
    return (answer.error or "no answer came").rstrip(".") if unread is None else f"unreadable image: {unread}"


def _versions(model: str) -> dict[str, str]:
    libraries = ("symbal-hf", *(("transformers", "torch") if model.startswith("hf:") else ()))
    return {"python": platform.python_version(), **{name: version(name) for name in libraries}}
