"""Score results of runs beside each other: every pair of names is judged once, and no setting is silently dropped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal, get_args

from symbal_hf.bench.acc_at_k import NAMES, acc_at_k
from symbal_hf.bench.figures import TITLES, VARIANTS, bars, draw
from symbal_hf.bench.published import Stage, best, published, published_domain
from symbal_hf.bench.results import CALLS, read_lines, read_manifest, read_run
from symbal_hf.bench.settings import Bench, Setting, open_bench
from symbal_hf.bench.tables import TABLES, csv_text, markdown, tables
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole
from symbal_hf.core.options import Scoring, take
from symbal_hf.core.store import Store
from symbal_hf.matching.judge import Remembering
from symbal_hf.matching.load import load_judge
from symbal_hf.models.encoders.embedding import Progress, quiet

Missing = Literal["wrong", "left_out"]
WITHIN = ("strength", "sampling", "feature_size")  # strata of a domain and a variant


@dataclass(frozen=True)
class _Run:
    """A folder of results, joined with the settings that it is about."""

    name: str
    manifest: Mapping[str, Any]
    settings: tuple[Setting, ...]
    lines: Mapping[str, Mapping[str, Any]]
    failed: Mapping[str, str]
    unlisted: tuple[str, ...]


def report(
    folders: str | Path | Iterable[str | Path],
    *,
    bench: str | Path | Bench | None = None,
    k: int | Iterable[int] = (1, 5),
    out: str | Path | None = None,
    missing: Missing = "wrong",
    store: Store | None = None,
    progress: Progress = quiet,
    **options: Any,
) -> dict[str, Any]:
    """Score what `symbal bench run` wrote, and write the paper's tables and figures for it.

    Args:
        folders: of results, one a run, all on the same benchmark.
        bench: that benchmark: opened, its folder or Hub id; by default the one that is here or was built last.
        k: how many names count, each at least 1; the paper has 1 and 5.
        out: folder for report.md, scores.json, tables (CSV) and figures (PNG and CSV); None writes nothing.
        missing: what a setting that a run lists and did not finish counts as: "wrong", or "left_out" of the shares.
        options: judge, resamples and seed, as `symbal_hf.core.options.Scoring` has them; a judge may be whatever
            `symbal_hf.matching.load.load_judge` takes, whose answers `store` keeps.

    Returns:
        The content of scores.json. "runs" have "groups": the settings of one variant and one domain (or "all" domains,
        where there are several), whose "scores" are `acc_at_k`'s, with counts, verdicts, calls, seconds and pairs.
        "published" are the paper's rows of the same domains and variants.

    Raises:
        BadData: no folder, one given twice, another benchmark than the runs', a line of another form, or a bad option.
        FileNotFoundError: a folder holds no run.
    """
    (scoring,) = take(options, Scoring, by="report")
    if missing not in get_args(Missing):
        raise BadData(f"missing={missing!r}; choose among {', '.join(get_args(Missing))}.")
    given = [Path(f) for f in ([folders] if isinstance(folders, (str, Path)) else folders)]
    names = _names(given)
    if out is not None:
        from symbal_hf.bench.figures import check_matplotlib

        check_matplotlib()  # before a judge works for an hour
    for folder in given:
        read_manifest(folder)  # no run there is said first: a benchmark may have to be fetched
    opened = open_bench(bench)
    runs = [_read(name, folder, opened) for name, folder in zip(names, given, strict=True)]
    ks = (k,) if isinstance(k, int) else tuple(k)
    once = Remembering(load_judge(scoring.judge, store=store, progress=progress))
    rows = [pair for run in runs for pair in _rows(run, run.settings, missing)]
    # All at once first, so that a server is kept busy, and so that the counts are of all runs together.
    how: dict[str, Any] = {"judge": once, "k": ks, "seed": scoring.seed}
    whole = acc_at_k(*zip(*rows, strict=True), **how, strata=(), resamples=0) if rows else {}
    how |= {"strata": WITHIN, "resamples": scoring.resamples}
    scored = [_scored(run, opened, missing, how) for run in runs]
    beside = {(published_domain(group["domains"]), group["variant"]) for run in scored for group in run["groups"]}
    listed = [{setting.name for setting in run.settings} for run in runs]
    scores: dict[str, Any] = {
        "benchmark": {
            "name": opened.folder.resolve().name, "revision": opened.revision, "settings": len(opened.settings),
        },
        "judge": {"name": once.name, "revision": once.revision, "prompt_hash": once.prompt_hash},
        **{key: whole.get(key, 0) for key in ("judgements", "unparsed", "failed")},
        "k": sorted(set(ks)), "missing": missing, "resamples": scoring.resamples, "seed": scoring.seed,
        "same_settings": all(names == listed[0] for names in listed),
        "runs": scored,
        "published": [asdict(row) for row in published() if (row.domain, row.variant) in beside],
    }  # fmt: skip
    scores = json.loads(json.dumps(scores, ensure_ascii=False, allow_nan=False))
    if out is not None:
        write(scores, Path(out))
    return scores


def write(scores: Mapping[str, Any], out: Path) -> dict[str, Path]:
    """Write scores.json and what is made from it alone: report.md, a CSV for each table, PNG and CSV of the figures.

    A figure or table of an earlier report that has nothing to show now is removed, for it would contradict this one.

    Returns:
        The files, by name.
    """
    contents: dict[str, str | bytes | None] = {"scores.json": json.dumps(scores, ensure_ascii=False, indent=2) + "\n"}
    filled = tables(scores)
    contents.update({f"{name}.csv": csv_text(filled[name].rows) if name in filled else None for name in TABLES})
    shown = []
    for figure in TITLES:
        data = bars(scores, figure)
        contents[f"{figure}.csv"] = csv_text(map(asdict, data)) if data else None
        contents[f"{figure}.png"] = draw(figure, data) if data else None
        shown += [figure] if data else []
    contents["report.md"] = markdown(scores, figures=shown)
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if content is None:
            (out / name).unlink(missing_ok=True)
        else:
            write_whole(out / name, content)
    return {name: out / name for name, content in contents.items() if content is not None}


def _names(folders: Sequence[Path]) -> list[str]:
    """What the runs are called: their folders' names, with as much of the path as tells them apart."""
    if not folders:
        raise BadData("no folder of results; give at least one that `symbal bench run` wrote.")
    paths = [folder.resolve() for folder in folders]
    if twice := [folder for index, folder in enumerate(folders) if paths[index] in paths[:index]]:
        raise BadData(f"{twice[0]} is given twice; give each folder of results once.")
    longest = max(len(path.parts) for path in paths)
    for parts in range(1, longest + 1):
        names = ["/".join(path.parts[-parts:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    raise AssertionError("different paths have different names")


def _read(name: str, folder: Path, bench: Bench) -> _Run:
    manifest = read_run(folder, bench)
    listed = set(manifest["benchmark"]["settings"])
    if unknown := sorted(listed - bench.by_name.keys()):
        raise BadData(f"{folder} lists {unknown[0]!r}, which {bench.folder} lacks; build the benchmark anew.")
    lines, failed = read_lines(folder), read_lines(folder, failed=True)
    for setting, line in lines.items():
        for key in NAMES:
            if not isinstance(line.get(key), list) or any(not isinstance(name, str) for name in line[key]):
                raise BadData(
                    f"{folder}: the line of {setting} has {key} {line.get(key)!r}, which is no list of names; remove "
                    "the line, and its setting is run again."
                )
    return _Run(
        name,
        manifest,
        settings=tuple(bench.by_name[setting] for setting in sorted(listed)),
        lines={setting: line for setting, line in lines.items() if setting in listed},
        failed={setting: " ".join(str(line["error"]).split()) for setting, line in failed.items() if setting in listed},
        unlisted=tuple(sorted((lines.keys() | failed.keys()) - listed)),
    )


def _rows(run: _Run, settings: Iterable[Setting], missing: Missing) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(prediction, truth) of each setting; nothing was predicted where there is no line."""
    nothing: dict[str, Any] = {part: [] for part in NAMES}
    return [
        ({part: run.lines.get(setting.name, nothing)[part] for part in NAMES}, setting.truth)
        for setting in settings
        if missing == "wrong" or setting.name in run.lines
    ]


def _scored(run: _Run, bench: Bench, missing: Missing, options: Mapping[str, Any]) -> dict[str, Any]:
    groups = []
    for variant in VARIANTS:
        domains = sorted({str(setting.row["domain"]) for setting in run.settings if setting.variant == variant})
        for domain in [*(["all"] if len(domains) > 1 else []), *domains]:
            listed, there = (
                [s for s in settings if s.variant == variant and domain in ("all", s.row["domain"])]
                for settings in (run.settings, bench.settings)
            )
            names = domains if domain == "all" else [domain]
            printed = {stage: best(published_domain(names), variant, stage) for stage in get_args(Stage)}
            groups.append(
                {
                    "variant": variant,
                    "domain": domain,
                    "domains": names,
                    "in_benchmark": len(there),
                    **_group(run, listed, missing, options),
                    "published": {stage: asdict(row) for stage, row in printed.items() if row is not None},
                }
            )
    names = [setting.name for setting in run.settings]
    return {
        "name": run.name, "method": run.manifest.get("method"), "options": run.manifest.get("options", {}),
        "versions": run.manifest.get("versions", {}), "listed": len(names),
        "in_benchmark": len(bench.settings), "finished": len(run.lines), "failed": dict(run.failed),
        "missing": [name for name in names if name not in run.lines and name not in run.failed],
        "unlisted": list(run.unlisted), "groups": groups,
    }  # fmt: skip


def _group(run: _Run, settings: Sequence[Setting], missing: Missing, options: Mapping[str, Any]) -> dict[str, Any]:
    """Counts and scores of settings of one run."""
    rows = _rows(run, settings, missing)
    lines = [run.lines[setting.name] for setting in settings if setting.name in run.lines]
    failed = sum(setting.name in run.failed for setting in settings)
    verdicts = Counter(str(line.get("verdict") or "not said") for line in lines)
    seconds = [float(line["seconds"]) for line in lines if line.get("seconds") is not None]
    calls = Counter[str]()
    for line in lines:
        calls.update({key: int((line.get("calls") or {}).get(key, 0)) for key in CALLS})
    return {
        "listed": len(settings), "finished": len(lines), "failed": failed,
        "missing": len(settings) - len(lines) - failed,
        "scores": acc_at_k(*zip(*rows, strict=True), **options) if rows else None,
        "verdicts": dict(sorted(verdicts.items())),
        "calls": {key: calls[key] for key in CALLS},
        "seconds": {"median": median(seconds) if seconds else None, "total": round(sum(seconds), 2)},
        "pairs": sum(int(line.get("pairs") or 0) for line in lines),
        "new_pairs": sum(int(line.get("new_pairs") or 0) for line in lines),
    }  # fmt: skip
