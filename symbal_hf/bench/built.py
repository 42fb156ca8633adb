"""Settings of a built SymbalBench, with the images joined in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData
from symbal_hf.data.benchmarks import find_benchmark

if TYPE_CHECKING:
    from datasets import Dataset


def load_setting(config: str, *, path: str | Path | None = None, images: bool = True, **options: Any) -> Dataset:
    """One setting as a `datasets.Dataset`: image_id, caption, references where it has them, and the image.

    Args:
        config: name with the variant, such as "natural-cat-person-0.6-reference_free".
        path: folder or Hub id of the benchmark; by default the one that is here or was built last.
        images: join the images, which are stored once for all settings, by id; a text base has none.
        options: passed on to `load_dataset`, such as revision or token.

    Raises:
        BadData: no benchmark, or no such setting in it.
    """
    from datasets import concatenate_datasets, get_dataset_config_names, load_dataset

    where = find_benchmark(path)
    known = get_dataset_config_names(where, **options)
    if config not in known:
        raise BadData(f"{where} has no setting {config!r}; {_nearest(config, known)}.")
    rows = load_dataset(where, config, split="test", **options)
    shown = f"images-{config.partition('-')[0]}"
    if not images or shown not in known:
        return rows
    pictures = load_dataset(where, shown, split="test", **options)
    place = {row_id: row for row, row_id in enumerate(pictures["image_id"])}
    missing = [row_id for row_id in rows["image_id"] if row_id not in place]
    if missing:
        raise BadData(f"{where}: {shown} lacks the image {missing[0]!r} of {config}; build the benchmark anew.")
    pictures = pictures.select([place[row_id] for row_id in rows["image_id"]]).remove_columns("image_id")
    return concatenate_datasets([rows, pictures], axis=1)


def _nearest(config: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(config, known, n=3)
    return f"the nearest are {', '.join(near)}" if near else f"it has {len(known)}, such as {known[-1]}"
