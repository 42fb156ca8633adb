"""Open-vocabulary detection by transformers (OWLv2, OWL-ViT, Grounding DINO): no name is looked for twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Placing, values_of
from symbal_hf.core.store import Store, key
from symbal_hf.data.table import AuditData
from symbal_hf.followup.detectors import Seen, images_of
from symbal_hf.models.encoders.base import Place, Source, choose_place, find, fingerprint, loading
from symbal_hf.models.encoders.checkpoint import Batches
from symbal_hf.models.encoders.decoding import decoded
from symbal_hf.models.encoders.embedding import Progress, quiet
from symbal_hf.models.encoders.jobs import Keys, keys_of, unreadable
from symbal_hf.results.validation import Box

if TYPE_CHECKING:
    import torch

KINDS = ("owlv2", "owlvit", "grounding-dino", "mm-grounding-dino")
OWLS = KINDS[:2]  # each query is scored by itself, so that many share one look at the image
THRESHOLDS = {"owlv2": 0.1, "owlvit": 0.1}  # where transformers' own post-processing cuts; of the others 0.25
PROMPT = "a photo of a {}"  # how OWL's model cards ask
OVERLAP = 0.5  # of two boxes of one name with more than this the surer stays
MOST = 300  # of the surest boxes of one name go on to that: a model gives thousands, nearly all of nothing
BOXES, LEAST = 20, 0.01  # kept of one name in one image, at most and from which score on; the surest always
FIELDS = 5  # score, x0, y0, x1, y1
AT_ONCE = 8  # images


@dataclass(frozen=True)
class Eyes:
    """What turns an image into what the model sees, and the model's output into boxes; it can be sent to processes."""

    source: Source  # the files
    place: Place  # where the model runs

    @cached_property
    def processor(self) -> Any:
        """Of the same files as the weights."""
        from transformers import AutoProcessor

        with loading(self.source):
            return AutoProcessor.from_pretrained(**_where(self.source))

    def pixels(self, image: Image.Image) -> dict[str, torch.Tensor]:
        """What the processor makes of one RGB image, and its `shape` (1, 2): height, width."""
        import torch

        seen = dict(self.processor.image_processor(images=image, return_tensors="pt"))
        return {**seen, "shape": torch.tensor([[image.height, image.width]])}


