"""The centre of a centred embedding: a point prediction m(x), cross-fitted and stacked.

With atoms at m(x) + s zeta_a an embedding describes the residual y - m(x), and so what is sharp
stays sharp wherever it lies (docs/theory.md). The residuals it learns from must be those of new
rows, or it would learn how well the centre knows its own. So every base of the centre is
cross-fitted, and the weights of the stack are those that are best out of part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from nkcme.crossfit import Parts, error_shrinkage
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import Encoded, TrainingInterrupted, need_array
from nkcme.estimators.trained import Descent, default_steps, padded
from nkcme.networks import MLP
from nkcme.parameters import need_one_of
from nkcme.phases import Phases
from nkcme.progress import TrainingBar, wants_progress
from nkcme.training import Checkpoint, Objective, Plan, Progress, Rows, Task, train
from nkcme.trees import BoostedTrees

PyTree = Any


class Base(Protocol):
    """A fitted part of the stack: members that were cross-fitted."""

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The mean of all members at encoded inputs, (n, d)."""

    def to_arrays(self) -> dict[str, np.ndarray]: ...


class Center(NamedTuple):
    """sum_b w_b m_b(x), in units of standardised y, and the scale of what is left."""

    bases: dict[str, Base]
    weights: np.ndarray  # (n_bases, d)
    scale: np.ndarray  # (d,), the deviation of new rows from it

    def predict(self, x: np.ndarray) -> np.ndarray:
        """m at encoded inputs, (n, d)."""
        used = [(b, w) for b, w in zip(self.bases.values(), self.weights, strict=True) if w.any()]
        return sum((w * b.predict(x) for b, w in used), np.zeros((len(x), len(self.scale))))

    def to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {"weights": self.weights, "scale": self.scale}
        for name, base in self.bases.items():
            arrays |= {f"{name}/{key}": value for key, value in base.to_arrays().items()}
        return arrays


class CenterFit(NamedTuple):
    """A centre, and what it says of the rows it was fitted to, each out of part."""

    center: Center
    out_of_part: np.ndarray  # (n, d)
    spread: np.ndarray  # (d,): the deviation out of part; that of new rows is the centre's scale

    @classmethod
    def of(
        cls, data: Encoded, parts: Parts, bases: dict[str, Base], honest: dict[str, np.ndarray]
    ) -> CenterFit:
        """Stack bases by their predictions out of part, (deals, n, d) each; a base that was
        fitted in one deal goes with all of another's."""
        d = data.y.shape[1]
        means = np.stack([honest[name].mean(axis=0) for name in bases], axis=-1)  # (n, d, bases)
        root = np.sqrt(data.weight / data.weight.max())
        weights = np.stack(
            [nnls(means[:, j] * root[:, None], data.y[:, j] * root)[0] for j in range(d)], axis=1
        )
        by_deal = sum(
            w * np.broadcast_to(honest[name], (parts.n_deals, *data.y.shape))
            for name, w in zip(bases, weights, strict=True)
        )
        errors = data.y - by_deal
        left = np.average(np.square(errors.mean(axis=0)), axis=0, weights=data.weight)
        # A centre that leaves nothing would leave nothing to scale by.
        spread = np.maximum(np.sqrt(left), 1e-6)
        shrinkage = error_shrinkage(errors, data.weight, parts.n_members)
        center = Center(bases, weights, spread * shrinkage)
        return cls(center, by_deal.mean(axis=0), spread)


def check_center(center: Any) -> None:
    """Raises unless it is "none", "mean", a regressor, or a list of regressors and "network"."""
    if isinstance(center, str):
        need_one_of("center", center, ("none", "mean"))
        return
    several = isinstance(center, list | tuple)
    for base in center if several else [center]:
        named = several and isinstance(base, str) and base == NETWORK
        if not named and not (hasattr(base, "fit") and hasattr(base, "predict")):
            raise NkcmeError(
                'center must be "none", "mean", a regressor with fit and predict, or a list of '
                f'such, in which "network" stands for ours; got {base!r}'
            )
    if several and not center:
        raise NkcmeError('center must be "none", or name at least one base; got an empty list')


