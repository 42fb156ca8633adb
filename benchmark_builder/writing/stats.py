"""What a built benchmark consists of: its settings in numbers, per domain, and the files that show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from benchmark_builder.planting.inject import TOLERANCE
from benchmark_builder.writing.figures import composition, features
from symbal_hf.core.errors import BadData
from symbal_hf.core.files import write_whole

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

NAMES = ("config", "domain", "textual_error", "visual_feature")


# What a summary says of a domain: name, label, form. From `pairs` on it is over the feasible settings, which are the
# datasets of the benchmark; gaps and shares of none are None.
MEASURES = (
    ("candidates", "candidate settings", "{:,}"),
    ("feasible", "feasible", "{:,}"),
    ("infeasible", "infeasible", "{:,}"),
    ("images", "images", "{:,}"),
    ("pairs", "image-text pairs, each variant", "{:,}"),
    ("textual_errors", "distinct textual errors t", "{:,}"),
    ("visual_features", "distinct visual features v", "{:,}"),
    ("gap_mean", "|V - target|, mean", "{:.4f}"),
    ("gap_max", "|V - target|, largest", "{:.4f}"),
    ("gap_within", f"settings with |V - target| ≤ {TOLERANCE}", "{:.1%}"),
    ("error_share", "rows with the planted error, median", "{:.1%}"),
)


@dataclass(frozen=True)
class Statistics:
    """A benchmark folder in numbers.

    Attributes:
        settings: the feasible settings, sorted by domain and config, with the columns `NAMES` and
            size: image-text pairs,
            target, strength: the Cramér's V asked for, and the one reached, in (0, 1],
            error_share, feature_share: shares of the pairs that carry the planted error, and that show v, in [0, 1],
            feature_area: mean share of the image that v takes where it is shown, in [0, 1]; null: unknown,
            strategies: how (t, v) was sampled: "random", "popular", "adversarial"; empty: not by category.
        summaries: `MEASURES` of each domain, sorted by name, and of all of them where there are several.
        left_out: what the figures do not show, one sentence each with the reason.
    """

    settings: pd.DataFrame
    summaries: tuple[dict[str, Any], ...]
    left_out: tuple[str, ...]


def statistics(folder: str | Path) -> Statistics:
    """The numbers of a built benchmark, from `folder`/settings/*.parquet alone.

    Raises:
        BadData: no settings table in `folder`.
    """
    import pandas as pd

    paths = sorted((Path(folder) / "settings").glob("*.parquet"))
    if not paths:
        raise BadData(f"{folder} has no settings/*.parquet; build a benchmark there first.")
    tried = pd.concat([pd.read_parquet(path).sort_values("config") for path in paths])
    made = tried[tried["feasible"]].rename(columns={"n_rows": "size", "strength_target": "target"})
    made["error_share"] = (made["with_feature"] + made["without_feature"]) / made["size"]
    made["feature_share"] = made["n_feature"] / made["size"]
    made["feature_area"] = made["mean_feature_area"]
    domains = [path.stem for path in paths]
    summaries = [_summary(d, tried[tried["domain"] == d], made[made["domain"] == d]) for d in domains]
    if len(domains) > 1:
        summaries.append(_summary("all", tried, made))
    return Statistics(made, tuple(summaries), tuple(_left_out({d: made[made["domain"] == d] for d in domains})))


def _summary(domain: str, tried: pd.DataFrame, made: pd.DataFrame) -> dict[str, Any]:
    gaps = (made["strength"] - made["target"]).abs().tolist()
    return {
        "domain": domain,
        "candidates": len(tried),
        "feasible": len(made),
        "infeasible": len(tried) - len(made),
        "images": int(tried.groupby("domain")["n_rows"].last().sum()),
        "pairs": int(made["size"].sum()),
        "textual_errors": made["textual_error"].nunique(),
        "visual_features": made["visual_feature"].nunique(),
        "gap_mean": fmean(gaps) if gaps else None,
        "gap_max": max(gaps, default=None),
        # A gap of exactly the tolerance may come out a rounding error above it.
        "gap_within": fmean(gap <= TOLERANCE + 1e-12 for gap in gaps) if gaps else None,
        "error_share": median(made["error_share"]) if gaps else None,
    }


def _left_out(made: Mapping[str, pd.DataFrame]) -> Iterable[str]:
    def joined(names: list[str]) -> str:
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

    some = {domain: own for domain, own in made.items() if len(own)}
    if empty := [domain for domain in made if domain not in some]:
        yield f"No figure shows {joined(empty)}: no setting there is feasible."
    if unknown := [domain for domain, own in some.items() if own["feature_area"].isna().all()]:
        yield f"The size of v is not shown for {joined(unknown)}: areas are not known there."
    if untagged := [domain for domain, own in some.items() if not own["strategies"].str.len().any()]:
        yield f"Sampling categories are not shown for {joined(untagged)}: pairs were not sampled by category there."


def summary_rows(stats: Statistics) -> list[list[str]]:
    """The summary as text: a header with the domains' names, then one row a measure."""

    def shown(value: float | None, form: str) -> str:
        return "–" if value is None else form.format(value).replace("%", " %")

    rows = [[label, *(shown(one[name], form) for one in stats.summaries)] for name, label, form in MEASURES]
    return [["", *(one["domain"] for one in stats.summaries)], *rows]


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

    import pandas as pd

    stats, out = statistics(folder), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    settings = stats.settings.assign(strategies=stats.settings["strategies"].str.join(";"))
    shares = ["size", "target", "strength", "error_share", "feature_share"]
    contents: dict[str, str | bytes | None] = {
        "summary.csv": pd.DataFrame(stats.summaries).to_csv(index=False, lineterminator="\n"),
        "composition_data.csv": settings.to_csv(columns=[*NAMES, *shares], index=False, lineterminator="\n"),
        "features_data.csv": settings.to_csv(
            columns=[*NAMES, "feature_area", "strategies"], index=False, lineterminator="\n"
        ),
        "composition.png": composition(stats.settings),
        "features.png": features(stats.settings, note=" ".join(stats.left_out)),
    }
    for name, content in contents.items():
        if content is None:
            (out / name).unlink(missing_ok=True)  # an earlier figure would contradict the tables
        else:
            write_whole(out / name, content)
    return {Path(name).stem: out / name for name, content in contents.items() if content is not None}
