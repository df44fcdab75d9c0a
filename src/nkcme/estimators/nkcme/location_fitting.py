"""Fitting a centre: bases that are cross-fitted, stacked, and perhaps given a scale.

The residuals that an embedding learns from must be those of new rows, or it would learn how well
the centre knows its own. So every base of the centre is cross-fitted, and the weights of the stack
are those that are best out of part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from nkcme.errors import NkcmeError
from nkcme.estimators.base import Encoded, TrainingInterrupted
from nkcme.estimators.nkcme.folds import Parts
from nkcme.estimators.nkcme.location_model import Base, Center, relative
from nkcme.estimators.nkcme.location_networks import NETWORKS, NetworkRecipe, Networks, fit_networks
from nkcme.estimators.nkcme.location_regressors import Fitting, default_boosting
from nkcme.estimators.nkcme.stacking import Stack
from nkcme.parameter_checks import need_one_of
from nkcme.training.checkpoint_groups import Phases
from nkcme.training.loop import Checkpoint
from nkcme.training.progress import TrainingBar, wants_progress

#: What `center` may be called.
CENTERS = ("auto", "none", "mean", "mean-scale")

#: What stands for our networks in a list of bases.
NETWORK = "network"

#: Rows from which on an embedding is trusted to know the spread at each x, and the share of the
#: squared error which more members must take away for that to be used. Found by trial
#: (docs/findings.md): it pays on Naval, of which y is a function of x, and not where y scatters.
ROWS_TO_TELL_SPREAD = 5000
OWN_SHARE = 0.15

#: Networks that leave no more of y, in its deviations, need no trees beside them, whose steps are
#: coarser; found by trial on Naval (docs/findings.md).
_ALL_BUT = 0.03

#: A centre that leaves nothing would leave nothing to scale by; in units of standardised y.
_LEAST_SCALE = 1e-6


class CenterFit(NamedTuple):
    """A centre, and what it says of the rows it was fitted to, each out of part."""

    center: Center
    stacks: list[Stack]  # one an output
    said: np.ndarray  # (bases, deals, n, d), by one member of each base
    relative: np.ndarray  # (n, 1): s(x) out of part, in units of the whole table's

    def residuals(self, y: np.ndarray) -> np.ndarray:
        """What the mean of all deals leaves of y (n, d), in units of what it leaves on average."""
        return (y - self.center.mean(self.said.mean(axis=1))) / (self.unit() * self.relative)

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """What the network of weights is told (n, ...), as in `Placed`."""
        return self.center.inputs(x, self.said.mean(axis=1))

    def unit(self, n_speakers: int | None = None) -> np.ndarray:
        """What the mean of so many members (one a deal unless said) leaves on average, (d,)."""
        return _errors(self.stacks, n_speakers or self.said.shape[1])


def check_center(center: Any) -> None:
    """Raises unless it has a name of `CENTERS`, or is a regressor, or a list of regressors and
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
                f'a list of such, in which "network" stands for ours; got {base!r}'
            )
    if several and not center:
        raise NkcmeError('center must be "none", or name at least one base; got an empty list')


def _bases_of(center: Any, n_rows: int) -> dict[str, Any]:
    """What is stacked, by name in alphabetical order: recipes of networks, and regressors."""
    if isinstance(center, str):
        chosen: list[Any] = [NETWORK, default_boosting(n_rows)]
    else:
        chosen = list(center) if isinstance(center, list | tuple) else [center]
    own = [base for base in chosen if not isinstance(base, str)]
    bases: dict[str, Any] = {f"base{i:02d}": base for i, base in enumerate(own)}
    if len(own) < len(chosen):
        bases |= {name: recipe(n_rows) for name, recipe in NETWORKS.items()}
    return dict(sorted(bases.items()))


def fit_centers(
    center: Any,
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    *,
    phases: Phases | None,
    fingerprint: str,
    verbose: bool | str,
) -> list[CenterFit]:
    """A centre for every data set; raises TrainingInterrupted on Ctrl-C."""
    n_rows = int(np.mean([data.n_rows for data in datasets]))
    bases = _bases_of(center, n_rows)
    networks = {name: base for name, base in bases.items() if name in NETWORKS}
    regressors = {name: base for name, base in bases.items() if name not in NETWORKS}
    fitting = Fitting(list(regressors.values()), datasets, parts)
    found: dict[str, list[tuple[Any, np.ndarray]]] = {}
    try:
        for name, recipe in networks.items():
            phase = None if phases is None else phases.phase(f"center-{name}")
            found[name] = _networks(recipe, datasets, parts, phase, fingerprint, verbose)
    except BaseException:
        fitting.abandon()
        raise
    if isinstance(center, str) and _nothing_left(_stacked_each(datasets, parts, found)):
        fitting.abandon()
    else:
        found |= dict(zip(regressors, fitting.collect(), strict=True))
    fits = _stacked_each(datasets, parts, dict(sorted(found.items())))
    return with_scale(fits, datasets, parts) if center == "mean-scale" else fits


