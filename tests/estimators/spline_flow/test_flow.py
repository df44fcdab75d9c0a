"""How the flow is built: initial weights, slopes at the ends, parameters that are fixed."""

from __future__ import annotations

import jax
import numpy as np

from nkcme.estimators.spline_flow.flow import Architecture, make_flow


def test_splines_have_slope_one_at_their_ends_so_that_the_density_is_continuous(one_output):
    slopes = one_output.dist.rows[2]
    assert slopes.shape == (6, 3, 9)  # rows, layers, 8 bins
    np.testing.assert_array_equal(slopes[..., [0, -1]], 1.0)
    assert slopes.min() < 0.5  # they bend between


def test_networks_start_with_the_initial_weights_of_equinox():
    start = jax.jit(make_flow(Architecture(3, 1, 5, 8, 3.0, (50, 50), "relu")).initial)(
        jax.random.key(1)
    )
    layers = start.bijection.bijections[1].masked_autoregressive_mlp.layers
    for layer, n_inputs in zip(layers, (4, 50, 50), strict=True):
        for array in (layer.weight.args[1], layer.bias):
            assert np.abs(array).max() <= 1 / np.sqrt(n_inputs)
        np.testing.assert_allclose(
            np.std(layer.weight.args[1]), 1 / np.sqrt(3 * n_inputs), rtol=0.1
        )


def test_redundant_parameters_of_the_linear_map_are_not_trained(two_outputs):
    """Only L has a shift and only U a diagonal."""
    import paramax

    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(two_outputs.model)
    ]
    assert not [path for path in paths if path.endswith("loc.tree")]
    whole = make_flow(two_outputs.architecture).bijection(two_outputs.model)
    upper = whole.bijection.bijections[0].bijections[1]
    assert isinstance(upper.loc, paramax.NonTrainable)
    np.testing.assert_array_equal(upper.loc.tree, 0.0)
    lower = paramax.unwrap(whole).bijection.bijections[0].bijections[2].triangular
    np.testing.assert_array_equal(np.diagonal(lower, axis1=1, axis2=2), 1.0)
