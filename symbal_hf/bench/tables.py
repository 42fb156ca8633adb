"""The scores of a report as tables: the paper's Tables 1, 2 and 6 for our runs, as CSV and in one Markdown page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NONE = "–"
STAGES = {"both": "", "t": "textual_error_", "v": "visual_feature_"}  # and how `acc_at_k` marks them
NAMES = {"reference_free": "reference-free", "reference_based": "reference-based"}
MOST_FAILURES = 10  # of a run are spelt out; scores.json and unfinished.csv have all
FIGURES = {
    "figure_3": "End to end (the paper's Figure 3)",
    "figure_4": "By strength and by size of v (the paper's Figure 4)",
    "figure_8": "By sampling category (the paper's Figure 8)",
}

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table in two forms.

    Attributes:
        name: of its CSV file.
        title: heading on the page.
        rows: what the CSV file holds; shares are in [0, 1].
        header: of the page's form.
        shown: its rows there; shares are in per cent.
        note: what stands below it.
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    header: tuple[str, ...]
    shown: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(scores: Mapping[str, Any]) -> list[Table]:
    """All tables that have a row, in their order on the page."""
    made = [
        _runs(scores),
        _accuracy(scores, "end_to_end", "both", "End to end: t and v both right (the paper's Table 6)"),
        _accuracy(scores, "stage_1", "t", "Stage 1: t right (the paper's Tables 1 and 4)"),
        _accuracy(scores, "stage_2", "v", "Stage 2: v right (the paper's Tables 2 and 5)"),
        _stratum(scores, "by_strength", "strength", "By strength of the association (target Cramér's V)"),
        _stratum(scores, "by_size", "feature_size", "By size of v (share of the image: small < 5 % <= medium < 20 %)"),
        _stratum(scores, "by_sampling", "sampling", "By sampling category"),
        _cost(scores),
        _unfinished(scores),
        _published(scores),
    ]
    return [table for table in made if table.rows]


TABLES = (
    "runs", "end_to_end", "stage_1", "stage_2", "by_strength", "by_size", "by_sampling", "verdicts_and_cost",
    "unfinished", "published",
)  # fmt: skip


def _runs(scores: Mapping[str, Any]) -> Table:
    rows, shown = [], []
    for run in scores["runs"]:
        parts = " ".join(f"{key}={value}" for key, value in run["options"].items() if value is not None)
        counts = {
            "finished": run["finished"], "failed": len(run["failed"]), "missing": len(run["missing"]),
            "listed": run["listed"], "in_benchmark": run["in_benchmark"],
        }  # fmt: skip
        rows.append({"run": run["name"], "method": run["method"], "options": parts, **counts})
        shown.append((run["name"], str(run["method"]), parts, *(f"{count:,}" for count in counts.values())))
    header = ("run", "method", "options", "finished", "failed", "missing", "listed", "in benchmark")
    return Table("runs", "Runs", tuple(rows), header, tuple(shown))


def _accuracy(scores: Mapping[str, Any], name: str, stage: str, title: str) -> Table:
    ks, rows, shown = scores["k"], [], []
    for run, group in _groups(scores):
        printed = group["published"].get(stage, {})
        own = {f"paper_acc@{k}": printed.get(f"acc{k}") for k in ks}
        rows.append(
            {
                **_place(run, group), **_shares(group["scores"], stage, ks), **own,
                "paper_method": printed.get("method"), "paper_source": printed.get("source"),
            }
        )  # fmt: skip
        cells = [_cell(group["scores"], stage, k) for k in ks]
        paper = [_percent(value) for value in own.values()]
        shown.append((*_place_shown(run, group), *cells, *paper, str(printed.get("source") or NONE)))
    header = ("run", "variant", "domain", "n", *(f"Acc@{k} (%)" for k in ks), *(f"paper's Acc@{k}" for k in ks),
              "source of the paper's")  # fmt: skip
    return Table(name, title, tuple(rows), header, tuple(shown), _undecided(scores, stage))


def _stratum(scores: Mapping[str, Any], name: str, key: str, title: str) -> Table:
    ks, rows, shown = scores["k"], [], []
    for run, group in _groups(scores):
        for label, part in ((group["scores"] or {}).get("by", {}).get(key) or {}).items():
            values = {f"{stage}_{one}": v for stage in STAGES for one, v in _shares(part, stage, ks).items()}
            rows.append({**_place(run, group), key: label, "n": part["n"], **values})
            cells = [_cell(part, "both", k) for k in ks] + [_cell(part, s, k) for s in ("t", "v") for k in ks]
            shown.append((*_place_shown(run, group)[:-1], label, f"{part['n']:,}", *cells))
    header = (
        "run", "variant", "domain", key.replace("_", " "), "n", *(f"Acc@{k} (%)" for k in ks),
        *(f"{stage} Acc@{k}" for stage in ("t", "v") for k in ks),
    )  # fmt: skip
    return Table(name, title, tuple(rows), header, tuple(shown))


def _cost(scores: Mapping[str, Any]) -> Table:
    rows, shown = [], []
    for run, group in _groups(scores):
        calls, seconds, done = group["calls"], group["seconds"], group["finished"]
        systematic, none = (group["verdicts"].get(key, 0) for key in ("systematic", "none"))
        row = {
            **_place(run, group), "n": done, "systematic": systematic, "none": none,
            "no_verdict": done - systematic - none,
            "systematic_share": systematic / (systematic + none) if systematic + none else None, **calls,
            "asked_per_setting": calls["asked"] / done if done else None, "seconds_median": seconds["median"],
            "seconds_total": seconds["total"], "pairs": group["pairs"], "new_pairs": group["new_pairs"],
            "new_share": group["new_pairs"] / group["pairs"] if group["pairs"] else None,
        }  # fmt: skip
        rows.append(row)
        shown.append(
            (
                *_place_shown(run, group)[:-1], f"{done:,}", _percent(row["systematic_share"]),
                *(f"{calls[key]:,}" for key in calls), _number(row["asked_per_setting"]),
                _number(row["seconds_median"]), _number(seconds["total"] / 3600, 2), f"{row['pairs']:,}",
                _percent(row["new_share"]),
            )
        )  # fmt: skip
    header = (
        "run", "variant", "domain", "finished", "systematic (%)", "asked", "cached", "failed", "unparsed",
        "asked a setting", "s a setting", "hours", "pairs", "unique (%)",
    )  # fmt: skip
    note = (
        "Of finished settings. Systematic: share of the verdicts. Asked to unparsed: questions to models. Seconds: the "
        "median. Unique: share of the (image, sentence) pairs that the process had not had before, and which alone "
        "need scoring."
    )
    return Table("verdicts_and_cost", "Verdicts and cost", tuple(rows), header, tuple(shown), note)


def _unfinished(scores: Mapping[str, Any]) -> Table:
    rows, shown = [], []
    for run in scores["runs"]:
        failed = [{"run": run["name"], "setting": s, "reason": why} for s, why in run["failed"].items()]
        absent = [{"run": run["name"], "setting": s, "reason": "no result yet"} for s in run["missing"]]
        rows += failed + absent
        for some in (failed, absent):
            shown += [tuple(row.values()) for row in some[:MOST_FAILURES]]
            if more := len(some) - MOST_FAILURES:
                shown += [(run["name"], f"{more:,} more", some[-1]["reason"])] if more > 0 else []
    note = "unfinished.csv has all of them." if len(shown) < len(rows) else ""
    header = ("run", "setting", "reason")
    return Table("unfinished", "Settings without a result", tuple(rows), header, tuple(shown), note)


def _published(scores: Mapping[str, Any]) -> Table:
    shown = []
    for row in scores["published"]:
        parts = ", ".join(row[key] for key in ("encoder", "scorer", "summarizer") if row[key])
        shown.append(
            (
                row["stage"], row["domain"], NAMES[row["variant"]], row["method"], parts or NONE,
                _percent(row["acc1"]), _percent(row["acc5"]), row["source"],
            )
        )  # fmt: skip
    header = ("stage", "domain", "variant", "method", "encoder, scorer, summarizer", "Acc@1 (%)", "Acc@5 (%)", "source")
    title = "What the paper published for these domains and variants"
    return Table("published", title, tuple(scores["published"]), header, tuple(shown))


def _groups(scores: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """(run, group) with the runs of one variant and domain side by side."""
    found = [(run["name"], group) for run in scores["runs"] for group in run["groups"]]
    order = {key: place for place, key in enumerate(dict.fromkeys(_key(group) for _, group in found))}
    return sorted(found, key=lambda one: (list(NAMES).index(one[1]["variant"]), order[_key(one[1])]))


def _key(group: Mapping[str, Any]) -> tuple[str, str]:
    return group["variant"], group["domain"]


def _place(run: str, group: Mapping[str, Any]) -> Row:
    n = group["scores"]["n"] if group["scores"] else 0
    return {"run": run, "variant": group["variant"], "domain": group["domain"], "n": n}


def _place_shown(run: str, group: Mapping[str, Any]) -> tuple[str, ...]:
    return run, NAMES[group["variant"]], group["domain"], f"{_place(run, group)['n']:,}"


def _shares(part: Mapping[str, Any] | None, stage: str, ks: Sequence[int]) -> Row:
    out: Row = {}
    for k in ks:
        key = f"{STAGES[stage]}acc@{k}"
        low, high = (part or {}).get(f"{key}_interval") or (None, None)
        out.update({f"acc@{k}": part and part[key], f"acc@{k}_low": low, f"acc@{k}_high": high})
        out[f"undecided@{k}"] = part and part[f"{STAGES[stage]}undecided@{k}"]
        out[f"acc@{k}_if_undecided_right"] = part and part[f"{key}_if_undecided_right"]
    return out


def _cell(part: Mapping[str, Any] | None, stage: str, k: int) -> str:
    if not part:
        return NONE
    own = _shares(part, stage, (k,))
    low, high = own[f"acc@{k}_low"], own[f"acc@{k}_high"]
    within = "" if low is None else f" ({_percent(low)}–{_percent(high)})"
    return _percent(own[f"acc@{k}"]) + within


def _undecided(scores: Mapping[str, Any], stage: str) -> str:
    told = []
    for run, group in _groups(scores):
        for k in scores["k"]:
            own = _shares(group["scores"], stage, (k,))
            if own[f"undecided@{k}"]:
                where = f"{run}, {NAMES[group['variant']]}, {group['domain']}"
                most = _percent(own[f"acc@{k}_if_undecided_right"])
                told.append(f"{where}: {own[f'undecided@{k}']} at {k} (Acc@{k} is at most {most})")
    return f"The judge could not tell, and it counts as not right: {'; '.join(told)}." if told else ""


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.1f}"


def _number(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def csv_text(table: Table) -> str:
    """The rows as CSV; what is unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.rows)
    return text.getvalue()


