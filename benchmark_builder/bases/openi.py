"""The Indiana University chest films of Open-i: a medical base that needs no credential."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark_builder.bases.base import Base, sentence
from benchmark_builder.bases.files import image_files, read_csv, read_json_lines
from benchmark_builder.bases.mimic_tables import LABELS, MEANING
from benchmark_builder.reports.radiology import (
    Status,
    medical_vocabulary,
    report_sentences,
    report_statuses,
    says_something,
    weigh,
)
from benchmark_builder.reports.radiology_terms import DISEASES
from benchmark_builder.reports.statements import mined
from symbal_hf.core.errors import BadData

LICENCE = (
    "The Indiana University chest films and reports in Open-i of the US National Library of Medicine were published as "
    "CC BY-NC-ND 4.0; check the terms there before sharing anything made from them."
)
# What the indexers' terms say of the ten concepts, by how a term begins. They index doubtful atelectasis as atelectasis
# too, and "Surgical Instruments" or "Implanted Medical Device" may be anything, so these terms decide nothing alone.
TERMS: Mapping[str, Mapping[str, Status]] = {
    "Cardiomegaly/borderline": {"cardiomegaly": "uncertain"},
    "Cardiomegaly": {"cardiomegaly": "present"},
    "Cardiac Shadow/enlarged": {"cardiomegaly": "uncertain"},
    "Cardiac Shadow/borderline": {"cardiomegaly": "uncertain"},
    "Pneumothorax": {"pneumothorax": "present"},
    "Hydropneumothorax": {"pneumothorax": "present", "pleural effusion": "present"},
    "Pleural Effusion": {"pleural effusion": "present"},
    "Pulmonary Atelectasis": {"atelectasis": "uncertain"},
    "Pulmonary Edema": {"edema": "present"},
    "Pulmonary Congestion": {"edema": "uncertain"},
    "Heart Failure": {"edema": "uncertain"},
}


HOLDING = "image_id, images, findings, impression, mesh and chexpert (1, 0 or -1)"


@dataclass(frozen=True)
class Film:
    """One report with the file of its first frontal film, or None where it has none.

    Attributes:
        terms: indexers' terms such as "Cardiomegaly/mild".
        labels: CheXpert labels, 1, 0 or -1, of those conditions that it mentions.
    """

    name: str
    file: str | None
    findings: str
    impression: str
    terms: tuple[str, ...]
    labels: Mapping[str, float]

    def texts(self) -> tuple[str, ...]:
        """Findings and impression, those that there are."""
        return tuple(text for text in (self.findings, self.impression) if text)


def openi_base(folder: Path, *, seed: int = 0) -> Base:
    """Reports with a frontal film and an impression that asserts something; the impression is the caption.

    Words taken out by de-identification stay in captions as "XXXX"; sentences to plant have none. Devices are known
    from the reports' own sentences alone, diseases from those, the indexers' terms and CheXpert labels where given.

    Args:
        folder: indiana_reports.csv and indiana_projections.csv, or reports.jsonl; the films in images/ or
            images/images_normalized/, or none for a base of texts.
        seed: unused, since nothing is drawn; every base takes one.

    Raises:
        BadData: a missing, cut off or inconsistent file, named in the message.
    """
    lines = folder / "reports.jsonl"
    films = read_json_lines(lines, _film, HOLDING) if lines.is_file() else _from_csv(folder)
    dropped: Counter[str] = Counter()
    rows, captions = [], []
    for film in films:
        said = [text for text in report_sentences(film.impression) if says_something(text)]
        if film.file is None:
            dropped["no frontal film"] += 1
        elif not film.impression:
            dropped["no impression"] += 1
        elif not said:
            dropped["an impression that asserts nothing"] += 1
        else:
            rows.append(film)
            captions.append(" ".join(map(sentence, said)))
    if not rows:
        raise BadData(
            f"{folder}: none of {len(films)} reports has a frontal film and an impression that asserts anything."
        )
    evidence = [weigh(_sources(film)) for film in rows]
    # Mined from all reports: one that states t never gets t planted, so that no row is given its own sentence.
    statements, counts = mined((DISEASES, film.texts()) for film in films)
    images = _images(folder, rows)
    notes = [
        f"{len(rows)} of {len(films)} reports kept; left out: "
        + (", ".join(f"{n} with {reason}" for reason, n in dropped.items()) or "none")
        + ".",
        f"Sentences that state a disease, from the same reports: {counts}.",
    ]
    if images is None:
        notes.append(f"{folder} holds no images/; the base has texts only.")
    return Base(
        tuple(film.name for film in rows),
        tuple(captions),
        tuple(present for present, _ in evidence),
        images=images,
        references=tuple(film.texts() for film in rows),
        also_present=tuple(unsure for _, unsure in evidence),
        vocabulary=medical_vocabulary(),
        statements=statements,
        name="openi",
        origin="openi",
        licence=LICENCE,
        notes=tuple(notes),
    )


def _sources(film: Film) -> Iterable[Mapping[str, Status]]:
    said = report_statuses(film.texts())
    yield said
    for term in film.terms:
        begin = next((begin for begin in TERMS if term.startswith(begin)), None)
        if begin:
            yield TERMS[begin]
    labels: dict[str, Status] = {}
    for disease, label in LABELS.items():
        if label in film.labels:
            status = MEANING[film.labels[label]]
            # The labels that go round with this set call every third normal heart enlarged.
            doubtful = status == "present" and said.get(disease) == "absent"
            labels[disease] = "uncertain" if doubtful else status
    yield labels


def _from_csv(folder: Path) -> list[Film]:
    reports_file, films_file = folder / "indiana_reports.csv", folder / "indiana_projections.csv"
    if not reports_file.is_file() and not films_file.is_file():
        raise BadData(f"{folder} holds neither indiana_reports.csv and indiana_projections.csv nor reports.jsonl.")
    reports = read_csv(reports_file, ("uid", "MeSH", "findings", "impression"))
    frontal: dict[str, str] = {}
    films = read_csv(films_file, ("uid", "filename", "projection"))
    for uid, file, projection in films.itertuples(index=False):
        if projection.lower() == "frontal":
            frontal.setdefault(uid, file)
    return [
        Film(uid, frontal.get(uid), findings, impression, tuple(terms.split(";")), {})
        for uid, terms, findings, impression in reports.itertuples(index=False)
    ]


def _film(row: Mapping[str, Any]) -> Film:
    frontal = [image["file"] for image in row["images"] if image["projection"].lower() == "frontal"]
    labels = {name: float(value) for name, value in (row.get("chexpert") or {}).items() if value is not None}
    if not set(labels.values()) <= set(MEANING):
        raise ValueError(f"labels {sorted(set(labels.values()))}")
    return Film(
        str(row["image_id"]),
        frontal[0] if frontal else None,
        (row["findings"] or "").strip(),
        (row["impression"] or "").strip(),
        tuple((row["mesh"] or "").split(";")),
        labels,
    )


def _images(folder: Path, rows: Iterable[Film]) -> tuple[Path, ...] | None:
    files = next((f for f in (folder / "images" / "images_normalized", folder / "images") if f.is_dir()), None)
    if files is None:
        return None
    paths = (files / film.file for film in rows if film.file)
    return image_files(paths, "add them, or take images/ away for a base of texts")
