"""The card of a benchmark tells `datasets`, the Hub and its reader what is in the folder, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from settings_case import settings_rows, write_settings

from benchmark_builder.writing.card import write_card
from benchmark_builder.writing.stats import statistics, write_statistics
from symbal_hf.core.errors import BadData

WORDS = pa.list_(pa.string())


def jpeg(shade):
    out = BytesIO()
    Image.new("RGB", (24, 16), (shade, 90, 120)).save(out, "JPEG")
    return out.getvalue()


def write(table, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def add_base(
    folder, name, origin, *, n=6, references=True, images=True, licence="Some terms.", notes=("A note.",), **of
):
    """One base as a build leaves it, with `n` rows a file."""
    rows = write_settings(folder, [{**row, "n_rows": n} for row in settings_rows(name, origin, pairs=3, **of)])
    variants = ["reference_free", *(["reference_based"] if references else [])]
    ids = [f"{name}{k}" for k in range(n)]
    made = [row["config"] for row in rows if row["feasible"]]
    for config in [f"{name}-clean", *made]:
        for variant in variants:
            columns = {"image_id": ids, "caption": [f"{config} {k}." for k in ids]}
            if variant == "reference_based":
                columns["references"] = pa.array([["One.", "Two."]] * n, WORDS)
            write(pa.table(columns), folder / f"data/{config}-{variant}.parquet")
    areas = pa.array([[0.5], None] * (n // 2), pa.list_(pa.float32()))
    objects = pa.array([["cat"]] * n, WORDS)
    also = pa.array([[]] * n, WORDS)
    shown = pa.table({"image_id": ids, "objects": objects, "areas": areas, "also_present": also})
    write(shown, folder / f"objects/{name}.parquet")
    planted = {"config": made, "image_id": ids[:1] * len(made), "sentence": ["There is a cat."] * len(made)}
    write(pa.table({**planted, "with_feature": [True] * len(made)}), folder / f"injections/{name}.parquet")
    if images:
        from datasets import Features, Value
        from datasets import Image as ImageFeature

        schema = Features(image_id=Value("string"), image=ImageFeature()).arrow_schema
        for shard in range(2):
            part = ids[shard * n // 2 : (shard + 1) * n // 2]
            encoded = [{"bytes": jpeg(40 * k), "path": None} for k in range(len(part))]
            table = pa.table({"image_id": part, "image": encoded}, schema=schema)
            write(table, folder / f"images/{name}-{shard:05d}.parquet")
    about = {
        "licence": licence, "notes": list(notes), "base": origin, "seed": 0, "sampling": "table",
        "strengths": [0.3, 0.6, 0.9], "version": "1", "variants": variants,
    }  # fmt: skip
    (folder / f"settings/{name}.json").write_text(json.dumps(about))
    return made


def add_reports(folder, name="medical", origin="mimic_cxr"):
    return add_base(folder, name, origin, n=4, images=False, areas=False, tags=False, seed=3)


def front(folder):
    from huggingface_hub import DatasetCard

    return DatasetCard.load(folder / "README.md").data.to_dict()


def body(folder):
    return (folder / "README.md").read_text("utf-8").split("\n---\n", 1)[1]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parent") / "symbalbench"
    made = {"natural": add_base(folder, "natural", "coco"), "medical": add_reports(folder)}
    write_statistics(folder, folder / "statistics")
    write_card(folder, statistics=True)
    return folder, made


@pytest.fixture
def load(bench, tmp_path, monkeypatch):
    """`load_dataset` as a user calls it in the folder's parent, with nothing cached."""
    from datasets import load_dataset

    monkeypatch.chdir(bench[0].parent)

    def call(*args):
        return load_dataset("symbalbench", *args, split="test", cache_dir=str(tmp_path / "cache"))

    return call


def test_every_data_file_is_exactly_one_config_and_every_config_has_its_files(bench):
    folder, made = bench
    configs = front(folder)["configs"]
    names = [config["config_name"] for config in configs]
    files = []
    for config in configs:
        (data,) = config["data_files"]
        assert data["split"] == "test"
        files += [data["path"]] if isinstance(data["path"], str) else data["path"]
    assert len(set(names)) == len(names) and len(set(files)) == len(files)
    assert sorted(files) == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))
    assert {f"{config}-reference_based" for own in made.values() for config in own} < set(names)
    assert names[0] == "settings" and names[1:] == sorted(names[1:])
    assert [config["config_name"] for config in configs if config.get("default")] == ["settings"]


