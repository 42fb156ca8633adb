"""What a leaderboard takes: a submission is checked against the benchmark itself, and proposed to its system's repo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from symbal_hf.bench.leaderboard.checks import (
    StatedJudge,
    against_bench,
    against_schema,
    named,
    scores_differ,
    stated_verdicts,
    verdicts_differ,
    within,
)
from symbal_hf.bench.leaderboard.strict_json import loads, read_bytes
from symbal_hf.bench.leaderboard.submission import build_submission, dumps, headline, identity, score
from symbal_hf.bench.options import Submitting
from symbal_hf.bench.settings import Bench, open_bench
from symbal_hf.core.errors import BadData
from symbal_hf.core.options import take
from symbal_hf.core.store import Store
from symbal_hf.huggingface.publish import check_repo, sending
from symbal_hf.matching.judge import Remembering
from symbal_hf.matching.load import load_judge
from symbal_hf.matching.protocol import NameJudge, State, Verdicts
from symbal_hf.models.chat.protocol import ChatModel

OFFLINE = ("exact", "lite")
MOST_SENTENCES = 20
PLACEHOLDER = "YOUR_NAMESPACE/symbalbench"


@dataclass(frozen=True)
class Report:
    """What a check of a submission found."""

    errors: tuple[str, ...]  # a sentence for each reason to refuse it; none where it is taken
    notes: tuple[str, ...] = ()  # what a reader of its scores should know
    submission: Mapping[str, Any] | None = None  # the submission that was taken, else None
    # recomputed from its predictions, with intervals and strata: {"variants": .., "tasks": ..}
    scores: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None
    judge: Mapping[str, str] | None = None  # who judged those scores: name, revision and prompt_hash
    verdicts: Mapping[tuple[str, str], State] = field(default_factory=dict)  # what it said of each (answer, truth)
    verified: bool = False  # whether that judge was asked here; else the file itself says which names are right

    @property
    def ok(self) -> bool:
        """Whether it is taken."""
        return not self.errors


def validate(
    path_or_bytes: str | Path | bytes,
    *,
    bench: Bench | str | Path,
    judge: str | NameJudge | ChatModel | Verdicts | None = None,
    store: Store | None = None,
    resamples: int = 1000,
) -> Report:
    """Check a submission that a stranger made; nothing in it is run, opened or believed.

    All that can be recomputed is: which settings must be there, what follows from the names and the verdicts on them,
    and, where the judge can be asked, the verdicts.

    Args:
        path_or_bytes: the file, or what is in it.
        bench: the benchmark: opened, or its folder or Hub id.
        judge: judges the names again; scores are then by it. Without one, "exact" and "lite" are asked where the
            submission names them; others are not, and their scores remain unverified. `store` keeps its answers.

    Raises:
        FileNotFoundError: no such file.
        BadData: no benchmark, no such judge.
        MissingModel: the model of the judge is not installed, or jsonschema is not.
        ChatFailed: the chat model that was given as judge answers nothing.
    """
    bench = open_bench(bench)
    try:
        found = loads(read_bytes(path_or_bytes))
    except BadData as error:
        return Report((str(error),))
    # Each rule may count on those before it, and none is tried before it is its turn.
    for broken in (against_schema(found), against_bench(found, bench), within(found, bench)):
        if errors := _first(broken):
            return Report(errors)
    stated, told = stated_verdicts(found, bench)[0], found["judge"]
    asked, notes = _judge_for(told, judge, store)
    same = asked is not None and identity(asked) == told
    book, by_file = Remembering(asked or StatedJudge(told, stated)), StatedJudge(told, stated)
    predictions = {row["setting"]: row for row in found["predictions"]}
    scores = score(bench, predictions, book, resamples=resamples)
    true = scores if same or asked is None else score(bench, predictions, by_file)
    errors = _first(
        chain(
            verdicts_differ(stated, book.said, told) if same else (),
            scores_differ(found["scores"], headline(true), verified=same),
        )
    )
    if errors:
        return Report(errors)
    if asked is not None and not same:
        notes.append(
            f"its names were judged again by {named(identity(asked))}; those that it states are of "
            f"{named(told)}, and were not checked."
        )
    if lost := found["counts"]["errors"]:
        notes.append(f"{lost} of {found['counts']['settings']} settings gave no result and count as wrong.")
    return Report((), tuple(notes), found, scores, identity(book), book.said, verified=asked is not None)


def _judge_for(told: Mapping[str, str], judge: Any, store: Store | None) -> tuple[NameJudge | None, list[str]]:
    """Who judges the names of a submission again, or nobody, and why."""
    if judge is not None:
        return load_judge(judge, store=store), []
    if told["name"] not in OFFLINE:
        why = f"{named(told)} is asked only when it is given as judge, so which names are right is what the file says."
        return None, [f"its scores are unverified: {why}"]
    here = load_judge(told["name"], store=store)
    if identity(here) == told:
        return here, []
    why = f"it was judged by {named(told)}, and this is {named(identity(here))}; give a judge, or install that version."
    return None, [f"its scores are unverified: {why}"]


@dataclass(frozen=True)
class Submitted:
    """What was proposed to a system's repo, or would be."""

    files: Mapping[str, bytes]  # content by path in the repo
    report: Report  # of the check that the submission passed
    url: str | None  # of the pull request or commit; None where nothing was sent


