"""Networks of a location model: those that predict nearly exactly are refined."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from nkcme.estimators.nkcme import location_networks
from nkcme.estimators.nkcme.folds import Folds
from nkcme.estimators.nkcme.location_networks import fit_networks
from nkcme.estimators.nkcme.recipe import StoppingRecipe
from nkcme.estimators.replica_training import Run
from nkcme.training.optimizers import FALLING, Descent
from support.nkcme_models import encoded
from support.tiny_estimators import small_recipe


def fitted(datasets, to_beat=np.inf, **changes):
    """The out-of-fold errors of networks for these data sets."""
    folds = [Folds.assign(len(data.x), 2, 1, seed=0) for data in datasets]
    recipe = replace(small_recipe().location.networks[0], **changes)

    class Others:
        def stack_error(self, number, out_of_fold):
            return float(np.sqrt(np.mean(np.square(out_of_fold.mean(axis=0) - datasets[number].y))))

        def errors(self, networks):
            return np.full(len(networks), to_beat)

    fits, interrupted = fit_networks(recipe, datasets, folds, Others(), Run(False))
    assert not interrupted
    return np.array([Others().stack_error(i, predicted) for i, (_, predicted) in enumerate(fits)])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def exact(rng):
    """y is a function of x without noise."""
    x = rng.uniform(-1, 1, size=(400, 2))
    return encoded(x, np.sin(2 * x[:, 0]) + x[:, 1])


def test_refined_networks_are_more_exact(exact):
    """A rate that falls to zero removes the error that a constant rate leaves."""
    (plain,), (refined,) = fitted([exact], precise=0.0), fitted([exact], precise=1.0)
    assert refined < 0.9 * plain


def test_only_networks_that_are_precise_and_not_far_worse_than_other_bases_are_refined(exact):
    plain = fitted([exact], precise=0.0)
    np.testing.assert_array_equal(fitted([exact], precise=0.5 * plain[0]), plain)
    far = {"to_beat": 0.01 * plain[0]}
    plain, other = (fitted([exact], precise=p, **far) for p in (0.0, 1.0))
    np.testing.assert_array_equal(other, plain)


def test_refining_never_makes_a_data_set_worse(exact, rng):
    """Two data sets in one program: where y is noise, longer training is worse, and not kept."""
    noise = encoded(exact.x, rng.normal(size=400))
    before = fitted([exact, noise], precise=0.0)
    after = fitted([exact, noise], precise=1.0)
    assert after[0] < 0.9 * before[0]
    assert after[1] <= before[1]


@pytest.mark.parametrize("patience", [1, 2])
def test_training_ends_where_so_many_scores_in_a_row_gain_too_little(patience, exact):
    """One score may be bad by chance."""
    found = []

    class Scripted:
        def stack_error(self, number, out_of_fold):
            found.append([1.0, 0.5, 0.51, 0.25, 0.26, 0.27, 0.1][len(found)])
            return found[-1]

        def errors(self, networks):
            return np.full(len(networks), np.inf)

    stopping = StoppingRecipe(first=10, least=1, most=80, marks_per_doubling=2, patience=patience)
    recipe = replace(small_recipe().location.networks[0], stopping=stopping, precise=0.0)
    fit_networks(recipe, [exact], [Folds.assign(400, 2, 1, seed=0)], Scripted(), Run(False))
    scored = {1: 3, 2: 6}[patience]  # until one, or two in a row, gain too little
    assert len(found) == scored + 1  # and once more when training has ended


def test_refining_multiplies_with_all_bits_of_a_float():
    """A GPU has ten bits by default, in the products of the gradient as well."""
    training = location_networks._Training(3, 1, (4,), Descent(1e-3, 0.0, 0.99, FALLING, 0), 0.0)
    (objective,) = location_networks._refining_task(training).objectives
    model = location_networks._init(3, 1, (4,), jax.random.key(0), None)
    batch = np.ones((5, 3), np.float32), np.ones((5, 1), np.float32)
    with jax.default_matmul_precision("default"):  # the suite has the highest
        gradient = jax.make_jaxpr(jax.grad(lambda own: objective.loss(own, batch, None)))(model)
    products = str(gradient).split("dot_general[")[1:]
    assert len(products) >= 4
    assert all("HIGHEST" in product[:300] for product in products)
