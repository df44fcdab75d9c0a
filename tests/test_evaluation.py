import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from nkcme import NKCME, NkcmeError, TableError, evaluation, metrics, presets
from nkcme.evaluation import ask_rows, evaluate
from support.known_model import DEVIATION, SLOPE, KnownModel, sample


def test_a_normal_prediction_has_the_scores_of_its_closed_forms():
    X, y = sample(400)
    asked = ask_rows(KnownModel(), X, y)
    mean = SLOPE * X[:, 0]
    z = (y - mean) / DEVIATION
    np.testing.assert_allclose(asked.mean, mean)
    np.testing.assert_allclose(asked.median, mean, atol=1e-6)
    np.testing.assert_allclose(asked.pit, norm.cdf(z), atol=1e-6)
    np.testing.assert_allclose(asked.upper - asked.mean, DEVIATION * norm.ppf(0.95), rtol=1e-5)
    np.testing.assert_allclose(asked.log_density, norm.logpdf(z) - np.log(DEVIATION), rtol=1e-6)
    # Gneiting and Raftery (2007), equation 21.
    crps = DEVIATION * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(asked.crps, crps, atol=2e-3)
    scores = asked.scores()
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert scores["coverage"] == np.mean(np.abs(z) <= norm.ppf(0.95))
    assert scores["qice"] == pytest.approx(
        np.mean(np.abs(np.histogram(norm.cdf(z), 10, (0, 1))[0] / 400 - 0.1)), abs=1e-9
    )


def test_evaluate_gives_the_scores_that_are_explained_and_the_floor():
    result = evaluate(KnownModel(), *sample(60))
    assert result["rows"] == 60
    assert result["qice_floor"] == metrics.qice_floor(60)
    assert set(result) - {"rows", "qice_floor"} <= set(metrics.EXPLANATIONS)


def test_the_yardstick_is_what_the_metrics_give_for_the_rows_themselves():
    _, y = sample(150)
    bare = ask_rows(KnownModel(), *sample(150)).scores_without_features()
    everywhere = np.tile(y[:, None], (1, 150))  # all y as the draws of every row
    assert bare["crps"] == pytest.approx(metrics.crps_ensemble(y, everywhere).mean())
    assert bare["rmse"] == pytest.approx(metrics.rmse(y, np.full(150, y.mean())))
    assert bare["nll"] == pytest.approx(metrics.nll(norm(y.mean(), y.std()).logpdf(y)))


def test_a_target_that_never_varies_has_no_density_to_compare_with():
    asked = ask_rows(KnownModel(), np.ones((5, 1)), np.full(5, 2.0))
    bare = asked.scores_without_features()
    assert "nll" not in bare
    assert bare["crps"] == bare["rmse"] == 0


def test_rows_are_asked_in_blocks_and_every_kind_of_table_gives_the_same(monkeypatch):
    monkeypatch.setattr(evaluation, "BLOCK_ROWS", 16)
    X, y = sample(50)
    model = KnownModel()
    from_array = ask_rows(model, X, y)
    assert model.largest_block == 16
    assert len(from_array) == 50
    frame = pd.DataFrame(X, columns=["a", "b"], index=np.arange(50) % 3)
    for other in (frame, X.tolist(), np.asfortranarray(X)):
        np.testing.assert_array_equal(ask_rows(model, other, y).crps, from_array.crps)


def test_polars_frames_and_columns_of_y_are_taken_as_they_are():
    X, y = sample(30)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = NKCME(**presets.QUICK, epochs=1, hidden=(8,), n_atoms=10, random_state=0).fit(frame, y)
    expected = ask_rows(model, frame, y)
    from_polars = ask_rows(model, pl.from_pandas(frame), y[:, None])
    np.testing.assert_array_equal(from_polars.pit, expected.pit)


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        (np.zeros((3, 1)), np.zeros(2), "3 rows and y has 2"),
        (np.zeros((3, 1)), np.zeros((3, 2)), "one y a row, got 2"),
        (np.zeros(3), np.zeros(3), "X must be a table"),
        (np.zeros((0, 2)), np.zeros(0), "X must be a table"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), np.zeros(1), "unique column names"),
        (np.zeros((2, 1)), np.array([0, np.nan]), "missing"),
    ],
)
def test_tables_that_do_not_fit_are_refused(X, y, expected):
    with pytest.raises(TableError, match=expected) as caught:
        ask_rows(KnownModel(), X, y)
    assert "\n" not in str(caught.value)


def test_a_model_without_distributions_is_refused():
    with pytest.raises(NkcmeError, match="a list has no predict_dist"):
        ask_rows([], np.zeros((2, 1)), np.zeros(2))
