"""SymbalBench as a `datasets` builder: a setting is made from the user's copy of a base when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import datasets

from benchmark_builder.bases.load import read_base
from benchmark_builder.planting.inject import Infeasible
from benchmark_builder.planting.pairs import paper_pairs
from benchmark_builder.planting.plant import Ground
from benchmark_builder.planting.settings import STRENGTHS, VARIANTS, RowTables, Variant, config_name, features
from symbal_hf.core.errors import BadData

VERSION = "1.0.0"  # part of the cache path: raise it when the same config gives other rows


@dataclass
class SymbalBenchConfig(datasets.BuilderConfig):
    """One setting in one variant.

    Attributes:
        base: "coco", "mimic_cxr", "openi", "scenes" or "custom"; `data_dir` is where its data lie.
        textual_error: t. Neither t nor v: the base with nothing planted.
        visual_feature: v.
        strength: target Cramér's V, in (0, 1].
        variant: "reference_free" or "reference_based".
        seed: fixes captions, rows, sentences and their places.
        options: what the base's reader takes besides.
    """

    name: str = "default"
    base: str = "coco"
    textual_error: str | None = None
    visual_feature: str | None = None
    strength: float = 0.6
    variant: Variant = "reference_free"
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.textual_error is None) != (self.visual_feature is None):
            raise ValueError("give both textual_error and visual_feature, or neither for a clean base.")
        if self.variant not in VARIANTS:
            raise ValueError(f"variant {self.variant!r}; choose among {', '.join(VARIANTS)}.")
        if str(self.name) == "default":
            prefix = {"coco": "natural", "mimic_cxr": "medical"}.get(self.base, self.base)
            setting = f"{prefix}-clean"
            if self.textual_error is not None and self.visual_feature is not None:
                setting = config_name(prefix, self.visual_feature, self.textual_error, self.strength)
            self.name = f"{setting}-{self.variant}"
        super().__post_init__()


def _paper_configs() -> list[SymbalBenchConfig]:
    """Both variants of the clean bases and of every candidate setting of the paper, those out of reach included."""
    out: list[SymbalBenchConfig] = []
    for base, pairs in (("coco", paper_pairs("natural")), ("mimic_cxr", paper_pairs("medical"))):
        cases: list[dict[str, Any]] = [{}]
        cases += [
            {"textual_error": pair.textual_error, "visual_feature": pair.visual_feature, "strength": strength}
            for pair in pairs
            for strength in STRENGTHS
        ]
        out += [SymbalBenchConfig(base=base, version=VERSION, variant=v, **case) for case in cases for v in VARIANTS]
    return out


class SymbalBench(datasets.ArrowBasedBuilder):
    """The settings of the paper by name, and any other by its parts.

    >>> SymbalBench(config_name="natural-cat-person-0.6-reference_free", data_dir="coco")  # doctest: +SKIP
    >>> SymbalBench(base="scenes", visual_feature="cat", textual_error="ball", strength=0.6)  # doctest: +SKIP

    Then `.download_and_prepare()` and `.as_dataset(split="test")`. A strength out of reach raises, with the largest one
    that is not. For all settings at once write a folder (`symbal bench build`), which needs this package no more.
    """

    VERSION = datasets.Version(VERSION)
    BUILDER_CONFIG_CLASS = SymbalBenchConfig
    BUILDER_CONFIGS = _paper_configs()
    config: SymbalBenchConfig

    def _info(self) -> datasets.DatasetInfo:
        config = self.config
        planted = "nothing planted" if config.textual_error is None else (
            f"{config.textual_error!r} planted with {config.visual_feature!r} at Cramér's V {config.strength}"
        )  # fmt: skip
        return datasets.DatasetInfo(
            description=f"Captions of the base {config.base}, {planted}.",
            features=features("rows", references=config.variant == "reference_based"),
            homepage="https://arxiv.org/abs/2607.15216",
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        # Data that cannot be used fail here: further on datasets would wrap the sentence that says why.
        config = self.config
        base = read_base(config.base, config.data_dir, seed=config.seed, **config.options)
        captions = base.captions
        if config.textual_error is not None and config.visual_feature is not None:
            planted = Ground(base, seed=config.seed).plant(config.textual_error, config.visual_feature, config.strength)
            if isinstance(planted, Infeasible):
                raise BadData(
                    f"{config.name}: Cramér's V {config.strength} is out of reach in these {len(base):,} rows; the "
                    f"largest is {planted.largest:.3f}."
                )
            captions = planted.captions
        table = RowTables(base).table(captions, config.variant)
        return [datasets.SplitGenerator(name="test", gen_kwargs={"table": table})]

    def _generate_tables(self, table: Any) -> Iterator[tuple[int, Any]]:
        yield 0, table
