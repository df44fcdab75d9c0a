"""What the parameters of `NKCME` mean: checks, and what "auto" and None stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nkcme.distributions.confined_embedding import LAW
from nkcme.distributions.readings import READINGS
from nkcme.distributions.transforms import LOG, TRANSFORMS
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.atom_placement import PLACEMENTS
from nkcme.estimators.nkcme.components import COMPONENTS
from nkcme.estimators.nkcme.embedding_network import Spec, TableValues
from nkcme.estimators.nkcme.law import reading_of
from nkcme.estimators.nkcme.location_fitting import check_center
from nkcme.estimators.nkcme.recipe import EmbeddingRecipe, Recipe
from nkcme.estimators.nkcme.support_detection import given_support
from nkcme.estimators.training_data import Encoded
from nkcme.kernels import KERNELS
from nkcme.networks import HEADS
from nkcme.parameter_checks import need_number, need_one_of, need_whole, need_wholes
from nkcme.training.optimizers import OPEN, Descent

if TYPE_CHECKING:
    from nkcme.estimators.nkcme.estimator import NKCME


def check(model: NKCME) -> None:
    """Raises NkcmeError on a bad value of a parameter that only `NKCME` has."""
    need_one_of("kernel", model.kernel, tuple(KERNELS))
    need_one_of("head", model.head, (*HEADS, COMPONENTS))
    need_one_of("bandwidth_update", model.bandwidth_update, ("joint", "iterative", "fixed"))
    need_one_of("reading", model.reading, ("auto", LAW, *READINGS))
    if model.reading == "law" and model.head == "signed":
        raise NkcmeError(f'reading="law" needs head="simplex"; got head={model.head!r}')
    need_one_of("atoms", model.atoms, PLACEMENTS)
    need_one_of("support", model.support, ("auto", "none"))
    need_one_of("transform", transform_parameter(model), ("auto", *TRANSFORMS))
    if transform_parameter(model) == LOG and not may_transform(model):
        raise NkcmeError(
            'transform="log" needs head="simplex" and reading="auto" or "law"; got '
            f"head={model.head!r} and reading={model.reading!r}"
        )
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


def transform_parameter(model: NKCME) -> str:
    """The parameter ``transform``, which is hidden from scikit-learn (see `HiddenParameter`)."""
    transform: str = vars(model)["transform"]
    return transform


def standardisation_of(model: NKCME) -> bool | str:
    """The standardisation that "auto" means: robust with a location model, plain without."""
    if isinstance(model.standardize, str) and model.standardize == "auto":
        return True if has_center(model, "none") else "robust"
    return model.standardize


def reads_law(model: NKCME) -> bool:
    """Whether weights are probabilities, which a law can confine to a support."""
    return model.head != "signed" and reading_of(model.reading, model.head) != "smoothed"


def may_transform(model: NKCME) -> bool:
    """Whether predictions of one output are laws, which can be those of a transform of y."""
    return model.head == "simplex" and reading_of(model.reading, model.head) == LAW


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
    if model.head == COMPONENTS and n_outputs > 1:
        raise NkcmeError(
            f'head="components" is for one output, and y has {n_outputs}: use head="simplex"'
        )
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


def head_of_fixed_atoms(model: NKCME, n_outputs: int) -> str:
    """How fixed atoms get weights where they are an alternative to a location model.

    Components are better than free weights on the simplex for every shape (docs/findings.md).
    """
    return COMPONENTS if model.head == "simplex" and n_outputs == 1 else model.head


def may_stop_early(model: NKCME, datasets: Sequence[Encoded]) -> bool:
    """Whether cross-fitted ensembles train until their out-of-fold score has settled: their
    length is not given. For several outputs and signed weights that was not tried."""
    given = model.epochs, model.patience, datasets[0].x_validation
    return (
        model.schedule == "auto"
        and all(one is None for one in given)
        and not model.validation_fraction
        and model.head != "signed"
        and datasets[0].y.shape[1] == 1
    )


def open_ended(spec: Spec, recipe: EmbeddingRecipe) -> Spec:
    """The same training program without a fixed length."""

    def without_length(descent: Descent) -> Descent:
        decay = recipe.open_ended_decay * descent.weight_decay
        return descent._replace(schedule=OPEN, n_steps=0, weight_decay=decay)

    return spec._replace(
        descent=without_length(spec.descent),
        bandwidth_descent=without_length(spec.bandwidth_descent),
        averaging=recipe.averaging,
    )


def count_steps(model: NKCME, head: str, n_rows: int) -> int:
    """How many steps a network with this head trains."""
    if model.epochs is not None:
        return model._steps_of(model.epochs, n_rows)
    recipe = model._recipe.embedding
    return (recipe.components.steps if head == COMPONENTS else recipe.steps)(n_rows)


def table_values(model: NKCME, n_in: int, n_out: int, n_rows: int) -> TableValues:
    """What a training program takes from the size of the table."""
    recipe, floor, decay = model._recipe.embedding, model.bandwidth_floor, model.weight_decay
    if decay is None:
        decay = recipe.weight_decay(n_rows, n_in, n_out)
    if floor is None:
        floor = recipe.bandwidth_floor(n_rows)
    return TableValues(n_in, max(float(floor), recipe.least_bandwidth), decay)


def make_spec(model: NKCME, head: str, descent: Descent, n_in: int, n_out: int) -> Spec:
    """The training program of a network of weights with this head."""
    recipe = model._recipe.embedding
    descent = descent._replace(weight_decay=1.0)  # of that of the table
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
        activation=recipe.components.activation if head == COMPONENTS else model.activation,
        head="simplex" if head == COMPONENTS else head,
        spectral_norm=tuple(int(i) for i in model.spectral_norm),
        bandwidth=float(model.bandwidth) * n_out**0.5,  # as distances grow
        bandwidth_update=model.bandwidth_update,
        bandwidth_period=int(model.bandwidth_period),
        descent=descent,
        bandwidth_descent=of_bandwidth,
        n_components=recipe.components.n_components if head == COMPONENTS else 0,
        components=recipe.components,
    )
