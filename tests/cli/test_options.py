"""Every option of every command changes something or is refused; none is taken and ignored."""

from __future__ import annotations

import pytest
from chat_fakes import FakeServer
from option_cases import NONE, NOTHING, Cases, changes, check, commands, done, refused
from option_ground import OLD, Ground, pages


def audit(g: Ground) -> tuple[list, Cases]:
    out = ("--out", "OUT")
    return [g.rows, *out], {
        "source": changes(base=[g.fewer, *out]), "out": changes("--out", "OUT/inner"),
        "preset": refused("no preset", "--preset", NONE), "method": changes("--method", "paper"),
        "vocabulary": changes("--vocabulary", g.words), "pair": changes("--pair", "dog|toilet"),
        "image_column": refused(NONE, "--image-column", NONE), "caption_column": changes("--caption-column", "note"),
        "reference_column": refused(NONE, "--reference-column", NONE),
        "objects_column": refused(NONE, "--objects-column", NONE),
        "image_root": changes("--image-root", g.top / "elsewhere", base=[g.seen, *out]),
        "join": changes("--join", g.objects, base=[g.plain, *out]),
        "source_format": refused("", "--source-format", "coco"),
        "allow_download": changes("--allow-download", base=[g.links, *out]),
        "limit": changes("--limit", 150), "sample": changes("--sample", 150),
        "on_bad_row": changes("--on-bad-row", "error", base=[g.bad, *out]),
        "scorer": refused("reference", "--scorer", "reference"), "scorer_1": refused(NONE, "--scorer-1", NONE),
        "captioner": refused("", "--captioner", NONE), "chat": refused("", "--chat", NONE),
        **{part: refused("", f"--{part.replace('_', '-')}", NONE) for part in (
            "scorer_2", "summarizer", "summarizer_1", "summarizer_2", "text_encoder", "image_encoder")},
        "top_k": changes("--top-k", 3), "tau": changes("--tau", 0.99), "alpha": changes("--alpha", 0.5),
        "min_rate": changes("--min-rate", 0.5), "seed": changes("--seed", 4),
        "members": refused("belongs to method='paper'", "--members", 9),
        "prompts": refused("no part of this audit asks a chat model", "--prompts", g.ask),
        "concurrency": refused("no part of this audit asks a server", "--concurrency", 9),
        "budget": changes("--budget", 9, base=[g.seen, "--limit", 30, "--chat", g.chat, *out]),
        "device": refused("stay on the CPU", "--device", "cuda"),
        "dtype": refused("stay on the CPU", "--dtype", "float16"),
        "device_map": refused("stay on the CPU", "--device-map", "auto"),
        "devices": refused("it must be >= 1", "--devices", 0),
        "num_nodes": refused("it must be >= 1", "--num-nodes", 0),
    }  # fmt: skip


def demo(g: Ground) -> tuple[list, Cases]:
    return ["--out", "OUT/d", "--rows", 60], {
        "out": changes("--out", "OUT/e"), "rows": changes("--rows", 61), "seed": changes("--seed", 8),
    }  # fmt: skip


def caption(g: Ground) -> tuple[list, Cases]:
    base = [g.top / "photos", "--model", g.chat, "--out", "OUT/c.jsonl"]
    table = [g.seen, *base[1:]]
    server = "a model at a server runs there"
    return base, {
        "images": changes(base=[g.top / "elsewhere", *base[1:]]), "model": refused(NONE, "--model", NONE),
        "out": changes("--out", "OUT/d.jsonl"), "prompt": changes("--prompt", "What is it?"),
        "prompts": refused("describe_image.jinja", "--prompts", g.ask), "max_tokens": changes("--max-tokens", 9),
        "temperature": changes("--temperature", 0.5), "seed": refused("nothing is drawn", "--seed", 3),
        "concurrency": refused("concurrency=0", "--concurrency", 0),
        "image_column": refused(NONE, "--image-column", NONE, base=table),
        "image_root": refused("", "--image-root", g.top / "nowhere", base=table),
        "source_format": refused("", "--source-format", "coco", base=table),
        "allow_download": changes("--allow-download", base=[g.links, *base[1:]]),
        "limit": changes("--limit", 2), "sample": changes("--sample", 2),
        "on_bad_row": refused("neither", "--on-bad-row", "neither"),
        "batch_size": refused(server, "--batch-size", 3), "device": refused(server, "--device", "cpu"),
        "dtype": refused(server, "--dtype", "float32"), "device_map": refused(server, "--device-map", "auto"),
    }  # fmt: skip


