"""The scores of a report as tables: the paper's Tables 1, 2 and 6 for our runs, as CSV and in one Markdown page.

A table is a list of rows, which are what its CSV file holds; the page shows some of their values, as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from string import Formatter
from typing import Any

from symbal_hf.bench.figures import TITLES, VARIANTS
from symbal_hf.bench.results import CALLS

STAGES = {"both": "", "t": "textual_error_", "v": "visual_feature_"}  # and how `acc_at_k` marks them
MOST_FAILURES = 10  # of a run are spelt out; scores.json and unfinished.csv have all
GROUP = {"run": "{run}", "variant": "{variant:words}", "domain": "{domain}"}
COUNTS = ("finished", "failed", "missing", "listed", "in_benchmark")

Row = dict[str, Any]


class _Cells(Formatter):
    """Format strings of a row, in which None is a dash, and a share of 0.5 is 50.0."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "–"
        if format_spec == "words":
            return str(value).replace("_", "-")
        if format_spec == "hours":
            return f"{value / 3600:,.2f}"
        return f"{100 * value:.1f}" if format_spec == "share" else format(value, format_spec)

    def of(self, row: Row, text: str) -> str:
        """The text with what the row says, an interval left out where there is none."""
        return self.vformat(text, (), row).replace(" (–––)", "")


CELLS = _Cells()


@dataclass(frozen=True)
class Table:
    """A table in two forms."""

    title: str  # heading on the page
    rows: Sequence[Row]  # what the CSV file holds; shares are in [0, 1]
    columns: Mapping[str, str]  # of the page's form, by heading: what a cell says of its row, for `CELLS`
    note: str = ""  # what stands below it
    page_rows: Sequence[Row] | None = None  # the rows of the page, where they are not those of the file

    def markdown(self) -> str:
        """A Markdown table whose columns line up on a screen too."""
        rows = self.rows if self.page_rows is None else self.page_rows
        texts = [[*self.columns], *([CELLS.of(row, cell) for cell in self.columns.values()] for row in rows)]
        texts = [[text.replace("|", "\\|") for text in row] for row in texts]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        head, *body = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in texts]
        return "\n".join([head, "|" + "|".join("-" * (width + 2) for width in widths) + "|", *body])


