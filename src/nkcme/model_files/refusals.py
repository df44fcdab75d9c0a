"""The one-line errors of this package, and what becomes one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from nkcme.errors import ModelFileError

PathLike = str | os.PathLike[str]

RESTORE = "the file is damaged or was not written by nkcme: restore a copy, or fit and save again"
CHANGE = "change the config or the arrays that are saved"
ELSEWHERE = "choose another path; nothing was overwritten"


def refusal(path: PathLike, expected: str, found: str, remedy: str) -> ModelFileError:
    """Build the one-line error; quoting the path keeps an odd file name on that line too."""
    message = f"{str(path)!r}: expected {expected}, found {found}; {remedy}"
    return ModelFileError(" ".join(message.split()))


@contextmanager
def only_model_file_errors(path: PathLike, action: str, remedy: str) -> Iterator[None]:
    """Turn an error of the operating system, JSON or numpy into a ModelFileError.

    ``action`` is "read" or "written".
    """
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise refusal(path, f"a path that can be {action}", repr(path), "check the path")
    try:
        yield
    except ModelFileError:
        raise
    except OSError as error:
        remedy = "check the path, its permissions and the free space"
        path, found = error.filename or path, error.strerror or str(error)
        raise refusal(path, f"a path that can be {action}", found, remedy) from error
    except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        found = f"{type(error).__name__}: {str(error)[:300]}"
        raise refusal(path, f"content that can be {action}", found, remedy) from error
