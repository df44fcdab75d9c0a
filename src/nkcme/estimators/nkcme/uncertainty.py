"""Uncertainty of a prediction: noise in y, and disagreement of the members in the Hilbert space.

Members mu_j with atoms at delta_j + zeta_a and a kernel k with spectral distribution Lambda (its
normalised Fourier transform) have the mean squared distance from their mean

    k(0) E_Lambda [ mean_j |phi_j|^2 - |mean_j phi_j|^2 ],
    phi_j(w) = e^{i w delta_j} sum_a w_a e^{i w zeta_a},

by Bochner's theorem. A shift of the atoms is a factor, so members with shifted atoms cost no more
than members with common ones, and no matrix over atoms is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.stats import qmc

from nkcme.kernels import kernel_class
from nkcme.short_repr import shapes_in_repr

#: Frequencies at which characteristic functions are compared; a power of two.
_N_FREQUENCIES = 256

#: Points at which a spectral distribution is tabulated.
_N_TABULATED = 1 << 14


@shapes_in_repr
class Uncertainty(NamedTuple):
    """The two kinds of uncertainty of a prediction.

    Attributes
    ----------
    aleatoric : array (n_rows[, d])
        The standard deviation of y that the members predict, in units of y: the root of the mean of
        their variances. More rows do not make it smaller; better inputs may.
    epistemic : array (n_rows,)
        How far apart the members' distributions are: the root mean square of their MMD to their
        mean, 0 where they agree and near 1 where they do not overlap. More rows make it smaller.
    """

    aleatoric: np.ndarray
    epistemic: np.ndarray


def spectral_points(kernel: str, bandwidth: float, n_outputs: int) -> np.ndarray:
    """Points (_N_FREQUENCIES, d) that represent the spectral distribution, evenly in probability.

    Outputs are independent under it, because the kernel is a product over outputs.
    """
    # The tangent has the tail of the Cauchy distribution, the heaviest of the spectral ones.
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
    """The root mean squared distance of members from their mean, (n,), in units of ||k(0, .)||.

    It is 0 where they agree, and near 1 where they do not overlap. A single member gives zeros.

    Parameters
    ----------
    weights : array (n_members, n, m)
        They sum to one.
    atoms : array (m, d)
        Common to all members.
    shift : array (n_members, n, d)
        By how much each member moves the atoms.
    kernel, bandwidth : str, float
    """
    n_members = len(weights)
    if n_members == 1:
        return np.zeros(weights.shape[1])
    frequencies = spectral_points(kernel, bandwidth, atoms.shape[1])
    square = np.asarray(_variance(weights, atoms, shift, frequencies))
    # Bessel's correction: members are nearer to their own mean than to that of many.
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
