"""The medical base: chest films of MIMIC-CXR-JPG with their impressions, as the user downloaded them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmark_builder.bases.base import Base, sentence
from benchmark_builder.bases.files import image_files
from benchmark_builder.bases.mimic_tables import Image, files_folder, read_annotations, read_tables
from benchmark_builder.bases.radgraph import Graph, asserted, graph_statuses, read_radgraph
from benchmark_builder.reports.mimic_reports import Report, parse_report
from benchmark_builder.reports.radiology import (
    Status,
    medical_vocabulary,
    report_sentences,
    report_statuses,
    says_something,
    weigh,
)
from benchmark_builder.reports.statements import mined
from symbal_hf.core.errors import BadData
from symbal_hf.core.progress import Progress, quiet

EXPECTED = 2233  # images, by the paper
FRONTAL = ("AP", "PA")
LICENCE = (
    "MIMIC-CXR and MIMIC-CXR-JPG are under the PhysioNet Credentialed Health Data License 1.5.0 and must not be "
    "redistributed: neither images nor captions made from reports may be shared with people without that credential."
)


def mimic_base(
    folder: Path,
    *,
    reports: Path | None = None,
    radgraph: Path | None = None,
    annotations: Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Base:
    """Frontal films of the test split, each with what its impression asserts.

    A disease or device counts as an object when a CheXpert label, RadGraph or the report's own sentences call it
    present, as "may be present" when one of them is uncertain and none more; what physicians say overrides them all.

    Args:
        folder: MIMIC-CXR-JPG: mimic-cxr-2.0.0-{metadata,chexpert,split}.csv.gz and the images under files/.
        reports: MIMIC-CXR with the reports under files/; `folder` by default.
        radgraph: JSON lines with RadGraph-XL's output on each study's impression (see `read_radgraph`). Without it
            sentences are kept and concepts found by word rules alone.
        annotations: CSV with a dicom_id or study_id column and columns named by concepts, with 1, 0 or nothing.
        seed: unused, since nothing is drawn; every base takes one.
        progress: wraps the long loops.

    Raises:
        BadData: a missing, cut off or inconsistent file, named in the message.
    """
    shown = progress or quiet
    split, view, labels = read_tables(folder)
    report_files = files_folder(reports or folder, "reports of MIMIC-CXR")
    frontal = [image for image in split["test"] if view.get(image.dicom) in FRONTAL]
    studies = {image.study: image for image in frontal}
    found = ((s, _report(report_files, image)) for s, image in shown(studies.items(), "test reports", len(studies)))
    parsed = {study: report for study, report in found if report is not None}
    if studies and not parsed:
        raise BadData(
            f"{report_files} has no report of the test split, such as {frontal[0].place()}.txt; unpack "
            "mimic-cxr-reports.zip of MIMIC-CXR and give its folder as reports."
        )
    with_impression = {study: report.impression for study, report in parsed.items() if report.impression}
    graphs = read_radgraph(radgraph, with_impression.keys()) if radgraph else {}
    captions, how = _captions(with_impression, graphs, by_graph=radgraph is not None)
    rows = [image for image in frontal if image.study in captions]
    if not rows:
        raise BadData(f"{folder}: no frontal film of the test split has an impression that asserts anything.")
    physicians = read_annotations(annotations, rows) if annotations else {}

    def sources(study: str) -> Iterator[Mapping[str, Status]]:
        yield labels.get(study, {})
        yield report_statuses(parsed[study].texts())
        if study in graphs:
            yield graph_statuses(graphs[study])

    evidence = [weigh(sources(image.study), physicians.get(image.dicom, {})) for image in rows]
    notes = [*_counts(split["test"], frontal, parsed, with_impression, rows), how]
    if annotations:
        notes.append(f"Physicians' annotations were found for {len(physicians)} of {len(rows)} images.")
    statements, note = _mined(split.get("train", ()), labels, report_files, shown)
    images = _images(folder, rows)
    if images is None:
        notes.append(f"{folder} holds none of the image files; the base has texts only.")
    return Base(
        tuple(image.dicom for image in rows),
        tuple(captions[image.study] for image in rows),
        tuple(present for present, _ in evidence),
        images=images,
        references=tuple(replace(parsed[image.study], addendum=None).texts() for image in rows),
        also_present=tuple(unsure for _, unsure in evidence),
        vocabulary=medical_vocabulary(),
        statements=statements,
        name="medical",
        origin="mimic_cxr",
        licence=LICENCE,
        notes=(*notes, note),
    )


def _captions(
    impressions: Mapping[str, str], graphs: Mapping[str, Graph], *, by_graph: bool
) -> tuple[dict[str, str], str]:
    """What each study's impression asserts, and a note on what decided which sentences do."""
    captions: dict[str, str] = {}
    decided = 0
    for study, impression in impressions.items():
        stated = report_sentences(impression)
        keep = asserted(stated, graphs[study]) if study in graphs else None
        decided += keep is not None
        kept = [text for i, text in enumerate(stated) if (keep[i] if keep is not None else says_something(text))]
        if kept:
            captions[study] = " ".join(map(sentence, kept))
    if not by_graph:
        return captions, "Sentences were kept and concepts found by word rules, not by RadGraph."
    return captions, (
        f"RadGraph decided which sentences were kept in {decided} of {len(impressions)} impressions, word rules in the "
        f"others: {len(impressions.keys() - graphs.keys())} without its output and {len(graphs) - decided} where its "
        "text is another."
    )


def _counts(
    test: Sequence[Image],
    frontal: Sequence[Image],
    parsed: Container[str],
    with_impression: Container[str],
    rows: Sequence[Image],
) -> list[str]:
    unread = sum(image.study not in parsed for image in frontal)
    unconcluded = sum(image.study not in with_impression for image in frontal) - unread
    return [
        f"{len(rows)} images found (the paper has {EXPECTED:,}).",
        f"Of {len(test)} test images {len(test) - len(frontal)} are not frontal (ViewPosition AP or PA), {unread} have "
        f"no report file, {unconcluded} no impression and {len(frontal) - unread - unconcluded - len(rows)} an "
        "impression that asserts nothing.",
    ]


def _mined(
    train: Sequence[Image], labels: Mapping[str, Mapping[str, Status]], report_files: Path, shown: Progress
) -> tuple[dict[str, tuple[str, ...]], str]:
    """For each disease the sentences that state it, from train studies that CheXpert labels with it; and a note."""
    studies = {image.study: image for image in train}
    stated = {study: [d for d, status in labels.get(study, {}).items() if status == "present"] for study in studies}
    wanted = {study: diseases for study, diseases in stated.items() if diseases}
    read: list[str] = []

    def reports() -> Iterator[tuple[list[str], tuple[str | None, ...]]]:
        for study, diseases in shown(wanted.items(), "train reports", len(wanted)):
            report = _report(report_files, studies[study])
            if report is not None:
                read.append(study)
                yield diseases, (report.impression, report.findings)

    found, counts = mined(reports())
    return found, f"Sentences that state a disease, from {len(read)} of {len(wanted)} train reports: {counts}."


def _images(folder: Path, rows: Sequence[Image]) -> tuple[Path, ...] | None:
    files = folder if folder.name == "files" else folder / "files"
    paths = [files / image.place() / f"{image.dicom}.jpg" for image in rows]
    if not any(path.is_file() for path in paths):
        return None
    return image_files(paths, "download them, or none at all for a base of texts")


def _report(files: Path, image: Image) -> Report | None:
    path = files / f"{image.place()}.txt"
    try:
        return parse_report(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadData(f"{path} cannot be read ({error}); download it again.") from error
