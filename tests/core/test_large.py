"""Arrays on disk behave as those in memory, take no memory when they are let go, and leave nothing behind."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbal_hf.core.arrays import release, without, zeros


def test_a_large_array_is_on_disk_and_its_file_is_nobody_s(tmp_path):
    small, large = zeros((4, 8), np.float16), zeros((4, 8), np.float16, folder=tmp_path / "new", in_memory=10)
    assert not isinstance(small, np.memmap) and isinstance(large, np.memmap)
    assert (large == 0).all() and large.shape == (4, 8) and list((tmp_path / "new").iterdir()) == []
    large[:] = np.arange(32).reshape(4, 8)
    release(large)
    release(small)
    assert large.tolist() == np.arange(32).reshape(4, 8).tolist()
    assert large[:2].sum() == 120


@given(st.integers(0, 40), st.data())
def test_rows_that_are_left_out_leave_the_others_in_order(n, data):
    values = np.arange(n * 3, dtype=np.float16).reshape(n, 3)
    bad = data.draw(st.sets(st.integers(0, max(n - 1, 0)), max_size=n))
    bad = sorted(row for row in bad if row < n)
    there = zeros((n, 3), np.float16, in_memory=-1 if n else 0)
    there[:] = values
    assert without(there, bad).tolist() == np.delete(values, bad, axis=0).tolist()
