"""One MIMIC-CXR report file: its findings and impression, unwrapped, and an addendum where there is one."""

from __future__ import annotations

import re
from dataclasses import dataclass

RULE = re.compile(r"^[ \t]*_{10,}[ \t]*$", re.MULTILINE)  # "___" alone stands for a word taken out
HEADER = re.compile(r"^[ \t]*([A-Z][A-Z ()/,&-]*[A-Z)]) ?:(?=\s|$)", re.MULTILINE)
# Headers in other letters are accepted for the sections that matter only: a sentence may hold "AP chest compared to:".
LOOSE = re.compile(r"^[ \t]*(findings?|impressions?|conclusions?) ?:(?=\s|$)", re.MULTILINE | re.IGNORECASE)
IMPRESSION = re.compile(r"(?:.* )?(?:impressions?|conclusions?)(?: and .*| .*)?")
FINDINGS = re.compile(r"(?:.* )?findings?(?: .*)?")
# Sections that are named after the film and hold what is seen on it; EXAMINATION and the like name the film only.
FILM = re.compile(r"\b(?:chest|portable|views?|ribs?|radiographs?|x-?ray|frontal|lateral|cxr|abdomen)\b")
NOT_SEEN = re.compile(r"\b(?:examination|exam|study|type|technique|history|indication|comparison|reason|procedure)\b")


@dataclass(frozen=True)
class Report:
    """The parts of a report that say what is seen; None where there is no such part.

    Attributes:
        addendum: what was added to the report later, all of it.
    """

    findings: str | None = None
    impression: str | None = None
    addendum: str | None = None

    def texts(self) -> tuple[str, ...]:
        """All parts that there are."""
        return tuple(text for text in (self.findings, self.impression, self.addendum) if text)


def parse_report(text: str) -> Report:
    """The sections of a report; an empty file gives an empty report.

    Of a section that occurs twice the last one with text counts. "FINDINGS AND IMPRESSION" and "CONCLUSION" are the
    impression. Where there are no findings by name, a section named after the film ("PORTABLE CHEST:")
    takes their place.
    """
    parts = [part for part in RULE.split(text) if part.strip()]
    found = [_sections(part) for part in parts]
    # Addenda stand above the report, each closed by a line of underscores.
    main = max((i for i, sections in enumerate(found) if sections), default=len(parts) - 1)
    if main < 0:
        return Report()
    sections = found[main]
    added = "\n".join(unwrap(part) for i, part in enumerate(parts) if i != main)
    return Report(
        findings=sections.get("findings") or sections.get("film"),
        impression=sections.get("impression"),
        addendum=added or None,
    )


def unwrap(text: str) -> str:
    """Text whose lines were broken at 79 characters, one paragraph a line."""
    paragraphs = (" ".join(p.split()) for p in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")))
    return "\n".join(p for p in paragraphs if p)


def _sections(text: str) -> dict[str, str]:
    headers = {m.start(1): m for pattern in (LOOSE, HEADER) for m in pattern.finditer(text)}
    order = [headers[start] for start in sorted(headers)]
    out: dict[str, str] = {}
    before = None  # a named section without text of its own: "FINDINGS:\n PORTABLE CHEST: ..."
    ends = [*(header.start() for header in order[1:]), len(text)]
    for header, end in zip(order, ends, strict=False):
        body = unwrap(text[header.end() : end])
        name = _kind(" ".join(header[1].lower().split()))
        if name == "film" and before:
            name = before
        before = name if name in ("findings", "impression") and not body else None
        if name and body:
            out[name] = body
    return out


def _kind(header: str) -> str | None:
    if header.startswith("clinical"):  # "CLINICAL IMPRESSION" is why the film was taken
        return None
    if IMPRESSION.fullmatch(header):
        return "impression"
    if FINDINGS.fullmatch(header):
        return "findings"
    return "film" if FILM.search(header) and not NOT_SEEN.search(header) else None
