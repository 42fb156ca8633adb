"""The prompts: packaged Jinja files, each with a hash, any of which a folder of the user's own may replace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from symbal_hf.core.errors import BadData

PromptName = Literal[
    "fact_of_image", "fact_of_text", "fact_of_image_and_text", "features_of_text", "features_of_image",
    "features_of_image_and_text", "most_frequent", "caption_of_image", "describe_image", "same_thing", "direct",
    "rewrite_caption",
]  # fmt: skip
PROMPTS: tuple[PromptName, ...] = get_args(PromptName)


@dataclass(frozen=True)
class Prompts:
    """The prompts of a run."""

    folder: Path | None = None  # files NAME.jinja in it take the place of the packaged ones
    texts: Mapping[PromptName, str] = field(default_factory=dict)  # prompts that are to be asked word for word, by name

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        if not self.folder.is_dir():
            raise BadData(f"no folder {self.folder} with prompts.")
        names = sorted(path.stem for path in self.folder.glob("*.jinja"))
        if unknown := [name for name in names if name not in PROMPTS]:
            known = ", ".join(PROMPTS)
            raise BadData(f"{self.folder} has {unknown[0]}.jinja, which no part asks; prompts are {known}.")
        if not names:
            raise BadData(f"{self.folder} holds no prompt; name files {PROMPTS[0]}.jinja and so on.")

    def source(self, name: PromptName) -> str:
        if name in self.texts:
            return self.texts[name]
        return self._environment.loader.get_source(self._environment, f"{name}.jinja")[0]

    def hash(self, name: PromptName) -> str:
        """Sixteen hex digits that change with the template."""
        return hashlib.sha256(self.source(name).encode()).hexdigest()[:16]

    @cached_property
    def _environment(self) -> Any:
        from jinja2 import ChoiceLoader, FileSystemLoader, PackageLoader, StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        loaders: list[Any] = [PackageLoader("symbal_hf.models.chat", "prompts")]
        if self.folder is not None:
            loaders.insert(0, FileSystemLoader(self.folder))
        # A prompt is plain text, not HTML; a missing value is an error and not a hole.
        return SandboxedEnvironment(loader=ChoiceLoader(loaders), undefined=StrictUndefined, autoescape=False)

    def render(self, name: PromptName, **values: Any) -> str:
        """The prompt with its values filled in; raises `BadData` for one that does not parse or lacks a value."""
        from jinja2 import TemplateError

        if name in self.texts:
            return self.texts[name].strip()
        try:
            return self._environment.get_template(f"{name}.jinja").render(**values).strip()
        except TemplateError as error:
            raise BadData(f"the prompt {name} cannot be filled in: {error}; see the packaged {name}.jinja.") from error
