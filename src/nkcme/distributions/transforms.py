"""Transforms g of y: what is modelled is g(y), and its law becomes one of y.

A law of log y that is uniform between edges e_j becomes a law of y that is uniform between the
edges exp(e_j), with the same probabilities. Every view of it is a closed form again, and quantiles
at the edges are exact.
"""

from __future__ import annotations

import numpy as np

from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.tails import MAX_SHAPE, Tail

NONE, LOG = "none", "log"
TRANSFORMS = (NONE, LOG)

#: Bins of log y that are wider than this, in standard units, are divided. A density that is even in
#: log y falls in proportion to 1 / y, so the mean of a bin of width w moves by w^2 / 12.
_WIDEST_BIN = 0.1

#: The most parts that all bins are divided into, on top of one each.
_MOST_PARTS = 400

#: Edges in the lower tail: the logarithms of what they leave further down, as shares of the tail.
#: The last is small enough that what lies between it and zero adds nothing to a variance.
_LEFT = -np.log(2.0) * np.array([40.0, 32.0, 24.0, 16.0, 12.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])

#: The least scale of a lower tail: edges do not coincide.
_LEAST_SCALE = 1e-9

#: Logarithms beyond are those of numbers that doubles hardly hold.
_LARGEST_LOG = 700.0


def transformed(y: np.ndarray, transform: str) -> np.ndarray:
    """g(y); minus infinity or NaN where y is not above zero and has no logarithm."""
    if transform == NONE:
        return y
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(y)


def restored(g: np.ndarray, transform: str) -> np.ndarray:
    """The y with this g(y)."""
    return g if transform == NONE else np.exp(np.clip(g, -_LARGEST_LOG, _LARGEST_LOG))


def divided(edges: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (g,) in standard units, and what (n_rows, g) lies below them, with wide bins divided.

    The law stays the same. All rows are divided alike: none depends on the others.
    """
    width = np.diff(edges)
    limit = max(_WIDEST_BIN, float(edges[-1] - edges[0]) / _MOST_PARTS)
    parts = np.maximum(np.ceil(width / limit), 1.0).astype(int)
    if parts.max(initial=1) == 1:
        return edges, below
    first = np.repeat(np.arange(len(width)), parts)
    share = np.concatenate([np.arange(n) / n for n in parts])
    start, step = below[:, :-1], np.diff(below, axis=1)
    return (
        np.append(edges[first] + share * width[first], edges[-1]),
        np.concatenate([start[:, first] + share * step[:, first], below[:, -1:]], axis=1),
    )


def exponential(law: PiecewiseUniform) -> PiecewiseUniform:
    """The law of exp(Z) for Z with this law: all of its mass is above zero.

    An exponential upper tail of scale s beyond the edge E becomes a generalised Pareto tail of
    index s and scale s exp(E): P(Z - E > log(1 + t / exp(E))) = (1 + t / exp(E))^(-1/s). A heavier
    tail of Z has no such form, and y no mean; it counts as the exponential one with the same mean
    excess, which is Hill's estimate of the index. The index is at most `MAX_SHAPE`, so that the
    variance of y exists.

    The lower tail ends at zero. Edges at its quantiles follow it down, and below the last of them
    the density is even: it is positive at every y above zero. Tails of a scale above one count as
    if it were one, which is an even density down to zero: a few rows do not show that the density
    of y is infinite there.
    """
    edges, below = law.edges, law.below
    if law.lower is not None:
        survival = np.exp(_LEFT)
        distance = law.lower.distance(np.broadcast_to(survival, (law.n_rows, len(survival))))
        distance = np.clip(distance, -_LEAST_SCALE * _LEFT, -_LEFT)
        edges = np.concatenate([edges[:, :1] - distance, edges], axis=1)
        below = np.concatenate([law.lower.mass[:, None] * survival, below], axis=1)
    edges = restored(edges, LOG)
    if law.lower is not None:
        zero = np.zeros((law.n_rows, 1))
        edges, below = (np.concatenate([zero, table], axis=1) for table in (edges, below))
    upper = law.upper
    if upper is not None:
        index, _ = upper.moments()
        upper = Tail(upper.mass, index * edges[:, -1], np.minimum(index, MAX_SHAPE))
    return PiecewiseUniform(edges, below, None, upper)


def stretched(law: PiecewiseUniform, factor: np.ndarray) -> PiecewiseUniform:
    """A law of positive y, wider by a factor (n_rows,) around its median c.

    Below c it is log y that is stretched, so that y stays positive: c (y / c)^factor. Above it is
    y, c + factor (y - c), which is the same near c. A stretched logarithm would move an edge at
    twenty times the median to 20^factor times, and means would be those of edges that hardly have
    any probability.
    """
    middle = law.quantiles(np.full((law.n_rows, 1), 0.5))
    by = factor[:, None]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        below = middle * np.exp(by * np.log(law.edges / middle))
    edges = np.where(law.edges < middle, below, middle + by * (law.edges - middle))
    # Rows that are not stretched keep their edges to the last bit.
    edges = np.where(by > 1.0, edges, law.edges)
    upper = law.upper
    if upper is not None:
        upper = Tail(upper.mass, factor * upper.scale, upper.shape)
    return PiecewiseUniform(edges, law.below, None, upper)
