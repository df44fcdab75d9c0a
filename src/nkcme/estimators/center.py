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
from nkcme.estimators.center_networks import NETWORKS, Networks, fit_networks
from nkcme.estimators.center_regressors import Regressors, begin_regressors, default_boosting
from nkcme.parameters import need_one_of
from nkcme.phases import Phases
from nkcme.progress import TrainingBar, wants_progress
from nkcme.stacking import Stack

#: What `center` may be called.
CENTERS = ("auto", "none", "mean", "mean-scale")

#: What stands for our networks in a list of bases.
NETWORK = "network"

#: A centre that leaves nothing would leave nothing to scale by; in units of standardised y.
_LEAST_SCALE = 1e-6


class Base(Protocol):
    """A fitted part of the stack: members that were cross-fitted."""

    def members(self, x: np.ndarray) -> np.ndarray:
        """What each says at encoded inputs, (n_members, n, d)."""

    def to_arrays(self) -> dict[str, np.ndarray]: ...


class Placed(NamedTuple):
    """Where atoms lie at so many x, and what the network of their weights is told."""

    mean: np.ndarray  # (n, d)
    scale: np.ndarray  # (n, d)
    inputs: np.ndarray  # (n, p + ...): x, m(x) and by how much the bases differ from it


class Center(NamedTuple):
    """sum_b w_b m_b(x), in units of standardised y, and the scale of what is left."""

    bases: dict[str, Base]
    weights: np.ndarray  # (n_bases, d)
    scale: np.ndarray  # (d,), the deviation of new rows from it
    log_scale: Regressors | None  # by what log s(x) exceeds that of `scale`

    def at(self, x: np.ndarray) -> Placed:
        """At encoded inputs (n, p), as all members say."""
        said = np.stack([base.members(x).mean(axis=0) for base in self.bases.values()])
        mean = self.mean(said)
        scale = np.broadcast_to(self.scale, mean.shape)
        if self.log_scale is not None:
            scale = scale * _relative(self.log_scale.members(x).mean(axis=0))
        return Placed(mean, scale, self.inputs(x, said))

    def mean(self, said: np.ndarray) -> np.ndarray:
        """m(x), (n, d), of what the bases say, (n_bases, n, d)."""
        return np.einsum("bnd,bd->nd", said, self.weights)

    def inputs(self, x: np.ndarray, said: np.ndarray) -> np.ndarray:
        """x with m(x) beside it and, where bases are several, by how much each differs from that:
        how sure a prediction is depends on both."""
        mean = self.mean(said)
        differ = [(one - mean) / self.scale for one in said] if len(said) > 1 else []
        return np.concatenate([x, mean, *differ], axis=1).astype(np.float32)

    def members(self, x: np.ndarray) -> np.ndarray:
        """m(x) as each member says, (n_members, n, d)."""
        bases = zip(self.bases.values(), self.weights, strict=True)
        return np.sum([base.members(x) * weight for base, weight in bases], axis=0)

    def n_inputs(self, n_in: int) -> int:
        """How many inputs the network of weights has, for so many columns of x."""
        n_bases, d = self.weights.shape
        return n_in + d * (1 if n_bases == 1 else 1 + n_bases)

    def to_arrays(self) -> dict[str, np.ndarray]:
        arrays = {"weights": self.weights, "scale": self.scale}
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
        if not np.all(arrays["scale"] > 0):
            raise ModelFileError("the scale of the centre in the model file is not positive")
        if len(arrays) != 2 + sum(map(len, grouped.values())) + len(scale or {}):
            raise ModelFileError("the model file holds arrays that this centre does not know")
        bases: dict[str, Base] = {}
        for name in sorted(grouped):
            kind = Networks if name in NETWORKS else Regressors
            bases[name] = kind.from_arrays(grouped[name], n_in, n_out)
        log_scale = None if scale is None else Regressors.from_arrays(scale, n_in, n_out)
        return cls(bases, arrays["weights"], arrays["scale"], log_scale)


#: The name of the base that gives log s(x).
_SCALE = "scale"


