"""Write a benchmark to disk as parquet: every setting as a table of captions, each image once, and the truth apart."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_builder.bases.base import Base
from benchmark_builder.planting.pairs import MIN_IMAGES, Pair
from benchmark_builder.planting.plant import Ground, Planted, natural_templates
from benchmark_builder.planting.settings import (
    STRENGTHS,
    RowTables,
    Setting,
    candidates,
    features,
    injections_table,
    objects_table,
    settings_table,
    variants,
)
from benchmark_builder.writing.card import STATISTICS, write_card
from benchmark_builder.writing.stats import write_statistics
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.core.progress import Progress, quiet

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "1"  # raise when the same base gives other tables, so that a half-built folder is not gone on with
ROWS_PER_GROUP = 100  # of images: a viewer that reads one group then holds 100 images, not all
SHARD_BYTES = 400 << 20
FOLDERS = ("data", "objects", "images", "injections", "settings")


@dataclass(frozen=True)
class Built:
    """What a build wrote: the folder, the candidate settings, and whether the statistics were drawn."""

    folder: Path
    settings: tuple[Setting, ...]
    has_figures: bool

    @property
    def feasible(self) -> tuple[Setting, ...]:
        """The settings that were written."""
        return tuple(s for s in self.settings if s.feasible)


def build(
    base: Base,
    out: Path,
    *,
    pairs: Sequence[Pair],
    strengths: Sequence[float] = STRENGTHS,
    sampling: str = "table",
    min_images: int = MIN_IMAGES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Built:
    """Plant every pair at every strength into `base` and write what can be reached; other bases in `out` stay.

    Each file appears whole; a build that was stopped goes on where it was when run again with the same arguments, and
    one with other arguments replaces what this base had.

    Args:
        base: rows to plant into.
        out: folder of the benchmark; its last part is the name that `load_dataset` takes.
        pairs: what to plant.
        strengths: target Cramér's V, each in (0, 1].
        sampling: how the pairs were chosen, for the record.
        min_images: settings whose v is in fewer images are recorded as infeasible.
        seed: fixes rows, sentences and their places. The same seed gives the same bytes.
        progress: wraps the loops, as `tqdm` does.

    Raises:
        BadData: `out` holds something else than a benchmark, or nothing is to be planted.
    """
    show = progress or quiet
    if outside := [strength for strength in strengths if not 0 < strength <= 1]:
        raise BadData(f"strength={outside[0]} is outside (0, 1]; the paper uses 0.3, 0.6 and 0.9.")
    if not pairs or not strengths:
        raise BadData(f"nothing to plant into {base.name}: no pair or no strength; is every v in enough images?")
    _check_folder(out)
    for name in FOLDERS:
        (out / name).mkdir(parents=True, exist_ok=True)
    ground = Ground(base, seed=seed)
    settings = tuple(candidates(ground, pairs, strengths, min_images=min_images))
    started, finished = out / f".building-{base.name}", out / "settings" / f"{base.name}.json"
    recipe = _recipe(base, settings, seed)
    if _known(started) != recipe and _known(finished) != recipe:
        _remove(out, base.name)
    write_whole(started, json.dumps({"recipe": recipe}))
    finished.unlink(missing_ok=True)  # written last: a folder that has it is complete

    if base.images is not None:
        _write_images(base, out / "images", show)
    _write(objects_table(base), out / "objects" / f"{base.name}.parquet")
    injections = _write_settings(ground, settings, out, show)
    _write(injections, out / "injections" / f"{base.name}.parquet")
    _write(settings_table(base, settings, seed=seed), out / "settings" / f"{base.name}.parquet")
    about = {
        "base": base.origin, "licence": base.licence, "notes": list(base.notes), "recipe": recipe, "sampling": sampling,
        "seed": seed, "strengths": list(strengths), "variants": list(variants(base)), "version": FORMAT,
    }  # fmt: skip
    write_whole(finished, json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    started.unlink()
    figures = find_spec("matplotlib") is not None  # the benchmark is whole without
    if figures:
        write_statistics(out, out / STATISTICS)
    else:
        shutil.rmtree(out / STATISTICS, ignore_errors=True)  # those of an earlier build would be wrong
    write_card(out, statistics=figures)
    return Built(out, settings, figures)


def _write_settings(ground: Ground, settings: Sequence[Setting], out: Path, show: Progress) -> pa.Table:
    """Every feasible setting in every variant, and the base with nothing planted; returns all injections."""
    import pyarrow as pa

    base, rows = ground.base, RowTables(ground.base)
    injections = [features("injections").arrow_schema.empty_table()]
    jobs: list[tuple[str, Setting | None]] = [(f"{base.name}-clean", None)]
    jobs += [(s.config, s) for s in settings if s.feasible]
    # Compression leaves the interpreter free, so that one setting is compressed while the next is planted.
    with ThreadPoolExecutor(2) as pool:
        waiting: list[Future[None]] = []
        for name, setting in show(jobs, "settings", len(jobs)):
            captions: Sequence[str] = base.captions
            if setting is not None:
                planted = ground.plant(setting.textual_error, setting.visual_feature, setting.strength)
                assert isinstance(planted, Planted)  # it was feasible a moment ago
                captions = planted.captions
                injections.append(injections_table(base, setting, planted, ground.has(setting.visual_feature)))
            for variant in variants(base):
                path = out / "data" / f"{name}-{variant}.parquet"
                if not path.exists():
                    waiting.append(pool.submit(_write, rows.table(captions, variant), path))
            while len(waiting) > 8:
                waiting.pop(0).result()
        for one in waiting:
            one.result()
    return pa.concat_tables(injections)


def _write_images(base: Base, folder: Path, show: Progress) -> None:
    """Shards of encoded images as they are, in row groups that a viewer can hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = features("images").arrow_schema
    done = sorted(folder.glob(f"{base.name}-*.parquet"))
    if done and sum(pq.read_metadata(path).num_rows for path in done) == len(base):
        return
    for path in done:
        path.unlink()
    groups = range(0, len(base), ROWS_PER_GROUP)
    shard, size, writer = 0, 0, None
    try:
        for start in show(groups, "images", len(groups)):
            stop = min(start + ROWS_PER_GROUP, len(base))
            images = [{"bytes": base.encoded(row), "path": None} for row in range(start, stop)]
            if writer is None or size > SHARD_BYTES:
                if writer is not None:
                    writer.close()
                path = folder / f"{base.name}-{shard:05d}.parquet.part"
                # Image files are compressed already.
                writer = pq.ParquetWriter(path, schema, compression="none", use_dictionary=False)
                shard, size = shard + 1, 0
            writer.write_table(pa.table({"image_id": list(base.ids[start:stop]), "image": images}, schema=schema))
            size += sum(len(image["bytes"] or b"") for image in images)
    finally:
        if writer is not None:
            writer.close()
    for part in sorted(folder.glob(f"{base.name}-*.parquet.part")):
        part.replace(part.with_suffix(""))