def submit(
    results: str | Path,
    repo: str,
    *,
    bench: Bench | str | Path,
    judge: str | NameJudge | ChatModel | Verdicts = "lite",
    token: str | None = None,
    store: Store | None = None,
    **options: Any,
) -> Submitted:
    """Propose the results of a run to the model repo of the system that was run, where the Hub shows them.

    Args:
        results: folder of a finished `symbal bench run`.
        repo: namespace/name of the model repo that holds the composition.
        bench: the benchmark that was run: opened, or its folder or Hub id.
        judge: decides which names are right; `store` keeps its answers.
        token: of a Hub account; the signed-in one by default.
        options: of `symbal_hf.bench.options.Submitting`: name, url, benchmark_id, dry_run, create_pr.

    Returns:
        The files: the submission, and one `.eval_results/symbalbench-<variant>.yaml` for each variant, with Acc@1 of
        each of its tasks.

    Raises:
        BadData: results that are not whole, a repo or benchmark without a name, or the Hub does not take it.
    """
    check_repo(repo)
    (told,) = take(options, Submitting, by="submit")
    benchmark_id = told.benchmark_id
    if benchmark_id is None and isinstance(bench, str) and not Path(bench).is_dir():
        benchmark_id = bench
    if benchmark_id is None and not told.dry_run:
        raise BadData(
            "the Hub lists results by the benchmark's repo there; give its benchmark_id, such as lab/symbalbench."
        )
    bench = open_bench(bench)
    once = Remembering(load_judge(judge, store=store))
    name = repo if told.name is None else told.name
    made = build_submission(results, bench=bench, name=name, judge=once, url=told.url, benchmark_id=benchmark_id)
    data = dumps(made)
    report = validate(data, bench=bench, judge=once)
    if not report.ok:
        raise BadData(report.errors[0])
    path = f"symbalbench/{bench.revision}-{sha256(data).hexdigest()[:8]}.json"
    files = {path: data, **_eval_results(report, bench, results=Path(results), repo=repo, path=path)}
    sent = None if told.dry_run else _send(files, repo, made, create_pr=told.create_pr, token=token)
    return Submitted(files, report, sent)


def _first(sentences: Iterator[str]) -> tuple[str, ...]:
    found = list(islice(sentences, MOST_SENTENCES + 1))
    return (*found[:MOST_SENTENCES], "there is more, which is not listed.") if found[MOST_SENTENCES:] else tuple(found)


def _eval_results(report: Report, bench: Bench, *, results: Path, repo: str, path: str) -> dict[str, bytes]:
    """The files that the Hub reads scores from: one for each variant, one entry for each of its tasks."""
    import yaml
    from huggingface_hub import EvalResultEntry, constants, eval_result_entries_to_yaml

    assert report.submission is not None and report.scores is not None
    told, snapshot = report.submission, bench.folder.resolve()
    when = max(file.stat().st_mtime for file in results.glob("results-*.jsonl"))
    files = {}
    for variant in told["variants"]:
        entries = []
        for task in told["tasks"]:
            if not task.endswith(f"_{variant}"):
                continue
            one = report.scores["tasks"][task]
            low, high = one["acc@1_interval"]
            entries.append(
                EvalResultEntry(
                    dataset_id=told["benchmark"]["id"] or PLACEHOLDER,
                    task_id=task,
                    value=round(one["acc@1"], 4),
                    # The Hub takes a commit of the dataset there; our own hash of its content is in the notes.
                    dataset_revision=snapshot.name if snapshot.parent.name == "snapshots" else None,
                    date=datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    source_url=f"{constants.ENDPOINT}/{repo}/blob/main/{path}",
                    source_name="per-setting predictions",
                    notes=f"Acc@1 of t and v together (95 % interval {low:.3f} to {high:.3f}), {one['n']} settings, "
                    f"judge {told['judge']['name']} {told['judge']['revision']}, content {bench.revision}",
                )
            )
        text = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=1000)
        files[f".eval_results/symbalbench-{variant}.yaml"] = text.encode()
    return files


def _send(files: Mapping[str, bytes], repo: str, made: Mapping[str, Any], *, create_pr: bool, token: str | None) -> str:
    from huggingface_hub import CommitOperationAdd, HfApi

    counts, api = made["counts"], HfApi(token=token)
    with sending(f"nothing was submitted to {repo}"):
        if not api.repo_exists(repo):
            raise BadData(
                f"the Hub has no model repo {repo}; push the composition there first, for its results stand beside it."
            )
        done = api.create_commit(
            repo,
            [CommitOperationAdd(path, data) for path, data in files.items()],
            commit_message=f"SymbalBench results: {', '.join(made['tasks'])}"[:200],
            commit_description=f"{counts['settings']} settings, {counts['errors']} without a result; judge "
            f"{made['judge']['name']} {made['judge']['revision']}.",
            create_pr=create_pr,
        )
    return str(done.pr_url or done.commit_url)
