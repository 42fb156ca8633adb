"""A submission: what a system answered to a benchmark, what a judge said of each answer, and the scores that follow."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from symbal_hf.bench.acc_at_k import NAMES, acc_at_k
from symbal_hf.bench.leaderboard.strict_json import MOST_MARKS, invisible, shown
from symbal_hf.bench.results import CALLS, read_lines, read_run
from symbal_hf.bench.settings import Bench, Setting, open_bench
from symbal_hf.core.errors import BadData
from symbal_hf.core.store import Store
from symbal_hf.matching.judge import Remembering
from symbal_hf.matching.load import load_judge
from symbal_hf.matching.protocol import NameJudge, State, Verdicts
from symbal_hf.models.chat.protocol import ChatModel

VERSION = 1
KS = (1, 5)
LONGEST_NAME, LONGEST_SYSTEM, LONGEST_URL = 200, 100, 300
_URL = re.compile(r"https?://[^\s\"'<>/@]+(?:/[^\s\"'<>]*)?")
_ADDRESS = re.compile(r"(.*?\b(?:https?|wss?)://)(.*)", re.DOTALL)
_KINDS = re.compile(r"((?:[A-Za-z][\w-]+:)*)(.*)", re.DOTALL)
_PLACE = re.compile(r"[/\\.~]|[A-Za-z]:[\\/]")


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of a submission."""
    text = resources.files("symbal_hf.bench.leaderboard").joinpath("submission.schema.json").read_text("utf-8")
    return dict(json.loads(text))


