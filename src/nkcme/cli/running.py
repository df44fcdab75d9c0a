"""How a command line runs: exit statuses, and one line for whatever goes wrong.

Results go to standard output, progress and notes to standard error. Bad input is one line and exit
status 2; Ctrl-C is one line and 130. The benchmarks' command line runs the same way.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from nkcme.errors import NkcmeError

FAILED = 1
BAD_INPUT = 2
STOPPED = 130  # 128 + SIGINT, as shells have it

#: The base of typer's usage errors, which has no public name that all releases share.
_UsageError: type[Any] = typer.BadParameter.__mro__[1]


def run_app(app: typer.Typer, name: str, arguments: list[str]) -> int:
    """The exit status of a command line; never raises on bad input, Ctrl-C or a closed pipe."""
    try:
        status = app(arguments or ["--help"], prog_name=name, standalone_mode=False, obj=arguments)
        sys.stdout.flush()
    except _UsageError as error:
        hint = "" if error.ctx is None else f" See {error.ctx.command_path} --help."
        return say(error.format_message() + hint, BAD_INPUT)
    except NkcmeError as error:
        return say(str(error), BAD_INPUT)
    except BrokenPipeError:  # the reader had enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        return say(f"{where}{error.strerror or error}", BAD_INPUT)
    except MemoryError:
        return say("not enough memory; ask for fewer rows or samples at once", BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        status = STOPPED
    return say("stopped by Ctrl-C", STOPPED) if status == STOPPED else status or 0


def say(message: str, status: int = 0) -> int:
    """Print one line to standard error; gives back ``status``."""
    print(f"nkcme: {' '.join(message.split())}", file=sys.stderr)
    return status


def numbers(text: str, option: str, example: str) -> list[float]:
    """The numbers of an option that lists them with commas between."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise NkcmeError(
            f"{option} must be numbers with commas between, as {example}; got {text!r}"
        ) from None
