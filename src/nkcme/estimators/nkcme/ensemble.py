"""Ensembles of embeddings: members that share atoms and are averaged in the Hilbert space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from nkcme.atoms import Atoms
from nkcme.distributions.blocks import map_rows
from nkcme.distributions.embedding import Embedding
from nkcme.errors import NkcmeError
from nkcme.estimators.base import TrainingInterrupted
from nkcme.estimators.nkcme.atom_placement import between_learned, place_atoms
from nkcme.estimators.nkcme.candidate import Candidate
from nkcme.estimators.nkcme.component_weights import StackedComponents
from nkcme.estimators.nkcme.embedding_network import (
    NeuralEmbedding,
    Spec,
    TableValues,
    energy_scores,
    make_task,
)
from nkcme.estimators.nkcme.fitted_model import bandwidths_above, mean_bandwidth
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.recipe import EmbeddingRecipe
from nkcme.estimators.nkcme.training_stream import TrainingStream
from nkcme.estimators.replica_training import (
    Fitted,
    Program,
    Replica,
    Run,
    TrainingOptions,
    train_replicas,
)
from nkcme.estimators.training_data import Encoded
from nkcme.forward_passes import StackedNetworks, softmax
from nkcme.training.padding import padded_width


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Embeddings with the same atoms; the leaves have a leading axis of members.

    They are evaluated by NumPy, which compiles nothing.
    """

    members: NeuralEmbedding

    @property
    def n_members(self) -> int:
        return len(self.members.raw_bandwidth)

    @property
    def atoms(self) -> np.ndarray:
        """The atoms (m, d) that all members share."""
        return np.asarray(self.members.atoms.locations)[0]

    @property
    def kernel(self) -> str:
        """The name of their kernel."""
        return self.members.kernel_name

    @property
    def bandwidth(self) -> float:
        """The geometric mean of the members' bandwidths."""
        floor, raw = self.members.bandwidth_floor, self.members.raw_bandwidth
        return mean_bandwidth(bandwidths_above(np.asarray(floor), np.asarray(raw)))

    def weights(self, x: np.ndarray) -> np.ndarray:
        """The mean (n, m) of the members' weights: a mean of embeddings with the same atoms."""
        return map_rows(lambda own: self.each_weights(own).mean(axis=0), x, block_rows=_BLOCK_ROWS)

    def each_weights(self, x: np.ndarray) -> np.ndarray:
        """The weights (n_members, n, m) of each member."""
        return self._of_outputs(self._networks(x))

    def out_of_fold_weights(self, x: np.ndarray, folds: Folds) -> np.ndarray:
        """The weights (n_repeats, n, m) of each row by the members that did not train on it."""
        return self._of_outputs(self.out_of_fold_outputs(x, folds))

    def out_of_fold_outputs(self, x: np.ndarray, folds: Folds) -> np.ndarray:
        """What the networks give for each row (n_repeats, n, ...), likewise."""
        return folds.out_of_fold(lambda member, rows: self._networks.of_member(member, x[rows]))

    @cached_property
    def _networks(self) -> StackedNetworks:
        return self.members.network.stacked()

    def _of_outputs(self, outputs: np.ndarray) -> np.ndarray:
        """The weights (..., m) for outputs (..., k) of the networks."""
        if self.members.components is not None:
            flat = outputs.reshape(1, -1, outputs.shape[-1])
            weights = self.components.weights(flat, self.atoms[:, 0])
            return weights.reshape(*outputs.shape[:-1], -1)
        return softmax(outputs) if self.members.network.head == "simplex" else outputs

    @property
    def components(self) -> StackedComponents:
        """Those of the first member: before a network moves them, all members have the same."""
        return jax.tree.map(lambda leaf: leaf[:1], self.members.components).stacked()

    def embedding(
        self, weights: np.ndarray, location: Any, scale: Any, reading: str, **law: Any
    ) -> Embedding:
        """The embedding with these weights (n, m), in units of location and scale; ``law`` are the
        overlap, the tails and the support of `Embedding`."""
        spread = self.members.atoms.spread
        return Embedding(
            atoms=self.atoms,
            weights=weights,
            kernel=self.kernel,
            bandwidth=self.bandwidth,
            location=location,
            scale=scale,
            reading=reading,
            covariances=None if spread is None else np.asarray(spread[0]),
            **law,
        )


