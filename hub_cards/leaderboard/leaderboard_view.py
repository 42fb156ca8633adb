"""What the leaderboard shows: submissions are gathered, checked, ranked and written as HTML in which names are text."""

from __future__ import annotations

import hashlib
import html
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symbal_hf.bench.acc_at_k import NAMES
from symbal_hf.bench.leaderboard.board import Report, validate
from symbal_hf.bench.leaderboard.strict_json import MOST_BYTES, read_bytes, shown
from symbal_hf.bench.leaderboard.submission import task_of
from symbal_hf.bench.settings import Bench
from symbal_hf.core.errors import BadData, ChatFailed, MissingModel

ALL = "all"
MOST_FILES = 500
SIGNS = {"same": "✓", "different": "✗", "unparsed": "?", "failed": "?"}
STRATA = {"strength": "Strength", "sampling": "Sampling", "feature_size": "Size of v", "domain": "Domain"}
# Beside HTML's own, characters that a page's templates could take for theirs.
_TEMPLATE = str.maketrans({"$": "&#36;", "{": "&#123;", "}": "&#125;", "`": "&#96;", "%": "&#37;"})


@dataclass(frozen=True)
class Entry:
    """A submission that was taken.

    Attributes:
        key: of its content.
        label: where it lies.
        report: of its check.
    """

    key: str
    label: str
    report: Report

    @property
    def submission(self) -> Mapping[str, Any]:
        """What was handed in."""
        assert self.report.submission is not None
        return self.report.submission

    @property
    def name(self) -> str:
        """What the submitter calls the system."""
        return str(self.submission["system"]["name"])

    @property
    def judge(self) -> str:
        """Whose verdicts its scores rest on, and whether they were checked; only entries with the same are compared.

        A JSON list: names and revisions are what strangers wrote, and joined by blanks one could pass for another.
        """
        judge = self.report.judge or {}
        return json.dumps([self.report.verified, *(judge.get(key, "") for key in ("name", "revision", "prompt_hash"))])

    def score(self, variant: str, domain: str) -> Mapping[str, Any] | None:
        """Its scores on one domain or on all that it covers; None where it has none."""
        scores = self.report.scores or {}
        if domain == ALL:
            return scores["variants"].get(variant)
        return scores["tasks"].get(f"{domain}_{variant}")


@dataclass(frozen=True)
class Refused:
    """A file that is no entry, and why."""

    label: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """An entry in one table: its rank, and whether it shares that with the entry above."""

    rank: int
    tied: bool
    entry: Entry
    score: Mapping[str, Any]


@dataclass
class Board:
    """The entries of a source, read again when they are older than `seconds`; each content is checked once.

    Attributes:
        source: a folder, or Hub repos separated by commas.
        bench: the benchmark that they answer.
        judge: judges all names again, where one is given.
        seconds: how long what was read is shown.
    """

    source: str
    bench: Bench
    judge: Any = None
    seconds: float = 600
    entries: list[Entry] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    _reports: dict[str, Report] = field(default_factory=dict)
    _read: float | None = None

    def refresh(self) -> None:
        """Read the source, unless that was done a moment ago."""
        if self._read is None or time.monotonic() - self._read > self.seconds:
            self.entries, self.refused = self._check()
            self._read = time.monotonic()

    def _check(self) -> tuple[list[Entry], list[Refused]]:
        entries: dict[str, Entry] = {}
        refused = []
        for label, content in gather(self.source):
            if isinstance(content, str):
                refused.append(Refused(label, (content,)))
                continue
            key = hashlib.sha256(content).hexdigest()[:16]
            if key in entries:
                refused.append(Refused(label, (f"it is the same file as {entries[key].label}.",)))
                continue
            try:
                if key not in self._reports:
                    self._reports[key] = validate(content, bench=self.bench, judge=self.judge)
            except (BadData, MissingModel, ChatFailed) as error:  # ours to mend, so it is tried again
                refused.append(Refused(label, (f"it could not be checked: {error}",)))
                continue
            report = self._reports[key]
            if report.ok:
                entries[key] = Entry(key, label, report)
            else:
                refused.append(Refused(label, report.errors))
        return list(entries.values()), refused

    def domains(self) -> list[str]:
        """All, then each base of the benchmark."""
        return [ALL, *sorted({setting.base for setting in self.bench.settings})]

    def judges(self) -> list[str]:
        """Who judged entries: those that were checked first, then those with most entries."""
        count: dict[str, int] = {}
        for entry in self.entries:
            count[entry.judge] = count.get(entry.judge, 0) + 1
        return sorted(count, key=lambda judge: (not json.loads(judge)[0], -count[judge], judge))

    def places(self, variant: str, domain: str, judge: str | None) -> tuple[list[Place], list[Entry]]:
        """The ranked entries of one table, and those of its judge that cover only a part of it.

        A reference-free task of a base without stored images is nobody's duty.
        """
        needed = {
            task_of(setting)
            for setting in self.bench.settings
            if setting.variant == variant and (variant == "reference_based" or self.bench.has_images(setting.base))
        }
        mine = [entry for entry in self.entries if entry.judge == judge and entry.score(variant, domain) is not None]
        whole = [entry for entry in mine if domain != ALL or needed <= set(entry.submission["tasks"])]
        return ranked(whole, variant, domain), [entry for entry in mine if entry not in whole]


