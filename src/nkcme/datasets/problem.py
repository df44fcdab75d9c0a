"""Problems with a known true conditional distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nkcme.datasets.mixture import FloatArray, Mixture
from nkcme.errors import NkcmeError

# The paper's protocol: the number of training rows, and of evaluation points over the range of x.
N_TRAIN = 5000
N_EVALUATION_POINTS = 200


class Law(Protocol):
    """A known law of Y, one for each x it was made for."""

    def pdf(self, y: FloatArray) -> FloatArray: ...
    def rvs(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray: ...


@dataclass(frozen=True)
class Problem:
    """A problem of one or several outputs: x uniform on a range, and Y | x of a known law.

    Parameters
    ----------
    name
        The name of the problem.
    x_range
        The lowest and the highest x.
    conditional
        A function from x to the law of Y at x, an object with `pdf` and `rvs`.
    """

    name: str
    x_range: tuple[float, float]
    conditional: Callable[[FloatArray], Law]

    def sample_x(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent inputs.

        Parameters
        ----------
        n
            Number of inputs.
        rng
            Source of randomness.

        Returns
        -------
        ndarray of shape (n,)
        """
        return rng.uniform(*self.x_range, size=n)

    def sample(
        self, x: npt.ArrayLike, rng: np.random.Generator, n_draws: int | None = None
    ) -> FloatArray:
        """Draw independent samples of Y at each x.

        Parameters
        ----------
        x
            Inputs of shape (n_rows,).
        rng
            Source of randomness.
        n_draws
            Samples for each row; None for one without an axis for it.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_draws, n_rows)
            Several outputs are a last axis.

        Raises
        ------
        NkcmeError
            If x is outside of the range or has another shape.
        """
        inputs = self._rows(x)
        size = inputs.shape if n_draws is None else (n_draws, *inputs.shape)
        return self.conditional(inputs).rvs(size, rng)

    def pdf(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Density p(y | x).

        Parameters
        ----------
        x, y
            Arrays that broadcast against each other. Several outputs are the last axis of y.

        Returns
        -------
        ndarray of the common shape
            Infinite at a point mass, such as those of bimodal at x = 0.
        """
        return self.conditional(self._in_range(x)).pdf(np.asarray(y, dtype=np.float64))

    def make(self, n: int = N_TRAIN, seed: int = 0) -> tuple[FloatArray, FloatArray]:
        """Make a training table.

        Parameters
        ----------
        n
            Number of rows.
        seed
            Random seed: the same seed gives the same table.

        Returns
        -------
        X : ndarray of shape (n, 1)
        y : ndarray of shape (n,), or (n, n_outputs) for several outputs

        Examples
        --------
        >>> from nkcme.datasets import load_toy
        >>> X, y = load_toy("ring").make(n=100, seed=0)
        >>> X.shape, y.shape
        ((100, 1), (100,))
        """
        rng = np.random.default_rng(seed)
        x = self.sample_x(n, rng)
        return x[:, None], self.sample(x, rng)

    def evaluation_points(self, n: int = N_EVALUATION_POINTS) -> FloatArray:
        """Evenly spaced inputs over the closed range, of shape (n,)."""
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
    """A problem of one output, with a known distribution function and quantiles too.

    Parameters
    ----------
    name
        The name of the problem.
    x_range
        The lowest and the highest x.
    conditional
        A function from x to the `Mixture` that is the law of Y at x.

    Examples
    --------
    >>> from nkcme.datasets import load_toy
    >>> ring = load_toy("ring")
    >>> ring.ppf([0.0], [0.5]).shape
    (1, 1)
    """

    conditional: Callable[[FloatArray], Mixture]

    def cdf(self, x: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
        """Distribution function P(Y <= y | x).

        Parameters
        ----------
        x, y
            Arrays that broadcast against each other.

        Returns
        -------
        ndarray of the common shape
        """
        return self.conditional(self._in_range(x)).cdf(np.asarray(y, dtype=np.float64))

    def ppf(self, x: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
        """Quantiles of Y.

        Where the distribution function is flat to rounding (between two modes far apart), every y
        of the flat stretch is a quantile, and its lower end is returned.

        Parameters
        ----------
        x
            Inputs of shape (n_rows,).
        q
            Levels in [0, 1] of shape (n_q,).

        Returns
        -------
        ndarray of shape (n_rows, n_q)

        Raises
        ------
        NkcmeError
            If x is outside of the range, or a level outside of [0, 1].
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim != 1 or not np.all((levels >= 0) & (levels <= 1)):
            raise NkcmeError(f"q must be levels in [0, 1] of shape (n_q,), got {levels.tolist()}")
        return self.conditional(self._rows(x)[:, None]).ppf(levels[None, :])
