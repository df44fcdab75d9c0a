"""Every kind of predicted distribution, small: built by hand, and predicted by every estimator.

`CASES` maps a name to a function that makes the distribution; the contract runs over all of them.
Every estimator in `ESTIMATORS` is included as it predicts, and in the readings of embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import stats

from nkcme.distributions.base import Distribution
from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.embedding import READINGS, Embedding
from nkcme.distributions.flow import FlowDistribution
from nkcme.distributions.gaussian_mixture import GaussianMixture
from nkcme.distributions.piecewise_uniform import PiecewiseUniform
from nkcme.distributions.sample import SampleDistribution
from nkcme.distributions.tails import TailParameters, Tails
from nkcme.estimators import ESTIMATORS
from nkcme.kernels import KERNELS
from support.tiny_estimators import tiny

ROWS = 3
ATOMS = np.array([-2.0, -1.25, -0.5, 0.25, 1.0, 1.75])  # even, so that all bins have one width
PLANE_ATOMS = np.array([[-1.0, 0.5], [0.0, 0.0], [1.0, 1.5], [0.5, -1.0]])
UNITS: dict[str, dict[str, Any]] = {
    "standard": {},
    "shared units": {"location": 10.0, "scale": 3.0},
    "units per row": {"location": [[1.0], [2.0], [-3.0]], "scale": [[0.5], [2.0], [7.0]]},
}
PLANE_UNITS: dict[str, Any] = {"location": [1.0, -2.0], "scale": [2.0, 0.5]}


def weights(kind: str, n_atoms: int = len(ATOMS)) -> np.ndarray:
    """Weights (ROWS, n_atoms) that sum to one: not negative, or about a third of them negative."""
    rng = np.random.default_rng({"simplex": 0, "signed": 4}[kind])
    if kind == "simplex":
        return rng.dirichlet(np.ones(n_atoms), ROWS)
    w = rng.normal(0.5, 1.0, size=(ROWS, n_atoms))
    return w / w.sum(axis=1, keepdims=True)


def embedding(
    kernel: str = "gaussian",
    kind: str = "simplex",
    reading: str = "smoothed",
    units: str = "standard",
    **options: Any,
) -> Embedding:
    options = {"bandwidth": 0.4} | UNITS[units] | options
    return Embedding(ATOMS, weights(kind), kernel=kernel, reading=reading, **options)


def plane_embedding(
    kernel: str = "gaussian", reading: str = "smoothed", *, spread: bool = False
) -> Embedding:
    """An embedding of two outputs; with covariances if ``spread``."""
    roots = np.random.default_rng(5).normal(size=(4, 2, 2))
    covariances = 0.2 * roots @ roots.swapaxes(1, 2) + 0.05 * np.eye(2)
    return Embedding(
        PLANE_ATOMS,
        weights("simplex", 4),
        kernel=kernel,
        bandwidth=0.5,
        reading=reading,
        covariances=covariances if spread else None,
        **PLANE_UNITS,
    )


def mixture(units: str = "standard", **options: Any) -> GaussianMixture:
    rng = np.random.default_rng(0)
    logits, means = rng.normal(size=(ROWS, 3)), rng.normal(scale=2.0, size=(ROWS, 3))
    stds = rng.uniform(0.3, 1.5, size=(ROWS, 3))
    return GaussianMixture(logits, means, stds, **(UNITS[units] | options))


def plane_mixture() -> GaussianMixture:
    rng = np.random.default_rng(1)
    means = rng.normal(size=(ROWS, 3, 2))
    stds = rng.uniform(0.4, 1.2, size=(ROWS, 3, 2))
    return GaussianMixture(rng.normal(size=(ROWS, 3)), means, stds, **PLANE_UNITS)


def sample(n_draws: int = 40) -> SampleDistribution:
    rng = np.random.default_rng(0)
    return SampleDistribution(rng.normal([0.0, 5.0, -100.0], [1.0, 0.2, 30.0], (n_draws, ROWS)))


def plane_sample(n_draws: int = 60) -> SampleDistribution:
    rng = np.random.default_rng(2)
    return SampleDistribution(rng.normal(size=(n_draws, ROWS, 2)) * [1.0, 30.0] + [0.0, 100.0])


@cache
def fitted(name: str, n_outputs: int) -> tuple[Any, np.ndarray]:
    """A tiny fitted estimator, and a few rows to predict."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(40, 2))
    y = x + 0.3 * rng.normal(size=(40, 2))
    return tiny(name).fit(x, y if n_outputs == 2 else y[:, 0]), x[:ROWS]


def predicted(name: str, n_outputs: int, reading: str | None = None) -> Distribution:
    """The distributions that a tiny estimator predicts for a few rows."""
    model, x = fitted(name, n_outputs)
    dist = model.predict_dist(x)
    return dist.read(reading) if isinstance(dist, Embedding) and reading is not None else dist


def _readings(name: str, n_outputs: int) -> tuple[str | None, ...]:
    embeds = name in ("NKCME", "KernelCME", "DeepFeatureCME")
    law = (LAW,) if name == "NKCME" and n_outputs == 1 else ()
    return READINGS + law if embeds else (None,)


