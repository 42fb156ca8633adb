"""The scores of a report as tables: the paper's Tables 1, 2 and 6 for our runs, as CSV and in one Markdown page.

A table is a list of rows, which are what its CSV file holds; the page shows some of their values, as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from symbal_hf.bench.figures import TITLES, VARIANTS
from symbal_hf.bench.results import CALLS

NONE = "–"
STAGES = {"both": "", "t": "textual_error_", "v": "visual_feature_"}  # and how `acc_at_k` marks them
MOST_FAILURES = 10  # of a run are spelt out; scores.json and unfinished.csv have all

Row = dict[str, Any]
Cell = Callable[[Row], str]


@dataclass(frozen=True)
class Table:
    """A table in two forms."""

    title: str  # heading on the page
    rows: Sequence[Row]  # what the CSV file holds; shares are in [0, 1]
    columns: Mapping[str, Cell]  # of the page's form, by heading: what a cell says of its row; shares are in per cent
    note: str = ""  # what stands below it
    page_rows: Sequence[Row] | None = None  # the rows of the page, where they are not those of the file

    def markdown(self) -> str:
        """A Markdown table whose columns line up on a screen too."""
        rows = self.rows if self.page_rows is None else self.page_rows
        texts = [[*self.columns], *([cell(row) for cell in self.columns.values()] for row in rows)]
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


def _each(cell: Callable[[str], Cell], *keys: str) -> dict[str, Cell]:
    return {key.replace("_", " "): cell(key) for key in keys}


def _text(key: str) -> Cell:
    return lambda row: str(row[key])


def _count(key: str) -> Cell:
    return lambda row: f"{row[key]:,}"


def _number(key: str, digits: int = 1, unit: float = 1) -> Cell:
    return lambda row: NONE if row[key] is None else f"{row[key] / unit:,.{digits}f}"


def _percent(key: str) -> Cell:
    return lambda row: NONE if row[key] is None else f"{100 * row[key]:.1f}"


def _variant(row: Row) -> str:
    return VARIANTS[row["variant"]]


def _share(key: str) -> Cell:
    """A share with its interval, where it has one."""
    ends = (_percent(f"{key}_low"), _percent(f"{key}_high"))
    return lambda row: (
        _percent(key)(row) + ("" if row[f"{key}_low"] is None else f" ({'–'.join(end(row) for end in ends)})")
    )


GROUP: dict[str, Cell] = {"run": _text("run"), "variant": _variant, "domain": _text("domain")}


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
    return Table("Runs", rows, _each(_text, "run", "method", "options") | _each(_count, *COUNTS))


COUNTS = ("finished", "failed", "missing", "listed", "in_benchmark")


def _accuracy(scores: Mapping[str, Any], stage: str, title: str) -> Table:
    ks, rows = scores["k"], []
    for run, group in _groups(scores):
        printed = group["published"].get(stage, {})
        paper = {f"paper_acc@{k}": printed.get(f"acc{k}") for k in ks}
        source = {f"paper_{key}": printed.get(key) for key in ("method", "source")}
        rows.append({**_group_row(run, group), **_shares(group["scores"], stage, ks), **paper, **source})
    columns = {
        **GROUP,
        "n": _count("n"),
        **{f"Acc@{k} (%)": _share(f"acc@{k}") for k in ks},
        **{f"paper's Acc@{k}": _percent(f"paper_acc@{k}") for k in ks},
        "source of the paper's": lambda row: str(row["paper_source"] or NONE),
    }
    undecided = [
        f"{row['run']}, {_variant(row)}, {row['domain']}: {row[f'undecided@{k}']} at {k} "
        f"(Acc@{k} is at most {_percent(f'acc@{k}_if_undecided_right')(row)})"
        for row in rows
        for k in ks
        if row[f"undecided@{k}"]
    ]
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
        **_each(_text, key),
        **_each(_count, "n"),
        **{f"Acc@{k} (%)": _share(f"both_acc@{k}") for k in ks},
        **{f"{stage} Acc@{k}": _share(f"{stage}_acc@{k}") for stage in ("t", "v") for k in ks},
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
        "finished": _count("n"),
        "systematic (%)": _percent("systematic_share"),
        **_each(_count, *CALLS),
        "asked a setting": _number("asked_per_setting"),
        "s a setting": _number("seconds_median"),
        "hours": _number("seconds_total", 2, 3600),
        "pairs": _count("pairs"),
        "unique (%)": _percent("new_share"),
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
    return Table("Settings without a result", rows, _each(_text, "run", "setting", "reason"), note, shown)


def _published(scores: Mapping[str, Any]) -> Table:
    parts = ("encoder", "scorer", "summarizer")
    columns = {
        "stage": _text("stage"),
        "domain": _text("domain"),
        "variant": _variant,
        "method": _text("method"),
        ", ".join(parts): lambda row: ", ".join(row[key] for key in parts if row[key]) or NONE,
        "Acc@1 (%)": _percent("acc1"),
        "Acc@5 (%)": _percent("acc5"),
        "source": _text("source"),
    }
    return Table("What the paper published for these domains and variants", scores["published"], columns)


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
