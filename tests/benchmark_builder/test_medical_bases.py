"""A medical base holds true captions, knows what films show from all its sources, and says what it left out."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

from benchmark_builder.bases.mimic import mimic_base
from benchmark_builder.bases.openi import openi_base
from benchmark_builder.reports.mimic_reports import parse_report
from benchmark_builder.reports.radiology_terms import DISEASES
from symbal_hf.core.errors import BadData

METADATA = (
    "dicom_id", "subject_id", "study_id", "PerformedProcedureStepDescription", "ViewPosition", "Rows", "Columns",
    "StudyDate", "StudyTime", "ProcedureCodeSequence_CodeMeaning", "ViewCodeSequence_CodeMeaning",
    "PatientOrientationCodeSequence_CodeMeaning",
)  # fmt: skip
CHEXPERT = (
    "subject_id", "study_id", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum",
    "Fracture", "Lung Lesion", "Lung Opacity", "No Finding", "Pleural Effusion", "Pleural Other", "Pneumonia",
    "Pneumothorax", "Support Devices",
)  # fmt: skip
ADDED = f""" FINAL ADDENDUM
 There is in retrospect a small left pneumothorax.
 {"_" * 78}
                                 FINAL REPORT
 FINDINGS:  Lungs are clear.

 IMPRESSION:  Lungs are clear.  No effusion.
