"""MMDQN (Nguyen-Tang et al., 2021): equally weighted particles that the network places."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.sample import SampleDistribution
from nkcme.parameter_checks import need_whole
from nkcme.rl.agents.base import Agent, Outcomes, checked_bandwidths


@dataclass(frozen=True)
class MMDQN(Agent):
    """The mean over Gaussian kernels of the biased squared MMD between particles."""

    kind = "mmdqn"
    n_particles: int = 51
    bandwidths: tuple[float, ...] = tuple(np.linspace(1.0, 100.0, 10).tolist())

    def __post_init__(self) -> None:
        need_whole("n_particles", self.n_particles)
        object.__setattr__(self, "bandwidths", checked_bandwidths(self.bandwidths))

    @property
    def width(self) -> int:
        return self.n_particles

    def value(self, output: Array) -> Array:
        return jnp.mean(output, axis=-1)

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        outcomes: Outcomes | None = None,
    ) -> Array:
        tau = reward[:, None] + discount[:, None] * jax.lax.stop_gradient(target)
        mean = lambda a, b: self._mean_kernel(a[:, :, None] - b[:, None, :])  # noqa: E731
        return mean(output, output) - 2.0 * mean(output, tau) + mean(tau, tau)

    def _mean_kernel(self, difference: Array) -> Array:
        """Of the differences (n, m, m) between particles, over kernels and pairs; (n,)."""
        half = -0.5 * jnp.square(difference)
        mean = lambda bandwidth: jnp.mean(jnp.exp(half / bandwidth**2), axis=(1, 2))  # noqa: E731
        return sum((mean(b) for b in self.bandwidths), jnp.zeros(())) / len(self.bandwidths)

    def distribution(self, output: np.ndarray, scale: float) -> SampleDistribution:
        return SampleDistribution(scale * output.T)
