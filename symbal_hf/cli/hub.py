"""`symbal submit` and `symbal leaderboard`: hand in the results of a run, and check what others hand in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symbal_hf.bench.options import Submitting
from symbal_hf.cli.options import BenchmarkOption, Commands, CreatePrOption, PrivateOption, RepoOption, like
from symbal_hf.cli.screen import say
from symbal_hf.core.options import Scoring, given

leaderboard = Commands("Check submissions to the leaderboard.")
JUDGED_AGAIN = "Judges the names again, as `symbal submit` takes it. By default the one it names, if offline."


def submit(
    results: Annotated[Path, typer.Argument(help="Folder of a finished `symbal bench run`.")],
    repo: Annotated[str, typer.Option(help="Model repo of the system: namespace/name.")],
    benchmark: BenchmarkOption,
    *,
    judge: Annotated[str, like(Scoring, "judge")] = "lite",
    submitting: Submitting,
) -> None:
    """Propose the results of a run to the repo of the system, where the Hub shows them."""
    from symbal_hf.bench.leaderboard.board import PLACEHOLDER
    from symbal_hf.bench.leaderboard.board import submit as run_submit

    done = run_submit(results, repo, bench=benchmark, judge=judge, **given(submitting))
    dry_run = submitting.dry_run
    assert done.report.submission is not None
    for path, data in done.files.items():
        say(f"{'would write' if dry_run else 'wrote'} {path} ({len(data):,} bytes) to {repo}")
        if dry_run and path.endswith(".yaml"):
            say(data.decode().rstrip())
    if dry_run and done.report.submission["benchmark"]["id"] is None:
        say(f"the benchmark's id is not known; give --benchmark-id, for {PLACEHOLDER} is none")
    _print(done.report)
    if done.url:
        say(f"submitted: {done.url}")


@leaderboard.command()
def validate(
    file: Annotated[Path, typer.Argument(help="JSON file of a submission.")],
    benchmark: BenchmarkOption,
    judge: Annotated[str | None, like(Scoring, "judge", JUDGED_AGAIN)] = None,
) -> None:
    """Check a submission; what is refused is told in a sentence for each reason, with exit code 2."""
    from symbal_hf.bench.leaderboard.board import validate as run_validate

    report = run_validate(file, bench=benchmark, judge=judge)
    for sentence in report.errors:
        typer.echo(f"refused: {sentence}", err=True)
    if not report.ok:
        raise typer.Exit(2)
    _print(report)


def _print(report: object) -> None:
    from symbal_hf.bench.leaderboard.board import Report

    assert isinstance(report, Report) and report.scores is not None and report.judge is not None
    how = "judged here by" if report.verified else "as the file says it was judged by"
    say(f"valid, {how} {report.judge['name']} {report.judge['revision']}")
    for kind in ("variants", "tasks"):
        for label, one in report.scores[kind].items():
            low, high = one["acc@1_interval"]
            accuracy = f"Acc@1 {one['acc@1']:.3f} ({low:.2f}-{high:.2f}), Acc@5 {one['acc@5']:.3f}"
            say(f"{label}: {accuracy}, {one['n']} settings")
    for note in report.notes:
        say(f"note: {note}")


@leaderboard.command()
def publish(repo: RepoOption, create_pr: CreatePrOption = False, private: PrivateOption = False) -> None:
    """Put the leaderboard on the Hub, as a Space; what it reads is told by variables in its settings."""
    from importlib import resources

    from symbal_hf.huggingface.publish import publish_space

    folder = resources.files("hub_cards").joinpath("leaderboard")
    names = ("README.md", "app.py", "leaderboard_view.py", "requirements.txt")
    files = {name: folder.joinpath(name).read_bytes() for name in names}
    url = publish_space(repo, files, message="Publish the leaderboard", create_pr=create_pr, private=private)
    say(f"published: {url}")
    say("set SYMBAL_BENCHMARK and SYMBAL_SUBMISSIONS in the settings of the Space")