#: Rows that all members predict together.
_BLOCK_ROWS = 8192


@dataclass(frozen=True, eq=False)
class EnsembleFit:
    """A fitted ensemble, the data it was fitted to, and its out-of-fold weights."""

    candidate: Candidate
    ensemble: Ensemble
    history: dict[str, np.ndarray]
    n_steps: int
    interrupted: bool

    @cached_property
    def out_of_fold_weights(self) -> np.ndarray:
        """The weights (n_repeats, n, m) of the training rows, each by members that did not train
        on it; computed when first needed."""
        if self.candidate.folds is None:
            raise NkcmeError("an ensemble that was not cross-fitted has no out-of-fold weights")
        x = self.candidate.training_data.x
        return self.ensemble.out_of_fold_weights(x, self.candidate.folds)

    def out_of_fold_spread(self) -> np.ndarray:
        """The variance (n,) between members that did not train on a row, of one output in units of
        standardised y; zero with one repeat."""
        if self.candidate.location is not None:
            return self.candidate.location.out_of_fold_spread()[:, 0]
        weights, atoms = self.out_of_fold_weights, self.ensemble.atoms[:, 0]
        means = (weights @ atoms) / weights.sum(axis=-1)
        return means.var(axis=0, ddof=1) if len(means) > 1 else np.zeros(len(means[0]))

    @classmethod
    def of(cls, candidate: Candidate, members: Sequence[Fitted]) -> EnsembleFit:
        """The trained members of one data set as one ensemble."""
        # By NumPy: JAX would compile programs to stack them.
        models = jax.tree.map(lambda *leaves: np.stack(leaves), *(one.model for one in members))
        models = models.with_inputs(candidate.training_data.x.shape[1])
        histories = [one.history for one in members]
        history = {name: np.mean([h[name] for h in histories], axis=0) for name in histories[0]}
        history["step"] = histories[0]["step"]
        first = members[0]
        return cls(candidate, Ensemble(models), history, first.n_steps, first.interrupted)


class EnsembleTraining(NamedTuple):
    """How ensembles are trained: the network, the atoms, the minibatches."""

    spec: Callable[[int, int, int, int], Spec]  # by inputs, outputs, steps and rows
    values: Callable[[int, int, int], TableValues]  # by inputs, outputs and rows
    options: TrainingOptions
    placement: str
    n_atoms: int
    n_repeats: int
    recipe: EmbeddingRecipe
    stream: TrainingStream | None = None  # what members train on, instead of the candidates' rows

    def fit(self, candidates: Sequence[Candidate], run: Run) -> list[EnsembleFit]:
        """An ensemble for each candidate; the members of all of them train as one program."""
        members = [self._members(i, candidate) for i, candidate in enumerate(candidates)]
        datasets = [candidate.training_data for candidate in candidates]
        atoms = [
            place_atoms(
                self.placement,
                data,
                self.n_atoms,
                of_residuals=candidate.location is not None,
                recipe=self.recipe,
            )
            for candidate, data in zip(candidates, datasets, strict=True)
        ]
        if self.placement == "learned" and datasets[0].y.shape[1] == 1:
            atoms = self._learned_atoms(datasets, atoms, run)
        replicas = [replica for of_data in members for replica in of_data]
        judge = _Judge.of(candidates) if self.options.marks else None
        stream = None if self.stream is None else self.stream.at(candidates[0].location_model)
        trained = iter(
            train_replicas(
                datasets,
                replicas,
                self._program,
                atoms,
                self.options,
                run,
                judge=judge,
                stream=stream,
            )
        )
        return [
            EnsembleFit.of(candidate, [next(trained) for _ in of_data])
            for of_data, candidate in zip(members, candidates, strict=True)
        ]

    def _program(self, n_in: int, n_out: int, n_steps: int, n_rows: int, **changes: Any) -> Program:
        """What trains the members; ``changes`` are those of the spec."""
        width = padded_width(n_in)
        spec = self.spec(width, n_out, n_steps, n_rows)._replace(**changes)
        return Program(make_task(spec), width, self.values(n_in, n_out, n_rows))

    def _members(self, number: int, candidate: Candidate) -> list[Replica]:
        """The replicas of data set ``number``."""
        folds, seed = candidate.folds, candidate.data.seed
        if folds is None or self.stream is not None:
            return [Replica(number, None, _member_seed(seed, j)) for j in range(self.n_repeats)]
        return [
            Replica(number, folds.training_rows(j), _member_seed(seed, j))
            for j in range(folds.n_members)
        ]

    def _learned_atoms(
        self, datasets: Sequence[Encoded], start: Sequence[Atoms], run: Run
    ) -> list[Atoms]:
        """Atoms where a first network moves them while it trains. All members of an ensemble share
        them."""
        fitted = train_replicas(
            datasets,
            [Replica(i, None, data.seed) for i, data in enumerate(datasets)],
            partial(self._program, learns_atoms=True, n_components=0, averaging=0.0),
            start,
            self.options._replace(marks=()),
            replace(run, checkpoint=None),
        )
        if any(one.interrupted for one in fitted):
            raise TrainingInterrupted(
                "stopped by Ctrl-C while the atoms were learned: there is no model yet. To "
                "continue later, fit again with the same data, parameters and checkpoint=PATH"
            )
        return [
            between_learned(one.model.atoms.locations, data.y, self.recipe)
            for one, data in zip(fitted, datasets, strict=True)
        ]


