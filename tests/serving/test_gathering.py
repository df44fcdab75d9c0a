"""Questions that wait together are answered by one prediction, each with its own answer."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme import runtime
from nkcme.serving.answers import answer, answers
from nkcme.serving.gathering import Gathering
from nkcme.serving.questions import Question, RequestError

MODEL = Path(__file__).parents[1] / "data" / "saved_models" / "nkcme-auto"
ROWS = pd.read_csv(MODEL.parent / "X.csv").astype(object).where(lambda x: x.notna(), None)
ROWS = ROWS.to_dict("records")


@pytest.fixture
def model():
    return runtime.load(MODEL)


@pytest.fixture
def predicted(model, monkeypatch):
    """The numbers of rows of all predictions."""
    sizes, predict = [], model._distribution
    monkeypatch.setattr(
        model, "_distribution", lambda x: [sizes.append(len(x)), predict(x)][1], raising=True
    )
    return sizes


def ask(body):
    return Question.read(json.dumps(body).encode())


async def gathered(gathering, questions):
    return await asyncio.gather(*map(gathering.answer, questions), return_exceptions=True)


def assert_same(found, wanted):
    """Equal JSON, numbers to the rounding of networks in single precision."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            assert_same(found[key], value)
    elif isinstance(wanted, list) and wanted and not isinstance(wanted[0], float):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, float | list):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    else:
        assert found == wanted


def test_rows_that_wait_together_are_predicted_once(model, predicted):
    questions = [ask(row) for row in ROWS[:5]] + [ask({"rows": ROWS[5:8]})]
    found = asyncio.run(gathered(Gathering(model), questions))
    assert predicted == [8]
    for body, question in zip(found, questions, strict=True):
        assert_same(json.loads(body), json.loads(answer(model, question)))
    means = [json.loads(body)["mean"] for body in found[:5]]
    assert len(set(means)) == 5, "the rows must differ, or mixed answers would not show"


def test_each_gets_what_it_asks_and_its_own_refusal(model, predicted):
    row = ROWS[0]
    values = [list(row.values())]
    questions = [
        ask(row),
        ask({"rows": [row], "quantiles": [0.3], "intervals": []}),
        ask(row | {"a": "tall"}),
        ask({"rows": values, "probabilities": [{"above": 0.0}]}),
        ask({"a": 1.0}),
        ask(row | {"id": 7, "b": "mauve"}),
    ]
    found = asyncio.run(gathered(Gathering(model), questions))
    assert predicted == [4]
    assert "held numbers in training but has 'tall'" in str(found[2])
    assert "lacks columns" in str(found[4])
    assert all(isinstance(found[number], RequestError) for number in (2, 4))
    for number in (0, 1, 3, 5):
        assert_same(json.loads(found[number]), json.loads(answer(model, questions[number])))
    assert len(json.loads(found[5])["notes"]) == 2
    assert "notes" not in json.loads(found[0])


def test_a_request_alone_waits_for_no_other(model, predicted):
    async def one_after_the_other():
        gathering = Gathering(model)
        return [await gathering.answer(ask(row)) for row in ROWS[:3]]

    assert len(asyncio.run(one_after_the_other())) == 3
    assert predicted == [1, 1, 1]


def test_many_rows_are_predicted_in_several_parts(model, predicted):
    asyncio.run(gathered(Gathering(model), [ask({"rows": ROWS[:30]})] * 5))
    assert predicted == [90, 60]


def test_only_refused_questions_need_no_prediction(model, predicted):
    found = answers(model, [ask({"a": 1.0}), ask({"b": "x"})])
    assert all(isinstance(one, RequestError) for one in found)
    assert predicted == []


def test_a_client_that_has_gone_takes_no_answer_away(model):
    async def cancelled():
        gathering = Gathering(model)
        tasks = [asyncio.create_task(gathering.answer(ask(row))) for row in ROWS[:3]]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, gone, last = asyncio.run(cancelled())
    assert isinstance(gone, asyncio.CancelledError)
    for body, row in ((first, ROWS[0]), (last, ROWS[2])):
        assert_same(json.loads(body), json.loads(answer(model, ask(row))))


def test_a_fault_reaches_every_request(model, monkeypatch):
    def fail(x):
        raise ZeroDivisionError("a fault of the library")

    monkeypatch.setattr(model, "_distribution", fail)
    found = asyncio.run(gathered(Gathering(model), [ask(row) for row in ROWS[:3]]))
    assert [type(one) for one in found] == [ZeroDivisionError] * 3