def validate(g: Ground) -> tuple[list, Cases]:
    base = [g.audit]
    none, looks = "no chat model is asked", "no detector"
    return base, {
        "folder": changes(base=[g.top / "fewer"]), "detector": refused(NONE, "--detector", NONE),
        "scorer": changes("--scorer", "audit"), "threshold": refused("without a score", "--threshold", 0.5),
        "calibrate": refused("objects with themselves", "--calibrate", "objects"),
        "vocabulary": refused("nowhere.txt", "--vocabulary", g.top / "nowhere.txt"),
        "human_template": changes("--human-template", "OUT/labels.csv"),
        "human_rows": refused("without human_template", "--human-rows", 8),
        "batch_size": refused(looks, "--batch-size", 3), "join": refused("", "--join", g.nowhere),
        "human": refused("", "--human", g.top / "nowhere.csv"),
        "chat": refused("asks no chat model", "--chat", g.chat), "source": refused("", "--source", g.fewer),
        "objects_column": refused(NONE, "--objects-column", NONE), "prompts": refused(none, "--prompts", g.ask),
        "concurrency": refused(none, "--concurrency", 3), "device": refused(none, "--device", "cpu"),
        "dtype": refused(none, "--dtype", "float32"), "device_map": refused(none, "--device-map", "auto"),
        "seed": refused("nothing is drawn", "--seed", 3), "image_column": refused(NONE, "--image-column", NONE),
        "image_root": refused("", "--image-root", g.nowhere, base=[g.pictured]),
        "allow_download": changes("--allow-download", base=[("copy", g.linked)]),
    }  # fmt: skip


def compare(g: Ground) -> tuple[list, Cases]:
    base = [g.audit, g.top / "fewer", "--out", "OUT/c", "--no-measure", "--match", "exact"]
    return base, {
        "a": changes(base=[g.top / "fewer", *base[1:]]), "b": changes(base=[g.audit, g.audit, *base[2:]]),
        "out": changes("--out", "OUT/d"), "source_a": refused("without measure", "--source-a", g.rows),
        "source_b": refused("without measure", "--source-b", g.rows),
        "match": refused(NONE, "--match", NONE), "measure": changes("--measure"), "margin": changes("--margin", 0.3),
    }  # fmt: skip


def repair(g: Ground) -> tuple[list, Cases]:
    base = [g.audit, "--policy", "flag", "--out", "OUT/r"]
    idle = "only the policy rewrite asks a chat model"
    return base, {
        "audit": changes(base=[g.top / "fewer", *base[1:]]), "policy": changes("--policy", "drop-row"),
        "out": changes("--out", "OUT/s"), "findings": refused("no finding 9", "--findings", 9),
        "suspected": changes("--suspected", base=[g.doubtful, *base[1:]]),
        "vocabulary": changes("--vocabulary", g.words), "output_format": changes("--output-format", "csv"),
        "chat": refused(idle, "--chat", g.chat), "source": refused("", "--source", g.fewer),
        "join": refused("", "--join", g.nowhere),
        "prompts": refused(idle, "--prompts", g.ask), "concurrency": refused(idle, "--concurrency", 3),
        "device": refused(idle, "--device", "cpu"), "dtype": refused(idle, "--dtype", "float32"),
        "device_map": refused(idle, "--device-map", "auto"), "seed": refused(idle, "--seed", 3),
        "image_root": refused("", "--image-root", g.nowhere, base=[g.pictured, *base[1:]]),
    }  # fmt: skip


def report(g: Ground) -> tuple[list, Cases]:
    return [g.audit], {
        "folder": changes(base=[g.top / "fewer"]),
        "title": changes("--title", "Another heading", base=[("copy", g.audit)]),
        "source": refused("", "--source", g.fewer), "join": refused("", "--join", g.nowhere),
        "image_root": changes("--image-root", g.top / "elsewhere", base=[("copy", g.pictured)]),
    }  # fmt: skip


def estimate(g: Ground) -> tuple[list, Cases]:
    base = [g.rows, "--preset", "small"]
    return base, {
        "source": changes(base=[g.fewer, *base[1:]]), "preset": changes("--preset", "paper-natural"),
        "method": changes("--method", "paper"), "limit": changes("--limit", 9), "budget": changes("--budget", 9),
        "image_tokens": changes("--image-tokens", 9), "tflops": changes("--tflops", 9),
        "text_encoder": changes("--text-encoder", "lite", "--method", "paper"),
        "image_encoder": refused("", "--image-encoder", "lite", "--image-encoder"),
        "scorer_1": refused(NONE, "--scorer-1", NONE), "scorer_2": refused(NONE, "--scorer-2", NONE),
        "summarizer_1": refused(NONE, "--summarizer-1", NONE), "summarizer_2": refused(NONE, "--summarizer-2", NONE),
        "captioner": refused(NONE, "--captioner", NONE), "chat": changes("--chat", "hf:other/model"),
    }  # fmt: skip


