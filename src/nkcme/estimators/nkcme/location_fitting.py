"""Fitting location models: bases are cross-fitted, stacked and, if wanted, given a scale.

The embedding must learn from residuals of new rows. Residuals of the location model's own training
rows would be too small. So every base is cross-fitted, and the weights of the stack are those that
are best out-of-fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from nkcme.errors import NkcmeError
from nkcme.estimators.base import TrainingInterrupted
from nkcme.estimators.nkcme.extra_trees import ExtraTrees
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.gradient_boosting import GradientBoosting
from nkcme.estimators.nkcme.location_model import (
    NETWORK,
    Base,
    LocationModel,
    relative_scale,
    spread_of,
)
from nkcme.estimators.nkcme.location_networks import fit_networks
from nkcme.estimators.nkcme.location_regressors import RegressorFits
from nkcme.estimators.nkcme.other_bases import Found, OtherBases
from nkcme.estimators.nkcme.recipe import LocationRecipe
from nkcme.estimators.nkcme.shared_fits import SharedFits
from nkcme.estimators.nkcme.stacking import Stack, errors_of, fit_stacks, reach_of
from nkcme.estimators.nkcme.training_stream import TrainingStream
from nkcme.estimators.nkcme.tree_ensemble import TreeEnsemble
from nkcme.estimators.replica_training import Run
from nkcme.estimators.training_data import Encoded
from nkcme.parameter_checks import need_one_of

#: The names that the parameter ``center`` takes.
CENTERS = ("auto", "none", "mean", "mean-scale")


class LocationFit(NamedTuple):
    """A location model and its out-of-fold predictions of the rows it was fitted to."""

    model: LocationModel
    stacks: list[Stack]  # one per output
    out_of_fold: np.ndarray  # (n_bases, n_repeats, n, d), by one member of each base
    relative_scale: np.ndarray  # (n, 1), s(x) out-of-fold, relative to that of the whole table

    def residuals(self, y: np.ndarray) -> np.ndarray:
        """The residuals (n, d) of the mean over repeats, in units of their root mean square."""
        return (y - self.predicted) / (self.unit() * self.relative_scale)

    @property
    def predicted(self) -> np.ndarray:
        """m(x) out-of-fold (n, d), the mean over repeats."""
        return self.model.mean(self.out_of_fold.mean(axis=1))

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """The inputs of the network of weights (n, ...), as in `Location`."""
        return self.model.inputs(x, self.out_of_fold.mean(axis=1))

    def out_of_fold_spread(self) -> np.ndarray:
        """The variance (n, d) between the bases and between their members, out-of-fold."""
        return spread_of(self.out_of_fold, self.out_of_fold.mean(axis=1), self.predicted)

    def unit(self, n_members: int | None = None) -> np.ndarray:
        """The root mean squared error (d,) of the mean of ``n_members`` members; by default of one
        member per repeat."""
        return errors_of(self.stacks, n_members or self.out_of_fold.shape[1])


def check_center(center: Any) -> None:
    """Raises unless ``center`` is one of `CENTERS`, a regressor, or a list of regressors and
    "network"."""
    if isinstance(center, str):
        need_one_of("center", center, CENTERS)
        return
    several = isinstance(center, list | tuple)
    for base in center if several else [center]:
        named = several and isinstance(base, str) and base == NETWORK
        if not named and not (hasattr(base, "fit") and hasattr(base, "predict")):
            raise NkcmeError(
                f"center must be one of {', '.join(CENTERS)}, a regressor with fit and predict, or "
                f'a list of regressors and "network"; got {base!r}'
            )
    if several and not center:
        raise NkcmeError('center must be "none" or have at least one base; got an empty list')


def fit_location_models(
    center: Any,
    datasets: Sequence[Encoded],
    folds: Sequence[Folds],
    recipe: LocationRecipe,
    run: Run,
    stream: TrainingStream | None = None,
) -> list[LocationFit]:
    """A location model for every data set; with a ``stream`` it is trained on that, and the rows of
    the data set are new to it.

    Raises
    ------
    TrainingInterrupted
        On Ctrl-C.
    """
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    regressors, with_networks = _bases_of(center, recipe, n_rows)
    fits: RegressorFits | SharedFits
    if stream is None:
        fits = RegressorFits(list(regressors.values()), datasets, folds)
    else:
        fits = stream.start_fits(list(regressors.values()), datasets, folds)
    others = OtherBases(
        regressors,
        fits,
        datasets,
        folds,
        recipe,
        may_leave_out=isinstance(center, str),
        on_gpu=jax.default_backend() == "gpu",
    )
    found: Found = {}
    try:
        if with_networks:
            network = recipe.network(n_rows)
            fitted = fit_networks(network, datasets, folds, others, run, stream)
            found[NETWORK], interrupted = fitted
            if interrupted:
                raise TrainingInterrupted(
                    "stopped by Ctrl-C while the location model was trained: there is no model "
                    "yet. To continue later, fit again with the same data, parameters and "
                    "checkpoint=PATH"
                )
            found |= others.beside([predicted for _, predicted in found[NETWORK]])
        else:
            found |= others.collected
    finally:
        fits.abandon()
    located = _stack_each(datasets, folds, dict(sorted(found.items())), recipe)
    unused = [
        name
        for name, base in regressors.items()
        if isinstance(base, ExtraTrees) and name in found and _is_needless(name, located, recipe)
    ]
    if unused:
        kept = {name: fit for name, fit in sorted(found.items()) if name not in unused}
        located = _stack_each(datasets, folds, kept, recipe)
    return with_scale(located, datasets, folds, recipe) if center == "mean-scale" else located


def read_trees(location: LocationFit | None) -> None:
    """Read the trees of a location model that is kept."""
    if location is None:
        return
    for base in (*location.model.bases.values(), location.model.log_scale):
        if isinstance(base, TreeEnsemble):
            base.read()


def _bases_of(center: Any, recipe: LocationRecipe, n_rows: int) -> tuple[dict[str, Any], bool]:
    """The regressors of the stack by name, and whether our networks belong to it."""
    if isinstance(center, str):
        trees = [GradientBoosting(recipe.boosting, n_rows), ExtraTrees(recipe.forest)]
        chosen: list[Any] = [NETWORK, *trees]
    else:
        chosen = list(center) if isinstance(center, list | tuple) else [center]
    regressors = [base for base in chosen if not isinstance(base, str)]
    named = {f"base{i:02d}": base for i, base in enumerate(regressors)}
    return named, len(regressors) < len(chosen)


def _is_needless(name: str, located: Sequence[LocationFit], recipe: LocationRecipe) -> bool:
    """Whether no stack needs these extra trees. Stacks without them may then be kept, of all data
    sets alike: their networks train as one program, with one number of inputs."""
    weights = [dict(zip(fit.model.bases, fit.model.weights, strict=True)) for fit in located]
    return all(np.all(one.get(name, 0.0) < recipe.forest.least_weight) for one in weights)


def _stack_each(
    datasets: Sequence[Encoded],
    folds: Sequence[Folds],
    found: Found,
    recipe: LocationRecipe,
) -> list[LocationFit]:
    """A stack of the fitted bases for every data set."""
    return [
        stack_bases(
            data,
            of_data,
            {name: each[i][0] for name, each in found.items()},
            [each[i][1] for each in found.values()],
            recipe,
        )
        for i, (data, of_data) in enumerate(zip(datasets, folds, strict=True))
    ]


def stack_bases(
    data: Encoded,
    folds: Folds,
    bases: dict[str, Base],
    out_of_fold: Sequence[np.ndarray],
    recipe: LocationRecipe,
) -> LocationFit:
    """The best stack of bases by their out-of-fold predictions, (n_repeats, n, d) each."""
    reach = reach_of(data.y)
    predicted = np.clip(np.stack(out_of_fold), *reach)
    stacks = fit_stacks(data.y, data.weight, folds.n_members, predicted, recipe.least_bias_share)
    weights = np.stack([stack.weights for stack in stacks], axis=1)
    scale = errors_of(stacks, folds.n_members)
    informs = data.groups is None
    model = LocationModel(bases, weights, scale, folds.n_members, None, reach, informs=informs)
    return LocationFit(model, stacks, predicted, np.ones((len(data.y), 1)))


def with_scale(
    located: Sequence[LocationFit],
    datasets: Sequence[Encoded],
    folds: Sequence[Folds],
    recipe: LocationRecipe,
) -> list[LocationFit]:
    """The same location models with a scale that depends on x: exp E[log |residual|], by boosting.

    Several outputs share one scale, that of the residual vector's length. A scale per output would
    be estimated worse.
    """
    residuals = [fit.residuals(data.y) for fit, data in zip(located, datasets, strict=True)]
    magnitudes = [
        data._replace(y=np.log(np.maximum(_length(of_data), recipe.least_residual)))
        for data, of_data in zip(datasets, residuals, strict=True)
    ]
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    regressor = GradientBoosting(recipe.scale_boosting, n_rows)
    (found,) = RegressorFits([regressor], magnitudes, folds).collect()
    scaled = []
    for fit, data, of_data, (base, log_scale) in zip(
        located, datasets, residuals, found, strict=True
    ):
        shape = relative_scale(log_scale.mean(axis=0))
        # So that the scaled residuals have a mean square of one again.
        unit = np.sqrt(np.average(np.square(_length(of_data / shape)), axis=0, weights=data.weight))
        model = fit.model._replace(scale=fit.model.scale * unit, log_scale=base)
        scaled.append(fit._replace(model=model, relative_scale=shape * unit))
    return scaled


def _length(residuals: np.ndarray) -> np.ndarray:
    """The root mean square over outputs, (n, 1)."""
    return np.sqrt(np.mean(np.square(residuals), axis=1, keepdims=True))
