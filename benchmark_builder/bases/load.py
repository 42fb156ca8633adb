"""The five bases by name, each read with the options that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from benchmark_builder.bases.base import Base
from symbal_hf.core.errors import BadData

READERS = {
    "coco": "coco:coco_base",
    "mimic_cxr": "mimic:mimic_base",
    "openi": "openi:openi_base",
    "scenes": "open_bases:scenes_base",
    "custom": "open_bases:custom_base",
}


def read_base(origin: str, source: str | Path | None = None, **options: Any) -> Base:
    """Read a base.

    Args:
        origin: "coco", "mimic_cxr", "openi", "scenes" or "custom".
        source: the user's copy of the data; only "scenes" does without.
        options: what that base's reader takes (`coco_base`, `mimic_base`, `openi_base`, `scenes_base`, `custom_base`);
            None stands for its default. `images=False` leaves the images of any base out.

    Raises:
        BadData: an unknown base, no source, an option that this base does not take, or data that cannot be used.
    """
    if origin not in READERS:
        raise BadData(f"base {origin!r}; choose among {', '.join(READERS)}.")
    reader: Callable[..., Base] = resolve_name(f"benchmark_builder.bases.{READERS[origin]}")
    given = {name: value for name, value in options.items() if value is not None}
    taken = list(inspect.signature(reader).parameters)[1:]
    plain = given.get("images") is False and "images" not in taken
    if plain:
        del given["images"]
    if strange := [name for name in given if name not in taken]:
        raise BadData(f"the base {origin} takes no {strange[0]}; its options are {', '.join(taken)}.")
    if origin != "scenes" and source is None:
        raise BadData(f"the base {origin} is read from your own copy; give its folder or file with --source.")
    if origin in ("coco", "mimic_cxr", "openi") and not Path(str(source)).is_dir():
        raise BadData(f"no folder {source}; the base {origin} is read from the folder of your own copy.")
    read = reader(source if origin == "custom" or source is None else Path(source), **given)
    return replace(read, images=None) if plain else read