def markdown(scores: Mapping[str, Any], *, figures: Sequence[str] = ()) -> str:
    """The page: what was scored and how, every table, and the named figures, whose files lie beside it."""
    bench, judge = scores["benchmark"], scores["judge"]
    asked = f"judge {judge['name']}" + (f", revision {judge['revision']}" if judge["revision"] else "")
    asked += f", prompt {judge['prompt_hash']}" if judge["prompt_hash"] else ""
    intervals = (
        f"Ranges are 95 % intervals of a bootstrap over settings ({scores['resamples']:,} resamples, seed "
        f"{scores['seed']}); that of 0 or 100 % has no width."
        if scores["resamples"]
        else "No intervals were computed."
    )
    pairs = f"{scores['judgements']:,} different pairs of names were judged, {scores['unparsed']:,} of them unparsed "
    lines = [
        "# Results on the benchmark", "",
        f"Benchmark {bench['name']}, revision {bench['revision']}, {bench['settings']:,} settings; {asked}. "
        f"{pairs}and {scores['failed']:,} failed. Acc@K is the share of settings whose planted names are among the "
        f"first K given. {intervals}", "", *(f"- {line}" for line in remarks(scores)), "",
    ]  # fmt: skip
    made = tables(scores)
    for table in made:
        if table.name == "verdicts_and_cost":  # after the numbers that the figures show
            for figure in figures:
                lines += [f"## {FIGURES[figure]}", "", f"![{FIGURES[figure]}]({figure}.png)", ""]
        lines += [f"## {table.title}", "", *_pipes(table.header, table.shown), ""]
        lines += [table.note, ""] if table.note else []
    return "\n".join(lines).rstrip() + "\n"


