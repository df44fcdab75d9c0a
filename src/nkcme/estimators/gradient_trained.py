"""What the estimators that learn by gradient steps share.

A subclass gives the numbers that make its training program (`_spec`), the program (`_task`), and
turns its model into distributions. Parameters, replicas and model files are handled here.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import ConditionalEstimator
from nkcme.estimators.replica_training import (
    Fitted,
    Program,
    Replica,
    Run,
    TrainingOptions,
    train_replicas,
)
from nkcme.estimators.training_data import Encoded
from nkcme.networks import ACTIVATIONS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.loop import Checkpoint, Task
from nkcme.training.named_arrays import named_arrays, tree_from_model_file
from nkcme.training.optimizers import SCHEDULES, Descent
from nkcme.training.progress import show_seconds, wants_progress

PyTree = Any


class Solved(NamedTuple):
    """A trained replica, and what was computed from it once training was over."""

    fitted: Fitted
    solution: dict[str, np.ndarray]

    @property
    def n_steps(self) -> int:
        return self.fitted.n_steps

    @property
    def interrupted(self) -> bool:
        return self.fitted.interrupted


class GradientTrainedEstimator(ConditionalEstimator):
    """A conditional estimator whose model is a pytree of arrays, trained by gradient steps."""

    # Parameters that every subclass has.
    hidden: Sequence[int]
    activation: str
    learning_rate: float
    weight_decay: float | None
    beta2: float
    schedule: str
    batch_size: int | None
    epochs: int | None
    validation_fraction: float
    verbose: bool | str
    checkpoint: str | Path | None

    #: The names that ``schedule`` takes.
    _schedules: tuple[str, ...] = tuple(SCHEDULES)

    #: Chunks without a better validation score before training stops; a parameter of some.
    patience: int | None = None

    @abstractmethod
    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Hashable:
        """The numbers that make the training program; equal ones share a program."""

    @staticmethod
    @abstractmethod
    def _task(spec: Any) -> Task:
        """The program of a spec; the same object for equal specs, so compiled once."""

    @abstractmethod
    def _check_own_parameters(self) -> None:
        """Raises on a bad value of a parameter that this class does not know."""

    def _constant(self, data: Encoded) -> PyTree:
        """Arrays that the model takes from the data before training."""
        return ()

    def _constant_shape(self, spec: Any) -> PyTree:
        """The shapes of `_constant`, for reading files."""
        return ()

    def _more_columns(self, x: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """Columns of the training table beside x and y."""
        return ()

    def _finish(self, model: PyTree, data: Encoded) -> dict[str, np.ndarray]:
        """Named arrays that are computed once training is over."""
        return {}

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        """Set what `_finish` gave; raises ModelFileError on what does not fit the model."""
        if solution:
            raise ModelFileError("the model file holds arrays that this model does not have")

    # --- training -----------------------------------------------------------------------------

    def _train(self, datasets: Sequence[Encoded]) -> list[Any]:
        trained = train_replicas(
            datasets,
            [Replica(i, None, data.seed) for i, data in enumerate(datasets)],
            lambda *sizes: Program(self._task(self._spec(*sizes))),
            [self._constant(data) for data in datasets],
            self._options(),
            self._run(datasets),
            more_columns=self._more_columns,
        )
        on_device = [one._replace(model=jax.device_put(one.model)) for one in trained]
        return [
            Solved(fitted, self._finish(fitted.model, data))
            for fitted, data in zip(on_device, datasets, strict=True)
        ]

    def _options(self) -> TrainingOptions:
        return TrainingOptions(
            self._n_steps, self._minibatch, self.validation_fraction, self.patience
        )

    def _run(self, datasets: Sequence[Encoded]) -> Run:
        if self.checkpoint is None:
            return Run(self.verbose)
        return Run(self.verbose, self._checkpoint_file(), self._fingerprint(datasets))

    def _accept(self, trained: Solved) -> None:
        self.model_ = trained.fitted.model
        self.n_steps_ = trained.n_steps
        self.history_ = trained.fitted.history
        self._accept_solution(trained.solution)

    def _set_seconds(self, total: float, compilation: float) -> None:
        super()._set_seconds(total, compilation)
        if wants_progress(self.verbose):
            show_seconds(total, compilation)

    def _n_steps(self, n_rows: int) -> int:
        if self.epochs is not None:
            return self._steps_of(self.epochs, n_rows)
        return default_steps(n_rows)

    @property
    def _minibatch(self) -> Any:
        """The rows of a step; subclasses may let None stand for a number."""
        return self.batch_size

    def _steps_of(self, epochs: int, n_rows: int) -> int:
        """The paper's count: floor(n / batch) steps are an epoch."""
        return max(n_rows // self._minibatch, 1) * int(epochs)

    def _descent(self, n_steps: int) -> Descent:
        return Descent(
            float(self.learning_rate),
            float(0.0 if self.weight_decay is None else self.weight_decay),
            float(self.beta2),
            self.schedule,
            n_steps,
        )

    def _checkpoint_file(self) -> Checkpoint:
        from nkcme.model_files import CheckpointFile  # needs safetensors

        assert self.checkpoint is not None
        return CheckpointFile(Path(self.checkpoint))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_own_parameters()
        need_one_of("activation", self.activation, tuple(ACTIVATIONS))
        need_one_of("schedule", self.schedule, self._schedules)
        need_wholes("hidden", self.hidden)
        need_whole("batch_size", self._minibatch)
        for name in ("epochs", "patience"):
            if getattr(self, name) is not None:
                need_whole(name, getattr(self, name))
        need_number("learning_rate", self.learning_rate, above=0.0)
        if self.weight_decay is not None:
            need_number("weight_decay", self.weight_decay, least=0.0)
        need_number("beta2", self.beta2, above=0.0, below=1.0)
        need_number("validation_fraction", self.validation_fraction, least=0.0, below=1.0)
        if not isinstance(self.verbose, bool | np.bool_) and self.verbose != "auto":
            raise NkcmeError(f'verbose must be True, False or "auto"; got {self.verbose!r}')
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise NkcmeError(f"checkpoint must be a path or None; got {self.checkpoint!r}")
        if self.checkpoint is not None and not isinstance(self.random_state, int | np.integer):
            raise NkcmeError(
                "a run can be resumed only with its own seed: with checkpoint, give random_state a "
                f"whole number; got {self.random_state!r}"
            )

    # --- files --------------------------------------------------------------------------------

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = named_arrays(self.model_, _MODEL)
        arrays |= {f"{_HISTORY}{name}": value for name, value in self.history_.items()}
        arrays |= {f"{_SOLUTION}{name}": value for name, value in self._solution().items()}
        return {"n_steps": self.n_steps_}, arrays

    def _facts(self) -> dict[str, Any]:
        """What `nkcme.estimators.saving.describe` adds for this class."""
        return {"weights": sum(leaf.size for leaf in jax.tree.leaves(self.model_))}

    def _solution(self) -> dict[str, np.ndarray]:
        """The arrays that `_accept_solution` takes."""
        return {}

    def _leading_axes(self, config: dict[str, Any]) -> tuple[int, ...]:
        """The axes that a file's arrays have before those of one model."""
        return ()

    def _spec_of_file(self, config: dict[str, Any]) -> Any:
        """The spec of the model in a file, for the shapes of its arrays."""
        return self._spec(self.encoder_.n_outputs, self.n_outputs_, self.n_steps_, n_rows=1)

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        n_steps = config.get("n_steps")
        if not isinstance(n_steps, int):
            raise ModelFileError(f"n_steps must be a whole number; the file has {n_steps!r}")
        self.n_steps_ = n_steps
        try:
            spec = self._spec_of_file(config)
            # Shapes only: nothing is allocated before the file's arrays are checked against them.
            skeleton = eqx.filter_eval_shape(
                self._task(spec).init, jax.random.key(0), self._constant_shape(spec)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the parameters of this model are not usable: {error}") from error
        self.history_ = _named(arrays, _HISTORY)
        solution = _named(arrays, _SOLUTION)
        rest = {k: v for k, v in arrays.items() if not k.startswith((_HISTORY, _SOLUTION))}
        self.model_ = tree_from_model_file(
            skeleton, rest, _MODEL, leading=self._leading_axes(config)
        )
        self._accept_solution(solution)


#: The numbers of steps where ``epochs`` is None: 2,000 up to 5,000 rows, then with the square root
#: of their number up to 20,000; see docs/findings.md.
def default_steps(n_rows: int) -> int:
    """2,000 steps up to 5,000 rows, then with the square root of their number up to 20,000."""
    return int(np.clip(2000 * np.sqrt(n_rows / 5000), 2000, 20000)) // 100 * 100


# The names of arrays in a model file.
_MODEL = "model"
_HISTORY = "history/"
_SOLUTION = "solution/"


def _named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
