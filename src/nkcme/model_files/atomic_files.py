"""Files that appear whole or not at all, whenever the power fails."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, partial: Path) -> Iterator[BinaryIO]:
    """A new file to write at ``partial``, which takes the place of ``path`` once it is on the disk.

    Should writing fail it is removed again, and what was at ``path`` stays. To know that the new
    file stays too when the power fails next, `fsync_directory`.
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
    with open(path, "xb") as file:  # "x": a link that someone put there is not followed
        yield file
        file.flush()
        os.fsync(file.fileno())


def fsync_directory(directory: Path) -> None:
    """Make renames durable, where the system has a way to (Windows and some mounts do not)."""
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
