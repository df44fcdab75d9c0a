"""Several processes: the model of one, a killed one is named, and the run goes on to its bits, also
with another number of processes."""

import os
import shutil
import signal
import subprocess
import time

import jax
import numpy as np
import pytest

from nkcme import NKCME, Cluster, NkcmeError, ProcessLostError, TableError
from nkcme.estimators.nkcme import launching
from nkcme.model_files import read_checkpoint
from support.large_folder import SMALL, make, write_folder

X = make(50, 2)[0][["x", "k"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("table"))


def fit(folder, processes, **parameters):
    """One candidate only: every process compiles the programs of each."""
    model = NKCME(center="mean", random_state=0, recipe=SMALL, verbose=False, **parameters)
    return model.fit(folder, target="y", cluster=processes and Cluster(processes))


def test_two_processes_fit_the_model_of_one_also_after_one_was_killed(
    folder, tmp_path, monkeypatch
):
    # Processes compile into the cache of the tests.
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(jax.config.jax_compilation_cache_dir))
    checkpoint, start = tmp_path / "state", launching.start_worker
    running: list[subprocess.Popen[bytes]] = []

    def start_and_kill(file, number, **options):
        running.append(start(file, number, **options))
        return running[-1]

    def kill_soon(processes):
        while not checkpoint.exists():
            time.sleep(0.01)
        os.kill(processes[1].pid, signal.SIGKILL)
        return wait_for_all(processes)

    wait_for_all = launching.wait_for_all
    monkeypatch.setattr(launching, "start_worker", start_and_kill)
    with monkeypatch.context() as patch:
        patch.setattr(launching, "wait_for_all", kill_soon)
        with pytest.raises(ProcessLostError, match=r"process 1 of 2 ended by signal 9"):
            fit(folder, 2, checkpoint=checkpoint)
    assert all(process.poll() is not None for process in running)
    assert read_checkpoint(checkpoint)[0]["step"] > 0
    of_one = tmp_path / "of-one"
    shutil.copy(checkpoint, of_one)
    alone = fit(folder, None)
    for processes, state in ((2, checkpoint), (None, of_one)):
        resumed = fit(folder, processes, checkpoint=state)
        # Not the same bits: the residuals that embeddings learn from are products of matrices by
        # as many threads of linear algebra as a process has, and processes here have one or two.
        np.testing.assert_allclose(resumed.history_["loss"], alone.history_["loss"], rtol=1e-6)
        np.testing.assert_allclose(resumed.predict(X), alone.predict(X), rtol=1e-4, atol=1e-4)


def test_an_error_in_a_process_is_raised_as_it_is(tmp_path):
    place = tmp_path
    (place / "failure-1.json").write_text('{"kind": "TableError", "message": "a is no file"}')
    with pytest.raises(TableError, match="a is no file"):
        launching.raise_failure(place, [(0, 1), (1, 1)])
    launching.raise_failure(place, [(0, 0), (1, 0)])


def test_clusters_that_make_no_sense_are_refused():
    for cluster in (
        Cluster(0),
        Cluster(2, coordinator="here"),
        Cluster(2, coordinator="here", process_id=0),
        Cluster(2, coordinator="here:1", process_id=2),
        Cluster(2, coordinator="here:1", process_id=0, ray="auto"),
    ):
        with pytest.raises(NkcmeError):
            cluster.check()
    with pytest.raises(NkcmeError, match="cluster is for tables on disk"):
        NKCME().fit(X[["x"]], X.x, cluster=Cluster(2))


@pytest.mark.parametrize("processes", [3, 16])
def test_processes_that_would_have_different_numbers_of_lanes_are_refused(folder, processes):
    with pytest.raises(NkcmeError, match=f"8 lanes .* over {processes} processes; give one of 1"):
        NKCME().fit(folder, target="y", cluster=Cluster(processes))


def test_cores_are_shared_out():
    cores = sorted(os.sched_getaffinity(0))
    assert sorted(c for share in launching.shares_of_cores(2) for c in share)[-1] == cores[-1]
    assert len(launching.shares_of_cores(len(cores) + 1)) == len(cores) + 1
