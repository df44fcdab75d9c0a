"""Ridge regression with values in a Hilbert space: the algebra of conditional mean embeddings.

The paper's equation (1): minimise over C the sum of w_i ||phi(y_i) - C psi(x_i)||^2 plus
lambda ||C||^2. Rows are distinct, row i occurs w_i times, and W = diag(w). The estimate at x is
sum_i beta_i(x) phi(y_i), and by the push-through identity beta(x) has two forms:

- dual: (K + lambda W^-1)^-1 k(x), with K_ij = psi(x_i)'psi(x_j) and k_i(x) = psi(x_i)'psi(x);
- primal: W Psi (Psi'W Psi + lambda I)^-1 psi(x), with the psi(x_i) in the rows of Psi.

The dual form has W^-1 because the coefficient b of each of the w copies of a row satisfies
(K beta)_i + lambda b = k_i(x), and beta_i is their sum w b. A model keeps the operator that maps
k(x) or psi(x) to beta(x)' B, the weights of the atoms of `condensing`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array

from nkcme.distributions.blocks import BLOCK_ROWS, row_slices


def row_counts(weight: np.ndarray, n_rows: int) -> np.ndarray:
    """How often each distinct row counts: its weight, scaled so that all sum to ``n_rows``.

    Weights that are repetitions already do.
    """
    return weight * (n_rows / weight.sum())


def dual_operator(
    gram: np.ndarray, counts: np.ndarray, regularization: float, shares: csr_array
) -> tuple[np.ndarray, float]:
    """(K + lambda W^-1)^-1 B (n, m), and the jitter added to the diagonal.

    The jitter is zero unless the factorisation fails. Then it is the rounding error of the trace
    times the smallest power of ten for which the factorisation succeeds.
    """
    diagonal = np.diag(gram) + regularization / counts
    jitter = 0.0
    while True:
        system = gram.copy()
        np.fill_diagonal(system, diagonal + jitter)
        try:
            factor = cho_factor(system.T, lower=True, overwrite_a=True)  # in place, by columns
            return cho_solve(factor, shares.toarray()), jitter
        except np.linalg.LinAlgError:
            jitter = 10.0 * jitter or float(np.finfo(np.float64).eps * diagonal.sum())


def primal_operator(
    features: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    counts: np.ndarray,
    regularization: float,
    shares: csr_array,
) -> np.ndarray:
    """(Psi'W Psi + lambda I)^-1 Psi'W B (d, m), computed in blocks of rows."""
    gram: np.ndarray | float = 0.0
    cross: np.ndarray | float = 0.0
    for block in row_slices(len(x), BLOCK_ROWS):
        psi = np.asarray(features(x[block]), np.float64)
        weighted = counts[block, None] * psi
        gram = gram + psi.T @ weighted
        cross = cross + (shares[block].T @ weighted).T
    system = gram + regularization * np.eye(np.shape(gram)[0])
    return np.linalg.solve(system, cross)


def leave_one_out(
    gram: np.ndarray, counts: np.ndarray, regularizations: np.ndarray, targets: np.ndarray
) -> np.ndarray:
    """The leave-one-out error for each lambda: the mean of ||phi(y_i) - mu_i(x_i)||^2.

    mu_i is the embedding without row i. ``targets`` (n, r) are coordinates of the phi(y_i), such
    that targets targets' = K_Y. With H = K (K + lambda W^-1)^-1, the leave-one-out residual is the
    residual divided by 1 - H_ii, one minus the leverage. For a row that occurs w_i times, one
    repetition is left out, with leverage H_ii / w_i. Counts that are not whole numbers are not
    repetitions, and the whole row is left out.

    One eigendecomposition of W^1/2 K W^1/2 gives the errors for all lambdas.
    """
    root = np.sqrt(counts)[:, None]
    whole = bool(np.all(counts == np.rint(counts)))
    share = 1.0 / counts if whole else np.ones_like(counts)
    values, vectors = eigh(root * gram * root.T)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ (root * targets)
    scores = np.empty(len(regularizations))
    for i, regularization in enumerate(regularizations):
        rest = regularization / (values + regularization)  # the eigenvalues of I - H
        residual = vectors @ (rest[:, None] * rotated)
        kept = (1.0 - share) + share * (np.square(vectors) @ rest)  # 1 - leverage
        scores[i] = np.sum(np.sum(np.square(residual), axis=1) / np.square(kept)) / counts.sum()
    return scores
