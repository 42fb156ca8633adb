"""`pipeline("systematic-misalignment")`: a composition as a transformers config, model and pipeline."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import AutoConfig, AutoModel, Pipeline, PreTrainedConfig, PreTrainedModel
from transformers.pipelines import PIPELINE_REGISTRY

from symbal_hf.auditing.engine import audit
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.core.options import AUDIT, Method, names_of
from symbal_hf.data.table import AuditData, load_data
from symbal_hf.huggingface.card import check_portable, composition_card
from symbal_hf.huggingface.publish import check_repo, sending
from symbal_hf.models.composition import Composition, Preset, both_stages, load_preset
from symbal_hf.models.parts import named
from symbal_hf.results.findings import AuditResult

TASK = "systematic-misalignment"
LITE = Path(__file__).parent / "lite"  # what the task means where no model is named
PARTS = tuple(field.name for field in fields(Composition))
READING = (
    "image_column", "caption_column", "reference_column", "objects_column", "image_root", "join", "limit", "sample",
    "on_bad_row", "source_format", "allow_download",
)  # fmt: skip
OPTIONS = ("method", "vocabulary", "pairs", "store", "progress", *(n for n in names_of(*AUDIT) if n not in READING))
Output = Literal["findings", "prediction", "result"]


class SymbalConfig(PreTrainedConfig):
    """A composition with its method and thresholds: everything that an audit depends on besides its data.

    Attributes:
        preset: the preset that this began as; "lite" with no part named is the lite preset as it ships.
        method: "association" or "paper".
        scorer: of the lite preset: "auto", "embedding", "reference", "objects".
        text_encoder: and the other parts, as `symbal_hf.models.composition.Composition` has them; None where lite has
        its own. top_k: at most this many findings.
        tau: what a finding's confirmed share must exceed, in [0, 1].
        alpha: what its corrected p-value must stay below, in (0, 1).
        min_rate: its least error rate with v, in [0, 1].
        members: of a cluster that a summarizer looks at, at most.
        seed: of every random choice.
    """

    model_type = "symbal"

    preset: str = "lite"
    method: Method = "association"
    scorer: str = "auto"
    text_encoder: str | None = None
    image_encoder: str | None = None
    scorer_1: str | None = None
    scorer_2: str | None = None
    summarizer_1: str | None = None
    summarizer_2: str | None = None
    captioner: str | None = None
    chat: str | None = None
    top_k: int = 5
    tau: float = 0.7
    alpha: float = 0.05
    min_rate: float = 0.05
    members: int = 60
    seed: int = 0

    def __post_init__(self, **others: Any) -> None:
        # A saved composition carries this file for processes without us, and transformers would then run nothing else,
        # once it is trusted; where the package itself reads the config, there is nothing to trust.
        if __name__ == "symbal_hf.huggingface.pipelines":
            others.pop("custom_pipelines", None)
        super().__post_init__(**others)

    @classmethod
    def from_preset(cls, preset: str | Path, **options: Any) -> SymbalConfig:
        """A preset's parts by name, so that the config says all and depends on no file; `options` change some.

        Raises:
            BadData: no such preset.
        """
        if preset == "lite":
            return cls(**options)
        found = load_preset(preset)
        return cls(**{"preset": found.name, **asdict(found.composition), **options})

    def composed(self) -> str | Preset:
        """What `symbal_hf.audit` takes as its preset."""
        return Preset(self.preset, "", Composition().with_parts(**self.parts()), ())

    def parts(self) -> dict[str, str]:
        """The parts that it names."""
        return {part: value for part in PARTS if (value := getattr(self, part)) is not None}

    def options(self) -> dict[str, Any]:
        """The other options of `symbal_hf.audit` that it fixes."""
        kept = ("method", "scorer", "top_k", "tau", "alpha", "min_rate", "members", "seed")
        return {name: getattr(self, name) for name in kept}


# A pipeline takes whole datasets and gives findings, so that some signatures differ from those of transformers.
class SymbalModel(PreTrainedModel):
    """A composition that can be run.

    It has no weights of its own: the models that it names stay where they live, and are loaded when an audit first
    needs them. The empty parameter is for transformers, which ask every model for its device and its numbers.
    """

    config_class = SymbalConfig
    base_model_prefix = "symbal"
    input_modalities = ("image", "text")  # type: ignore[assignment]

    def __init__(self, config: SymbalConfig) -> None:
        super().__init__(config)
        self.place = torch.nn.Parameter(torch.zeros(0), requires_grad=False)
        self.device_map: Any = None  # how the models that it names are spread over GPUs
        self.post_init()

    @classmethod
    def from_pretrained(cls, *args: Any, device_map: Any = None, **options: Any) -> SymbalModel:
        """As for any transformers model, but that `device_map` is for the models that it names."""
        model = super().from_pretrained(*args, **options)
        model.device_map = device_map
        return model

    def forward(self, source: Any, **options: Any) -> AuditResult:
        """`symbal_hf.audit` of `source` by this composition; `options` take the place of the config's."""
        return audit(source, preset=self.config.composed(), **{**self.config.options(), **options})

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:  # type: ignore[override]
        """Write the config, the code that loads it anywhere, and a card; `options` as for any transformers model.

        Raises:
            BadData: a part carries a password, or is an object that no other process could find again.
        """
        check_portable(self.config.parts())
        self.config.custom_pipelines = {TASK: {"impl": "pipelines.SymbalPipeline", "pt": ["AutoModel"]}}
        super().save_pretrained(save_directory, **options)
        write_whole(Path(save_directory) / "README.md", composition_card(self.config))  # type: ignore[arg-type]

    def push_to_hub(  # type: ignore[override]
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        create_pr: bool = False,
        commit_message: str | None = None,
    ) -> str:
        """Write the composition with its own card to a model repo, made where there is none; returns the address.

        Raises:
            BadData: a part is a folder of this machine, carries a password, or is an object.
        """
        from huggingface_hub import HfApi

        check_portable(self.config.parts(), folders=False)
        check_repo(repo_id)
        api = HfApi(token=token)
        with sending(f"{repo_id} was not pushed"), tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            if not api.repo_exists(repo_id):
                api.create_repo(repo_id, private=private, exist_ok=True)
            done = api.upload_folder(
                folder_path=folder, repo_id=repo_id, revision=revision, create_pr=create_pr,
                commit_message=commit_message or "Publish the composition",
            )  # fmt: skip
        return str(done.pr_url or done.commit_url)


