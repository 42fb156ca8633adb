"""The options of what is told of a system whose results are submitted, each said once."""

from __future__ import annotations

from dataclasses import dataclass

from symbal_hf.core.errors import BadData
from symbal_hf.core.options import Group, option


@dataclass(frozen=True)
class Submitting(Group):
    """The submission."""

    name: str | None = option(None, "Of the system; the repo's by default.")
    url: str | None = option(None, "Where to read about the system.")
    benchmark_id: str | None = option(None, "Of the benchmark on the Hub, where it was given as a folder.")
    dry_run: bool = option(False, "Show what would be written, and send nothing.")
    create_pr: bool = option(True, "Open a pull request, which needs no right to write, instead of committing.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dry_run and not self.create_pr:
            raise BadData("create_pr=False changes nothing: with dry_run nothing is sent; leave it out.")
