"""Fits to tables on disk: the scores of the truth, the same files, the same bits after a stop."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nkcme
from nkcme import NKCME, NkcmeError
from nkcme.estimators.nkcme.stream_recipe import StreamRecipe
from nkcme.estimators.nkcme.stream_training import SampleSizes
from nkcme.runtime import load as load_runtime
from nkcme.training import chunks
from support.large_folder import N_ROWS, SMALL, make, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_folder(tmp_path_factory.mktemp("table"))


def new_model(**parameters) -> NKCME:
    return NKCME(random_state=0, recipe=SMALL, verbose=False, **parameters)


@pytest.fixture(scope="module")
def fitted(folder) -> NKCME:
    return new_model().fit(folder, target="y")


def test_the_scores_are_near_those_of_the_truth(fitted):
    frame, truth = make(4000, 1)
    dist = fitted.predict_dist(frame[["x", "k"]])
    assert dist.crps(frame.y).mean() < 1.05 * truth.crps(frame.y).mean()
    assert abs(dist.cdf(frame.y).mean() - 0.5) < 0.03
    assert fitted.n_members_ == SMALL.stream.n_members
    assert fitted.columns_["k"].levels == 3


def test_the_model_is_saved_as_any_other(fitted, tmp_path):
    X = make(50, 2)[0][["x", "k"]]
    fitted.save(tmp_path / "model")
    expected = fitted.predict_quantiles(X, [0.1, 0.5, 0.9])
    loaded = nkcme.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_quantiles(X, [0.1, 0.5, 0.9]), expected)
    by_runtime = load_runtime(tmp_path / "model").predict_quantiles(X, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(by_runtime, expected, rtol=1e-5, atol=1e-5)


def test_frames_give_the_bits_of_the_files(fitted, folder):
    """The rows are the same ones, in the same order; row groups are those of the temporary file."""
    frame = pl.scan_parquet(folder / "*.parquet")
    whole = frame.collect()
    one, other = (new_model().fit(s, target="y") for s in (frame, lambda: [whole[:70], whole[70:]]))
    X = make(50, 2)[0][["x", "k"]]
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert np.abs(one.predict(X) - fitted.predict(X)).max() < 0.5


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(fitted, folder, tmp_path, monkeypatch):
    saves = 0
    save = chunks.RunCheckpoint.save

    def save_and_stop(self, done):
        nonlocal saves
        save(self, done)
        saves += 1
        if saves in (2, 6):
            raise InterruptedError  # as if the process had been killed

    monkeypatch.setattr(chunks.RunCheckpoint, "save", save_and_stop)
    model = new_model(checkpoint=tmp_path / "state")
    for _ in range(2):
        with pytest.raises(InterruptedError):
            model.fit(folder, target="y")
    model.fit(folder, target="y")
    X = make(50, 2)[0][["x", "k"]]
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


def test_a_table_that_fits_into_memory_is_fitted_as_such(folder):
    quick = NKCME(random_state=0, verbose=False, **nkcme.presets.QUICK, epochs=1)
    whole = pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())])
    from_disk = nkcme.NKCME(**quick.get_params()).fit(folder, target="y")
    in_memory = quick.fit(whole[["x", "k"]], whole.y)
    X = make(50, 2)[0][["x", "k"]]
    np.testing.assert_array_equal(from_disk.predict(X), in_memory.predict(X))


def test_what_a_table_on_disk_cannot_have_is_refused(folder):
    for parameters in ({"epochs": 3}, {"center": "mean-scale"}, {"head": "signed"}):
        with pytest.raises(NkcmeError, match="is for tables in memory"):
            new_model(**parameters).fit(folder, target="y")
    with pytest.raises(NkcmeError, match="give target"):
        new_model().fit(folder)
    with pytest.raises(NkcmeError, match="sample_weight is for tables in memory"):
        new_model().fit(folder, target="y", sample_weight=np.ones(N_ROWS))
    with pytest.raises(NkcmeError, match="no column 'z' to be the target"):
        new_model().fit(folder, target="z")


def test_sample_sizes_keep_to_their_share_of_small_tables():
    large = SampleSizes.of(10**8, 2, StreamRecipe())
    assert large == (20_000, 20_000, 50_000, 300_000, 2)
    small = SampleSizes.of(8000, 2, StreamRecipe())
    assert small.total <= 4000
    assert min(small) > 0
