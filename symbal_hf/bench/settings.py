"""A built benchmark as a method may see it: its settings, chosen by an expression, and the rows of each, untold."""

from __future__ import annotations

import difflib
import hashlib
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.bench.acc_at_k import COLUMNS, VARIANTS
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import refuse_idle
from symbal_hf.data.benchmarks import find_benchmark
from symbal_hf.data.table import AuditData, Images
from symbal_hf.huggingface.publish import reason

if TYPE_CHECKING:
    from datasets import Dataset

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "==": operator.eq, "=": operator.eq,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|=|<|>)\s*(.+?)\s*")


@dataclass(frozen=True)
class Setting:
    """One dataset of the benchmark, with its truth, which no method is shown."""

    name: str  # of its rows, such as "scenes-cat-bed-0.6-reference_free"
    variant: str  # "reference_free" or "reference_based"
    base: str  # first part of the name, whose images its rows share with others
    row: Mapping[str, Any]  # its row of the settings table

    @property
    def truth(self) -> dict[str, Any]:
        """What was planted, as `acc_at_k` takes it."""
        return {**self.row, "variant": self.variant}

    @property
    def group(self) -> str:
        """Settings of one group differ in their captions alone."""
        return f"{self.base}-{self.variant}"


@dataclass(frozen=True)
class Bench:
    """A built benchmark in a folder."""

    folder: Path  # as `symbal bench build` made it
    settings: tuple[Setting, ...]  # the feasible ones, each variant on its own, in the order of their names
    _images: dict[str, tuple[tuple[str, ...], Images]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def by_name(self) -> dict[str, Setting]:
        """The settings by their names."""
        return {setting.name: setting for setting in self.settings}

    @cached_property
    def revision(self) -> str:
        """Sixteen hex digits of everything that was planted: equal builds have equal ones, wherever they lie."""
        digest = hashlib.sha256()
        for table in ("settings", "injections"):
            for path in sorted((self.folder / table).glob("*.parquet")):
                digest.update(path.name.encode() + path.read_bytes())
        return digest.hexdigest()[:16]

    def has_images(self, base: str) -> bool:
        """Whether the images of this base are stored."""
        return any((self.folder / "images").glob(f"{base}-*.parquet"))

    def data(self, setting: Setting) -> AuditData:
        """The rows of a setting as an audit reads them: captions, images where stored, references in that variant."""
        from pyarrow import parquet

        path = self.folder / "data" / f"{setting.name}.parquet"
        if not path.is_file():
            raise BadData(f"{self.folder} lacks {path.name} of its settings table; build the benchmark anew.")
        table = parquet.read_table(path)
        ids = tuple(table.column("image_id").to_pylist())
        references = table.column("references").to_pylist() if "references" in table.column_names else None
        return AuditData(
            ids=ids,
            captions=tuple(table.column("caption").to_pylist()),
            references=None if references is None else tuple(tuple(texts) for texts in references),
            objects=None,
            images=self._images_of(setting.base, ids),
            skipped=(),
            source=setting.name,
        )

    def _images_of(self, base: str, ids: Sequence[str]) -> Images | None:
        """The images of these rows; the same object for all settings of a base, whose rows are the same."""
        from datasets import Dataset, Image

        if not self.has_images(base):
            return None
        if base not in self._images:
            files = sorted(str(path) for path in (self.folder / "images").glob(f"{base}-*.parquet"))
            shown: Any = Dataset.from_parquet(files).cast_column("image", Image(decode=False))
            index = _index_of(ids, shown["image_id"], f"{self.folder}: the images of {base}")
            self._images[base] = tuple(ids), Images(shown["image"], index, None)
        known, images = self._images[base]
        if known != tuple(ids):
            raise BadData(f"{self.folder}: settings of {base} hold different images; build the benchmark anew.")
        return images


def open_bench(path: Bench | str | Path | None = None, *, revision: str | None = None) -> Bench:
    """The benchmark in a folder, on the Hub, or the one that was built last.

    Args:
        path: folder or Hub id, or a benchmark that is open already; by default ./symbalbench, else the one that was
            built last on this machine.
        revision: of a Hub repo.

    Raises:
        BadData: no benchmark there.
    """
    from pyarrow import parquet

    if isinstance(path, Bench):
        return path
    where = find_benchmark(path)
    folder = Path(where)
    if folder.is_dir():
        refuse_idle(f"{where} is a folder of this machine", revision=revision)
    else:
        from huggingface_hub import snapshot_download

        try:
            folder = Path(snapshot_download(where, repo_type="dataset", revision=revision))
        except Exception as error:  # a dozen kinds: no such repo, no network, gated
            raise BadData(f"{where!r} is no folder here and no dataset that the Hub gives: {reason(error)}.") from error
    settings = []
    files = sorted((folder / "settings").glob("*.parquet"))
    for row in (row for file in files for row in parquet.read_table(file).to_pylist()):
        for ending in VARIANTS:
            name = row["config"] + ending
            if row["feasible"] and (folder / "data" / f"{name}.parquet").is_file():
                settings.append(Setting(name, ending.removeprefix("-"), row["config"].partition("-")[0], row))
    if not settings:
        raise BadData(f"{where} holds no setting that something was planted in; build it with `symbal bench build`.")
    return Bench(folder, tuple(sorted(settings, key=lambda s: (s.group, s.name))))


def choose(settings: Iterable[Setting], where: str | None) -> list[Setting]:
    """The settings for which an expression holds, such as "domain=natural and strength>=.6".

    Conditions are joined by "and"; each compares a column of the settings table, "variant", or one of the names that
    the metric has for them (strength is the target, sampling, feature_size) with a number or a text by = != < <= > >=.
    A column with several values, such as sampling, is equal to each of them.

    Raises:
        BadData: an expression of another form, a column that is not there, or nothing chosen.
    """
    settings = list(settings)
    if where is None:
        return settings
    conditions = []
    for part in re.split(r"\s+and\s+", where.strip()):
        matched = _CONDITION.fullmatch(part)
        if matched is None:
            raise BadData(f"where {part!r}: write COLUMN OPERATOR VALUE, such as strength>=.6, joined by and.")
        conditions.append((matched[1], matched[2], matched[3].strip("'\"")))
    chosen = [s for s in settings if all(_holds(s, *condition) for condition in conditions)]
    if not chosen:
        raise BadData(f"where {where!r} holds for none of {len(settings)} settings.")
    return chosen


def _holds(setting: Setting, column: str, sign: str, wanted: str) -> bool:
    values = {**setting.truth, "name": setting.name}
    for alias, columns in COLUMNS.items():
        values[alias] = next((setting.row[name] for name in columns if setting.row.get(name) is not None), None)
    if column not in values:
        raise BadData(f"where: no column {column!r}; there are {', '.join(sorted(values))}.")
    value, compare = values[column], _OPERATORS[sign]
    if isinstance(value, list):
        if sign not in ("=", "==", "!="):
            raise BadData(f"where: {column} has names, which are = or != {wanted!r}, not {sign}.")
        return (wanted in value) == (sign != "!=")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return compare(value, float(wanted))
        except ValueError:
            raise BadData(f"where: {column} is a number, and {wanted!r} is none.") from None
    if value is None:
        return sign == "!="
    return compare(str(value).lower(), wanted.lower())


def load_setting(config: str, *, path: str | Path | None = None, images: bool = True, **options: Any) -> Dataset:
    r"""One setting as a `datasets.Dataset`: image_id, caption, references where it has them, and the image.

    Args:
        config: name with the variant, such as "natural-cat-person-0.6-reference_free".
        path: folder or Hub id of the benchmark; by default the one that is here or was built last.
        images: join the images, which are stored once for all settings, by id; a text base has none.
        options: passed on to `load_dataset`, such as revision or token.

    Raises:
        BadData: no benchmark, or no such setting in it.

    Examples:
        >>> from pathlib import Path
        >>> import symbal_hf
        >>> from datasets import Dataset
        >>> bench, name = Path("symbalbench"), "scenes-cat-bed-0.6-reference_free"
        >>> for table, row in (("settings/scenes", {"config": [name]}), (f"data/{name}", {"image_id": ["1"]})):
        ...     _ = Dataset.from_dict(row).to_parquet(bench / f"{table}.parquet")
        >>> files = f"data_files: [{{split: test, path: data/{name}.parquet}}]"
        >>> card = f"---\nconfigs:\n- config_name: {name}\n  {files}\n---\n"
        >>> _ = (bench / "README.md").write_text(card)  # `symbal bench build` makes all this
        >>> symbal_hf.load_setting(name)["image_id"][:]
        ['1']
    """
    from datasets import concatenate_datasets, get_dataset_config_names, load_dataset

    where = find_benchmark(path)
    known = get_dataset_config_names(where, **options)
    if config not in known:
        near = difflib.get_close_matches(config, known, n=3)
        there = f"the nearest are {', '.join(near)}" if near else f"it has {len(known)}, such as {known[-1]}"
        raise BadData(f"{where} has no setting {config!r}; {there}.")
    rows = load_dataset(where, config, split="test", **options)
    shown = f"images-{config.partition('-')[0]}"
    if not images or shown not in known:
        return rows
    pictures = load_dataset(where, shown, split="test", **options)
    index = _index_of(rows["image_id"], pictures["image_id"], f"{where}: the images of {config}")
    return concatenate_datasets([rows, pictures.select(index).remove_columns("image_id")], axis=1)


def _index_of(wanted: Iterable[str], ids: Iterable[str], what: str) -> list[int]:
    """Where each of `wanted` is among `ids`."""
    index = {row_id: row for row, row_id in enumerate(ids)}
    if missing := [row_id for row_id in wanted if row_id not in index]:
        raise BadData(f"{what} lack {missing[0]!r}; build the benchmark anew.")
    return [index[row_id] for row_id in wanted]
