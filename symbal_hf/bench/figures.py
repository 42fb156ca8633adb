"""The paper's Figures 3, 4 and 8 for our runs: bars of Acc@K with 95 % intervals, and the data behind each."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.bench.acc_at_k import UNKNOWN
from symbal_hf.bench.published import METHOD
from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "figure_3": "End to end (the paper's Figure 3)",
    "figure_4": "By strength and by size of v (the paper's Figure 4)",
    "figure_8": "By sampling category (the paper's Figure 8)",
}
STRATA = {"figure_4": ("strength", "feature_size"), "figure_8": ("sampling",)}
AXES = {
    "accuracy": "",
    "strength": "strength of the association (target Cramér's V)",
    "feature_size": "size of v (small < 5 % ≤ medium < 20 % ≤ large)",
    "sampling": "sampling category of (t, v)",
}
ORDER = ("random", "popular", "adversarial", "small", "medium", "large")
VARIANTS = {"reference_free": "reference-free", "reference_based": "reference-based"}
PAPER = "paper: "  # before the names of the paper's methods
OWN = PAPER + METHOD
# Okabe and Ito's colours, told apart by colour-blind readers; runs after the sixth start again, hatched.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
GREYS = ("#8a8a8a", "#a5a5a5", "#bdbdbd", "#d2d2d2", "#e4e4e4")  # of what the paper printed
ERROR: dict[str, Any] = {"fmt": "none", "clip_on": False, "zorder": 3, "ecolor": "#222222", "elinewidth": 1.1}
MARK: dict[str, Any] = {"marker": "D", "ls": "", "ms": 5, "mfc": "white", "mec": "#222222", "mew": 1}
Paints = Mapping[str, Mapping[str, Any]]  # how matplotlib fills the bars of each series


@dataclass(frozen=True)
class Bar:
    """One bar or mark: `acc`@`k` of `series` (a run, or "paper: METHOD") at the place `label` of the x axis of `panel`.

    `low` and `high` end its 95 % interval; they and `n`, the settings, are None where it is the paper's, whose `source`
    is told.
    """

    variant: str
    domain: str
    panel: str
    label: str
    series: str
    k: int
    acc: float
    low: float | None
    high: float | None
    n: int | None
    source: str = ""


def check_matplotlib() -> None:
    """Nothing where the figures can be drawn; raises `BadData`: matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise BadData("the figures need matplotlib; run `pip install 'symbal-hf[report]'`.") from error


def bars(scores: Mapping[str, Any], figure: str) -> list[Bar]:
    """What a figure shows: end to end, of each run; in Figure 3 beside the paper's numbers, where it has some."""
    found = [(run["name"], group) for run in scores["runs"] for group in run["groups"] if group["scores"]]
    out = []
    for name, group in found:
        if figure in STRATA and len(group["domains"]) > 1:
            continue  # strata are shown for each domain: their mixture is another one in each run
        parts: list[tuple[str, str, Mapping[str, Any], Sequence[int]]] = []
        for key in STRATA.get(figure, ()):
            for label, part in group["scores"]["by"].get(key, {}).items():
                parts.append((key, label, part, scores["k"]))
        if figure == "figure_3":
            parts = [("accuracy", f"Acc@{k}", group["scores"], (k,)) for k in scores["k"]]
        for panel, label, part, ks in parts:
            for k in ks:
                low, high = part.get(f"acc@{k}_interval") or (None, None)
                place = (group["variant"], group["domain"], panel, label)
                out.append(Bar(*place, name, k, part[f"acc@{k}"], low, high, part["n"]))
    shown = {(bar.variant, bar.domain) for bar in out}
    for row in scores["published"] if figure == "figure_3" else ():
        where = (row["variant"], row["domain"])
        for k in scores["k"]:
            acc = row.get(f"acc{k}")
            if row["stage"] == "both" and acc is not None and where in shown:
                name = PAPER + row["method"]
                out.append(Bar(*where, "accuracy", f"Acc@{k}", name, k, acc, None, None, None, row["source"]))
    return out