def remarks(scores: Mapping[str, Any]) -> list[str]:
    """How much of what each run lists, and of the benchmark, has a result, and what may not be compared."""
    counts = "count as not right" if scores["missing"] == "wrong" else "are left out of all shares"
    told = []
    for run in scores["runs"]:
        text = f"{run['name']}: {run['finished']:,} of {run['listed']:,} settings are finished"
        if run["listed"] < run["in_benchmark"]:
            text += f" (the benchmark has {run['in_benchmark']:,})"
        failed, absent = len(run["failed"]), len(run["missing"])
        if failed or absent:
            text += f"; {failed:,} failed and {absent:,} have no result yet, which {counts}"
        if run["unlisted"]:
            text += f"; {len(run['unlisted']):,} results of settings that run.json does not list are not used"
        told.append(text + ".")
    if not scores["same_settings"]:
        told.append("The runs are about different settings, so that their shares are not of the same thing.")
    if scores["published"]:
        told.append(
            "The paper's numbers (Varma et al., arXiv 2607.15216) stand beside runs of the same domain and variant; "
            "they are for its own method in the composition that it chose. Data, judge and models differ: the numbers "
            "show the scale, and which is better cannot be read off them."
        )
    return told


def _pipes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns line up on a screen too."""
    whole = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    width = [max(len(row[place]) for row in whole) for place in range(len(header))]
    head, *body = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, width, strict=True)) + " |" for row in whole]
    return [head, "|" + "|".join("-" * (w + 2) for w in width) + "|", *body]
