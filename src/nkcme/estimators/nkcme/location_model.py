"""The location model: a point prediction m(x), a stack of cross-fitted bases, and a scale.

With atoms at m(x) + s(x) zeta_a, an embedding describes the residual (y - m(x)) / s(x). A sharp
distribution then stays sharp wherever it lies (docs/theory.md). `location_fitting` fits one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from nkcme.distributions.elementwise import clipped, mean_over
from nkcme.errors import ModelFileError
from nkcme.model_files.array_checks import need_array

#: The name of the networks among the bases of a location model.
NETWORK = "network"

#: The names of bases that are networks, in model files; earlier versions had two.
NETWORK_BASES = (NETWORK, "early", "late")

#: Bounds on s(x), relative to its mean, that no few rows can move it out of. They are part of what
#: a saved model means, and so no part of a recipe.
_SCALE_BOUNDS = (0.01, 10.0)


class Base(Protocol):
    """A fitted base of the stack: an ensemble of cross-fitted members."""

    @property
    def n_members(self) -> int: ...

    def members(self, x: np.ndarray) -> np.ndarray:
        """The predictions of each member at encoded inputs, (n_members, n, d)."""

    def to_arrays(self) -> dict[str, np.ndarray]: ...


#: Makes a base from the arrays of an untrusted file, for numbers of inputs and outputs.
BaseReader = Callable[[dict[str, np.ndarray], int, int], Base]


class Location(NamedTuple):
    """Where the atoms lie at some x, and the inputs of the network that weighs them."""

    members: np.ndarray  # (n_members, n, d), m(x) by each member
    mean: np.ndarray  # (n, d), their mean
    scale: np.ndarray  # (n, d), the error of the mean of `n_averaged` members
    variance_gain: np.ndarray  # (n, d), by how much averaging all of them lowers its square
    least_share: float  # the least share of the squared error that remains
    inputs: np.ndarray  # (n, p + ...): x, m(x) and the differences of the bases from it
    spread: np.ndarray  # (n, d), the variance between the bases and between their members

    def narrowed(self, variance: np.ndarray) -> np.ndarray:
        """The scale (n, d) of an embedding with this variance (n, d).

        The embedding was trained on residuals of few members. Where members differ, the mean of all
        of them errs less, and the distribution is narrower.
        """
        total = np.maximum(np.square(self.scale) * variance, 1e-30)
        share = np.clip(1.0 - self.variance_gain / total, self.least_share, 1.0)
        return self.scale * np.sqrt(share)


class LocationModel(NamedTuple):
    """sum_b w_b m_b(x), in units of standardised y, and the scale of its residuals.

    Attributes
    ----------
    bases : dict of Base
        By name, in alphabetical order.
    weights : array (n_bases, d)
    scale : array (d,)
        The root mean squared error on new rows of the mean of ``n_averaged`` members.
    n_averaged : int
    log_scale : Base or None
        log s(x), relative to ``scale``; common to all outputs.
    reach : array (2, d) or None
        Bounds of all predictions: far from the training rows, networks predict anything. None in
        models of earlier versions.
    informs : bool
        Whether the network of weights sees m(x) beside x. Not where rows depend on each other: of
        few groups, the mean of all others shows whether the one that is left out lies above it.
    """

    bases: dict[str, Base]
    weights: np.ndarray
    scale: np.ndarray
    n_averaged: int
    log_scale: Base | None
    reach: np.ndarray | None = None
    informs: bool = True

    def __repr__(self) -> str:
        return f"LocationModel({self.summary()})"

    def at(self, x: np.ndarray) -> Location:
        """The location at encoded inputs (n, p), by all members."""
        predicted = np.array([base.members(x) for base in self.bases.values()])
        if self.reach is not None:
            predicted = clipped(predicted, *self.reach)
        members = np.add.reduce(predicted * self.weights[:, None, None], axis=0)
        scale = np.empty(members.shape[1:])
        scale[:] = self.scale
        if self.log_scale is not None:
            scale *= relative_scale(mean_over(self.log_scale.members(x), axis=0))
        # The members' errors are common but for a variance of each, which shows in how they differ
        # and which falls with the number averaged. At best all of the error is of that kind.
        n_members = len(members)
        mean, of_bases = mean_over(members, axis=0), mean_over(predicted, axis=1)
        gain = 1.0 / self.n_averaged - 1.0 / n_members
        between = members.var(axis=0, ddof=1) if gain else np.zeros(scale.shape)
        return Location(
            members=members,
            mean=mean,
            scale=scale,
            variance_gain=gain * between,
            least_share=self.n_averaged / n_members,
            inputs=self.inputs(x, of_bases),
            spread=spread_of(predicted, of_bases, mean),
        )

    def mean(self, predicted: np.ndarray) -> np.ndarray:
        """m(x), (n, d), from the predictions of the bases, (n_bases, n, d)."""
        return np.add.reduce(predicted * self.weights[:, None], axis=0)

    def inputs(self, x: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """x, m(x) and, with several bases, their differences from it, which show how sure it is."""
        if not self.informs:
            return x
        mean = self.mean(predicted)
        differences = (predicted - mean) / self.scale if len(predicted) > 1 else ()
        return np.concatenate([x, mean, *differences], axis=1, dtype=np.float32)

    @property
    def n_members(self) -> int:
        return next(iter(self.bases.values())).n_members

    def n_inputs(self, n_in: int) -> int:
        """The number of inputs of the network of weights, for ``n_in`` columns of x."""
        n_bases, d = self.weights.shape
        if not self.informs:
            return n_in
        return n_in + d * (1 if n_bases == 1 else 1 + n_bases)

    def summary(self) -> str:
        """The weights of the stack, as one line of text."""
        names = [name if name in NETWORK_BASES else "regressor" for name in self.bases]
        shares = self.weights.mean(axis=1)
        stack = " + ".join(f"{share:.2f} {name}" for share, name in zip(shares, names, strict=True))
        return stack if self.log_scale is None else f"{stack}, with a scale"

    # --- files --------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Named arrays for a model file."""
        arrays = {
            "weights": self.weights,
            "scale": self.scale,
            "n_averaged": np.array(float(self.n_averaged)),
        }
        if self.reach is not None:
            arrays["reach"] = self.reach
        if not self.informs:  # models of earlier versions have no such array, and m(x) informs
            arrays[_INFORMS] = np.array(0.0)
        bases = self.bases if self.log_scale is None else self.bases | {_SCALE: self.log_scale}
        for name, base in bases.items():
            arrays |= {f"{name}/{key}": value for key, value in base.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, np.ndarray],
        n_in: int,
        n_out: int,
        read_networks: BaseReader,
        read_regressors: BaseReader,
    ) -> LocationModel:
        """The location model of an untrusted file."""
        grouped: dict[str, dict[str, np.ndarray]] = {}
        for key, value in arrays.items():
            name, inside, rest = key.partition("/")
            if inside:
                grouped.setdefault(name, {})[rest] = value
        scale = grouped.pop(_SCALE, None)
        need_array(arrays, "weights", (len(grouped), n_out))
        need_array(arrays, "scale", (n_out,))
        need_array(arrays, "n_averaged", ())
        if not np.all(arrays["scale"] > 0):
            raise ModelFileError("the scale of the location model in the file is not positive")
        reach = arrays.get("reach")
        if reach is not None:
            need_array(arrays, "reach", (2, n_out))
        if _INFORMS in arrays:
            need_array(arrays, _INFORMS, ())
        optional = sum(name in arrays for name in ("reach", _INFORMS))
        n_arrays = 3 + optional + sum(map(len, grouped.values())) + len(scale or {})
        if len(arrays) != n_arrays:
            raise ModelFileError("the model file holds arrays that no location model has")
        bases: dict[str, Base] = {}
        for name in sorted(grouped):
            read = read_networks if name in NETWORK_BASES else read_regressors
            bases[name] = read(grouped[name], n_in, n_out)
        n_members, n_averaged = {base.n_members for base in bases.values()}, arrays["n_averaged"]
        if len(n_members) != 1 or not 1 <= n_averaged <= max(n_members):
            raise ModelFileError("the members of the location model in the file are not complete")
        log_scale = None if scale is None else read_regressors(scale, n_in, 1)
        return cls(
            bases,
            arrays["weights"],
            arrays["scale"],
            int(n_averaged),
            log_scale,
            reach,
            informs=bool(arrays.get(_INFORMS, 1.0)),
        )


def spread_of(predicted: np.ndarray, of_bases: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The variance (n, d) around the mean (n, d) of predictions (n_bases, n_members, n, d), which
    have the means (n_bases, n, d).

    Every base counts, used by the stack or not: each is a way to continue from the same rows.
    """
    n_bases, n_members = predicted.shape[:2]
    total = np.add.reduce(np.square(of_bases - mean), axis=0)
    if n_members > 1:
        within = np.add.reduce(np.square(predicted - of_bases[:, None]), axis=(0, 1))
        total += within / (n_members - 1)
    return total / n_bases


#: The name of the base that gives log s(x), in a model file.
_SCALE = "scale"

#: The array that says that m(x) is no input of the network of weights.
_INFORMS = "informs"


def relative_scale(log_scale: np.ndarray) -> np.ndarray:
    """s(x) relative to its mean, from its logarithm, within bounds."""
    low, high = (np.log(bound) for bound in _SCALE_BOUNDS)
    return np.exp(np.clip(log_scale, low, high))
