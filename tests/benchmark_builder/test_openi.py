"""The open medical base: two forms of one set of reports, and what real ones give."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from benchmark_builder.bases.openi import openi_base
from benchmark_builder.planting.plant import Ground, Planted, mentions
from benchmark_builder.reports.radiology import states_only
from benchmark_builder.reports.radiology_terms import DEVICES, DISEASES
from symbal_hf.core.errors import BadData

OPENI = [
    {"uid": "1", "MeSH": "Cardiomegaly/mild", "findings": "Pacemaker.", "impression": "Stable chest."},
    {"uid": "2", "MeSH": "Pulmonary Atelectasis/base", "findings": "", "impression": "XXXX opacity in the left base."},
    {"uid": "3", "MeSH": "normal", "findings": "Clear.", "impression": "No acute disease."},
    {"uid": "4", "MeSH": "normal", "findings": "Stable cardiomegaly.", "impression": "Lungs are clear."},
    {"uid": "5", "MeSH": "normal", "findings": "Clear lungs.", "impression": ""},
]  # fmt: skip


def open_folder(folder: Path, form: str) -> Path:
    films = [
        (r["uid"], f"{r['uid']}_{n}.png", v) for r in OPENI for n, v in enumerate(("Lateral", "Frontal", "Frontal"))
    ]
    films = [film for film in films if film[0] != "4" or film[2] == "Lateral"]
    if form == "csv":
        for name, header, rows in (
            ("indiana_reports.csv", ("uid", "MeSH", "Problems", "image", "indication", "comparison", "findings",
                                     "impression"), OPENI),
            ("indiana_projections.csv", ("uid", "filename", "projection"),
             [dict(zip(("uid", "filename", "projection"), film, strict=True)) for film in films]),
        ):  # fmt: skip
            with (folder / name).open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, header, restval="")
                writer.writeheader()
                writer.writerows(rows)
        return folder
    with (folder / "reports.jsonl").open("w", encoding="utf-8") as file:
        for one in OPENI:
            images = [{"file": file, "projection": view} for uid, file, view in films if uid == one["uid"]]
            rest = {"image_id": one["uid"], "images": images, "mesh": one["MeSH"], "chexpert": None}
            file.write(json.dumps({**one, **rest}) + "\n")
    return folder


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_both_forms_of_open_i_give_one_base(tmp_path, form):
    base = openi_base(open_folder(tmp_path, form))
    assert base.ids == ("1", "2")
    assert base.captions == ("Stable chest.", "XXXX opacity in the left base.")
    assert base.objects == ({"cardiomegaly", "pacemaker"}, frozenset())
    assert base.also_present == (frozenset(), {"atelectasis"})
    assert base.references == (("Pacemaker.", "Stable chest."), ("XXXX opacity in the left base.",))
    assert base.statements["cardiomegaly"] == ("Stable cardiomegaly.",)
    assert "2 of 5 reports kept" in base.notes[0]
    assert base.images is None
    images = tmp_path / "images" / "images_normalized"
    images.mkdir(parents=True)
    (images / "1_1.png").write_bytes(b"png")
    with pytest.raises(BadData, match=r"2_1\.png"):
        openi_base(tmp_path)
    (images / "2_1.png").write_bytes(b"png")
    assert openi_base(tmp_path).images == (images / "1_1.png", images / "2_1.png")


def test_a_label_against_the_reports_own_words_is_only_a_doubt(tmp_path):
    row = {"image_id": "1", "images": [{"file": "1.png", "projection": "Frontal"}], "mesh": "normal"}
    texts = {"findings": "Heart and mediastinum normal.", "impression": "Lungs are clear."}
    labels = {"Cardiomegaly": 1.0, "Edema": 1.0, "Pneumothorax": -1.0, "Atelectasis": 0.0}
    (tmp_path / "reports.jsonl").write_text(json.dumps({**row, **texts, "chexpert": labels}), encoding="utf-8")
    base = openi_base(tmp_path)
    assert base.objects == ({"edema"},)
    assert base.also_present == ({"cardiomegaly", "pneumothorax"},)


@pytest.mark.parametrize(
    "line",
    ['{"image_id": "1"', '{"image_id": "1"}', "[1]", '{"image_id": "1", "images": [], "chexpert": {"Edema": 7}}'],
)
def test_a_bad_line_of_open_i_is_named(tmp_path, line):
    (tmp_path / "reports.jsonl").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(BadData, match=r"reports\.jsonl, line 1"):
        openi_base(tmp_path)


@pytest.fixture(scope="module")
def real(shared_data):
    folder = shared_data / "openi_reports_text"
    if not folder.is_dir():
        pytest.skip(f"no {folder.name} in the real data")
    return openi_base(folder)


def test_real_reports_make_a_base(real):
    assert len(real) > 1200
    assert real == openi_base(Path(real.notes[-1].split(" holds no ")[0]))
    for present, unsure in zip(real.objects, real.also_present, strict=True):
        assert present <= {*DISEASES, *DEVICES}
        assert not present & unsure


def test_real_statements_state_their_disease_alone(real):
    counts = {disease: len(said) for disease, said in real.statements.items()}
    assert counts["cardiomegaly"] == 50
    assert min(counts.values()) >= 5
    for disease, said in real.statements.items():
        assert len({text.lower() for text in said}) == len(said) <= 50
        for text in said:
            assert states_only(text, disease)
            assert real.vocabulary.find(text) == {disease}
            assert text[0].isupper() and text.endswith(".") and "XX" not in text


@pytest.mark.parametrize("disease", DISEASES)
def test_errors_planted_in_real_reports_are_lies(real, disease):
    ground = Ground(real)
    planted = ground.plant(disease, "sternotomy wires", 0.3)
    assert isinstance(planted, Planted)
    for row in planted.rows:
        assert disease not in real.present(row)
        assert not mentions(real.captions[row], disease, real.vocabulary)
        assert mentions(planted.captions[row], disease, real.vocabulary)
