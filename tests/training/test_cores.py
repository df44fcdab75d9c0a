"""How many cores a process may use, by each of the things that limit it."""

import os

import joblib
import pytest
from sklearn.utils.parallel import Parallel, delayed

from nkcme.training import cores
from nkcme.training.cores import available_cores


@pytest.fixture(autouse=True)
def sixteen_cores(monkeypatch, tmp_path):
    """A machine of sixteen cores without a limit."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(cores, "_OWN_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(cores, "_CONTROL_GROUPS", tmp_path / "groups")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_limit_all_cores_count():
    assert available_cores() == 16


def test_cores_that_taskset_leaves(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5})
    assert available_cores() == 2


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000", 16),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("50000 100000", 1),
        ("9900000 100000", 16),
        ("nonsense", 16),
        ("0 0", 16),
        ("", 16),
    ],
)
def test_the_quota_of_a_container(quota, expected, tmp_path):
    write(tmp_path / "cgroup", "0::/a/b\n")
    write(tmp_path / "groups" / "a" / "b" / "cpu.max", quota + "\n")
    assert available_cores() == expected


def test_the_least_quota_of_the_groups_around_counts(tmp_path):
    write(tmp_path / "cgroup", "0::/a/b\n")
    write(tmp_path / "groups" / "a" / "b" / "cpu.max", "800000 100000\n")
    write(tmp_path / "groups" / "a" / "cpu.max", "300000 100000\n")
    write(tmp_path / "groups" / "cpu.max", "max 100000\n")
    assert available_cores() == 3


@pytest.mark.parametrize(("quota", "expected"), [("400000", 4), ("-1", 16)])
def test_the_quota_of_the_first_version_of_control_groups(quota, expected, tmp_path):
    write(tmp_path / "cgroup", "3:cpuset:/\n2:cpu,cpuacct:/box\n0::/\n")
    write(tmp_path / "groups" / "cpu" / "box" / "cpu.cfs_quota_us", quota + "\n")
    write(tmp_path / "groups" / "cpu" / "box" / "cpu.cfs_period_us", "100000\n")
    assert available_cores() == expected


@pytest.mark.parametrize(
    ("value", "expected"), [("3", 3), ("4,2", 4), ("64", 16), ("0", 16), ("all", 16), ("", 16)]
)
def test_threads_of_openmp(value, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert available_cores() == expected


def test_the_context_of_joblib(monkeypatch):
    with joblib.parallel_config(n_jobs=3):
        assert available_cores() == 3
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        assert available_cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert available_cores() == 5


def test_a_worker_thread_of_joblib_has_one_core():
    counts = Parallel(2, backend="threading")(delayed(available_cores)() for _ in range(2))
    assert counts == [1, 1]


def test_a_worker_process_of_joblib_has_its_share(monkeypatch):
    """joblib gives each its share of the cores in ``OMP_NUM_THREADS``."""
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    counts = Parallel(2, backend="threading")(delayed(available_cores)() for _ in range(2))
    assert counts == [8, 8]
