"""One of the processes that fit a model together.

`nkcme.estimators.nkcme.launching` starts them, as ``python -m`` this module with a job and the
number of the process. The job is a JSON file; beside it the first process
writes the model, and each one that fails why it did.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

#: Seconds in which it becomes known which process is gone.
_LOST_SECONDS = 8.0


def main(job_file: str, process_id: int) -> int:
    """Run one process; its exit status."""
    place = Path(job_file).parent
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    if job["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"][process_id])
    _end_with_parent()
    # From here on, because JAX counts the cores when it is imported.
    from nkcme.errors import NkcmeError
    from nkcme.estimators.nkcme.estimator import NKCME
    from nkcme.estimators.nkcme.launching import HELD_OUT, MODEL
    from nkcme.training.processes import join

    watch = join(job["coordinator"], job["processes"], process_id)
    try:
        given = {k: NKCME._parameter_from_file(k, v) for k, v in job["parameters"].items()}
        model = NKCME(**given).fit(job["files"], target=job["target"])
        if process_id == 0:
            model.save(place / MODEL)
            if model.held_out_rows_ is not None:
                _write_rows(model.held_out_rows_, place / HELD_OUT)
    except NkcmeError as error:
        _fail(place, process_id, type(error).__name__, str(error))
    except Exception as error:  # a sum that a lost process had a part in ends with any error
        lost = watch.lost(_LOST_SECONDS)
        if lost is None:
            raise
        _fail(place, process_id, "lost", lost, error)
    watch.end()
    return 0


def _fail(
    place: Path, process_id: int, kind: str, message: str, cause: Exception | None = None
) -> None:
    """Write why the process failed, and end it at once: it would wait for the others at its end."""
    from nkcme.estimators.nkcme.launching import FAILURE

    content = {"kind": kind, "message": message, "cause": repr(cause)}
    (place / FAILURE.format(process_id)).write_text(json.dumps(content), encoding="utf-8")
    sys.stderr.flush()
    os._exit(1)


def _end_with_parent() -> None:
    """End this process when its standard input closes, which its parent holds open."""

    def wait() -> None:
        while os.read(0, 1024):
            continue
        os._exit(1)

    threading.Thread(target=wait, daemon=True, name="nkcme-parent").start()


def _write_rows(rows: Any, path: Path) -> None:
    from pyarrow.parquet import write_table

    write_table(rows, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
