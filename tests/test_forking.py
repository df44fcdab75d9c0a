"""A forked child of a process that used the library gets an error, where JAX would hang."""

import multiprocessing

import numpy as np
import pytest

from support.tiny_estimators import tiny


def predict(model, X, results):
    try:
        results.put(model.predict(X).shape)
    except Exception as error:
        results.put(f"{type(error).__name__}: {error}")


# Python and JAX warn of the fork; that is what this test is about.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_is_refused_in_one_line():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = tiny("MDN").fit(X, X[:, 0])
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=predict, args=(model, X, results))
    child.start()
    answer = results.get()
    child.join()
    assert answer.startswith("NkcmeError: this process was forked")
    assert "spawn" in answer
    assert "\n" not in answer
    assert model.predict(X).shape == (30,)  # the parent is not affected