class CenterFit(NamedTuple):
    """A centre, and what it says of the rows it was fitted to, each out of part."""

    center: Center
    stacks: list[Stack]  # one an output
    said: np.ndarray  # (bases, deals, n, d), by one member of each base
    relative: np.ndarray  # (n, d): s(x) out of part, in units of the whole table's

    def residuals(self, y: np.ndarray, deal: int | None = None) -> np.ndarray:
        """What the mean of all deals leaves of y (n, d), or one deal alone, in units of what that
        leaves on average."""
        left = y - self.center.mean(self._by(deal))
        return left / (self.unit(None if deal is None else 1) * self.relative)

    def inputs(self, x: np.ndarray, deal: int | None = None) -> np.ndarray:
        """What the network of weights is told (n, ...), as in `Placed`."""
        return self.center.inputs(x, self._by(deal))

    def unit(self, n_speakers: int | None = None) -> np.ndarray:
        """What the mean of so many members (one a deal unless said) leaves on average, (d,)."""
        return _errors(self.stacks, n_speakers or self.said.shape[1])

    def _by(self, deal: int | None) -> np.ndarray:
        """What the bases say, (bases, n, d): the mean of all deals, or one."""
        return self.said.mean(axis=1) if deal is None else self.said[:, deal]


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
    regressors = {name: base for name, base in bases.items() if name not in NETWORKS}
    collect = begin_regressors(list(regressors.values()), datasets, parts)
    found: dict[str, list[tuple[Any, np.ndarray]]] = {}
    for name, recipe in bases.items():
        if name not in NETWORKS:
            continue
        bar = TrainingBar(recipe.descent.n_steps) if wants_progress(verbose) else None
        with bar or nullcontext():
            found[name], interrupted = fit_networks(
                recipe,
                datasets,
                parts,
                checkpoint=None if phases is None else phases.phase(f"center-{name}"),
                fingerprint=fingerprint,
                progress=bar,
            )
        if interrupted:
            raise TrainingInterrupted(
                "stopped by Ctrl-C while the centre was learned: there is no model yet. To go "
                "on later, fit again with the same data, parameters and checkpoint=PATH"
            )
    found |= dict(zip(regressors, collect(), strict=True))
    fits = []
    for i, (data, dealt) in enumerate(zip(datasets, parts, strict=True)):
        fitted = {name: found[name][i][0] for name in bases}
        fits.append(stacked(data, dealt, fitted, [found[name][i][1] for name in bases]))
    return _scaled(fits, datasets, parts) if center == "mean-scale" else fits


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
    scale = _errors(stacks, parts.n_members)
    return CenterFit(Center(bases, weights, scale, None), stacks, said, np.ones_like(data.y))


def _scaled(
    fits: list[CenterFit], datasets: Sequence[Encoded], parts: Sequence[Parts]
) -> list[CenterFit]:
    """The same with a scale that depends on x: E log |residual|, by boosting, out of part."""
    residuals = [fit.residuals(data.y) for fit, data in zip(fits, datasets, strict=True)]
    # What is smaller than a hundredth says that y was met by chance, not that it is so certain.
    magnitudes = [
        data._replace(y=np.log(np.maximum(np.abs(left), 0.01)))
        for data, left in zip(datasets, residuals, strict=True)
    ]
    boosting = HistGradientBoostingRegressor(
        max_iter=100, learning_rate=0.05, max_leaf_nodes=8, min_samples_leaf=20, max_features=0.5
    )
    result = []
    (found,) = begin_regressors([boosting], magnitudes, parts)()
    for fit, data, left, (base, said) in zip(fits, datasets, residuals, found, strict=True):
        shape = _relative(said.mean(axis=0))
        # So that what is left has a mean square of one again.
        unit = np.sqrt(np.average(np.square(left / shape), axis=0, weights=data.weight))
        center = fit.center._replace(scale=fit.center.scale * unit, log_scale=base)
        result.append(fit._replace(center=center, relative=shape * unit))
    return result


def _relative(log_scale: np.ndarray) -> np.ndarray:
    """s(x) from its logarithm, within bounds that no few rows can move it out of."""
    return np.exp(np.clip(log_scale, np.log(0.01), np.log(10.0)))


def _errors(stacks: Sequence[Stack], n_members: int) -> np.ndarray:
    return np.array([max(stack.error(n_members), _LEAST_SCALE) for stack in stacks])
