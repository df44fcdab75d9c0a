"""`/predict`, `/health` and `/docs`: answers are those of the model, and nothing gives a 5xx."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme import NKCME, __version__, runtime
from nkcme.errors import NkcmeError
from nkcme.serving.app import make_app
from nkcme.serving.questions import MAX_ROWS
from support.asgi_client import Client
from support.tiny_estimators import TINY_RECIPE

MODELS = Path(__file__).parents[1] / "data" / "saved_models"
MODEL = MODELS / "nkcme-auto"
ROWS = pd.read_csv(MODELS / "X.csv").astype(object).where(lambda x: x.notna(), None)
ROWS = ROWS.to_dict("records")


@pytest.fixture(scope="module")
def client():
    return Client(make_app(MODEL))


@pytest.fixture(scope="module")
def model():
    return runtime.load(MODEL)


def test_one_row_gets_a_mean_quantiles_and_an_interval(client, model):
    answer = client.post("/predict", json=ROWS[0])
    assert answer.status_code == 200
    found, dist = answer.json(), model.predict_dist(ROWS[0])
    assert found["mean"] == pytest.approx(dist.mean()[0])
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    assert list(found["quantiles"]) == list(map(str, levels))
    np.testing.assert_allclose(list(found["quantiles"].values()), dist.ppf(levels)[0])
    np.testing.assert_allclose(found["intervals"]["0.9"], dist.interval(0.9)[0])
    assert set(found) == {"mean", "quantiles", "intervals"}


def test_a_batch_gets_what_it_asks(client, model):
    dist = model.predict_dist(ROWS)
    place = float(np.median(dist.mean()))
    question = {
        "rows": ROWS,
        "quantiles": [0.3],
        "intervals": [0.5, 0.8],
        "probabilities": [{"above": place}, {"below": place}, {"between": [place - 1, place + 1]}],
        "samples": 4,
        "seed": 1,
    }
    answer = client.post("/predict", json=question).json()["predictions"]
    assert len(answer) == len(ROWS)
    np.testing.assert_allclose([row["mean"] for row in answer], dist.mean())
    np.testing.assert_allclose([row["quantiles"]["0.3"] for row in answer], dist.ppf(0.3))
    ends = [[row["intervals"]["0.5"], row["intervals"]["0.8"]] for row in answer]
    np.testing.assert_allclose(ends, dist.interval([0.5, 0.8]))
    above, below, between = np.array([row["probabilities"] for row in answer]).T
    np.testing.assert_allclose(above, dist.sf(place))
    np.testing.assert_allclose(above + below, 1.0)
    np.testing.assert_allclose(between, dist.cdf(place + 1) - dist.cdf(place - 1))
    np.testing.assert_allclose([row["samples"] for row in answer], dist.rvs(4, 1).T)
    bare = client.post("/predict", json={"rows": ROWS[:1], "quantiles": [], "intervals": []}).json()
    assert set(bare["predictions"][0]) == {"mean"}


def test_probabilities_at_point_masses(tmp_path):
    """Below and above leave the point itself out; between has its ends."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(80, 1))
    y = rng.integers(0, 3, 80).astype(float)
    model = NKCME(values=(0, 1, 2), recipe=TINY_RECIPE, n_atoms=10, epochs=1, random_state=0)
    model.fit(x, y).save(tmp_path)
    events = [{"below": 1}, {"between": [1, 1]}, {"above": 1}, {"between": [0, 2]}]
    client = Client(make_app(tmp_path))
    question = {"rows": [[0.5]], "probabilities": events}
    found = client.post("/predict", json=question).json()["predictions"][0]["probabilities"]
    masses = runtime.load(tmp_path).predict_dist([[0.5]]).pmf([[0, 1, 2]])[0]
    np.testing.assert_allclose(found, [*masses, 1.0], atol=1e-12)
    refused = client.post("/predict", json={"a": 1.0})
    assert refused.status_code == 422
    assert "columns without names" in refused.json()["error"]


def test_quantiles_that_are_infinite_are_null(client):
    found = client.post("/predict", json={"rows": ROWS[:1], "quantiles": [0.0, 1.0]})
    values = found.json()["predictions"][0]["quantiles"].values()
    assert all(value is None or np.isfinite(value) for value in values)


def test_health_and_docs(client):
    health = client.get("/health").json()
    assert health["status"] == "ok"
    assert health["model"] == "nkcme-auto"
    assert health["version"] == __version__
    assert [column["name"] for column in health["columns"]] == ["a", "b", "c", "flag"]
    page = client.get("/docs").text
    assert "POST /predict" in page
    assert not re.search(r"https?://", page), "the page must work without a network"
    example = json.loads(
        re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)[1].replace("&quot;", '"')
    )
    assert client.post("/predict", json=example).status_code == 200
    assert "/predict" in client.get("/openapi.json").json()["paths"]


