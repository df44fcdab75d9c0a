"""Answers of the explorer are those of the model; its page needs nothing from elsewhere."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme import KernelCME, runtime
from nkcme.serving.explored_table import MAX_ROWS, ExploredTable
from nkcme.serving.explorer_app import make_explorer, page
from nkcme.serving.exploring import Exploration
from nkcme.serving.questions import RequestError
from support.asgi_client import Client

MODELS = Path(__file__).parents[1] / "data" / "saved_models"


@pytest.fixture(scope="module")
def model():
    return runtime.load(MODELS / "nkcme-auto")


@pytest.fixture(scope="module")
def table(model):
    X = pd.read_csv(MODELS / "X.csv")
    columns = [X[name].astype(object).tolist() for name in X]
    return ExploredTable(model, list(X), columns, np.arange(len(X)))


@pytest.fixture(scope="module")
def exploration(model, table):
    return Exploration(model, table, "my model")


def asked(exploration, *rows, **options):
    return json.loads(exploration.answer(json.dumps({"rows": rows, **options}).encode()))


def test_every_column_has_a_control(table, model):
    by_name = {one["name"]: one for one in table.inputs}
    X = pd.read_csv(MODELS / "X.csv")
    assert by_name["a"]["kind"] == by_name["c"]["kind"] == "number"
    ends, step = (by_name["a"]["min"], by_name["a"]["max"]), by_name["a"]["step"]
    assert ends[0] <= X["a"].min() < ends[0] + step
    assert ends[1] - step < X["a"].max() <= ends[1]
    assert by_name["b"]["options"] == list(model.encoder_.columns[1].categories)
    assert by_name["flag"]["options"] == [False, True]


def test_numbers_in_text_get_sliders_and_yes_and_no_a_menu(tmp_path):
    """As in a file with decimal commas, whose columns are all text."""
    texts = {"size": ["1.200,5", "900,0", "-", "1.050,25"], "new": ["ja", "nein", "ja", "ja"]}
    table = {name: values * 10 for name, values in texts.items()}
    KernelCME().fit(pd.DataFrame(table), np.arange(40.0)).save(tmp_path / "model")
    model = runtime.load(tmp_path / "model")
    explored = ExploredTable(model, list(table), list(table.values()))
    size, new = explored.inputs
    assert (size["kind"], size["min"], size["max"]) == ("number", 900, 1201)
    assert (new["kind"], new["typical"]) == ("menu", True)
    assert explored.described_row(2)["values"] == [None, True]
    np.testing.assert_array_equal(explored.encoded, model._encode(table))


def test_dates_and_times_get_sliders_and_columns_without_use_no_control(tmp_path):
    """Dates of every type become ISO text, with which a control, a row and a question agree."""
    n = 60
    days = pd.date_range("2023-12-30", periods=n, freq="D")
    table = pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(n)],
            "day": days,
            "written": days.strftime("%d.%m.%Y"),
            "at": days + pd.Timedelta(hours=12, minutes=30),
            "clock": [f"{i % 24}:{i:02d}" for i in range(n)],
            "x": np.arange(n) % 7.0,
        }
    )
    table.loc[3, "day"] = pd.NaT
    KernelCME(columns={"written": "date"}).fit(table, np.arange(1.0 * n)).save(tmp_path / "m")
    model = runtime.load(tmp_path / "m")
    columns = [table[name].astype(object).tolist() for name in table]
    explored = ExploredTable(model, list(table), columns)
    day, written, at, clock, _ = explored.inputs
    kinds = [one["kind"] for one in explored.inputs]
    assert kinds == ["date"] * 3 + ["time", "number"]
    first = (pd.Timestamp("2023-12-30") - pd.Timestamp(0)).days
    assert (day["min"], day["max"]) == (written["min"], written["max"]) == (first, first + n - 1)
    assert (day["with_clock"], at["with_clock"]) == (False, True)
    assert (clock["min"], clock["max"]) == (0, 23 * 60 + 47)
    assert written["typical"] == "2024-01-29"
    row = explored.described_row(1)["values"]
    assert row == ["2023-12-31", "2023-12-31", "2023-12-31T12:30", "01:01", 1.0]
    assert explored.described_row(3)["values"][0] is None
    np.testing.assert_array_equal(explored.encoded, model._encode(table))
    exploration = Exploration(model, explored, "dates")
    json.dumps(exploration.start)
    late = [*row[:1], "2025-01-01", *row[2:]]
    (found,) = asked(exploration, late)["scenarios"]
    assert found["outside"] == ["written"]


def test_answers_are_those_of_the_model(exploration, table, model):
    rows = [table.described_row(i) for i in (0, 1)]
    answer = asked(
        exploration,
        *(row["values"] for row in rows),
        quantiles=[0.1, 0.9],
        probabilities=[{"above": 0.2}],
    )
    dist = model.predict_dist([table.row(0), table.row(1)])
    for i, found in enumerate(answer["scenarios"]):
        assert found["mean"] == pytest.approx(dist.mean()[i])
        np.testing.assert_allclose(list(found["quantiles"].values()), dist.ppf([0.1, 0.9])[i])
        assert found["probabilities"][0] == pytest.approx(dist.sf(0.2)[i])
        assert found["nearest"][0]["values"] == rows[i]["values"]
        assert found["nearest"][0]["actual"] == rows[i]["actual"] == i
        assert found["outside"] == []
        edges, heights = (np.array(answer["densities"][i][name]) for name in ("edges", "heights"))
        low, high = found["intervals"]["0.9"]
        within = (edges[:-1] >= low) & (edges[1:] <= high)
        mass = np.sum((np.diff(edges) * heights[:-1])[within])
        masses = dict(zip(*answer["densities"][i]["masses"], strict=True))
        mass += sum(p for value, p in masses.items() if low <= value <= high)
        assert mass == pytest.approx(0.9, abs=1e-3)


def test_rows_far_from_the_training_rows_are_far(model, table, tmp_path):
    """By the model's own measure where it has one, else by the rows of the table."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["u", "v"])
    KernelCME(random_state=0).fit(X, X["u"]).save(tmp_path / "kernel")
    other = runtime.load(tmp_path / "kernel")
    plain = ExploredTable(other, list(X), [X[name].tolist() for name in X])
    found = Exploration(other, plain, "kernel")
    assert not found.start["by_training"]
    near, far = asked(found, [0.0, 0.0], [9.0, 0.0])["scenarios"]
    assert near["distance"] < 1 < far["distance"]
    assert far["outside"] == ["u"]
    assert near["nearest"][0]["actual"] is None

    class Measured:
        _predictor = type("P", (), {"law": type("L", (), {"novelty": None})})
        target_name_, _encode, _distribution = None, other._encode, other._distribution
        encoder_ = other.encoder_

    class Novelty:
        def distance(self, x):
            return np.full(len(x), 7.0)

    Measured._predictor.law.novelty = Novelty()
    measured = Exploration(Measured(), plain, "m")
    assert measured.start["by_training"]
    assert asked(measured, [0.0, 0.0])["scenarios"][0]["distance"] == 7.0


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "strict JSON"),
        (b'{"rows": []}', "at least one row"),
        (b'{"rows": [{"a": 1}]}', "list of values"),
        (b'{"rows": [[1], [2], [3]]}', "at most 2 rows"),
        (b'{"rows": [[1, 2]]}', "4 values"),
        (b'{"rows": [["tall", "red", 1, true]]}', "held numbers in training but has 'tall'"),
        (b'{"rows": [[1, "red", 1, true]], "quantiles": [2]}', "between 0 and 1"),
    ],
)
def test_bad_questions_are_refused_in_one_line(body, why, exploration):
    with pytest.raises(RequestError, match=why) as caught:
        exploration.answer(body)
    assert "\n" not in str(caught.value)


def test_missing_values_and_rows_by_number(exploration, table):
    answer = asked(exploration, [None, None, None, None])
    assert np.isfinite(answer["scenarios"][0]["mean"])
    assert table.row_of_number(3) == table.described_row(2)
    assert table.row_of_number(0) is None
    assert table.row_of_number(10**6) is None


def test_long_tables_are_sampled(model):
    X = pd.read_csv(MODELS / "X.csv").iloc[np.arange(MAX_ROWS + 5) % 5]
    long = ExploredTable(model, list(X), [X[name].astype(object).tolist() for name in X])
    assert len(long) == MAX_ROWS
    assert long.n_rows_of_file == MAX_ROWS + 5
    assert sum(long.row_of_number(k + 1) is None for k in range(MAX_ROWS + 5)) == 5


def test_the_page_is_whole_and_safe(exploration):
    evil = "</script><img src=x onerror=alert(1)>"
    text = page(exploration.start | {"target": evil})
    assert evil not in text
    assert "\\u003c/script>" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", text)


def test_only_this_machine_is_answered(exploration, table):
    client = Client(make_explorer(MODELS / "nkcme-auto", exploration, table))
    assert client.get("/").status_code == 400  # without the name of this host
