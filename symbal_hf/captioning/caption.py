"""Captions of images by a chat model or a captioner; an image without one is told with the reason, never filled in."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.captioning.caption_files import check_out, image_names, write_captions
from symbal_hf.captioning.options import Captioning
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.options import (
    Asking,
    Chance,
    Placing,
    Reading,
    given,
    refuse_idle,
    refuse_idle_of_chat,
    take,
    values_of,
)
from symbal_hf.core.store import Store
from symbal_hf.data.images_only import ImageRows, load_images
from symbal_hf.models.captioner import ASKED, Upright, captioner_spec, captions_of
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer, ChatModel
from symbal_hf.models.composition import Composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, load_chat, named
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset


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


def caption(
    images: ImageRows | Dataset | Iterable[Mapping[str, Any]] | str | Path,
    *,
    model: str | ChatModel,
    out: str | Path,
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> Captioned:
    """Let a model caption images, into a file that `symbal audit` reads as it is.

    Every caption is stored as it comes, so that a killed run goes on where it was and a second one asks nothing; `out`
    is written at the end, whole. A file that an equal run of fewer images wrote is completed.

    Args:
        images: what `symbal_hf.data.images_only.load_images` reads: a folder, a table with a column of images, shards,
            a Hub id, a `datasets.Dataset`, rows; or what it returned, to which the options of reading no longer apply.
        model: "hf:MODEL[@revision]" in this process (a chat model, or a captioner that takes no words), a server's
            "openai:URL#MODEL", a name of `symbal_hf.models.captioner`, or an object that is a chat model.
        out: a .jsonl file, which names the images, or a .parquet file, which holds them.
        store: where captions are kept; by default one file under the user's cache folder.
        progress: wraps long loops.
        options: flat keywords of `symbal_hf.captioning.options.Captioning` (prompt, by default the packaged one;
            max_tokens, temperature, batch_size), and of `Reading`, `Asking`, `Placing` and `Chance` in
            `symbal_hf.core.options`, as far as captions of images depend on them (image_column, image_root, limit,
            sample, on_bad_row, source_format, allow_download; a folder of `prompts` has a describe_image.jinja).

    Raises:
        BadData: no images, a bad row (policy "error"), a prompt for a captioner that takes none, a folder of prompts
            that holds none of ours, or an `out` that holds something else.
        ChatFailed: the model captions none of the images, or there is no sense in asking on.
        TypeError: an option that is not there.
        ValueError: an option out of its range, or a device for a model that does not run in this process.

    Example:
        A model is a name, or an object that answers as `symbal_hf.models.chat.protocol.ChatModel` says.

        >>> import symbal_hf
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from PIL import Image
        >>> from symbal_hf.core.store import Store
        >>> from symbal_hf.models.chat.protocol import Answer
        >>> class Short:
        ...     name, revision = "object:short", "1"
        ...     def generate(self, conversations, **options):
        ...         for index, _ in enumerate(conversations):
        ...             yield index, Answer(text="A plain square.")
        ...     def probability_of_yes(self, conversations):
        ...         raise NotImplementedError
        >>> folder = Path(mkdtemp())
        >>> Image.new("RGB", (8, 8), "red").save(folder / "red.png")
        >>> store = Store(folder / "store.sqlite")
        >>> done = symbal_hf.caption(folder, model=Short(), out=folder / "captions.jsonl", store=store)
        >>> done.captioned, done.failed
        (1, 0)
        >>> print(done.path.read_text(), end="")
        {"id": "red", "image": "red.png", "caption": "A plain square."}
    """
    groups = take(options, Captioning, Reading, Asking, Placing, Chance, by="caption")
    captioning, reading, asking, placing, chance = groups
    spec, chat = _captioner(model, captioning, asking, placing)
    if not captioning.temperature and reading.sample is None:
        refuse_idle("without sample or a temperature nothing is drawn", seed=chance.seed)
    asked = asked_prompts(chat, captioning.prompt, asking.prompts)
    rows = images if isinstance(images, ImageRows) else load_images(images, **given(reading, chance))
    parts = Parts(
        Composition(captioner=spec, chat=spec), store or Store(), prompts=asked, objects={spec: chat}, progress=progress
    )
    decoding = {"max_tokens": captioning.max_tokens, "temperature": captioning.temperature, "seed": chance.seed}
    libraries = ("symbal-hf", *(("transformers", "torch") if chat.name.startswith("hf:") else ()))
    wordless, out = getattr(chat, "wordless", False), Path(out)
    provenance = {
        "model": chat.name,
        "revision": chat.revision,
        "settings": getattr(chat, "settings", ""),
        "prompt": None if wordless else asked.render(ASKED),
        "prompt_hash": None if wordless else asked.hash(ASKED),
        **decoding,
        "source": rows.read or rows.source,
        "limit": reading.limit,
        "sample": reading.sample,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in libraries}},
    }
    replaces = check_out(out, provenance, rows.ids)
    names: list[str | None] = [None] * len(rows)
    root = None
    if out.suffix.lower() == ".jsonl":
        names, root = image_names(rows.images, out, rows.source)
    shown = Upright(rows.images)
    if reading.on_bad_row == "error":
        _check_readable(shown, rows)
    answers = captions_of(parts, spec, shown, len(rows), **decoding)
    outcome = _outcome(answers, rows, shown, chat, parts)
    provenance |= outcome | {"image_root": None if root is None else str(root)}
    good = [i for i, answer in enumerate(answers) if answer.text is not None]
    written = [{"id": rows.ids[i], "image": names[i], "caption": answers[i].text, **rows.others[i]} for i in good]
    write_captions(out, written, rows.images, good, provenance, replaces)
    skipped = tuple(Skipped(**row) for row in outcome["skipped"])
    counts = {name: outcome[name] for name in ("rows", "captioned", "cached", "failed")}
    return Captioned(out, skipped=skipped, provenance=provenance, **counts)


def _captioner(
    model: str | ChatModel, captioning: Captioning, asking: Asking, placing: Placing
) -> tuple[str, ChatModel]:
    """The captioner's spec and the captioner."""
    placed = {"concurrency": asking.concurrency, **values_of(placing)}
    asked = captioner_spec(model) if isinstance(model, str) else model
    refuse_idle_of_chat(asked, batch_size=given(captioning).get("batch_size"), **placed)
    if isinstance(asked, str):
        return asked, load_chat(asked, batch_size=captioning.batch_size, **placed)
    (name,) = (name for name in named({"captioner": asked})[0].values() if name is not None)
    return name, asked


