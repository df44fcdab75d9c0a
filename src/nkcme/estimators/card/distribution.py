"""The distribution that CARD predicts: samples of the diffusion, which can draw more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax import Array
from sklearn.utils import check_random_state

from nkcme.distributions.base import as_rows, checked_size
from nkcme.distributions.sample import Draws

#: Inputs (n_rows, p), a number of samples and a key -> samples (size, n_rows, d) in units of y.
Sampler = Callable[[np.ndarray, int, Array], np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class DiffusionSamples(Draws):
    """Samples of a diffusion at inputs ``x`` (n_rows, p). `rvs` draws new ones."""

    x: np.ndarray
    sampler: Sampler

    def __getitem__(self, rows: Any) -> DiffusionSamples:
        chosen = as_rows(rows)
        return replace(self, draws=self.draws[:, chosen], x=self.x[chosen])

    def rvs(self, size: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw new samples (size, n_rows[, d]), independent between rows."""
        return new_samples(self.sampler, self.x, size, check_random_state(random_state))


def new_samples(
    sampler: Sampler, x: np.ndarray, size: int, rng: np.random.RandomState
) -> np.ndarray:
    """Independent samples (size, n_rows[, d])."""
    samples = sampler(x, checked_size(size), jax.random.key(int(rng.randint(2**31 - 1))))
    return samples[..., 0] if samples.shape[2] == 1 else samples
