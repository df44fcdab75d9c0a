"""Gauss-Legendre quadrature over the whole line, for tests: exact where an integrand is smooth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np


def line(breaks: Sequence[float], n: int = 100, tail: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights; the integrand may have kinks and steps at ``breaks`` only.

    Beyond the outermost breaks x = b +- tail t / (1 - t) brings the rest of the line to (0, 1), so
    heavy tails count in full.
    """
    t, w = np.polynomial.legendre.leggauss(n)
    t, w = 0.5 * (t + 1.0), 0.5 * w
    beyond, beyond_weight = tail * t / (1.0 - t), tail * w / (1.0 - t) ** 2
    inner = np.unique(np.asarray(breaks, float))
    pieces = [(inner[0] - beyond[::-1], beyond_weight[::-1])]
    pieces += [(a + (b - a) * t, (b - a) * w) for a, b in itertools.pairwise(inner)]
    pieces += [(inner[-1] + beyond, beyond_weight)]
    x, weight = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return x, weight


def upto(z: float, breaks: Sequence[float], **options: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the half line below ``z``."""
    x, weight = line([*breaks, z], **options)  # type: ignore[arg-type]
    return x[x < z], weight[x < z]


def plane(breaks: Sequence[float], n: int = 60, tail: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (points, 2) and weights of the plane, the product of two lines."""
    x, weight = line(breaks, n, tail)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    return points, np.outer(weight, weight).ravel()