def serve_command(g: Ground) -> tuple[list, Cases]:
    return ["--preset", "paper-natural"], {
        "preset": changes("--preset", "lite"), "port": changes("--port", 9000),
    }  # fmt: skip


def plant(g: Ground) -> tuple[list, Cases]:
    names = ["--textual-error", "sink", "--visual-feature", "dog"]
    base = [g.rows, "--out", "OUT/p.jsonl", *names, "--strength", 0.3]
    return base, {
        "source": changes(base=[g.fewer, *base[1:]]), "out": changes("--out", "OUT/q.jsonl"),
        "textual_error": changes("--textual-error", "toilet"), "visual_feature": changes("--visual-feature", "toilet"),
        "strength": changes("--strength", 0.2), "vocabulary": changes("--vocabulary", g.words),
        "caption_column": changes("--caption-column", "note"),
        "objects_column": refused(NONE, "--objects-column", NONE),
        "join": changes("--join", g.objects, base=[g.plain, *base[1:]]), "seed": changes("--seed", 3),
        "image_root": changes("--image-root", g.top / "elsewhere", base=[g.seen, *base[1:]]),
    }  # fmt: skip


def build(g: Ground) -> tuple[list, Cases]:
    base = ["--base", "scenes", "--rows", 60, "--size", 64, "--pairs", g.top / "wanted.csv", "--strengths", "0.5",
            "--out", "OUT/b", "--min-images", 2]  # fmt: skip
    (g.top / "wanted.csv").write_text("textual_error,visual_feature\ndog,car\n")
    takes = "the base scenes takes no"
    of_others = {"name": "x", "vocabulary": g.words,
                 "min_area": 0.1, "small_objects": "ignored", "licence": "x", "reports": g.top, "radgraph": g.rows,
                 "annotations": g.rows, "join": g.objects, "caption_column": "x", "reference_column": "x",
                 "objects_column": "x", "image_column": "x", "image_root": g.top}  # fmt: skip
    return base, {
        "base": refused("your own copy", "--base", "custom", base=["--out", "OUT/b"]),
        "sampling": refused("the pairs are given", "--sampling", "random"),
        "pairs": refused("", "--pairs", g.top / "nowhere.csv"), "strengths": refused("strengths=", "--strengths", "x"),
        "min_images": refused("", "--min-images", "x"), "rows": changes("--rows", 61), "size": changes("--size", 80),
        "source": changes("--source", "OUT/scenes"),
        "seed": changes("--seed", 3), "out": changes("--out", "OUT/c"), "images": changes("--no-images"),
        "statistics": refused("the pairs are given", "--statistics", g.rows),
        **{name: refused(takes, f"--{name.replace('_', '-')}", value) for name, value in of_others.items()},
    }  # fmt: skip


def bench_run(g: Ground) -> tuple[list, Cases]:
    base = [OLD, "--out", "OUT", "--limit", 1]
    idle = "no part asks a chat model"
    return base, {
        "benchmark": refused("", base=[g.top / "nowhere", *base[1:]]), "out": changes("--out", "OUT/inner"),
        "method": changes("--method", "most-frequent"), "where": refused("where", "--where", NONE),
        "limit": changes("--limit", 2), "preset": refused("no preset", "--preset", NONE),
        "context_tokens": refused("context_tokens=9", "--context-tokens", 9),
        "revision": refused("folder of this machine", "--revision", "main"),
        "prompts": refused("", "--prompts", g.top / "nowhere"), "concurrency": refused(idle, "--concurrency", 3),
        "device": refused(idle, "--device", "cpu"), "dtype": refused(idle, "--dtype", "float32"),
        "device_map": refused(idle, "--device-map", "auto"),
        "members": refused("phrases are counted", "--members", 9),
        "seed": refused("draws nothing", "--seed", 3), "rank": changes("--rank", 1),
        "world": changes("--rank", 0, "--world", 2, base=[*base[:3], "--limit", 2]),
        **{part: refused("", f"--{part.replace('_', '-')}", NONE) for part in (
            "text_encoder", "image_encoder", "scorer", "scorer_1", "scorer_2", "summarizer", "summarizer_1",
            "summarizer_2", "captioner", "chat")},
    }  # fmt: skip


def bench_report(g: Ground) -> tuple[list, Cases]:
    base = [g.runs, "--benchmark", OLD, "--judge", "exact", "--out", "OUT/r", "--resamples", 0]
    return base, {
        "seed": refused("without resamples", "--seed", 3), "revision": refused("", "--revision", "main"),
        "results": refused("", base=[g.top / "fewer", *base[1:]]), "benchmark": refused("", "--benchmark", g.audit),
        "out": changes("--out", "OUT/s"), "k": changes("--k", 2), "missing": changes("--missing", "left_out"),
        "judge": refused(NONE, "--judge", NONE), "resamples": changes("--resamples", 9),
        "store": refused("keeps nothing", "--store", g.top / "s"),
    }  # fmt: skip


