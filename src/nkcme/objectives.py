"""The objectives that training minimises: pure functions of weights and kernel matrices, and the
likelihood of a mixture.

Notation of the paper: weights w (batch, m), atoms eta (m, d), targets y (batch, d), kernel k.

Two gradients are written by hand, because a training step consists of little else. The loss reuses
w G where automatic differentiation would multiply again. The derivative by the bandwidth, a single
number, is computed in forward mode. Both are first derivatives in reverse mode: a second derivative
by the bandwidth would miss a term.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from nkcme.atoms import Atoms, even_and_odd, from_even_and_odd
from nkcme.kernels import DensityKernel


def rkhs_loss(w: Array, y: Array, atoms: Atoms, kernel: DensityKernel) -> Array:
    """Equation (3): the mean of ||k(y_i, .) - sum_a w_ia k(eta_a, .)||^2 without its first term.

    The omitted term k(y_i, y_i) depends on the bandwidth alone. Minimising over weights and
    bandwidth together is the joint optimisation: the loss is an upper bound of `sq_loss`
    (Theorem 3.1).
    """
    return _loss(w, y, atoms, kernel, lambda k: atoms.blocks(k.value))


def sq_loss(w: Array, y: Array, atoms: Atoms, kernel: DensityKernel) -> Array:
    """Section 3.2.1: the mean squared L2 distance of sum_a w_a k(eta_a, .) to the true density,
    up to a constant. It differs from `rkhs_loss` in the Gram matrix only."""
    return _loss(w, y, atoms, kernel, lambda k: atoms.blocks(k.self_convolution))


def mixture_log_likelihood(log_weights: Array, means: Array, log_stds: Array, y: Array) -> Array:
    """log sum_k w_k N(y; m_k, s_k^2) at one y (d,), by log-sum-exp."""
    score = (y[None] - means) * jnp.exp(-log_stds)
    log_normal = -0.5 * jnp.square(score) - log_stds - 0.5 * jnp.log(2.0 * jnp.pi)
    return jax.nn.logsumexp(log_weights + jnp.sum(log_normal, axis=1))


def _loss(
    w: Array,
    y: Array,
    atoms: Atoms,
    kernel: DensityKernel,
    blocks: Callable[[DensityKernel], Array],
) -> Array:
    k_y = _forward_in_bandwidth(lambda k: k.gram(y, atoms.locations), kernel)
    return _quadratic_loss(w, k_y, _forward_in_bandwidth(blocks, kernel))


@jax.custom_vjp
def _quadratic_loss(w: Array, k_y: Array, blocks: Array) -> Array:
    """The mean over rows of w_i' G w_i - 2 k_i' w_i, for symmetric G in the blocks of `Atoms`."""
    return _quadratic_loss_forward(w, k_y, blocks)[0]


def _quadratic_loss_forward(w: Array, k_y: Array, blocks: Array) -> tuple[Array, tuple[Array, ...]]:
    split, join = (lambda v: v[None]), (lambda v: v[0])
    if len(blocks) == 2:
        split, join = even_and_odd, from_even_and_odd
    parts = split(w)
    product = join(parts @ blocks)
    return _dot(product - 2.0 * k_y, w) / w.shape[0], (w, k_y, product, parts)


def _quadratic_loss_backward(saved: tuple[Array, ...], ct: Array) -> tuple[Array, ...]:
    w, k_y, product, parts = saved
    scale = ct / w.shape[0]
    by_blocks = scale * (jnp.swapaxes(parts, 1, 2) @ parts)
    return 2.0 * scale * (product - k_y), -2.0 * scale * w, by_blocks


_quadratic_loss.defvjp(_quadratic_loss_forward, _quadratic_loss_backward)


def _forward_in_bandwidth(f: Callable[[DensityKernel], Array], kernel: DensityKernel) -> Array:
    """f(kernel), with its derivative by the bandwidth in forward mode."""
    frozen = jax.lax.stop_gradient(kernel)
    value, slope = jax.jvp(f, (frozen,), (jax.tree.map(jnp.ones_like, frozen),))
    return _with_slope(value, jax.lax.stop_gradient(slope), kernel.bandwidth)


@jax.custom_vjp
def _with_slope(value: Array, slope: Array, s: Array) -> Array:
    """``value``, whose derivative by the scalar ``s`` is ``slope``."""
    return value


_with_slope.defvjp(
    lambda value, slope, s: (value, slope),
    lambda slope, ct: (ct, jnp.zeros_like(slope), _dot(ct, slope)),
)


def _dot(a: Array, b: Array) -> Array:
    """The sum of a b, as products with ones: on a CPU several times faster than a sum."""
    products = (a * b).reshape(-1, a.shape[-1])
    n, m = products.shape
    return jnp.ones(n, a.dtype) @ (products @ jnp.ones(m, a.dtype))


def squared_mmd(w: Array, own: Array, target: Array, cross: Array) -> Array:
    """Section 5.2, for each kernel: ||sum_a v_a k(tau_a, .) - sum_a w_a k(eta_a, .)||^2.

    ``own`` (S, m, m) holds k(eta_a, eta_b) of S kernels, ``target`` (n, S) the target's own term
    sum_ab v_a v_b k(tau_a, tau_b), ``cross`` (n, S, m) its inner products with the atoms,
    sum_a v_a k(tau_a, eta_b). The result is (n, S).
    """
    return _squared_mmd(w, own, target, cross)[0]


@jax.custom_vjp
def fused_mmd(w: Array, own: Array, target: Array, cross: Array) -> Array:
    """Section 5.3, for each row: log of the mean over kernels of exp(`squared_mmd`); (n,).

    Only the gradient by w is implemented, which reuses w G: the target is fixed.
    """
    return _fused_mmd_forward(w, own, target, cross)[0]


def _squared_mmd(w: Array, own: Array, target: Array, cross: Array) -> tuple[Array, Array]:
    """The squares, and w G for each kernel, (n, S, m)."""
    s, m, _ = own.shape
    # One product for all kernels; each Gram matrix is symmetric.
    product = (w @ own.reshape(s * m, m).T).reshape(-1, s, m)
    return target + jnp.einsum("nsm,nm->ns", product - 2.0 * cross, w), product


def _fused_mmd_forward(
    w: Array, own: Array, target: Array, cross: Array
) -> tuple[Array, tuple[Array, ...]]:
    squares, product = _squared_mmd(w, own, target, cross)
    fused = jax.nn.logsumexp(squares, axis=-1) - math.log(own.shape[0])
    return fused, (squares, product - cross)


def _fused_mmd_backward(saved: tuple[Array, ...], ct: Array) -> tuple[Array | None, ...]:
    squares, half_slope = saved
    share = jax.nn.softmax(squares, axis=-1)  # the posterior over kernels
    return 2.0 * ct[:, None] * jnp.einsum("ns,nsm->nm", share, half_slope), None, None, None


fused_mmd.defvjp(_fused_mmd_forward, _fused_mmd_backward)
