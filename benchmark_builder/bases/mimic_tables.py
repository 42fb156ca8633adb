"""The tables of MIMIC-CXR-JPG: images of each split, views, CheXpert labels, and physicians' annotations of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark_builder.bases.files import read_csv
from benchmark_builder.reports.radiology import Status
from benchmark_builder.reports.radiology_terms import CONCEPTS, DISEASES
from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    import pandas as pd

LABELS = {disease: disease.title() for disease in DISEASES}
# A blank label means "not mentioned": no vote, which is not the same as absent.
MEANING: Mapping[float, Status] = {1.0: "present", 0.0: "absent", -1.0: "uncertain"}


@dataclass(frozen=True)
class Image:
    """One row of the split file."""

    dicom: str
    study: str
    subject: str

    def place(self) -> str:
        """Where the study lies, relative to the files folder: a folder of images, a report by that name and .txt."""
        return f"p{self.subject[:2]}/p{self.subject}/s{self.study}"


def files_folder(folder: Path, what: str) -> Path:
    """The folder with p10, p11, ...: `folder` itself or its "files"."""
    for candidate in (folder / "files", folder):
        if candidate.is_dir() and any(candidate.glob("p[0-9][0-9]")):
            return candidate
    raise BadData(f"{folder} holds no files/p10, files/p11, ... with the {what}; give the folder that holds files/.")


def read_tables(folder: Path) -> tuple[dict[str, list[Image]], dict[str, str], dict[str, dict[str, Status]]]:
    """Images of each split, the view of each image, and the labels of each study."""
    if not folder.is_dir():
        raise BadData(
            f"no folder {folder}; give the folder of MIMIC-CXR-JPG, which holds mimic-cxr-2.0.0-split.csv.gz."
        )
    table, path = _table(folder, "split", ("dicom_id", "study_id", "subject_id", "split"))
    split: dict[str, list[Image]] = {}
    for dicom, study, subject, part in table.itertuples(index=False):
        split.setdefault(part, []).append(Image(dicom, study.removeprefix("s"), subject.removeprefix("p")))
    if not split.get("test"):
        raise BadData(f"{path} has no image of the split 'test', only of {', '.join(split) or 'none'}; is it cut off?")
    if table["dicom_id"].duplicated().any():
        raise BadData(f"{path} lists image {table['dicom_id'][table['dicom_id'].duplicated()].iloc[0]} twice.")
    table, _ = _table(folder, "metadata", ("dicom_id", "ViewPosition"))
    view = dict(zip(table["dicom_id"], table["ViewPosition"].str.strip().str.upper(), strict=True))
    table, path = _table(folder, "chexpert", ("study_id", *LABELS.values()))
    labels: dict[str, dict[str, Status]] = {}
    for study, *values in table.itertuples(index=False):
        labels[study.removeprefix("s")] = {
            disease: _meaning(value, path, study) for disease, value in zip(LABELS, values, strict=True) if value
        }
    return split, view, labels


def _meaning(value: str, path: Path, study: str) -> Status:
    try:
        return MEANING[float(value)]
    except (ValueError, KeyError):
        raise BadData(f"{path}: study {study} has the label {value!r}; labels are 1, 0, -1 or blank.") from None


def _table(folder: Path, part: str, columns: Sequence[str]) -> tuple[pd.DataFrame, Path]:
    path = folder / f"mimic-cxr-2.0.0-{part}.csv.gz"
    unpacked = path.with_suffix("")
    found = unpacked if unpacked.is_file() and not path.is_file() else path
    return read_csv(found, columns), found


def read_annotations(path: Path, images: Sequence[Image]) -> dict[str, dict[str, bool]]:
    """What physicians say: {dicom id: {concept: is it there}} for those of `images` that they say anything of.

    Args:
        path: CSV with a dicom_id or study_id column and columns named by concepts; 1 present, 0 absent, blank no word.

    Raises:
        BadData: no such file, no id or no concept column, or another value.
    """
    table = read_csv(path)
    key = next((name for name in ("dicom_id", "study_id") if name in table.columns), None)
    columns = {name.strip().lower().replace("_", " "): name for name in table.columns}
    known = {concept: columns[concept] for concept in CONCEPTS if concept in columns}
    if key is None or not known:
        raise BadData(
            f"{path} has the columns {', '.join(table.columns)}; it needs dicom_id or study_id and at least one of "
            f"{', '.join(CONCEPTS)}."
        )
    said: dict[str, dict[str, bool]] = {}
    for row in table.to_dict("records"):
        for concept, column in known.items():
            if value := row[column]:
                if value not in ("0", "1", "0.0", "1.0"):
                    raise BadData(f"{path}: {key} {row[key]} has {column} {value!r}; give 1, 0 or nothing.")
                said.setdefault(row[key].removeprefix("s"), {})[concept] = value.startswith("1")
    ids = {image.dicom: image.dicom.removeprefix("s") if key == "dicom_id" else image.study for image in images}
    return {dicom: said[name] for dicom, name in ids.items() if name in said}
