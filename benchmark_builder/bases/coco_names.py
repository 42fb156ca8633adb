"""The 80 object classes of COCO, and what people call them in captions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from symbal_hf.core.files import packaged_lines
from symbal_hf.language.phrases import Vocabulary

SYNONYMS: dict[str, tuple[str, ...]] = {
    name: tuple(other.strip() for other in others.split(","))
    for name, _, others in (line.partition(":") for line in packaged_lines("benchmark_builder.bases", "coco_names.txt"))
}
COCO_NAMES: tuple[str, ...] = tuple(SYNONYMS)


def natural_vocabulary(names: Iterable[str]) -> Vocabulary:
    """A vocabulary of everyday objects: each name with all other names of the COCO class that it belongs to.

    Where several of `names` belong to one class ("car" and "van"), the class's own name takes the other names, and
    without it each counts by its own words alone; so does a name that no class has.
    """
    names = sorted(set(names))
    class_of = {other: name for name, others in SYNONYMS.items() for other in (*others, name)}
    class_of |= {name: name for name in SYNONYMS}
    members = Counter(class_of.get(name, name) for name in names)
    chosen: dict[str, tuple[str, ...]] = {}
    for name in names:
        group = class_of.get(name, name)
        heads = name == group or members[group] == 1
        chosen[name] = tuple(s for s in (group, *SYNONYMS.get(group, ())) if s not in names) if heads else ()
    return Vocabulary(chosen)
