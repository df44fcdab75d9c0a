"""The distribution that CARD predicts: samples of the diffusion, which can draw more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax import Array

from nkcme.distributions.checks import as_rows
from nkcme.distributions.sample import SampleDistribution

#: Inputs (n_rows, p), a number of samples and a key -> samples (size, n_rows, d) in units of y.
Sampler = Callable[[np.ndarray, int, Array], np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class DiffusionSamples(SampleDistribution):
    """Samples of a diffusion at inputs ``x`` (n_rows, p). `rvs` draws new ones."""

    x: np.ndarray
    sampler: Sampler

    def __getitem__(self, rows: Any) -> DiffusionSamples:
        chosen = as_rows(rows)
        return replace(self, draws=self.draws[:, chosen], x=self.x[chosen])

    def _rvs(self, size: int, rng: np.random.RandomState) -> np.ndarray:
        return new_samples(self.sampler, self.x, size, rng)


def new_samples(
    sampler: Sampler, x: np.ndarray, size: int, rng: np.random.RandomState
) -> np.ndarray:
    """Samples (size, n_rows, d), independent between rows."""
    return sampler(x, size, jax.random.key(int(rng.randint(2**31 - 1))))
