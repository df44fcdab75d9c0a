"""Kernel herding: deterministic super-samples of an embedding (Chen, Welling & Smola, 2010)."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nkcme.distributions.blocks import row_slices


def herd(
    weights: np.ndarray, cross: np.ndarray, gram: np.ndarray, n: int, max_memory: int
) -> np.ndarray:
    """The indices (n, n_rows) of the candidates that ``n`` steps of herding pick in each row.

    ``weights`` (n_rows, m) are those of the embeddings, ``cross`` (m, c) is the kernel between
    atoms and candidates, ``gram`` (c, c) that among candidates. The working arrays of a block of
    rows stay below ``max_memory`` bytes. All blocks have one size, so that one program is compiled.
    """
    n_rows, n_candidates = weights.shape[0], gram.shape[0]
    if not n_rows:
        return np.empty((n, 0), np.int32)
    # A row needs its embedding, the running sum and their difference on candidates, and n picks.
    row_bytes = 4 * (3 * n_candidates + weights.shape[1] + n)
    block_rows = int(np.clip((max_memory - 8 * gram.size) // row_bytes, 1, n_rows))
    picks = np.empty((n, n_rows), np.int32)
    cross_device, gram_device = jnp.asarray(cross, jnp.float32), jnp.asarray(gram, jnp.float32)
    for rows in row_slices(n_rows, block_rows):
        block = np.asarray(weights[rows], np.float32)
        padded = np.pad(block, ((0, block_rows - len(block)), (0, 0)))
        picked = _herd_block(padded, cross_device, gram_device, n)
        picks[:, rows] = picked[:, : len(block)]
    return picks


@partial(jax.jit, static_argnums=3)
def _herd_block(weights: Array, cross: Array, gram: Array, n: int) -> Array:
    # In full precision: a GPU's default of ten bits is as large as the error of a thousand samples.
    embedding = jnp.matmul(weights, cross, precision="highest")

    def pick(picked_sum: Array, t: Array) -> tuple[Array, Array]:
        # argmax over y of mu(y) - 1/(t+1) sum_{s<t} k(y, y_s); repeats are allowed.
        best = jnp.argmax(embedding - picked_sum / (t + 1.0), axis=1).astype(jnp.int32)
        return picked_sum + gram[best], best

    return jax.lax.scan(pick, jnp.zeros_like(embedding), jnp.arange(n))[1]
