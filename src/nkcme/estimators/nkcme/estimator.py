"""NKCME: the paper's estimator. A network gives the weights, the kernel's bandwidth is learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from nkcme import presets
from nkcme.atoms import Atoms
from nkcme.calibration.calibration_map import CalibrationMap, extrapolated_counts, pit_counts
from nkcme.distributions.atom_covariances import need_covariances
from nkcme.distributions.embedding import READINGS, Embedding, summing_to_one
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import Encoded, TrainingInterrupted, need_array
from nkcme.estimators.gradient_trained import Fitted, Replica, TrainedEstimator, padded
from nkcme.estimators.nkcme.atom_placement import (
    atoms_at_quantiles,
    closed_range,
    cluster_atoms,
)
from nkcme.estimators.nkcme.ensemble import (
    NeuralEmbedding,
    Spec,
    each_weights,
    make_task,
    mean_bandwidth,
    mean_weights,
    weights_out_of_part,
)
from nkcme.estimators.nkcme.folds import Parts
from nkcme.estimators.nkcme.location_fitting import check_center, fit_centers
from nkcme.estimators.nkcme.location_model import Center, Placed
from nkcme.estimators.nkcme.recipe import (
    MIN_ROWS,
    N_PARTS,
    beyond_doubt,
    default_bandwidth_floor,
    default_members,
    default_n_atoms,
    default_weight_decay,
)
from nkcme.estimators.nkcme.selection import LearningTask, energy_out_of_part, preferred
from nkcme.estimators.nkcme.uncertainty import disagreement
from nkcme.kernels import KERNELS
from nkcme.networks import HEADS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.checkpoint_groups import Phases
from nkcme.training.loop import Checkpoint, Task


class Uncertainty(NamedTuple):
    """What is uncertain, kept apart by what could be done about it: better inputs, or more rows."""

    #: The deviation of y that the members predict, in units of y: the root of the mean of their
    #: variances, (n_rows[, d]). No number of rows makes it smaller.
    aleatoric: np.ndarray
    #: How far the members' distributions are apart, (n_rows,): the root mean square of their MMD to
    #: their mean, 0 where they agree and near 1 where they have nothing in common.
    epistemic: np.ndarray


class NKCME(TrainedEstimator):
    """Neural-kernel conditional mean embedding: P(y | x) of any shape, from a table.

    The defaults are for people: sharper than the paper's recipe, calibrated, and nothing to tune.
    `presets.QUICK` is one network without the rest, many times faster to fit; the paper's own
    recipes are in `nkcme.presets`, too.

    Parameters
    ----------
    kernel : {"gaussian", "laplace", "cauchy"}
        The density kernel in which distributions are embedded.
    center : {"auto", "none", "mean", "mean-scale"}, regressor or list
        What atoms move with. "none": nothing, they stay where they are for every x. "mean": a
        prediction m(x) of the mean, stacked of networks and gradient boosting; the embedding is
        then that of y - m(x), as sharp where y is certain as it is wide where it is not.
        "mean-scale": that of (y - m(x)) / s(x), with s(x) by boosting, one for all outputs. Or your
        own: any scikit-learn regressor, or a list of them, in which "network" stands for ours. The
        centre is cross-fitted. "auto": "mean" where it is clearly better than "none" on rows that
        were not trained on; the two are not compared where the mean explains most of y. For several
        outputs also "mean-scale", where that is clearly better than both.
    n_members : int or None
        How many networks are averaged in the Hilbert space; where there is cross-fitting (a
        centre, or recalibration), so many for each of five parts. None: chosen from n.
    recalibrate : bool or "auto"
        Map predicted probabilities so that they are right on average over rows that were not
        trained on. For weights on the simplex and one output; "auto" does it for those.
    atoms : {"auto", "grid", "quantile", "learned"}
        Where the locations eta_a are that carry weights. "grid": evenly over the range of y.
        "quantile": half of them where y is, half evenly over a range a little wider. "learned":
        the same, around where a first network moves them to with its weights. "auto": "grid" for y
        itself where its range is not many deviations wide, "quantile" otherwise and for what a
        centre leaves. For several outputs they are cluster centres of y.
    n_atoms : int or None
        How many there are. None: 100 for one output, 300 for several.
    hidden : tuple of int
        Widths of the network's hidden layers.
    activation : {"relu", "silu", "gelu", "tanh"}
    head : {"simplex", "signed"}
        Weights on the simplex (softmax), or unconstrained as in the paper.
    spectral_norm : tuple of int
        Layers to normalise by their largest singular value (0 is the first, -1 the last).
    bandwidth : float
        The bandwidth at the start, in units of standardised y (of several outputs, times the root
        of their number, as distances are). Starting wide and letting it shrink
        trains coarse to fine, and reaches better models than starting narrow.
    bandwidth_floor : float or None
        How narrow it may become, in spacings between neighbouring atoms: finer than its atoms, or
        than so many rows can tell, an embedding only learns the noise. 0 for the paper's unbounded
        one (but for 0.18, which keeps it from vanishing). None: chosen from n.
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
        The learned bandwidth, in units of standardised y or, with a centre, of what it leaves;
        of several members the geometric mean.
    center_ : Center or None
        The fitted centre.
    recalibration_ : CalibrationMap or None
        The fitted map of probabilities.
    n_atoms_ : int
        How many atoms there are.
    n_members_ : int
        How many networks are averaged.
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
        center: Any = "auto",
        n_members: int | None = None,
        recalibrate: bool | str = "auto",
        atoms: str = "auto",
        n_atoms: int | None = None,
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
        self.center = center
        self.n_members = n_members
        self.recalibrate = recalibrate
        self.atoms = atoms
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

    def _train(self, datasets: Sequence[Encoded]) -> list[_Ensemble]:
        self._check_parameters()
        n_rows, n_outputs = datasets[0].n_rows, datasets[0].y.shape[1]
        if self._must_recalibrate and n_outputs > 1:
            raise NkcmeError(f"recalibrate is for one output, and y has {n_outputs}; leave it out")
        least = min(len(data.x) for data in datasets)
        centred, honest = not self._is("none"), self._recalibrates(n_outputs)
        if least < MIN_ROWS:
            if self._must_recalibrate or not (self._is("auto") or self._is("none")):
                raise NkcmeError(
                    f"a centre and recalibration need at least {MIN_ROWS} different rows to hold "
                    f'some out; got {least}: leave both to "auto", or turn them off'
                )
            centred = honest = False
        n_deals = self.n_members or (default_members(n_rows) if centred or honest else 1)
        tasks = [
            LearningTask(
                d, Parts.deal(len(d.x), N_PARTS, n_deals, d.seed) if centred or honest else None
            )
            for d in datasets
        ]
        checkpoint = self._checkpoint_file()
        if not centred:
            return self._ensembles(tasks, n_deals, checkpoint)
        phases = None if checkpoint is None else Phases(checkpoint)
        phase = lambda name: None if phases is None else phases.phase(name)  # noqa: E731
        fits = fit_centers(
            self.center,
            datasets,
            [task.parts for task in tasks if task.parts is not None],
            phases=phases,
            fingerprint=self._fingerprint(datasets) if phases is not None else "",
            verbose=self.verbose,
        )
        around = [task._replace(center=fit) for task, fit in zip(tasks, fits, strict=True)]
        found = self._ensembles(around, n_deals, phase("embedding"))
        if self._is("auto") and not any(one.interrupted for one in found):
            found = self._with_best_centers(found, n_deals, phase)
        return found

    def _with_best_centers(
        self,
        found: list[_Ensemble],
        n_deals: int,
        phase: Callable[[str], Checkpoint | None],
    ) -> list[_Ensemble]:
        """What was found around centres, or without them or with a scale where that is better by
        what is said of rows out of part."""
        options = [one.task.options(beyond_doubt(one.task.data.n_rows)) for one in found]
        learned = [{"centred": one} for one in found]
        for name in ("uncentred", "scaled"):
            tried = [i for i, open_ in enumerate(options) if name in open_]
            if not tried:
                continue
            fitted = self._ensembles([options[i][name] for i in tried], n_deals, phase(name))
            if any(one.interrupted for one in fitted):
                return [one._replace(interrupted=True) for one in found]
            for i, one in zip(tried, fitted, strict=True):
                learned[i][name] = one
        best = []
        for open_, of_set in zip(options, learned, strict=True):
            name = next(iter(open_))
            if len(open_) > 1:
                scores = {o: energy_out_of_part(of_set[o].model, open_[o]) for o in open_}
                name = preferred(scores, open_[name].data.weight)
            best.append(of_set[name])
        return best

    def _is(self, center: str) -> bool:
        return isinstance(self.center, str) and self.center == center

    @property
    def _must_recalibrate(self) -> bool:
        return not isinstance(self.recalibrate, str) and bool(self.recalibrate)

    def _recalibrates(self, n_outputs: int) -> bool:
        possible = n_outputs == 1 and self._reading() == "atomic" and self.head == "simplex"
        return self._must_recalibrate or (isinstance(self.recalibrate, str) and possible)

    def _ensembles(
        self, tasks: Sequence[LearningTask], n_deals: int, checkpoint: Checkpoint | None
    ) -> list[_Ensemble]:
        """The members of all data sets train as one program."""
        members = [
            [
                Replica(
                    i,
                    None if task.parts is None else task.parts.rows_of(j),
                    _member_seed(task.data.seed, j),
                )
                for j in range(n_deals if task.parts is None else task.parts.n_members)
            ]
            for i, task in enumerate(tasks)
        ]
        replicas = [one for group in members for one in group]
        left = [task.left() for task in tasks]
        atoms = None
        if self.atoms == "learned" and left[0].y.shape[1] == 1:
            atoms = self._learned_atoms(left)
        elif self.atoms == "auto":
            atoms = [self._chosen_atoms(task) for task in tasks]
        fitted = iter(self._train_replicas(left, replicas, checkpoint, constants=atoms))
        return [
            self._ensemble([next(fitted) for _ in group], task)
            for group, task in zip(members, tasks, strict=True)
        ]

    def _chosen_atoms(self, task: LearningTask) -> Atoms:
        """Even ones are best for y itself (docs/findings.md), unless a long tail would make them
        coarse where most of it is."""
        left = task.left()
        low, high = closed_range(left.y)
        if (
            left.y.shape[1] > 1
            or task.center is not None
            or high - low > _EVEN_UP_TO * left.y.std()
        ):
            return self._constant(left)
        n_atoms = self._count_atoms(1)
        return Atoms.points(Atoms.grid(jnp.float32(low), jnp.float32(high), n_atoms).locations)

    def _learned_atoms(self, datasets: Sequence[Encoded]) -> list[Atoms]:
        """Half of them where a first network, which moves them with its weights, would have them,
        half evenly: left alone they gather, and leave gaps where little of y is. For the members of
        an ensemble they must be the same."""
        replicas = [Replica(i, None, data.seed) for i, data in enumerate(datasets)]
        fitted = self._train_replicas(
            datasets, replicas, None, change=lambda spec: spec._replace(learns_atoms=True)
        )
        if any(one.interrupted for one in fitted):
            raise TrainingInterrupted(
                "stopped by Ctrl-C while the atoms were learned: there is no model yet. To go on "
                "later, fit again with the same data, parameters and checkpoint=PATH"
            )
        atoms = []
        for one, data in zip(fitted, datasets, strict=True):
            learned = np.ravel(one.model.atoms.locations)
            points = np.append(learned, closed_range(data.y))
            atoms.append(atoms_at_quantiles(points, np.ones(len(points)), len(learned)))
        return atoms

    def _ensemble(self, members: list[Fitted], task: LearningTask) -> _Ensemble:
        """The members of one data set as one model."""
        model = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one.model for one in members))
        histories = [one.history for one in members]
        history = {name: np.mean([h[name] for h in histories], axis=0) for name in histories[0]}
        history["step"] = histories[0]["step"]
        return _Ensemble(task, model, history, members[0].n_steps, members[0].interrupted)

    def _recalibration(
        self, model: NeuralEmbedding, task: LearningTask, parts: Parts
    ) -> CalibrationMap:
        """From what is said of rows out of part, by one deal and by all, which are still fewer
        than speak of new rows."""
        weight = task.data.weight * (task.data.n_rows / task.data.weight.sum())
        left = task.left()

        def seen(weights: np.ndarray) -> np.ndarray:
            embedding = self._embedding(model, summing_to_one(weights), 0.0, 1.0)
            return pit_counts(embedding.cdf(left.y[:, 0]), weight)

        deals = [weights_out_of_part(model, left.x, parts, deal) for deal in range(parts.n_deals)]
        single = np.mean([seen(one) for one in deals], axis=0)
        together = seen(np.sum(deals, axis=0))
        return CalibrationMap.from_counts(
            extrapolated_counts(single, together, parts.n_deals, parts.n_members)
        )

    @property
    def n_members_(self) -> int:
        return len(self.model_.raw_bandwidth)

    def _accept(self, trained: _Ensemble) -> None:  # type: ignore[override]
        self.model_ = trained.model
        self.n_steps_ = trained.n_steps
        self.history_ = trained.history
        task = trained.task
        self.center_ = None if task.center is None else task.center.center
        self.recalibration_ = None
        if task.parts is not None and self._recalibrates(task.data.y.shape[1]):
            self.recalibration_ = self._recalibration(self.model_, task, task.parts)
        self.bandwidth_ = mean_bandwidth(self.model_)
        self.n_atoms_ = self.model_.atoms.locations.shape[1]

    def _constant(self, data: Encoded) -> Atoms:
        n_atoms = self._count_atoms(data.y.shape[1])
        if data.y.shape[1] == 1:
            if self.atoms != "grid":
                return atoms_at_quantiles(data.y[:, 0], data.weight, n_atoms)
            low, high = (jnp.asarray(end, jnp.float32) for end in closed_range(data.y))
            return Atoms.grid(low, high, n_atoms)
        clusters = cluster_atoms(data.y, data.weight, n_atoms, data.seed)
        return Atoms.points(*(jnp.asarray(part, jnp.float32) for part in clusters))

    def _constant_shape(self, spec: Spec) -> Atoms:
        locations = jax.ShapeDtypeStruct((spec.n_atoms, spec.n_out), jnp.float32)
        even = spec.n_out == 1 and self.atoms == "grid"
        spacing = jax.ShapeDtypeStruct((), jnp.float32) if even else None
        spread = None
        if spec.n_out > 1:
            spread = jax.ShapeDtypeStruct((*locations.shape, spec.n_out), jnp.float32)
        return Atoms(locations, spacing, spread)  # type: ignore[arg-type]

    def _count_atoms(self, n_out: int) -> int:
        return default_n_atoms(n_out) if self.n_atoms is None else int(self.n_atoms)

    def _spec(self, n_in: int, n_out: int, n_steps: int, n_rows: int) -> Spec:
        floor, decay = self.bandwidth_floor, self.weight_decay
        descent = self._descent(n_steps)
        if decay is None:
            descent = descent._replace(weight_decay=default_weight_decay(n_rows, n_in, n_out))
        # The paper's one rate for everything decays the bandwidth too. With a rate of its own it is
        # left alone: decay would pull it to softplus(0), whatever the data say.
        own_rate = self.bandwidth_learning_rate
        return Spec(
            n_in=n_in,
            n_out=n_out,
            kernel=self.kernel,
            n_atoms=self._count_atoms(n_out),
            hidden=tuple(int(h) for h in self.hidden),
            activation=self.activation,
            head=self.head,
            spectral_norm=tuple(int(i) for i in self.spectral_norm),
            bandwidth=float(self.bandwidth) * n_out**0.5,  # as distances grow
            bandwidth_floor=float(default_bandwidth_floor(n_rows) if floor is None else floor),
            bandwidth_update=self.bandwidth_update,
            bandwidth_period=int(self.bandwidth_period),
            descent=descent,
            bandwidth_descent=(
                descent
                if own_rate is None
                else descent._replace(learning_rate=float(own_rate), weight_decay=0.0)
            ),
        )

    @staticmethod
    def _task(spec: Spec) -> Task:
        return make_task(spec)

    def _check_own_parameters(self) -> None:
        need_one_of("kernel", self.kernel, tuple(KERNELS))
        need_one_of("head", self.head, tuple(HEADS))
        need_one_of("bandwidth_update", self.bandwidth_update, ("joint", "iterative", "fixed"))
        need_one_of("reading", self.reading, ("auto", *READINGS))
        need_one_of("atoms", self.atoms, ("auto", "grid", "quantile", "learned"))
        need_whole("bandwidth_period", self.bandwidth_period)
        for name in ("n_atoms", "n_members"):
            if getattr(self, name) is not None:
                need_whole(name, getattr(self, name))
        check_center(self.center)
        if not isinstance(self.recalibrate, bool | np.bool_) and self.recalibrate != "auto":
            raise NkcmeError(f'recalibrate must be True, False or "auto"; got {self.recalibrate!r}')
        if self._must_recalibrate and self._reading() != "atomic":
            raise NkcmeError(
                'recalibrate needs weights that are probabilities: head="simplex" and the atomic '
                f"reading; got head={self.head!r} and reading={self.reading!r}"
            )
        need_wholes("spectral_norm", self.spectral_norm, least=None)
        need_number("bandwidth", self.bandwidth, above=0.0)
        if self.bandwidth_learning_rate is not None:
            need_number("bandwidth_learning_rate", self.bandwidth_learning_rate, above=0.0)
        if self.bandwidth_floor is not None:
            need_number("bandwidth_floor", self.bandwidth_floor, least=0.0)

    # --- prediction ---------------------------------------------------------------------------

    def _distribution(self, x: np.ndarray) -> Embedding:
        placed = None if self.center_ is None else self.center_.at(x)
        inputs = x if placed is None else placed.inputs
        said = np.asarray(mean_weights(self.model_, padded(inputs)))[: len(x)]
        weights = self._recalibrated(summing_to_one(said))
        location, scale = self._units(placed, weights)
        return self._embedding(self.model_, weights, location, scale)

    def _recalibrated(self, weights: np.ndarray) -> np.ndarray:
        return weights if self.recalibration_ is None else self.recalibration_.of_weights(weights)

    def _units(self, placed: Placed | None, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The location and scale of atoms with these weights."""
        location, scale = self.scaler_.location, self.scaler_.scale
        if placed is None:
            return location, scale
        deviation = self._embedding(self.model_, weights, 0.0, 1.0).std()
        own = placed.narrowed(np.square(deviation).reshape(placed.mean.shape))
        return location + scale * placed.mean, scale * own

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """What y leaves open and what the model does, row by row; see `Uncertainty`."""
        check_is_fitted(self)
        x = self._encode(X)
        starts = range(0, len(x), _ROWS_ASKED)
        blocks = [self._uncertainty(x[i : i + _ROWS_ASKED]) for i in starts]
        return Uncertainty(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _uncertainty(self, x: np.ndarray) -> Uncertainty:
        placed = None if self.center_ is None else self.center_.at(x)
        inputs = x if placed is None else placed.inputs
        said = np.asarray(each_weights(self.model_, padded(inputs)))[:, : len(x)]
        weights = np.stack([summing_to_one(one) for one in said])
        _, scale = self._units(placed, self._recalibrated(summing_to_one(said.mean(axis=0))))
        atoms = np.asarray(self.model_.atoms.locations[0], np.float64)
        variance = weights @ np.square(atoms) - np.square(weights @ atoms)
        aleatoric = scale * np.sqrt(np.maximum(variance.mean(axis=0), 0.0))
        shift = np.zeros((len(weights), len(x), atoms.shape[1]))
        if placed is not None:
            shift = (placed.members - placed.mean) * self.scaler_.scale / scale
        epistemic = disagreement(
            weights, atoms, shift, self.model_.kernel_name, mean_bandwidth(self.model_)
        )
        return Uncertainty(aleatoric[:, 0] if self.y_ndim_ == 1 else aleatoric, epistemic)

    def _embedding(
        self, model: NeuralEmbedding, weights: np.ndarray, location: Any, scale: Any
    ) -> Embedding:
        spread = model.atoms.spread
        return Embedding(
            atoms=np.asarray(model.atoms.locations[0]),
            weights=weights,
            kernel=model.kernel_name,
            bandwidth=mean_bandwidth(model),
            location=location,
            scale=scale,
            reading=self._reading(),
            covariances=None if spread is None else np.asarray(spread[0]),
        )

    def _reading(self) -> str:
        if self.reading == "auto":
            return "atomic" if self.head == "simplex" else "smoothed"
        return self.reading

    def _herd(self, dist: Embedding, n_samples: int) -> np.ndarray:  # type: ignore[override]
        return dist.herd(n_samples)

    # --- files --------------------------------------------------------------------------------

    _BEFORE = presets.QUICK

    def _learned(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        learned, arrays = super()._learned()
        of_file = {"n_members": self.n_members_, "n_atoms": self.n_atoms_}
        if self.center_ is not None:
            of_file["n_inputs"] = self.center_.n_inputs(self.encoder_.n_outputs)
        return learned | of_file, arrays

    def _solution(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        if self.center_ is not None:
            arrays |= {f"{_CENTER}{k}": v for k, v in self.center_.to_arrays().items()}
        if self.recalibration_ is not None:
            arrays[_RECALIBRATION] = self.recalibration_.values
        return arrays

    def _leading_axes(self, config: dict[str, Any]) -> tuple[int, ...]:
        return (_count_in_file(config, "n_members", 1),)

    def _spec_of_file(self, config: dict[str, Any]) -> Spec:
        # Before there was a default that may change, the number was among the parameters.
        spec: Spec = super()._spec_of_file(config)
        return spec._replace(
            n_in=_count_in_file(config, "n_inputs", spec.n_in),
            n_atoms=_count_in_file(config, "n_atoms", self.n_atoms),
        )

    def _relearn(self, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        if "n_members" not in config:  # of a version that knew one member only
            arrays = {k: v[None] if k.startswith("model") else v for k, v in arrays.items()}
        if self.n_outputs_ > 1 and _SPREAD not in arrays:  # of one whose atoms had none
            shape = np.shape(arrays.get("model.atoms.locations", ()))
            arrays = arrays | {_SPREAD: np.zeros((*shape, self.n_outputs_), np.float32)}
        super()._relearn(config, arrays)
        self.n_atoms_ = self.model_.atoms.locations.shape[1]
        if self.model_.atoms.spread is not None:
            need_covariances(np.asarray(self.model_.atoms.spread[0]))
        self.bandwidth_ = mean_bandwidth(self.model_)
        if not (np.isfinite(self.bandwidth_) and self.bandwidth_ > 0):
            raise ModelFileError(f"the bandwidth of this model is {self.bandwidth_}")

    def _accept_solution(self, solution: dict[str, np.ndarray]) -> None:
        arrays = dict(solution)
        values = arrays.pop(_RECALIBRATION, None)
        self.recalibration_ = None
        if values is not None:
            need_array({_RECALIBRATION: values}, _RECALIBRATION, (len(np.atleast_1d(values)),))
            try:
                self.recalibration_ = CalibrationMap(values)
            except NkcmeError as error:
                raise ModelFileError(str(error)) from error
        if self.recalibrate != "auto" and self.recalibrate != (values is not None):
            raise ModelFileError("the model file and its parameters disagree on recalibration")
        of_center = {k.removeprefix(_CENTER): v for k, v in arrays.items() if k.startswith(_CENTER)}
        if len(of_center) != len(arrays):
            raise ModelFileError("the model file holds arrays that this model does not know")
        if not self._is("auto") and self._is("none") != (not of_center):
            raise ModelFileError("the model file and its parameters disagree on the centre")
        n_in, self.center_ = self.encoder_.n_outputs, None
        if of_center:
            self.center_ = Center.from_arrays(of_center, n_in, self.n_outputs_)
            n_in = self.center_.n_inputs(n_in)
            if self.center_.n_members != self.n_members_:
                raise ModelFileError(
                    "the centre of the model file has other members than the model"
                )
        if self.model_.network.layers[0].weight.shape[-1] != n_in:
            raise ModelFileError("the centre of the model file does not fit its network")


def _count_in_file(config: dict[str, Any], name: str, unsaid: int | None) -> int:
    count = config.get(name, unsaid)
    if not isinstance(count, int) or count < 1:
        raise ModelFileError(f"{name} must be a whole number; the file says {count!r}")
    return count


#: Standard deviations of y that even atoms may span.
_EVEN_UP_TO = 10.0

# The names of arrays in a model file.
_SPREAD = "model.atoms.spread"
_CENTER = "center/"
_RECALIBRATION = "recalibration"


#: Rows of which every member is asked at once.
_ROWS_ASKED = 1 << 12


class _Ensemble(NamedTuple):
    """What was learned from one data set."""

    task: LearningTask
    model: NeuralEmbedding  # its leaves have a leading axis of members
    history: dict[str, np.ndarray]
    n_steps: int
    interrupted: bool


def _member_seed(seed: int, member: int) -> int:
    """The first member is what it would be alone."""
    return seed if member == 0 else int(np.random.default_rng([seed, member]).integers(2**31))
