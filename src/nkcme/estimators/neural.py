"""NKCME: the paper's estimator. A network gives the weights, the kernel's bandwidth is learned."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from sklearn.cluster import KMeans

from nkcme.atoms import Atoms
from nkcme.embedding import READINGS, Embedding
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import ConditionalEstimator, Encoded
from nkcme.kernels import KERNELS, DensityKernel, kernel_class
from nkcme.networks import ACTIVATIONS, HEADS, MLP
from nkcme.objectives import rkhs_loss, sq_loss
from nkcme.progress import TrainingBar, wants_progress
from nkcme.training import Objective, Plan, Rows, Task, Trained, train


class NeuralEmbedding(eqx.Module):
    """x -> sum_a f_a(x) k(eta_a, .), with f a network and k of a learned bandwidth."""

    network: MLP
    raw_bandwidth: Array  # softplus of it is added to the floor
    atoms: Atoms
    bandwidth_floor: Array
    kernel_name: str = eqx.field(static=True)

    @property
    def kernel(self) -> DensityKernel:
        bandwidth = self.bandwidth_floor + jax.nn.softplus(self.raw_bandwidth)
        return kernel_class(self.kernel_name)(bandwidth)

    def weights(self, x: Array) -> Array:
        """Weights (n, m) at inputs (n, p), as trained: not yet divided by their sum."""
        return jax.vmap(self.network)(x)


class NKCME(ConditionalEstimator):
    """Neural-kernel conditional mean embedding: P(y | x) of any shape, from a table.

    The defaults are for people: better than the paper's recipe at a fraction of its cost. The
    paper's own are in `nkcme.presets`.

    Parameters
    ----------
    kernel : {"gaussian", "laplace", "cauchy"}
        The density kernel in which distributions are embedded.
    n_atoms : int
        How many locations eta_a carry weights: an even grid over the range of y; for several
        outputs, cluster centres of y.
    hidden : tuple of int
        Widths of the network's hidden layers.
    activation : {"relu", "silu", "gelu", "tanh"}
    head : {"simplex", "signed"}
        Weights on the simplex (softmax), or unconstrained as in the paper.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the last).
    bandwidth : float
        The bandwidth at the start, in units of standardised y. Starting wide and letting it shrink
        trains coarse to fine, and reaches better models than starting narrow.
    bandwidth_floor : float or None
        How narrow it may become, in spacings between neighbouring atoms: finer than its atoms, or
        than so many rows can tell, an embedding only learns the noise. 0 for the paper's unbounded
        one. None: chosen from n.
    bandwidth_update : {"joint", "iterative", "fixed"}
        Learn it with the weights on one loss, in turns on the SQ loss, or not at all.
    bandwidth_period : int
        With ``"iterative"``, update it every so many steps.
    learning_rate : float
        AdamW's step size for the network.
    bandwidth_learning_rate : float or None
        AdamW's step size for the bandwidth, which is then not decayed. None: the network's, decay
        included, as in the paper.
    weight_decay : float or None
        AdamW's weight decay. None: chosen from the numbers of rows and inputs.
    beta2 : float
        AdamW's memory of squared gradients.
    schedule : {"cosine", "constant"}
        The course of the learning rates.
    batch_size : int
    epochs : int or None
        Passes over the data: floor(n / batch_size) * epochs steps. None: chosen from n.
    standardize : bool
        Bring X and y to zero mean and unit variance for training; undone on the way out.
    reading : {"auto", "atomic", "smoothed"}
        How predicted embeddings are read (see `Embedding`); "auto" is atomic for the simplex and
        smoothed for signed weights.
    validation_fraction : float
        Share of rows held out to decide which state of training is kept; 0 for none. Ignored
        when `fit` is given ``X_val``.
    patience : int or None
        Stop after so many chunks (twentieths of the run) without a better validation; needs rows
        held out.
    random_state : int, RandomState or None
        The same integer gives the same bits on the same machine.
    verbose : bool or "auto"
        Progress on standard error; "auto" where it is a terminal.
    checkpoint : path or None
        A file that keeps the state of training; a fit that was killed goes on from it and gives
        the bits of an uninterrupted one.

    Attributes
    ----------
    bandwidth_ : float
        The learned bandwidth, in units of standardised y.
    n_steps_ : int
        Steps trained.
    history_ : dict of arrays
        ``step``, ``loss``, ``bandwidth`` and, where there is one, ``validation``; an entry a chunk.
    n_features_in_, feature_names_in_, n_outputs_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        n_atoms: int = 100,
        hidden: Sequence[int] = (64, 64, 64),
        activation: str = "relu",
        head: str = "simplex",
        spectral_norm: Sequence[int] = (),
        bandwidth: float = 1.0,
        bandwidth_floor: float | None = None,
        bandwidth_update: str = "joint",
        bandwidth_period: int = 1,
        learning_rate: float = 1e-2,
        bandwidth_learning_rate: float | None = 1e-2,
        weight_decay: float | None = None,
        beta2: float = 0.99,
        schedule: str = "cosine",
        batch_size: int = 256,
        epochs: int | None = None,
        standardize: bool = True,
        reading: str = "auto",
        validation_fraction: float = 0.0,
        patience: int | None = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
        checkpoint: str | Path | None = None,
    ):
        self.kernel = kernel
        self.n_atoms = n_atoms
        self.hidden = hidden
        self.activation = activation
        self.head = head
        self.spectral_norm = spectral_norm
        self.bandwidth = bandwidth
        self.bandwidth_floor = bandwidth_floor
        self.bandwidth_update = bandwidth_update
        self.bandwidth_period = bandwidth_period
        self.learning_rate = learning_rate
        self.bandwidth_learning_rate = bandwidth_learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.schedule = schedule
        self.batch_size = batch_size
        self.epochs = epochs
        self.standardize = standardize
        self.reading = reading
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    # --- training -----------------------------------------------------------------------------

    def _train(self, datasets: Sequence[Encoded]) -> list[_Fitted]:
        self._check_parameters()
        tables = [_Table.of(data, self.validation_fraction) for data in datasets]
        n_rows = int(np.mean([t.n_rows for t in tables]))
        plan = Plan(self._n_steps(n_rows), self.batch_size, patience=self.patience)
        spec = self._spec(datasets[0].x.shape[1], datasets[0].y.shape[1], plan.n_steps, n_rows)
        first_rows = np.cumsum([0] + [len(t.x) for t in tables[:-1]])
        rows = Rows.of(
            [t.rows + first for t, first in zip(tables, first_rows, strict=True)],
            [t.weight for t in tables],
        )
        held_out = None
        if self.patience is not None and not len(tables[0].held_out):
            raise NkcmeError(
                "patience needs rows held out: give validation_fraction above 0, or X_val and y_val"
            )
        if len(tables[0].held_out):
            held_out = Rows.of(
                [t.held_out + first for t, first in zip(tables, first_rows, strict=True)],
                [t.held_out_weight for t in tables],
            )
        table = tuple(np.concatenate([getattr(t, name) for t in tables]) for name in ("x", "y"))
        atoms = [self._atoms(data) for data in datasets]
        keys = jnp.stack([jax.random.key(data.seed) for data in datasets])
        run = partial(
            train,
            make_task(spec),
            jax.tree.map(lambda *leaves: jnp.stack(leaves), *atoms),
            table,
            rows,
            plan,
            keys,
            validation_rows=held_out,
            checkpoint=self._checkpoint_file(),
            fingerprint=self._fingerprint(datasets) if self.checkpoint is not None else "",
        )
        if wants_progress(self.verbose):
            with TrainingBar(plan.n_steps) as bar:
                trained = run(progress=bar)
        else:
            trained = run()
        return [_Fitted.of(trained, i) for i in range(len(datasets))]

    def _accept(self, trained: _Fitted) -> None:
        self.model_ = trained.model
        self.bandwidth_ = float(trained.model.kernel.bandwidth)
        self.n_steps_ = trained.n_steps
        self.history_ = trained.history

    def _n_steps(self, n_rows: int) -> int:
        if self.epochs is not None:
            return max(n_rows // self.batch_size, 1) * self.epochs
        return default_steps(n_rows)

    def _atoms(self, data: Encoded) -> Atoms:
        if data.y.shape[1] == 1:
            low, high = (jnp.asarray(v, jnp.float32) for v in _range(data.y))
            return Atoms.grid(low, high, self.n_atoms)
        distinct = np.unique(data.y, axis=0)
        if len(distinct) <= self.n_atoms:
            # Rows of one batch need one shape, so too few distinct points are repeated.
            return Atoms.points(jnp.asarray(np.resize(distinct, (self.n_atoms, distinct.shape[1]))))
        means = KMeans(self.n_atoms, n_init=1, max_iter=50, random_state=data.seed)
        means.fit(data.y, sample_weight=data.weight)
        return Atoms.points(jnp.asarray(means.cluster_centers_))

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> _Spec:
        floor, decay = self.bandwidth_floor, self.weight_decay
        return _Spec(
            n_in=n_in,
            n_out=n_out,
            kernel=self.kernel,
            n_atoms=int(self.n_atoms),
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            head=self.head,
            spectral_norm=tuple(int(i) for i in self.spectral_norm),
            bandwidth=float(self.bandwidth),
            bandwidth_floor=float(default_bandwidth_floor(n_rows) if floor is None else floor),
            bandwidth_update=self.bandwidth_update,
            bandwidth_period=int(self.bandwidth_period),
            learning_rate=float(self.learning_rate),
            bandwidth_learning_rate=(
                None
                if self.bandwidth_learning_rate is None
                else float(self.bandwidth_learning_rate)
            ),
            weight_decay=float(default_weight_decay(n_rows, n_in) if decay is None else decay),
            beta2=float(self.beta2),
            schedule=self.schedule,
            n_steps=n_steps,
        )

    def _checkpoint_file(self) -> Any:
        if self.checkpoint is None:
            return None
        from nkcme.persistence import CheckpointFile  # needs safetensors

        return CheckpointFile(Path(self.checkpoint))

    def _check_parameters(self) -> None:
        _one_of("kernel", self.kernel, tuple(KERNELS))
        _one_of("activation", self.activation, tuple(ACTIVATIONS))
        _one_of("head", self.head, tuple(HEADS))
        _one_of("bandwidth_update", self.bandwidth_update, ("joint", "iterative", "fixed"))
        _one_of("schedule", self.schedule, tuple(SCHEDULES))
        _one_of("reading", self.reading, ("auto", *READINGS))
        for name in ("n_atoms", "batch_size", "bandwidth_period"):
            _whole(name, getattr(self, name))
        for name in ("epochs", "patience"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name))
        for width in _listed("hidden", self.hidden):
            _whole("each of hidden", width)
        for layer in _listed("spectral_norm", self.spectral_norm):
            _whole("each of spectral_norm", layer, least=None)
        for name in ("bandwidth", "learning_rate"):
            _number(name, getattr(self, name), above=0.0)
        if self.bandwidth_learning_rate is not None:
            _number("bandwidth_learning_rate", self.bandwidth_learning_rate, above=0.0)
        for name in ("bandwidth_floor", "weight_decay"):
            if getattr(self, name) is not None:
                _number(name, getattr(self, name), least=0.0)
        _number("beta2", self.beta2, above=0.0, below=1.0)
        _number("validation_fraction", self.validation_fraction, least=0.0, below=1.0)
        if not isinstance(self.verbose, bool | np.bool_) and self.verbose != "auto":
            raise NkcmeError(f'verbose must be True, False or "auto"; got {self.verbose!r}')
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise NkcmeError(f"checkpoint must be a path or None; got {self.checkpoint!r}")
        if self.checkpoint is not None and not isinstance(self.random_state, int | np.integer):
            raise NkcmeError(
                "a run can be resumed only with its own seed: with checkpoint, give random_state a "
                f"whole number; got {self.random_state!r}"
            )

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> Embedding:
        model = self.model_
        weights = np.asarray(_predict_weights(model, _padded(x)))[: len(x)]
        return Embedding(
            atoms=np.asarray(model.atoms.locations),
            weights=_summing_to_one(weights),
            kernel=model.kernel_name,
            bandwidth=self.bandwidth_,
            location=self.scaler_.location,
            scale=self.scaler_.scale,
            reading=self._reading(),
        )

    def _reading(self) -> str:
        if self.reading == "auto":
            return "atomic" if self.head == "simplex" else "smoothed"
        return self.reading

    def _herd(self, dist: Embedding, n_samples: int) -> np.ndarray:  # type: ignore[override]
        return dist.herd(n_samples)

    # --- files --------------------------------------------------------------------------------

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        leaves = jax.tree_util.tree_leaves_with_path(self.model_)
        arrays = {f"model{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in leaves}
        arrays |= {f"history/{name}": value for name, value in self.history_.items()}
        return {"n_steps": self.n_steps_}, arrays

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        n_steps = config.get("n_steps")
        if not isinstance(n_steps, int):
            raise ModelFileError(f"n_steps must be a whole number; the file says {n_steps!r}")
        self.n_steps_ = n_steps
        try:
            self._check_parameters()
            spec = self._spec(self.encoder_.n_outputs, self.n_outputs_, self.n_steps_, n_rows=1)
            # Shapes only: nothing is allocated before the file's arrays are seen to fit.
            skeleton = eqx.filter_eval_shape(
                partial(_init, spec), jax.random.key(0), _atoms_shape(spec)
            )
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"the parameters of this model are not usable: {error}") from error
        named = {
            f"model{jax.tree_util.keystr(path)}": leaf
            for path, leaf in jax.tree_util.tree_leaves_with_path(skeleton)
        }
        for name, leaf in named.items():
            _need_array(arrays, name, leaf.shape)
        prefix = "history/"
        self.history_ = {k.removeprefix(prefix): v for k, v in arrays.items() if prefix in k}
        if set(arrays) != set(named) | {prefix + k for k in self.history_}:
            raise ModelFileError("the model file holds arrays that this model does not know")
        leaves = [jnp.asarray(arrays[name], jnp.float32) for name in named]
        self.model_ = jax.tree.unflatten(jax.tree.structure(skeleton), leaves)
        self.bandwidth_ = float(self.model_.kernel.bandwidth)
        if not (np.isfinite(self.bandwidth_) and self.bandwidth_ > 0):
            raise ModelFileError(f"the bandwidth of this model is {self.bandwidth_}")


