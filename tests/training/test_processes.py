"""What a process that joins others changes of its threads."""

import os
import threading

import jax
import pytest

from nkcme.errors import TrainingError
from nkcme.training.processes import join, threads_that_do_not_preempt


def policies_can_be_set():
    if not hasattr(os, "SCHED_BATCH") or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(
    not policies_can_be_set(), reason="this system does not let a process change its policy"
)


def test_threads_of_messages_do_not_interrupt_those_that_compute(monkeypatch):
    found = []

    def thread_started(*_, **__):
        # A thread begins with the policy of the one that starts it.
        thread = threading.Thread(target=lambda: found.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()

    def no_devices():
        thread_started()
        raise RuntimeError("no devices")

    monkeypatch.setattr(jax.distributed, "initialize", thread_started)
    monkeypatch.setattr(jax, "devices", no_devices)
    with pytest.raises(TrainingError, match="no devices"):
        join("127.0.0.1:1", 2, 0)
    assert found == [os.SCHED_BATCH, os.SCHED_BATCH]
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_where_a_policy_cannot_be_set_it_stays(monkeypatch):
    def forbidden(*_):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", forbidden)
    with threads_that_do_not_preempt():
        assert os.sched_getscheduler(0) == os.SCHED_OTHER