def fit_centers(
    bases: dict[str, Any],
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    *,
    phases: Phases | None,
    fingerprint: str,
    verbose: bool | str,
) -> list[CenterFit]:
    """A centre for every data set; raises TrainingInterrupted on Ctrl-C."""
    fitted: list[dict[str, Base]] = [{} for _ in datasets]
    honest: list[dict[str, np.ndarray]] = [{} for _ in datasets]
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    found: list[tuple[Any, np.ndarray]]
    for name, base in bases.items():
        if isinstance(base, str):
            recipe = default_networks(datasets[0].x.shape[1], datasets[0].y.shape[1], n_rows)
            bar = TrainingBar(recipe.descent.n_steps) if wants_progress(verbose) else None
            with bar or nullcontext():
                found, interrupted = fit_networks(
                    recipe,
                    datasets,
                    parts,
                    min(BATCH_SIZE, max(n_rows // 4, 1)),
                    checkpoint=None if phases is None else phases.phase(f"center-{name}"),
                    fingerprint=fingerprint,
                    progress=bar,
                )
            if interrupted:
                raise TrainingInterrupted(
                    "stopped by Ctrl-C while the centre was learned: there is no model yet. To go "
                    "on later, fit again with the same data, parameters and checkpoint=PATH"
                )
        else:
            found = [
                fit_regressors(base, data, dealt)
                for data, dealt in zip(datasets, parts, strict=True)
            ]
        for i, (one, said) in enumerate(found):
            fitted[i][name], honest[i][name] = one, said
    return [
        CenterFit.of(data, dealt, of_data, said)
        for data, dealt, of_data, said in zip(datasets, parts, fitted, honest, strict=True)
    ]


def center_from_arrays(
    bases: dict[str, Any], arrays: dict[str, np.ndarray], n_in: int, n_out: int
) -> Center:
    """From an untrusted file."""
    need_array(arrays, "weights", (len(bases), n_out))
    need_array(arrays, "scale", (n_out,))
    if not np.all(arrays["scale"] > 0):
        raise ModelFileError("the scale of the centre in the model file is not positive")
    fitted: dict[str, Base] = {}
    known = {"weights", "scale"}
    for name, base in bases.items():
        own = {k.removeprefix(f"{name}/"): v for k, v in arrays.items() if k.startswith(f"{name}/")}
        known |= {f"{name}/{key}" for key in own}
        if isinstance(base, str):
            fitted[name] = Networks.from_arrays(default_networks(n_in, n_out, n_rows=1), own)
        else:
            fitted[name] = Regressors.from_arrays(own, n_in, n_out)
    if known != set(arrays):
        raise ModelFileError("the model file holds arrays that this centre does not know")
    return Center(fitted, arrays["weights"], arrays["scale"])


# --- networks -----------------------------------------------------------------------------------


#: What stands for our networks in a list of bases.
NETWORK = "network"

BATCH_SIZE = 256


def default_networks(n_in: int, n_out: int, n_rows: int) -> NetworkRecipe:
    """Networks that would overfit alone: their mean is better than that of careful ones."""
    n_steps = default_steps(n_rows)
    return NetworkRecipe(
        n_in, n_out, (64, 64, 64), "relu", Descent(5e-3, 0.03, 0.99, "cosine", n_steps)
    )


class NetworkRecipe(NamedTuple):
    """How the networks of a centre are made and trained."""

    n_in: int
    n_out: int
    hidden: tuple[int, ...]
    activation: str
    descent: Descent


class Networks(NamedTuple):
    """Networks that give the mean, stacked along a leading axis of members."""

    models: MLP

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(_mean_of_members(self.models, padded(x)))[: len(x)]

    def to_arrays(self) -> dict[str, np.ndarray]:
        leaves = jax.tree_util.tree_leaves_with_path(self.models)
        return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}

    @classmethod
    def from_arrays(cls, recipe: NetworkRecipe, arrays: dict[str, np.ndarray]) -> Networks:
        """From an untrusted file."""
        shapes = eqx.filter_eval_shape(partial(_init, recipe), jax.random.key(0), ())
        leaves, structure = jax.tree.flatten(shapes)
        names = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(shapes)]
        if set(names) != set(arrays):
            raise ModelFileError("the centre's networks in the model file are not complete")
        n_members = len(arrays[names[0]])
        for name, leaf in zip(names, leaves, strict=True):
            need_array(arrays, name, (n_members, *leaf.shape))
        return cls(
            jax.tree.unflatten(structure, [jnp.asarray(arrays[n], jnp.float32) for n in names])
        )


def _init(recipe: NetworkRecipe, key: Array, _: PyTree) -> MLP:
    return MLP(
        recipe.n_in,
        recipe.n_out,
        recipe.hidden,
        activation=recipe.activation,
        head="signed",
        key=key,
    )


@lru_cache(maxsize=64)
def _task(recipe: NetworkRecipe) -> Task:
    def loss(model: MLP, batch: tuple[Array, Array], _: Array) -> Array:
        x, y = batch
        return jnp.mean(jnp.sum(jnp.square(jax.vmap(model)(x) - y), axis=1))

    objective = Objective(loss, lambda model: model.trainable(), recipe.descent.optimizer())
    return Task(init=partial(_init, recipe), objectives=(objective,))


@jax.jit
def _each_member(models: MLP, x: Array) -> Array:
    with jax.default_matmul_precision("highest"):
        return jax.vmap(lambda model: jax.vmap(model)(x))(models)


@jax.jit
def _mean_of_members(models: MLP, x: Array) -> Array:
    return jnp.mean(_each_member(models, x), axis=0)


