"""Files that appear whole or not at all, even if the power fails."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, partial: Path) -> Iterator[BinaryIO]:
    """Open a new file at ``partial``, which replaces ``path`` once it is written to disk.

    If writing fails, ``partial`` is removed and ``path`` stays as it was. Call `fsync_directory`
    afterwards to make the replacement itself survive a power failure.
    """
    partial.unlink(missing_ok=True)
    try:
        with _new_file(partial) as file:
            yield file
        os.replace(partial, path)
    except (Exception, KeyboardInterrupt):
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def write_file(path: Path, data: bytes) -> None:
    """Write a new file; it is on the disk when this returns."""
    with _new_file(path) as file:
        file.write(data)


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    with open(path, "xb") as file:  # "x": an existing link is not followed
        yield file
        file.flush()
        os.fsync(file.fileno())


def fsync_directory(directory: Path) -> None:
    """Make renames durable, where the system can (Windows and some mounts cannot)."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
