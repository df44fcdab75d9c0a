"""SplineFlow on a Gaussian with known entropy, stopped and resumed, and without flowjax."""

from __future__ import annotations

import builtins
import os
import signal

import jax
import numpy as np
import pytest
from scipy import stats

from nkcme import NkcmeError, SplineFlow, TrainingInterrupted

PARAMETERS = {
    "n_layers": 2,
    "n_bins": 4,
    "hidden": (16,),
    "learning_rate": 1e-2,
    "epochs": 40,
    "validation_fraction": 0.0,
    "random_state": 0,
}


def linear_gaussian(n, seed):
    """x, y and the distribution of y: standard deviation 1, a mean of standard deviation 1.4."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    truth = stats.norm(3.0 + x[:, 0] - x[:, 1], 1.0)
    return x, truth.rvs(random_state=rng), truth


@pytest.fixture(scope="module")
def fitted():
    return SplineFlow(**PARAMETERS).fit(*linear_gaussian(2000, 0)[:2])


def test_it_learns_a_gaussian_up_to_its_entropy(fitted):
    x, y, truth = linear_gaussian(1000, 1)
    dist = fitted.predict_dist(x)
    excess = np.mean(truth.logpdf(y) - dist.logpdf(y))
    assert -0.01 < excess < 0.08  # nats; without x it is log(3) / 2 = 0.55
    width = np.diff(dist.interval(0.8), axis=1).mean()
    np.testing.assert_allclose(width, np.diff(stats.norm.interval(0.8))[0], rtol=0.1)
    assert np.sqrt(np.mean(np.square(dist.median() - truth.mean()))) < 0.25


def test_an_interrupted_fit_resumes_to_the_same_bits(fitted, tmp_path, monkeypatch):
    x, y, _ = linear_gaussian(2000, 0)
    resumed = SplineFlow(**PARAMETERS, checkpoint=tmp_path / "state")
    from nkcme.model_files import CheckpointFile

    save = CheckpointFile.save

    def save_and_press_ctrl_c(self, *arguments):
        save(self, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointFile, "save", save_and_press_ctrl_c)
        with pytest.raises(TrainingInterrupted):
            resumed.fit(x, y)
    assert 0 < resumed.n_steps_ < fitted.n_steps_
    resumed.fit(x, y)
    assert resumed.n_steps_ == fitted.n_steps_
    for ours, theirs in zip(
        jax.tree.leaves(resumed.model_), jax.tree.leaves(fitted.model_), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_every_parameter_is_trained(fitted):
    start = fitted._task(fitted._spec(2, 1, 1, 1)).init
    for before, after in zip(
        jax.tree.leaves(jax.jit(start)(jax.random.key(0), ())),
        jax.tree.leaves(fitted.model_),
        strict=True,
    ):
        assert before.dtype == after.dtype == np.float32
        assert not np.array_equal(before, after)


def test_without_flowjax_the_error_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_flowjax(name, *arguments, **options):
        if name.startswith("flowjax"):
            raise ModuleNotFoundError("No module named 'flowjax'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", no_flowjax)
    with pytest.raises(NkcmeError, match=r"pip install 'nkcme\[flows\]'") as caught:
        SplineFlow(hidden=(7,), epochs=1).fit(*linear_gaussian(20, 2)[:2])
    assert "\n" not in str(caught.value)
