"""A toy problem is added in one file, from the template."""

from pathlib import Path

import numpy as np
import pytest

from nkcme.datasets import TOYS, load_toy, was1_floor
from support.toy_laws import every_law, points_of

TEMPLATE = Path(__file__).parents[2] / "docs" / "templates" / "dataset.py"

#: What is filled in: a law of scipy beside a Gaussian, with weights that vary with x.
FILLED_IN = {
    'NAME = "my-problem"': 'NAME = "waiting-times"',
    "X_RANGE = (0.0, 1.0)": "X_RANGE = (1.0, 3.0)",
    "weights = (np.full_like(x, 0.5), np.full_like(x, 0.5))": "weights = (x / 4, 1 - x / 4)",
    "scale = np.full_like(x, 0.1)": "scale = x / 10",
    "components = (Gaussian(x, scale), Gaussian(-x, scale))": (
        "components = (logistic(loc=x, scale=scale), Gaussian(-x, scale))"
    ),
    "import numpy as np\n": "import numpy as np\nfrom scipy.stats import logistic\n",
}


def added(text):
    """The problem that the code of a filled-in template adds."""
    before = set(TOYS)
    exec(compile(text, "dataset.py", "exec"), {"__name__": "dataset"})
    (name,) = set(TOYS) - before
    return name


@pytest.fixture(scope="module", params=["as it is", "filled in"])
def toy(request):
    text = TEMPLATE.read_text(encoding="utf-8")
    if request.param == "filled in":
        for blank, answer in FILLED_IN.items():
            assert text.count(blank) == 1, blank
            text = text.replace(blank, answer)
    name = added(text)
    yield load_toy(name)
    del TOYS[name]


@every_law
def test_the_problem_satisfies_every_law(toy, law):
    law(toy, points_of(toy))


def test_the_problem_has_a_floor(toy):
    assert 0 < was1_floor(toy, seeds=[0]) < 1
    assert np.isfinite(toy.ppf(toy.evaluation_points(), [0.01, 0.99])).all()


def test_every_blank_of_the_template_is_marked():
    """One mark for the docstring of the module, and one for each blank below it."""
    assert TEMPLATE.read_text(encoding="utf-8").count("TODO") == 6