def _write(table: pa.Table, path: Path) -> None:
    """One table as one parquet file, whole or not at all."""
    import pyarrow.parquet as pq

    part = path.with_name(path.name + ".part")
    pq.write_table(
        table,
        part,
        compression="zstd",
        compression_level=3,
        use_dictionary=False if path.parent.name == "data" else table.column_names,
        row_group_size=max(table.num_rows, 1),
    )
    part.replace(path)


def _check_folder(out: Path) -> None:
    if out.is_file():
        raise BadData(f"{out} is a file; give the folder that the benchmark goes to.")
    known = {*FOLDERS, STATISTICS, "README.md", "eval.yaml"}
    strangers = [p.name for p in out.iterdir() if p.name not in known and p.name[0] != "."] if out.is_dir() else []
    if strangers:
        raise BadData(f"{out} holds {strangers[0]!r}, which is no part of a benchmark; give a new or empty folder.")


def _recipe(base: Base, settings: Sequence[Setting], seed: int) -> str:
    """A digest of everything that the tables follow from."""
    sentences = natural_templates() if base.statements is None else sorted(base.statements.items())
    digest = hashlib.sha256(repr((FORMAT, seed, base.name, settings, sentences)).encode())
    for row, row_id in enumerate(base.ids):
        references = base.references[row] if base.references is not None else ()
        areas = sorted(base.areas[row].items()) if base.areas is not None else ()
        fact = (row_id, base.captions[row], sorted(base.objects[row]), sorted(base.present(row)), references, areas)
        digest.update(repr(fact).encode())
        if isinstance(base.images, tuple):  # the files themselves are too many to read twice
            digest.update(repr(base.images[row].stat().st_size).encode())
    return digest.hexdigest()


def _known(path: Path) -> str | None:
    try:
        return str(json.loads(path.read_text("utf-8")).get("recipe"))
    except (OSError, ValueError):
        return None


def _remove(out: Path, name: str) -> None:
    """Everything of one base."""
    own = re.compile(rf"{name}(-.*)?\.(parquet|json)((\.\d+-\d+)?\.part)?")
    for folder in FOLDERS:
        for path in (out / folder).iterdir():
            if own.fullmatch(path.name):
                path.unlink()
