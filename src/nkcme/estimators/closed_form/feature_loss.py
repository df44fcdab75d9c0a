"""The error of a ridge regression on features, as a loss by which the features are learned."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def feature_loss(psi: Array, k_y: Array, regularization: float) -> Array:
    """The loss of section 2.3 of the paper: -tr(K_Y Psi (Psi'Psi + lambda I)^-1 Psi') / B.

    Features (B, d) are in the rows of Psi. One factorisation gives both value and gradient. It is
    of the smaller matrix: d x d, or B x B if there are fewer rows than features, by the
    push-through identity Psi (Psi'Psi + lambda I)^-1 Psi' = I - lambda (Psi Psi' + lambda I)^-1.

    Products are in full single precision: with the ten bits that a GPU uses by default,
    Psi'Psi + lambda I would be indefinite. Features grow in training, so lambda is replaced by the
    rounding error of their squares where that is larger. ``k_y`` gets no gradient.
    """
    return _loss_forward(psi, k_y, regularization)[0]


@jax.default_matmul_precision("highest")
def _loss_forward(
    psi: Array, k_y: Array, regularization: float
) -> tuple[Array, tuple[Array, Array]]:
    """The loss, and its gradient by psi for the backward pass.

    With A = Psi (Psi'Psi + lambda I)^-1, L = -tr(Psi'K A) / B and its gradient is
    -(2 / B) (I - A Psi') K A. With Q = (Psi Psi' + lambda I)^-1, L = -(tr K - lambda tr(K Q)) / B
    and its gradient is -(2 lambda / B) Q K Q Psi. Both multiply the inverse by features first.
    Applied last, it would amplify the rounding errors of large terms that cancel.
    """
    n, d = psi.shape
    rounding = jnp.finfo(psi.dtype).eps * jnp.sum(jnp.square(psi))
    ridge = jnp.maximum(regularization, rounding)
    if n < d:
        q = _inverse(psi @ psi.T + ridge * jnp.eye(n, dtype=psi.dtype))
        loss = (ridge * jnp.sum(k_y * q) - jnp.trace(k_y)) / n
        return loss, ((-2.0 / n) * ridge * (q @ (k_y @ (q @ psi))), k_y)
    a = psi @ _inverse(psi.T @ psi + ridge * jnp.eye(d, dtype=psi.dtype))
    k_a = k_y @ a
    explained = psi.T @ k_a
    return -jnp.trace(explained) / n, ((-2.0 / n) * (k_a - a @ explained), k_y)


def _loss_backward(_: float, saved: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
    gradient, k_y = saved
    return ct * gradient, jnp.zeros_like(k_y)


feature_loss.defvjp(_loss_forward, _loss_backward)


def _inverse(gram: Array) -> Array:
    """The inverse L^-T L^-1 of a positive definite matrix, by one triangular solve."""
    lower = jax.lax.linalg.cholesky(gram, symmetrize_input=False)
    inverse = jax.lax.linalg.triangular_solve(
        lower, jnp.eye(len(gram), dtype=gram.dtype), left_side=True, lower=True
    )
    return inverse.T @ inverse
