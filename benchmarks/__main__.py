"""``python -m benchmarks``."""

import sys

from benchmarks.app import run

sys.exit(run(sys.argv[1:]))