def test_notes_are_those_of_the_command_line(client):
    answer = client.post("/predict", json=ROWS[0] | {"id": 7, "b": "mauve"}).json()
    assert answer["notes"] == [
        "ignored column 'id', which the model was not fitted on",
        "1 of 1 rows of 'b' hold categories unknown to the model, such as 'mauve': they count as "
        "none of the known ones",
    ]


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"", 400, "strict JSON"),
        (b"{", 400, "strict JSON"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b'{"a": NaN}', 400, "non-finite number NaN"),
        (b'{"a": 1e999}', 400, "non-finite"),
        (b'{"a": 1, "a": 2}', 400, "twice"),
        (b"[" * 100_000, 400, "levels"),
        (b'{"a": ' + b"1" * 400 + b"}", 400, "digits"),
        (b"null", 422, "must be an object"),
        (b'{"rows": []}', 422, "at least one row"),
        (b'{"rows": [1]}', 422, "an object of values by column"),
        (b'{"rows": [{}, []]}', 422, "an object of values by column"),
        (b'{"a": 1}', 422, "the table lacks columns 'b', 'c', 'flag'"),
        (b'{"rows": [[1, 2]]}', 422, "fitted on 4"),
        (json.dumps({"rows": [{}] * (MAX_ROWS + 1)}).encode(), 413, "at most 10000"),
        (b" " * (17 * 2**20), 413, "bytes"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_bodies_are_refused_in_one_line(body, status, why, client):
    answer = client.post("/predict", content=body)
    assert answer.status_code == status
    assert why in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"quantiles": [1.5]}, "between 0 and 1"),
        ({"quantiles": 0.5}, "list of numbers"),
        ({"quantiles": [True]}, "list of numbers"),
        ({"quantiles": [0.5] * 1001}, "at most 1000"),
        ({"intervals": [1]}, "between 0 and 1"),
        ({"probabilities": [{"above": "x"}]}, "above"),
        ({"probabilities": [{"between": [2, 1]}]}, "a <= b"),
        ({"probabilities": [{}]}, "above"),
        ({"samples": -1}, "whole number"),
        ({"samples": 2_000_000}, "whole number"),
        ({"seed": 1.5}, "whole number"),
        ({"mean": 1}, "true or false"),
        ({"quantile": [0.5]}, "unknown 'quantile'"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, why, client):
    answer = client.post("/predict", json={"rows": ROWS[:1]} | options)
    assert answer.status_code == 422
    assert why in answer.json()["error"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"a": "tall"}, "column 'a' of X held numbers in training but has 'tall' in row 0"),
        ({"a": [1]}, "list"),
        ({"c": {"x": 1}}, "dict"),
        ({"a": 10**290, "c": 10**299}, None),
    ],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused_as_in_a_table(change, why, client):
    answer = client.post("/predict", json=ROWS[0] | change)
    assert answer.status_code == (200 if why is None else 422)
    assert why is None or why in answer.json()["error"]


def test_an_answer_that_would_be_too_long_is_refused(client):
    answer = client.post("/predict", json={"rows": ROWS[:2], "samples": 600_000})
    assert answer.status_code == 413


def test_other_paths_and_methods(client):
    assert client.get("/predict").status_code == 405
    assert client.get("/nothing").status_code == 404


def test_a_model_of_two_outputs_is_refused():
    with pytest.raises(NkcmeError, match="2 outputs"):
        make_app(MODELS / "nkcme-two-outputs")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars, lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3)
)
rows = st.dictionaries(st.sampled_from(["a", "b", "c", "flag", "rows", "x"]), values, max_size=6)
questions = st.dictionaries(
    st.sampled_from(["quantiles", "intervals", "probabilities", "samples", "seed", "mean"]), values
)


@given(body=st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_bytes_get_an_answer(body, client):
    assert client.post("/predict", content=body).status_code < 500


@given(row=rows, options=questions, batch=st.booleans(), known=st.booleans())
@settings(max_examples=300, deadline=None)
def test_any_json_gets_an_answer(row, options, batch, known, client):
    row = ROWS[1] | row if known else row
    body = json.dumps({"rows": [row, ROWS[0]]} | options if batch else row)
    answer = client.post("/predict", content=body.encode(errors="surrogatepass"))
    assert answer.status_code < 500
    answer.json()


@given(rows=st.lists(st.lists(values, min_size=3, max_size=5), max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_lists_get_an_answer(rows, client):
    body = json.dumps({"rows": rows}).encode(errors="surrogatepass")
    answer = client.post("/predict", content=body)
    assert answer.status_code < 500
    answer.json()
