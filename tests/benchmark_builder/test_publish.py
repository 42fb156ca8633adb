"""What is published is what was built: it loads as built, holds nothing else, and nothing that may not be shared."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub import LoopbackHub, Repo

from benchmark_builder.writing.publish import publish
from symbal_hf.core.errors import BadData

CARD = """---
license: cc-by-4.0
configs:
- config_name: natural-0001
  data_files: [{split: test, path: data/natural-0001.parquet}]
- config_name: natural-0002
  data_files: [{split: test, path: data/natural-0002.parquet}]
- config_name: images-natural
  data_files: [{split: test, path: images/natural-*.parquet}]
---
# A benchmark
"""
CONFIGS = {
    "natural-0001": "data/natural-0001.parquet",
    "natural-0002": "data/natural-0002.parquet",
    "images-natural": "images/natural-00000-of-00001.parquet",
}

PUBLISH = """
import json
from pathlib import Path
from benchmark_builder.writing.publish import publish
from symbal_hf.data.opening import BadData
for folder, repo, options in json.loads(sys.argv[1]):
    try:
        print(publish(Path(folder), repo, **options))
    except BadData as error:
        print("refused:", error)
"""

LOAD = """
import json
from datasets import Image, load_dataset
found = {}
for config in sys.argv[3:]:
    rows = load_dataset(sys.argv[1], config, split="test", revision=sys.argv[2])
    if "image" in rows.features:
        assert isinstance(rows.features["image"], Image)
        rows = rows.cast_column("image", Image(decode=False))
    found[config] = [{**row, "image": row["image"]["bytes"].hex()} if "image" in row else row for row in rows]
print(json.dumps(found))
"""


def write(path: Path, rows: list[dict], **features: dict) -> None:
    table = pa.Table.from_pylist(rows)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def add_base(folder: Path, name: str, *origins: str) -> None:
    """A base of two settings, two images and all their files; `origins` are the values of the column "base"."""
    settings = [
        {"config": f"{name}-{n:04}", "base": (origins * 2)[n - 1], "t": "printer", "v": "monitor"} for n in (1, 2)
    ]
    write(folder / f"settings/{name}.parquet", settings)
    for n in (1, 2):
        rows = [{"id": str(i), "caption": f"A cat. A printer {n}." if i % n else "A cat.", "n": i} for i in range(4)]
        write(folder / f"data/{name}-{n:04}.parquet", rows)
        write(folder / f"injections/{name}-{n:04}.parquet", [{"id": "1", "sentence": f"A printer {n}."}])
    write(folder / f"objects/{name}.parquet", [{"id": str(i), "objects": ["cat"]} for i in range(4)])
    images = [{"id": str(i), "image": {"bytes": bytes([i]) * 40, "path": f"{i}.jpg"}} for i in range(4)]
    kinds = {"id": {"dtype": "string", "_type": "Value"}, "image": {"_type": "Image"}}
    write(folder / f"images/{name}-00000-of-00001.parquet", images, **kinds)


@pytest.fixture
def built(tmp_path) -> Path:
    folder = tmp_path / "built"
    add_base(folder, "natural", "coco")
    (folder / "README.md").write_text(CARD)
    (folder / "eval.yaml").write_text("name: A benchmark\n")
    (folder / "statistics").mkdir()
    (folder / "statistics/strengths.csv").write_text("strength\n0.3\n")
    (folder / "statistics/strengths.png").write_bytes(b"a plot")
    return folder


@pytest.fixture
def hub():
    with LoopbackHub() as hub:
        yield hub


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def published(hub: LoopbackHub, *jobs: tuple) -> list[str]:
    """The address or the refusal of each (folder, repo, options), in a process that is a user's own."""
    home = Path(jobs[0][0]).parent / "home"
    return hub.run(PUBLISH, home, json.dumps([(str(f), repo, options) for f, repo, options in jobs])).splitlines()


