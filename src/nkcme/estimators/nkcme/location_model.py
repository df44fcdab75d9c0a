"""The centre of a centred embedding: a point prediction m(x), stacked of bases, and a scale.

With atoms at m(x) + s(x) zeta_a an embedding describes the residual (y - m(x)) / s(x), and so what
is sharp stays sharp wherever it lies (docs/theory.md). How it is fitted is in `center_fitting`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from nkcme.errors import ModelFileError
from nkcme.estimators.base import need_array
from nkcme.estimators.nkcme.location_networks import NETWORKS, Networks
from nkcme.estimators.nkcme.location_regressors import Regressors


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
            scale = scale * relative(self.log_scale.members(x).mean(axis=0))
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


def relative(log_scale: np.ndarray) -> np.ndarray:
    """s(x) from its logarithm, within bounds that no few rows can move it out of."""
    return np.exp(np.clip(log_scale, np.log(0.01), np.log(10.0)))
