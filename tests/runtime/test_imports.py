"""The runtime loads a model and predicts without the libraries that fit it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = Path(__file__).parents[1] / "data" / "saved_models"
HEAVY = {"jax", "equinox", "optax", "sklearn", "scipy", "pandas", "narwhals", "polars", "plotly"}

PROGRAM = """
import json, sys
from nkcme.runtime import load
model = load(sys.argv[1])
rows = json.loads(sys.argv[2])
model.predict(rows)
model.predict_var(rows)
model.predict_quantiles(rows, [0.1, 0.9])
model.predict_interval(rows, 0.9)
model.sample(rows, 2, random_state=0)
model.predict_dist(rows).cdf(0.0)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("name", ["nkcme-auto", "mdn", "kernel", "deep-feature"])
def test_nothing_heavy_is_imported(name):
    header, *lines = (MODELS / "X.csv").read_text().splitlines()
    rows = [
        {k: _value(v) for k, v in zip(header.split(","), line.split(","), strict=True)}
        for line in lines[:3]
    ]
    command = [sys.executable, "-c", PROGRAM, str(MODELS / name), json.dumps(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(done.stdout))


def _value(text):
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text or None
