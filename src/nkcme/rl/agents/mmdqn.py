"""MMDQN (Nguyen-Tang et al., 2021): equally weighted particles that the network places."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.sample import Draws
from nkcme.parameter_checks import need_whole
from nkcme.rl.agents.base import Agent, RewardSupport, checked_bandwidths


@dataclass(frozen=True)
class MMDQN(Agent):
    """Particles of equal weight, trained by the squared MMD to those of the Bellman target.

    Parameters
    ----------
    n_particles
        The number of particles per action.
    bandwidths
        The bandwidths of the Gaussian kernels; the loss is the mean over kernels of the biased
        squared MMD.

    Examples
    --------
    >>> from nkcme.rl import MMDQN
    >>> MMDQN(n_particles=8, bandwidths=(1.0, 4.0)).width
    8
    """

    kind = "mmdqn"
    n_particles: int = 51
    bandwidths: tuple[float, ...] = tuple(np.linspace(1.0, 100.0, 10).tolist())

    def __post_init__(self) -> None:
        need_whole("n_particles", self.n_particles)
        object.__setattr__(self, "bandwidths", checked_bandwidths(self.bandwidths))

    @property
    def width(self) -> int:
        """The number of particles."""
        return self.n_particles

    def value(self, output: Array) -> Array:
        """Return the mean of the particles, (...,) from (..., width)."""
        return jnp.mean(output, axis=-1)

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return the mean over kernels of the squared MMD, (n,)."""
        tau = reward[:, None] + discount[:, None] * jax.lax.stop_gradient(target)
        mean = lambda a, b: self._mean_kernel(a[:, :, None] - b[:, None, :])  # noqa: E731
        return mean(output, output) - 2.0 * mean(output, tau) + mean(tau, tau)

    def _mean_kernel(self, difference: Array) -> Array:
        """Average over kernels and pairs, (n,) from differences between particles (n, m, m)."""
        half = -0.5 * jnp.square(difference)
        mean = lambda bandwidth: jnp.mean(jnp.exp(half / bandwidth**2), axis=(1, 2))  # noqa: E731
        return sum((mean(b) for b in self.bandwidths), jnp.zeros(())) / len(self.bandwidths)

    def distribution(self, output: np.ndarray, scale: float) -> Draws:
        """Return the particles as a sample of the return."""
        return Draws(scale * output.T)