def dumps(submission: Mapping[str, Any]) -> bytes:
    """A submission as JSON; equal ones give equal bytes."""
    return (json.dumps(submission, ensure_ascii=False, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def task_of(setting: Setting) -> str:
    """The id of a setting's task in the benchmark's eval.yaml."""
    return f"{setting.base}_{setting.variant}"


def identity(judge: NameJudge) -> dict[str, str]:
    """What tells one judge from another, as it may be told: scores of different ones cannot be compared."""
    return {"name": public(judge.name), "revision": judge.revision, "prompt_hash": judge.prompt_hash}


def covered(bench: Bench, names: Iterable[str]) -> tuple[list[str], list[str]]:
    """The tasks that some settings are of, and a sentence for each that is unknown, there twice, or not whole."""
    times, of = Counter(names), bench.by_name
    given, unknown = set(times), sorted(times.keys() - of.keys())
    problems = [f"the setting {shown(name)} is none of the benchmark's {len(of)}; take it out." for name in unknown]
    for name, n in times.items():
        problems += [f"the setting {shown(name)} is there twice; keep one answer to it."] * (n - 1)
    tasks = sorted({task_of(of[name]) for name in given & of.keys()})
    for task in tasks:
        whole = [setting.name for setting in bench.settings if task_of(setting) == task]
        if missing := [name for name in whole if name not in given]:
            problems.append(
                f"{len(missing)} of {len(whole)} settings of {task} have no answer, such as {shown(missing[0])}; a "
                "task is answered whole or left out, so choose by domain and variant only, and set no limit."
            )
    return tasks, problems


def score(
    bench: Bench, predictions: Mapping[str, Mapping[str, Any]], judge: NameJudge, *, resamples: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """`acc_at_k` of each variant and of each task: {"variants": {variant: ..}, "tasks": {task: ..}}.

    `predictions` are by the name of the setting; a `Remembering` judge is asked each pair once.
    """
    out: dict[str, dict[str, dict[str, Any]]] = {"variants": {}, "tasks": {}}
    mine = [setting for setting in bench.settings if setting.name in predictions]
    for kind, of in (("variants", lambda s: s.variant), ("tasks", task_of)):
        for label in sorted({of(setting) for setting in mine}):
            rows = [setting for setting in mine if of(setting) == label]
            given = [{part: predictions[s.name][part] for part in NAMES} for s in rows]
            out[kind][label] = acc_at_k(given, [s.truth for s in rows], judge=judge, k=KS, resamples=resamples)
    return out


def headline(scores: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """The part of `score` that a submission states."""
    parts = ("", *(f"{name}_" for name in NAMES))
    keys = ("n", *(f"{part}{kind}@{k}" for part in parts for kind in ("acc", "undecided") for k in KS))
    return {kind: {label: {key: one[key] for key in keys} for label, one in scores[kind].items()} for kind in scores}


def states_of(names: Sequence[str], truth: str, said: Mapping[tuple[str, str], State]) -> list[State]:
    """What was said of each name; a blank one names nothing and was never asked about."""
    return [said[name.strip(), truth.strip()] if name.strip() else "different" for name in names]


def build_submission(
    results_folder: str | Path,
    *,
    bench: Bench | str | Path,
    name: str,
    judge: str | NameJudge | ChatModel | Verdicts = "lite",
    url: str | None = None,
    benchmark_id: str | None = None,
    store: Store | None = None,
) -> dict[str, Any]:
    """What `symbal bench run` left in a folder, as a submission to the leaderboard.

    Equal results give an equal submission. Passwords in addresses and the folders of this machine are left out; names
    lose invisible characters and what is behind 200 letters, and how many did is counted.

    Returns:
        A mapping that follows `submission.schema.json`. Its scores are those of `acc_at_k`, over each variant and each
        task; a setting that failed in the run counts as wrong, and among `counts["errors"]`.

    Raises:
        BadData: an unfinished run, one of another benchmark, or a name or address that cannot be shown.
    """
    if not name.strip() or len(name) > LONGEST_SYSTEM or invisible(name):
        raise BadData(f"the name {shown(name)} of the system; give 1 to {LONGEST_SYSTEM} visible characters.")
    if url is not None and (len(url) > LONGEST_URL or not _URL.fullmatch(url) or invisible(url)):
        raise BadData(
            f"the address {shown(url)}; give one of at most {LONGEST_URL} characters with http:// or https://."
        )
    folder, bench = Path(results_folder), open_bench(bench)
    manifest = read_run(folder, bench)
    lines, failed = read_lines(folder), read_lines(folder, failed=True)
    asked = sorted(manifest["benchmark"]["settings"])
    if open_ones := [one for one in asked if one not in lines and one not in failed]:
        raise BadData(
            f"{len(open_ones)} of {len(asked)} settings of {folder} have no result yet, such as {open_ones[0]!r}; "
            "run `symbal bench run` again with the same options to finish."
        )
    tasks, problems = covered(bench, asked)
    if problems:
        raise BadData(problems[0])
    cleaned = 0
    predictions: dict[str, dict[str, Any]] = {}
    for one in asked:
        line = lines.get(one, {})
        given = {part: [str(n) for n in line.get(part, ())][: max(KS)] for part in NAMES}
        kept = {part: [clean(n) for n in names] for part, names in given.items()}
        cleaned += sum(a != b for part in NAMES for a, b in zip(given[part], kept[part], strict=True))
        predictions[one] = {"setting": one, **kept, "verdict": line.get("verdict"), "error": one not in lines}
    said = Remembering(load_judge(judge, store=store))
    scores = score(bench, predictions, said)
    of = bench.by_name
    for one, row in predictions.items():
        row["judged"] = {part: states_of(row[part], of[one].row[part], said.said) for part in NAMES}
    options = {key: value for key, value in manifest.get("options", {}).items() if value is not None}
    return {
        "schema_version": VERSION,
        "system": {"name": name, "url": url, "method": manifest["method"], "options": _portable(options)},
        "benchmark": {"id": benchmark_id, "revision": bench.revision},
        "variants": sorted({of[one].variant for one in asked}),
        "tasks": tasks,
        "judge": identity(said),
        "seeds": {"method": options.get("seed")},
        "versions": dict(manifest.get("versions", {})),
        "counts": {
            "settings": len(asked), "errors": len(asked) - sum(one in lines for one in asked),
            **{key: sum(lines[one].get("calls", {}).get(key, 0) for one in asked if one in lines) for key in CALLS},
            "cleaned": cleaned, **judge_counts(said.said),
        },
        "scores": headline(scores),
        "predictions": [predictions[one] for one in asked],
    }  # fmt: skip


def judge_counts(said: Mapping[tuple[str, str], State]) -> dict[str, int]:
    """How many pairs were judged, and of how many the judge could not tell."""
    count = list(said.values()).count
    return {"judgements": len(said), "judge_failed": count("failed"), "judge_unparsed": count("unparsed")}


def clean(name: str) -> str:
    """A name as a submission may have it: one line of at most 200 characters, all of them visible."""
    kept, marks = [], 0
    for character in name[: 50 * LONGEST_NAME]:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if category in ("Cf", "Cs") or marks > MOST_MARKS:
            continue
        kept.append(" " if category[0] == "Z" or category == "Cc" else character)
    return " ".join("".join(kept).split())[:LONGEST_NAME].rstrip()


def public(spec: str) -> str:
    """A part's name without the password in its address and without the folder that it lies in on one machine."""
    if found := _ADDRESS.fullmatch(spec):
        address, mark, model = found[2].partition("#")
        host = re.sub(r"^[^#]*@", "", address.partition("?")[0])
        return f"{found[1]}{host}{mark}{_last(model)}"
    found = _KINDS.fullmatch(spec)
    assert found is not None
    return found[1] + _last(found[2])


def _last(place: str) -> str:
    """The last part of what is syntactically a path; a Hub repo, ns/name, is none."""
    if not _PLACE.match(place):
        return place
    return re.split(r"[/\\]", place.rstrip("/\\"))[-1] or "local"


def _portable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a run that say nothing of the machine it was made on."""
    out = {}
    for key, value in options.items():
        if isinstance(value, str):
            rest = _KINDS.fullmatch(value)
            here = rest is not None and "/" in rest[2] and "://" not in value and Path(rest[2]).exists()
            value = public(f"{rest[1]}./{rest[2]}" if here and rest is not None else value)
        out[key] = value
    return out
