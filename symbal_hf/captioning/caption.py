"""Captions of images by a chat model or a captioner; an image without one is told with the reason, never filled in."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.captioning.caption_files import check_out, image_names, write_captions
from symbal_hf.core.devices import check_device, check_dtype
from symbal_hf.core.errors import BadData, ChatFailed
from symbal_hf.core.options import SourceFormat, refuse_idle, refuse_idle_of_chat
from symbal_hf.core.store import Store
from symbal_hf.data.images_only import ImageRows, load_images
from symbal_hf.models.captioner import ASKED, Upright, captioner_spec, captions_of
from symbal_hf.models.chat.prompting import Prompts
from symbal_hf.models.chat.protocol import Answer
from symbal_hf.models.chat.server import check_concurrency
from symbal_hf.models.composition import Composition
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.parts import Parts, load_chat, named
from symbal_hf.results.findings import Skipped

if TYPE_CHECKING:
    from datasets import Dataset

    from symbal_hf.core.options import OnBadRow
    from symbal_hf.models.chat.protocol import ChatModel

BATCH = 8  # images at once in this process


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
        images: what `symbal_hf.data.images_only.load_images` reads: a folder, a table with a column of images, shards,
            a Hub id, a `datasets.Dataset`, rows; or what it returned, to which the options of reading no longer apply.
        model: "hf:MODEL[@revision]" in this process (a chat model, or a captioner that takes no words), a server's
            "openai:URL#MODEL", a name of `symbal_hf.models.captioner`, or an object that is a chat model.
        out: a .jsonl file, which names the images, or a .parquet file, which holds them.
        prompt: what the model is asked, word for word; by default the packaged prompt "describe_image".
        prompts: folder whose describe_image.jinja takes the place of the packaged one.
        max_tokens: of a caption, at least 1; a longer one is cut off there.
        temperature: 0 for the likeliest caption; above 0 captions are drawn, by `seed`.
        seed: of `sample`, and of captions that are drawn.
        batch_size: images at once in this process; fewer where they do not fit in memory.
        concurrency: questions in flight to one server, at least 1.
        device: where a model of this process runs: "auto", "cpu", "mps", "cuda", "cuda:1".
        dtype: its numbers: "auto" (bfloat16 on a GPU that has it, else float32), "float32", "bfloat16", "float16".
        device_map: "auto" spreads a model that fits no single GPU over all of them.
        image_column: and the other options of reading: see `symbal_hf.data.images_only.load_images`.
        store: where captions are kept; by default one file under the user's cache folder.
        progress: wraps long loops.

    Returns:
        Where the captions are, how many, and which rows have none.

    Raises:
        BadData: no images, a bad row (policy "error"), a prompt for a captioner that takes none, a folder of prompts
            that holds none of ours, or an `out` that holds something else.
        ChatFailed: the model captions none of the images, or there is no sense in asking on.
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
    if max_tokens < 1 or temperature < 0:
        raise ValueError(f"max_tokens={max_tokens}, temperature={temperature}; at least 1 token and 0 are needed.")
    spec, chat = _captioner(
        model, concurrency=concurrency, batch_size=batch_size, device=device, dtype=dtype, device_map=device_map
    )
    if not temperature and sample is None:
        refuse_idle("without sample or a temperature nothing is drawn", seed=seed)
    asked = asked_prompts(chat, prompt, prompts)
    rows = images
    if not isinstance(rows, ImageRows):
        rows = load_images(
            rows,
            image_column=image_column,
            image_root=image_root,
            limit=limit,
            sample=sample,
            seed=seed,
            on_bad_row=on_bad_row,
            source_format=source_format,
            allow_download=allow_download,
        )
    composition = Composition(captioner=spec, chat=spec)
    parts = Parts(composition, store or Store(), prompts=asked, objects={spec: chat}, progress=progress)
    decoding = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
    chosen = {"limit": limit, "sample": sample}
    return _captioned(Path(out), rows, parts, decoding, chosen, strict=on_bad_row == "error")


def _captioned(
    out: Path, rows: ImageRows, parts: Parts, decoding: dict[str, Any], chosen: dict[str, Any], *, strict: bool
) -> Captioned:
    """Caption the images, and write those that got a caption."""
    spec = str(parts.composition.captioner)
    chat = parts.chat(spec)
    asked = None if getattr(chat, "wordless", False) else parts.prompts
    provenance = {
        "model": chat.name,
        "revision": chat.revision,
        "settings": getattr(chat, "settings", ""),
        "prompt": asked and asked.render(ASKED),
        "prompt_hash": asked and asked.hash(ASKED),
        **decoding,
        "source": rows.read or rows.source,
        **chosen,
        "versions": _versions(chat.name),
    }
    replaces = check_out(out, provenance, rows.ids)
    names: Sequence[str | None] = [None] * len(rows)
    root = None
    if out.suffix.lower() == ".jsonl":
        names, root = image_names(rows.images, out, rows.source)
    shown = Upright(rows.images)
    if strict:
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
    model: str | ChatModel, *, concurrency: int, batch_size: int, device: str, dtype: str, device_map: str | None
) -> tuple[str, ChatModel]:
    """The captioner's spec and the captioner; options are checked whether they mean something to this one or not."""
    check_concurrency(concurrency)
    check_device(device)
    check_dtype(dtype)
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} leaves no image to caption at once; give at least 1.")
    refuse_idle_of_chat(
        captioner_spec(model) if isinstance(model, str) else model,
        concurrency=concurrency,
        device=device,
        dtype=dtype,
        device_map=device_map,
        batch_size=None if batch_size == BATCH else batch_size,
    )
    if isinstance(model, str):
        spec = captioner_spec(model)
        return spec, load_chat(
            spec, concurrency=concurrency, batch_size=batch_size, device=device, dtype=dtype, device_map=device_map
        )
    (spec,) = (name for name in named({"captioner": model})[0].values() if name is not None)
    return spec, model


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
        reason = next(answer.error for row, answer in enumerate(answers) if row not in shown.bad)
        raise ChatFailed(
            f"{chat.name} captions none of the {len(images)} images of {images.source}; the first: {reason}"
        )
    skipped = [{"row_id": row.row_id, "reason": row.reason} for row in images.skipped]
    skipped += [{"row_id": images.ids[row], "reason": _reason(answers[row], shown.bad.get(row))} for row in lacking]
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


def _reason(answer: Answer, unread: str | None) -> str:
    return (answer.error or "no answer came").rstrip(".") if unread is None else f"unreadable image: {unread}"


def _versions(model: str) -> dict[str, str]:
    libraries = ("symbal-hf", *(("transformers", "torch") if model.startswith("hf:") else ()))
    return {"python": platform.python_version(), **{name: version(name) for name in libraries}}
