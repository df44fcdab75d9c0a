"""NKDQN, the paper's agent: the return's embedding on fixed atoms, compared by MMD (section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.embedding import Embedding
from nkcme.objectives import fused_mmd, squared_mmd
from nkcme.parameter_checks import need_one_of
from nkcme.rl.agents.base import AtomAgent, RewardSupport, checked_bandwidths

#: The bandwidth of a single kernel, for the paper's support.
SINGLE_BANDWIDTH = 10.0
#: The number of kernels that are fused.
N_FUSED = 10


@dataclass(frozen=True)
class NKDQN(AtomAgent):
    """The embedding of the return, sum_a w_a(s, a) k(eta_a, .), trained by its MMD to the target.

    Parameters
    ----------
    n_atoms
        The number of atoms eta_a.
    support
        The lowest and the highest return, or "auto" to derive them from the rewards of the random
        steps at the start.
    kernels
        "fuse" for the log-mean-exp over several kernels of the squared MMD, "single" for the
        squared MMD of one kernel.
    bandwidths
        The bandwidths of the Gaussian kernels. None stands for 10 with "single", and with "fuse"
        for ten values, evenly spaced from half the 5th to half the 95th percentile of the
        distances between atoms.

    Examples
    --------
    >>> from nkcme.rl import NKDQN
    >>> NKDQN(kernels="single").all_bandwidths()
    array([10.])
    """

    kind = "nkdqn"
    kernels: str = "fuse"
    bandwidths: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        need_one_of("kernels", self.kernels, ("fuse", "single"))
        if self.bandwidths is None:
            return
        object.__setattr__(self, "bandwidths", checked_bandwidths(self.bandwidths))
        if self.kernels == "single" and len(self.bandwidths) != 1:
            need_one_of("kernels, with several bandwidths,", self.kernels, ("fuse",))

    def all_bandwidths(self) -> np.ndarray:
        """Return the bandwidth sigma of every kernel, (S,)."""
        if self.bandwidths is not None:
            return np.asarray(self.bandwidths)
        if self.kernels == "single":
            return np.array([SINGLE_BANDWIDTH])
        # Each pair once, and each atom with itself, as in the paper's runs.
        a, b = np.triu_indices(self.n_atoms)
        low, high = np.percentile(np.abs(self.atoms[a] - self.atoms[b]), [5, 95]) / 2
        return np.linspace(max(low, self.spacing / 2), high, N_FUSED)

    def losses(
        self,
        output: Array,
        target: Array,
        reward: Array,
        discount: Array,
        reward_support: RewardSupport | None = None,
    ) -> Array:
        """Return the squared MMD, of one kernel or fused over several, (n,)."""
        v = jax.lax.stop_gradient(self.weights(target))
        if reward_support is None:
            terms = self._general_terms(v, reward, discount)
        else:
            terms = self._finite_terms(v, reward, discount, reward_support)
        own = jnp.asarray(self._gram(self.atoms, self.atoms), output.dtype)
        if self.kernels == "fuse":
            return fused_mmd(self.weights(output), own, *terms)
        return squared_mmd(self.weights(output), own, *terms)[:, 0]

    def _gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return k_s(a_i, b_j) without the density factor, a constant (S, len(a), len(b))."""
        u = (a[:, None] - b[None, :]) / self.all_bandwidths()[:, None, None]
        return np.exp(-0.5 * np.square(u))

    def _general_terms(self, v: Array, reward: Array, discount: Array) -> tuple[Array, Array]:
        """Return the target's own term (n, S) and its products with the atoms (n, S, m).

        Any r and d may occur: S m^2 exponentials per transition.
        """
        atoms = jnp.asarray(self.atoms, v.dtype)
        tau = self.bellman_atoms(reward, discount)
        inverse = jnp.asarray(1.0 / self.all_bandwidths(), v.dtype)[None, :, None, None]
        kernel = lambda u: jnp.exp(-0.5 * jnp.square(u[:, None] * inverse))  # noqa: E731
        cross = jnp.einsum("na,nsab->nsb", v, kernel(tau[:, :, None] - atoms[None, None]))
        # tau_a - tau_b = d (eta_a - eta_b): constant where d is.
        gaps = discount[:, None, None] * (atoms[:, None] - atoms[None])[None]
        return jnp.einsum("na,nb,nsab->ns", v, v, kernel(gaps)), cross

    def _finite_terms(
        self, v: Array, reward: Array, discount: Array, reward_support: RewardSupport
    ) -> tuple[Array, Array]:
        """Return the same where (r, d) is one of few pairs: products with constant matrices."""
        n, m = v.shape
        n_kernels = len(self.all_bandwidths())
        own = jnp.zeros((n, n_kernels), v.dtype)
        cross = jnp.zeros((n, n_kernels, m), v.dtype)
        discounts = list(dict.fromkeys(d for _, d in reward_support))
        which_discount = _nearest(discount, discounts)
        for i, d in enumerate(discounts):
            here = which_discount == i
            if d == 0.0:  # all mass at r
                mass = jnp.sum(v, axis=-1, keepdims=True)
                term = jnp.square(mass)
            else:
                gram = self._gram(d * self.atoms, d * self.atoms)
                term = jnp.einsum("nsm,nm->ns", _times(v, gram), v)
            own = jnp.where(here[:, None], term, own)
            rewards = [r for r, other in reward_support if other == d]
            which_reward = _nearest(reward, rewards)
            for j, r in enumerate(rewards):
                there = here & (which_reward == j)
                if d == 0.0:
                    k = jnp.asarray(self._gram(np.array([r]), self.atoms)[:, 0], v.dtype)
                    term = mass[:, :, None] * k[None]
                else:
                    term = _times(v, self._gram(r + d * self.atoms, self.atoms))
                cross = jnp.where(there[:, None, None], term, cross)
        return own, cross

    def distribution(self, output: np.ndarray, scale: float) -> Embedding:
        """Return the embedding, with the narrowest kernel for its densities."""
        weights = np.asarray(self.weights(jnp.asarray(output)))
        bandwidth = float(self.all_bandwidths().min())
        return Embedding(self.atoms, weights, bandwidth=bandwidth, scale=scale, reading="atomic")


def _nearest(values: Array, known: list[float]) -> Array:
    """Return the index of the known number that each value (n,) is, up to rounding."""
    gaps = jnp.abs(values[:, None] - jnp.asarray(known, values.dtype)[None])
    return jnp.argmin(gaps, axis=1)


def _times(v: Array, matrices: np.ndarray) -> Array:
    """Return v' K for each of the matrices (S, a, b), computed as one product; (n, S, b)."""
    s, a, b = matrices.shape
    flat = jnp.asarray(np.moveaxis(matrices, 1, 0).reshape(a, s * b), v.dtype)
    return (v @ flat).reshape(-1, s, b)
