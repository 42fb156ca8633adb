"""Sentences of real reports that state one disease and nothing else, the most frequent first (paper appendix B)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from benchmark_builder.bases.base import sentence
from benchmark_builder.reports.radiology import report_sentences, states_only
from benchmark_builder.reports.radiology_terms import DISEASES

BLANK = re.compile(r"_{2,}|X{3,}|\bxxxx\b")  # where de-identification took words out
MOST_WORDS = 25


class Statements:
    """Counts the sentences that assert one disease as present and speak of no other finding or device.

    A sentence may refer to an earlier study ("Unchanged cardiomegaly."): radiologists write so, and it states the
    disease all the same.
    """

    def __init__(self, disease: str) -> None:
        self.disease = disease
        self._spellings: dict[str, Counter[str]] = {}

    def add(self, texts: Iterable[str | None]) -> None:
        """Count the sentences of a report's sections."""
        for text in texts:
            for said in report_sentences(text or ""):
                if BLANK.search(said) or len(said.split()) > MOST_WORDS or not states_only(said, self.disease):
                    continue
                spelled = sentence(said)
                self._spellings.setdefault(spelled.lower(), Counter())[spelled] += 1

    def most_frequent(self, n: int = 50) -> tuple[str, ...]:
        """Up to `n` different sentences with a capital and a full stop; ties in alphabetical order.

        Spaces and capitals make no difference; the most usual spelling is given.
        """
        best = sorted(self._spellings.items(), key=lambda item: (-item[1].total(), item[0]))[:n]
        return tuple(min(spellings.items(), key=lambda item: (-item[1], item[0]))[0] for _, spellings in best)


def mined(reports: Iterable[tuple[Iterable[str], Iterable[str | None]]]) -> tuple[dict[str, tuple[str, ...]], str]:
    """For each disease the sentences that state it, and how many; of reports as (diseases to look for, sections)."""
    mines = {disease: Statements(disease) for disease in DISEASES}
    for diseases, texts in reports:
        for disease in diseases:
            mines[disease].add(texts)
    found = {disease: mine.most_frequent() for disease, mine in mines.items()}
    return found, ", ".join(f"{disease} {len(said)}" for disease, said in found.items())