def stats(g: Ground) -> tuple[list, Cases]:
    base = [("copy", OLD)]
    return base, {"folder": refused("", base=[g.top / "nowhere"]), "out": changes("--out", "OUT/figures")}


def cache(g: Ground) -> tuple[list, Cases]:
    return ["--store", g.kept], {"store": changes(base=["--store", g.top / "nowhere.sqlite"])}


def prune(g: Ground) -> tuple[list, Cases]:
    base = ["--store", g.kept, "--older-than", 1, "--dry-run"]
    return base, {
        "store": changes(base=["--store", g.top / "nowhere.sqlite", *base[2:]]),
        "older_than": refused("", "--older-than", -1),
        "keep_newest_mb": refused("", "--keep-newest-mb", -1), "dry_run": changes(base=base[:-1]),
    }  # fmt: skip


def ask(g: Ground) -> tuple[list, Cases]:
    base, idle = ["exact", "dog", "Dog"], "no chat model is asked"
    return base, {
        "spec": refused(NONE, base=[NONE, "dog", "Dog"]), "answer": changes(base=["exact", "cat", "Dog"]),
        "truth": changes(base=["exact", "dog", "cat"]), "store": refused("keeps nothing", "--store", g.top / "s"),
        "prompts": refused(idle, "--prompts", g.ask), "concurrency": refused(idle, "--concurrency", 3),
        "device": refused(idle, "--device", "cpu"), "dtype": refused(idle, "--dtype", "float32"),
    }  # fmt: skip


def agreement(g: Ground) -> tuple[list, Cases]:
    base, idle = ["exact", "labels", "--pairs", g.pairs], "no chat model is asked"
    return base, {
        "one": refused(NONE, base=[NONE, *base[1:]]), "other": refused(NONE, base=["exact", NONE]),
        "pairs": changes(base=base[:2]), "store": refused("keeps nothing", "--store", g.top / "s"),
        "out": changes("--out", "OUT/a.json"), "concurrency": refused(idle, "--concurrency", 3),
        "device": refused(idle, "--device", "cpu"), "dtype": refused(idle, "--dtype", "float32"),
        "seed": changes("--seed", 3), "prompts": refused(idle, "--prompts", g.ask),
    }  # fmt: skip


def compute(g: Ground) -> tuple[list, Cases]:
    base = [g.names, g.truth, "--judge", "exact", "--out", "OUT/s.json"]
    return base, {
        "predictions": refused("", base=[g.nowhere, *base[1:]]),
        "references": refused("", base=[g.names, g.nowhere]), "k": changes("--k", 2),
        "out": changes("--out", "OUT/t.json"), "store": refused("keeps nothing", "--store", g.top / "s"),
        "judge": refused(NONE, "--judge", NONE), "resamples": changes("--resamples", 5),
        "seed": changes("--seed", 3, base=[*base, "--resamples", 9]),
    }  # fmt: skip


TABLE = {
    "audit": audit, "demo": demo, "caption": caption, "validate": validate, "compare": compare, "repair": repair,
    "report": report, "estimate": estimate, "serve-command": serve_command, "bench plant": plant, "bench build": build,
    "bench stats": stats, "bench run": bench_run, "bench report": bench_report, "cache info": cache,
    "cache prune": prune, "judge ask": ask, "judge agreement": agreement, "metric compute": compute,
}  # fmt: skip


ELSEWHERE = {"metric publish", "bench publish", "submit", "leaderboard validate", "leaderboard publish"}
QUIET = ("symbal_hf.report.folder.with_map", lambda result, data, **options: (result, None))


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    top = tmp_path_factory.mktemp("ground")
    with FakeServer() as server, pages(top) as address:
        yield Ground(top, server, address)


def test_every_command_has_cases():
    assert set(commands()) == {*TABLE, *ELSEWHERE}


@pytest.mark.parametrize(("command", "name"), [(c, name) for c in TABLE for name in commands()[c]])
def test_an_option_changes_something_or_is_refused(command, name, ground, tmp_path, monkeypatch):
    monkeypatch.setattr(*QUIET)
    check(TABLE, ground, command, name, tmp_path, NOTHING)


@pytest.mark.parametrize("command", sorted(TABLE))
def test_the_same_command_says_and_writes_the_same_again(command, ground, tmp_path, monkeypatch):
    monkeypatch.setattr(*QUIET)
    base, _ = TABLE[command](ground)
    assert done(command, base, tmp_path / "once") == done(command, base, tmp_path / "again")
