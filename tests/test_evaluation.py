"""Evaluation of a model with predictions in closed form."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from nkcme import NKCME, NkcmeError, TableError, metrics, presets
from nkcme.distributions import blocks
from nkcme.evaluation import evaluate, evaluate_rows
from support.known_model import DEVIATION, SLOPE, KnownModel, sample


def test_a_normal_prediction_has_the_scores_of_its_closed_forms():
    X, y = sample(400)
    evaluation = evaluate_rows(KnownModel(), X, y)
    mean = SLOPE * X[:, 0]
    z = (y - mean) / DEVIATION
    np.testing.assert_allclose(evaluation.mean, mean)
    np.testing.assert_allclose(evaluation.median, mean, atol=1e-6)
    np.testing.assert_allclose(evaluation.pit, norm.cdf(z), atol=1e-6)
    np.testing.assert_allclose(
        evaluation.upper - evaluation.mean, DEVIATION * norm.ppf(0.95), rtol=1e-5
    )
    np.testing.assert_allclose(
        evaluation.log_density, norm.logpdf(z) - np.log(DEVIATION), rtol=1e-6
    )
    # Gneiting and Raftery (2007), equation 21.
    crps = DEVIATION * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(evaluation.crps, crps, atol=2e-3)
    scores = evaluation.scores()
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert scores["coverage"] == np.mean(np.abs(z) <= norm.ppf(0.95))
    assert scores["qice"] == pytest.approx(
        np.mean(np.abs(np.histogram(norm.cdf(z), 10, (0, 1))[0] / 400 - 0.1)), abs=1e-9
    )


def test_evaluate_returns_the_explained_scores_and_the_floor_of_qice():
    result = evaluate(KnownModel(), *sample(60))
    assert result["rows"] == 60
    assert result["qice_floor"] == metrics.qice_floor(60)
    assert set(result) - {"rows", "qice_floor"} <= set(metrics.EXPLANATIONS)


def test_the_scores_without_features_are_those_of_the_distribution_of_y():
    _, y = sample(150)
    bare = evaluate_rows(KnownModel(), *sample(150)).scores_without_features()
    everywhere = np.tile(y[:, None], (1, 150))  # all y as the draws of every row
    assert bare["crps"] == pytest.approx(metrics.crps_ensemble(y, everywhere).mean())
    assert bare["rmse"] == pytest.approx(metrics.rmse(y, np.full(150, y.mean())))
    assert bare["nll"] == pytest.approx(metrics.nll(norm(y.mean(), y.std()).logpdf(y)))


def test_a_constant_target_has_no_reference_density():
    evaluation = evaluate_rows(KnownModel(), np.ones((5, 1)), np.full(5, 2.0))
    bare = evaluation.scores_without_features()
    assert "nll" not in bare
    assert bare["crps"] == bare["rmse"] == 0


def test_rows_are_predicted_in_blocks_with_the_same_result_for_every_kind_of_table(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)
    X, y = sample(50)
    model = KnownModel()
    from_array = evaluate_rows(model, X, y)
    assert model.largest_block == 16
    assert len(from_array) == 50
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(50) % 3)
    for other in (frame, X.tolist(), np.asfortranarray(X)):
        np.testing.assert_array_equal(evaluate_rows(model, other, y).crps, from_array.crps)


def test_polars_frames_and_columns_of_y_are_accepted():
    X, y = sample(30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = NKCME(**presets.QUICK, epochs=1, hidden=(8,), n_atoms=10, random_state=0).fit(frame, y)
    expected = evaluate_rows(model, frame, y)
    from_polars = evaluate_rows(model, pl.from_pandas(frame), y[:, None])
    np.testing.assert_array_equal(from_polars.pit, expected.pit)


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        (np.zeros((3, 1)), np.zeros(2), "3 rows and y has 2"),
        (np.zeros((3, 1)), np.zeros((3, 2)), "one y per row, got 2"),
        (np.zeros(3), np.zeros(3), "X must be a table"),
        (np.zeros((0, 2)), np.zeros(0), "X must be a table"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), np.zeros(1), "unique column names"),
        (np.zeros((2, 1)), np.array([0, np.nan]), "missing"),
    ],
)
def test_tables_that_do_not_fit_are_refused(X, y, expected):
    with pytest.raises(TableError, match=expected) as caught:
        evaluate_rows(KnownModel(), X, y)
    assert "\n" not in str(caught.value)


def test_a_model_without_distributions_is_refused():
    with pytest.raises(NkcmeError, match="a list has no predict_dist"):
        evaluate_rows([], np.zeros((2, 1)), np.zeros(2))
