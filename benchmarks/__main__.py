"""Runs the command line: ``python -m benchmarks``."""

import sys

from benchmarks.cli.app import run

sys.exit(run(sys.argv[1:]))
