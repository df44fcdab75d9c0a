"""The law in a model file: a description in JSON, and arrays. Files are not trusted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from nkcme.calibration.calibration_map import CalibrationMap
from nkcme.distributions.support import Support
from nkcme.distributions.tails import MAX_SHAPE, TailParameters, Tails
from nkcme.distributions.transforms import NONE, TRANSFORMS
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.nkcme.law import Law
from nkcme.estimators.nkcme.novelty import Novelty
from nkcme.model_files.array_checks import need_array

# The names of arrays.
CALIBRATION = "recalibration"
_PRIOR = "average_weights"
_NOVELTY = "novelty/"


def is_of_law(name: str) -> bool:
    """Whether an array of a model file belongs to the law."""
    return name in (CALIBRATION, _PRIOR) or name.startswith(_NOVELTY)


def law_arrays(law: Law) -> dict[str, np.ndarray]:
    """The arrays that a file has of the law."""
    arrays: dict[str, np.ndarray] = {}
    if law.calibration is not None:
        arrays[CALIBRATION] = law.calibration.values
    if law.prior is not None:
        arrays[_PRIOR] = law.prior
    if law.novelty is not None:
        arrays |= {f"{_NOVELTY}{k}": v for k, v in law.novelty.to_arrays().items()}
    return arrays


def law_config(law: Law) -> dict[str, Any]:
    """What else a file says of the law."""
    support = asdict(law.support)
    for bound in ("lower", "upper"):  # JSON has no infinity
        support[bound] = support[bound] if np.isfinite(support[bound]) else None
    return {
        "support": support,
        "transform": law.transform,
        "prior_share": law.prior_share,
        "smoothing": law.smoothing,
        "overlap": law.overlap,
        "tails": None if law.tails is None else [list(tail) for tail in law.tails],
        "novelty": None if law.novelty is None else law.novelty.to_config(),
        "earlier": law.earlier,
    }


def law_from(config: dict[str, Any], arrays: dict[str, np.ndarray], n_atoms: int, n_in: int) -> Law:
    """The law of a file; that of an earlier version has no tails and no support."""
    calibration = _calibration_from(arrays)
    described = config.get("law")
    if described is None:
        return Law(calibration=calibration, earlier=True)
    try:
        support: dict[str, Any] = {
            key: _as_tuple(value)
            for key, value in described["support"].items()
            if value is not None
        }
        tails = described["tails"]
        law = Law(
            Support(**support),
            described.get("transform", NONE),  # earlier versions had none
            calibration,
            arrays.get(_PRIOR),
            float(described["prior_share"]),
            float(described["smoothing"]),
            float(described["overlap"]),
            None if tails is None else Tails(*(TailParameters(*map(float, t)) for t in tails)),
            _novelty_from(described.get("novelty"), arrays, n_in),
            bool(described["earlier"]),
        )
        _check_law(law, n_atoms)
    except (KeyError, TypeError, ValueError, AttributeError, NkcmeError) as error:
        raise ModelFileError(f"the law in the model file cannot be used: {error}") from error
    return law


def _novelty_from(
    config: dict[str, Any] | None, arrays: dict[str, np.ndarray], n_in: int
) -> Novelty | None:
    own = {k.removeprefix(_NOVELTY): v for k, v in arrays.items() if k.startswith(_NOVELTY)}
    return None if config is None else Novelty.from_file(config, own, n_in)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _check_law(law: Law, n_atoms: int) -> None:
    """Raises ValueError where the numbers of a law make no distribution."""
    if law.transform not in TRANSFORMS:
        raise ValueError(f"there is no transform {law.transform!r}")
    numbers = [*(law.tails or ()), (law.prior_share, law.smoothing, law.overlap)]
    if not all(np.all(np.isfinite(some)) for some in numbers):
        raise ValueError("it holds numbers that are not finite")
    if not (0 <= law.prior_share <= 1 and 0 <= law.overlap <= 1 and law.smoothing >= 0):
        raise ValueError("a share is not between 0 and 1, or the smoothing is negative")
    support = law.support
    if not np.all(np.isfinite([*support.values, *np.ravel(support.odds), support.unseen])):
        raise ValueError("its support holds numbers that are not finite")
    if support.odds and np.shape(support.odds) != (len(support.reached), 2):
        raise ValueError("its point masses have not one pair of odds each")
    if not 0 <= support.unseen < 1:
        raise ValueError("the probability of other values is not a share")
    if law.prior is not None:
        if law.prior.shape != (n_atoms,) or not np.all(law.prior >= 0):
            raise ValueError("its average weights do not fit the atoms")
        if not abs(law.prior.sum() - 1.0) < 1e-3:
            raise ValueError("its average weights do not sum to one")
    for tail in law.tails or ():
        if not (0 <= tail.mass < 0.5 and tail.scale > 0 and 0 <= tail.shape <= MAX_SHAPE):
            raise ValueError("its tails are none")
    if np.any(np.diff(support.values) <= 0):
        raise ValueError("its values are not in increasing order")
    if not set(support.reached) <= {support.lower, support.upper}:
        raise ValueError("its point masses are not at bounds")


def _calibration_from(arrays: dict[str, np.ndarray]) -> CalibrationMap | None:
    """The calibration map of a file, if it has one."""
    values = arrays.get(CALIBRATION)
    if values is None:
        return None
    need_array(arrays, CALIBRATION, (len(np.atleast_1d(values)),))
    try:
        return CalibrationMap(values)
    except NkcmeError as error:
        raise ModelFileError(str(error)) from error
