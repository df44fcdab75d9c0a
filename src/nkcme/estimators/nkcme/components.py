"""Weights from components: normal distributions whose locations move with x, put on fixed atoms."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import ndtri

from nkcme.atoms import Atoms
from nkcme.estimators.nkcme.component_weights import MOST_LOG_RATIO, StackedComponents
from nkcme.estimators.nkcme.recipe import ComponentRecipe
from nkcme.objectives import mixture_log_likelihood

#: The value of the parameter ``head`` for weights from components.
COMPONENTS = "components"

#: Where the atoms have no spacing, standard deviations stay above this.
_TINY = 1e-6


class Components(eqx.Module):
    """The outputs of a network (n, 3 K) as K normal components of y, for one output.

    Component k has the probability pi_k, the mean start_k + o and the standard deviation
    least_std + unit_std exp(o), o being outputs of the network. The weight of an atom is the
    probability of the interval between the midpoints to its neighbours,

        w_a = sum_k pi_k [Phi((e_a+1 - mu_k) / s_k) - Phi((e_a - mu_k) / s_k)].

    Free weights have to learn every place of a sharp branch anew; here a branch is one function.

    Attributes
    ----------
    starts : array (K,)
        The means around which the network's outputs start: quantiles of a standard normal.
    unit_std : array ()
    least_std : array ()
        Atoms cannot show a narrower component, whose likelihood would have no bound.
    """

    starts: Array
    unit_std: Array
    least_std: Array

    @classmethod
    def on(cls, atoms: Atoms, n_components: int, recipe: ComponentRecipe) -> Components:
        """Components for atoms in increasing order, before training."""
        distance = atoms.neighbour_distance()
        xp = distance.__array_namespace__()
        levels = (np.arange(n_components) + 0.5) / n_components
        starts = np.float32(ndtri(levels))
        least_std = xp.maximum(recipe.least_std * distance, _TINY)
        unit_std = xp.full_like(least_std, recipe.start_std)
        return cls(xp.broadcast_to(starts, (*distance.shape, n_components)), unit_std, least_std)

    def stacked(self) -> StackedComponents:
        """The same for NumPy; arrays have a leading axis of members."""
        return StackedComponents(*map(np.asarray, (self.starts, self.unit_std, self.least_std)))

    def mixture(self, outputs: Array) -> tuple[Array, Array, Array]:
        """Log probabilities, means and standard deviations, each (n, K)."""
        logits, off, log_ratio = jnp.split(outputs, 3, axis=-1)
        stds = self.least_std + self.unit_std * jnp.exp(jnp.minimum(log_ratio, MOST_LOG_RATIO))
        return jax.nn.log_softmax(logits), self.starts[None] + off, stds

    def weights(self, outputs: Array, atoms: Atoms) -> Array:
        """Weights (n, m); they sum to one."""
        eta = atoms.locations[:, 0]
        edges = 0.5 * (eta[1:] + eta[:-1])

        def add(below: Array, component: tuple[Array, ...]) -> tuple[Array, None]:
            log_probability, mean, std = (one[:, None] for one in component)
            cdf = jax.scipy.special.ndtr((edges[None] - mean) / std)
            return below + jnp.exp(log_probability) * cdf, None

        # One component at a time: all of them together would take K times the memory.
        columns = tuple(one.T for one in self.mixture(outputs))
        start = jnp.zeros((len(outputs), len(edges)), outputs.dtype)
        below, _ = jax.lax.scan(add, start, columns)
        ends = jnp.zeros((len(outputs), 1), outputs.dtype)
        # Rounding may leave differences of -1e-8.
        return jnp.maximum(jnp.diff(jnp.hstack([ends, below, ends + 1.0]), axis=1), 0.0)

    def log_likelihood(self, outputs: Array, y: Array, atoms: Atoms, uniform_share: float) -> Array:
        """The log density (n,) of targets (n, 1) in a mixture with a uniform distribution over the
        atoms, by which a row far from every component counts only so much."""
        log_probabilities, means, stds = self.mixture(outputs)
        inside = jax.vmap(mixture_log_likelihood)(
            log_probabilities, means[:, :, None], jnp.log(stds)[:, :, None], y
        )
        width = jnp.maximum(jnp.ptp(atoms.locations), self.least_std)
        return jnp.logaddexp(jnp.log1p(-uniform_share) + inside, jnp.log(uniform_share / width))
