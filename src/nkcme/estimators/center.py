"""The centre of a centred embedding: a point prediction m(x), cross-fitted and stacked.

With atoms at m(x) + s(x) zeta_a an embedding describes the residual (y - m(x)) / s(x), and so what
is sharp stays sharp wherever it lies (docs/theory.md). The residuals it learns from must be those
of new rows, or it would learn how well the centre knows its own. So every base of the centre is
cross-fitted, and the weights of the stack are those that are best out of part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from nkcme.crossfit import Parts
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import Encoded, TrainingInterrupted, need_array
from nkcme.estimators.center_networks import NETWORKS, NetworkRecipe, Networks, fit_networks
from nkcme.estimators.center_regressors import Fitting, Regressors, default_boosting
from nkcme.parameters import need_one_of
from nkcme.phases import Phases
from nkcme.progress import TrainingBar, wants_progress
from nkcme.stacking import Stack
from nkcme.training import Checkpoint

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


class Base(Protocol):
    """A fitted part of the stack: members that were cross-fitted."""

    @property
    def n_members(self) -> int: ...

    def members(self, x: np.ndarray) -> np.ndarray:
        """What each says at encoded inputs, (n_members, n, d)."""

    def to_arrays(self) -> dict[str, np.ndarray]: ...


class Placed(NamedTuple):
    """Where atoms lie at so many x, and what the network of their weights is told."""

    members: np.ndarray  # (n_members, n, d), m(x) as each says
    mean: np.ndarray  # (n, d)
    scale: np.ndarray  # (n, d), the deviation from it if no more members spoke than are foreseen
    gain: np.ndarray  # (n, d), by what the squared deviation is smaller as all speak
    least: float  # what share of it is left at least
    inputs: np.ndarray  # (n, p + ...): x, m(x) and by how much the bases differ from it

    def narrowed(self, variance: np.ndarray) -> np.ndarray:
        """The scale (n, d) for an embedding of this variance (n, d), which has learned what few
        members leave: smaller where they differ, for the mean of all errs less there."""
        total = np.maximum(np.square(self.scale) * variance, 1e-30)
        return self.scale * np.sqrt(np.clip(1.0 - self.gain / total, self.least, 1.0))


class Center(NamedTuple):
    """sum_b w_b m_b(x), in units of standardised y, and the scale of what is left."""

    bases: dict[str, Base]
    weights: np.ndarray  # (n_bases, d)
    scale: np.ndarray  # (d,), the deviation of new rows from the mean of `n_averaged` members
    n_averaged: int
    log_scale: Regressors | None  # by what log s(x) exceeds that of `scale`, in all outputs

    def at(self, x: np.ndarray) -> Placed:
        """At encoded inputs (n, p), as all members say."""
        said = np.stack([base.members(x) for base in self.bases.values()])
        members = np.einsum("bknd,bd->knd", said, self.weights)
        scale = np.broadcast_to(self.scale, members.shape[1:])
        if self.log_scale is not None:
            scale = scale * _relative(self.log_scale.members(x).mean(axis=0))
        # Members err alike but for a variance of their own, which can be seen here and which falls
        # with the number that speak. At best all of the error is of that kind.
        own = members.var(axis=0, ddof=1) if len(members) > 1 else np.zeros_like(scale)
        fewer = 1.0 / self.n_averaged - 1.0 / len(members)
        least = self.n_averaged / len(members)
        inputs = self.inputs(x, said.mean(axis=1))
        return Placed(members, members.mean(axis=0), scale, fewer * own, least, inputs)

    def mean(self, said: np.ndarray) -> np.ndarray:
        """m(x), (n, d), of what the bases say, (n_bases, n, d)."""
        return np.einsum("bnd,bd->nd", said, self.weights)

    def inputs(self, x: np.ndarray, said: np.ndarray) -> np.ndarray:
        """x with m(x) beside it and, where bases are several, by how much each differs from that:
        how sure a prediction is depends on both."""
        mean = self.mean(said)
        differ = [(one - mean) / self.scale for one in said] if len(said) > 1 else []
        return np.concatenate([x, mean, *differ], axis=1).astype(np.float32)

    @property
    def n_members(self) -> int:
        return next(iter(self.bases.values())).n_members

    def n_inputs(self, n_in: int) -> int:
        """How many inputs the network of weights has, for so many columns of x."""
        n_bases, d = self.weights.shape
        return n_in + d * (1 if n_bases == 1 else 1 + n_bases)

    def summary(self) -> str:
        """What it is a mean of, in words."""
        names = [n if isinstance(b, Networks) else "regressor" for n, b in self.bases.items()]
        shares = self.weights.mean(axis=1)
        stack = " + ".join(f"{share:.2f} {name}" for share, name in zip(shares, names, strict=True))
        return stack if self.log_scale is None else f"{stack}, with a scale"

    def to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {
            "weights": self.weights,
            "scale": self.scale,
            "n_averaged": np.array(float(self.n_averaged)),
        }
        bases = self.bases if self.log_scale is None else self.bases | {_SCALE: self.log_scale}
        for name, base in bases.items():
            arrays |= {f"{name}/{key}": value for key, value in base.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], n_in: int, n_out: int) -> Center:
        """From an untrusted file, which names its bases."""
        grouped: dict[str, dict[str, np.ndarray]] = {}
        for key, value in arrays.items():
            name, inside, rest = key.partition("/")
            if inside:
                grouped.setdefault(name, {})[rest] = value
        # In the order of the file the bases would be sorted by name, and so they are kept.
        scale = grouped.pop(_SCALE, None)
        need_array(arrays, "weights", (len(grouped), n_out))
        need_array(arrays, "scale", (n_out,))
        need_array(arrays, "n_averaged", ())
        if not np.all(arrays["scale"] > 0):
            raise ModelFileError("the scale of the centre in the model file is not positive")
        if len(arrays) != 3 + sum(map(len, grouped.values())) + len(scale or {}):
            raise ModelFileError("the model file holds arrays that this centre does not know")
        bases: dict[str, Base] = {}
        for name in sorted(grouped):
            kind = Networks if name in NETWORKS else Regressors
            bases[name] = kind.from_arrays(grouped[name], n_in, n_out)
        n_members, n_averaged = {base.n_members for base in bases.values()}, arrays["n_averaged"]
        if len(n_members) != 1 or not 1 <= n_averaged <= max(n_members):
            raise ModelFileError("the members of the centre in the model file are not complete")
        log_scale = None if scale is None else Regressors.from_arrays(scale, n_in, 1)
        return cls(bases, arrays["weights"], arrays["scale"], int(n_averaged), log_scale)


#: The name of the base that gives log s(x).
_SCALE = "scale"


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
        shape = _relative(said.mean(axis=0))
        # So that what is left has a mean square of one again.
        unit = np.sqrt(np.average(np.square(_length(left / shape)), axis=0, weights=data.weight))
        center = fit.center._replace(scale=fit.center.scale * unit, log_scale=base)
        result.append(fit._replace(center=center, relative=shape * unit))
    return result


def _length(residuals: np.ndarray) -> np.ndarray:
    """The root mean square over outputs, (n, 1)."""
    return np.sqrt(np.mean(np.square(residuals), axis=1, keepdims=True))


def _relative(log_scale: np.ndarray) -> np.ndarray:
    """s(x) from its logarithm, within bounds that no few rows can move it out of."""
    return np.exp(np.clip(log_scale, np.log(0.01), np.log(10.0)))


def _errors(stacks: Sequence[Stack], n_members: int) -> np.ndarray:
    return np.array([max(stack.error(n_members), _LEAST_SCALE) for stack in stacks])
