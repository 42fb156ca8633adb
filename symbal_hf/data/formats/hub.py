"""Datasets of the Hub by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symbal_hf.core.errors import BadData


def hub_dataset(name: str) -> Any:
    """The `datasets.Dataset` of a Hub id, "ns/name:config@split#revision"; raises `BadData` for none or several."""
    from datasets import load_dataset

    rest, _, revision = name.partition("#")
    rest, _, split = rest.partition("@")
    repo, _, config = rest.partition(":")
    try:
        loaded = load_dataset(repo, config or None, split=split or None, revision=revision or None)
    except Exception as error:  # a dozen kinds: no such repo, no network, gated, bad config
        raise BadData(f"{name!r} is no file or folder here and no dataset that the Hub gives: {error}") from error
    if isinstance(loaded, Mapping):
        if len(loaded) > 1:
            one = f"{rest}@{next(iter(loaded))}{'#' * bool(revision)}{revision}"
            raise BadData(f"{name} has splits {', '.join(loaded)}; choose one with '{one}'.")
        loaded = next(iter(loaded.values()))
    return loaded
