"""Roots of increasing functions by Newton's method within a bracket, for whole arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Maps points and the mask of those still searched to errors and Newton's next points. What it
#: returns outside the mask is ignored.
Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def bracketed_newton(
    evaluate: Evaluate,
    start: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    tolerance: np.ndarray,
    active: np.ndarray | None = None,
    bisect_every: int = 3,
    max_steps: int = 5000,
) -> np.ndarray:
    """Points at which an increasing function is zero, each within its bracket [low, high].

    A step is Newton's where that stays inside the bracket, and a bisection otherwise. Every
    ``bisect_every``-th step is a bisection, so that the search ends even where Newton's steps make
    no progress. An element is finished when its error is within ``tolerance`` or when no float is
    left between the ends of its bracket. Elements outside ``active`` keep their start.
    """
    z = np.array(start, np.float64)
    low, high = (np.broadcast_to(end, z.shape) for end in (low, high))
    active = np.ones(z.shape, bool) if active is None else np.broadcast_to(active, z.shape)
    for step in range(max_steps):
        if not active.any():
            break
        error, newton = evaluate(z, active)
        low = np.where(active & (error <= 0), z, low)
        high = np.where(active & (error >= 0), z, high)
        middle = 0.5 * low + 0.5 * high
        active = active & (np.abs(error) > tolerance) & (low < middle) & (middle < high)
        takes_newton = (newton > low) & (newton < high) & ((step + 1) % bisect_every != 0)
        z = np.where(active, np.where(takes_newton, newton, middle), z)
    return z