"""


def wrapped(findings: str | None = None, impression: str | None = None, header: str = "IMPRESSION") -> str:
    """A report as the files have it: one leading blank, lines broken, numbered items."""
    parts = ["                                 FINAL REPORT", " EXAMINATION:  CHEST (PORTABLE AP)", " "]
    parts += [" INDICATION:  ___ year old woman with cough // pneumonia?", " "]
    for name, text in (("FINDINGS", findings), (header, impression)):
        if text is not None:
            words, line = text.split(" "), f" {name}: "
            for word in words:
                if len(line) + len(word) > 40:
                    parts.append(line)
                    line = ""
                line += " " + word
            parts += [line, " "]
    return "\n".join(parts) + "\n"


# study: (split, views, report or None, labels)
STUDIES = {
    "50000001": ("test", ("AP", "LATERAL"), wrapped("Large heart.", "1. Mild cardiomegaly. 2. No effusion."), {}),
    "50000002": ("test", ("PA",), wrapped("Dual-chamber pacemaker.", "Stable chest.", "CONCLUSION"), {"Edema": "-1.0"}),
    "50000003": ("test", ("AP", "PA"), wrapped(None, "Bibasilar opacities and a chest tube."), {"Atelectasis": "1.0"}),
    "50000004": ("test", ("AP",), ADDED, {"Pneumothorax": "0.0"}),
    "50000005": ("test", ("LL",), wrapped("Clear.", "Lungs are clear."), {}),
    "50000006": ("test", ("AP",), wrapped("Lungs are clear."), {}),
    "50000007": ("test", ("AP",), wrapped("Clear lungs.", "No acute cardiopulmonary process."), {}),
    "50000008": ("test", ("AP",), "", {}),
    "50000009": ("test", ("AP",), None, {}),
    "50000010": ("test", ("AP",), wrapped(None, "Possible effusion.  Lungs are clear.", "FINDINGS AND IMPRESSION"), {}),
    "51000001": ("train", ("AP",), wrapped("The heart is enlarged.", "Stable cardiomegaly."), {"Cardiomegaly": "1.0"}),
    "51000002": ("train", ("AP",), wrapped("X.", "Stable cardiomegaly. Edema since ___."), {"Cardiomegaly": "1.0"}),
    "51000003": ("train", ("AP",), wrapped("X.", "Severe cardiomegaly."), {"Cardiomegaly": "0.0"}),
    "52000001": ("validate", ("AP",), wrapped("X.", "Huge cardiomegaly."), {"Cardiomegaly": "1.0"}),
}  # fmt: skip


def packed(path: Path, header, rows) -> None:
    with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, restval="")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def mimic(tmp_path):
    """MIMIC-CXR-JPG in its official layout with made-up studies, the reports in the same tree."""
    images, studies, metadata = [], [], []
    for study, (split, views, report, labels) in STUDIES.items():
        subject = f"1{study[-7:]}"
        folder = tmp_path / "files" / f"p{subject[:2]}" / f"p{subject}" / f"s{study}"
        folder.mkdir(parents=True)
        if report is not None:
            folder.with_suffix(".txt").write_text(report, encoding="utf-8")
        studies.append({"subject_id": subject, "study_id": study, **labels})
        for view in views:
            dicom = f"{study}-{view}"
            (folder / f"{dicom}.jpg").write_bytes(b"jpeg")
            images.append({"dicom_id": dicom, "study_id": study, "subject_id": subject, "split": split})
            metadata.append({"dicom_id": dicom, "subject_id": subject, "study_id": study, "ViewPosition": view})
    packed(tmp_path / "mimic-cxr-2.0.0-split.csv.gz", ("dicom_id", "study_id", "subject_id", "split"), images)
    packed(tmp_path / "mimic-cxr-2.0.0-metadata.csv.gz", METADATA, metadata)
    packed(tmp_path / "mimic-cxr-2.0.0-chexpert.csv.gz", CHEXPERT, studies)
    return tmp_path


def row(base, study: str) -> int:
    return next(i for i, name in enumerate(base.ids) if name.startswith(study))


def graph(study: str, text: str, *entities: tuple[str, str]) -> str:
    """A line of RadGraph-XL output; each entity is one token of the re-tokenised text."""
    tokens = text.split()
    found = {
        str(i): {"tokens": token, "label": label, "start_ix": tokens.index(token), "end_ix": tokens.index(token),
                 "relations": []}
        for i, (token, label) in enumerate(entities, 1)
    }  # fmt: skip
    return json.dumps({"id": f"s{study}", "text": text, "entities": found}) + "\n"


def test_rows_are_the_frontal_films_of_the_test_split_whose_impression_asserts_something(mimic):
    base = mimic_base(mimic)
    assert base.ids == (
        "50000001-AP", "50000002-PA", "50000003-AP", "50000003-PA", "50000004-AP", "50000010-AP",
    )  # fmt: skip
    assert base.captions[0] == "Mild cardiomegaly."
    assert base.captions[1] == "Stable chest."
    assert base.captions[row(base, "50000004")] == "Lungs are clear."
    assert (base.name, base.origin) == ("medical", "mimic_cxr")
    assert "1.5.0" in base.licence
    assert all(path.is_file() and path.stem == name for path, name in zip(base.images, base.ids, strict=True))


def test_references_are_the_whole_findings_and_impression(mimic):
    base = mimic_base(mimic)
    assert base.references[0] == ("Large heart.", "1. Mild cardiomegaly. 2. No effusion.")
    assert base.references[row(base, "50000003")] == ("Bibasilar opacities and a chest tube.",)


def test_every_row_left_out_is_counted(mimic):
    notes = mimic_base(mimic).notes
    assert notes[0] == "6 images found (the paper has 2,233)."
    # of 12 test images: a lateral and an LL view; one without a file; an empty report and one without impression
    assert notes[1] == (
        "Of 12 test images 2 are not frontal (ViewPosition AP or PA), 1 have no report file, 2 no impression and 1 an "
        "impression that asserts nothing."
    )


def test_labels_and_the_whole_report_tell_what_a_film_shows(mimic):
    base = mimic_base(mimic)
    assert base.objects[0] == {"cardiomegaly"}
    assert base.objects[1] == {"pacemaker"}  # from the findings, which are not in the caption
    assert base.also_present[1] == {"edema"}  # labelled -1; the others are blank, which is no vote
    assert base.objects[row(base, "50000003")] == {"atelectasis", "chest tube"}  # labelled 1
    assert base.objects[row(base, "50000004")] == {"pneumothorax"}  # the addendum, against a label 0
    assert base.also_present[row(base, "50000010")] == {"pleural effusion"}


def test_statements_come_from_train_reports_with_the_label(mimic):
    base = mimic_base(mimic)
    assert base.statements["cardiomegaly"] == ("Stable cardiomegaly.", "The heart is enlarged.")
    assert all(base.statements[disease] == () for disease in DISEASES if disease != "cardiomegaly")
    assert "from 2 of 2 train reports" in base.notes[-1]


def test_radgraph_decides_which_sentences_stay_and_adds_what_it_found(mimic, tmp_path):
    path = tmp_path / "radgraph.jsonl"
    path.write_text(
        graph("50000001", "1 . Mild cardiomegaly . 2 . No effusion .",
              ("cardiomegaly", "Observation::uncertain"), ("effusion", "Observation::definitely absent"))
        + graph("50000002", "Stable chest .", ("Stable", "Observation::measurement::definitely present"))
        + graph("50000003", "Bibasilar opacities and a chest tube .", ("Bibasilar", "Anatomy::definitely present"),
                ("opacities", "Observation::definitely absent"), ("tube", "Observation::definitely present"))
        + graph("50000004", "Another text .", ("text", "Observation::definitely present"))
        + graph("50000007", "No acute cardiopulmonary process .", ("process", "Observation::definitely present"))
        + graph("50000010", "Possible effusion . Lungs are clear .", ("effusion", "Observation::definitely present"),
                ("Lungs", "Anatomy::definitely present")),
        encoding="utf-8",
    )  # fmt: skip
    base = mimic_base(mimic, radgraph=path)
    assert not [name for name in base.ids if name.startswith("50000001")]  # nothing definitely present
    assert base.captions[row(base, "50000003")] == "Bibasilar opacities and a chest tube."
    assert base.captions[row(base, "50000004")] == "Lungs are clear."  # by word rules: the texts differ
    assert base.captions[row(base, "50000007")] == "No acute cardiopulmonary process."
    assert base.captions[row(base, "50000010")] == "Possible effusion. Lungs are clear."
    assert base.objects[row(base, "50000010")] == {"pleural effusion"}
    assert [note for note in base.notes if "5 of 6 impressions" in note and "1 where its text" in note]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("No consolidation . Heart is normal .", [False, True]),
        ("No consolidation .\nHeart is normal.", [False, True]),
    ],
)
def test_sentences_are_found_in_text_that_was_split_anew(text, kept):
    from benchmark_builder.bases.radgraph import Entity, Graph, asserted

    tokens = tuple(text.split())
    entities = (
        Entity(1, 1, "Observation", "absent"),
        Entity(tokens.index("Heart"), tokens.index("Heart"), "Anatomy", "present"),
    )
    assert asserted(["No consolidation.", "Heart is normal."], Graph(tokens, entities)) == kept
    assert asserted(["No edema.", "Heart is normal."], Graph(tokens, entities)) is None


@pytest.mark.parametrize("key", ["dicom_id", "study_id"])
def test_physicians_override_everything(mimic, tmp_path, key):
    path = tmp_path / "physicians.csv"
    ids = ("50000001-AP", "50000002-PA") if key == "dicom_id" else ("s50000001", "50000002")
    path.write_text(f"{key},cardiomegaly,edema,chest_tube\n{ids[0]},0,,1\n{ids[1]},,0,\n", encoding="utf-8")
    base = mimic_base(mimic, annotations=path)
    assert base.objects[0] == {"chest tube"}
    assert base.present(1) == {"pacemaker"}
    assert [note for note in base.notes if "2 of 6 images" in note]


def test_reports_may_lie_elsewhere_and_images_may_be_absent(mimic, tmp_path):
    whole = mimic_base(mimic)
    apart = tmp_path / "mimic-cxr"
    for report in (mimic / "files").rglob("*.txt"):
        target = apart / report.relative_to(mimic)
        target.parent.mkdir(parents=True, exist_ok=True)
        report.rename(target)
    for image in (mimic / "files").rglob("*.jpg"):
        image.unlink()
    for reports in (apart, apart / "files"):
        base = mimic_base(mimic, reports=reports)
        assert base.images is None
        assert (base.ids, base.captions, base.objects) == (whole.ids, whole.captions, whole.objects)


SPLIT, LABELS = "mimic-cxr-2.0.0-split.csv.gz", "mimic-cxr-2.0.0-chexpert.csv.gz"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def swap(path: Path, before: str, after: str) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(before.encode(), after.encode())))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda f: (f / SPLIT).unlink(), SPLIT),
        (lambda f: (f / LABELS).write_bytes(gzip.compress(b"")), LABELS),
        (lambda f: cut(f / "mimic-cxr-2.0.0-metadata.csv.gz"), "metadata.csv.gz cannot be read"),
        (lambda f: (f / SPLIT).write_bytes(b"not packed"), SPLIT),
        (lambda f: swap(f / "mimic-cxr-2.0.0-metadata.csv.gz", "ViewPosition", "View"), "ViewPosition"),
        (lambda f: swap(f / LABELS, "-1.0", "maybe"), "'maybe'"),
        (lambda f: swap(f / SPLIT, "test", "train"), "'test'"),
        (lambda f: next((f / "files").rglob("50000002*.jpg")).unlink(), "50000002-PA.jpg"),
        (lambda f: [p.unlink() for p in (f / "files").rglob("*.txt")], "mimic-cxr-reports.zip"),
        (lambda f: (f / "files").rename(f / "images"), "files/p10"),
    ],
)
def test_bad_folders_are_named_in_one_sentence(mimic, harm, said):
    harm(mimic)
    with pytest.raises(BadData) as caught:
        mimic_base(mimic)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("radgraph", '{"id": "s50000001", "text": "Clear', "line 1"),
        ("radgraph", '{"id": "s50000001", "text": "Clear ."}', "entities"),
        ("radgraph", graph("99", "Clear ."), "none of the"),
        ("annotations", "dicom_id,comment\n50000001-AP,fine\n", "at least one of"),
        ("annotations", "dicom_id,edema\n50000001-AP,yes\n", "'yes'"),
        ("annotations", "", "empty"),
    ],
)
def test_bad_side_files_are_named_in_one_sentence(mimic, tmp_path, option, text, said):
    path = tmp_path / "side.csv"
    for write in (lambda: path.write_text(text, encoding="utf-8"), path.unlink):
        write()
        with pytest.raises(BadData) as caught:
            mimic_base(mimic, **{option: path})
        assert str(path) in str(caught.value)
        assert said in str(caught.value) or not path.exists()


def test_a_wrong_folder_is_named(tmp_path):
    with pytest.raises(BadData, match=r"no folder .*nowhere"):
        mimic_base(tmp_path / "nowhere")
    for reader in (mimic_base, openi_base):
        with pytest.raises(BadData, match=str(tmp_path)):
            reader(tmp_path)


@pytest.mark.parametrize(
    ("text", "findings", "impression"),
    [
        ("", None, None),
        (wrapped("A b.", "C d."), "A b.", "C d."),
        (" IMPRESSION:  Old.\n\n IMPRESSION:  New.\n\n NOTIFICATION:  Dr. ___.\n", None, "New."),
        (" IMPRESSION:  Old.\n\n IMPRESSION:  \n", None, "Old."),
        (" PORTABLE CHEST:  Heart is\n large.\n\n CONCLUSION:  Large heart.", "Heart is large.", "Large heart."),
        (" FINDINGS:\n AP CHEST:  Clear.\n\n Impression:\n Clear.", "Clear.", "Clear."),
        (" FINDINGS AND IMPRESSION:  AP chest compared to ___:  clear.", None, "AP chest compared to ___: clear."),
        (" INDICATION:  ___M.\n\n ndication: cough\n\n CLINICAL IMPRESSION:  flu", None, None),
        (ADDED, "Lungs are clear.", "Lungs are clear. No effusion."),
    ],
)
def test_sections_of_a_report(text, findings, impression):
    report = parse_report(text)
    assert (report.findings, report.impression) == (findings, impression)


def test_an_addendum_is_kept_apart():
    assert "small left pneumothorax" in parse_report(ADDED).addendum
