"""Captions become facts: one sentence each, with the row it came from (paper section 4.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Chinese and Japanese sentences end in marks that general sentence splitters do not know.
CJK_END = re.compile(r"(?:(?<=[。！？])|(?<=[。！？][”’」』）]))\s*(?=[^\s。！？”’」』）])")
BULLET = re.compile(r"^\s*(?:[-*•‣#>]+|\d{1,3}[.)])\s+")


@dataclass(frozen=True)
class Facts:
    """The facts table: F sentences of N captions.

    Attributes:
        row: (F,) int64, the caption's position in the audited data, ascending.
        position: (F,) int64, the sentence's position in its caption.
        text: F sentences.
        n_rows: N.
    """

    row: NDArray[np.int64]
    position: NDArray[np.int64]
    text: tuple[str, ...]
    n_rows: int

    def __len__(self) -> int:
        return len(self.text)


def sentences(text: str) -> list[str]:
    """The sentences of a caption; list items and lines stand alone, bullets are dropped, order is kept."""
    from simplemma import split_sentences

    out: list[str] = []
    for line in text.splitlines():
        for part in CJK_END.split(BULLET.sub("", line)):
            out.extend(s for s in split_sentences(part, lang="en") if any(c.isalnum() for c in s))
    return out


def split_facts(captions: Sequence[str]) -> Facts:
    """The facts of N captions. A caption without a letter or digit contributes none."""
    rows, positions, texts = [], [], []
    for row, caption in enumerate(captions):
        for position, sentence in enumerate(sentences(caption)):
            rows.append(row)
            positions.append(position)
            texts.append(sentence)
    return Facts(np.array(rows, np.int64), np.array(positions, np.int64), tuple(texts), len(captions))