#: Rows by which it is decided when an ensemble has trained long enough.
_JUDGED_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class _Judge:
    """The out-of-fold score of each ensemble, for all of its members.

    It is the energy score or, for weights from components, the exponential of the negative log
    score of the atom nearest to y. Components are trained by likelihood, and several sharp branches
    show in it long after the energy score has settled.
    """

    members: np.ndarray  # (n_replicas,), the number of the candidate of each
    x: list[np.ndarray]
    folds: list[Folds]
    y: list[np.ndarray]
    weight: list[np.ndarray]

    @classmethod
    def of(cls, candidates: Sequence[Candidate]) -> _Judge:
        x, of_rows, y, weight, n_members = [], [], [], [], []
        for candidate in candidates:
            data, folds = candidate.training_data, candidate.folds
            assert folds is not None
            chosen = np.arange(len(data.x))[:: -(-len(data.x) // _JUDGED_ROWS)]
            x.append(data.x[chosen])
            of_rows.append(folds.of_rows(chosen))
            y.append(data.y[chosen])
            weight.append(data.weight[chosen])
            n_members.append(folds.n_members)
        return cls(np.repeat(np.arange(len(n_members)), n_members), x, of_rows, y, weight)

    def __call__(self, models: NeuralEmbedding, done: int, best: np.ndarray) -> np.ndarray:
        scores = np.zeros(len(self.members))
        for number, (x, folds) in enumerate(zip(self.x, self.folds, strict=True)):
            own = self.members == number
            of_data = jax.tree.map(lambda leaf: leaf[own], models)  # noqa: B023
            ensemble = Ensemble(of_data.with_inputs(x.shape[1]))
            y, weight = self.y[number], self.weight[number]
            if of_data.components is None:
                weights = ensemble.out_of_fold_weights(x, folds).mean(axis=0)
                scored = energy_scores(weights, ensemble.atoms, y)
                scores[own] = np.average(scored, weights=weight)
            else:
                mass = _mass_at(y[:, 0], ensemble, ensemble.out_of_fold_outputs(x, folds))
                scores[own] = np.exp(np.average(-np.log(mass), weights=weight))
        return scores


#: The share of a uniform distribution in a log score: no row alone decides it.
_UNIFORM_SHARE = 1e-3


def _mass_at(y: np.ndarray, ensemble: Ensemble, outputs: np.ndarray) -> np.ndarray:
    """The weight (n,) of the atom nearest to each y, in the mean over outputs (r, n, 3 K) of
    networks that give components."""
    atoms = ensemble.atoms[:, 0]
    edges = np.concatenate([[-np.inf], 0.5 * (atoms[1:] + atoms[:-1]), [np.inf]])
    nearest = np.searchsorted(edges[1:-1], y)
    masses = ensemble.components.mass_between(outputs, edges[nearest], edges[nearest + 1])
    mass = masses.mean(axis=0)
    return (1.0 - _UNIFORM_SHARE) * mass + _UNIFORM_SHARE / len(atoms)


def _member_seed(seed: int, member: int) -> int:
    """The first member has the seed of a single model."""
    return seed if member == 0 else int(np.random.default_rng([seed, member]).integers(2**31))
