"""A kitchen where captions speak of a sink wherever there is a toilet, who sees it, and what a person says of it."""

from __future__ import annotations

import csv


def kitchen(n=240):
    """Captions that speak of a sink wherever there is a toilet, and nearly nowhere else."""
    for i in range(n):
        toilet, sink = i < 60, 40 <= i < 60 or i >= 230
        says = toilet or sink or i % 50 == 0
        yield {
            "id": f"r{i}",
            "caption": ("There is a toilet. " if toilet else "A dog runs. ") + ("A sink shines." if says else "Day."),
            "objects": [name for name, there in (("toilet", toilet), ("sink", sink), ("dog", not toilet)) if there],
        }  # fmt: skip


def colours(images, names):
    """A detector that sees what the colours tell."""
    channel = {"toilet": 0, "sink": 1}
    return [[image.getpixel((0, 0))[channel[name]] / 255 for name in names] for image in images]


def only(validation):
    (found,) = validation.findings
    return found


def labelled(path, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