def _outcome(
    answers: Sequence[Answer], images: ImageRows, shown: Upright, chat: ChatModel, parts: Parts
) -> dict[str, Any]:
    """How many rows have a caption, how many questions that took, and why other rows have none.

    Raises:
        BadData: no image can be read.
        ChatFailed: no image has a caption.
    """
    lacking = [row for row, answer in enumerate(answers) if answer.text is None]
    if len(lacking) == len(images):
        if len(shown.bad) == len(images):
            raise BadData(
                f"none of the {len(images)} images of {images.source} can be read; the first: {shown.bad[0]}."
            )
        first = next(answer.error for row, answer in enumerate(answers) if row not in shown.bad)
        raise ChatFailed(
            f"{chat.name} captions none of the {len(images)} images of {images.source}; the first: {first}"
        )
    skipped = [{"row_id": row.row_id, "reason": row.reason} for row in images.skipped]
    for row in lacking:
        said = (answers[row].error or "no answer came").rstrip(".")
        reason = f"unreadable image: {shown.bad[row]}" if row in shown.bad else said
        skipped.append({"row_id": images.ids[row], "reason": reason})
    counts = parts.ledger.counts.values()
    return {
        "rows": len(images) + len(images.skipped),
        "captioned": len(images) - len(lacking),
        "failed": sum(row not in shown.bad for row in lacking),
        "asked": sum(count.asked for count in counts),
        "cached": sum(count.cached for count in counts),
        "skipped": skipped,
    }


def asked_prompts(chat: ChatModel, prompt: str | None, prompts: str | Path | None) -> Prompts:
    """The prompts with the one that captions are asked by.

    Raises `BadData`: a prompt for a captioner that takes none, two prompts, or a folder without this one.
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
    chosen = Prompts(folder)
    if folder is not None and not (folder / f"{ASKED}.jinja").is_file():
        raise BadData(f"{folder} holds no {ASKED}.jinja, which is the prompt of captions.")
    return chosen


def _check_readable(shown: Upright, images: ImageRows) -> None:
    for row in range(len(images)):
        try:
            shown.encoded(row)
        except ValueError as error:
            raise BadData(
                f"row {images.ids[row]} of {images.source}: unreadable image: {error}; mend it or pass "
                "on_bad_row='warn'."
            ) from error
