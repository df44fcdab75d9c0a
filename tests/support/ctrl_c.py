"""Ctrl-C at a moment that does not depend on the clock."""

import contextlib
import signal
from collections.abc import Iterator

import pytest

from nkcme.model_files import CheckpointFile


@contextlib.contextmanager
def ctrl_c_after_first_checkpoint() -> Iterator[None]:
    """Send this process SIGINT when the first checkpoint has been written."""
    save = CheckpointFile.save

    def save_and_interrupt(self, config, arrays):
        save(self, config, arrays)
        signal.raise_signal(signal.SIGINT)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointFile, "save", save_and_interrupt)
        yield
