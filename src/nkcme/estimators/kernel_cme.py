"""KernelCME: the classical conditional mean embedding, in closed form."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from nkcme.distributions.embedding import READINGS, Embedding, summing_to_one
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import ConditionalEstimator
from nkcme.estimators.closed_form.condensing import Condensed, condense
from nkcme.estimators.closed_form.gaussian_gram import gaussian
from nkcme.estimators.closed_form.median_distance import median_distance
from nkcme.estimators.closed_form.ridge import (
    dual_operator,
    leave_one_out,
    primal_operator,
    row_counts,
)
from nkcme.estimators.training_data import Encoded, need_no_validation
from nkcme.model_files.array_checks import need_array
from nkcme.parameter_checks import need_one_of, need_whole, need_word_or_positive

#: The grid of "auto": lambda, and the input bandwidth in multiples of the median distance.
REGULARIZATIONS = np.logspace(-4, 2, 13)
BANDWIDTH_MULTIPLES = 2.0 ** np.arange(-4, 3)

#: The largest number of rows in the leave-one-out error of "auto"; of more, a random subset.
LEAVE_ONE_OUT_ROWS = 1000


class KernelCME(ConditionalEstimator):
    """Classical conditional mean embedding: an exact kernel ridge regression of k(y, .) on x.

    P(y | x) is embedded as sum_i beta_i(x) k(y_i, .) with Gaussian kernels of x and of y (the
    paper's section 2.2). `fit` takes these steps:

    1. Fix the bandwidth of the kernel of y.
    2. Condense the targets to at most ``n_atoms`` atoms.
    3. Choose the bandwidth of the kernel of x and lambda by the leave-one-out error of the paper's
       equation (1), in closed form, where they are "auto".
    4. Solve for the weights of the paper's equation (2): beta(x) = (K_X + lambda I)^-1 k_X(x). With
       ``n_inducing``, solve in the span of k_X at random rows instead (Nystrom).

    Weights are divided by their sum. The time of step 4 grows with the cube of the number of
    distinct rows; with ``n_inducing`` it grows linearly.

    Parameters
    ----------
    input_bandwidth : "auto" or float
        The bandwidth of the kernel of x, in units of standardised x.
    regularization : "auto" or float
        lambda. "auto", here and for ``input_bandwidth``: the smallest leave-one-out error in the
        RKHS on a grid (on 1,000 random rows if there are more).
    bandwidth : "median" or float
        The bandwidth of the kernel of y, in units of standardised y. "median": the median distance
        between the targets of two rows (of 1,000 random rows if there are more).
    n_inducing : int or None
        The number of random rows at which the kernel of x is evaluated; all rows are fitted. None:
        the exact solution.
    n_atoms : int
        The largest number of atoms. More distinct targets are condensed: each is split between its
        two neighbouring atoms, or with several outputs assigned to the nearest.
    max_rows : int
        The largest number of distinct rows without ``n_inducing``; more are an error.
    columns : dict or None
        The types of some columns, by name or by position, instead of those that are found:
        "number", "boolean", "category", "text", "date" or "time", or "drop" for a column that is
        not used. ``columns_`` says how each column was read.
    standardize : bool
        Standardise X and y for training; predictions are in the original units.
    reading : {"smoothed", "atomic"}
        How predicted embeddings are read (see `Embedding`).
    random_state : int, RandomState or None
        Seed of the choice of inducing rows, and of the 1,000 rows of "auto" and "median".

    Attributes
    ----------
    input_bandwidth_, regularization_, bandwidth_ : float
        As given or chosen.
    jitter_ : float
        The value that was added to the diagonal of the system to factorise it. It is 0 unless
        `fit` warns.
    columns_ : TableSummary
        How each column was read, and doubts about it; printed, it is a table.
    n_features_in_, feature_names_in_, n_outputs_
        As in all scikit-learn estimators.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from nkcme import KernelCME
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelCME().fit(X, y)
    >>> intervals = model.predict_interval(X[:5], coverage=0.9)  # (5, 2)
    """

    def __init__(
        self,
        *,
        input_bandwidth: float | str = "auto",
        regularization: float | str = "auto",
        bandwidth: float | str = "median",
        n_inducing: int | None = None,
        n_atoms: int = 1000,
        max_rows: int = 5000,
        columns: Mapping[Any, str] | None = None,
        standardize: bool = True,
        reading: str = "smoothed",
        random_state: Any = None,
    ):
        self.input_bandwidth = input_bandwidth
        self.regularization = regularization
        self.bandwidth = bandwidth
        self.n_inducing = n_inducing
        self.n_atoms = n_atoms
        self.max_rows = max_rows
        self.columns = columns
        self.standardize = standardize
        self.reading = reading
        self.random_state = random_state

    # --- training -----------------------------------------------------------------------------

    def _train(self, datasets: Sequence[Encoded]) -> list[_Solved]:
        need_no_validation(datasets)
        for data in datasets:
            if self.n_inducing is None and len(data.x) > self.max_rows:
                raise NkcmeError(
                    f"{len(data.x)} distinct rows are more than max_rows={self.max_rows}, and the "
                    "time of an exact solution grows with their cube: set n_inducing, such as "
                    "n_inducing=500, or raise max_rows"
                )
        return [self._solve(data) for data in datasets]

    def _solve(self, data: Encoded) -> _Solved:
        counts = row_counts(data.weight, data.n_rows)
        x = data.x.astype(np.float64)
        condensed = condense(data.y, counts, self.n_atoms, data.seed)
        bandwidth = (
            median_distance(data.y, counts, data.seed)
            if isinstance(self.bandwidth, str)
            else float(self.bandwidth)
        )
        input_bandwidth, regularization = self._choose(x, counts, condensed, bandwidth, data.seed)
        jitter = 0.0
        if self.n_inducing is None:
            anchors = x
            operator, jitter = dual_operator(
                gaussian(x, x, input_bandwidth), counts, regularization, condensed.shares
            )
        else:
            chosen = np.random.default_rng(data.seed).choice(
                len(x), min(self.n_inducing, len(x)), replace=False, p=counts / counts.sum()
            )
            anchors = x[np.sort(chosen)]
            # Times this root, k_X(x) at the anchors are the features of x in their span.
            root = _inverse_root(gaussian(anchors, anchors, input_bandwidth))
            operator = root @ primal_operator(
                lambda rows: gaussian(rows, anchors, input_bandwidth) @ root,
                x,
                counts,
                regularization,
                condensed.shares,
            )
        if jitter:
            warnings.warn(
                f"KernelCME added a jitter of {jitter:.1e} to the diagonal of its system, which is "
                f"numerically singular with regularization={regularization:.1e}; raise that",
                stacklevel=4,
            )
        return _Solved(
            input_bandwidth, regularization, bandwidth, jitter, anchors, condensed.atoms, operator
        )

    def _choose(
        self, x: np.ndarray, counts: np.ndarray, condensed: Condensed, bandwidth: float, seed: int
    ) -> tuple[float, float]:
        """The input bandwidth and lambda: as given, or by the leave-one-out error."""
        given_bandwidth = not isinstance(self.input_bandwidth, str)
        given_regularization = not isinstance(self.regularization, str)
        if given_bandwidth and given_regularization:
            return float(self.input_bandwidth), float(self.regularization)
        bandwidths = (
            np.array([self.input_bandwidth], np.float64)
            if given_bandwidth
            else median_distance(x, counts, seed) * BANDWIDTH_MULTIPLES
        )
        regularizations = (
            np.array([self.regularization], np.float64) if given_regularization else REGULARIZATIONS
        )
        rows = np.arange(len(x))
        if len(x) > LEAVE_ONE_OUT_ROWS:
            rng = np.random.default_rng(seed)
            rows = np.sort(rng.choice(len(x), LEAVE_ONE_OUT_ROWS, replace=False))
        # K_Y = B K_atoms B'. Its rank is low, as the kernel is smooth.
        targets = condensed.shares[rows] @ _root(
            gaussian(condensed.atoms, condensed.atoms, bandwidth)
        )
        scores = np.stack(
            [
                leave_one_out(gaussian(x[rows], x[rows], b), counts[rows], regularizations, targets)
                for b in bandwidths
            ]
        )
        best_bandwidth, best = np.unravel_index(np.argmin(scores), scores.shape)
        return float(bandwidths[best_bandwidth]), float(regularizations[best])

    def _accept(self, trained: _Solved) -> None:
        self.input_bandwidth_ = trained.input_bandwidth
        self.regularization_ = trained.regularization
        self.bandwidth_ = trained.bandwidth
        self.jitter_ = trained.jitter
        self._anchors = trained.anchors
        self._atoms = trained.atoms
        self._operator = trained.operator

    def _check_parameters(self) -> None:
        super()._check_parameters()
        need_word_or_positive("input_bandwidth", self.input_bandwidth, "auto")
        need_word_or_positive("regularization", self.regularization, "auto")
        need_word_or_positive("bandwidth", self.bandwidth, "median")
        if self.n_inducing is not None:
            need_whole("n_inducing", self.n_inducing)
        need_whole("n_atoms", self.n_atoms, least=2)
        need_whole("max_rows", self.max_rows)
        need_one_of("reading", self.reading, READINGS)

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> Embedding:
        near = partial(gaussian, b=self._anchors, bandwidth=self.input_bandwidth_)
        return Embedding(
            atoms=self._atoms,
            weights=summing_to_one(near(x.astype(np.float64)) @ self._operator),
            bandwidth=self.bandwidth_,
            location=self.scaler_.location,
            scale=self.scaler_.scale,
            reading=self.reading,
        )

    def _herd(self, dist: Embedding, n_samples: int) -> np.ndarray:  # type: ignore[override]
        return dist.herd(n_samples)

    # --- files --------------------------------------------------------------------------------

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        config = {name: getattr(self, f"{name}_") for name in _NUMBERS}
        return config, {name: getattr(self, f"_{name}") for name in _ARRAYS}

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for name in _NUMBERS:
            value = config.get(name)
            least = 0.0 if name == "jitter" else np.finfo(np.float64).tiny
            if not isinstance(value, float) or not least <= value < np.inf:
                raise ModelFileError(f"{name} must be a positive number; the file has {value!r}")
        if set(arrays) != set(_ARRAYS):
            raise ModelFileError(
                f"the model file must hold the arrays {', '.join(_ARRAYS)}; it has "
                f"{', '.join(sorted(arrays)) or 'none'}"
            )
        n_anchors, n_atoms = (arrays[name].shape[:1] for name in ("anchors", "atoms"))
        need_array(arrays, "anchors", (*n_anchors, self.encoder_.n_outputs))
        need_array(arrays, "atoms", (*n_atoms, self.n_outputs_))
        need_array(arrays, "operator", (*n_anchors, *n_atoms))
        if not arrays["operator"].size:
            raise ModelFileError("the arrays of this model are empty")
        numbers = (config[name] for name in _NUMBERS)
        self._accept(_Solved(*numbers, *(arrays[name] for name in _ARRAYS)))


class _Solved(NamedTuple):
    """The solution: the kernel of x at the anchors, times the operator, gives the weights."""

    input_bandwidth: float
    regularization: float
    bandwidth: float
    jitter: float
    anchors: np.ndarray  # (n, p)
    atoms: np.ndarray  # (m, d)
    operator: np.ndarray  # (n, m)


_NUMBERS = ("input_bandwidth", "regularization", "bandwidth", "jitter")
_ARRAYS = ("anchors", "atoms", "operator")


def _root(gram: np.ndarray) -> np.ndarray:
    """R (n, r) with R R' = K up to rounding, where r is the numerical rank."""
    values, vectors = _spectrum(gram)
    return vectors * np.sqrt(values)


def _inverse_root(gram: np.ndarray) -> np.ndarray:
    """R (n, r) with R R' the pseudo-inverse of K, which may be numerically singular."""
    values, vectors = _spectrum(gram)
    return vectors / np.sqrt(values)


def _spectrum(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues above rounding error, and their eigenvectors."""
    values, vectors = eigh(gram)
    kept = values > len(values) * np.finfo(np.float64).eps * values[-1]
    return values[kept], vectors[:, kept]
