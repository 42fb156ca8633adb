"""The model card of a composition, and what keeps one from being shared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from symbal_hf.core.errors import BadData
from symbal_hf.models.composition import preset_names

_PASSWORD = re.compile(r"//[^/@#\s]*@")
_KINDS = re.compile(r"^(?:(?:text-only|vision-language|embedding|hf|st|transformers|open_clip):)+")


def check_portable(parts: Mapping[str, str], *, folders: bool = True) -> None:
    """Refuse to write down parts that mean nothing elsewhere, or should not be read there.

    Args:
        parts: part -> spec.
        folders: whether folders of this machine may be named.

    Raises:
        BadData: a password in an address, an object of the caller's, or a folder.
    """
    for part, spec in parts.items():
        if _PASSWORD.search(spec):
            raise BadData(f"{part} has a password in its address; take it out and set $SYMBAL_API_KEY.")
        if "object:" in spec:
            raise BadData(f"{part}={spec!r} is an object that nobody else has; give a model by name to save it.")
        if not folders and (_folder(spec) or spec.startswith("file:")):
            raise BadData(f"{part}={spec!r} lies on this machine alone; push it to the Hub and name it there.")


def composition_card(preset: str, parts: Mapping[str, str], options: Mapping[str, object]) -> str:
    """README.md of a composition: what it is made of, how it is used, and what its verdict means.

    Args:
        preset: the one that it began as.
        parts: part -> spec, those that are named.
        options: the other options of an audit that it fixes.
    """
    from jinja2 import StrictUndefined, Template

    text = resources.files("hub_cards").joinpath("composition.md.jinja").read_text("utf-8")
    shown = preset if preset in ("lite", *preset_names()) else None
    template = Template(text, undefined=StrictUndefined, keep_trailing_newline=True)
    return template.render(parts=parts, options=options, preset=shown)


def _folder(spec: str) -> bool:
    """Whether a spec names a folder of this machine rather than a repo, an architecture or a server."""
    model = _KINDS.sub("", spec).partition("@")[0]
    if model.startswith(("local-dir:", "/", ".", "~")):
        return True
    return "/" in model and not model.startswith("openai:") and Path(model).is_dir()
