"""The paper's three toy conditionals (appendix C) with their exact truth, and its evaluation.

Each `Toy` knows P(Y | x) in full: it samples it and gives its density, distribution function and
quantiles to rounding. So a model can be compared with the truth itself, and the score of a perfect
model on the paper's benchmark, the floor, can be computed (`was1_floor`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri
from scipy.stats import skewnorm, uniform

from nkcme.errors import NkcmeError
from nkcme.metrics import was1

FloatArray = npt.NDArray[np.float64]

# The paper's protocol: training rows, evaluation points over the input range, draws at each.
N_TRAIN = 5000
N_EVALUATION_POINTS = 200
N_DRAWS = 50

# Marks the stream of fresh true draws, so that it never meets the stream of the training data.
_TRUTH_STREAM = 1

# Halvings of a quantile's bracket: it is a few units wide, so 60 take it below float64's spacing.
_BISECTIONS = 60


class Component(Protocol):
    """A univariate law with array parameters that broadcast; scipy's frozen laws are such."""

    def pdf(self, y: FloatArray) -> FloatArray: ...
    def cdf(self, y: FloatArray) -> FloatArray: ...
    def ppf(self, q: FloatArray) -> FloatArray: ...
    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class Gaussian:
    """N(loc, scale^2) where a scale of zero is legal: a point mass at loc.

    scipy's normal gives NaN there. The point mass has no density; its `pdf` is infinite at loc and
    zero elsewhere.
    """

    loc: FloatArray
    scale: FloatArray

    def pdf(self, y: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        with np.errstate(over="ignore"):
            z = (y - self.loc) / scale
            density = np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * scale)
        return np.where(is_point, np.where(y == self.loc, np.inf, 0.0), density)

    def cdf(self, y: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        with np.errstate(over="ignore"):
            z = (y - self.loc) / scale
        return np.where(is_point, np.where(y >= self.loc, 1.0, 0.0), ndtr(z))

    def ppf(self, q: FloatArray) -> FloatArray:
        is_point, scale = self._split_scale()
        return np.where(is_point, self.loc, self.loc + scale * ndtri(q))

    def rvs(self, size: tuple[int, ...], random_state: np.random.Generator) -> FloatArray:
        return self.loc + self.scale * random_state.standard_normal(size)

    def _split_scale(self) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Where the law is a point mass, and a scale that is safe to divide by everywhere."""
        is_point = self.scale == 0
        return is_point, np.where(is_point, 1.0, self.scale)


@dataclass(frozen=True)
class Mixture:
    """Σ_k weights_k · components_k, where weights and components are arrays of the shape of x."""

    weights: tuple[FloatArray, ...]
    components: tuple[Component, ...]

    def pdf(self, y: FloatArray) -> FloatArray:
        return self._average([component.pdf(y) for component in self.components])

    def cdf(self, y: FloatArray) -> FloatArray:
        return self._average([component.cdf(y) for component in self.components])

    def ppf(self, q: FloatArray) -> FloatArray:
        """The smallest y whose floating-point cdf(y) reaches q, by bisection.

        The quantile of a mixture lies between the smallest and the largest of its components', so
        these bracket it; for a single component the bracket is already the answer.
        """
        quantiles = np.stack(np.broadcast_arrays(*(law.ppf(q) for law in self.components)))
        present = np.stack(np.broadcast_arrays(*self.weights)) > 0
        low = np.min(quantiles, axis=0, where=present, initial=np.inf)
        high = np.max(quantiles, axis=0, where=present, initial=-np.inf)
        # The ends of the support, which may be infinite, need no search; nor does an atom at low.
        low = np.where(q == 1, high, low)
        high = np.where((q == 0) | (self.cdf(low) >= q), low, high)
        for _ in range(_BISECTIONS):
            if not np.any(low < high):
                break
            middle = low / 2 + high / 2
            reaches_q = self.cdf(middle) >= q
            low = np.where(reaches_q, low, middle)
            high = np.where(reaches_q, middle, high)
        return high

    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Independent draws; the last axes of size are the shape of the weights."""
        chooser = rng.random(size)
        draws = self.components[0].rvs(size=size, random_state=rng)
        below = self.weights[0]
        for weight, law in zip(self.weights[1:], self.components[1:], strict=True):
            draws = np.where(chooser >= below, law.rvs(size=size, random_state=rng), draws)
            below = below + weight
        return draws

    def _average(self, values: list[FloatArray]) -> FloatArray:
        return sum(
            (weight * value for weight, value in zip(self.weights, values, strict=True)),
            start=np.zeros(()),
        )


class Law(Protocol):
    """A known law of Y, one for each of the x it was made for."""

    def pdf(self, y: FloatArray) -> FloatArray: ...
    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class Problem:
    """x uniform on `x_range`, and Y | x the known law `conditional(x)`.

    `pdf` follows NumPy: x and y broadcast against each other. The others take x as (n_rows,) and
    keep the project's axes: draws first. Several outputs are a last axis.
    """

    name: str
    x_range: tuple[float, float]
    conditional: Callable[[FloatArray], Law]

    def sample_x(self, n: int, rng: np.random.Generator) -> FloatArray:
        """n independent inputs, (n,)."""
        return rng.uniform(*self.x_range, size=n)

    def sample(
        self, x: npt.ArrayLike, rng: np.random.Generator, n_draws: int | None = None
    ) -> FloatArray:
        """Independent true draws of Y at each x: (n_rows[, d]), or (n_draws, n_rows[, d])."""
        inputs = self._rows(x)
        size = inputs.shape if n_draws is None else (n_draws, *inputs.shape)
        return self.conditional(inputs).rvs(size, rng)

    def pdf(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Density p(y | x); infinite at the point masses of bimodal's x = 0."""
        return self.conditional(self._in_range(x)).pdf(np.asarray(y, dtype=np.float64))

    def make(self, n: int = N_TRAIN, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """A training table: X (n, 1) and y (n,) or (n, d), from the generator of this seed."""
        rng = np.random.default_rng(seed)
        x = self.sample_x(n, rng)
        return x[:, None], self.sample(x, rng)

    def evaluation_points(self, n: int = N_EVALUATION_POINTS) -> FloatArray:
        """n evenly spaced inputs over the closed range, (n,)."""
        return np.linspace(*self.x_range, n)

    def _in_range(self, x: npt.ArrayLike) -> FloatArray:
        inputs = np.asarray(x, dtype=np.float64)
        low, high = self.x_range
        if not np.all((inputs >= low) & (inputs <= high)):
            outside = inputs[~((inputs >= low) & (inputs <= high))][0]
            raise NkcmeError(f"x of {self.name} must lie in [{low:g}, {high:g}], got {outside:g}")
        return inputs

    def _rows(self, x: npt.ArrayLike) -> FloatArray:
        inputs = self._in_range(x)
        if inputs.ndim != 1:
            raise NkcmeError(f"x must have shape (n_rows,), got {inputs.shape}")
        return inputs


@dataclass(frozen=True)
class Toy(Problem):
    """A problem of one output, which has a distribution function and quantiles (in the last axis)
    too."""

    conditional: Callable[[FloatArray], Mixture]

    def cdf(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Distribution function P(Y <= y | x)."""
        return self.conditional(self._in_range(x)).cdf(np.asarray(y, dtype=np.float64))

    def ppf(self, x: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of Y at levels q in [0, 1] for each x, (n_rows, n_q).

        Where the distribution function is flat to rounding (between two modes far apart) every y
        of the flat stretch is a quantile, and its lower end is given.
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise NkcmeError(f"q must be levels in [0, 1] of shape (n_q,), got {levels.tolist()}")
        return self.conditional(self._rows(x)[:, None]).ppf(levels[None, :])


def _bimodal(x: FloatArray) -> Mixture:
    """y = 0.2 x + P + ε with P ~ Bernoulli(1 / (1 + exp(-1.5 x))) and ε ~ N(0, (0.05 x)^2)."""
    up, sd = expit(1.5 * x), np.abs(0.05 * x)
    return Mixture((1 - up, up), (Gaussian(0.2 * x, sd), Gaussian(0.2 * x + 1, sd)))


def _skewed(x: FloatArray) -> Mixture:
    """y ~ SkewNormal(ξ = 0.1 x, ω = 0.1 |x| + 0.05, α = -8 + 8 / (1 + exp(-x)))."""
    law = skewnorm(-8 + 8 * expit(x), loc=0.1 * x, scale=0.1 * np.abs(x) + 0.05)
    return Mixture((np.ones_like(x),), (law,))


def _ring(x: FloatArray) -> Mixture:
    """y = ±2 sin(arccos(x / 2)) + N(0, 0.1^2), the signs equally likely: a noisy circle.

    For |x| <= 1 half the mass is U(-1, 1) instead. 2 sin(arccos(x / 2)) is sqrt(4 - x^2).
    """
    height, sd = np.sqrt(4 - x**2), np.full_like(x, 0.1)
    inside = np.where(np.abs(x) <= 1, 0.5, 0.0)
    on_arc = (1 - inside) / 2
    return Mixture(
        (on_arc, on_arc, inside),
        (Gaussian(-height, sd), Gaussian(height, sd), uniform(-1, 2)),
    )


TOYS: dict[str, Toy] = {
    toy.name: toy
    for toy in (
        Toy("bimodal", (-5.0, 5.0), _bimodal),
        Toy("skewed", (-5.0, 5.0), _skewed),
        Toy("ring", (-2.0, 2.0), _ring),
    )
}


def load_toy(name: str) -> Toy:
    """The toy problem of this name."""
    if name not in TOYS:
        raise NkcmeError(f"no toy data set is named {name!r}; there are {', '.join(TOYS)}")
    return TOYS[name]


def evaluate_was1(
    toy: Toy,
    sampler: Callable[[FloatArray], npt.ArrayLike],
    seed: int,
    n_points: int = N_EVALUATION_POINTS,
) -> float:
    """The paper's toy score for one seed: mean W1 over 200 points, 50 draws against 50 true ones.

    `sampler` maps inputs (200, 1) to draws (50, 200). The true draws are fresh: their generator is
    derived from the seed, but independent of the one that `Toy.make` uses for the same seed.
    """
    x = toy.evaluation_points(n_points)
    draws = np.asarray(sampler(x[:, None]))
    if draws.shape != (N_DRAWS, n_points):
        raise NkcmeError(
            f"sampler must give draws of shape {(N_DRAWS, n_points)}, got {draws.shape}"
        )
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_TRUTH_STREAM,)))
    return was1(draws, toy.sample(x, rng, n_draws=N_DRAWS))


def was1_floor(toy: Toy, seeds: Iterable[int] = range(10)) -> float:
    """The score of a perfect model: `evaluate_was1` of the true mid-quantiles, mean over seeds.

    The quantiles at (i + 1/2) / 50 are the best 50 points to stand for the truth; what is left is
    the scatter of the 50 true draws they are compared with.
    """
    levels = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    oracle = toy.ppf(toy.evaluation_points(), levels).T
    return float(np.mean([evaluate_was1(toy, lambda _: oracle, seed) for seed in seeds]))