def fit_networks(
    recipe: NetworkRecipe,
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    batch_size: int,
    *,
    checkpoint: Checkpoint | None,
    fingerprint: str,
    progress: Progress | None,
) -> tuple[list[tuple[Any, np.ndarray]], bool]:
    """The networks of every data set and what they say out of part, (deals, n, d): all members of
    all data sets are replicas of one program. Also whether Ctrl-C came."""
    first = np.cumsum([0] + [len(data.x) for data in datasets[:-1]])
    rows, weights, keys = [], [], []
    for data, dealt, start in zip(datasets, parts, first, strict=True):
        for member in range(dealt.n_members):
            chosen = dealt.rows_of(member)
            rows.append(chosen + start)
            weights.append(data.weight[chosen])
            keys.append(jax.random.fold_in(jax.random.key(data.seed), member))
    trained = train(
        _task(recipe),
        (),
        tuple(np.concatenate([getattr(d, name) for d in datasets]) for name in ("x", "y")),
        Rows.of(rows, weights),
        Plan(recipe.descent.n_steps, batch_size),
        jnp.stack(keys),
        checkpoint=checkpoint,
        fingerprint=fingerprint,
        progress=progress,
    )
    found, done = [], 0
    for data, dealt in zip(datasets, parts, strict=True):
        models = jax.tree.map(lambda leaf: leaf[done : done + dealt.n_members], trained.models)  # noqa: B023
        done += dealt.n_members
        said = np.empty((dealt.n_deals, *data.y.shape), np.float32)
        for member in range(dealt.n_members):
            left_out = dealt.left_out_by(member)
            alone = jax.tree.map(lambda leaf: leaf[member : member + 1], models)  # noqa: B023
            values = _each_member(alone, padded(data.x[left_out]))[0, : len(left_out)]
            said[member // dealt.n_parts, left_out] = np.asarray(values)
        found.append((Networks(models), said))
    return found, trained.interrupted


# --- regressors ---------------------------------------------------------------------------------


class Regressors(NamedTuple):
    """Fitted regressors, one a part and output."""

    models: list[list[Any]]

    def predict(self, x: np.ndarray) -> np.ndarray:
        said = [[one.predict(x) for one in of_part] for of_part in self.models]
        return np.moveaxis(np.mean(said, axis=0), 0, -1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        if not all(isinstance(one, BoostedTrees) for of_part in self.models for one in of_part):
            raise NkcmeError(
                "a model centred on a regressor of yours cannot be saved: there is no file for it "
                'that is safe to open; with center="mean" it can'
            )
        return {
            f"{part}/{output}/{name}": value
            for part, of_part in enumerate(self.models)
            for output, one in enumerate(of_part)
            for name, value in one.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> Regressors:
        """From an untrusted file."""
        trees: dict[tuple[str, str], dict[str, np.ndarray]] = {}
        for name, value in arrays.items():
            part, _, rest = name.partition("/")
            output, _, key = rest.partition("/")
            trees.setdefault((part, output), {})[key] = value
        n_parts = len(trees) // max(n_out, 1)
        expected = {(str(part), str(j)) for part in range(n_parts) for j in range(n_out)}
        if not trees or set(trees) != expected:
            raise ModelFileError("the centre's trees in the model file are not complete")
        return cls(
            [
                [BoostedTrees.from_arrays(trees[str(part), str(j)], n_in) for j in range(n_out)]
                for part in range(n_parts)
            ]
        )


def default_boosting() -> HistGradientBoostingRegressor:
    """The gradient boosting of the default stack."""
    return HistGradientBoostingRegressor(
        max_iter=200,
        learning_rate=0.1,
        max_leaf_nodes=31,
        min_samples_leaf=10,
        l2_regularization=1.0,
    )


def fit_regressors(regressor: Any, data: Encoded, parts: Parts) -> tuple[Regressors, np.ndarray]:
    """A regressor cross-fitted in the first deal, and what it says out of part, (1, n, d)."""
    d = data.y.shape[1]
    jobs = [(part, j) for part in range(parts.n_parts) for j in range(d)]

    def fit(job: tuple[int, int]) -> Any:
        part, j = job
        rows = parts.rows_of(part)
        one = clone(regressor)
        if "random_state" in one.get_params() and one.get_params()["random_state"] is None:
            one.set_params(random_state=data.seed)
        one.fit(data.x[rows], data.y[rows, j], **_weighted(one, data.weight[rows]))
        return BoostedTrees.of(one) if _is_boosting(one) else one

    # One after the other, each with one thread: boosting's threads wait for each other, and several
    # fits side by side take three times as long as in turn (docs/findings.md).
    with threadpool_limits(1):
        fitted = [fit(job) for job in jobs]
    models = [fitted[part * d : (part + 1) * d] for part in range(parts.n_parts)]
    said = np.empty((1, *data.y.shape))
    for part, of_part in enumerate(models):
        left_out = parts.left_out_by(part)
        for j, one in enumerate(of_part):
            said[0, left_out, j] = one.predict(data.x[left_out])
    return Regressors(models), said


def _is_boosting(model: Any) -> bool:
    return type(model) is HistGradientBoostingRegressor


def _weighted(model: Any, weight: np.ndarray) -> dict[str, np.ndarray]:
    """Weights, for who wants them and where they differ."""
    if np.ptp(weight) == 0:
        return {}
    if not has_fit_parameter(model, "sample_weight"):
        raise NkcmeError(f"{type(model).__name__} as a centre does not take sample_weight")
    return {"sample_weight": weight}
