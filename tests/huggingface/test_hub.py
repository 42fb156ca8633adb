"""The Hub that other tests use carries real clients: they load what they uploaded; a pull request changes no main."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub import LoopbackHub

CARD = """---
license: apache-2.0
configs:
- config_name: one
  data_files: [{split: test, path: data/one.parquet}]
- config_name: two
  data_files: [{split: test, path: data/two-*.parquet}]
---
# Two configs
"""

UPLOAD = """
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
api = HfApi()
kinds = {"dataset": {}, "model": {}, "space": {"space_sdk": "static"}}
for kind, options in kinds.items():
    api.create_repo("lab/" + kind, repo_type=kind, **options)
    assert api.create_repo("lab/" + kind, repo_type=kind, exist_ok=True, **options).repo_id == "lab/" + kind
    api.upload_folder(folder_path=sys.argv[1], repo_id="lab/" + kind, repo_type=kind)
    before = api.repo_info("lab/" + kind, repo_type=kind).sha
    pull = api.create_commit(
        "lab/" + kind, repo_type=kind, commit_message="shorter", create_pr=True,
        operations=[CommitOperationAdd("data/one.parquet", sys.argv[2]), CommitOperationDelete("plots/plot.png")],
    )
    assert pull.pr_revision == "refs/pr/1" and api.repo_info("lab/" + kind, repo_type=kind).sha == before
    api.upload_file(path_or_fileobj=b"late", path_in_repo="late.txt", repo_id="lab/" + kind, repo_type=kind,
                    revision="refs/pr/1")
    assert not api.file_exists("lab/" + kind, "late.txt", repo_type=kind)
    assert api.file_exists("lab/" + kind, "late.txt", repo_type=kind, revision="refs/pr/1")
    print(before)
assert not api.repo_exists("lab/none") and not api.revision_exists("lab/model", "none")
assert api.whoami()["name"] == "tester"
"""

LOAD = """
import json
from pathlib import Path
from datasets import Dataset, Image, load_dataset
from huggingface_hub import hf_hub_download, list_repo_files, snapshot_download

def rows(config, **options):
    loaded = load_dataset("lab/dataset", config, split="test", **options).cast_column("image", Image(decode=False))
    return [{**row, "image": row["image"]["bytes"].hex()} for row in loaded]

sha = sys.argv[1]
found = {"one": rows("one"), "streamed": rows("one", streaming=True), "pull": rows("one", revision="refs/pr/1"),
         "old": rows("one", revision=sha), "two": load_dataset("lab/dataset", "two", split="test")["n"][:]}
for kind in ("dataset", "model", "space"):
    top = Path(snapshot_download("lab/" + kind, repo_type=kind))
    found[kind] = {str(p.relative_to(top)): p.read_bytes().hex() for p in top.rglob("*") if p.is_file()}
    late = hf_hub_download("lab/" + kind, "late.txt", repo_type=kind, revision="refs/pr/1")
    assert Path(late).read_bytes() == b"late"
    assert sorted(found[kind]) == sorted(list_repo_files("lab/" + kind, repo_type=kind))
Dataset.from_dict({"x": [1, 2]}).push_to_hub("lab/pushed", "small", split="test", private=True)
found["pushed"] = load_dataset("lab/pushed", "small", split="test")["x"][:]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def hub():
    with LoopbackHub() as hub:
        yield hub


def parquet(**columns) -> bytes:
    table = pa.table(columns)
    if "image" in columns:
        features = {"image": {"_type": "Image"}, "n": {"dtype": "int64", "_type": "Value"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def test_clients_load_what_they_uploaded_at_every_revision(hub, tmp_path):
    images = [{"bytes": bytes([n]) * 50, "path": f"{n}.png"} for n in range(5)]
    files = {
        "README.md": CARD.encode(),
        "data/one.parquet": parquet(n=list(range(5)), image=images),
        "data/two-0.parquet": parquet(n=[1, 2]),
        "data/two-1.parquet": parquet(n=[3]),
        "plots/plot.png": b"no picture",
        "empty.txt": b"",
        "a b/ü #%.txt": b"odd name",
    }
    for name, content in files.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(content)
    shorter = tmp_path / "shorter.parquet"
    shorter.write_bytes(parquet(n=[0, 1], image=images[:2]))
    shas = hub.run(UPLOAD, tmp_path / "uploader", tmp_path / "folder", shorter).split()
    proposed = {**files, "data/one.parquet": shorter.read_bytes(), "late.txt": b"late"}
    del proposed["plots/plot.png"]
    for kind, sha in zip(("dataset", "model", "space"), shas, strict=True):
        assert hub.files(f"lab/{kind}", kind=kind) == hub.files(f"lab/{kind}", sha, kind=kind) == files
        assert hub.files(f"lab/{kind}", "refs/pr/1", kind=kind) == proposed

    found = json.loads(hub.run(LOAD, tmp_path / "loader", shas[0]))
    rows = [{"n": n, "image": images[n]["bytes"].hex()} for n in range(5)]
    assert found["one"] == found["streamed"] == found["old"] == rows
    assert found["pull"] == rows[:2] and found["two"] == [1, 2, 3] and found["pushed"] == [1, 2]
    for kind in ("dataset", "model", "space"):
        found[kind].pop(".gitattributes")
        assert {name: bytes.fromhex(content) for name, content in found[kind].items()} == files
    assert hub.repos["dataset", "lab/pushed"].private
    assert hub.unknown == []


def test_a_refusal_and_an_unknown_place_are_seen_by_the_client_and_told(tmp_path):
    code = """
from huggingface_hub import HfApi, errors
api = HfApi()
for call in (lambda: api.create_repo("lab/denied"), lambda: api.model_info("gone/gone"), api.list_spaces):
    try:
        list(call())
    except errors.HfHubHTTPError as error:
        print(error.response.status_code, type(error).__name__, error.server_message)
"""
    with LoopbackHub() as hub:
        hub.deny = lambda request: "not yours" if request == "POST /api/repos/create" else None
        assert hub.run(code, tmp_path).splitlines() == [
            "403 HfHubHTTPError not yours",
            "404 RepositoryNotFoundError no model gone/gone",
            "404 HfHubHTTPError nothing at GET /api/spaces",
        ]
        assert hub.unknown == ["GET /api/spaces"] and hub.repos == {}
