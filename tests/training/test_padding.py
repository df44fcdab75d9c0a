"""Sizes for compiled programs, and arrays padded to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkcme.training.padding import eighth_larger, pad_to, padded_width, power_of_two


@given(st.integers(0, 10_000_000))
def test_powers_of_two_are_the_next_ones(n):
    size = power_of_two(n)
    assert size >= max(n, 64)
    assert size & (size - 1) == 0
    assert size == 64 or size < 2 * n


@pytest.mark.parametrize(("n", "size"), [(0, 8), (8, 8), (9, 64), (64, 64), (65, 128)])
def test_tiny_arrays_may_have_a_smaller_size(n, size):
    assert power_of_two(n, tiny=8) == size


@given(st.integers(0, 10_000_000), st.sampled_from([64, 256]))
def test_finer_sizes_add_an_eighth_at_most(n, least):
    size = eighth_larger(n, least=least)
    assert size >= max(n, 1)
    assert size - n < max(n / 8 + 1, least + 1)
    assert size % least == 0


def test_finer_sizes_are_few():
    assert len({eighth_larger(n) for n in range(100_000)}) < 110


@pytest.mark.parametrize(
    ("fill", "expected"),
    [("zero", [1, 2, 0, 0]), ("first", [1, 2, 1, 1]), ("last", [1, 2, 2, 2])],
)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_arrays_are_padded_at_the_end_of_an_axis(fill, expected, axis):
    array = np.stack([np.array([1, 2])] * 3, axis=1 - axis % 2)
    padded = pad_to(array, 4, axis=axis, fill=fill)
    np.testing.assert_array_equal(np.moveaxis(padded, axis, 0), np.array([expected] * 3).T)
    assert padded.dtype == array.dtype


def test_nothing_is_padded_where_nothing_is_missing_or_no_entry_can_be_repeated():
    array = np.ones((4, 2))
    assert pad_to(array, 4) is array
    assert pad_to(np.ones((0, 2)), 4, fill="first").shape == (0, 2)
    assert pad_to(np.ones((0, 2)), 4).shape == (4, 2)


@given(st.integers(1, 3000))
def test_tables_of_many_widths_share_few(n):
    width = padded_width(n)
    assert width >= n
    assert width <= max(32, 2 * n) if n <= 64 else width - n < max(n / 8 + 1, 65)


def test_widths_are_few():
    assert {padded_width(n) for n in range(1, 65)} == {32, 64}
