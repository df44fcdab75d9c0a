"""Reading of regular files within a size limit; links, pipes and devices are refused."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

from nkcme.model_files.refusals import RESTORE, refusal


def read_file(path: Path, at_most: float = math.inf, first: int | None = None) -> bytes:
    """Read a regular file (all of it, or its ``first`` bytes) of ``at_most`` bytes."""
    never_wait = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    if stat.S_ISREG(os.lstat(path).st_mode):
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | never_wait)) as file:
            status = os.fstat(file.fileno())
            if status.st_size > at_most:
                raise refusal(path, f"at most {at_most} bytes", f"{status.st_size}", RESTORE)
            if stat.S_ISREG(status.st_mode):  # checked again: the path may have been replaced
                return file.read(status.st_size if first is None else first)
    raise refusal(path, "a regular file", "a directory, link, pipe or device", RESTORE)
