"""What RadGraph-XL found in an impression: which sentences assert something, which concepts are present."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmark_builder.bases.files import read_json_lines
from benchmark_builder.reports.radiology import Status, mentions, most_affirmative
from symbal_hf.core.errors import BadData

ENDINGS: Mapping[str, Status] = {
    "definitely present": "present",
    "definitely absent": "absent",
    "uncertain": "uncertain",
}


@dataclass(frozen=True)
class Entity:
    """Tokens `first` to `last`, both included, and what they are; labels are matched by how they begin and end.

    Attributes:
        kind: "Anatomy" or "Observation"; "Observation::measurement::..." is an observation too.
    """

    first: int
    last: int
    kind: str
    status: Status


@dataclass(frozen=True)
class Graph:
    """One impression as RadGraph saw it.

    Attributes:
        tokens: the words and marks that its token numbers count.
    """

    tokens: tuple[str, ...]
    entities: tuple[Entity, ...]


def read_radgraph(path: Path, studies: Collection[str]) -> dict[str, Graph]:
    """Graphs by study id (digits only) of those `studies` that the file has.

    Args:
        path: JSON lines {"id": "s50414267", "text": .., "entities": {"1": {"label", "start_ix", "end_ix", ..}, ..}}.
        studies: study ids, digits only.

    Raises:
        BadData: no such file, a line that is no such object, or token numbers outside of the text.
    """

    def row(line: Mapping[str, Any]) -> tuple[str, Graph | None]:
        study = str(line["id"]).removeprefix("s")
        return study, _graph(line) if study in studies else None

    rows = read_json_lines(path, row, "'id', 'text' and RadGraph-XL's 'entities'")
    out = {study: graph for study, graph in rows if graph is not None}
    if not out:
        raise BadData(f"{path} has none of the {len(studies)} studies; its ids must be study ids such as 's50414267'.")
    return out


def _graph(row: Mapping[str, Any]) -> Graph:
    tokens = tuple(row["text"].split())
    entities = []
    for entity in row["entities"].values():
        kind, *_, ending = entity["label"].split("::")
        first, last = int(entity["start_ix"]), int(entity["end_ix"])
        if not 0 <= first <= last < len(tokens):
            raise IndexError(f"tokens {first} to {last} of {len(tokens)}")
        if ending in ENDINGS:
            entities.append(Entity(first, last, kind, ENDINGS[ending]))
    return Graph(tokens, tuple(entities))


def asserted(sentences: Sequence[str], graph: Graph) -> list[bool] | None:
    """For each sentence whether it holds a present observation, or a present anatomy and no absent observation.

    RadGraph splits words and marks anew, and list numbers are none of ours: sentences are found by counting letters.

    Returns:
        One value a sentence, or None when the sentences are not the text that RadGraph saw.
    """
    letters = ["".join(c for c in text if c.isalpha()) for text in sentences]
    seen = ["".join(c for c in token if c.isalpha()) for token in graph.tokens]
    if "".join(letters).lower() != "".join(seen).lower():
        return None
    ends = list(accumulate(map(len, letters)))
    starts = [0, *accumulate(map(len, seen))]
    found: list[set[tuple[str, Status]]] = [set() for _ in sentences]
    for entity in graph.entities:
        sentence = min(bisect_right(ends, starts[entity.first]), len(sentences) - 1)
        found[sentence].add((entity.kind, entity.status))
    return [
        ("Observation", "present") in labels
        or (("Anatomy", "present") in labels and ("Observation", "absent") not in labels)
        for labels in found
    ]


def graph_statuses(graph: Graph) -> dict[str, Status]:
    """The status of each concept whose name holds an observation; the most affirmative observation counts."""
    starts = [0, *accumulate(len(token) + 1 for token in graph.tokens)]
    text = " ".join(graph.tokens).lower()
    votes: list[tuple[str, Status]] = []
    for mention in mentions(text):
        if mention.kind != "named":
            continue  # of "heart size is normal" RadGraph calls "normal" present
        for entity in graph.entities:
            inside = starts[entity.first] < mention.end and mention.start < starts[entity.last + 1] - 1
            if entity.kind == "Observation" and inside:
                votes.append((mention.concept, entity.status))
    return most_affirmative(votes)
