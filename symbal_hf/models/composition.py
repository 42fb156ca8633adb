"""A composition names every part of the system, and a preset names a composition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args

from symbal_hf.core.errors import BadData

ScorerKind = Literal["auto", "objects", "reference", "embedding", "text-only", "vision-language", "object"]
SummarizerKind = Literal["phrases", "text-only", "vision-language", "object"]
SCORERS: tuple[ScorerKind, ...] = get_args(ScorerKind)
SUMMARIZERS: tuple[SummarizerKind, ...] = get_args(SummarizerKind)
PLAIN = ("auto", "objects", "reference")  # scorers that take no model
FACT_SCORERS = ("embedding", "text-only", "vision-language", "object")  # of sentences; the others judge concepts
CHATS = ("hf", "openai", "file", "object")
STAGED = ("scorer_1", "scorer_2", "summarizer_1", "summarizer_2")


@dataclass(frozen=True)
class Composition:
    """The parts of one system, each by name, as `symbal_hf.core.options.Parts` has them (paper section 4, appendix A).

    A scorer "auto" of stage 1 is what the chat model sees where there is one, else the surest of objects, reference
    and embedding that the data allow; of stage 2 it is what stage 1 takes. "object:NAME" stands for a part that the
    caller gave as an object; see `symbal_hf.models.parts.named`.
    """

    text_encoder: str = "lite"
    image_encoder: str = "lite"
    scorer_1: str = "auto"
    scorer_2: str = "auto"
    summarizer_1: str = "phrases"
    summarizer_2: str = "phrases"
    captioner: str | None = None
    chat: str | None = None

    def __post_init__(self) -> None:
        for part in STAGED:
            role = part[:-2]
            if role == "scorer" and self.chat is not None and getattr(self, part) == "auto":
                object.__setattr__(self, part, "vision-language")
            spec = getattr(self, part)
            kind, model = split_part(spec)
            known: tuple[str, ...] = SCORERS if role == "scorer" else SUMMARIZERS
            if kind not in known or (kind in PLAIN and model):
                raise BadData(f"{part}={spec!r}; a {role} is one of {', '.join(known)}.")
            if part == "summarizer_1" and kind == "vision-language":
                raise BadData("summarizer_1='vision-language'; facts are text, so t is named by phrases or text-only.")
            if kind in ("text-only", "vision-language") and model is None and self.chat is None:
                raise BadData(f"{part}={spec!r} asks a chat model; name it there or with chat.")
        for part, more in (("chat", ""), ("captioner", ", or file:captions.jsonl")):
            spec = getattr(self, part)
            if spec is not None and (spec.partition(":")[0] not in CHATS or (part == "chat" and spec[:5] == "file:")):
                raise BadData(f"{part}={spec!r}; give hf:MODEL or openai:URL#MODEL{more}.")

    @property
    def calibrated(self) -> bool:
        """Whether images are judged by log-odds that are calibrated: "embedding" by the lite image encoder.

        "embedding:ENCODER" scores sentences by cosines, whichever encoder that is.
        """
        return self.scorer_1 == "embedding" and self.image_encoder == "lite"

    def chat_of(self, part: str) -> str | None:
        """The chat model that scorer or summarizer `part` asks, or None where it asks none."""
        kind, model = split_part(getattr(self, part))
        return (model or self.chat) if kind in ("text-only", "vision-language") else None

    @property
    def asks_or_loads(self) -> bool:
        """Whether some part of it is a chat model, or an encoder other than the lite ones."""
        specs = [str(spec).partition(":") for spec in asdict(self).values() if spec]
        return any(kind in (*CHATS, *IN_PROCESS) or model for kind, _, model in specs)

    def with_parts(self, **parts: str | None) -> Composition:
        """The composition with other parts; None leaves a part as it is."""
        names = {f.name for f in fields(self)}
        if strange := sorted(parts.keys() - names):
            raise BadData(f"no part {strange[0]!r}; the parts are {', '.join(sorted(names))}.")
        return replace(self, **{name: spec for name, spec in parts.items() if spec is not None})

    def settled(self, *, objects: bool, references: bool, images: bool) -> Composition:
        """The composition with the scorers that the data allow in the place of "auto".

        Raises:
            BadData: data without what a scorer checks captions against.
        """
        has = {"objects": objects, "reference": references, "embedding": images}
        surest = next((kind for kind, there in has.items() if there), None)
        first, second = self.scorer_1, self.scorer_2
        if "auto" in (first, second) and surest is None:
            raise BadData(
                "nothing to check the captions against: the source has no images, references or objects; name their "
                "column with --image-column, --reference-column or --objects-column, or add a file with --join."
            )
        first = str(surest) if first == "auto" else first
        second = first if second == "auto" else second
        for spec in (first, second):
            kind, _ = split_part(spec)
            if not has.get(kind, True):
                usable = ", ".join(name for name, there in has.items() if there) or "none"
                raise BadData(f"scorer {kind!r} needs a column that the source lacks; usable here: {usable}.")
        return replace(self, scorer_1=first, scorer_2=second)


IN_PROCESS = ("hf", "st", "transformers", "open_clip")  # kinds of models that this process loads, besides lite


def both_stages(scorer: Any, summarizer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """All parts of `given`, with a scorer or summarizer for both stages spread over them; "auto" is the preset's."""
    every = {"scorer": None if isinstance(scorer, str) and scorer == "auto" else scorer, "summarizer": summarizer}
    names = [f.name for f in fields(Composition)]
    parts = {name: given[name] if given.get(name) is not None else every.get(name.rstrip("_12")) for name in names}
    if isinstance(summarizer, str) and summarizer.startswith("vision-language") and given.get("summarizer_1") is None:
        parts["summarizer_1"] = summarizer.replace("vision-language", "text-only", 1)  # facts are text
    return parts