def test_datasets_loads_settings_by_default_and_any_setting_by_name(bench, load):
    folder, made = bench
    settings = load()
    written = pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("settings/*.parquet")))
    assert settings.to_list() == written.to_pylist()
    name = made["natural"][0]
    rows = load(f"{name}-reference_based")
    assert rows[2] == {"image_id": "natural2", "caption": f"{name} natural2.", "references": ["One.", "Two."]}
    assert load(f"{made['medical'][0]}-reference_free").column_names == ["image_id", "caption"]


def test_datasets_agrees_with_the_sizes_and_types_that_the_card_gives(bench, load):
    folder, _ = bench
    infos = {info["config_name"]: info for info in front(folder)["dataset_info"]}
    assert set(infos) == {
        "settings", "injections", "images-natural", "objects-natural", "objects-medical",
        *(f"{name}-clean-reference_{kind}" for name in ("natural", "medical") for kind in ("free", "based")),
    }  # fmt: skip
    for name, info in infos.items():
        rows = load(name)  # raises where the split has another size than the card says
        assert info["splits"][0]["num_examples"] == len(rows)
        assert [feature["name"] for feature in info["features"]] == rows.column_names
    images = load("images-natural")
    assert len(images) == 6 and images[3]["image"].size == (24, 16)
    assert load("objects-natural")[1]["areas"] is None


def test_equal_folders_give_equal_bytes(bench, tmp_path):
    folder, _ = bench
    first = [(folder / name).read_bytes() for name in ("README.md", "eval.yaml")]
    copy = tmp_path / "under_another_name"
    shutil.copytree(folder, copy)
    write_card(copy, statistics=True)
    assert [(copy / name).read_bytes() for name in ("README.md", "eval.yaml")] == first


def test_a_second_base_joins_the_first(tmp_path):
    add_base(tmp_path, "scenes", "scenes")
    write_card(tmp_path, statistics=False)
    alone = front(tmp_path)
    assert alone["license"] == "cc0-1.0" and "license_name" not in alone
    assert "### scenes" in body(tmp_path) and "COCO" not in body(tmp_path)
    add_base(tmp_path, "natural", "coco", seed=2)
    write_card(tmp_path, statistics=False)
    both = front(tmp_path)
    assert both["license"] == "other" and both["license_name"] == "terms-of-each-base"
    assert both["source_datasets"] == ["extended|coco", "original"]
    assert {config["config_name"] for config in alone["configs"]} < {
        config["config_name"] for config in both["configs"]
    }
    assert re.findall("^### (.*)$", body(tmp_path), re.M) == ["natural", "scenes"]
    assert "Lin et al." in body(tmp_path) and "drawings" in body(tmp_path)


def test_tasks_point_at_configs_that_exist(bench):
    folder, _ = bench
    registered = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    assert set(registered) == {"name", "description", "evaluation_framework", "tasks"}
    configs = {c["config_name"]: {data["split"] for data in c["data_files"]} for c in front(folder)["configs"]}
    assert all(task["split"] in configs[task["config"]] for task in registered["tasks"])
    assert [task["id"] for task in registered["tasks"]] == [
        f"{domain}_reference_{kind}" for domain in ("medical", "natural") for kind in ("free", "based")
    ]


def test_a_base_without_references_promises_none(tmp_path):
    add_base(tmp_path, "own", "custom", references=False, licence="cc-by-4.0")
    write_card(tmp_path, statistics=False)
    assert [task["id"] for task in yaml.safe_load((tmp_path / "eval.yaml").read_text())["tasks"]] == [
        "own_reference_free"
    ]
    assert front(tmp_path)["license"] == "cc-by-4.0"
    assert not [c for c in front(tmp_path)["configs"] if c["config_name"].endswith("reference_based")]