SymbalConfig.register_for_auto_class()
SymbalModel.register_for_auto_class("AutoModel")


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
    """

    _load_tokenizer = _load_image_processor = _load_feature_extractor = _load_processor = _load_video_processor = False  # type: ignore[assignment]

    def __init__(self, model: PreTrainedModel, **options: Any) -> None:
        if model.config.model_type != SymbalConfig.model_type:
            model = _around(model)
        dtype = options.get("dtype")
        self._numbers = {} if dtype in (None, "auto") else {"dtype": str(dtype).removeprefix("torch.")}
        super().__init__(model, **options)

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
        found = [super(SymbalPipeline, self).__call__(_One(one), **options) for one in _datasets(inputs, limit)]
        return found if _several(inputs) else found[0]

    def _sanitize_parameters(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        known = (*READING, *OPTIONS, "output")
        if strange := sorted(options.keys() - set(known)):
            raise TypeError(f"{TASK} has no option {strange[0]!r}; its options are {', '.join(known)}.")
        output = options.get("output", "findings")
        if output not in ("findings", "prediction", "result"):
            raise ValueError(f"output={output!r}; available: 'findings', 'prediction', 'result'.")
        return (
            {name: value for name, value in options.items() if name in (*READING, "seed")},
            {name: value for name, value in options.items() if name in (*OPTIONS, "on_bad_row")},
            {name: value for name, value in options.items() if name == "output"},
        )

    def preprocess(self, one: _One, **reading: Any) -> dict[str, Any]:  # type: ignore[override]
        """The dataset as the table that an audit works on."""
        return {"data": load_data(one.source, **{"seed": self.model.config.seed, **reading})}

    def _forward(self, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:  # type: ignore[override]
        spread = self.model.device_map
        placed = {"device": "auto" if spread else str(self.device), "device_map": spread, **self._numbers}
        return {"result": self.model(inputs["data"], **{**placed, **options})}

    def postprocess(self, outputs: dict[str, Any], output: Output = "findings") -> Any:  # type: ignore[override]
        """What was found, JSON-able."""
        result: AuditResult = outputs["result"]
        if output == "prediction":
            return result.prediction()
        found = result.to_dict()
        return json.loads(json.dumps(found if output == "result" else found["findings"]))  # tuples become lists

    def composed(self) -> SymbalModel:
        """The composition with the options that this pipeline was made with.

        Raises:
            BadData: an option that is no plain value, such as a function, which no other process could find again.
        """
        given = {**self._preprocess_params, **self._forward_params}
        scorer = given.pop("scorer", None)
        parts = both_stages(scorer, given.pop("summarizer", None), given)
        specs, _ = named(parts)
        plain = self.model.config.options().keys() & given.keys()
        changed = {name: given[name] for name in plain} | {k: v for k, v in specs.items() if v is not None}
        return SymbalModel(SymbalConfig(**{**self.model.config.options(), **self.model.config.parts(), **changed,
                                           "preset": self.model.config.preset, }))  # fmt: skip

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:  # type: ignore[override]
        """See `SymbalModel.save_pretrained`."""
        self.composed().save_pretrained(save_directory, **options)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """See `SymbalModel.push_to_hub`."""
        return self.composed().push_to_hub(repo_id, **options)


def register() -> None:
    """Make the task and the model type known to transformers."""
    AutoConfig.register(SymbalConfig.model_type, SymbalConfig, exist_ok=True)
    AutoModel.register(SymbalConfig, SymbalModel, exist_ok=True)
    PIPELINE_REGISTRY.supported_tasks.pop(TASK, None)  # it warns of a task that is there
    PIPELINE_REGISTRY.register_pipeline(
        TASK, SymbalPipeline, pt_model=AutoModel, default={"model": (str(LITE), "main")}, type="multimodal"
    )


def pipeline(model: str | Path | PreTrainedModel | None = None, *, preset: str | Path = "lite", **options: Any) -> Any:
    """`transformers.pipeline("systematic-misalignment", model)`, or the pipeline of a preset by its name.

    Args:
        model: folder or Hub repo of a composition or of an encoder, or the model itself.
        preset: where no model is given: a packaged preset, or a YAML file.
        options: of `transformers.pipeline` and of `SymbalPipeline`.
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
    return SymbalModel(SymbalConfig(preset="encoder", text_encoder=spec, image_encoder=spec, scorer_1="embedding",
                                    scorer_2="embedding"))  # fmt: skip


def _datasets(inputs: Any, limit: int | None) -> list[Any]:
    """Each dataset of `inputs` as `load_data` reads it."""
    return [_whole(one, limit) for one in inputs] if _several(inputs) else [_whole(inputs, limit)]


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


if __name__ == "symbal_hf.huggingface.pipelines":  # and not a copy of this file from a repo
    register()