def judge_label(judge: str) -> str:
    """An `Entry.judge` as it is shown."""
    checked, *parts = json.loads(judge)
    return f"{' '.join(filter(None, parts))[:120]}{'' if checked else ' (as stated, not checked)'}"


def gather(source: str) -> Iterator[tuple[str, bytes | str]]:
    """Each file of a folder or of Hub repos: where it lies, and its content or the reason why it is not read."""
    folder = Path(source)
    if folder.is_dir():
        for number, path in enumerate(sorted(p for p in folder.rglob("*.json") if p.is_file())):
            label = path.relative_to(folder).as_posix()
            if number >= MOST_FILES:
                yield label, f"the folder has more than {MOST_FILES} files; this one and those after it are not read."
                return
            try:
                yield label, read_bytes(path)
            except (BadData, OSError) as error:
                yield label, str(error)
        return
    for repo in filter(None, (part.strip() for part in source.split(","))):
        yield from _from_hub(repo)


def _from_hub(repo: str) -> Iterator[tuple[str, bytes | str]]:
    from huggingface_hub import HfApi, hf_hub_download

    kind, name = ("dataset", repo.removeprefix("datasets/")) if repo.startswith("datasets/") else ("model", repo)
    number = 0
    try:
        for item in HfApi().list_repo_tree(name, repo_type=kind, recursive=True):
            path, size = item.path, getattr(item, "size", None)
            if size is None or not path.endswith(".json") or (kind == "model" and not path.startswith("symbalbench/")):
                continue
            number += 1
            if number > MOST_FILES or size > MOST_BYTES:
                yield f"{repo}/{path}", f"it is file {number} with {size:,} bytes; {MOST_FILES} of 20 MB are read."
                continue
            yield f"{repo}/{path}", read_bytes(hf_hub_download(name, path, repo_type=kind))
    except Exception as error:  # a dozen kinds: no network, no such repo, gated
        yield repo, f"the Hub does not give it: {' '.join(str(error).split())[:200] or type(error).__name__}"


def ranked(entries: Sequence[Entry], variant: str, domain: str) -> list[Place]:
    """Entries by Acc@1, then Acc@5; one whose interval overlaps that of the entry above shares its rank."""
    scored = [(entry, score) for entry in entries if (score := entry.score(variant, domain)) is not None]
    scored.sort(key=lambda one: (-one[1]["acc@1"], -one[1]["acc@5"], one[0].name, one[0].key))
    places: list[Place] = []
    for number, (entry, score) in enumerate(scored, 1):
        tied = bool(places) and score["acc@1_interval"][1] >= places[-1].score["acc@1_interval"][0]
        places.append(Place(places[-1].rank if tied else number, tied, entry, score))
    return places


def text(value: Any, longest: int = 200) -> str:
    """Anything as HTML that shows it letter by letter; what is long is cut."""
    whole = str(value)
    cut = whole if len(whole) <= longest else whole[: longest - 1] + "…"
    return f"<bdi>{html.escape(cut).translate(_TEMPLATE)}</bdi>"


