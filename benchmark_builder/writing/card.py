"""The dataset card (README.md) and the Hub's benchmark registration (eval.yaml), from what a built folder holds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from benchmark_builder.writing.stats import Statistics, summary_rows
from benchmark_builder.writing.stats import statistics as count
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole

Domain = Mapping[str, Any]  # one base of the folder, as the card shows it

STATISTICS = "statistics"  # the folder of the figures, inside the benchmark
_FIGURES = {
    "composition.png": "Settings by dataset size, strength, share of pairs with t and share of pairs with v",
    "features.png": "Settings by mean share of the image that v takes and by sampling category",
}
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")


_ORIGINS: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    resources.files("benchmark_builder.writing").joinpath("origins.yaml").read_text("utf-8")
)["origins"]
# Ids of the Hub that a custom base may give as its licence.
_LICENCE_IDS = {
    "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "mit", "apache-2.0", "unknown"
}  # fmt: skip


def write_card(folder: str | Path, *, statistics: bool) -> Path:
    """Write README.md and eval.yaml of a built benchmark; equal folders give equal bytes.

    Args:
        folder: a built benchmark with one or more bases.
        statistics: show the figures that `write_statistics` wrote into `folder`/statistics.

    Returns:
        The path of README.md.

    Raises:
        BadData: a folder without settings, a setting without its data, or figures that are not there.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(folder)
    stats = count(folder)
    domains = [_domain(folder, path, stats) for path in sorted((folder / "settings").glob("*.parquet"))]
    files = _files(folder)
    example = _check(folder, domains, files)
    shown = _figures(folder, stats) if statistics else []
    environment = Environment(
        loader=FileSystemLoader(str(resources.files("hub_cards"))),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # no autoescape: neither result is HTML
    environment.filters.update(number="{:,}".format, cell=lambda text: text.replace("|", "\\|"))
    name = f"SymbalBench, independently rebuilt ({', '.join(d['name'] for d in domains)})"
    values = {
        "title": name,
        "name": name,
        "front_matter": _front_matter(folder, name, domains, files),
        "restricted": " and ".join(d["name"] for d in domains if d["origin"] == "mimic_cxr"),
        "total": stats.summaries[-1],
        "summary": summary_rows(stats),
        "left_out": stats.left_out,
        "example": example,
        "figures": shown,
        "domains": domains,
        "tasks": [f"{d['name']}_{variant}" for d in domains if d["summary"]["feasible"] for variant in d["variants"]],
        "limits": _once(limit for d in domains for limit in _ORIGINS[d["origin"]]["limits"]),
        "citations": _once(filter(None, (_ORIGINS[d["origin"]]["citation"] for d in domains))),
    }
    for path, template in (("eval.yaml", "eval.yaml.jinja"), ("README.md", "dataset.md.jinja")):
        write_whole(folder / path, environment.get_template(template).render(values))
    return folder / "README.md"


def _domain(folder: Path, path: Path, stats: Statistics) -> Domain:
    record = path.with_suffix(".json")
    if not record.is_file():
        raise BadData(f"{record} is missing, so the build of {path.stem} has not ended; run it again.")
    told = json.loads(record.read_text("utf-8"))
    origin = told["base"] if told["base"] in _ORIGINS else "custom"
    sampling = told["sampling"] if isinstance(told["sampling"], str) else ", ".join(told["sampling"])
    return {
        **told,
        "name": path.stem,
        "origin": origin,
        "about": _ORIGINS[origin]["about"],
        "licence": _line(told["licence"]),
        "notes": [_line(note) for note in told["notes"]],
        "sampling": _line(sampling),
        "has_images": any((folder / "images").glob(f"{path.stem}-*.parquet")),
        "summary": next(summary for summary in stats.summaries if summary["domain"] == path.stem),
    }


def _line(text: str) -> str:
    """One line without tags, so that nothing a base says of itself can open a block of Markdown or HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _files(folder: Path) -> dict[str, list[Path]]:
    """The files of each config, the default config first and the others sorted."""
    configs: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*/*.parquet")):
        kind, stem = path.parent.name, path.stem
        names = {"objects": f"objects-{stem}", "images": "images-" + re.sub(r"-\d{5}$", "", stem), "data": stem}
        name = names.get(kind, kind)
        if kind in (*names, "settings", "injections"):
            configs.setdefault(name, []).append(path)
    return dict(sorted(configs.items(), key=lambda item: (item[0] != "settings", item[0])))


def _check(folder: Path, domains: Sequence[Domain], files: dict[str, list[Path]]) -> dict[str, Any]:
    """The setting that the card shows, once all that are promised are there: a moderate one if possible."""
    import pyarrow.parquet as pq

    rows = []
    for domain in domains:
        for row in pq.read_table(folder / "settings" / f"{domain['name']}.parquet").to_pylist():
            missing = [f"{row['config']}-{v}" for v in domain["variants"] if f"{row['config']}-{v}" not in files]
            if row["feasible"] and missing:
                raise BadData(f"{folder}/data/{missing[0]}.parquet is missing; build {domain['name']} again.")
            data = row["config"] if row["feasible"] else f"{domain['name']}-clean"
            rows.append({**row, "file": f"{data}-{domain['variants'][0]}"})
    if not rows:
        raise BadData(f"the settings tables of {folder} have no rows; build with at least one pair (t, v).")
    return min(rows, key=lambda row: (not row["feasible"], row["strength_target"] != 0.6))


def _figures(folder: Path, stats: Statistics) -> list[dict[str, str]]:
    shown = [{"path": f"{STATISTICS}/{name}", "alt": alt} for name, alt in _FIGURES.items()]
    shown = [figure for figure in shown if (folder / figure["path"]).is_file()]
    if len(stats.settings) and not shown:
        raise BadData(f"{folder / STATISTICS} has no figures; write the statistics there before the card.")
    return shown


def _front_matter(folder: Path, name: str, domains: Sequence[Domain], files: dict[str, list[Path]]) -> str:
    """The card's YAML: what the Hub searches by, the files of each config, and the sizes of those settings share."""
    from datasets import DatasetInfo, Features
    from datasets.info import DatasetInfosDict
    from datasets.splits import SplitDict, SplitInfo
    from huggingface_hub import DatasetCardData
    from pyarrow import parquet as pq

    origins = [_ORIGINS[d["origin"]] for d in domains]
    data = DatasetCardData(
        pretty_name=name,
        language=["en"],
        annotations_creators=["machine-generated"],
        task_categories=["image-to-text"],
        task_ids=["image-captioning"],
        tags=_once(
            ["benchmark", "captioning", "hallucination", "dataset-auditing", *(t for o in origins for t in o["tags"])]
        ),
        source_datasets=_once(origin["source"] for origin in origins),
    )
    for field, value in _licence(domains).items():
        data[field] = value
    clean = {f"{d['name']}-clean-{variant}" for d in domains for variant in d["variants"]}
    infos, n_rows = DatasetInfosDict(), 0
    data["configs"] = [_config(config, paths, folder) for config, paths in files.items()]
    for config, paths in files.items():
        footers = [pq.read_metadata(path) for path in paths]
        n_rows += sum(footer.num_rows for footer in footers)
        # `datasets` parses the whole card at every load: with the sizes of hundreds of settings too, which the settings
        # table has anyway, each load would take three times as long.
        if paths[0].parent.name == "data" and config not in clean:
            continue
        n_bytes = sum(f.row_group(k).total_byte_size for f in footers for k in range(f.num_row_groups))
        split = SplitInfo("test", num_bytes=n_bytes, num_examples=sum(footer.num_rows for footer in footers))
        infos[config] = DatasetInfo(
            features=Features.from_arrow_schema(footers[0].schema.to_arrow_schema()),
            splits=SplitDict({"test": split}),
            download_size=sum(path.stat().st_size for path in paths),
            dataset_size=n_bytes,
        )
    infos.to_dataset_card_data(data)
    data["size_categories"] = [_SIZES[sum(n_rows > 10**k for k in range(3, 9))]]
    if any(d["origin"] == "mimic_cxr" for d in domains):
        data["extra_gated_prompt"] = (
            "Part of this dataset is made from MIMIC-CXR, which may be read only by persons who hold PhysioNet "
            "credentials and signed its data use agreement. It must not be passed on."
        )
    return data.to_yaml()


def _config(config: str, paths: Sequence[Path], folder: Path) -> dict[str, Any]:
    path: list[str] | str = [p.relative_to(folder).as_posix() for p in paths]
    path = path[0] if len(path) == 1 else path
    default = {"default": True} if config == "settings" else {}
    return {"config_name": config, **default, "data_files": [{"split": "test", "path": path}]}


def _licence(domains: Sequence[Domain]) -> dict[str, str]:
    """The Hub's licence fields: an id if it covers all bases, else "other" with a name, and a link to the terms."""
    found = set()
    for domain in domains:
        own = domain["licence"].lower()
        custom = domain["origin"] == "custom" and own in _LICENCE_IDS
        found.add((own, "", "") if custom else tuple(_ORIGINS[domain["origin"]]["licence"]))
    licence, name, link = found.pop() if len(found) == 1 else ("other", "terms-of-each-base", "")
    fields = {"license": licence, "license_name": name, "license_link": link}
    return {field: value for field, value in fields.items() if value}
