"""Robust units and softened inputs: a few enormous values do no harm."""

import json

import numpy as np
import pytest

from nkcme.tables.encoding import TableEncoder
from nkcme.tables.number_encoding import SOFT_LIMIT
from nkcme.tables.standardisation import robust_units

NORMAL = np.random.default_rng(0).normal(3.0, 2.0, size=20_001)


def test_units_of_normal_values_are_their_mean_and_deviation():
    median, scale = robust_units(NORMAL, np.ones(len(NORMAL)))
    assert median == pytest.approx(3.0, abs=0.05)
    assert scale == pytest.approx(2.0, rel=0.03)


def test_a_row_of_weight_two_is_two_rows_to_the_last_bit():
    values, weight = NORMAL[:50], np.arange(50) % 3 + 1.0
    repeated = np.repeat(values, weight.astype(int))
    assert robust_units(values, weight) == robust_units(repeated, np.ones(len(repeated)))


def test_values_that_hardly_vary_have_no_robust_units():
    assert robust_units(np.append(np.zeros(99), 1.0), np.ones(100)) is None


def test_one_enormous_value_leaves_the_others_apart():
    """Standardised by its deviation, the column would have a handful of distinct values."""
    x = np.append(NORMAL[:999], 1e10)[:, None]
    plain, robust = (TableEncoder.fit(x, standardize=s).transform(x) for s in (True, "robust"))
    assert len(np.unique(plain)) < 20
    assert len(np.unique(robust)) == 1000
    assert robust[:-1].std() == pytest.approx(1.0, rel=0.1)
    assert SOFT_LIMIT - 1e-3 < robust[-1, 0] <= SOFT_LIMIT


def test_softened_values_keep_their_order_and_are_z_over_root_one_plus_z_squared():
    x = np.sort(NORMAL)[:, None]
    encoded = TableEncoder.fit(x, standardize="robust").transform(x)[:, 0]
    median, scale = robust_units(NORMAL, np.ones(len(NORMAL)))
    z = (x[:, 0] - median) / scale
    np.testing.assert_allclose(encoded, z / np.sqrt(1 + np.square(z / SOFT_LIMIT)), rtol=1e-5)
    assert np.all(np.diff(encoded) >= 0)


def test_a_description_in_json_encodes_alike():
    encoder = TableEncoder.fit(NORMAL[:, None], standardize="robust")
    again = TableEncoder.from_config(json.loads(json.dumps(encoder.to_config())))
    np.testing.assert_array_equal(
        again.transform(NORMAL[:, None]), encoder.transform(NORMAL[:, None])
    )
