"""Names of devices and of numbers, checked as text, so that a wrong one is told before any library is imported."""

from __future__ import annotations

import re

from symbal_hf.core.errors import BadData

DTYPES = ("float32", "bfloat16", "float16")
DEVICE = re.compile(r"auto|cpu|mps|(cuda|xpu)(:\d+)?")


def check_device(device: str) -> str:
    """The device, if there could be one of that name; whether this machine has it is not looked up.

    Args:
        device: "auto", "cpu", "mps", "cuda" or "xpu"; the last two may name one of several, as in "cuda:1".

    Raises:
        BadData: no such name.
    """
    if not isinstance(device, str) or not DEVICE.fullmatch(device):
        raise BadData(f"no device {device!r}; give 'auto', 'cpu', 'cuda', 'cuda:N', 'mps', 'xpu' or 'xpu:N'.")
    return device


def check_dtype(dtype: str) -> str:
    """The numbers that weights are held in, if there are such: "auto" or one of `DTYPES`.

    Raises:
        BadData: no such name.
    """
    if dtype not in ("auto", *DTYPES):
        raise BadData(f"no dtype {dtype!r}; available: 'auto', {', '.join(map(repr, DTYPES))}.")
    return dtype
