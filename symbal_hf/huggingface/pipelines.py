"""`pipeline("systematic-misalignment")`: datasets of images with captions in, findings out."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformers import AutoModel, Pipeline, PreTrainedModel
from transformers.pipelines import PIPELINE_REGISTRY

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import AUDIT, Reading, check_names, names_of
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.huggingface.config import OTHERS, SymbalConfig
from symbal_hf.huggingface.model import TASK, SymbalModel
from symbal_hf.models.composition import both_stages
from symbal_hf.models.parts import named
from symbal_hf.results.findings import AuditResult

LITE = Path(__file__).parent / "lite"  # what the task means where no model is named
READ = names_of(Reading)
AUDITED = (
    "method", "vocabulary", "pairs", "store", "progress", *(name for name in names_of(*AUDIT) if name not in READ)
)  # fmt: skip
Output = Literal["findings", "prediction", "result"]


@dataclass(frozen=True)
class _One:
    """One dataset, whatever it is, as one input."""

    source: Any


class SymbalPipeline(Pipeline):
    """Datasets of images with captions in, findings out.

    `model` is a `SymbalModel`, or any encoder of images and texts that transformers knows (CLIP, SigLIP): then that is
    what captions are checked against. Its weights are read from the folder or repo that it came from.

    Options of `symbal_hf.audit` and parts, by name or as objects, may be given when the pipeline is made or when it is
    called.

    >>> finder = SymbalPipeline(SymbalModel(SymbalConfig(scorer="objects", tau=0.9)))
    >>> finder([{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A cat.", "objects": ["dog"]}])
    []
    """

    _load_tokenizer = _load_image_processor = _load_feature_extractor = _load_processor = _load_video_processor = False  # type: ignore[assignment]

    def __init__(self, model: PreTrainedModel, **options: Any) -> None:
        if model.config.model_type != SymbalConfig.model_type:
            model = _around(model)
        dtype = options.get("dtype")
        self._placing: dict[str, Any] = {}
        if dtype not in (None, "auto"):
            self._placing["dtype"] = str(dtype).removeprefix("torch.")
        chosen = options.get("device") is not None or model.device.type != "cpu"
        super().__init__(model, **options)
        if self.model.device_map:
            self._placing["device_map"] = self.model.device_map
        elif chosen:
            self._placing["device"] = str(self.device)

    def __call__(self, inputs: Any, **options: Any) -> Any:  # type: ignore[override]
        """The findings of one dataset, or a list of them for a list of datasets.

        Args:
            inputs: a `datasets.Dataset` (such as a split of a DatasetDict), a list of rows {"image", "caption"}, a
                table file, a folder, a Hub id; or a list of any but rows. Something that can be read only once, such as
                an IterableDataset, needs `limit`.
            options: of `symbal_hf.audit`; and `output`: "findings", "prediction" (ranked names, for the metric), or
                "result" (verdict, findings, suspects, counts, provenance).

        Returns:
            A list of findings (see `symbal_hf.Finding`), empty for the verdict "none"; all JSON-able.

        Raises:
            BadData: nothing that can be audited, or a bad option.
        """
        limit = options.get("limit", self._preprocess_params.get("limit"))
        several = _several(inputs)
        sources = [_whole(one, limit) for one in (inputs if several else [inputs])]
        found = [super(SymbalPipeline, self).__call__(_One(one), **options) for one in sources]
        return found if several else found[0]

    def _sanitize_parameters(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        check_names(options, (*READ, *AUDITED, "output"), by=TASK)
        output = options.get("output", "findings")
        if output not in ("findings", "prediction", "result"):
            raise ValueError(f"output={output!r}; available: 'findings', 'prediction', 'result'.")
        return (
            {name: value for name, value in options.items() if name in (*READ, "seed")},
            {name: value for name, value in options.items() if name in (*AUDITED, "on_bad_row")},
            {name: value for name, value in options.items() if name == "output"},
        )

    def preprocess(self, one: _One, **reading: Any) -> dict[str, Any]:  # type: ignore[override]
        """The dataset as the table that an audit works on."""
        return {"data": load_data(one.source, **{"seed": self.model.config.seed, **reading})}

    def _forward(self, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:  # type: ignore[override]
        return {"result": self.model(inputs["data"], **{**self._placing, **options})}

    def postprocess(self, outputs: dict[str, Any], output: Output = "findings") -> Any:  # type: ignore[override]
        """What was found, JSON-able."""
        result: AuditResult = outputs["result"]
        if output == "prediction":
            return result.prediction()
        found = result.to_dict()
        return found if output == "result" else found["findings"]

    def composed(self) -> SymbalModel:
        """The composition with the options that this pipeline was made with.

        Raises:
            BadData: an option that is no plain value, such as a function, which no other process could find again.
        """
        given = {**self._preprocess_params, **self._forward_params}
        config: Any = self.model.config
        parts = both_stages(given.pop("scorer", config.scorer), given.pop("summarizer", config.summarizer), given)
        specs = {name: spec for name, spec in named(parts)[0].items() if spec is not None}
        plain = {name: given[name] for name in OTHERS if name in given}
        both = {"scorer": None, "summarizer": None}  # they are in `specs` as the parts of each stage
        composition = {"preset": config.preset, **config.options(), **config.parts(), **plain, **specs, **both}
        return SymbalModel(SymbalConfig(**composition))

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:  # type: ignore[override]
        """See `SymbalModel.save_pretrained`."""
        self.composed().save_pretrained(save_directory, **options)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """See `SymbalModel.push_to_hub`."""
        return self.composed().push_to_hub(repo_id, **options)


def pipeline(model: str | Path | PreTrainedModel | None = None, *, preset: str | Path = "lite", **options: Any) -> Any:
    """`transformers.pipeline("systematic-misalignment", model)`, or the pipeline of a preset by its name.

    Args:
        model: folder or Hub repo of a composition or of an encoder, or the model itself.
        preset: where no model is given: a packaged preset, or a YAML file.
        options: of `transformers.pipeline` and of `SymbalPipeline`.

    >>> finder = pipeline(scorer="objects", tau=0.9)
    >>> finder([{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A cat.", "objects": ["dog"]}])
    []
    """
    import transformers

    make: Any = transformers.pipeline  # its overloads know only the tasks of the library itself
    if model is None:
        model = SymbalModel(SymbalConfig.from_preset(preset))
        model.device_map = options.pop("device_map", None)
    return make(TASK, model=model, **options)


def _around(model: PreTrainedModel) -> SymbalModel:
    """The composition that checks captions against this encoder of images and texts."""
    path = model.name_or_path or getattr(model.config, "_name_or_path", "")
    if not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
        raise BadData(
            f"{path or type(model).__name__} is a {model.config.model_type} model; {TASK} takes a composition "
            "(symbal) or an encoder of images and texts, such as CLIP."
        )
    if not path:
        raise BadData(f"this {type(model).__name__} came from no folder or repo; save it, and give its folder.")
    spec = f"transformers:{path}"
    return SymbalModel(
        SymbalConfig(
            preset="encoder", text_encoder=spec, image_encoder=spec, scorer_1="embedding", scorer_2="embedding"
        )
    )


def _several(inputs: Any) -> bool:
    """Whether these are datasets rather than the rows of one."""
    if not isinstance(inputs, (list, tuple)):
        return False
    if not inputs:
        raise BadData("there is nothing to audit in an empty list; give rows or datasets.")
    rows = sum(isinstance(one, Mapping) and not _splits(one) for one in inputs)
    if 0 < rows < len(inputs):
        raise BadData(f"of {len(inputs)} inputs {rows} are rows and the others are not; give rows or datasets.")
    return not rows


def _splits(one: Any) -> bool:
    return isinstance(one, Mapping) and bool(one) and all(hasattr(value, "column_names") for value in one.values())


def _whole(one: Any, limit: int | None) -> Any:
    if _splits(one):
        raise BadData(f"a dataset dict has the splits {', '.join(one)}; give one, such as data[{next(iter(one))!r}].")
    if isinstance(one, Mapping):
        raise BadData("one row says nothing of what recurs; give a list of rows or a dataset.")
    if isinstance(one, (str, Path, AuditData)) or hasattr(one, "__len__"):
        return one
    if not isinstance(one, Iterable):
        raise BadData(f"a {type(one).__name__} is no dataset; give a datasets.Dataset, rows, a file or a Hub id.")
    if limit is None:
        raise BadData(f"a {type(one).__name__} may have no end; give limit, the number of rows to take from it.")
    return list(itertools.islice(one, limit))


PIPELINE_REGISTRY.supported_tasks.pop(TASK, None)  # it warns of a task that is there
PIPELINE_REGISTRY.register_pipeline(
    TASK, SymbalPipeline, pt_model=AutoModel, default={"model": (str(LITE), "main")}, type="multimodal"
)
