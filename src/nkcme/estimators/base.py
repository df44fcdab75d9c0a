"""What every conditional density estimator of this library shares: scikit-learn's contract.

A subclass says how it trains on encoded arrays and how encoded inputs become a `Distribution`. The
base validates and encodes tables, streams predictions, samples, and saves and loads.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nkcme._version import __version__
from nkcme.distributions.base import BLOCK_ROWS, Distribution
from nkcme.errors import ModelFileError, NkcmeError, TableError
from nkcme.tables.columns import Table
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.sample_weights import checked_weight, repetitions
from nkcme.tables.target import TargetScaler, as_target


class Encoded(NamedTuple):
    """A training set as a subclass sees it: standardised, finite, two-dimensional, float32.

    Its rows are distinct, of positive weight, and in an order of their own: what is learned depends
    neither on the order of the table nor on whether a row has weight two or stands there twice.
    """

    x: np.ndarray  # (n, p)
    y: np.ndarray  # (n, d)
    weight: np.ndarray  # (n,)
    x_validation: np.ndarray | None
    y_validation: np.ndarray | None
    n_rows: int  # of the table, repetitions counted; what depends on its size goes by this
    seed: int

    def digest(self) -> str:
        """Of the data and the seed, to know a checkpoint's run again."""
        sha = hashlib.sha256(f"{self.n_rows} {self.seed}".encode())
        for array in (self.x, self.y, self.weight, self.x_validation, self.y_validation):
            sha.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a fit; its ``models`` are fitted with what they had learned by then."""

    def __init__(self, message: str, models: Sequence[ConditionalEstimator] = ()):
        super().__init__(message)
        self.models = list(models)


class ConditionalEstimator(RegressorMixin, BaseEstimator):
    """A regressor that predicts the whole distribution of y."""

    #: Parameters that files of earlier versions lack, as those versions did without them.
    _BEFORE: ClassVar[dict[str, Any]] = {}

    # What a subclass must have among its parameters.
    standardize: bool
    random_state: Any

    @abstractmethod
    def _train(self, datasets: Sequence[Encoded]) -> list[Any]:
        """One trained state for each data set (all at once); raises on bad parameters."""

    @abstractmethod
    def _accept(self, trained: Any) -> None:
        """Set the learned attributes from one of `_train`'s states."""

    @abstractmethod
    def _distribution(self, x: np.ndarray) -> Distribution:
        """The distributions at encoded inputs (n, p), in units of y."""

    @abstractmethod
    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What was learned, as JSON and arrays, for a model file."""

    @abstractmethod
    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The reverse of `_learned`; raises ModelFileError on anything that does not fit."""

    # --- fitting ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Learn P(y | x) from a table.

        ``X`` is an array or a pandas or polars frame with numeric, boolean, categorical or text
        columns, missing values allowed; ``y`` has one column or several. ``X_val`` and ``y_val``,
        where given, decide which state of training is kept.

        Whole numbers as ``sample_weight`` are repetitions: a row of weight two counts as two rows,
        and the fit is the same to the last bit. Other weights only say how rows compare; divide
        whole ones by their mean if that is what they are meant to say. The order of rows makes no
        difference.
        """
        encoded = self._encode_training(X, y, sample_weight, X_val, y_val)
        trained = self._train([encoded])[0]
        self._accept(trained)
        _raise_if_interrupted(trained, [self])
        return self

    def fit_many(
        self, datasets: Sequence[tuple[Any, Any]], random_states: Sequence[int] | None = None
    ) -> list[Self]:
        """Clones of this estimator fitted to many (X, y) at once, as one compiled program.

        Much faster than one after the other where the data sets are of one width: the seeds, folds
        or groups of an experiment. The clones' random states are those given, one a data set;
        otherwise they follow from this one's.
        """
        if random_states is None:
            rng = check_random_state(self.random_state)
            random_states = [int(rng.randint(2**31 - 1)) for _ in datasets]
        if len(random_states) != len(datasets):
            raise NkcmeError(
                f"fit_many needs one random state for each of {len(datasets)} data sets; got "
                f"{len(random_states)}"
            )
        clones, encoded = [], []
        for (X, y), random_state in zip(datasets, random_states, strict=True):
            copy = clone(self).set_params(random_state=random_state)
            encoded.append(copy._encode_training(X, y, None, None, None))
            clones.append(copy)
        if len({(e.x.shape[1], e.y.shape[1]) for e in encoded}) != 1:
            raise NkcmeError(
                "fit_many needs at least one data set, and all with the same encoded columns and "
                "outputs"
            )
        trained = self._train(encoded)
        for copy, state in zip(clones, trained, strict=True):
            copy._accept(state)
        _raise_if_interrupted(trained[0], clones)
        return clones

    def _encode_training(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, X_val: Any, y_val: Any
    ) -> Encoded:
        target = as_target(y)
        X = self._checked_table(X, reset=True)
        n = len(X)
        if len(target) != n:
            raise TableError(f"X has {n} rows and y has {len(target)}: they must have the same")
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, target, dtype=np.float64)
        weight = checked_weight(sample_weight, n)
        n_rows = repetitions(weight)
        if n_rows < 2:
            raise TableError(
                f"expected at least 2 rows to learn from, got n_samples = {n_rows}; add rows"
            )
        self.y_ndim_ = target.ndim
        columns = target.reshape(n, -1)
        self.n_outputs_ = columns.shape[1]
        if not isinstance(self.standardize, bool | np.bool_):
            raise NkcmeError(f"standardize must be True or False; got {self.standardize!r}")
        standardize = bool(self.standardize)
        self.encoder_ = TableEncoder.fit(X, standardize=standardize, sample_weight=weight)
        self.scaler_ = TargetScaler.fit(columns, standardize=standardize, sample_weight=weight)
        return Encoded(
            *_distinct_rows(self.encoder_.transform(X), self.scaler_.transform(columns), weight),
            *self._encode_validation(X_val, y_val),
            n_rows,
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _encode_validation(
        self, X_val: Any, y_val: Any
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        if (X_val is None) != (y_val is None):
            raise NkcmeError("give X_val and y_val together, or neither")
        if X_val is None:
            return None, None
        y = as_target(y_val)
        y = y.reshape(len(y), -1)
        x = self.encoder_.transform(self._checked_table(X_val, reset=False))
        if len(y) != len(x):
            raise TableError(f"X_val has {len(x)} rows and y_val {len(y)}: they must have the same")
        if y.shape[1] != self.n_outputs_:
            raise TableError(
                f"y has {self.n_outputs_} outputs and y_val {y.shape[1]}: they must have the same"
            )
        return x, self.scaler_.transform(y)

    def _checked_table(self, X: Any, *, reset: bool) -> Any:
        """X after scikit-learn's checks, as far as they apply to tables of anything."""
        if not issparse(X):
            Table.read(X, "X")  # says in one line what is no table
        if hasattr(X, "columns") or hasattr(X, "__dataframe__"):
            if reset:
                validate_data(self, X, skip_check_array=True)
            return X  # names, kinds and order are the encoder's business
        kind = np.asarray(X).dtype.kind if isinstance(X, np.ndarray | list | tuple) else ""
        dtype = None if kind and kind in "OUS" else "numeric"
        # That numbers are finite or missing the encoder sees, and it names the column and row.
        return validate_data(self, X, reset=reset, dtype=dtype, ensure_all_finite=False)

    # --- asking -------------------------------------------------------------------------------

    def predict_dist(self, X: Any) -> Distribution:
        """P(y | x) for each row of X, as an object to ask: `pdf`, `cdf`, `ppf`, `rvs`, ..."""
        return self._distribution(self._encode(X))

    def predict(self, X: Any) -> np.ndarray:
        """The conditional mean, in the shape of the y of `fit`."""
        return self._as_fitted(self._stream(X, lambda dist: dist.mean()))

    def predict_var(self, X: Any) -> np.ndarray:
        """The conditional variance, in the shape of the y of `fit`."""
        return self._as_fitted(self._stream(X, lambda dist: dist.var()))

    def predict_quantiles(
        self, X: Any, alpha: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> np.ndarray:
        """Quantiles at levels ``alpha``, (n_rows, len(alpha)); they never cross."""
        return self._stream(X, lambda dist: dist.ppf(alpha))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The central interval that holds y with probability ``coverage``, (n_rows, 2)."""
        return self._stream(X, lambda dist: dist.interval(coverage))

    def sample(
        self,
        X: Any,
        n_samples: int = 100,
        *,
        method: str = "independent",
        random_state: Any = None,
    ) -> np.ndarray:
        """Draws of y, draws first: (n_samples, n_rows[, d]).

        ``method="independent"`` draws at random; ``"herd"`` gives deterministic super-samples by
        kernel herding, which describe the distribution better in the same number.
        """
        if method == "herd":
            return self._stream(X, lambda dist: self._herd(dist, n_samples), axis=1)
        if method != "independent":
            raise NkcmeError(f'method must be "independent" or "herd"; got {method!r}')
        x, rng = self._encode(X), check_random_state(random_state)
        blocks = (x[first : first + BLOCK_ROWS] for first in range(0, len(x), BLOCK_ROWS))
        return np.concatenate([self._rvs(block, n_samples, rng) for block in blocks], axis=1)

    def _rvs(self, x: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
        """Draws at encoded inputs; for those that can draw without the whole distribution."""
        return self._distribution(x).rvs(size, rng)

    def _herd(self, dist: Distribution, n_samples: int) -> np.ndarray:
        raise NkcmeError(f"{type(self).__name__} has no embedding to herd from")

    def _encode(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.encoder_.transform(self._checked_table(X, reset=False))

    def _blocks(self, x: np.ndarray) -> Iterator[Distribution]:
        for first in range(0, len(x), BLOCK_ROWS):
            yield self._distribution(x[first : first + BLOCK_ROWS])

    def _stream(
        self, X: Any, ask: Callable[[Distribution], np.ndarray], axis: int = 0
    ) -> np.ndarray:
        """Ask block after block of rows, so that memory does not grow with their number."""
        return np.concatenate([ask(dist) for dist in self._blocks(self._encode(X))], axis=axis)

    def _as_fitted(self, values: np.ndarray) -> np.ndarray:
        return values[:, None] if self.y_ndim_ == 2 and values.ndim == 1 else values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        return tags

    # --- files --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a directory: ``config.json`` and ``model.safetensors``, atomically."""
        from nkcme.model_files import (
            write_model,  # needs safetensors, which not all machines have
        )

        check_is_fitted(self)
        learned, arrays = self._learned()
        config = {
            "estimator": type(self).__name__,
            "parameters": _as_json(self.get_params(deep=False)),
            "encoder": self.encoder_.to_config(),
            "scaler": self.scaler_.to_config(),
            "y_ndim": self.y_ndim_,
            "target_name": getattr(self, "target_name_", None),
            "learned": learned,
        }
        write_model(path, config, arrays)

    @classmethod
    def _from_file(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The estimator of a verified but untrusted model file."""
        parameters = config.get("parameters")
        known = set(cls._get_param_names())
        if not isinstance(parameters, dict) or set(parameters) - known:
            raise ModelFileError(f"the parameters of this model are not those of {cls.__name__}")
        estimator = cls(**cls._BEFORE | {k: _from_json(v) for k, v in parameters.items()})
        estimator.encoder_ = TableEncoder.from_config(config.get("encoder"))
        estimator.scaler_ = TargetScaler.from_config(config.get("scaler"))
        estimator.n_outputs_ = len(estimator.scaler_.location)
        y_ndim = config.get("y_ndim")
        if y_ndim not in (1, 2) or (y_ndim == 1 < estimator.n_outputs_):
            raise ModelFileError(f"y_ndim must be 1 or 2; the file says {y_ndim!r}")
        estimator.y_ndim_ = int(y_ndim)
        estimator.n_features_in_ = len(estimator.encoder_.columns)
        if estimator.encoder_.feature_names is not None:
            estimator.feature_names_in_ = np.asarray(estimator.encoder_.feature_names, object)
        estimator.target_name_ = config.get("target_name")
        if not isinstance(estimator.target_name_, str | None):
            raise ModelFileError("the name of the target is no text")
        learned = config.get("learned")
        if not isinstance(learned, dict):
            raise ModelFileError("the model file does not say what was learned")
        estimator._relearn(learned, arrays)
        return estimator

    def _fingerprint(self, datasets: Sequence[Encoded]) -> str:
        """Of the run: parameters that matter, data, seeds and version."""
        silent = {"checkpoint", "verbose", "random_state"}
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in silent}
        text = json.dumps(_as_json(parameters, other=repr), sort_keys=True)
        digests = [d.digest() for d in datasets]
        return hashlib.sha256("\n".join([__version__, text, *digests]).encode()).hexdigest()


def _raise_if_interrupted(trained: Any, models: Sequence[ConditionalEstimator]) -> None:
    """Tell of Ctrl-C only once the models hold what was learned."""
    if getattr(trained, "interrupted", False):
        raise TrainingInterrupted(
            f"stopped by Ctrl-C after {trained.n_steps} steps; the estimator holds that state. "
            "To go on later, fit again with the same data, parameters and checkpoint=PATH",
            models,
        )


def _distinct_rows(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct rows of (x, y) and their total weights, sorted, less those of weight zero."""
    table = np.concatenate([x, y], axis=1)
    if not weight.all():
        table, weight = table[weight > 0], weight[weight > 0]
    table += 0.0  # what is -0 is now 0: rows are compared by their bytes
    as_bytes = table.view(np.dtype((np.void, table.shape[1] * table.itemsize)))[:, 0]
    _, first, place = np.unique(as_bytes, return_index=True, return_inverse=True)
    table = table[first]
    total = np.bincount(place, weights=weight)
    return np.ascontiguousarray(table[:, : x.shape[1]]), table[:, x.shape[1] :].copy(), total


def need_no_validation(datasets: Sequence[Encoded]) -> None:
    """Raises where rows were given to choose a state of training by, and there is no choice."""
    if any(data.x_validation is not None for data in datasets):
        raise NkcmeError(
            "this estimator has no use for X_val and y_val: it chooses no state of training by "
            "held-out rows; leave them out"
        )


def need_array(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> None:
    """Raises unless a file's array is there, of finite floats and of this shape."""
    if name not in arrays:
        raise ModelFileError(f"the model file lacks the array {name}")
    array = arrays[name]
    if array.shape != shape or array.dtype.kind != "f":
        raise ModelFileError(
            f"array {name} should be floats of shape {shape}; the file has {array.dtype} of shape "
            f"{array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ModelFileError(f"array {name} holds values that are not finite")


def _as_json(
    parameters: dict[str, Any], other: Callable[[Any], Any] | None = None
) -> dict[str, Any]:
    """Parameters as JSON has them: numbers, text, lists, null; what is none of these is refused,
    or becomes what ``other`` makes of it."""

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, tuple | list):
            return [plain(name, v) for v in value]
        if isinstance(value, Path):
            return str(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if name == "random_state":  # a generator's state is spent and no part of the model
            return None
        if other is not None:
            return other(value)
        raise NkcmeError(f"parameter {name} cannot be written to a model file: {value!r}")

    return {name: plain(name, value) for name, value in parameters.items()}


def _from_json(value: Any) -> Any:
    return tuple(_from_json(v) for v in value) if isinstance(value, list) else value