def local(folder: Path, config: str) -> list[dict]:
    rows = pq.read_table(folder / CONFIGS[config]).to_pylist()
    return [{**row, "image": row["image"]["bytes"].hex()} if "image" in row else row for row in rows]


def test_every_config_loads_from_the_hub_as_it_was_built_and_nothing_else_was_sent(hub, built, tmp_path):
    whole = content(built)
    for stray in ("notes.txt", ".env", "data/natural-0003.parquet.part", "data/.natural.parquet", "images/list.json",
                  "data/deep/natural-0001.parquet", "statistics/log.txt", "other/natural.parquet"):  # fmt: skip
        (built / stray).parent.mkdir(exist_ok=True)
        (built / stray).write_bytes(b"not to be sent")
    (address,) = published(hub, (built, "lab/bench", {"message": "First"}))
    head = hub.repos["dataset", "lab/bench"].at("main")
    assert address == f"{hub.url}/datasets/lab/bench/commit/{head.sha}" and head.title == "First"
    assert hub.files("lab/bench") == whole
    loaded = json.loads(hub.run(LOAD, tmp_path / "reader", "lab/bench", "main", *CONFIGS))
    assert loaded == {config: local(built, config) for config in CONFIGS}
    assert hub.unknown == []


def test_a_pull_request_needs_no_rights_and_leaves_main_as_it_was(hub, built, tmp_path):
    theirs = hub.repos["dataset", "else/bench"] = Repo("dataset", "else/bench")
    hub.deny = lambda request: "not yours" if re.search("create|/branch/", request) else None
    before = theirs.at("main")
    (address,) = published(hub, (built, "else/bench", {"create_pr": True}))
    assert address == f"{hub.url}/datasets/else/bench/discussions/1"
    assert theirs.at("main") == before and "POST /api/repos/create" not in hub.requests
    assert hub.files("else/bench", "refs/pr/1") == content(built)
    config = "natural-0002"
    loaded = json.loads(hub.run(LOAD, tmp_path / "reader", "else/bench", "refs/pr/1", config))
    assert loaded == {config: local(built, config)}


def test_the_same_call_ends_what_was_interrupted_and_a_rebuild_leaves_no_old_files(hub, built):
    sent = []

    def deny(request):
        sent.append(request)
        if "/commit/" in request or sum(r.startswith("PUT ") for r in sent) > 3:
            return "the line is cut"
        return None

    hub.deny = deny
    (refusal,) = published(hub, (built, "lab/bench", {}))
    assert refusal.startswith("refused: lab/bench was not published: the line is cut") and "again" in refusal
    assert hub.files("lab/bench") == {} and len(hub.blobs) == 3
    hub.deny, hub.requests = lambda request: None, []
    published(hub, (built, "lab/bench", {}))
    assert hub.files("lab/bench") == content(built)
    assert sum(r.startswith("PUT ") for r in hub.requests) == len({*hub.blobs.values()}) - 3

    (built / "data/natural-0002.parquet").unlink()
    first, second, branch = published(
        hub, (built, "lab/bench", {}), (built, "lab/bench", {}), (built, "lab/bench", {"revision": "v1"})
    )
    assert first == second and branch.rpartition("/")[2] == hub.repos["dataset", "lab/bench"].at("v1").sha
    assert hub.files("lab/bench") == hub.files("lab/bench", "v1") == content(built)


def test_open_i_is_published_in_private_only_and_the_hub_must_take_the_card(hub, built):
    xrays, bad = built.parent / "xrays", built.parent / "bad"
    shutil.copytree(built, xrays)
    add_base(xrays, "medical", "openi")
    shutil.copytree(built, bad)
    (bad / "README.md").write_text(CARD.replace("cc-by-4.0", "do what you like"))
    hub.repos["dataset", "lab/open"] = Repo("dataset", "lab/open")
    public, private, there, card = published(
        hub,
        (xrays, "lab/xrays", {}),
        (xrays, "lab/xrays", {"private": True}),
        (xrays, "lab/open", {"private": True}),
        (bad, "lab/bad", {}),
    )
    assert "settings/medical.parquet" in public and "CC BY-NC-ND" in public and "private" in public
    assert private.startswith(hub.url) and hub.repos["dataset", "lab/xrays"].private
    assert hub.files("lab/xrays") == content(xrays)
    assert "lab/open is public already" in there and hub.files("lab/open") == {}
    assert 'the Hub does not take README.md: "license"' in card and ("dataset", "lab/bad") not in hub.repos


