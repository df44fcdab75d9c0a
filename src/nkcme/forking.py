"""A guard against forked processes, in which JAX hangs.

JAX runs threads. A child made by `fork` inherits their locks but not the threads, and waits for
ever. On Linux `multiprocessing` forks by default up to Python 3.13.
"""

from __future__ import annotations

import os

from nkcme.errors import NkcmeError

_process_of_first_use: int | None = None


def need_unforked_process() -> None:
    """Raise in a process that was forked from one in which this function had been called.

    Call it before the first computation with JAX.
    """
    global _process_of_first_use
    if _process_of_first_use is None:
        _process_of_first_use = os.getpid()
    elif _process_of_first_use != os.getpid():
        raise NkcmeError(
            "this process was forked from one that had used nkcme, and JAX would hang in it; start "
            'processes with multiprocessing.get_context("spawn") or "forkserver", or use joblib '
            "(loky)"
        )