def _built() -> dict[str, Callable[[], Distribution]]:
    found: dict[str, Callable[[], Distribution]] = {}
    for kernel in KERNELS:
        for kind, units in (("simplex", "units per row"), ("signed", "shared units")):
            found[f"smoothed {kernel} {kind}"] = partial(embedding, kernel, kind, "smoothed", units)
    # The atomic reading does not use the kernel.
    for kind, units in (("simplex", "shared units"), ("signed", "units per row")):
        found[f"atomic {kind}"] = partial(embedding, "gaussian", kind, "atomic", units)
    tails = Tails(TailParameters(0.02, 0.5, 0.2), TailParameters(0.05, 0.3))
    found["law"] = partial(embedding, reading=LAW, units="units per row", overlap=0.5, tails=tails)
    log = {"location": [[1.0], [2.0], [-3.0]], "scale": [[0.1], [0.3], [0.8]], "transform": "log"}
    found["law of log y"] = partial(embedding, reading=LAW, overlap=0.5, tails=tails, **log)
    for units in UNITS:
        found[f"mixture {units}"] = partial(mixture, units)
    found["sample"] = sample
    return found


def _built_on_the_plane() -> dict[str, Callable[[], Distribution]]:
    return {
        **{f"plane smoothed {kernel}": partial(plane_embedding, kernel) for kernel in KERNELS},
        "plane covariances": partial(plane_embedding, reading="atomic", spread=True),
        "plane points": partial(plane_embedding, reading="atomic"),
        "plane mixture": plane_mixture,
        "plane sample": plane_sample,
    }


def _of_estimators(n_outputs: int) -> dict[str, Callable[[], Distribution]]:
    return {
        " ".join(filter(None, (name, reading, "plane" * (n_outputs > 1)))): partial(
            predicted, name, n_outputs, reading
        )
        for name in ESTIMATORS
        for reading in _readings(name, n_outputs)
    }


ONE_OUTPUT = _built() | _of_estimators(1)
SEVERAL_OUTPUTS = _built_on_the_plane() | _of_estimators(2)
CASES = ONE_OUTPUT | SEVERAL_OUTPUTS


@cache
def case(name: str) -> Distribution:
    return CASES[name]()


def is_signed(dist: Distribution) -> bool:
    return isinstance(dist, Embedding) and bool(np.any(dist.weights < 0))


def has_density(dist: Distribution) -> bool:
    """All but atoms of several outputs without covariances."""
    if not isinstance(dist, Embedding) or dist.n_outputs == 1 or dist.reading == "smoothed":
        return True
    return dist.covariances is not None and bool(np.any(dist.covariances))


def is_of_logarithms(dist: Distribution) -> bool:
    """Whether it is an embedding of log y, whose units can be scaled and not shifted."""
    return isinstance(dist, Embedding) and dist.transform == "log"


def moved(dist: Distribution, shift: float, factor: float) -> Distribution:
    """The distributions of shift + factor y."""
    if is_of_logarithms(dist):
        assert shift == 0
        return _in_units(dist, dist.location + np.log(factor), dist.scale)
    if isinstance(dist, SampleDistribution):
        return SampleDistribution(shift + factor * dist.draws)
    return _in_units(dist, shift + factor * dist.location, factor * dist.scale)


def shrunk(dist: Distribution, factor: float) -> Distribution:
    """Distributions around the same location, narrower by ``factor``."""
    if isinstance(dist, SampleDistribution):
        middle = dist.draws.mean(axis=0)
        return SampleDistribution(middle + factor * (dist.draws - middle))
    return _in_units(dist, dist.location, factor * dist.scale)


def _in_units(dist: Any, location: np.ndarray, scale: np.ndarray) -> Any:
    from dataclasses import replace

    return replace(dist, location=location, scale=scale)


def breaks_of(dist: Distribution) -> np.ndarray:
    """Points of y for a batch of one row between which its density and CDF are smooth.

    Beyond the quantiles they are further and further apart, so that tails count in full; not so far
    that rounding of the CDF counts.
    """
    found = [dist.ppf([0.001, *np.linspace(0.01, 0.99, 25), 0.999])[0], dist.point_masses()[0]]
    far = max(np.ptp(found[0]), 1e-12) * np.geomspace(1.0, 2.0**60, 61)
    found += [found[0][0] - far, found[0][-1] + far]
    if isinstance(dist, Embedding):
        if dist.reading == LAW:  # piecewise constant between its edges or its point masses
            law = dist._law()
            found += [law.edges[0]] if isinstance(law, PiecewiseUniform) else []
        else:
            found += [_in_y(dist, dist.atoms[:, 0]), _in_y(dist, dist._reader.edges)]
    elif isinstance(dist, GaussianMixture):
        widths = np.array([[-8.0], [-4.0], [-2.0], [0.0], [2.0], [4.0], [8.0]])
        found.append(_in_y(dist, (dist.means[0, :, 0] + widths * dist.stds[0, :, 0]).ravel()))
    elif isinstance(dist, SampleDistribution):
        found.append(dist.draws[:, 0, 0])
    elif isinstance(dist, FlowDistribution):
        knots = np.concatenate([dist.transport.breaks(dist.rows)[0], np.linspace(-6, 6, 60)])
        found.append(dist.ppf(stats.norm.cdf(knots))[0])
    points = np.concatenate(found)
    return np.unique(points[np.isfinite(points)])


def _in_y(dist: Any, z: np.ndarray) -> np.ndarray:
    return dist.location[0, 0] + dist.scale[0, 0] * z