def table(places: Sequence[Place], partial: Sequence[Entry] = ()) -> str:
    """The ranked entries."""
    if not places:
        return f"<p class='lb-none'>No entry covers this.</p>{_partial(partial)}"
    heads = ("Rank", "System", "Acc@1", "95 % interval", "Acc@5", "t@1", "v@1", "Settings", "No result", "Method",
             "Verdicts", "File")  # fmt: skip
    rows = []
    for place in places:
        told, score = place.entry.submission, place.score
        url = told["system"]["url"]
        name = text(place.entry.name, 100)
        if url:
            name = f"<a href='{html.escape(url)}' target='_blank' rel='noopener nofollow ugc'>{name}</a>"
        low, high = score["acc@1_interval"]
        failed = sum(row["error"] for row in told["predictions"])
        cells = (
            f"{place.rank}{' <small>tied</small>' if place.tied else ''}", name, f"<b>{score['acc@1']:.3f}</b>",
            f"{low:.2f}–{high:.2f}", f"{score['acc@5']:.3f}", f"{score['textual_error_acc@1']:.3f}",
            f"{score['visual_feature_acc@1']:.3f}", str(score["n"]), str(failed), text(told["system"]["method"], 60),
            "checked" if place.entry.report.verified else "as stated", text(place.entry.label, 120),
        )  # fmt: skip
        rows.append(cells)
    return _grid(heads, rows) + _partial(partial)


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    whole = f"<table class='lb'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='lb-wide {kind}'>{whole}</div>"


def _partial(entries: Sequence[Entry]) -> str:
    if not entries:
        return ""
    named = ", ".join(text(entry.name, 60) for entry in entries[:20])
    return f"<p class='lb-note'>Not ranked here, since they cover only some domains: {named}. Choose a domain.</p>"


def chart(rows: Sequence[tuple[str, Mapping[str, Any]]], title: str) -> str:
    """Acc@1 of each row as a dot on its interval, in [0, 1]; labels are cut to what fits."""
    if not rows:
        return ""
    left, width, line, top = 230, 760, 26, 34
    height = top + line * len(rows) + 26

    def x(share: float) -> float:
        return round(left + share * (width - left - 60), 1)

    parts = [f"<text x='8' y='18' class='lb-title'>{text_svg(title, 90)}</text>"]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        end = height - 24
        parts.append(f"<line x1='{x(tick)}' x2='{x(tick)}' y1='{top - 6}' y2='{end}' class='lb-grid'/>")
        parts.append(f"<text x='{x(tick)}' y='{height - 8}' text-anchor='middle' class='lb-tick'>{tick:g}</text>")
    for number, (label, score) in enumerate(rows):
        y, (low, high) = top + line * number + line / 2, score["acc@1_interval"]
        parts += [
            # A drawing in the drawing cuts what is wider than its place, whatever letters it is of.
            f"<svg x='8' y='{y - line / 2}' width='{left - 24}' height='{line}'>"
            f"<text x='0' y='{line / 2 + 4}'>{text_svg(label, 40)}</text></svg>",
            f"<line x1='{x(low)}' x2='{x(high)}' y1='{y}' y2='{y}' class='lb-whisker'/>",
            f"<circle cx='{x(score['acc@1'])}' cy='{y}' r='5' class='lb-dot'/>",
            f"<text x='{width - 8}' y='{y + 4}' text-anchor='end' class='lb-tick'>{score['acc@1']:.2f}</text>",
        ]
    return f"<svg class='lb-chart' viewBox='0 0 {width} {height}' role='img'>{''.join(parts)}</svg>"


def text_svg(value: Any, longest: int) -> str:
    """Anything as text in a drawing."""
    return text(value, longest).removeprefix("<bdi>").removesuffix("</bdi>")


def detail(entry: Entry, bench: Bench, variant: str, domain: str) -> str:
    """One entry: what it is, its scores by stratum, and what it answered in each setting."""
    told, score = entry.submission, entry.score(variant, domain)
    judge, counts = entry.report.judge or {}, told["counts"]
    facts = {
        "Method": told["system"]["method"], "Judge": judge_label(entry.judge),
        "Verdicts": "checked here" if entry.report.verified else "as the file states them",
        "Stated judge": told["judge"]["name"] if told["judge"] != judge else None,
        "Questions to models": f"{counts['asked']:,} asked, {counts['cached']:,} cached, {counts['failed']:,} failed, "
        f"{counts['unparsed']:,} unparsed",
        "File": entry.label, **told["system"]["options"],
    }  # fmt: skip
    shown_facts = "".join(
        f"<div><dt>{text(k, 60)}</dt><dd>{text(v)}</dd></div>" for k, v in facts.items() if v is not None
    )
    notes = "".join(f"<p class='lb-note'>{text(note, 600)}</p>" for note in entry.report.notes)
    out = f"<h3>{text(entry.name, 100)}</h3><dl class='lb-facts'>{shown_facts}</dl>{notes}"
    if score is None:
        return f"{out}<p class='lb-none'>It has no answers for this domain and variant.</p>"
    strata = [
        (f"{title} {label}", part) for key, title in STRATA.items() for label, part in score["by"].get(key, {}).items()
    ]
    drawn = chart(strata, "Acc@1 by kind of setting, with 95 % intervals")
    return out + drawn + _answers(entry, bench, variant, domain)


