"""The detector that is meant by a name, a function or an object; it stands above those that it chooses from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Placing
from symbal_hf.core.store import Store
from symbal_hf.followup.detectors import Detector, FunctionDetector, ObjectsDetector, PackagedDetector
from symbal_hf.followup.open_vocabulary import OpenVocabulary
from symbal_hf.language.phrases import Vocabulary

OWLV2 = {"owlv2": "google/owlv2-large-patch14-ensemble", "owlv2-base": "google/owlv2-base-patch16-ensemble"}
NAMES = ("auto", "objects", "nanodet", *OWLV2)


def load_detector(
    spec: str | Callable[..., Any] | Detector,
    placing: Placing = Placing(),
    *,
    vocabulary: Vocabulary,
    batch_size: int | None = None,
    store: Store | None = None,
) -> Detector:
    """The detector of a name, or what was given as an object.

    Args:
        spec: "objects", "nanodet" (which ships with the package), "owlv2", "owlv2-base", "hf:MODEL[@revision]" (any
            zero-shot object detector of transformers of the OWL or Grounding DINO kinds), a function (see
            `FunctionDetector`), or a `Detector`.
        placing: where a model runs.
        vocabulary: of the classes that objects are listed by.
        batch_size: images that a model looks at together; halved by itself where they do not fit.
        store: where a model's detections are kept; by default the user's.

    Raises:
        BadData: no such detector.
        MissingModel: its weights are neither on this machine nor reachable.
    """
    if not isinstance(spec, str):
        if hasattr(spec, "detect"):
            return cast(Detector, spec)
        if callable(spec):
            return FunctionDetector(spec)
        raise BadData(
            f"detector={type(spec).__name__} object; give a name, a function of (images, names), or a Detector."
        )
    if spec == "objects":
        return ObjectsDetector(vocabulary)
    if spec == "nanodet":
        return PackagedDetector(store)
    kind, _, model = spec.partition(":")
    if spec not in OWLV2 and (kind != "hf" or not model):
        raise BadData(f"no detector {spec!r}; available: {', '.join(NAMES)}, hf:MODEL[@revision].")
    return OpenVocabulary(OWLV2.get(spec, model), placing, batch_size=batch_size, store=store)
