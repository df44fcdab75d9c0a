"""What the parameters of `NKCME` mean: checks, and what "auto" and None stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.readings import READINGS
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.atom_placement import PLACEMENTS
from nkcme.estimators.nkcme.embedding_network import Spec
from nkcme.estimators.nkcme.location_fitting import check_center
from nkcme.estimators.nkcme.recipe import Recipe
from nkcme.estimators.nkcme.support_detection import given_support
from nkcme.estimators.training_data import Encoded
from nkcme.kernels import KERNELS
from nkcme.networks import HEADS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.optimizers import Descent

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def check(model: NKCME) -> None:
    """Raises NkcmeError on a bad value of a parameter that only `NKCME` has."""
    need_one_of("kernel", model.kernel, tuple(KERNELS))
    need_one_of("head", model.head, tuple(HEADS))
    need_one_of("bandwidth_update", model.bandwidth_update, ("joint", "iterative", "fixed"))
    need_one_of("reading", model.reading, ("auto", LAW, *READINGS))
    if model.reading == "law" and model.head != "simplex":
        raise NkcmeError(f'reading="law" needs head="simplex"; got head={model.head!r}')
    need_one_of("atoms", model.atoms, PLACEMENTS)
    need_one_of("support", model.support, ("auto", "none"))
    if not isinstance(model.integer, bool | np.bool_):
        raise NkcmeError(f"integer must be True or False; got {model.integer!r}")
    if given_support(model) is not None and not reads_law(model):
        raise NkcmeError(
            'bounds, integer and values need weights that are probabilities: head="simplex" and '
            f"the reading as law; got head={model.head!r} and reading={model.reading!r}"
        )
    need_whole("bandwidth_period", model.bandwidth_period)
    for name in ("n_atoms", "n_members"):
        if getattr(model, name) is not None:
            need_whole(name, getattr(model, name))
    check_center(model.center)
    if not isinstance(model.recalibrate, bool | np.bool_) and model.recalibrate != "auto":
        raise NkcmeError(f'recalibrate must be True, False or "auto"; got {model.recalibrate!r}')
    if must_calibrate(model.recalibrate) and not reads_law(model):
        raise NkcmeError(
            'recalibrate needs weights that are probabilities: head="simplex" and a reading as law '
            f"or atomic; got head={model.head!r} and reading={model.reading!r}"
        )
    need_wholes("spectral_norm", model.spectral_norm, least=None)
    need_number("bandwidth", model.bandwidth, above=0.0)
    if model.bandwidth_learning_rate is not None:
        need_number("bandwidth_learning_rate", model.bandwidth_learning_rate, above=0.0)
    if model.bandwidth_floor is not None:
        need_number("bandwidth_floor", model.bandwidth_floor, least=0.0)
    if not isinstance(model.recipe, Recipe | None):
        raise NkcmeError(f"recipe must be a nkcme.Recipe or None; got {model.recipe!r}")


def reading_of(reading: str, head: str, n_outputs: int = 1) -> str:
    """The reading that "auto" means for weights of this head."""
    if reading == "auto":
        simplex = "law" if n_outputs == 1 else "atomic"
        return simplex if head == "simplex" else "smoothed"
    return reading


def standardisation_of(model: NKCME) -> bool | str:
    """The standardisation that "auto" means: robust with a location model, plain without."""
    if isinstance(model.standardize, str) and model.standardize == "auto":
        return True if has_center(model, "none") else "robust"
    return model.standardize


def reads_law(model: NKCME) -> bool:
    """Whether weights are probabilities, which a law can confine to a support."""
    return model.head == "simplex" and reading_of(model.reading, model.head) != "smoothed"


def must_calibrate(recalibrate: bool | str) -> bool:
    """Whether the user asked for a calibration map, rather than leaving it to "auto"."""
    return not isinstance(recalibrate, str) and bool(recalibrate)


def has_center(model: NKCME, name: str) -> bool:
    """Whether the parameter ``center`` has this name."""
    return isinstance(model.center, str) and model.center == name


def stages(model: NKCME, datasets: Sequence[Encoded]) -> tuple[bool, bool]:
    """Whether a fit has a location model, and whether it has a calibration map."""
    n_outputs, must = datasets[0].y.shape[1], must_calibrate(model.recalibrate)
    if must and n_outputs > 1:
        raise NkcmeError(f"recalibrate is for one output, and y has {n_outputs}; leave it out")
    # A calibration map needs weights that are probabilities of one output.
    auto = isinstance(model.recalibrate, str)
    calibrated = must or (auto and reads_law(model) and n_outputs == 1)
    located = not has_center(model, "none")
    least, needed = min(len(data.x) for data in datasets), model._recipe.least_rows
    if least >= needed:
        return located, calibrated
    if must or not (has_center(model, "auto") or has_center(model, "none")):
        raise NkcmeError(
            f"a location model and recalibration need at least {needed} different rows to hold "
            f'some out; got {least}: leave both to "auto", or turn them off'
        )
    return False, False


def make_spec(model: NKCME, descent: Descent, n_in: int, n_out: int, n_rows: int) -> Spec:
    """The training program of the network of weights."""
    recipe, floor = model._recipe.embedding, model.bandwidth_floor
    if model.weight_decay is None:
        descent = descent._replace(weight_decay=recipe.weight_decay(n_rows, n_in, n_out))
    if floor is None:
        floor = recipe.bandwidth_floor(n_rows)
    # The paper's single rate decays the bandwidth too. With its own rate it is not decayed: decay
    # would pull it to softplus(0), whatever the data.
    of_bandwidth = descent
    if model.bandwidth_learning_rate is not None:
        rate = float(model.bandwidth_learning_rate)
        of_bandwidth = descent._replace(learning_rate=rate, weight_decay=0.0)
    return Spec(
        n_in=n_in,
        n_out=n_out,
        kernel=model.kernel,
        n_atoms=model.n_atoms or recipe.count_atoms(n_out),
        hidden=tuple(int(h) for h in model.hidden),
        activation=model.activation,
        head=model.head,
        spectral_norm=tuple(int(i) for i in model.spectral_norm),
        bandwidth=float(model.bandwidth) * n_out**0.5,  # as distances grow
        bandwidth_floor=max(float(floor), recipe.least_bandwidth),
        bandwidth_update=model.bandwidth_update,
        bandwidth_period=int(model.bandwidth_period),
        descent=descent,
        bandwidth_descent=of_bandwidth,
    )
