"""The paper's Figures 6 and 7 (appendix C): what the datasets of a benchmark are like, split by domain."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

STRATEGIES = ("random", "popular", "adversarial")
# Okabe and Ito's colours, told apart by colour-blind readers; more domains than colours start again.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
BAR_STEP = 0.025  # of strengths: wider than twice the tolerance, and 0.3, 0.6, 0.9 are middles of bars
MOST_SIZES = 8  # with more distinct dataset sizes their bars become a histogram
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.titlepad": 8, "axes.labelsize": 9, "axes.labelcolor": "#333333",
    "axes.edgecolor": "#888888", "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "grid.color": "#e4e4e4", "grid.linewidth": 0.8,
    "xtick.color": "#555555", "ytick.color": "#555555", "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip

Colours = dict[str, str]  # of each domain
Panel = Callable[["Axes", Colours], None]


def composition(settings: pd.DataFrame) -> bytes | None:
    """Figure 6 as PNG: dataset size, strength, share of pairs with t, share of pairs with v. None: no settings."""
    if settings.empty:
        return None
    settings = settings.set_index("domain")
    sizes = sorted(settings["size"].unique())

    def size(axes: Axes, colours: Colours) -> None:
        label, title = "image-text pairs in a dataset", "Dataset size"
        if len(sizes) > MOST_SIZES:
            _histogram(axes, settings["size"], _edges(sizes[-1]), colours, label, title)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        else:
            _named(axes, settings["size"].map(sizes.index), [f"{n:,}" for n in sizes], colours, label, title)

    def strength(axes: Axes, colours: Colours) -> None:
        steps = [BAR_STEP * (k - 0.5) for k in range(round(1 / BAR_STEP) + 2)]
        label, title = "Cramér's V reached (0 to 1)", "Strength of the association"
        _histogram(axes, settings["strength"], steps, colours, label, title)
        axes.set_xlim(0, 1)
        axes.set_xticks([k / 10 for k in range(11)])

    def error(axes: Axes, colours: Colours) -> None:
        label, title = "share of pairs with the planted error t", "Frequency of the textual error"
        _shares(axes, settings["error_share"], colours, label, title)

    def feature(axes: Axes, colours: Colours) -> None:
        label, title = "share of pairs whose image shows v", "Frequency of the visual feature"
        _shares(axes, settings["feature_share"], colours, label, title)

    return _figure([size, strength, error, feature], settings, settings.index)


def features(settings: pd.DataFrame, *, note: str = "") -> bytes | None:
    """Figure 7 as PNG: mean area of v, settings per sampling category. None: neither is known of any setting.

    A setting with several categories counts in each. `note` stands below the panels.
    """
    settings = settings.set_index("domain")
    areas, tags = settings["feature_area"].dropna(), settings["strategies"].explode().dropna()
    names = [*STRATEGIES, *sorted(set(tags) - set(STRATEGIES))]

    def area(axes: Axes, colours: Colours) -> None:
        _shares(axes, areas, colours, "mean share of the image area that v takes", "Size of the visual feature")

    def category(axes: Axes, colours: Colours) -> None:
        _named(axes, tags.map(names.index), names, colours, "sampling category of (t, v)", "Sampling category")

    panels = [*([area] if len(areas) else []), *([category] if len(tags) else [])]
    return _figure(panels, settings, [*areas.index, *tags.index], note)


def _edges(largest: float, bars: int = 30) -> list[float]:
    """Edges of about `bars` equal bars from 0 to past `largest`, each a round number wide (1, 2, 2.5 or 5 x 10^k)."""
    least = (largest or 1) / bars
    power = 10.0 ** int(f"{least:e}".split("e")[1])
    width = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= least * (1 - 1e-9))
    return [width * k for k in range(int(largest / width + 1e-9) + 2)]


def _shares(axes: Axes, values: pd.Series, colours: Colours, label: str, title: str) -> None:
    from matplotlib.ticker import PercentFormatter

    edges = _edges(values.max())
    _histogram(axes, values, edges, colours, f"{label} (%)", title)
    axes.set_xlim(0, edges[-1])
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))


def _named(axes: Axes, places: pd.Series, names: Sequence[str], colours: Colours, label: str, title: str) -> None:
    """A bar for each name."""
    edges = [k - 0.5 for k in range(len(names) + 1)]
    _histogram(axes, places, edges, colours, label, title, filled=0.47)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.75, len(names) - 0.25)


def _histogram(
    axes: Axes, values: pd.Series, edges: list[float], colours: Colours, label: str, title: str, filled: float = 0.94
) -> None:
    """Bars between `edges`, each as wide as `filled` of the room, one domain on top of the other."""
    from matplotlib.ticker import MaxNLocator

    own = [values[values.index == domain].to_numpy() for domain in colours]
    axes.hist(own, edges, color=list(colours.values()), stacked=True, rwidth=filled)
    axes.set(xlabel=label, ylabel="settings", title=title)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.tick_params(axis="x", length=3)
    axes.tick_params(axis="y", length=0)


def _figure(panels: Sequence[Panel], settings: pd.DataFrame, shown: Iterable[str], note: str = "") -> bytes | None:
    """PNG of the panels, two a row; a domain has the same colour in every figure, and a legend names those shown."""
    if not panels:
        return None
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    colours = {d: COLOURS[k % len(COLOURS)] for k, d in enumerate(sorted(set(settings.index)))}
    rows, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a reader's own settings shall not change the picture
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(4.8 * columns, 3.1 * rows), dpi=150, facecolor="white", layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr, call-arg]
        for place, panel in enumerate(panels, 1):
            panel(figure.add_subplot(rows, columns, place), colours)
        if len(colours) > 1:
            names = sorted(set(shown))
            handles = [Patch(color=colours[name], label=name) for name in names]
            figure.legend(handles=handles, loc="outside upper center", ncols=min(len(names), 5))
        if note:
            lines = "\n".join(textwrap.wrap(note, 75 * columns))
            figure.supxlabel(lines, x=0.01, ha="left", fontsize=8, color="#666666")
        png = io.BytesIO()
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    return png.getvalue()
