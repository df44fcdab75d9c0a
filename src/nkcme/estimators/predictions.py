"""The methods that predict, of estimators and of models that `nkcme.runtime` loads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions.base import Distribution
from nkcme.distributions.blocks import BLOCK_ROWS, map_rows
from nkcme.distributions.checks import as_random_state, checked_coverage
from nkcme.errors import NkcmeError
from nkcme.tables.encoding import TableEncoder


class PredictionMethods:
    """What can be asked of a fitted model, by the distributions at encoded inputs."""

    y_ndim_: int
    encoder_: TableEncoder
    target_name_: str | None

    @abstractmethod
    def _encode(self, X: Any) -> np.ndarray:
        """The inputs (n, p) of a table, after checks."""

    @abstractmethod
    def _distribution(self, x: np.ndarray) -> Distribution:
        """The distributions at encoded inputs (n, p), in units of y."""

    def predict_dist(self, X: Any) -> Distribution:
        """Predict P(y | x) for each row of X.

        Parameters
        ----------
        X : table with the columns of `fit`

        Returns
        -------
        Distribution
            One distribution per row, with `pdf`, `cdf`, `ppf`, `interval`, `rvs`, `crps`, ...
        """
        return self._distribution(self._encode(X))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the conditional mean.

        Returns
        -------
        array with the shape of the y of `fit`
        """
        return self._as_fitted(self._stream(X, lambda dist: dist.mean()))

    def predict_var(self, X: Any) -> np.ndarray:
        """Predict the conditional variance.

        Returns
        -------
        array with the shape of the y of `fit`
        """
        return self._as_fitted(self._stream(X, lambda dist: dist.var()))

    def predict_quantiles(
        self, X: Any, alpha: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> np.ndarray:
        """Predict quantiles. They never cross.

        Parameters
        ----------
        X : table with the columns of `fit`
        alpha : list of float
            Levels from 0 to 1.

        Returns
        -------
        array (n_rows, len(alpha))
        """
        return self._stream(X, lambda dist: dist.ppf(alpha))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict the central interval that holds y with probability ``coverage``.

        Returns
        -------
        array (n_rows, 2)
            Lower and upper ends.
        """
        level = checked_coverage(coverage)
        return self._stream(X, lambda dist: dist.interval(level))

    def sample(
        self,
        X: Any,
        n_samples: int = 100,
        *,
        method: str = "independent",
        random_state: Any = None,
    ) -> np.ndarray:
        """Draw samples of y given x.

        Parameters
        ----------
        X : table with the columns of `fit`
        n_samples : int
        method : {"independent", "herd"}
            "independent" draws at random. "herd" gives deterministic super-samples by kernel
            herding, which represent the distribution better with the same number of samples.
        random_state : int, RandomState or None

        Returns
        -------
        array (n_samples, n_rows[, d])
        """
        if method == "herd":
            return self._stream(X, lambda dist: self._herd(dist, n_samples), axis=1)
        if method != "independent":
            raise NkcmeError(f'method must be "independent" or "herd"; got {method!r}')
        rng = as_random_state(random_state)
        return map_rows(
            lambda x: self._rvs(x, n_samples, rng), self._encode(X), block_rows=BLOCK_ROWS, axis=1
        )

    def _rvs(self, x: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
        """Samples at encoded inputs; overridden where they need no whole distribution."""
        return self._distribution(x).rvs(size, rng)

    def _herd(self, dist: Distribution, n_samples: int) -> np.ndarray:
        raise NkcmeError(f"{type(self).__name__} has no embedding to herd from")

    def _stream(
        self, X: Any, ask: Callable[[Distribution], np.ndarray], axis: int = 0
    ) -> np.ndarray:
        """Predict block after block of rows, so that memory does not grow with their number."""
        return map_rows(
            lambda x: ask(self._distribution(x)), self._encode(X), block_rows=BLOCK_ROWS, axis=axis
        )

    def _as_fitted(self, values: np.ndarray) -> np.ndarray:
        return values[:, None] if self.y_ndim_ == 2 and values.ndim == 1 else values