def csv_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows of the same keys as CSV with a header; None is empty."""
    from pandas import DataFrame

    return str(DataFrame(list(rows), dtype=object).to_csv(index=False, lineterminator="\n"))


def tables(scores: Mapping[str, Any]) -> dict[str, Table]:
    """All tables that have a row, by name, in their order on the page."""
    return {name: table for name, make in TABLES.items() if (table := make(scores)).rows}


def _each(*keys: str, how: str = "") -> dict[str, str]:
    return {key.replace("_", " "): f"{{{key}:{how}}}" for key in keys}


def _interval(key: str) -> str:
    return f"{{{key}:share}} ({{{key}_low:share}}–{{{key}_high:share}})"


def _runs(scores: Mapping[str, Any]) -> Table:
    rows = [
        {
            "run": run["name"],
            "method": run["method"],
            "options": " ".join(f"{key}={value}" for key, value in run["options"].items() if value is not None),
            **{key: len(run[key]) if key in ("failed", "missing") else run[key] for key in COUNTS},
        }
        for run in scores["runs"]
    ]
    return Table("Runs", rows, _each("run", "method", "options") | _each(*COUNTS, how=","))


def _accuracy(scores: Mapping[str, Any], stage: str, title: str) -> Table:
    ks, rows = scores["k"], []
    for run, group in _groups(scores):
        printed = group["published"].get(stage, {})
        paper = {f"paper_acc@{k}": printed.get(f"acc{k}") for k in ks}
        source = {f"paper_{key}": printed.get(key) for key in ("method", "source")}
        rows.append({**_group_row(run, group), **_shares(group["scores"], stage, ks), **paper, **source})
    columns = {
        **GROUP,
        "n": "{n:,}",
        **{f"Acc@{k} (%)": _interval(f"acc@{k}") for k in ks},
        **{f"paper's Acc@{k}": f"{{paper_acc@{k}:share}}" for k in ks},
        "source of the paper's": "{paper_source}",
    }
    words = "{run}, {variant:words}, {domain}: {undecided@K} at K (Acc@K is at most {acc@K_if_undecided_right:share})"
    texts = {k: words.replace("K", str(k)) for k in ks}
    undecided = [CELLS.of(row, text) for row in rows for k, text in texts.items() if row[f"undecided@{k}"]]
    note = f"The judge could not tell, and it counts as not right: {'; '.join(undecided)}." if undecided else ""
    return Table(title, rows, columns, note)


def _stratum(scores: Mapping[str, Any], key: str, title: str) -> Table:
    ks = scores["k"]
    rows = [
        {
            **_group_row(run, group),
            key: label,
            "n": part["n"],
            **{f"{stage}_{name}": v for stage in STAGES for name, v in _shares(part, stage, ks).items()},
        }
        for run, group in _groups(scores)
        for label, part in ((group["scores"] or {}).get("by", {}).get(key) or {}).items()
    ]
    columns = {
        **GROUP,
        **_each(key),
        "n": "{n:,}",
        **{f"Acc@{k} (%)": _interval(f"both_acc@{k}") for k in ks},
        **{f"{stage} Acc@{k}": _interval(f"{stage}_acc@{k}") for stage in ("t", "v") for k in ks},
    }
    return Table(title, rows, columns)


def _cost(scores: Mapping[str, Any]) -> Table:
    rows = []
    for run, group in _groups(scores):
        calls, seconds, done = group["calls"], group["seconds"], group["finished"]
        systematic, none = (group["verdicts"].get(key, 0) for key in ("systematic", "none"))
        rows.append(
            {
                **_group_row(run, group),
                "n": done,
                "systematic": systematic,
                "none": none,
                "no_verdict": done - systematic - none,
                "systematic_share": systematic / (systematic + none) if systematic + none else None,
                **calls,
                "asked_per_setting": calls["asked"] / done if done else None,
                **{f"seconds_{key}": seconds[key] for key in ("median", "total")},
                **{key: group[key] for key in ("pairs", "new_pairs")},
                "new_share": group["new_pairs"] / group["pairs"] if group["pairs"] else None,
            }
        )
    columns = {
        **GROUP,
        "finished": "{n:,}",
        "systematic (%)": "{systematic_share:share}",
        **_each(*CALLS, how=","),
        "asked a setting": "{asked_per_setting:,.1f}",
        "s a setting": "{seconds_median:,.1f}",
        "hours": "{seconds_total:hours}",
        "pairs": "{pairs:,}",
        "unique (%)": "{new_share:share}",
    }
    note = (
        "Of finished settings. Systematic: share of the verdicts. Asked to unparsed: questions to models. Seconds: the "
        "median. Unique: share of the (image, sentence) pairs that the process had not had before, and which alone "
        "need scoring."
    )
    return Table("Verdicts and cost", rows, columns, note)


def _unfinished(scores: Mapping[str, Any]) -> Table:
    rows: list[Row] = []
    shown: list[Row] = []
    for run in scores["runs"]:
        for reasons in (run["failed"], dict.fromkeys(run["missing"], "no result yet")):
            some = [{"run": run["name"], "setting": name, "reason": why} for name, why in reasons.items()]
            rows += some
            shown += some[:MOST_FAILURES]
            if (more := len(some) - MOST_FAILURES) > 0:
                shown.append({**some[-1], "setting": f"{more:,} more"})
    note = "unfinished.csv has all of them." if len(shown) < len(rows) else ""
    return Table("Settings without a result", rows, _each("run", "setting", "reason"), note, shown)


def _published(scores: Mapping[str, Any]) -> Table:
    parts, rows = ("encoder", "scorer", "summarizer"), scores["published"]
    columns = {
        "stage": "{stage}",
        "domain": "{domain}",
        "variant": "{variant:words}",
        "method": "{method}",
        ", ".join(parts): "{parts}",
        "Acc@1 (%)": "{acc1:share}",
        "Acc@5 (%)": "{acc5:share}",
        "source": "{source}",
    }
    shown = [{**row, "parts": ", ".join(row[key] for key in parts if row[key]) or None} for row in rows]
    return Table("What the paper published for these domains and variants", rows, columns, page_rows=shown)


TABLES: dict[str, Callable[[Mapping[str, Any]], Table]] = {
    "runs": _runs,
    "end_to_end": lambda s: _accuracy(s, "both", "End to end: t and v both right (the paper's Table 6)"),
    "stage_1": lambda s: _accuracy(s, "t", "Stage 1: t right (the paper's Tables 1 and 4)"),
    "stage_2": lambda s: _accuracy(s, "v", "Stage 2: v right (the paper's Tables 2 and 5)"),
    "by_strength": lambda s: _stratum(s, "strength", "By strength of the association (target Cramér's V)"),
    "by_size": lambda s: _stratum(s, "feature_size", "By size of v (share of the image: small < 5 % <= medium < 20 %)"),
    "by_sampling": lambda s: _stratum(s, "sampling", "By sampling category"),
    "verdicts_and_cost": _cost,
    "unfinished": _unfinished,
    "published": _published,
}


def _groups(scores: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(run, group) with the runs of one variant and domain side by side."""
    groups = [(run["name"], group) for run in scores["runs"] for group in run["groups"]]
    kinds = dict.fromkeys((group["variant"], group["domain"]) for _, group in groups)
    for kind in sorted(kinds, key=lambda kind: list(VARIANTS).index(kind[0])):
        yield from ((run, group) for run, group in groups if (group["variant"], group["domain"]) == kind)


def _group_row(run: str, group: Mapping[str, Any]) -> Row:
    n = group["scores"]["n"] if group["scores"] else 0
    return {"run": run, "variant": group["variant"], "domain": group["domain"], "n": n}


def _shares(part: Mapping[str, Any] | None, stage: str, ks: Sequence[int]) -> Row:
    out: Row = {}
    for k in ks:
        key = f"{STAGES[stage]}acc@{k}"
        low, high = (part or {}).get(f"{key}_interval") or (None, None)
        out.update({f"acc@{k}": part and part[key], f"acc@{k}_low": low, f"acc@{k}_high": high})
        out[f"undecided@{k}"] = part and part[f"{STAGES[stage]}undecided@{k}"]
        out[f"acc@{k}_if_undecided_right"] = part and part[f"{key}_if_undecided_right"]
    return out


def markdown(scores: Mapping[str, Any], *, figures: Sequence[str] = ()) -> str:
    """The page: what was scored and how, every table, and the named figures, whose files lie beside it."""
    from jinja2 import Environment, StrictUndefined

    jinja = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    jinja.filters["n"] = "{:,}".format
    page = jinja.from_string(resources.files("symbal_hf.bench").joinpath("report.md.jinja").read_text("utf-8"))
    titles = {figure: TITLES[figure] for figure in figures}
    return page.render(scores, tables=tables(scores), figures=titles).rstrip() + "\n"
