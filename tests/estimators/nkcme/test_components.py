"""Weights from normal components: exact masses, their likelihood, and models trained by it."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import nkcme
from nkcme.atoms import Atoms
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.estimators.base import TrainingInterrupted
from nkcme.estimators.nkcme.components import Components
from nkcme.estimators.nkcme.parameters import head_of_fixed_atoms
from nkcme.estimators.nkcme.recipe import ComponentRecipe
from nkcme.model_files import read_model, write_model
from nkcme.training import chunks
from support.nkcme_models import quick, small


@pytest.fixture
def _double_precision():
    with jax.enable_x64(True):
        yield


double_precision = pytest.mark.usefixtures("_double_precision")

UNEVEN = np.array([-2.0, -1.1, -0.5, 0.1, 0.2, 1.4])


def on(eta, n_components, **changes):
    """Components for atoms at ``eta``, and the atoms."""
    atoms = Atoms.points(jnp.asarray(eta)[:, None])
    return Components.on(atoms, n_components, ComponentRecipe(**changes)), atoms


def outputs_for(components, probabilities, means, stds):
    """The outputs (n, 3 K) of a network that give these components."""
    off = means - np.asarray(components.starts)
    log_ratio = np.log((stds - np.asarray(components.least_std)) / np.asarray(components.unit_std))
    return jnp.asarray(np.concatenate([np.log(probabilities), off, log_ratio], axis=1))


@double_precision
def test_one_narrow_component_has_the_masses_of_a_normal_distribution():
    components, atoms = on(UNEVEN, 1, least_std=0.01)
    mean, std = np.array([[0.07], [-1.5], [9.0]]), np.full((3, 1), 0.05)
    weights = components.weights(outputs_for(components, np.ones((3, 1)), mean, std), atoms)
    edges = np.concatenate([[-np.inf], 0.5 * (UNEVEN[1:] + UNEVEN[:-1]), [np.inf]])
    np.testing.assert_allclose(weights, np.diff(stats.norm(mean, std).cdf(edges)), atol=1e-14)
    assert weights[2, -1] == pytest.approx(1.0)  # beyond the outermost atom


def mixtures(n=20, k=4, seed=0):
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(k), n)
    return probabilities, rng.normal(size=(n, k)), rng.uniform(0.2, 1.0, size=(n, k))


@double_precision
def test_weights_are_those_of_the_mixture_and_sum_to_one():
    components, atoms = on(UNEVEN, 4)
    parameters = mixtures()
    weights = components.weights(outputs_for(components, *parameters), atoms)
    edges = 0.5 * (UNEVEN[1:] + UNEVEN[:-1])
    probabilities, means, stds = (p[:, :, None] for p in parameters)
    below = np.sum(probabilities * stats.norm(means, stds).cdf(edges), axis=1)
    np.testing.assert_allclose(np.cumsum(weights, axis=1)[:, :-1], below, atol=1e-12)
    np.testing.assert_allclose(np.sum(weights, axis=1), 1.0, rtol=1e-12)


def test_weights_in_single_precision_are_not_negative():
    components, atoms = on(np.linspace(-3, 3, 100).astype(np.float32), 4)
    weights = components.weights(outputs_for(components, *mixtures(500)), atoms)
    assert weights.dtype == jnp.float32
    assert np.min(weights) >= 0
    np.testing.assert_allclose(np.sum(weights, axis=1), 1.0, atol=1e-5)


def test_weights_by_numpy_are_those_of_the_mixture():
    eta = np.linspace(-3, 3, 100).astype(np.float32)
    components, _ = on(eta, 4)
    parameters = mixtures(3000)  # several blocks
    outputs = np.asarray(outputs_for(components, *parameters))
    members = jax.tree.map(lambda leaf: leaf[None], components).stacked()
    weights = members.weights(outputs[None], eta)[0]
    probabilities, means, stds = (p[:, :, None] for p in parameters)
    edges = np.concatenate([[-np.inf], 0.5 * (eta[1:] + eta[:-1]), [np.inf]])
    cdf = np.sum(probabilities * stats.norm(means, stds).cdf(edges), axis=1)
    np.testing.assert_allclose(weights, np.diff(cdf), atol=2e-6)
    between = members.mass_between(outputs[None], *np.broadcast_to([[-1.0], [np.inf]], (2, 3000)))
    np.testing.assert_allclose(
        between[0],
        np.sum(probabilities * stats.norm(means, stds).sf(-1.0), axis=1)[:, 0],
        rtol=1e-4,
    )


@double_precision
def test_the_likelihood_is_that_of_the_mixture_with_a_uniform_share():
    components, atoms = on(UNEVEN, 4)
    probabilities, means, stds = parameters = mixtures()
    y = np.random.default_rng(1).normal(size=20)
    ours = components.log_likelihood(
        outputs_for(components, *parameters), jnp.asarray(y)[:, None], atoms, 0.1
    )
    normal = np.sum(probabilities * stats.norm(means, stds).pdf(y[:, None]), axis=1)
    np.testing.assert_allclose(ours, np.log(0.9 * normal + 0.1 / 3.4), rtol=1e-10)
    far = components.log_likelihood(
        outputs_for(components, *parameters), jnp.full((20, 1), 1e4), atoms, 0.1
    )
    np.testing.assert_allclose(far, np.log(0.1 / 3.4))  # an outlier costs no more


@double_precision
@pytest.mark.parametrize("of", ["weights", "likelihood"])
def test_gradients_are_those_of_finite_differences(of):
    components, atoms = on(UNEVEN, 4)
    outputs = outputs_for(components, *mixtures(3))
    y = jnp.asarray([[0.3], [-1.0], [5.0]])
    direction = jnp.asarray(np.random.default_rng(2).normal(size=(3, 6)))

    def value(outputs):
        if of == "weights":
            return jnp.sum(direction * components.weights(outputs, atoms))
        return jnp.sum(components.log_likelihood(outputs, y, atoms, 0.01))

    gradient, step = jax.grad(value)(outputs), 1e-6
    for i, j in ((0, 0), (1, 5), (2, 7), (0, 9), (1, 11)):
        change = jnp.zeros_like(outputs).at[i, j].set(step)
        slope = (value(outputs + change) - value(outputs - change)) / (2 * step)
        assert gradient[i, j] == pytest.approx(float(slope), rel=1e-5, abs=1e-8)


def test_a_component_is_not_narrower_than_the_atoms_show():
    components, _ = on(np.linspace(0, 1, 11), 3, least_std=0.5)
    _, means, stds = components.mixture(jnp.full((1, 9), -100.0))
    np.testing.assert_allclose(stds, 0.05, rtol=1e-5)
    np.testing.assert_allclose(means + 100, stats.norm.ppf([[1 / 6, 0.5, 5 / 6]]), atol=1e-4)


# --- models -------------------------------------------------------------------------------------


def crossing(n=800, noise=0.05, seed=0):
    """Two branches, y = x and y = -x, each with probability one half."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1))
    sign = np.where(rng.uniform(size=n) < 0.5, -1.0, 1.0)
    return x, sign * x[:, 0] + noise * rng.normal(size=n)