class OpenVocabulary:
    """A zero-shot object detector: boxes of whatever is named.

    What it sees of a name does not depend on which other names are looked for, nor on the other images of its batch.
    """

    def __init__(
        self,
        model: str,
        placing: Placing = Placing(),
        *,
        prompt: str | None = None,
        batch_size: int | None = None,
        store: Store | None = None,
    ) -> None:
        """A checkpoint, "FOLDER" or "ORGANISATION/NAME[@REVISION]"; its weights wait until they are needed.

        `prompt` is how a name is put to it, with {} in its place: by default "a photo of a {}" for OWL, which reads 16
        tokens of it, else the name. `batch_size`, 8 by default, is halved by itself where images do not fit.

        Raises:
            MissingModel: the files are neither on this machine nor reachable.
            BadData: a model that detects nothing by name, or a prompt without {}.
        """
        from transformers import AutoConfig

        if prompt is not None and "{}" not in prompt:
            raise BadData(f"prompt={prompt!r} has no place for a name; put {{}} into it.")
        self.place, self.source = choose_place(**values_of(placing)), find("hf", model, "config.json")
        self.name, self.store, self.eyes = self.source.name, store or Store(), Eyes(self.source, self.place)
        try:
            with loading(self.source):
                self.config = AutoConfig.from_pretrained(**_where(self.source))
        except ValueError as error:
            raise BadData(f"{self.name} names no architecture that transformers knows; a newer version may.") from error
        kind = self.config.model_type
        if kind not in KINDS:
            raise BadData(
                f"{self.name} is a model of type {kind!r}, which detects nothing by its name; use one of type "
                f"{', '.join(KINDS)}."
            )
        self.owl = kind in OWLS
        self.prompt = prompt or (PROMPT if self.owl else "{}")
        self.threshold = THRESHOLDS.get(kind, 0.25)
        # Other kinds pad images of different shapes to one, which changes what is seen.
        self.images = Batches((batch_size or AT_ONCE) if self.owl else 1, self.name)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the files (weights, tokenizer, preprocessing) and whatever else boxes depend on."""
        kept = (OVERLAP, MOST, BOXES, LEAST)
        return fingerprint("detector", self.source.version, self.place.dtype, kept, "v1")

    @cached_property
    def model(self) -> Any:
        """The network, in evaluation mode, on its device."""
        from transformers import AutoModelForZeroShotObjectDetection

        with loading(self.source):
            model, told = AutoModelForZeroShotObjectDetection.from_pretrained(
                **_where(self.source), **self.place.model_options(), output_loading_info=True
            )
        lacking = sorted(k for k in told["missing_keys"] if not k.endswith("position_ids"))
        if lacking:  # transformers would fill them at random and only warn
            raise ValueError(
                f"the weights of {self.name} lack {len(lacking)} tensors of {type(model).__name__}, {lacking[0]} among "
                "them; they belong to another kind of model."
            )
        return model.eval() if self.place.device_map else model.eval().to(self.place.device)

    def detect(
        self,
        data: AuditData,
        names: Sequence[str],
        *,
        where: NDArray[np.bool_] | None = None,
        boxes_of: Collection[int] = (),
        progress: Progress = quiet,
    ) -> Seen:
        """See `symbal_hf.followup.detectors.Detector.detect`; every batch is stored when it is done."""
        images = images_of(data, self.name)
        wanted = np.ones((len(data), len(names)), bool) if where is None else where
        keys = keys_of(images, "image", self.fingerprint)
        if batches := self._batches(keys, names, wanted):
            done: Iterable[Any] = decoded(images, [list(rows) for rows, _ in batches], self.eyes)
            asked = iter(batches)
            for rows, pixels, bad in progress(done, "detections", len(batches)):
                found = self.look(pixels, [names[c] for c in next(asked)[1]])
                values: dict[bytes, bytes] = {}
                for row, boxes in zip(rows, found, strict=True):
                    image = keys.of[row]
                    assert image is not None  # what has no key is in no batch
                    values |= {self._key(image, n): np.ascontiguousarray(b).tobytes() for n, b in boxes.items()}
                reasons = {unreadable(k): reason.encode() for row, reason in bad.items() if (k := keys.of[row])}
                self.store.put(values | reasons, kind="detection")
        return self._collect(keys, names, wanted, set(boxes_of))

    def look(self, pixels: Sequence[Mapping[str, torch.Tensor]], names: Sequence[str]) -> list[dict[str, NDArray[Any]]]:
        """For each of B images (from `Eyes.pixels`) and each name its boxes, (K, 5) float32, surest first.

        A row is score in [0, 1], then left, top, right, bottom as shares of the image's width and height in [0, 1].
        """
        size = len(names) * BOXES * FIELDS
        flat = self.images.run(pixels, lambda part: self._boxes(part, names), size) if pixels else ()
        tables = [row.reshape(len(names), BOXES, FIELDS) for row in flat]
        # What fills up a table has the score 0.
        return [{name: table[i][table[i, :, 0] > 0] for i, name in enumerate(names)} for table in tables]

    def _boxes(self, batch: Sequence[Mapping[str, torch.Tensor]], names: Sequence[str]) -> NDArray[np.float32]:
        import torch

        joined = {k: torch.cat([one[k] for one in batch]) for k in batch[0]}
        shapes = [(int(h), int(w)) for h, w in joined.pop("shape").tolist()]
        inputs = {k: v.to(self.model.device) for k, v in joined.items()}
        inputs = {k: v.to(self.model.dtype) if v.is_floating_point() else v for k, v in inputs.items()}
        out = np.zeros((len(batch), len(names), BOXES, FIELDS), np.float32)
        with torch.inference_mode():
            for i, found in enumerate(self._found(inputs, shapes, names)):
                for row, (one, shape) in enumerate(zip(found, shapes, strict=True)):
                    kept = _kept(one["boxes"], one["scores"], shape)
                    out[row, i, : len(kept)] = kept
        return out.reshape(len(batch), -1)

    def _found(
        self, inputs: Mapping[str, Any], shapes: list[tuple[int, int]], names: Sequence[str]
    ) -> Iterable[list[dict[str, Any]]]:
        """For each name what transformers' post-processing finds in each image, at whatever score."""
        post = self.eyes.processor.post_process_grounded_object_detection
        asked = [self.prompt.format(name) for name in names]
        if not self.owl:
            for text in asked:
                tokens = self.eyes.processor(text=[[text.replace(".", " ")]], return_tensors="pt").to(self.model.device)
                told = self.model(**inputs, **tokens)
                small = SimpleNamespace(**self._numbers(told))
                # No phrase is read off the tokens: whatever lights up, it is the only name that was asked.
                yield post(small, tokens["input_ids"], threshold=0.0, text_threshold=1.0, target_sizes=shapes)
            return
        most = self.config.text_config.max_position_embeddings
        tokens = self.eyes.processor(
            text=[asked] * len(shapes), padding="max_length", truncation=True, max_length=most, return_tensors="pt"
        ).to(self.model.device)
        told = self.model(**inputs, input_ids=tokens["input_ids"], attention_mask=tokens["attention_mask"])
        numbers = self._numbers(told)
        for i, text in enumerate(asked):  # together, a box would go to the name that fits it best and be lost to others
            small = SimpleNamespace(logits=numbers["logits"][..., i : i + 1], pred_boxes=numbers["pred_boxes"])
            yield post(small, threshold=0.0, target_sizes=shapes, text_labels=[[text]] * len(shapes))

    def _numbers(self, told: Any) -> dict[str, torch.Tensor]:
        """What the network says, in float32; a score that is undefined would count as none."""
        out = {"logits": told.logits.float(), "pred_boxes": told.pred_boxes.float()}
        if any(bool(values.isnan().any()) for values in out.values()):
            raise ValueError(f"{self.name} gives undefined values in {self.place.dtype}; use dtype='float32'.")
        return out

    def _key(self, image: bytes, name: str) -> bytes:
        return key("detect", image, self.prompt.format(name))

    def _batches(
        self, keys: Keys, names: Sequence[str], wanted: NDArray[np.bool_]
    ) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Rows to look at together, and the columns of the names to look for in them; each content once."""
        pairs: dict[bytes, tuple[int, int]] = {}
        for row, column in np.argwhere(wanted).tolist():
            if (image := keys.of[row]) is not None:
                pairs.setdefault(self._key(image, names[column]), (row, column))
        images = {row: keys.of[row] for row, _ in pairs.values()}
        told = {row: unreadable(image) for row, image in images.items() if image is not None}
        known = set(told.values()) - set(self.store.missing(told.values()))
        left: dict[int, list[int]] = {}
        for k in self.store.missing(pairs):
            row, column = pairs[k]
            if told[row] not in known:
                left.setdefault(row, []).append(column)
        rows, size = sorted(left), self.images.size
        parts = [rows[i : i + size] for i in range(0, len(rows), size)]
        return [(tuple(part), tuple(sorted({c for row in part for c in left[row]}))) for part in parts]

    def _collect(self, keys: Keys, names: Sequence[str], wanted: NDArray[np.bool_], boxes_of: set[int]) -> Seen:
        scores = np.full(wanted.shape, np.nan, np.float32)
        bad, boxes = dict(keys.bad), dict[int, tuple[Box, ...]]()
        for row, image in enumerate(keys.of):
            if image is None or not wanted[row].any():
                continue
            of = {self._key(image, names[c]): c for c in np.flatnonzero(wanted[row]).tolist()}
            found = self.store.get(list(of))
            if not found:
                reason = self.store.get([unreadable(image)])
                bad[row] = next(iter(reason.values()), b"unreadable image").decode("utf-8")
            seen: list[Box] = []
            for k, value in found.items():
                table = np.frombuffer(value, np.float32).reshape(-1, FIELDS)
                scores[row, of[k]] = table[0, 0] if len(table) else 0.0
                if row in boxes_of:
                    seen += [Box(names[of[k]], *map(float, one)) for one in table]
            if row in boxes_of:
                boxes[row] = tuple(sorted(seen, key=lambda box: (-box.score, box.label)))
        return Seen(scores, bad, boxes)


def _kept(boxes: torch.Tensor, scores: torch.Tensor, shape: tuple[int, int]) -> NDArray[np.float32]:
    """(K, 5) of at most `BOXES` boxes of one name: inside the image, none over a surer one, surest first."""
    import torch
    from torchvision.ops import clip_boxes_to_image, nms

    boxes = clip_boxes_to_image(boxes, shape)
    whole = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])  # what lies in the padding is in no image
    scores, order = scores[whole].sort(descending=True, stable=True)
    boxes = boxes[whole][order[:MOST]]
    first = nms(boxes, scores[:MOST], OVERLAP)[:BOXES]
    boxes, scores = boxes[first].cpu(), scores[first].cpu()
    height, width = shape
    boxes = boxes / torch.tensor([width, height, width, height])
    table = torch.cat([scores[:, None], boxes.clamp(0, 1)], 1).numpy()
    return table[(table[:, 0] >= LEAST) | (np.arange(len(table)) == 0)]


def _where(source: Source) -> dict[str, Any]:
    # Code that comes with a model is never run; left unsaid, transformers would ask on the terminal.
    revision = source.revision or "main"
    return {"pretrained_model_name_or_path": source.model, "revision": revision, "trust_remote_code": False}
