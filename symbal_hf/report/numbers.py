"""How numbers are written for people: the digits that matter, and the exact value beside them."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

NBSP = "\u00a0"
MINUS = "\u2212"
LARGEST = 1e9  # stands for an infinite ratio in files


def as_data(text: str, value: float, name: str) -> Markup:
    """`text` inside <data>, which keeps the exact value beside the rounded one."""
    return Markup('<data class="{}" value="{}">{}</data>').format(name, repr(value), text)


def percent(share: float) -> str:
    """A share in [0, 1] in per cent: one decimal, or two digits within 1 % of either end (0.24 %, 99.76 %)."""
    value = 100 * share
    edge = min(abs(value), abs(100 - value))
    if edge < 1e-9:  # rounding noise of an interval's end
        return f"{value:.0f}{NBSP}%"
    if edge >= 0.995:
        return f"{value:.1f}{NBSP}%"
    return f"{value:.{1 - math.floor(math.log10(edge))}f}".rstrip("0") + f"{NBSP}%"


def p_value(p: float) -> str:
    """Two digits, as in 0.034 or 3.1e-12; a value that underflowed to 0 is given as a bound."""
    if p <= 0:
        return f"<{NBSP}1e-300"
    if p >= 0.001:
        return f"{p:.2g}"
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def number(value: float) -> str:
    """About three digits, with a thousands comma and a real minus sign; infinite from `LARGEST` on."""
    if math.isnan(value):
        return "not defined"
    size = abs(value)
    if size >= LARGEST:
        text = "∞"
    elif size >= 99.95:
        text = f"{size:,.0f}"
    elif size >= 9.995:
        text = f"{size:.1f}"
    elif size >= 0.01 or size == 0:
        text = f"{size:.2f}"
    else:
        text = f"{size:.1g}"
    return MINUS + text if value < 0 else text


def integer(value: Any) -> str:
    """A whole number with thousands commas; anything else as it is written."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def cut(text: str, most: int) -> str:
    """At most `most` characters of `text`, with an ellipsis where some are left out."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
