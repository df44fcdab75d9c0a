"""``python -m benchmarks``: one command per experiment and per measurement.

Follows the rules of ``nkcme``: results on standard output, notes on standard error, one line and
exit status 2 for bad input.
"""

from __future__ import annotations

import typer

from benchmarks.cli import experiments, measurements
from nkcme.cli.running import run_app

app = typer.Typer(
    help="Run the paper's experiments, compare with other packages, and measure speed. "
    "benchmarks/README.md describes every command and where its results go.",
    epilog="Try it: python -m benchmarks toy --quick",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
experiments.add_to(app)
measurements.add_to(app)


def run(arguments: list[str]) -> int:
    """The exit status of a command line."""
    return run_app(app, "python -m benchmarks", arguments)
