"""Tests of what happens without permission, which root always has."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user for whom permissions count: nobody, where the tests are run by root."""
    owner = os.geteuid()
    if owner == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(owner)


@contextmanager
def directory_for_all() -> Iterator[Path]:
    """An empty directory that others can reach; pytest's own are closed to all but their owner."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)