def test_crossing_branches_are_fitted():
    model = small(head="components", epochs=60, hidden=(32, 32)).fit(*crossing())
    x = np.array([[-0.8], [-0.4], [0.5], [0.9]])
    predicted = model.predict_dist(x)
    for sign in (-1, 1):
        on_branch = predicted.cdf(sign * x[:, 0] + 0.2) - predicted.cdf(sign * x[:, 0] - 0.2)
        np.testing.assert_allclose(on_branch, 0.5, atol=0.15)
    between = predicted.cdf(np.full(4, 0.15)) - predicted.cdf(np.full(4, -0.15))
    assert np.all(between < 0.05)


@pytest.fixture(scope="module")
def compared():
    """The default, small, where fixed atoms are better than a location model."""
    return quick(center="auto", recalibrate="auto", epochs=20).fit(*crossing(300))


def test_fixed_atoms_of_the_default_have_components(compared):
    assert compared.center_ is None
    assert compared.model_.components is not None
    assert compared.model_.network.activation == "silu"


@pytest.mark.parametrize(
    ("head", "n_outputs", "of_fixed_atoms"),
    [("simplex", 1, "components"), ("simplex", 2, "simplex"), ("signed", 1, "signed")],
)
def test_other_weights_of_fixed_atoms_stay_what_they_are(head, n_outputs, of_fixed_atoms):
    assert head_of_fixed_atoms(quick(head=head), n_outputs) == of_fixed_atoms


