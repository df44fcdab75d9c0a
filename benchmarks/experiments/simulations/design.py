"""A simulated table: how inputs are drawn, the true law of Y at them, and what Y can be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.experiments.simulations.laws import Law, multiple

#: Rows and digits behind the digest of a design. The last digits may differ between machines.
_DIGEST_ROWS, _DIGEST_DIGITS = 50, 6

Inputs = Callable[[int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Possible:
    """What Y can be: from ``lower`` to ``upper``, and only multiples of ``step`` where it is set.

    ``point_masses`` are the values whose predicted probabilities are compared with the truth.
    """

    lower: float = -np.inf
    upper: float = np.inf
    step: float | None = None
    point_masses: tuple[float, ...] = ()

    def between(self, low: float, high: float) -> np.ndarray:
        """The multiples of the step from ``low`` to ``high``, within the bounds."""
        assert self.step is not None
        first = np.ceil(max(low, self.lower) / self.step - 1e-6)
        last = np.floor(min(high, self.upper) / self.step + 1e-6)
        return multiple(np.arange(first, last + 1), self.step)


@dataclass(frozen=True)
class Design:
    """A simulated table.

    Attributes
    ----------
    name : str
    family : str
        What it measures: one of the keys of `simulation_specs.FAMILIES`.
    n_train : int
        Training rows.
    inputs : function
        From a number of rows and a generator to inputs (n_rows, n_columns).
    law : function
        From inputs to the true `Law` of Y at them.
    possible : Possible
    shifted_inputs : function, optional
        Like ``inputs``, for test rows where no training row is.
    """

    name: str
    family: str
    n_train: int
    inputs: Inputs
    law: Callable[[np.ndarray], Law]
    possible: Possible = Possible()
    shifted_inputs: Inputs | None = None

    def make(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """X (n, n_columns) and y (n,)."""
        X = self.inputs(n, rng)
        return X, self.outputs(X, rng)

    def outputs(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One y per row of X, (n,)."""
        return self.law(X).rvs(len(X), 1, rng)[:, 0]

    def digest(self) -> str:
        """A hash of some rows: it changes with the definition, so that old rows do not match."""
        rng = np.random.default_rng(0)
        tables = [*self.make(_DIGEST_ROWS, rng)]
        if self.shifted_inputs is not None:
            tables.append(self.shifted_inputs(_DIGEST_ROWS, rng))
        # Adding zero: a rounded -1e-9 is -0.0, which has other bytes than 0.0.
        text = b"".join((np.round(part, _DIGEST_DIGITS) + 0.0).tobytes() for part in tables)
        return hashlib.sha256(text).hexdigest()[:16]