def _networks(
    recipe: NetworkRecipe,
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    checkpoint: Checkpoint | None,
    fingerprint: str,
    verbose: bool | str,
) -> list[tuple[Networks, np.ndarray]]:
    """Networks for every data set, and what they say out of part."""
    bar = TrainingBar(recipe.descent.n_steps) if wants_progress(verbose) else None
    with bar or nullcontext():
        found, interrupted = fit_networks(
            recipe, datasets, parts, checkpoint=checkpoint, fingerprint=fingerprint, progress=bar
        )
    if interrupted:
        raise TrainingInterrupted(
            "stopped by Ctrl-C while the centre was learned: there is no model yet. To go on "
            "later, fit again with the same data, parameters and checkpoint=PATH"
        )
    return found


def _nothing_left(fits: Sequence[CenterFit]) -> bool:
    return all(bool(np.all(fit.unit() < _ALL_BUT)) for fit in fits)


def _stacked_each(
    datasets: Sequence[Encoded],
    parts: Sequence[Parts],
    found: dict[str, list[tuple[Any, np.ndarray]]],
) -> list[CenterFit]:
    """A stack for every data set of what was fitted, and said out of part, base by base."""
    return [
        stacked(
            data,
            dealt,
            {name: each[i][0] for name, each in found.items()},
            [each[i][1] for each in found.values()],
        )
        for i, (data, dealt) in enumerate(zip(datasets, parts, strict=True))
    ]


def stacked(
    data: Encoded, parts: Parts, bases: dict[str, Base], honest: Sequence[np.ndarray]
) -> CenterFit:
    """The best stack of bases by what they say out of part, (deals, n, d) each."""
    said = np.stack(honest)
    stacks = [
        Stack.fit(said[..., j], data.y[:, j], data.weight, parts.n_members)
        for j in range(data.y.shape[1])
    ]
    weights = np.stack([stack.weights for stack in stacks], axis=1)
    # The embedding learns what one member a deal leaves, and for all it is narrower. By how much at
    # x pays to say only where that is much, and rows are enough to tell how wide it was at x.
    few, all_ = (_errors(stacks, n) for n in (parts.n_deals, parts.n_members))
    row_by_row = data.n_rows >= ROWS_TO_TELL_SPREAD and np.all(all_**2 < (1 - OWN_SHARE) * few**2)
    n_averaged = parts.n_deals if row_by_row else parts.n_members
    center = Center(bases, weights, _errors(stacks, n_averaged), n_averaged, None)
    return CenterFit(center, stacks, said, np.ones((len(data.y), 1)))


def with_scale(
    fits: Sequence[CenterFit], datasets: Sequence[Encoded], parts: Sequence[Parts]
) -> list[CenterFit]:
    """The same with a scale that depends on x: E log |residual|, by boosting, out of part. Several
    outputs have one scale, of their length: that of each alone would be known worse."""
    residuals = [fit.residuals(data.y) for fit, data in zip(fits, datasets, strict=True)]
    # What is smaller than a hundredth says that y was met by chance, not that it is so certain.
    magnitudes = [
        data._replace(y=np.log(np.maximum(_length(left), 0.01)))
        for data, left in zip(datasets, residuals, strict=True)
    ]
    boosting = HistGradientBoostingRegressor(
        max_iter=100, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=20, max_features=0.5
    )
    result = []
    (found,) = Fitting([boosting], magnitudes, parts).collect()
    for fit, data, left, (base, said) in zip(fits, datasets, residuals, found, strict=True):
        shape = relative(said.mean(axis=0))
        # So that what is left has a mean square of one again.
        unit = np.sqrt(np.average(np.square(_length(left / shape)), axis=0, weights=data.weight))
        center = fit.center._replace(scale=fit.center.scale * unit, log_scale=base)
        result.append(fit._replace(center=center, relative=shape * unit))
    return result


def _length(residuals: np.ndarray) -> np.ndarray:
    """The root mean square over outputs, (n, 1)."""
    return np.sqrt(np.mean(np.square(residuals), axis=1, keepdims=True))


def _errors(stacks: Sequence[Stack], n_members: int) -> np.ndarray:
    return np.array([max(stack.error(n_members), _LEAST_SCALE) for stack in stacks])
