"""A whole benchmark as one source for an estimate: every sentence of every setting, once an image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from symbal_hf.bench.settings import Bench, Setting
from symbal_hf.data.table import AuditData


def sources(bench: Bench, settings: Iterable[Setting]) -> Iterator[tuple[str, int, AuditData]]:
    """For each group of settings its name, how many there are, and rows whose captions hold all their sentences.

    Settings share captions but for what was planted, and no (image, sentence) pair is scored twice, so this is what a
    run over all of them scores.
    """
    from pyarrow import parquet

    for group, members in groupby(sorted(settings, key=lambda s: s.group), key=lambda s: s.group):
        chosen = list(members)
        base, names = chosen[0].base, {setting.row["config"] for setting in chosen}
        planted: dict[str, set[str]] = defaultdict(set)
        for row in parquet.read_table(bench.folder / "injections" / f"{base}.parquet").to_pylist():
            if row["config"] in names:
                planted[row["image_id"]].add(row["sentence"])
        clean = bench.data(Setting(f"{base}-clean-{chosen[0].variant}", chosen[0].variant, base, {}))
        captions = tuple(
            " ".join((caption, *sorted(planted.get(row_id, ()))))
            for row_id, caption in zip(clean.ids, clean.captions, strict=True)
        )
        source = f"{len(chosen)} settings of {group}"
        yield group, len(chosen), replace(clean, captions=captions, source=source)
