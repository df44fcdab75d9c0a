"""The load test counts answers, and finds those that are wrong."""

import json
from pathlib import Path

from benchmarks.speed.load_test import Case, load_test, served
from nkcme.runtime import load

MODEL = Path(__file__).parents[2] / "data" / "saved_models" / "nkcme-none"


def test_every_answer_is_compared_with_the_right_one():
    model = load(MODEL)
    cases = []
    for a in (-1.0, 0.0, 1.0):
        row = {"a": a, "b": "x", "c": 0.5, "flag": True}
        question = {"rows": [row], "quantiles": [], "intervals": []}
        answer = {"predictions": [{"mean": float(model.predict(row)[0])}]}
        cases.append(Case(json.dumps(question).encode(), answer))
    other = {"predictions": [{"mean": cases[2].answer["predictions"][0]["mean"] + 1.0}]}
    with served(MODEL, workers=1) as port:
        options = {"n_clients": 4, "limit": 60.0}
        right = load_test(port, cases, n_requests=50, per_second=None, **options)
        mixed = load_test(
            port, [*cases[:2], Case(cases[2].body, other)], n_requests=30, per_second=300, **options
        )
    assert (right["answered"], right["lost"], right["wrong"]) == (50, 0, 0)
    assert (mixed["answered"], mixed["lost"], mixed["wrong"]) == (30, 0, 10)
    assert right["latency_ms"]["median"] <= right["latency_ms"]["p99"]
