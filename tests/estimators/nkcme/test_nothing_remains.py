"""After a fit, and after the process was killed: no processes, files or warnings remain."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import wait_until

PROGRAM = r"""
import os, sys
from pathlib import Path
from sklearn.ensemble import HistGradientBoostingRegressor
from nkcme.estimators.nkcme import location_regressors
from support.nkcme_models import line, quick
location_regressors.available_cores = lambda: 6  # so that regressors are fitted meanwhile
class Announced(HistGradientBoostingRegressor):
    def fit(self, x, y):
        os.write(1, b"fitting\n")  # whole lines, from several threads
        return super().fit(x, y)
n_trees = int(sys.argv[1])
center = Announced(max_iter=n_trees, early_stopping=False, tol=0.0)
quick(center=["network", center]).fit(*line())
children = Path(f"/proc/self/task/{os.getpid()}/children")
print("children:", children.read_text() if children.exists() else "")
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs process groups")


def start(n_trees, temporary):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(n_trees)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
        start_new_session=True,
    )


def has_ended(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_after_a_fit(tmp_path):
    with start(3, tmp_path) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "fitting" in out
    assert out.splitlines()[-1].strip() == "children:"
    assert err == ""  # such as resource_tracker's warning of leaked semaphores
    assert list(Path(tmp_path).iterdir()) == []
    assert has_ended(process.pid)


def test_after_the_process_was_killed(tmp_path):
    with start(2000, tmp_path) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert first == "fitting\n"
    assert process.returncode == -signal.SIGKILL
    wait_until(lambda: has_ended(process.pid))
    assert list(Path(tmp_path).iterdir()) == []
