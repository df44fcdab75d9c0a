"""What the estimators that learn by gradient steps share on their way through `training`.

A subclass gives the numbers that make its program (`_spec`), the program (`_task`), and reads its
model. Rows held out, replicas, progress, checkpoints and files are the same for all and live here.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import ConditionalEstimator, Encoded, need_array
from nkcme.networks import ACTIVATIONS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.loop import Checkpoint, Plan, Rows, Task, Trained, train
from nkcme.training.progress import TrainingBar, wants_progress

PyTree = Any

#: The course of a learning rate over so many steps.
SCHEDULES: dict[str, Callable[[float, int], Any]] = {
    "constant": lambda rate, n_steps: rate,
    "cosine": optax.cosine_decay_schedule,
}


class Descent(NamedTuple):
    """How steps are taken: AdamW's numbers and the course of its rate."""

    learning_rate: float
    weight_decay: float
    beta2: float
    schedule: str
    n_steps: int

    def optimizer(self) -> optax.GradientTransformation:
        rate = SCHEDULES[self.schedule](self.learning_rate, max(self.n_steps, 1))
        return optax.adamw(rate, b2=self.beta2, weight_decay=self.weight_decay)


class TrainedEstimator(ConditionalEstimator):
    """A conditional estimator whose model is a pytree of arrays, trained by the one loop."""

    # What a subclass must have among its parameters.
    hidden: Sequence[int]
    activation: str
    learning_rate: float
    weight_decay: float | None
    beta2: float
    schedule: str
    batch_size: int
    epochs: int | None
    validation_fraction: float
    verbose: bool | str
    checkpoint: str | Path | None

    #: Chunks without a better validation before training stops; a subclass may make it a parameter.
    patience: int | None = None

    @abstractmethod
    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Hashable:
        """The numbers that make the training program; equal ones share one."""

    @staticmethod
    @abstractmethod
    def _task(spec: Any) -> Task:
        """The program of a spec; the same object for equal specs, so compiled once."""

    @abstractmethod
    def _check_own_parameters(self) -> None:
        """Raises on a bad value of a parameter that this class does not know."""

    def _constant(self, data: Encoded) -> PyTree:
        """What the model takes from the data before training, as arrays."""
        return ()

    def _constant_shape(self, spec: Any) -> PyTree:
        """The shapes of `_constant`, for reading files."""
        return ()

    def _marks(self, x: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
        """Further columns of the training table, beside x and y."""
        return ()

    def _finish(self, model: PyTree, data: Encoded) -> dict[str, np.ndarray]:
        """What is solved for once training is over, as named arrays."""
        return {}

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        """Set what `_finish` gave; raises ModelFileError on what does not fit the model."""
        if solution:
            raise ModelFileError("the model file holds arrays that this model does not know")

    # --- training -----------------------------------------------------------------------------

    def _train(self, datasets: Sequence[Encoded]) -> list[Any]:
        self._check_parameters()
        replicas = [Replica(i, None, data.seed) for i, data in enumerate(datasets)]
        return self._train_replicas(datasets, replicas, self._checkpoint_file())

    def _train_replicas(
        self,
        datasets: Sequence[Encoded],
        replicas: Sequence[Replica],
        checkpoint: Checkpoint | None,
        *,
        constants: Sequence[PyTree] | None = None,
        change: Callable[[Any], Any] = lambda spec: spec,
    ) -> list[Fitted]:
        """What each replica learned of its data set; all train as one program. ``constants`` are
        those of the data sets unless given, and the spec may be changed."""
        tables = [_Table.of(data, self.validation_fraction) for data in datasets]
        n_rows = int(np.mean([t.n_rows for t in tables]))
        plan = Plan(self._n_steps(n_rows), self.batch_size, patience=self.patience)
        n_in, n_out = datasets[0].x.shape[1], datasets[0].y.shape[1]
        spec = change(self._spec(n_in, n_out, plan.n_steps, n_rows))
        first_rows = np.cumsum([0] + [len(t.x) for t in tables[:-1]])
        drawn = [tables[r.data].chosen(r.rows) for r in replicas]
        rows = Rows.of(
            [rows + first_rows[r.data] for r, (rows, _) in zip(replicas, drawn, strict=True)],
            [weight for _, weight in drawn],
        )
        held_out = None
        if self.patience is not None and not len(tables[0].held_out):
            raise NkcmeError(
                "patience needs rows held out: give validation_fraction above 0, or X_val and y_val"
            )
        if len(tables[0].held_out):
            held_out = Rows.of(
                [tables[r.data].held_out + first_rows[r.data] for r in replicas],
                [tables[r.data].held_out_weight for r in replicas],
            )
        columns = [
            (t.x, t.y, *self._marks(t.x, d.seed)) for t, d in zip(tables, datasets, strict=True)
        ]
        table = tuple(np.concatenate(column) for column in zip(*columns, strict=True))
        constants = constants or [self._constant(data) for data in datasets]
        keys = seed_keys(np.array([replica.seed for replica in replicas], np.uint32))
        run = partial(
            train,
            self._task(spec),
            # By NumPy: of hundreds of arguments JAX would compile a program of its own.
            jax.tree.map(lambda *leaves: np.stack(leaves), *(constants[r.data] for r in replicas)),
            table,
            rows,
            plan,
            keys,
            validation_rows=held_out,
            checkpoint=checkpoint,
            fingerprint=self._fingerprint(datasets) if self.checkpoint is not None else "",
        )
        if wants_progress(self.verbose):
            with TrainingBar(plan.n_steps) as bar:
                trained = run(progress=bar)
        else:
            trained = run()
        fitted = (Fitted.of(trained, i) for i in range(len(replicas)))
        return [
            one._replace(solution=self._finish(one.model, datasets[replica.data]))
            for one, replica in zip(fitted, replicas, strict=True)
        ]

    def _accept(self, trained: Fitted) -> None:
        self.model_ = trained.model
        self.n_steps_ = trained.n_steps
        self.history_ = trained.history
        self._accept_solution(trained.solution)

    def _n_steps(self, n_rows: int) -> int:
        if self.epochs is not None:
            return self._steps_of(self.epochs, n_rows)
        return default_steps(n_rows)

    def _steps_of(self, epochs: int, n_rows: int) -> int:
        """The paper's count: floor(n / batch) steps are an epoch."""
        return max(n_rows // self.batch_size, 1) * int(epochs)

    def _descent(self, n_steps: int) -> Descent:
        return Descent(
            float(self.learning_rate),
            float(0.0 if self.weight_decay is None else self.weight_decay),
            float(self.beta2),
            self.schedule,
            n_steps,
        )

    def _checkpoint_file(self) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        from nkcme.model_files import CheckpointFile  # needs safetensors

        return CheckpointFile(Path(self.checkpoint))

    def _check_parameters(self) -> None:
        self._check_own_parameters()
        need_one_of("activation", self.activation, tuple(ACTIVATIONS))
        need_one_of("schedule", self.schedule, tuple(SCHEDULES))
        need_wholes("hidden", self.hidden)
        need_whole("batch_size", self.batch_size)
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
        arrays = named_leaves(self.model_, _MODEL)
        arrays |= {f"{_HISTORY}{name}": value for name, value in self.history_.items()}
        arrays |= {f"{_SOLUTION}{name}": value for name, value in self._solution().items()}
        return {"n_steps": self.n_steps_}, arrays

    def _solution(self) -> dict[str, np.ndarray]:
        """What `_accept_solution` was given."""
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
            raise ModelFileError(f"n_steps must be a whole number; the file says {n_steps!r}")
        self.n_steps_ = n_steps
        try:
            self._check_parameters()
            spec = self._spec_of_file(config)
            # Shapes only: nothing is allocated before the file's arrays are seen to fit.
            skeleton = eqx.filter_eval_shape(
                self._task(spec).init, jax.random.key(0), self._constant_shape(spec)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the parameters of this model are not usable: {error}") from error
        self.history_ = _named(arrays, _HISTORY)
        solution = _named(arrays, _SOLUTION)
        rest = {k: v for k, v in arrays.items() if not k.startswith((_HISTORY, _SOLUTION))}
        self.model_ = filled(skeleton, rest, self._leading_axes(config), _MODEL)
        self._accept_solution(solution)


# Where the user does not say, what suits so many rows; see docs/findings.md.
def default_steps(n_rows: int) -> int:
    """2,000 steps up to 5,000 rows, then with the square root of their number up to 20,000."""
    return int(np.clip(2000 * np.sqrt(n_rows / 5000), 2000, 20000)) // 100 * 100


class Replica(NamedTuple):
    """One of the models that train side by side."""

    data: int  # the number of its data set
    rows: np.ndarray | None  # those it may draw; None: all
    seed: int


class _Table(NamedTuple):
    """A data set laid out for training: rows to draw from, rows held out."""

    x: np.ndarray
    y: np.ndarray
    rows: np.ndarray
    weight: np.ndarray
    held_out: np.ndarray
    held_out_weight: np.ndarray
    n_rows: int  # to draw from, repetitions counted

    @classmethod
    def of(cls, data: Encoded, validation_fraction: float) -> _Table:
        n, weight = len(data.x), data.weight
        if data.x_validation is not None and data.y_validation is not None:
            x = np.concatenate([data.x, data.x_validation])
            y = np.concatenate([data.y, data.y_validation])
            held_out = np.arange(n, len(x))
            return cls(x, y, np.arange(n), weight, held_out, np.ones(len(x) - n), data.n_rows)
        order = np.random.default_rng(data.seed).permutation(n)
        n_held_out = min(int(np.ceil(validation_fraction * n)), n - 1)
        rows, held_out = np.sort(order[n_held_out:]), np.sort(order[:n_held_out])
        n_rows = max(round(data.n_rows * weight[rows].sum() / weight.sum()), 1)
        return cls(data.x, data.y, rows, weight[rows], held_out, weight[held_out], n_rows)

    def chosen(self, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Which of ``rows`` are there to draw from, and their weights."""
        if rows is None:
            return self.rows, self.weight
        among = np.isin(self.rows, rows)
        return self.rows[among], self.weight[among]


class Fitted(NamedTuple):
    """One replica of a training run."""

    model: PyTree
    history: dict[str, np.ndarray]
    n_steps: int
    interrupted: bool
    solution: dict[str, np.ndarray]

    @classmethod
    def of(cls, trained: Trained, replica: int) -> Fitted:
        history = trained.history.as_arrays()
        own = {name: v if name == "step" else v[:, replica] for name, v in history.items()}
        model = jax.tree.map(lambda leaf: leaf[replica], trained.models)
        return cls(model, own, trained.n_steps, trained.interrupted, {})


#: The key of each seed, (n,): one program, where a thousand replicas would be thousands of calls.
seed_keys = jax.jit(jax.vmap(jax.random.key))


def padded(x: np.ndarray, *, fine: bool = False) -> np.ndarray:
    """x with its rows filled up to a power of two, so that few programs are compiled.

    Where rows are dear, ``fine`` adds an eighth at most, for eight times the programs.
    """
    bits = max(len(x) - 1, 0).bit_length()
    step = 1 << max(bits - 4, 6) if fine else 1 << max(bits, 6)
    return np.pad(x, ((0, max(-len(x) % step, 0 if len(x) else step)), (0, 0)))


# The names of arrays in a model file.
_MODEL = "model"
_HISTORY = "history/"
_SOLUTION = "solution/"


def named_leaves(model: PyTree, prefix: str = "") -> dict[str, np.ndarray]:
    """The arrays of a model, each under the path that leads to it."""
    leaves = jax.tree_util.tree_leaves_with_path(model)
    return {f"{prefix}{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}


def filled(
    skeleton: PyTree, arrays: dict[str, np.ndarray], axes: tuple[int, ...], prefix: str = ""
) -> PyTree:
    """A model of shapes, filled from an untrusted file with what `named_leaves` gave, and nothing
    else. ``axes`` come before those of each shape."""
    leaves = jax.tree_util.tree_leaves_with_path(skeleton)
    shapes = {f"{prefix}{jax.tree_util.keystr(p)}": (*axes, *leaf.shape) for p, leaf in leaves}
    for name, shape in shapes.items():
        need_array(arrays, name, shape)
    if len(arrays) != len(shapes):
        raise ModelFileError("the model file holds arrays that this model does not know")
    values = [jnp.asarray(arrays[name], jnp.float32) for name in shapes]
    return jax.tree.unflatten(jax.tree.structure(skeleton), values)


def _named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