# Where the user does not say, what suits so many rows. Found by trial on the toy data (5,000 rows)
# and on Boston, Concrete and Energy (450 to 930), see docs/findings.md.


def default_steps(n_rows: int) -> int:
    """2,000 steps up to 5,000 rows, then with the square root of their number up to 20,000."""
    return int(np.clip(2000 * np.sqrt(n_rows / 5000), 2000, 20000)) // 100 * 100


def default_weight_decay(n_rows: int, n_inputs: int) -> float:
    """What keeps a network from learning a small or wide table by heart; next to nothing where
    there are thousands of rows for each input."""
    return min(3.0, (120 * n_inputs / n_rows) ** 0.8)


def default_bandwidth_floor(n_rows: int) -> float:
    """One spacing where rows are many; wider where there are too few to fill so fine a grid."""
    return float(np.clip((5000 / n_rows) ** 0.6, 1.0, 10.0))


class _Spec(NamedTuple):
    """The numbers that make a training program; equal specs share one."""

    n_in: int
    n_out: int
    kernel: str
    n_atoms: int
    hidden: tuple[int, ...]
    activation: str
    head: str
    spectral_norm: tuple[int, ...]
    bandwidth: float
    bandwidth_floor: float
    bandwidth_update: str
    bandwidth_period: int
    learning_rate: float
    bandwidth_learning_rate: float | None
    weight_decay: float
    beta2: float
    schedule: str
    n_steps: int


