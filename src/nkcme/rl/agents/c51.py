"""C51 (Bellemare et al., 2017), the paper's CDQN: a categorical distribution, by cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.embedding import Embedding
from nkcme.rl.agents.base import AtomAgent, RewardSupport

#: The distance that probabilities keep from 0 and 1 inside the logarithm, as in the paper's runs.
_CLIP = 1e-5


@dataclass(frozen=True)
class C51(AtomAgent):
    """Probabilities on fixed atoms, trained by cross-entropy with the projected Bellman target.

    Parameters
    ----------
    n_atoms
        The number of atoms.
    support
        The lowest and the highest return, or "auto" to derive them from the rewards of the random
        steps at the start. Bellman targets are clipped to the support.

    Examples
    --------
    >>> from nkcme.rl import C51
    >>> C51(n_atoms=3, support=(0, 10)).atoms
    array([ 0.,  5., 10.])
    """

    kind = "c51"

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return the cross-entropy with the projected target, (n,)."""
        projected = self.project(self.weights(target), reward, discount)
        p = jnp.clip(self.weights(output), _CLIP, 1.0 - _CLIP)
        return -jnp.sum(projected * jnp.log(p), axis=-1)

    def project(self, v: Array, reward: Array, discount: Array) -> Array:
        """Split the mass v_a at r + d eta_a between the two nearest atoms; return (n, m)."""
        atoms = jnp.asarray(self.atoms, v.dtype)
        tau = jnp.clip(self.bellman_atoms(reward, discount), atoms[0], atoms[-1])
        distance = jnp.abs(tau[:, :, None] - atoms[None, None]) / self.spacing
        return jnp.einsum("na,nab->nb", v, jnp.maximum(1.0 - distance, 0.0))

    def distribution(self, output: np.ndarray, scale: float) -> Embedding:
        """Return the atoms and their probabilities as an `Embedding`."""
        weights = np.asarray(self.weights(jnp.asarray(output)))
        return Embedding(self.atoms, weights, bandwidth=self.spacing, scale=scale, reading="atomic")
