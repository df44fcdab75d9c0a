"""Bad parameters and calls: every estimator refuses them with one line that helps.

Bad tables are in `test_bad_tables`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from nkcme.estimators import ESTIMATORS
from support.bad_input import X, Y, check_sane
from support.refusals import refusal as one_line
from support.tiny_estimators import every_estimator, tiny

#: Errors of this library, or of scikit-learn.
refusal = partial(one_line, error=ValueError)


# ------------------------------------------------------------------------------- parameters

#: What an estimator says of parameters that cannot be meant: (parameter, value, words).
Cases = list[tuple[str, Any, str]]

#: What all that learn by steps have in common.
STEPS: Cases = [
    *(("epochs", value, "whole number of at least 1") for value in (-1, 0, 1.5, "3", True)),
    *(("batch_size", value, "whole number of at least 1") for value in (0, "a")),
    *(("hidden", value, "list of whole numbers") for value in (8, "8", None, ((8,), (8,)))),
    *(("hidden", value, "whole number of at least 1") for value in ((8, -1), (2.5,))),
    *(("activation", value, "relu") for value in ("swoosh", 3)),
    *(("schedule", value, "cosine") for value in ("linear", None)),
    *(("learning_rate", value, "above 0") for value in (0, "fast", np.inf)),
    *(("weight_decay", value, "at least 0") for value in (-1, "x")),
    *(("beta2", value, "below 1") for value in (1.0, "x")),
    *(("validation_fraction", value, "below 1") for value in (1.0, -0.1, "a")),
    *(("verbose", value, "True, False") for value in ("loud", None, 3)),
    ("checkpoint", 3, "path"),
    ("checkpoint", "/proc/nkcme/c", "check the path"),
]
#: What all have in common.
ALL: Cases = [
    *(("columns", value, "dict of types by column") for value in ("age", 5)),
    *(("standardize", value, "True or False") for value in ("no", None, 3)),
    *(("random_state", value, "seed") for value in ("a", 1.5)),
    ("random_state", -1, "between 0 and"),
]
PATIENCE: Cases = [("patience", value, "whole number of at least 1") for value in (0, 1.5)]
SPECTRAL_NORM: Cases = [
    *(("spectral_norm", value, "list of whole numbers") for value in (1, None)),
    ("spectral_norm", ("a",), "whole number"),
    ("spectral_norm", (7,), "layers from -2 to 1"),
]
#: What those have in common whose weights are on training targets, condensed.
CONDENSED: Cases = [
    *(("bandwidth", value, '"median" or a number above 0') for value in (0, -1, "auto", True)),
    *(("n_atoms", value, "whole number of at least 2") for value in (1, 2.5, "10", None)),
    *(("reading", value, "atomic") for value in ("loud", "auto", None)),
]
BAD_PARAMETERS: dict[str, Cases] = {
    "CARD": [
        *STEPS,
        *ALL,
        *(("mean_epochs", value, "whole number of at least 1") for value in (0, "x")),
        *(("mean_fraction", value, "at most 1") for value in (0, 1.1, "x", None)),
        *(("noise_hidden", value, "list of whole numbers") for value in (8, "8", None)),
        *(("noise_hidden", value, "whole number of at least 1") for value in ((8, -1), (2.5,))),
        ("noise_hidden", (), "at least one layer"),
        *(("n_draws", value, "whole number of at least 1") for value in (0, 2.5, None)),
        *(("n_diffusion_steps", value, "whole number of at least 1") for value in (0, "x")),
    ],
    "DeepFeatureCME": [
        *(case for case in STEPS if case[0] != "validation_fraction"),
        *ALL,
        *SPECTRAL_NORM,
        *CONDENSED,
        ("hidden", (), "must have a layer"),
        *(("regularization", value, "above 0") for value in (0, -1, "auto", None)),
    ],
    "KernelCME": [
        *ALL,
        *CONDENSED,
        *(("input_bandwidth", value, '"auto" or a number above 0') for value in (0, "x", None)),
        *(("regularization", value, '"auto" or a number above 0') for value in (0, "x", np.nan)),
        *(("n_inducing", value, "whole number of at least 1") for value in (0, 2.5, "10")),
        *(("max_rows", value, "whole number of at least 1") for value in (0, None)),
    ],
    "MDN": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *SPECTRAL_NORM,
        *(("n_components", value, "whole number of at least 1") for value in (0, 2.5, None)),
    ],
    "NKCME": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *SPECTRAL_NORM,
        *(("n_atoms", value, "whole number of at least 1") for value in (0, -5, 2.5, "10")),
        ("bandwidth_period", 0, "whole number of at least 1"),
        *(("n_members", value, "whole number of at least 1") for value in (0, 1.5)),
        *(("center", value, "none") for value in ("median", 3, None, [], ["tree"])),
        *(("recalibrate", value, "True, False or") for value in (1, "yes", None)),
        *(("atoms", value, "quantile") for value in ("random", None)),
        *(("transform", value, "log") for value in ("root", None, 1)),
        *(("kernel", value, "gaussian") for value in ("cubic", 3, None, ["gaussian"])),
        *(("head", value, "simplex") for value in ("tail", None, ["simplex"])),
        *(("bandwidth_update", value, "joint") for value in ("never", ["joint"])),
        *(("reading", value, "atomic") for value in ("loud", np.array(["auto"]))),
        *(("support", value, "auto") for value in ("some", None)),
        *(("bounds", value, "(lower, upper)") for value in (3, "0")),
        *(("integer", value, "True or False") for value in (2, "yes", None)),
        *(("values", value, "finite numbers") for value in (3, "one")),
        *(("bandwidth", value, "above 0") for value in (0, -1, "1", np.nan, None, True)),
        *(("bandwidth_floor", value, "at least 0") for value in (-1, "x")),
        ("bandwidth_learning_rate", "x", "above 0"),
        *(("recipe", value, "nkcme.Recipe or None") for value in ({"n_folds": 3}, "quick")),
    ],
    "SplineFlow": [
        *STEPS,
        *ALL,
        *PATIENCE,
        *(("n_layers", value, "whole number of at least 1") for value in (0, 2.5, None)),
        *(("n_bins", value, "whole number of at least 2") for value in (1, "8", None)),
        *(("tail_bound", value, "above 0") for value in (0, -3.0, np.inf, "3", None)),
        *(("hidden", value, "one width") for value in ((8, 9), ())),
        ("weight_decay", None, "at least 0"),
    ],
}


@pytest.mark.parametrize(
    ("name", "parameter", "value", "words"),
    [(name, *case) for name, cases in BAD_PARAMETERS.items() for case in cases],
)
def test_a_parameter_that_cannot_be_meant_is_refused_with_what_can(name, parameter, value, words):
    message = refusal(tiny(name, **{parameter: value}).fit, X, Y)
    assert words in message
    if parameter not in ("random_state", "checkpoint"):  # others see these two, in their words
        assert message.startswith((parameter, f"each of {parameter}"))
        assert message.endswith(f"got {value!r}") or len(np.shape(value))


def test_every_parameter_has_a_bad_value():
    for name in ESTIMATORS:
        tried = {parameter for parameter, _, _ in BAD_PARAMETERS[name]}
        assert tried == set(tiny(name).get_params())


def test_one_atom_is_the_middle_of_the_range():
    model = tiny("NKCME", center="none", n_atoms=1, reading="atomic").fit(X, Y)
    mean = check_sane(model)
    np.testing.assert_allclose(mean, 0.5 * (Y.min() + Y.max()), rtol=1e-5)


# ------------------------------------------------------------------------------- questions


@every_estimator
@pytest.mark.parametrize(
    "method",
    [
        *("predict", "predict_dist", "predict_quantiles", "predict_interval", "predict_var"),
        *("sample", "save", "score"),
    ],
)
def test_asking_before_fitting_says_to_fit(name, method, tmp_path):
    arguments = {"save": (tmp_path / "model",), "score": (X, Y)}.get(method, (X,))
    with pytest.raises(NotFittedError, match="Call 'fit'") as caught:
        getattr(tiny(name), method)(*arguments)
    assert "\n" not in str(caught.value)


@every_estimator
def test_questions_without_an_answer_are_refused(name):
    model = tiny(name).fit(X, Y)
    for levels in ([0.5, 1.5], -0.1, np.nan, [[0.5]]):
        assert "from 0 to 1" in refusal(model.predict_quantiles, X, levels)
    for coverage in (0.0, 1.0, 95, np.nan):
        assert "between 0 and 1" in refusal(model.predict_interval, X, coverage)
    assert '"independent" or "herd"' in refusal(model.sample, X, method="best")
    assert "must be a whole number of at least 0" in refusal(model.sample, X, -1)
    several = tiny(name).fit(X, np.c_[Y, Y])
    assert "one output only" in refusal(several.predict_interval, X)