#: The course of a learning rate over so many steps.
SCHEDULES = {
    "constant": lambda rate, n_steps: rate,
    "cosine": optax.cosine_decay_schedule,
}


def _init(spec: _Spec, key: Array, atoms: Atoms) -> NeuralEmbedding:
    network = MLP(
        spec.n_in,
        spec.n_atoms,
        spec.hidden,
        activation=spec.activation,
        head=spec.head,
        spectral_norm=spec.spectral_norm,
        key=key,
    )
    # log(expm1(b)), without its overflow for a wide b.
    # The bandwidth starts where it was asked to, at floor + softplus(raw), and where it is fixed it
    # stays there. Few atoms far apart must not push the floor up to it.
    floor = jnp.minimum(spec.bandwidth_floor * atoms.neighbour_distance(), 0.5 * spec.bandwidth)
    if spec.bandwidth_update == "fixed":
        floor = jnp.zeros_like(floor)
    above = spec.bandwidth - floor
    raw_bandwidth = above + jnp.log(-jnp.expm1(-above))  # the inverse of softplus
    return NeuralEmbedding(network, raw_bandwidth, atoms, floor, spec.kernel)


@lru_cache(maxsize=64)
def make_task(spec: _Spec) -> Task:
    """The training task of a spec; the same object for equal specs, so compiled once."""

    def loss(criterion: Any, model: NeuralEmbedding, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        return criterion(model.weights(x), y, model.atoms, model.kernel)

    def only(network: bool, bandwidth: bool, model: NeuralEmbedding) -> NeuralEmbedding:
        """Marks what an objective moves."""
        nothing = jax.tree.map(lambda _: False, model)
        moved = model.network.trainable() if network else nothing.network
        return eqx.tree_at(lambda m: (m.network, m.raw_bandwidth), nothing, (moved, bandwidth))

    def adamw(rate: float, decay: float, period: int = 1) -> optax.GradientTransformation:
        schedule = SCHEDULES[spec.schedule](rate, max(spec.n_steps // period, 1))
        return optax.adamw(schedule, b2=spec.beta2, weight_decay=decay)

    network_optimizer = adamw(spec.learning_rate, spec.weight_decay)
    # The paper's one rate for everything decays the bandwidth too. With a rate of its own it is
    # left alone: decay would pull it to softplus(0), whatever the data say.
    own_rate = spec.bandwidth_learning_rate
    bandwidth_optimizer = partial(
        adamw,
        spec.learning_rate if own_rate is None else own_rate,
        spec.weight_decay if own_rate is None else 0.0,
    )
    label = lambda model: eqx.tree_at(  # noqa: E731
        lambda m: m.raw_bandwidth, jax.tree.map(lambda _: "network", model), "bandwidth"
    )
    joint = network_optimizer
    if own_rate is not None:
        joint = optax.multi_transform(
            {"network": network_optimizer, "bandwidth": bandwidth_optimizer()}, label
        )
    objectives = {
        "joint": (Objective(partial(loss, rkhs_loss), partial(only, True, True), joint),),
        "fixed": (
            Objective(partial(loss, rkhs_loss), partial(only, True, False), network_optimizer),
        ),
        "iterative": (
            Objective(partial(loss, rkhs_loss), partial(only, True, False), network_optimizer),
            Objective(
                partial(loss, sq_loss),
                partial(only, False, True),
                bandwidth_optimizer(spec.bandwidth_period),
                spec.bandwidth_period,
            ),
        ),
    }
    return Task(
        init=partial(_init, spec),
        objectives=objectives[spec.bandwidth_update],
        advance=lambda m: eqx.tree_at(lambda m: m.network, m, m.network.iterate()),
        monitor=lambda m: {"bandwidth": m.kernel.bandwidth},
        validation=_validation_crps,
    )


def _validation_crps(model: NeuralEmbedding, batch: tuple[Array, Array]) -> Array:
    """The energy score of the atomic measure (for one output, the CRPS), a value a row.

    The training losses are no yardstick across steps: they change with the bandwidth.
    """
    x, y = batch
    w = model.weights(x)
    w = w / jnp.sum(w, axis=1, keepdims=True)
    eta = model.atoms.locations
    to_y = jnp.linalg.norm(y[:, None] - eta[None], axis=-1)
    between = jnp.linalg.norm(eta[:, None] - eta[None], axis=-1)
    return jnp.sum(w * to_y, axis=1) - 0.5 * jnp.sum((w @ between) * w, axis=1)


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


class _Fitted(NamedTuple):
    """One replica of a training run."""

    model: NeuralEmbedding
    history: dict[str, np.ndarray]
    n_steps: int
    interrupted: bool

    @classmethod
    def of(cls, trained: Trained, replica: int) -> _Fitted:
        history = trained.history.as_arrays()
        own = {name: v if name == "step" else v[:, replica] for name, v in history.items()}
        model = jax.tree.map(lambda leaf: leaf[replica], trained.models)
        return cls(model, own, trained.n_steps, trained.interrupted)


@jax.jit
def _predict_weights(model: NeuralEmbedding, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):  # a GPU's ten bits are enough to train only
        return model.weights(x)


def _padded(x: np.ndarray) -> np.ndarray:
    """x with its rows filled up to a power of two, so that few programs are compiled."""
    size = max(64, 1 << (len(x) - 1).bit_length()) if len(x) else 64
    return np.pad(x, ((0, size - len(x)), (0, 0)))


def _summing_to_one(weights: np.ndarray) -> np.ndarray:
    """Each row divided by its sum, as the paper evaluates.

    Should a signed row sum to next to nothing, dividing would blow it up; its positive part is
    taken instead.
    """
    total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    unusable = ~(total > 0.05)
    if unusable.any():
        positive = np.maximum(weights, 0.0) + 1e-12
        weights = np.where(unusable, positive, weights)
        total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    return weights / total


def _range(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The closed range of y; a single value gets a little room, for a grid needs a width."""
    low, high = y.min(), y.max()
    if low == high:
        return low - 0.5, high + 0.5
    return low, high


def _atoms_shape(spec: _Spec) -> Atoms:
    locations = jax.ShapeDtypeStruct((spec.n_atoms, spec.n_out), jnp.float32)
    spacing = jax.ShapeDtypeStruct((), jnp.float32) if spec.n_out == 1 else None
    return Atoms(locations, spacing)  # type: ignore[arg-type]


def _need_array(arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...]) -> None:
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


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise NkcmeError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def _whole(name: str, value: Any, least: int | None = 1) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        bound = "" if least is None else f" of at least {least}"
        raise NkcmeError(f"{name} must be a whole number{bound}; got {value!r}")


def _listed(name: str, values: Any) -> list[Any]:
    if not isinstance(values, list | tuple | np.ndarray) or np.ndim(values) != 1:
        raise NkcmeError(f"{name} must be a list of whole numbers, as (64, 64); got {values!r}")
    return list(values)


def _number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
) -> None:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    fits = (
        number
        and np.isfinite(value)
        and (above is None or value > above)
        and (least is None or value >= least)
        and (below is None or value < below)
    )
    if not fits:
        bounds = [
            f"{word} {bound:g}"
            for word, bound in (("above", above), ("at least", least), ("below", below))
            if bound is not None
        ]
        raise NkcmeError(f"{name} must be a number {' and '.join(bounds)}; got {value!r}")