def _answers(entry: Entry, bench: Bench, variant: str, domain: str) -> str:
    given = {row["setting"]: row for row in entry.submission["predictions"]}
    rows = []
    for setting in bench.settings:
        if setting.name not in given or setting.variant != variant or domain not in (ALL, setting.base):
            continue
        row = given[setting.name]
        cells = [text(setting.name), f"{setting.row['strength_target']:g}"]
        firsts = []
        for part in NAMES:
            truth = setting.row[part]
            states = [_state(entry.report, name, truth) for name in row[part]]
            firsts.append(states[:1] == ["same"])
            names = "".join(
                f"<li class='lb-{state}'>{SIGNS[state]} {text(name)}</li>"
                for name, state in zip(row[part], states, strict=True)
            )
            cells += [text(truth), f"<ul>{names}</ul>" if names else "<i>nothing</i>"]
        cells.append("no result" if row["error"] else text(row["verdict"] or "–"))
        cells.append("<b class='lb-same'>✓</b>" if all(firsts) else "<span class='lb-different'>✗</span>")
        rows.append(cells)
    heads = ("Setting", "Strength", "True t", "Answers for t", "True v", "Answers for v", "Verdict", "First right")
    return _grid(heads, rows, "lb-tall")


def _state(report: Report, name: str, truth: str) -> str:
    return report.verdicts.get((name.strip(), truth.strip()), "different")


def refused_list(refused: Sequence[Refused]) -> str:
    """The files that are no entries, each with its reasons."""
    if not refused:
        return "<p class='lb-none'>None.</p>"
    items = []
    for one in refused:
        reasons = "".join(f"<li>{text(reason, 400)}</li>" for reason in one.reasons)
        items.append(f"<dt>{text(shown(one.label)[1:-1], 120)}</dt><dd><ul>{reasons}</ul></dd>")
    return f"<dl class='lb-refused'>{''.join(items)}</dl>"


CSS = """
.lb-wide { overflow-x: auto; }
.lb-tall { max-height: 32rem; overflow-y: auto; }
table.lb { border-collapse: collapse; width: 100%; font-size: .9rem; }
table.lb, table.lb tr, table.lb thead, table.lb tbody { border: 0 !important; }
table.lb th, table.lb td { padding: .35rem .6rem; border: 0 solid var(--border-color-primary, #ddd); }
table.lb th, table.lb td { border-bottom-width: 1px !important; }
table.lb a, table.lb bdi { margin: 0; padding: 0; }
table.lb th { text-align: left; white-space: nowrap; position: sticky; top: 0; }
table.lb th { background: var(--background-fill-primary, #fff); }
table.lb td { overflow: hidden; overflow-wrap: anywhere; max-width: 18rem; }
table.lb td:has(bdi) { min-width: 6.8rem; } table.lb td:not(:has(bdi)) { white-space: nowrap; }
table.lb td { vertical-align: top; font-variant-numeric: tabular-nums; }
table.lb ul { margin: 0; padding: 0; list-style: none; }
table.lb small { opacity: .7; }
.lb-same { color: #1a7f4b; } .dark .lb-same { color: #58c78d; }
.lb-different { color: #b4472c; } .dark .lb-different { color: #e58a72; }
.lb-unparsed, .lb-failed { color: #8a6d00; } .dark .lb-unparsed, .dark .lb-failed { color: #e0c060; }
.lb-chart { width: 100%; max-width: 860px; height: auto; font-size: 13px; fill: currentColor; }
.lb-title { font-weight: 600; } .lb-tick { opacity: .75; font-size: 12px; }
.lb-grid { stroke: currentColor; opacity: .15; } .lb-whisker { stroke: currentColor; stroke-width: 2; opacity: .6; }
.lb-dot { fill: #4f46e5; } .dark .lb-dot { fill: #a5b4fc; }
.lb-facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); gap: .4rem 1.2rem; }
.lb-facts dt, .lb-refused dt { font-weight: 600; overflow-wrap: anywhere; }
.lb-facts dd, .lb-refused dd { margin: 0; overflow: hidden; overflow-wrap: anywhere; }
.lb-none, .lb-note { opacity: .85; }
"""
