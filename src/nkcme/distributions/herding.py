"""Kernel herding: deterministic super-samples of an embedding (Chen, Welling & Smola, 2010)."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array


def herd(
    weights: np.ndarray, cross: np.ndarray, gram: np.ndarray, n: int, max_memory: int
) -> np.ndarray:
    """The numbers (n, n_rows) of the candidates that ``n`` steps of herding pick in each row.

    ``weights`` (n_rows, m) are the embeddings', ``cross`` (m, c) the kernel between atoms and
    candidates, ``gram`` (c, c) that among candidates. Rows are worked in blocks whose working
    arrays stay below ``max_memory`` bytes; all blocks have one size, so one program is compiled.
    """
    n_rows, n_candidates = weights.shape[0], gram.shape[0]
    if not n_rows:
        return np.empty((n, 0), np.int32)
    # A row needs its embedding, the running sum and their difference on candidates, and n picks.
    row_bytes = 4 * (3 * n_candidates + weights.shape[1] + n)
    block = int(np.clip((max_memory - 8 * gram.size) // row_bytes, 1, n_rows))
    picks = np.empty((n, n_rows), np.int32)
    cross_device, gram_device = jnp.asarray(cross, jnp.float32), jnp.asarray(gram, jnp.float32)
    for first in range(0, n_rows, block):
        part = np.asarray(weights[first : first + block], np.float32)
        padded = np.pad(part, ((0, block - len(part)), (0, 0)))
        picks[:, first : first + len(part)] = _herd_block(padded, cross_device, gram_device, n)[
            :, : len(part)
        ]
    return picks


@partial(jax.jit, static_argnums=3)
def _herd_block(weights: Array, cross: Array, gram: Array, n: int) -> Array:
    # In full: a GPU's default of ten bits would be the error of a thousand super-samples.
    embedding = jnp.matmul(weights, cross, precision="highest")

    def pick(picked_sum: Array, t: Array) -> tuple[Array, Array]:
        # argmax over y of mu(y) - 1/(t+1) sum_{s<t} k(y, y_s); repeats are allowed.
        best = jnp.argmax(embedding - picked_sum / (t + 1.0), axis=1).astype(jnp.int32)
        return picked_sum + gram[best], best

    return jax.lax.scan(pick, jnp.zeros_like(embedding), jnp.arange(n))[1]