def test_without_a_location_model_the_head_is_the_users():
    assert quick(center="none").fit(*crossing(100)).model_.components is None


def test_components_are_for_one_output():
    x, y = crossing(100)
    with pytest.raises(NkcmeError, match='for one output, and y has 2: use head="simplex"'):
        quick(head="components").fit(x, np.stack([y, y], axis=1))


def test_a_saved_model_has_the_same_bits(compared, tmp_path):
    """Also where a later version has another recipe: the file says what the components are."""
    x, _ = crossing(300)
    compared.save(tmp_path / "m")
    config, arrays = read_model(tmp_path / "m")
    own = config["parameters"]["recipe"]["embedding"]["components"]
    own |= {"n_components": 5, "activation": "tanh", "start_std": 0.7, "least_std": 0.3}
    write_model(tmp_path / "changed", config, arrays)
    for saved in ("m", "changed"):
        again = nkcme.load(tmp_path / saved)
        np.testing.assert_array_equal(again.predict_quantiles(x), compared.predict_quantiles(x))


def test_learned_atoms_are_learned_without_components():
    model = quick(head="components", atoms="learned").fit(*crossing(100))
    locations = np.asarray(model.model_.atoms.locations[0, :, 0])
    assert np.all(np.diff(locations) > 0)
    assert model.model_.components is not None


@pytest.mark.parametrize(
    "damage",
    [
        lambda c, a: (c, a | {"model.components.least_std": -a["model.components.least_std"]}),
        lambda c, a: (c, a | {"model.components.unit_std": 0 * a["model.components.unit_std"]}),
        lambda c, a: (c | {"components": {"count": 3, "activation": "silu"}}, a),
        lambda c, a: (c | {"components": {"count": 8, "activation": "no"}}, a),
        lambda c, a: (c | {"components": {"count": 8, "activation": []}}, a),
        lambda c, a: (c | {"components": 8}, a),
        lambda c, a: ({k: v for k, v in c.items() if k != "components"}, a),
    ],
)
def test_damaged_files_are_refused(damage, small_file, tmp_path):
    config, arrays = small_file
    learned, arrays = damage(config["learned"], arrays)
    write_model(tmp_path / "m", config | {"learned": learned}, arrays)
    with pytest.raises(ModelFileError):
        nkcme.load(tmp_path / "m")


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("components") / "m"
    quick(head="components").fit(*crossing(100)).save(path)
    return read_model(path)


def test_an_interrupted_comparison_resumes_to_the_same_bits(tmp_path):
    class Pressed(chunks.Interrupts):
        requested = property(lambda self: True, lambda self, value: None)

    make = partial(quick, center="auto", epochs=30)
    x, y = crossing(300)
    whole = make().fit(x, y)
    make = partial(make, checkpoint=tmp_path / "c")
    stops = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "Interrupts", Pressed)
        while len(stops) < 100:
            try:
                resumed = make().fit(x, y)
                break
            except TrainingInterrupted as stop:
                stops.append(str(stop))
    assert sum(not re.search("location model", text) for text in stops) >= 2
    assert resumed.model_.components is not None
    for ours, theirs in zip(*(jax.tree.leaves(m.model_) for m in (resumed, whole)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
