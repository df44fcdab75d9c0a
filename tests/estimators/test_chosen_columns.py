"""The parameter ``columns``, the attribute ``columns_``, and groups and times of `fit`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from nkcme import KernelCME, load, runtime
from nkcme.estimators.training_data import encode_training
from support.refusals import refusal
from support.tiny_estimators import tiny

N = 60
RNG = np.random.default_rng(0)
Y = RNG.normal(size=N)
X = pd.DataFrame(
    {
        "key": [f"k{i}" for i in range(N)],
        "sold": pd.date_range("2024-01-01", periods=N, freq="11D").strftime("%d.%m.%Y"),
        "size": [f"{1000 + 3 * i:,} m²" for i in range(N)],
        "open": ["yes", "no", "-"] * (N // 3),
    }
)
CHOSEN = {"sold": "date", "key": "drop"}


@pytest.fixture(scope="module")
def fitted():
    return KernelCME(columns=CHOSEN).fit(X, Y)


def test_chosen_types_are_used_cloned_and_saved(fitted, tmp_path):
    assert [column.kind for column in fitted.columns_] == ["unused", "date", "number", "boolean"]
    assert clone(fitted).columns == CHOSEN
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.columns == CHOSEN
    assert [column.becomes for column in loaded.columns_][2:] == [
        "number (from text)",
        "0 or 1, missing marked",
    ]
    np.testing.assert_allclose(loaded.predict(X), fitted.predict(X), rtol=1e-9, atol=1e-12)


def test_the_runtime_reads_every_kind_alike(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    light = runtime.load(tmp_path / "m")
    expected = fitted.predict(X)
    np.testing.assert_allclose(light.predict(X), expected, rtol=1e-6)
    records = X.drop(columns="key").to_dict("records")
    np.testing.assert_allclose(light.predict(records), expected, rtol=1e-6)
    as_typed = [row | {"sold": pd.Timestamp(2024, 1, 1), "size": 1000.0} for row in records[:1]]
    np.testing.assert_allclose(light.predict(as_typed), expected[:1], rtol=1e-6)


def test_positions_choose_columns_of_arrays(tmp_path):
    codes = np.c_[np.arange(N) % 4, Y]
    model = KernelCME(columns={0: "category"}).fit(codes, Y)
    assert model.columns_[0].levels == 4
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").columns == {0: "category"}


def test_groups_are_those_of_the_encoded_rows_and_equal_rows_of_two_groups_stay_apart():
    x = np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    y, groups = x[:, 0], np.arange(N) % 10
    table = encode_training(
        tiny("NKCME"), x, y, None, None, None, standardize=True, random_state=0, groups=groups
    )
    data = table.data
    assert len(data.x) == 30
    assert data.x.shape[1] == 1
    assert np.bincount(data.groups.codes).tolist() == [3] * 10
    assert data.weight.tolist() == [2.0] * 30
    assert data.rows(np.arange(5)).groups.codes.tolist() == data.groups.codes[:5].tolist()
    assert len(data.with_copies(1000).groups.codes) == N


def test_the_default_takes_groups_of_any_size():
    model = tiny("NKCME").fit(X, Y, groups=np.sqrt(np.arange(N)).astype(int))
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": [1] * N}, "at least 2 different values"),
        ({"groups": [1, 2]}, f"one value for each of {N} rows"),
        ({"groups": range(N), "times": range(N)}, "not both"),
        ({"times": ["a", "b"] * (N // 2)}, "dates, times or numbers"),
        ({"times": [*range(N - 1), None]}, "1 missing values"),
    ],
)
def test_bad_groups_and_times_are_refused(given, words):
    given = {name: list(values) for name, values in given.items()}
    assert words in refusal(tiny("NKCME").fit, X, Y, **given)


def test_estimators_without_folds_refuse_groups():
    assert "KernelCME has no folds" in refusal(KernelCME().fit, X, Y, groups=range(N))
