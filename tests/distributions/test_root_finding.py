"""Roots of increasing functions, also where Newton's method alone fails."""

import numpy as np
import pytest

from nkcme.distributions.root_finding import bracketed_newton


def search(f, slope, start, low, high, **options):
    """The roots, and how many evaluations they took."""
    calls = []

    def evaluate(z, active):
        calls.append(active.copy())
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return f(z), z - f(z) / slope(z)

    options = {"tolerance": 1e-13} | options
    roots = bracketed_newton(evaluate, np.asarray(start), low, high, **options)
    return roots, calls


def test_a_smooth_function_takes_few_steps():
    target = np.array([[0.5, 1.0, 2.0], [3.0, 5.0, 8.0]])
    cube, slope = lambda z: z**3 - target, lambda z: 3 * z**2
    roots, calls = search(cube, slope, target, 0.0, 10.0, tolerance=1e-9, bisect_every=50)
    np.testing.assert_allclose(roots, np.cbrt(target), rtol=1e-9)
    assert len(calls) < 12


def test_flat_and_infinite_slopes_end_by_bisection():
    # arctan sends Newton's steps away; a zero slope gives no step at all.
    start, low, high = np.array([50.0, -9.0]), np.full(2, -100.0), np.full(2, 80.0)
    roots, _ = search(np.arctan, lambda z: 1 / (1 + z**2), start, low, high)
    np.testing.assert_allclose(roots, 0.0, atol=1e-12)
    roots, _ = search(lambda z: np.sign(z - 3.0), np.zeros_like, start, low, high)
    np.testing.assert_allclose(roots, 3.0, rtol=1e-15)  # a jump: the bracket closes on it


@pytest.mark.parametrize("bisect_every", [2, 3, 50])
def test_the_bracket_is_never_left(bisect_every):
    seen = []

    def f(z):
        seen.append(z.copy())
        return np.exp(z) - 2.0

    search(f, np.exp, [0.1], np.array([0.0]), np.array([1.0]), bisect_every=bisect_every)
    assert np.all((np.array(seen) >= 0.0) & (np.array(seen) <= 1.0))


def test_elements_outside_the_mask_keep_their_start_and_finished_ones_stay():
    active = np.array([True, False, True])
    roots, calls = search(
        lambda z: z - np.array([1.0, 2.0, 0.3]),
        np.ones_like,
        [1.0, 7.0, 0.9],
        0.0,
        10.0,
        active=active,
    )
    np.testing.assert_allclose(roots, [1.0, 7.0, 0.3], rtol=1e-12)
    np.testing.assert_array_equal(calls[0], active)
    np.testing.assert_array_equal(calls[1], [False, False, True])


def test_the_number_of_steps_can_be_limited():
    _, calls = search(lambda z: z**9, lambda z: 9 * z**8, [1.0], -2.0, 2.0, max_steps=4)
    assert len(calls) == 4
