"""Running a command line: exit statuses, and one line for every error.

Results go to standard output, progress and notes to standard error. Bad input gives one line and
exit status 2; Ctrl-C gives one line and 130. The command line of the benchmarks runs the same way.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import typer

from nkcme.errors import NkcmeError, UnknownCategoryWarning

FAILED = 1
BAD_INPUT = 2
STOPPED = 130  # 128 + SIGINT, as in shells

#: The base class of typer's usage errors, which has no public name in all releases.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


def run_app(app: typer.Typer, name: str, arguments: list[str]) -> int:
    """The exit status of a command line; bad input, Ctrl-C and a closed pipe raise nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownCategoryWarning)  # commands print notes instead
            status = app(
                arguments or ["--help"], prog_name=name, standalone_mode=False, obj=arguments
            )
        sys.stdout.flush()
    except _UsageError as error:
        hint = "" if error.ctx is None else f" See {error.ctx.command_path} --help."
        message = error.format_message()
        return _fail(f"{message}{'' if message.endswith('.') else '.'}{hint}", BAD_INPUT)
    except NkcmeError as error:
        return _fail(str(error), BAD_INPUT)
    except BrokenPipeError:  # the reader of the pipe has closed it, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{where}{error.strerror or error}", BAD_INPUT)
    except MemoryError:
        return _fail("not enough memory; use fewer rows, samples or epochs", BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        status = STOPPED
    return _fail("stopped by Ctrl-C", STOPPED) if status == STOPPED else status or 0


def print_note(message: str) -> None:
    """Print one line to standard error."""
    print(f"nkcme: {' '.join(message.split())}", file=sys.stderr)


def _fail(message: str, status: int) -> int:
    print_note(message)
    return status


def numbers(text: str, option: str, example: str) -> list[float]:
    """The numbers of an option that takes a comma-separated list."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise NkcmeError(
            f"{option} must be numbers separated by commas, as in {example}; got {text!r}"
        ) from None


def limits(text: str, option: str, example: str) -> tuple[float | None, float | None]:
    """The two numbers of an option that takes a range; a side left empty has no limit."""
    sides = text.split(",")
    try:
        low, high = (float(side) if side.strip() else None for side in sides)
    except ValueError:
        raise NkcmeError(
            f"{option} must be two numbers with a comma between them, as in {example}; got {text!r}"
        ) from None
    return low, high
