"""The paper's Figures 6 and 7 (appendix C): what the datasets of a benchmark are like, split by domain."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

Values = Sequence[tuple[str, float]]  # the domain of a setting, and what is drawn of it
Colours = dict[str, str]  # of each domain
Panel = Callable[["Axes", Colours], None]


@dataclass(frozen=True)
class Setting:
    """One dataset with a planted error, as the figures show it.

    Attributes:
        config: its name, without the variant.
        domain: the base that it is made from.
        textual_error: t.
        visual_feature: v.
        size: image-text pairs.
        target: the Cramér's V asked for, in (0, 1].
        strength: the Cramér's V reached, in (0, 1].
        error_share: share of the pairs that carry the planted error, in [0, 1].
        feature_share: share of the pairs that show v, in [0, 1].
        feature_area: mean share of the image that v takes where it is shown, in [0, 1]; None: unknown.
        strategies: how the pair (t, v) was sampled: "random", "popular", "adversarial"; empty: not by category.
    """

    config: str
    domain: str
    textual_error: str
    visual_feature: str
    size: int
    target: float
    strength: float
    error_share: float
    feature_share: float
    feature_area: float | None
    strategies: tuple[str, ...]


def composition(settings: Sequence[Setting]) -> bytes | None:
    """Figure 6 as PNG: dataset size, strength, share of pairs with t, share of pairs with v. None: no settings."""
    if not settings:
        return None
    sizes = sorted({s.size for s in settings})

    def size(axes: Axes, colours: Colours) -> None:
        label, title = "image-text pairs in a dataset", "Dataset size"
        if len(sizes) > MOST_SIZES:
            _histogram(axes, [(s.domain, s.size) for s in settings], _edges(max(sizes)), colours, label, title)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        else:
            places = [(s.domain, sizes.index(s.size)) for s in settings]
            _named(axes, places, [f"{n:,}" for n in sizes], colours, label, title)

    def strength(axes: Axes, colours: Colours) -> None:
        steps = [BAR_STEP * (k - 0.5) for k in range(round(1 / BAR_STEP) + 2)]
        values = [(s.domain, s.strength) for s in settings]
        _histogram(axes, values, steps, colours, "Cramér's V reached (0 to 1)", "Strength of the association")
        axes.set_xlim(0, 1)
        axes.set_xticks([k / 10 for k in range(11)])

    def error(axes: Axes, colours: Colours) -> None:
        values = [(s.domain, s.error_share) for s in settings]
        _shares(axes, values, colours, "share of pairs with the planted error t", "Frequency of the textual error")

    def feature(axes: Axes, colours: Colours) -> None:
        values = [(s.domain, s.feature_share) for s in settings]
        _shares(axes, values, colours, "share of pairs whose image shows v", "Frequency of the visual feature")

    return _figure([size, strength, error, feature], settings, settings)


def features(settings: Sequence[Setting], *, note: str = "") -> bytes | None:
    """Figure 7 as PNG: mean area of v, settings per sampling category. None: neither is known of any setting.

    A setting with several categories counts in each. `note` stands below the panels.
    """
    areas = [(s.domain, s.feature_area) for s in settings if s.feature_area is not None]
    tagged = [s for s in settings if s.strategies]
    names = [*STRATEGIES, *sorted({tag for s in tagged for tag in s.strategies} - set(STRATEGIES))]

    def area(axes: Axes, colours: Colours) -> None:
        _shares(axes, areas, colours, "mean share of the image area that v takes", "Size of the visual feature")

    def category(axes: Axes, colours: Colours) -> None:
        places = [(s.domain, names.index(tag)) for s in tagged for tag in s.strategies]
        _named(axes, places, names, colours, "sampling category of (t, v)", "Sampling category")

    shown = [s for s in settings if s.feature_area is not None or s.strategies]
    return _figure([*([area] if areas else []), *([category] if tagged else [])], settings, shown, note)


def _edges(largest: float, bars: int = 30) -> list[float]:
    """Edges of about `bars` equal bars from 0 to past `largest`, each a round number wide (1, 2, 2.5 or 5 x 10^k)."""
    least = (largest or 1) / bars
    power = 10.0 ** int(f"{least:e}".split("e")[1])
    width = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= least * (1 - 1e-9))
    return [width * k for k in range(int(largest / width + 1e-9) + 2)]


def _shares(axes: Axes, values: Values, colours: Colours, label: str, title: str) -> None:
    from matplotlib.ticker import PercentFormatter

    edges = _edges(max(value for _, value in values))
    _histogram(axes, values, edges, colours, f"{label} (%)", title)
    axes.set_xlim(0, edges[-1])
    axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=""))


def _named(axes: Axes, places: Values, names: Sequence[str], colours: Colours, label: str, title: str) -> None:
    """A bar for each name."""
    edges = [k - 0.5 for k in range(len(names) + 1)]
    _histogram(axes, places, edges, colours, label, title, filled=0.47)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.75, len(names) - 0.25)


def _histogram(
    axes: Axes,
    values: Values,
    edges: list[float],
    colours: Colours,
    label: str,
    title: str,
    filled: float = 0.94,
) -> None:
    """Bars between `edges`, each as wide as `filled` of the room, one domain on top of the other."""
    from matplotlib.ticker import MaxNLocator

    own = [[value for domain, value in values if domain == d] for d in colours]
    axes.hist(own, edges, color=list(colours.values()), stacked=True, rwidth=filled)
    axes.set(xlabel=label, ylabel="settings", title=title)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.tick_params(axis="x", length=3)
    axes.tick_params(axis="y", length=0)


def _figure(
    panels: Sequence[Panel], settings: Sequence[Setting], shown: Sequence[Setting], note: str = ""
) -> bytes | None:
    """PNG of the panels, two a row; a domain has the same colour in every figure, and a legend names those shown."""
    if not panels:
        return None
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    colours = {d: COLOURS[k % len(COLOURS)] for k, d in enumerate(sorted({s.domain for s in settings}))}
    rows, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a reader's own settings shall not change the picture
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(4.8 * columns, 3.1 * rows), dpi=150, facecolor="white", layout="constrained")
        figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr, call-arg]
        for place, panel in enumerate(panels, 1):
            panel(figure.add_subplot(rows, columns, place), colours)
        if len(colours) > 1:
            names = sorted({s.domain for s in shown})
            handles = [Patch(color=colours[name], label=name) for name in names]
            figure.legend(handles=handles, loc="outside upper center", ncols=min(len(names), 5))
        if note:
            lines = "\n".join(textwrap.wrap(note, 75 * columns))
            figure.supxlabel(lines, x=0.01, ha="left", fontsize=8, color="#666666")
        png = io.BytesIO()
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
    return png.getvalue()
