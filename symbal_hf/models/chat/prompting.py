"""The prompts: packaged Jinja files, each with a hash, any of which a folder of the user's own may replace."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    from jinja2 import Environment, Template

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
    _templates: dict[str, Template] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.folder is None:
            return
        if not self.folder.is_dir():
            raise BadData(f"no folder {self.folder} with prompts.")
        names = sorted(path.stem for path in self.folder.glob("*.jinja"))
        if unknown := [name for name in names if name not in PROMPTS]:
            raise BadData(
                f"{self.folder} has {unknown[0]}.jinja, which no part asks; prompts are {', '.join(PROMPTS)}."
            )
        if not names:
            raise BadData(f"{self.folder} holds no prompt; name files {PROMPTS[0]}.jinja and so on.")

    def source(self, name: PromptName) -> str:
        if name in self.texts:
            return self.texts[name]
        if self.folder is not None and (replaced := self.folder / f"{name}.jinja").is_file():
            return replaced.read_text("utf-8")
        return resources.files("symbal_hf.models.chat").joinpath(f"prompts/{name}.jinja").read_text("utf-8")

    def hash(self, name: PromptName) -> str:
        """Sixteen hex digits that change with the template."""
        return hashlib.sha256(self.source(name).encode()).hexdigest()[:16]

    @cached_property
    def _environment(self) -> Environment:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        # A prompt is plain text, not HTML; a missing value is an error and not a hole.
        return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=False, autoescape=False)

    def render(self, name: PromptName, **values: Any) -> str:
        """The prompt with its values filled in; raises `BadData` for one that does not parse or lacks a value."""
        from jinja2 import TemplateError

        if name in self.texts:
            return self.texts[name].strip()
        try:
            if name not in self._templates:
                self._templates[name] = self._environment.from_string(self.source(name))
            return self._templates[name].render(**values).strip()
        except TemplateError as error:
            raise BadData(f"the prompt {name} cannot be filled in: {error}; see the packaged {name}.jinja.") from error
