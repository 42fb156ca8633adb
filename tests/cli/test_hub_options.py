"""Every option of the commands that write to a Hub changes what it holds or what is said, or is refused."""

from __future__ import annotations

import pytest
from bench_case import half, make_bench, write_results
from hub import LoopbackHub, Repo
from option_cases import Cases, changes, check, commands, done, refused

from symbal_hf.bench.leaderboard.submission import build_submission, dumps
from symbal_hf.matching.load import load_judge


class Ground:
    """Another benchmark for each folder, and a run over one of them, which has been judged for a submission."""

    def __init__(self, top):
        self.top = top
        bench = make_bench(top / "bench")
        self.bench, self.other = bench.folder, make_bench(top / "other").folder
        self.results = write_results(top / "run", bench, half)
        self.file = top / "submission.json"
        self.file.write_bytes(dumps(build_submission(
            self.results, bench=bench, name="x", judge=load_judge("exact"), url=None, benchmark_id=None)))  # fmt: skip


class Hub:
    """A Hub as the commands of this process find it, with one model repo and two that are public already."""

    def __init__(self, hub):
        self.hub = hub

    def fresh(self):
        self.hub.repos.clear()
        self.hub.repos["model", "lab/system"] = Repo("model", "lab/system")

    def state(self):
        return "".join(
            f"\n== {kind} {repo.path} private={repo.private}"
            + "".join(f"\n{ref} {head.title!r} {sorted(head.entries(), key=str)}" for ref, head in repo.refs.items())
            for (kind, _), repo in self.hub.repos.items()
        )


def bench_publish(g) -> tuple[list, Cases]:
    return [g.bench, "--repo", "lab/bench"], {
        "folder": refused("is no built benchmark", base=[g.results, "--repo", "lab/bench"]),
        "repo": changes("--repo", "lab/another"), "create_pr": changes("--create-pr"), "private": changes("--private"),
        "revision": changes("--revision", "next"), "message": changes("--message", "Better"),
    }  # fmt: skip


def metric_publish(g) -> tuple[list, Cases]:
    return ["--repo", "lab/symbal_acc_at_k"], {
        "repo": refused("is no name for the Space", "--repo", "lab/other"), "create_pr": changes("--create-pr"),
        "private": changes("--private"),
    }  # fmt: skip


def leaderboard_publish(g) -> tuple[list, Cases]:
    return ["--repo", "lab/board"], {
        "repo": changes("--repo", "lab/another"), "create_pr": changes("--create-pr"), "private": changes("--private"),
    }  # fmt: skip


def submit(g) -> tuple[list, Cases]:
    rest = ["--repo", "lab/system", "--benchmark", g.bench, "--benchmark-id", "lab/bench", "--judge", "exact"]
    base = [g.results, *rest]
    return base, {
        "results": refused("", base=[g.top / "nowhere", *rest]),
        "repo": refused("the Hub has no model repo", "--repo", "lab/none"),
        "benchmark": refused("", "--benchmark", g.top), "judge": changes("--judge", "lite"),
        "name": changes("--name", "Another"), "url": changes("--url", "https://example.org"),
        "benchmark_id": changes("--benchmark-id", "lab/another"), "dry_run": changes("--dry-run"),
        "create_pr": changes("--no-create-pr"),
    }  # fmt: skip


def leaderboard_validate(g) -> tuple[list, Cases]:
    base = [g.file, "--benchmark", g.bench]
    return base, {
        "file": refused("", base=[g.top / "nowhere.json", *base[1:]]), "benchmark": refused("", "--benchmark", g.top),
        "judge": changes("--judge", "lite"),
    }  # fmt: skip


TABLE = {
    "bench publish": bench_publish, "metric publish": metric_publish, "leaderboard publish": leaderboard_publish,
    "submit": submit, "leaderboard validate": leaderboard_validate,
}  # fmt: skip


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    pytest.importorskip("jsonschema", reason="checks the form of submissions")
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture
def hub(monkeypatch):
    with LoopbackHub() as hub:
        for name, value in {"ENDPOINT": hub.url, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        monkeypatch.setenv("HF_TOKEN", "hf_loopback")
        yield Hub(hub)
        assert hub.unknown == []


@pytest.mark.parametrize(("command", "name"), [(c, name) for c in TABLE for name in commands()[c]])
def test_an_option_changes_what_the_hub_holds_or_is_refused(command, name, ground, hub, tmp_path):
    check(TABLE, ground, command, name, tmp_path, hub)


@pytest.mark.parametrize("command", sorted(TABLE))
def test_the_same_command_leaves_the_hub_the_same(command, ground, hub, tmp_path):
    base, _ = TABLE[command](ground)
    code, text = done(command, base, tmp_path / "once", hub)
    assert code == 0 and (code, text) == done(command, base, tmp_path / "again", hub), text[:600]
