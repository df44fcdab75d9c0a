"""Fits to tables in memory that are too large for cross-fitting."""

from dataclasses import replace

import numpy as np
import pytest

import nkcme
from nkcme import NKCME
from nkcme.estimators.nkcme import memory_fitting
from nkcme.estimators.nkcme.memory_stream import MemoryStream
from nkcme.estimators.training_data import Encoded
from nkcme.tables.target import TargetScaler
from support.large_folder import N_ROWS, SMALL, make


def new_model(**parameters) -> NKCME:
    return NKCME(**{"random_state": 0, "recipe": SMALL, "verbose": False} | parameters)


@pytest.fixture(scope="module")
def fitted() -> NKCME:
    frame, _ = make(N_ROWS, 0)
    return new_model().fit(frame[["x", "k"]], frame.y)


def test_the_scores_are_near_those_of_the_truth(fitted):
    frame, truth = make(4000, 1)
    dist = fitted.predict_dist(frame[["x", "k"]])
    assert dist.crps(frame.y).mean() < 1.05 * truth.crps(frame.y).mean()
    assert abs(dist.cdf(frame.y).mean() - 0.5) < 0.03
    assert fitted.n_members_ == SMALL.stream.n_members
    assert list(fitted.feature_names_in_) == ["x", "k"]


def test_the_model_is_saved_as_any_other(fitted, tmp_path):
    X = make(50, 2)[0][["x", "k"]]
    fitted.save(tmp_path / "model")
    loaded = nkcme.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    "what", ["few rows", "weights", "groups", "several outputs", "validation", "parameter"]
)
def test_other_fits_are_cross_fitted(what, monkeypatch):
    """As they are where tables are smaller; here one network stands for that."""
    monkeypatch.setattr(
        memory_fitting, "train_in_memory", lambda *_: pytest.fail("not cross-fitted")
    )
    monkeypatch.setattr(NKCME, "_train", lambda self, datasets: (_ for _ in ()).throw(Reached))
    frame, _ = make(N_ROWS, 0)
    X, y = frame[["x"]], frame.y.to_numpy()
    given, parameters = {}, {}
    if what == "few rows":
        X, y = X[1:], y[1:]
    elif what == "weights":
        given = {"sample_weight": np.ones(N_ROWS)}
    elif what == "groups":
        given = {"groups": np.arange(N_ROWS) // 10}
    elif what == "several outputs":
        y = np.stack([y, y], axis=1)
    elif what == "validation":
        given = {"X_val": X[:9], "y_val": y[:9]}
    else:
        parameters = {"center": "mean-scale"}
    with pytest.raises(Reached):
        new_model(**parameters).fit(X, y, **given)


class Reached(Exception):
    """Training was about to begin."""


def stream(n=100, seed=0):
    x = np.arange(n, dtype=np.float32)[:, None]
    data = Encoded(x, -x, np.ones(n), None, None, n, seed, TargetScaler(np.zeros(1), np.ones(1)))
    halves = np.arange(30), np.arange(30, 60)
    return MemoryStream(seed=seed, n_lanes=2, samples=(), data=data, halves=halves)


def test_every_pass_has_each_row_once_in_another_order():
    read = stream()._reader(5, 3, np.arange(2))  # blocks of thirty rows
    blocks = [read(number) for number in range(3)]
    for x, y in blocks:
        assert x.shape == y.shape == (5, 6, 1)
        np.testing.assert_array_equal(np.sort(x.ravel()), np.arange(30))
        np.testing.assert_array_equal(y, -x)
    assert not np.array_equal(blocks[0][0], blocks[1][0])
    np.testing.assert_array_equal(stream()._reader(5, 3, np.arange(2))(2)[0], blocks[2][0])


def test_a_block_may_have_rows_of_several_passes_and_the_other_half_other_rows():
    read = replace(stream(), half=1)._reader(7, 5, np.arange(2))  # of seventy rows
    x = np.concatenate([read(0)[0].ravel(), read(1)[0].ravel(), read(2)[0].ravel()])
    for first in range(0, 210, 30):
        np.testing.assert_array_equal(np.sort(x[first : first + 30]), np.arange(30, 60))


def test_sampled_rows_are_not_streamed(monkeypatch):
    seen = {}

    def keep(model, judged, calibration, stream, n_members):
        seen.update(judged=judged, calibration=calibration, stream=stream)

    monkeypatch.setattr(memory_fitting, "train_on_stream", keep)
    n = N_ROWS
    x = np.arange(n, dtype=np.float32)[:, None]
    data = Encoded(x, x, np.ones(n), None, None, n, 0, TargetScaler(np.zeros(1), np.ones(1)))
    memory_fitting.train_in_memory(new_model(), data)
    own = seen["stream"]
    parts = [seen["judged"].x, seen["calibration"].x, *(one.x for one in own.samples)]
    rows = np.concatenate([*(part[:, 0] for part in parts), *own.halves])
    np.testing.assert_array_equal(np.sort(rows), np.arange(n))
    assert seen["judged"].n_rows == n  # rules depend on the size of the whole table
