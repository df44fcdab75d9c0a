"""Layers, spectral normalisation and heads of networks."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.networks import ACTIVATIONS, HEADS, MLP, SpectralLinear

KEY = jax.random.key(0)


_compiled = functools.cache(eqx.filter_jit)


def make(hidden=(8, 6), *, n_in=3, n_out=5, key=KEY, **options):
    options = {"activation": "relu", "head": "signed"} | options
    return _compiled(MLP)(n_in, n_out, hidden, key=key, **options)


@pytest.mark.parametrize(
    ("activation", "hidden"), [("tanh", ()), ("gelu", (8, 6)), ("relu", (8, 6)), ("silu", (8, 6))]
)
def test_the_forward_pass_is_the_composition_of_layers(activation, hidden):
    network = make(hidden, activation=activation)
    x = jnp.array([0.3, -1.2, 2.0])
    value = x
    for layer in network.layers[:-1]:
        value = ACTIVATIONS[activation](layer.weight @ value + layer.bias)
    known = network.layers[-1].weight @ value + network.layers[-1].bias
    np.testing.assert_allclose(network(x), known, rtol=1e-6)
    assert [layer.out_features for layer in network.layers] == [*hidden, 5]


def test_linear_layers_are_initialised_uniformly_by_their_fan_in():
    network = make((400,), n_in=25, n_out=50)
    for layer, fan_in in zip(network.layers, (25, 400), strict=True):
        bound = 1 / np.sqrt(fan_in)
        for leaf in (layer.weight, layer.bias):
            assert np.max(np.abs(leaf)) <= bound
            assert np.max(np.abs(leaf)) > 0.9 * bound
        # The standard deviation of U(-b, b) is b / sqrt(3).
        assert np.std(layer.weight) == pytest.approx(bound / np.sqrt(3), rel=0.03)


def test_layers_and_keys_give_independent_weights():
    first, second = (make((4, 4), n_in=4, n_out=4) for _ in range(2))
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(a, b)
    weights = [np.asarray(layer.weight) for layer in first.layers]
    assert not np.any(weights[0] == weights[1])
    other = make((4, 4), n_in=4, n_out=4, key=jax.random.key(1))
    assert not np.any(np.asarray(other.layers[0].weight) == weights[0])


def test_the_bits_of_layers_are_those_of_equinox():
    sizes = (3, 8, 6, 5)
    for layer, n_in, n_out, key in zip(
        make((8, 6)).layers, sizes, sizes[1:], jax.random.split(KEY, 3), strict=False
    ):
        known = _compiled(eqx.nn.Linear)(n_in, n_out, key=key)
        np.testing.assert_array_equal(layer.weight, known.weight)
        np.testing.assert_array_equal(layer.bias, known.bias)


# --- spectral normalisation -------------------------------------------------------------------


def spectral(n_in, n_out):
    linear_key, power_key = jax.random.split(KEY)
    linear = _compiled(eqx.nn.Linear)(n_in, n_out, key=linear_key)
    return _compiled(SpectralLinear)(linear, key=power_key)


@pytest.mark.parametrize(("n_in", "n_out"), [(9, 4), (1, 5), (5, 1)])
def test_power_iterations_converge_to_the_largest_singular_value(n_in, n_out):
    layer = spectral(n_in, n_out)
    step = eqx.filter_jit(lambda layer: layer.iterate())
    for _ in range(100):
        layer = step(layer)
    weight = np.asarray(layer.linear.weight, np.float64)
    largest = np.linalg.svd(weight, compute_uv=False)[0]
    assert layer.u @ layer.linear.weight @ layer.v == pytest.approx(largest, rel=1e-5)
    assert np.linalg.norm(layer.u) == pytest.approx(1.0, rel=1e-6)
    # The layer, a linear map plus its bias, has spectral norm one.
    columns = jax.vmap(layer.normalised())(jnp.eye(n_in)) - layer.linear.bias[None]
    assert np.linalg.svd(columns, compute_uv=False)[0] == pytest.approx(1.0, rel=1e-5)


def test_the_estimate_is_close_before_training_and_follows_a_changing_weight():
    layer = spectral(20, 30)
    weight = np.asarray(layer.linear.weight)
    largest = np.linalg.svd(weight, compute_uv=False)[0]
    estimate = float(layer.u @ layer.linear.weight @ layer.v)
    assert 0.9 * largest < estimate <= largest * (1 + 1e-6)
    rng = np.random.default_rng(0)
    step = eqx.filter_jit(lambda layer: layer.iterate())
    for _ in range(200):  # one iteration per step is enough when the weight changes slowly
        weight = weight + 0.002 * rng.normal(size=weight.shape).astype(np.float32)
        layer = step(eqx.tree_at(lambda m: m.linear.weight, layer, jnp.asarray(weight)))
    largest = np.linalg.svd(weight, compute_uv=False)[0]
    assert float(layer.u @ layer.linear.weight @ layer.v) == pytest.approx(largest, rel=0.05)


def test_the_gradient_includes_the_singular_value_but_not_its_state():
    layer = spectral(3, 4)
    x = jnp.array([1.0, -2.0, 0.5])

    def output(layer):
        return jnp.sum(jnp.square(layer.normalised()(x)))

    gradient = jax.jit(jax.grad(output))(layer)
    np.testing.assert_array_equal(gradient.u, 0.0)
    np.testing.assert_array_equal(gradient.v, 0.0)

    def by_hand(weight):
        value = weight @ x / (layer.u @ weight @ layer.v) + layer.linear.bias
        return jnp.sum(jnp.square(value))

    np.testing.assert_allclose(
        gradient.linear.weight,
        jax.jit(jax.grad(by_hand))(layer.linear.weight),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.fixture(scope="module")
def normalised():
    """A network with normalised first and last layers."""
    return make((8, 6), spectral_norm=(0, -1))


def test_iterate_changes_the_state_only(normalised):
    after = eqx.filter_jit(lambda network: network.iterate())(normalised)
    changed = jax.tree.map(
        lambda a, b: bool(np.any(np.asarray(a) != np.asarray(b))), normalised, after
    )
    for layer in changed.layers:
        assert not layer.weight if isinstance(layer, eqx.nn.Linear) else layer.u and layer.v
    assert not any(jax.tree.leaves([changed.layers[0].linear, changed.layers[2].linear]))


def test_state_is_not_trainable(normalised):
    network = normalised
    spec = network.trainable()
    assert jax.tree.structure(spec) == jax.tree.structure(network)
    moved, kept = eqx.partition(network, spec)
    shapes = sorted(leaf.shape for leaf in jax.tree.leaves(kept))
    assert shapes == sorted([(3,), (8,), (6,), (5,)])  # v and u of the first and the last layer
    assert len(jax.tree.leaves(moved)) == 6
    assert all(jax.tree.leaves(make((8, 6)).trainable()))


@pytest.mark.parametrize(("layers", "expected"), [((-3,), [0]), ((2, -1), [2]), ((), [])])
def test_layers_can_be_counted_from_the_end(layers, expected):
    network = eqx.filter_eval_shape(make, (8, 6), spectral_norm=layers)
    found = [i for i, layer in enumerate(network.layers) if isinstance(layer, SpectralLinear)]
    assert found == expected


# --- heads and names --------------------------------------------------------------------------


def test_the_simplex_head_returns_positive_weights_that_sum_to_one():
    network = make(head="simplex")
    x = jnp.asarray(np.random.default_rng(3).normal(scale=3.0, size=(50, 3)), jnp.float32)
    weights = np.asarray(jax.jit(jax.vmap(network))(x))
    assert np.all(weights > 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
    logits = np.asarray(jax.jit(jax.vmap(make(head="signed")))(x))
    np.testing.assert_allclose(
        np.log(weights) - np.log(weights[:, :1]), logits - logits[:, :1], atol=1e-5
    )
    extreme = np.asarray(HEADS["simplex"](jnp.array([1e30, -1e30, 0.0])))
    np.testing.assert_array_equal(extreme, [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "sine"}, "activation must be one of gelu, relu, silu, tanh; got 'sine'"),
        ({"head": "sphere"}, "head must be one of signed, simplex; got 'sphere'"),
        ({"spectral_norm": (3,)}, "spectral_norm names layers from -3 to 2; got 3"),
        ({"spectral_norm": (0, -4)}, "spectral_norm names layers from -3 to 2; got -4"),
    ],
)
def test_bad_names_are_refused(options, message):
    with pytest.raises(NkcmeError, match=message):
        make(**options)


@pytest.mark.parametrize("spectral_norm", [(), (0,)])
def test_padded_inputs_have_no_weight_and_can_be_left_out(spectral_norm):
    padded = make(n_in=16, fan_in=jnp.asarray(3.0), spectral_norm=spectral_norm)
    narrow = padded.with_inputs(3)
    first = narrow.layers[0].linear if spectral_norm else narrow.layers[0]
    assert first.weight.shape == (8, 3)
    assert first.in_features == 3
    assert 0.5 < np.abs(first.weight).max() * np.sqrt(3) <= 1.0  # the limit of three inputs
    x = jnp.array([0.3, -1.2, 2.0])
    np.testing.assert_allclose(padded(jnp.pad(x, (0, 13), constant_values=9.0)), narrow(x), 1e-5)
    np.testing.assert_allclose(narrow.with_inputs(16)(jnp.pad(x, (0, 13))), narrow(x), 1e-5)
    if spectral_norm:
        again, wide = narrow.iterate().layers[0], padded.iterate().layers[0]
        np.testing.assert_allclose(again.v, wide.v[:3], atol=1e-6)
        np.testing.assert_allclose(again.u, wide.u, atol=1e-6)


def test_stacked_networks_change_their_number_of_inputs_together():
    keys = jax.random.split(KEY, 4)
    init = lambda key: MLP(5, 2, (8,), activation="relu", head="signed", key=key)  # noqa: E731
    networks = jax.vmap(init)(keys).with_inputs(9)
    assert networks.layers[0].weight.shape == (4, 8, 9)
    np.testing.assert_array_equal(networks.layers[0].weight[:, :, 5:], 0.0)


def test_hashed_weights_are_uniform_and_belong_to_their_key():
    def layers(seed: int, fan_in: float) -> list[np.ndarray]:
        mlp = MLP(
            32,
            5,
            (64, 64),
            activation="relu",
            head="signed",
            key=jax.random.key(seed),
            fan_in=jnp.float32(fan_in),
        )
        return [np.asarray(layer.weight) for layer in mlp.layers]

    first, second, last = layers(0, 8.0)
    np.testing.assert_array_equal(first[:, 8:], 0.0)
    for weight, limit in ((first[:, :8], 8**-0.5), (second, 1 / 8), (last, 1 / 8)):
        scaled = np.sort(weight.ravel() / limit)
        even = (np.arange(scaled.size) + 0.5) / scaled.size * 2 - 1
        # Kolmogorov and Smirnov's distance of independent draws is below 1.63 / root n in 99 %.
        assert np.abs(scaled - even).max() / 2 < 1.63 / np.sqrt(scaled.size)
    for other in (layers(1, 8.0)[1], layers(2**20, 8.0)[1]):
        assert abs(np.corrcoef(second.ravel(), other.ravel())[0, 1]) < 0.06
    assert abs(np.corrcoef(second[:-1].ravel(), second[1:].ravel())[0, 1]) < 0.06
    np.testing.assert_array_equal(second, layers(0, 8.0)[1])
