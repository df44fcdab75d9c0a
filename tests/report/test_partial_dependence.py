"""Partial dependence of a model that is known in closed form."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from nkcme import TableError
from nkcme.report.partial_dependence import QUANTILE_LEVELS, Features
from support.known_model import DEVIATION, SLOPE, KnownModel, sample


def mixed_frame(n=40):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "count": pd.array([None, *range(n - 1)], dtype="Int64"),
            "holes": [np.nan, *rng.normal(size=n - 1)],
            "flag": [True] * (n - 1) + [False],
            "text": ["b", "a", "a", *["c"] * (n - 3)],
            "kind": pd.Categorical(["x", None] * (n // 2)),
            "constant": 3.0,
            "empty": [None] * n,
        }
    )


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
def test_numeric_columns_that_vary_are_found_and_others_have_typical_values(convert):
    frame = mixed_frame()
    features = Features(convert(frame))
    assert [features.names[j] for j in features.varying] == ["number", "count", "holes"]
    typical = features.table(features.typical(2))
    assert list(typical.columns) == list(frame.columns)
    row = typical.iloc[0]
    assert row["number"] == pytest.approx(frame["number"].median())
    assert row["count"] == np.median(np.arange(39))
    assert row["holes"] == pytest.approx(frame["holes"].median())
    assert (row["flag"], row["text"], row["kind"], row["constant"]) == (True, "c", "x", 3.0)
    assert row["empty"] is None


def test_arrays_stay_arrays_and_their_columns_are_numbered():
    features = Features(np.arange(12).reshape(4, 3))  # integers must not round the values
    assert features.names == ["x0", "x1", "x2"]
    table = features.table(features.typical(2))
    assert table.dtype == np.float64
    np.testing.assert_array_equal(table, [[4.5, 5.5, 6.5]] * 2)
    mixed = Features(np.array([["a", 1.0], ["a", 2.0]], dtype=object))
    assert mixed.table(mixed.typical(1)).tolist() == [["a", 1.5]]


def test_the_prediction_along_a_feature_has_the_known_quantiles_and_density():
    X, y = sample(300)
    along = Features(X).partial_dependence(KnownModel(), 0, y=y)
    expected = SLOPE * along.values[:, None] + DEVIATION * norm.ppf(QUANTILE_LEVELS)
    np.testing.assert_allclose(along.quantiles, expected, atol=1e-4)
    # Averages over the steps of the grid.
    density = norm.pdf(along.grid, SLOPE * along.values[:, None], DEVIATION)
    np.testing.assert_allclose(along.density, density, atol=2e-3)
    assert (along.values[0], along.values[-1]) == pytest.approx(np.quantile(X[:, 0], [0.01, 0.99]))
    assert along.grid[0] < np.quantile(y, 0.005)
    assert along.shade.max(axis=1) == pytest.approx(1.0)


def test_the_shade_is_finite_where_the_density_underflows():
    along = Features(sample(20)[0]).partial_dependence(KnownModel(), 0, y=np.full(20, 1e9))
    assert np.isfinite(along.shade).all()


def test_features_are_ordered_by_their_influence():
    X, _ = sample(100)
    assert Features(X).by_influence(KnownModel()) == [0, 1]
    assert Features(np.array([["a"], ["b"]], dtype=object)).by_influence(KnownModel()) == []


def test_a_feature_is_found_by_name_or_position():
    features = Features(mixed_frame())
    assert features.position("holes") == features.position(2) == 2
    for wrong in ("text", "constant", "nowhere", 5, -1, 99):
        with pytest.raises(TableError, match="these are: 'number', 'count', 'holes'"):
            features.position(wrong)