def audited_composition(provenance: Mapping[str, Any]) -> Composition:
    """The composition of a finished audit; files of version 0.1 name none where it was the lite preset's."""
    parts = provenance.get("models", {}).get("composition")
    if parts is None:
        return Composition(scorer_1=provenance["scorer"], scorer_2=provenance["scorer"])
    return Composition(**parts)


def split_part(spec: str) -> tuple[str, str | None]:
    """The kind and the model: vision-language:hf:MODEL has the model hf:MODEL, phrases has none."""
    kind, _, model = spec.partition(":")
    return kind, model or None


@dataclass(frozen=True)
class Model:
    """What a model of a preset, or a captioner, needs."""

    name: str  # Hub id, or architecture/weights of open_clip
    gpu_gb: float  # memory with room to work, in bfloat16
    disk_gb: float  # size of the download
    licence: str  # and "gated" where one has to ask
    parameters_b: float | None = None  # billions of parameters of a chat model
    serve: str | None = None  # the line that serves it, in vLLM's own environment
    note: str = ""  # what else to know
    image_tokens: int = 400  # of a 640 x 480 photo, as its processor cuts it up


@dataclass(frozen=True)
class Preset:
    """A named composition, and what its models need."""

    name: str
    about: str
    composition: Composition
    models: tuple[Model, ...]


def preset_names() -> tuple[str, ...]:
    """The packaged presets."""
    folder = resources.files("symbal_hf.models").joinpath("presets")
    return tuple(sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml")))


def load_preset(name: str | Path) -> Preset:
    """A packaged preset, or one from a YAML file of the same shape; raises `BadData` where it is neither."""
    import yaml

    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise FileNotFoundError(f"no preset file {path}.")
        text = path.read_text("utf-8")
    elif name in preset_names():
        text = resources.files("symbal_hf.models").joinpath(f"presets/{name}.yaml").read_text("utf-8")
    else:
        raise BadData(f"no preset {str(name)!r}; available: {', '.join(preset_names())}, or a .yaml file.")
    try:
        data: Any = yaml.safe_load(text)
        parts = {f.name for f in fields(Composition)}
        if not isinstance(data, Mapping) or (strange := sorted(data.keys() - parts - {"about", "models"})):
            raise BadData(f"preset {name}: unknown entry {strange[0] if isinstance(data, Mapping) else data!r}.")
        models = tuple(Model(**model) for model in data.get("models", ()))
        composition = Composition(**{k: v for k, v in data.items() if k in parts})
    except (yaml.YAMLError, TypeError) as error:
        raise BadData(f"preset {name} has another shape than the packaged ones: {error}.") from error
    return Preset(path.stem if path.suffix else str(name), str(data.get("about", "")), composition, models)


def choose_composition(preset: str | Path | Preset, **parts: str | None) -> Composition:
    """The composition of `preset` with other parts where given."""
    chosen = preset if isinstance(preset, Preset) else load_preset(preset)
    return chosen.composition.with_parts(**parts)
