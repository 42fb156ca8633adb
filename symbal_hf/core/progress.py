"""How far a loop is, told by whoever wants to show it: a wrapper around the loop's items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Progress = Callable[[Iterable[Any], str, int], Iterable[Any]]  # of items, what they are, and how many


def quiet(items: Iterable[Any], label: str, total: int) -> Iterable[Any]:
    """Progress that shows nothing."""
    return items
