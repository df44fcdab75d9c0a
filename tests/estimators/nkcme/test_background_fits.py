"""Jobs in threads: their results, errors and settings, and that nothing of them remains."""

import threading

import numpy as np
import pytest
import sklearn
from threadpoolctl import threadpool_info

from nkcme.estimators.nkcme.background_fits import BackgroundFits


def threads(user_api):
    """The numbers of threads of the libraries of one kind, for the calling thread."""
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == user_api]


def names():
    return [thread.name for thread in threading.enumerate() if "nkcme-fit" in thread.name]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_the_order_of_the_jobs(n_threads):
    fits = BackgroundFits(lambda job: job**2, range(20), n_threads)
    assert fits.results() == [job**2 for job in range(20)]


def test_jobs_run_while_the_caller_does_something_else():
    begun, may_end = threading.Event(), threading.Event()

    def work(job):
        begun.set()
        return may_end.wait(60)

    fits = BackgroundFits(work, [1], 1)
    assert begun.wait(60)  # before anything was asked for
    may_end.set()
    assert fits.results() == [True]


def test_an_error_ends_the_jobs_that_have_not_begun():
    begun, may_end = [], threading.Event()

    def work(job):
        begun.append(job)
        if job == 0:
            raise ZeroDivisionError
        assert may_end.wait(60)

    fits = BackgroundFits(work, range(100), 1)
    threading.Timer(0.2, may_end.set).start()
    with pytest.raises(ZeroDivisionError):
        fits.results()
    assert begun in ([0], [0, 1])


def test_no_thread_remains():
    BackgroundFits(lambda job: job, range(5), 2).results()
    fits = BackgroundFits(lambda job: job, range(5), 2)
    fits.abandon()
    for thread in threading.enumerate():
        if "nkcme-fit" in thread.name:
            thread.join(60)
    assert names() == []


def test_a_job_has_one_thread_of_each_library_and_the_callers_settings():
    before = threads("blas"), threads("openmp")

    def work(_):
        np.ones((2, 2)) @ np.ones((2, 2))
        return threads("blas"), threads("openmp"), sklearn.get_config()["assume_finite"]

    with sklearn.config_context(assume_finite=True):
        found = BackgroundFits(work, range(4), 2).results()
    for of_blas, of_openmp, assumed in found:
        assert set(of_blas) <= {1}
        assert set(of_openmp) <= {1}
        assert assumed
    assert (threads("blas"), threads("openmp")) == before