def draw(figure: str, data: Sequence[Bar]) -> bytes:
    """PNG of a figure. In Figures 4 and 8 bars are the largest K, and a mark in each is the smallest."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [panel for panel in AXES if any(bar.panel == panel for bar in data)]
    variants = [variant for variant in VARIANTS if any(bar.variant == variant for bar in data)]
    domains = sorted({bar.domain for bar in data}, key=lambda name: (name != "all", name))
    if len(panels) == 1:  # variants side by side, as the paper's Figure 3 has them
        cells = [[(variant, domain, panels[0]) for variant in variants] for domain in domains]
    else:
        cells = [[(variant, domain, panel) for panel in panels] for domain in domains for variant in variants]
    cells = [row for row in cells if any(_of(data, cell) for cell in row)]
    # The paper's own method comes last, as in its tables.
    series = sorted(dict.fromkeys(bar.series for bar in data), key=lambda name: name == OWN)
    paint = _paints(data, series)
    # A style that is read as a whole: a reader's own settings shall not change the picture.
    with matplotlib.rc_context(fname=Path(__file__).with_name("figures.mplstyle")):
        columns = len(cells[0])
        width = max(6.0, 5.2 * columns)
        picture = Figure(figsize=(width, 3.5 * len(cells) + 0.6), dpi=150, facecolor="white", layout="constrained")
        picture.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr, call-arg]
        for row, places in enumerate(cells):
            for column, cell in enumerate(places):
                axes = picture.add_subplot(len(cells), columns, row * columns + column + 1)
                own = _of(data, cell)
                if own:
                    _panel(axes, own, series, paint, cell)
                else:
                    axes.set_axis_off()
        _legend(picture, data, series, paint, figure, width)
        png = io.BytesIO()
        FigureCanvasAgg(picture).print_png(png, metadata={"Software": None})
    return png.getvalue()


def _of(data: Sequence[Bar], cell: tuple[str, str, str]) -> list[Bar]:
    return [bar for bar in data if (bar.variant, bar.domain, bar.panel) == cell]


def _paints(data: Sequence[Bar], series: Sequence[str]) -> Paints:
    """How the bars of each series are filled."""
    ours = [name for name in series if any(bar.series == name and not bar.source for bar in data)]
    out: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(ours):
        hatch = "" if place < len(COLOURS) else "//"
        out[name] = {"facecolor": COLOURS[place % len(COLOURS)], "hatch": hatch, "edgecolor": "white"}
    printed = [name for name in series if name not in out]
    for place, name in enumerate(reversed(printed)):
        out[name] = {"facecolor": GREYS[min(place, len(GREYS) - 1)], "hatch": "////", "edgecolor": "white"}
    return out


def _panel(axes: Axes, data: Sequence[Bar], series: Sequence[str], paint: Paints, cell: tuple[str, str, str]) -> None:
    variant, domain, panel = cell
    labels = _labels(data, panel)
    names = [name for name in series if any(bar.series == name for bar in data)]
    most, least = max(bar.k for bar in data), min(bar.k for bar in data)
    width = 0.8 / max(len(names), 2)
    for bar in data:
        at = labels.index(bar.label) + (names.index(bar.series) - (len(names) - 1) / 2) * width
        if panel == "accuracy" or bar.k == most:
            # Beside the mark of the smallest K, which would hide it where both are in the middle.
            axes.bar([at], [100 * bar.acc], 0.92 * width, **paint[bar.series], linewidth=0, zorder=2)
            if bar.low is not None and bar.high is not None:
                shift = 0 if panel == "accuracy" else width / 8
                ends = [[100 * max(bar.acc - bar.low, 0)], [100 * max(bar.high - bar.acc, 0)]]
                axes.errorbar([at + shift], [100 * bar.acc], ends, capsize=3.5 if 0.92 * width > 0.08 else 2, **ERROR)
        elif bar.k == least:
            axes.plot([at - width / 6], [100 * bar.acc], clip_on=False, zorder=4, **MARK)
    axes.set(ylim=(0, 100), yticks=range(0, 101, 20), xlim=(-0.6, len(labels) - 0.4))
    axes.set_ylabel("settings right (%)" if panel == "accuracy" else f"Acc@{most} (%)")
    axes.set_xlabel(AXES[panel])
    counts = [_counts([bar for bar in data if panel != "accuracy" and bar.label == label]) for label in labels]
    axes.set_xticks(range(len(labels)), ["\n".join(filter(None, pair)) for pair in zip(labels, counts, strict=True)])
    count = f" ({_counts(data)})" if panel == "accuracy" and _counts(data) else ""
    axes.set_title(f"{'all domains' if domain == 'all' else domain}, {VARIANTS[variant]}{count}")
    axes.tick_params(length=0)


def _labels(data: Sequence[Bar], panel: str) -> list[str]:
    """Places on the x axis: numbers by size, names as in `ORDER`, what nobody knows last."""
    found = dict.fromkeys(bar.label for bar in data)
    if panel == "strength":
        return sorted(found, key=lambda name: float(name) if name != UNKNOWN else 2)  # a strength is at most 1
    return sorted(found, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER) + (name == UNKNOWN))


def _counts(data: Sequence[Bar]) -> str:
    """How many settings: one number where each run has as many, else each run's, or their range."""
    found = list({bar.series: bar.n for bar in data if bar.n is not None}.values())
    if len(set(found)) > 1 and len(found) > 3:
        return f"n = {min(found):,}–{max(found):,}"
    return f"n = {' / '.join(f'{n:,}' for n in (found if len(set(found)) > 1 else found[:1]))}" if found else ""


def _legend(picture: Any, data: Sequence[Bar], series: Sequence[str], paint: Paints, figure: str, width: float) -> None:
    """Above the panels, so that it covers nothing, in as many columns as the names leave room for."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(label=textwrap.fill(name, 45), linewidth=0, **paint[name]) for name in series]
    if figure != "figure_3" and len(ks := sorted({bar.k for bar in data})) > 1:
        handles.append(Line2D([], [], label=f"Acc@{ks[0]}", **MARK))
    longest = max(len(str(handle.get_label()).split("\n")[0]) for handle in handles)
    columns = max(1, min(len(handles), int(width / (0.085 * longest + 0.6))))
    picture.legend(handles=handles, loc="outside upper center", ncols=columns)
