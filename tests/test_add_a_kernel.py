"""A kernel is added in one file: the template filled in, the contract, and a fit."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest

from nkcme import NKCME, load, presets
from nkcme.errors import ModelFileError
from nkcme.kernels import KERNELS
from support.kernel_contract import CHECKS

TEMPLATE = Path(__file__).parents[1] / "docs" / "templates" / "kernel.py"

#: The hyperbolic secant sech(pi u / 2) / 2, of docs/add-a-kernel.md.
BODIES = {
    "_log_density": """
        x = 0.5 * math.pi * jnp.abs(u)
        return -x - jnp.log1p(jnp.exp(-2.0 * x))""",
    "_log_self_convolution": """
        x = jnp.minimum(math.pi * jnp.abs(u), jnp.finfo(u.dtype).max)
        far = x > 1e-3
        safe = jnp.where(far, x, 1.0)
        ratio = jnp.where(far, safe / -jnp.expm1(-safe), 1.0 + x / 2 + x * x / 12)
        return jnp.log(ratio) - x / 2 - math.log(math.pi)""",
    "_cdf": """
        tail = 2.0 / math.pi * jnp.arctan(jnp.exp(-0.5 * math.pi * jnp.abs(u)))
        return jnp.where(u < 0, tail, 1.0 - tail)""",
    "_ppf": """
        tail = jnp.minimum(q, 1.0 - q)
        return jnp.sign(0.5 - q) * 2.0 / math.pi * jnp.log(jnp.tan(0.5 * math.pi * tail))""",
    "_characteristic": """
        a = jnp.abs(omega)
        return 2.0 * jnp.exp(-a) / (1.0 + jnp.exp(-2.0 * a))""",
}


def filled_in() -> str:
    """The template with everything that is left to do done."""
    text = TEMPLATE.read_text("utf-8")
    for method, body in BODIES.items():
        before, marker, after = text.partition(f"def {method}(")
        assert marker
        text = (
            before + marker + after.replace('\n        raise NotImplementedError("TODO")', body, 1)
        )
    for old, new in (
        ('name = "my-kernel"', 'name = "secant"'),
        ("unit_variance = math.inf", "unit_variance = 1.0"),
        ("class MyKernel", "class Secant"),
        ("from jax import Array", "import jax.numpy as jnp\nfrom jax import Array"),
    ):
        assert old in text
        text = text.replace(old, new)
    assert "NotImplementedError" not in text
    return text


@pytest.fixture(scope="module")
def secant(tmp_path_factory):
    """The name of the kernel of a filled-in template, while its module is imported."""
    path = tmp_path_factory.mktemp("kernel") / "secant.py"
    path.write_text(filled_in(), "utf-8")
    spec = importlib.util.spec_from_file_location("secant", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield "secant"
    del KERNELS["secant"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_filled_in_template_satisfies_the_contract(secant, check):
    with jax.enable_x64(True):
        check(secant)


def test_an_estimator_fits_predicts_and_is_saved_with_the_new_kernel(secant, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    y = x[:, 0] + 0.3 * rng.normal(size=60)
    options = presets.QUICK | {"hidden": (8,), "n_atoms": 10, "epochs": 2, "random_state": 0}
    model = NKCME(**options, kernel=secant).fit(x, y)
    dist = model.predict_dist(x[:3]).read("smoothed")
    grid = np.linspace(-30, 30, 6001)
    density = dist.pdf(grid, grid=True)
    np.testing.assert_allclose(np.trapezoid(density, grid), 1.0, rtol=1e-6)
    np.testing.assert_allclose(dist.cdf(dist.ppf([0.1, 0.9])), [[0.1, 0.9]] * 3, atol=1e-8)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(x), model.predict(x))


def test_a_model_with_a_kernel_that_is_not_imported_is_refused(secant, tmp_path, monkeypatch):
    options = presets.QUICK | {"hidden": (8,), "n_atoms": 10, "epochs": 1, "random_state": 0}
    NKCME(**options, kernel=secant).fit(np.eye(4), np.arange(4.0)).save(tmp_path / "model")
    monkeypatch.delitem(KERNELS, secant)
    with pytest.raises(ModelFileError, match="secant"):
        load(tmp_path / "model")