def test_names_in_the_code_that_the_card_shows_can_be_loaded(bench, load):
    folder, _ = bench
    shown = set(re.findall(r'(?:load_dataset\("symbalbench", |load_setting\()"([^"]+)"', body(folder)))
    assert len(shown) == 1 and len(load(shown.pop())) in (4, 6)


def test_the_card_tells_the_counts_and_shows_figures_only_where_there_are_some(bench, tmp_path):
    folder, made = bench
    text = body(folder)
    counts = [len(made["medical"]), len(made["natural"])]
    assert f"| feasible | {counts[0]} | {counts[1]} | {sum(counts)} |" in text
    figures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert figures == ["statistics/composition.png", "statistics/features.png"]
    assert all((folder / figure).is_file() for figure in figures)
    assert all(reason in text for reason in statistics(folder).left_out)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    write_card(copy, statistics=False)
    assert "![" not in body(copy) and "| feasible |" in body(copy)
    shutil.rmtree(copy / "statistics")
    with pytest.raises(BadData, match="no figures"):
        write_card(copy, statistics=True)


@pytest.mark.parametrize(("origin", "closed"), [("mimic_cxr", True), ("openi", False)])
def test_only_reports_under_an_agreement_must_not_be_shared(tmp_path, origin, closed):
    add_reports(tmp_path, "reports", origin)
    write_card(tmp_path, statistics=False)
    assert ("Do not share" in body(tmp_path)) == closed == ("extra_gated_prompt" in front(tmp_path))
    assert "automatic labellers" in body(tmp_path)
    assert "medical" in front(tmp_path)["tags"] and front(tmp_path)["license"] == "other"


def test_what_a_base_says_of_itself_stays_text(tmp_path):
    licence = "Mine.\n---\nlicense: mit\n"
    add_base(tmp_path, "own", "custom", licence=licence, notes=("{{ 7 * 7 }}\n# Title", "<script>x</script> a | b"))
    write_card(tmp_path, statistics=False)
    assert front(tmp_path)["license"] == "other" and len(front(tmp_path)["configs"]) > 4
    lines = body(tmp_path).splitlines()
    assert "- {{ 7 * 7 }} # Title" in lines and "- Licence: Mine. --- license: mit" in lines
    assert "<script" not in body(tmp_path)


def test_size_category_follows_the_rows(tmp_path):
    add_base(tmp_path, "own", "custom", n=6)
    write_card(tmp_path, statistics=False)
    assert front(tmp_path)["size_categories"] == ["n<1K"]
    add_base(tmp_path, "own", "custom", n=200)
    write_card(tmp_path, statistics=False)
    assert front(tmp_path)["size_categories"] == ["1K<n<10K"]


def test_an_unfinished_build_gets_no_card(tmp_path):
    (made, *_) = add_base(tmp_path, "own", "custom")
    lost = tmp_path / f"data/{made}-reference_based.parquet"
    kept = lost.read_bytes()
    lost.unlink()
    with pytest.raises(BadData, match=re.escape(lost.name)):
        write_card(tmp_path, statistics=False)
    lost.write_bytes(kept)
    (tmp_path / "settings/own.json").unlink()
    with pytest.raises(BadData, match="has not ended"):
        write_card(tmp_path, statistics=False)
    assert not (tmp_path / "README.md").exists()
    with pytest.raises(BadData, match="build a benchmark"):
        write_card(tmp_path / "data", statistics=False)


def test_nothing_feasible_is_said_and_the_clean_data_can_still_be_loaded(tmp_path, monkeypatch):
    from datasets import load_dataset

    folder = tmp_path / "symbalbench"
    add_base(folder, "own", "custom")
    none = {"feasible": False, "strength": None, "with_feature": None, "without_feature": None}
    write_settings(folder, [{**row, **none} for row in pq.read_table(folder / "settings/own.parquet").to_pylist()])
    for path in folder.glob("data/*[0-9]-reference*"):
        path.unlink()
    write_card(folder, statistics=False)
    assert yaml.safe_load((folder / "eval.yaml").read_text())["tasks"] == []
    assert "\n0 captioned datasets" in body(folder)
    monkeypatch.chdir(tmp_path)
    rows = load_dataset("symbalbench", "own-clean-reference_free", split="test", cache_dir=str(tmp_path / "cache"))
    assert len(rows) == 6
