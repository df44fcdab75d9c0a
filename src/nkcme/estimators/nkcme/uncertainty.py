"""How far the members of an ensemble are apart in the Hilbert space: what the model does not know.

Members mu_j with atoms at delta_j + zeta_a and a kernel k of spectral law Lambda (the Fourier
transform of k, made a probability) have the mean square distance from their mean

    k(0) E_Lambda [ mean_j |phi_j|^2 - |mean_j phi_j|^2 ],
    phi_j(w) = e^{i w delta_j} sum_a w_a e^{i w zeta_a},

by Bochner's theorem: where atoms lie enters by a factor, so that members with atoms of their own
cost no more than members that share them, and no matrix over atoms is needed.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.stats import qmc

from nkcme.kernels import kernel_class

#: Frequencies at which characteristic functions are compared; a power of two.
_N_FREQUENCIES = 256

#: Points at which a spectral law is tabulated.
_N_TABULATED = 1 << 14


def spectral_points(kernel: str, bandwidth: float, n_outputs: int) -> np.ndarray:
    """Points (_N_FREQUENCIES, d) that stand for the spectral law, evenly in probability; the law is
    that of independent outputs, for the kernel is a product of theirs."""
    # The tangent goes to infinity as the Cauchy law does, the heaviest of the spectral laws.
    half = np.tan(0.5 * np.pi * (np.arange(_N_TABULATED) / _N_TABULATED))
    with jax.enable_x64(True):
        unit = kernel_class(kernel)(jnp.ones(()))
        height = np.asarray(unit.characteristic(jnp.asarray(half[:, None])))
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (height[1:] + height[:-1]) * np.diff(half))])
    even = qmc.Sobol(n_outputs, scramble=False).random(_N_FREQUENCIES) + 0.5 / _N_FREQUENCIES
    outward = np.interp(np.abs(2.0 * even - 1.0), mass / mass[-1], half)
    return np.sign(even - 0.5) * outward / bandwidth


def disagreement(
    weights: np.ndarray, atoms: np.ndarray, shift: np.ndarray, kernel: str, bandwidth: float
) -> np.ndarray:
    """The root mean square distance of members from their mean, (n,), in units of ||k(0, .)||:
    0 where they agree, near 1 where they have nothing in common.

    ``weights`` (n_members, n, m) sum to one; ``atoms`` (m, d) are common, moved by ``shift``
    (n_members, n, d). Of one member there is nothing to tell, and zeros come back.
    """
    n_members = len(weights)
    if n_members == 1:
        return np.zeros(weights.shape[1])
    frequencies = spectral_points(kernel, bandwidth, atoms.shape[1])
    square = np.asarray(_variance(weights, atoms, shift, frequencies))
    # The mean of so few is nearer to each of them than the mean of many would be.
    return np.sqrt(np.maximum(square, 0.0) * n_members / (n_members - 1))


@jax.jit
def _variance(weights: Array, atoms: Array, shift: Array, frequencies: Array) -> Array:
    angle = atoms @ frequencies.T  # (m, frequencies)

    def characteristic(f: Callable[[Array], Array]) -> Array:
        with jax.default_matmul_precision("highest"):
            return jnp.einsum("jna,af->jnf", weights, f(angle))

    turn = jnp.einsum("jnd,fd->jnf", shift, frequencies)
    phi = (characteristic(jnp.cos) + 1j * characteristic(jnp.sin)) * jnp.exp(1j * turn)
    around = phi - jnp.mean(phi, axis=0, keepdims=True)
    return jnp.mean(jnp.mean(jnp.square(jnp.abs(around)), axis=0), axis=-1)
