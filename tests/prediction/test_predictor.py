"""`Predictor`: frames to frames, the same bits in any division into batches."""

import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nkcme
from nkcme.errors import NkcmeError, TableError
from nkcme.forward_passes import product
from support.prediction_folders import COLUMNS, MODEL, OPTIONS, rows

MODELS = MODEL.parent


@pytest.fixture(scope="module")
def predictor():
    return nkcme.Predictor(MODEL, **OPTIONS)


def test_the_columns_are_what_the_model_predicts(predictor):
    table = rows(60)
    X = table[["a", "b", "c", "flag"]]
    model = nkcme.load(MODEL)
    found = predictor(table)
    assert list(found) == COLUMNS == predictor.columns
    close = {"rtol": 1e-5, "atol": 1e-5 * model.scaler_.scale[0]}
    np.testing.assert_allclose(found["mean"], model.predict(X), **close)
    quantiles = model.predict_quantiles(X, OPTIONS["quantiles"])
    np.testing.assert_allclose(found[["q0.1", "q0.5", "q0.9"]], quantiles, **close)
    np.testing.assert_allclose(found[["lower_0.8", "upper_0.8"]], found[["q0.1", "q0.9"]])


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_a_frame_gives_a_frame_of_its_kind(convert, predictor):
    table = rows(60)
    found = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])(convert(table))
    assert isinstance(found, type(convert(table)))
    wanted = predictor(table)
    np.testing.assert_array_equal(found["key"].to_numpy(), table["key"])
    for name in COLUMNS:
        np.testing.assert_array_equal(found[name].to_numpy(), wanted[name])


def test_a_dict_of_arrays_gives_one(predictor):
    table = rows(60)
    found = predictor({name: table[name].to_numpy() for name in table})
    assert list(found) == COLUMNS
    np.testing.assert_array_equal(found["q0.5"], predictor(table)["q0.5"])


def test_a_pandas_frame_keeps_its_index(predictor):
    table = rows(60).set_index(pd.Index(np.arange(60) * 3, name="n"))
    found = nkcme.Predictor(MODEL, keep=["key"])(table.iloc[::-1])
    assert found.index.equals(table.index[::-1])
    assert list(found) == ["key", "mean"]
    np.testing.assert_array_equal(found["key"], table["key"][::-1])


def test_a_frame_without_rows_gives_one(predictor):
    found = predictor(rows(10).iloc[:0])
    assert list(found) == COLUMNS
    assert (len(found), set(found.dtypes)) == (0, {np.dtype(float)})


@pytest.mark.parametrize("name", ["nkcme-auto", "mdn", "kernel"])
def test_the_bits_of_a_row_do_not_depend_on_the_rows_beside_it(name):
    predictor = nkcme.Predictor(MODELS / name, **OPTIONS)
    table = rows(1000)
    whole = predictor(table)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(table))
    ends = np.sort(rng.choice(len(table), 12, replace=False))
    batches = [predictor(table.iloc[own]) for own in np.split(mixed, ends) if len(own)]
    pd.testing.assert_frame_equal(pd.concat(batches).sort_index(), whole, check_exact=True)


@pytest.mark.parametrize(("n_in", "n_out"), [(10, 64), (40, 128), (128, 100)])
def test_products_have_the_same_bits_at_every_place_of_a_block(n_in, n_out):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(384, n_in)).astype(np.float32)
    weight = rng.normal(size=(2, n_in, n_out)).astype(np.float32)
    mixed = rng.permutation(len(x))
    whole = product(x, weight)
    np.testing.assert_allclose(whole, x @ weight, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(product(x[mixed], weight), whole[:, mixed])
    np.testing.assert_array_equal(product(x[mixed[:8]], weight[0]), whole[0, mixed[:8]])


def test_only_the_path_and_the_options_travel(predictor, monkeypatch, tmp_path):
    before = predictor(rows(20))
    monkeypatch.chdir(tmp_path)  # a worker has another working directory
    sent = bytes(ForkingPickler.dumps(predictor))
    assert len(sent) < 1000
    arrived = ForkingPickler.loads(sent)
    pd.testing.assert_frame_equal(arrived(rows(20)), before, check_exact=True)


def test_a_process_reads_the_model_once(predictor, monkeypatch):
    predictor(rows(5))
    monkeypatch.setattr("nkcme.prediction.models.read_one_output", None)
    nkcme.Predictor(MODEL)(rows(5))


def test_neither_jax_nor_scikit_learn_is_imported():
    program = """
import sys
import nkcme
nkcme.Predictor(sys.argv[1], quantiles=(0.5,))({"a": [1.0], "b": ["x"], "c": [0.0], "flag": [True]})
assert not {"jax", "equinox", "sklearn", "pandas"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program, str(MODEL)], check=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"quantiles": (0.5, 1.5)}, "between 0 and 1; got 0.5, 1.5"),
        ({"intervals": (90,)}, "between 0 and 1; got 90"),
        ({"keep": ("mean",)}, "'mean'"),
    ],
)
def test_bad_options_are_refused_at_once(options, words):
    with pytest.raises(NkcmeError, match=words):
        nkcme.Predictor("no-model", **options)


def test_bad_frames_are_refused(predictor):
    with pytest.raises(TableError, match="lacks column 'a'"):
        predictor(rows(5).drop(columns="a"))
    with pytest.raises(TableError, match="lacks column 'id', which must be kept"):
        nkcme.Predictor(MODEL, keep=["id"])(rows(5))
    with pytest.raises(NkcmeError, match="2 outputs"):
        nkcme.Predictor(MODELS / "nkcme-two-outputs")(rows(5))


def test_dask_maps_partitions(predictor):
    table = rows(300)
    frame = dd.from_pandas(table, npartitions=3)
    meta = dict.fromkeys(predictor.columns, "f8")
    found = frame.map_partitions(predictor, meta=meta).compute(scheduler="threads")
    pd.testing.assert_frame_equal(found, predictor(table), check_exact=True)
