"""What a built benchmark consists of: its settings in numbers, per domain, and the files that show them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from benchmark_builder.planting.inject import TOLERANCE
from benchmark_builder.writing.figures import Setting, composition, features
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Summary:
    """One domain in numbers; those from `pairs` on are over its feasible settings (gaps and shares of none are None).

    Attributes:
        domain: its name, or "all".
        candidates: settings that were tried.
        feasible: those whose strength can be reached: the datasets of the benchmark.
        infeasible: the others.
        images: rows of the base.
        pairs: image-text pairs of all datasets of one variant.
        textual_errors: distinct t.
        visual_features: distinct v.
        gap_mean: mean |strength reached - target|.
        gap_max: the largest such gap.
        gap_within: share of settings whose gap is at most 0.01.
        error_share: median share of pairs with the planted error.
    """

    domain: str
    candidates: int
    feasible: int
    infeasible: int
    images: int
    pairs: int
    textual_errors: int
    visual_features: int
    gap_mean: float | None
    gap_max: float | None
    gap_within: float | None
    error_share: float | None


@dataclass(frozen=True)
class Statistics:
    """A benchmark folder in numbers.

    Attributes:
        settings: the feasible settings, sorted by domain and config.
        summaries: one a domain, sorted by name, and one of all of them where there are several.
        left_out: what the figures do not show, one sentence each with the reason.
    """

    settings: tuple[Setting, ...]
    summaries: tuple[Summary, ...]
    left_out: tuple[str, ...]


def statistics(folder: str | Path) -> Statistics:
    """The numbers of a built benchmark, from `folder`/settings/*.parquet alone.

    Raises:
        BadData: no settings table in `folder`.
    """
    import pyarrow.parquet as pq

    paths = sorted((Path(folder) / "settings").glob("*.parquet"))
    if not paths:
        raise BadData(f"{folder} has no settings/*.parquet; build a benchmark there first.")
    rows = {path.stem: pq.read_table(path).to_pylist() for path in paths}
    made = {d: [_setting(row) for row in sorted(rows[d], key=itemgetter("config")) if row["feasible"]] for d in rows}
    summaries = [_summary(d, rows[d], made[d]) for d in rows]
    everything = [s for own in made.values() for s in own]
    if len(rows) > 1:
        summaries.append(_summary("all", [row for own in rows.values() for row in own], everything))
    return Statistics(tuple(everything), tuple(summaries), tuple(_left_out(made)))


def _setting(row: dict[str, Any]) -> Setting:
    n = row["n_rows"]
    planted = row["with_feature"] + row["without_feature"]
    return Setting(
        row["config"],
        row["domain"],
        row["textual_error"],
        row["visual_feature"],
        n,
        row["strength_target"],
        row["strength"],
        planted / n,
        row["n_feature"] / n,
        row["mean_feature_area"],
        tuple(row["strategies"] or ()),
    )


def _summary(domain: str, rows: Sequence[dict[str, Any]], made: Sequence[Setting]) -> Summary:
    gaps = [abs(s.strength - s.target) for s in made]
    return Summary(
        domain=domain,
        candidates=len(rows),
        feasible=len(made),
        infeasible=len(rows) - len(made),
        images=sum({row["domain"]: row["n_rows"] for row in rows}.values()),
        pairs=sum(s.size for s in made),
        textual_errors=len({s.textual_error for s in made}),
        visual_features=len({s.visual_feature for s in made}),
        gap_mean=fmean(gaps) if gaps else None,
        gap_max=max(gaps, default=None),
        # A gap of exactly the tolerance may come out a rounding error above it.
        gap_within=fmean(gap <= TOLERANCE + 1e-12 for gap in gaps) if gaps else None,
        error_share=median(s.error_share for s in made) if made else None,
    )


def _left_out(made: Mapping[str, Sequence[Setting]]) -> Iterable[str]:
    def joined(names: list[str]) -> str:
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

    if empty := [d for d in made if not made[d]]:
        yield f"No figure shows {joined(empty)}: no setting there is feasible."
    if unknown := [d for d in made if made[d] and all(s.feature_area is None for s in made[d])]:
        yield f"The size of v is not shown for {joined(unknown)}: areas are not known there."
    if untagged := [d for d in made if made[d] and not any(s.strategies for s in made[d])]:
        yield f"Sampling categories are not shown for {joined(untagged)}: pairs were not sampled by category there."


def summary_rows(stats: Statistics) -> list[list[str]]:
    """The summary as text: a header with the domains' names, then one row a measure."""
    whole, small, percent = "{:,}", "{:.4f}", "{:.1%}"
    measures = (
        ("candidate settings", "candidates", whole),
        ("feasible", "feasible", whole),
        ("infeasible", "infeasible", whole),
        ("images", "images", whole),
        ("image-text pairs, each variant", "pairs", whole),
        ("distinct textual errors t", "textual_errors", whole),
        ("distinct visual features v", "visual_features", whole),
        ("|V - target|, mean", "gap_mean", small),
        ("|V - target|, largest", "gap_max", small),
        (f"settings with |V - target| ≤ {TOLERANCE}", "gap_within", percent),
        ("rows with the planted error, median", "error_share", percent),
    )

    def shown(value: float | None, form: str) -> str:
        return "–" if value is None else form.format(value).replace("%", " %")

    header = ["", *(summary.domain for summary in stats.summaries)]
    return [
        header,
        *([label, *(shown(getattr(s, name), form) for s in stats.summaries)] for label, name, form in measures),
    ]


def table(stats: Statistics) -> Table:
    """The summary as a table that rich prints, one column a domain; what the figures leave out stands below it."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    header, *rows = summary_rows(stats)
    caption = escape("\n".join(stats.left_out)) or None
    out = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left")
    out.add_column(header[0])
    for domain in header[1:]:
        out.add_column(escape(domain), justify="right")
    for row in rows:
        out.add_row(*row)
    return out


def write_statistics(folder: str | Path, out: str | Path) -> dict[str, Path]:
    """Write the figures as PNG, the data behind each as CSV, and the summary as CSV.

    Args:
        folder: a built benchmark.
        out: folder for the files, made when missing.

    Returns:
        The files written, by name: "summary", "composition_data", "features_data" (one row a feasible setting), and
        "composition" (Figure 6), "features" (Figure 7) where there is anything to draw.

    Raises:
        BadData: no settings table in `folder`, or matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise BadData("the figures need matplotlib; run `pip install 'symbal-hf[report]'`.") from error

    stats, out = statistics(folder), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    names = ("config", "domain", "textual_error", "visual_feature")
    contents: dict[str, str | bytes | None] = {
        "summary.csv": _csv([field.name for field in fields(Summary)], stats.summaries),
        "composition_data.csv": _csv(
            [*names, "size", "target", "strength", "error_share", "feature_share"], stats.settings
        ),
        "features_data.csv": _csv([*names, "feature_area", "strategies"], stats.settings),
        "composition.png": composition(stats.settings),
        "features.png": features(stats.settings, note=" ".join(stats.left_out)),
    }
    for name, content in contents.items():
        if content is None:
            (out / name).unlink(missing_ok=True)  # an earlier figure would contradict the tables
        else:
            write_whole(out / name, content)
    return {Path(name).stem: out / name for name, content in contents.items() if content is not None}


def _csv(columns: Sequence[str], rows: Iterable[Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = [getattr(row, column) for column in columns]
        writer.writerow([";".join(value) if isinstance(value, tuple) else value for value in values])
    return text.getvalue()