def unreadable(folder: Path) -> None:
    (folder / "data/natural-0002.parquet").write_bytes(b"half a fi")


def drop(*names: str):
    return lambda folder: [(folder / name).unlink() for name in names]


def base(name: str, *origins: str):
    return lambda folder: add_base(folder, name, *origins)


def without_settings(name: str):
    def change(folder: Path) -> None:
        add_base(folder, name, "custom")
        (folder / f"settings/{name}.parquet").unlink()

    return change


def only(name: str):
    return lambda folder: write(folder / name, [{"n": 1}])


@pytest.mark.parametrize(
    ("change", "options", "says"),
    [
        (base("medical", "mimic_cxr"), {}, ["settings/medical.parquet", "MIMIC-CXR", "builder"]),
        (base("medical", "mimic_cxr"), {"private": True}, ["settings/medical.parquet", "MIMIC-CXR"]),
        (base("mixed", "coco", "mimic_cxr"), {}, ["settings/mixed.parquet", "MIMIC-CXR"]),
        (base("natural", "MIMIC-CXR"), {}, ["settings/natural.parquet", "MIMIC-CXR"]),
        (base("new", "web"), {}, ["settings/new.parquet", "'web'", "coco"]),
        (without_settings("medical"), {}, ["data/medical-0001.parquet", "MIMIC-CXR"]),
        (only("images/Medical-00000.parquet"), {}, ["images/Medical-00000.parquet", "MIMIC-CXR"]),
        (only("objects/medical.parquet"), {}, ["objects/medical.parquet", "MIMIC-CXR"]),
        (only("injections/medical_x.parquet"), {}, ["injections/medical_x.parquet", "MIMIC-CXR"]),
        (without_settings("holiday"), {}, ["data/holiday-0001.parquet", "natural", "remove"]),
        (only("images/naturals-1.parquet"), {}, ["images/naturals-1.parquet"]),
        (only("settings/custom.parquet"), {}, ["settings/custom.parquet", "'base'"]),
        (unreadable, {}, ["data/natural-0002.parquet", "build"]),
        (lambda folder: (folder / ".building-natural").touch(), {}, ["natural", "not ended", "again"]),
        (drop("README.md"), {}, ["symbal bench build"]),
        (drop("settings/natural.parquet"), {}, ["symbal bench build"]),
        (shutil.rmtree, {}, ["symbal bench build"]),
        (lambda folder: (folder / "README.md").write_text("---\na: [\n---\n"), {}, ["README.md", "card"]),
        (lambda folder: (folder / "README.md").write_text("---\n- a\n---\n"), {}, ["README.md", "card"]),
        (None, {"repo": "bench"}, ["'bench'", "namespace/name"]),
        (None, {"repo": "datasets/lab/bench"}, ["'datasets/lab/bench'", "namespace/name"]),
        (None, {"repo": "lab/a bench"}, ["'lab/a bench'", "namespace/name"]),
        (None, {"create_pr": True, "revision": "v1"}, ["'v1'", "create_pr"]),
    ],
)  # fmt: skip
def test_what_may_not_be_published_is_refused_in_one_sentence_before_any_request(
    built, monkeypatch, change, options, says
):
    monkeypatch.setattr("huggingface_hub.HfApi", None)
    if change:
        change(built)
    with pytest.raises(BadData) as refused:
        publish(built, **{"repo": "lab/bench", **options})
    sentence = str(refused.value)
    assert all(part in sentence for part in says), sentence
    assert "\n" not in sentence and ". " not in sentence and sentence.endswith(".")
